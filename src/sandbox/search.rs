//! Finds pages for queries. There are as many as requested, and each repeats a query.

use serde_json::{Value, json};

/// The maximum number of pages for a query.
const MAX_PAGES: u64 = 10;

/// Returns the reply in the convention's shape, or `None` without a query.
pub(super) fn search(request: &Value) -> Option<Value> {
    let query = request.get("query")?;
    let queries: Vec<&str> = match query.as_array() {
        Some(queries) => queries.iter().filter_map(Value::as_str).collect(),
        None => vec![query.as_str()?],
    };
    let asked = request.get("max_results").and_then(Value::as_u64);
    let count = asked.unwrap_or(MAX_PAGES).min(MAX_PAGES);
    let page = |query: &&str, number: u64| {
        json!({
            "title": format!("Page {number} about {query}"),
            "url": format!("https://example.com/{number}"),
            "snippet": format!("Here it says: {query}"),
            "date": "2026-01-31",
            "last_updated": "2026-02-28",
        })
    };
    let pages = queries
        .iter()
        .flat_map(|query| (1..=count).map(move |number| page(query, number)));
    Some(json!({
        "id": "search-sandbox",
        "results": pages.collect::<Value>(),
        "server_time": "2026-02-28T00:00:00Z",
    }))
}
