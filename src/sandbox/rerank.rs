//! Ranks documents by the share of the query's words that they hold.

use serde_json::{Value, json};

use super::response::count_tokens;

/// Returns the reply in the convention's shape; `None`: query or documents are missing.
pub(super) fn rank(request: &Value) -> Option<Value> {
    let query = request.get("query")?.as_str()?;
    let documents = request.get("documents")?.as_array()?;
    let texts: Vec<&str> = documents.iter().filter_map(Value::as_str).collect();
    let mut results: Vec<(usize, f64)> = texts
        .iter()
        .map(|text| shared_words(query, text))
        .enumerate()
        .collect();
    results.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let top_n = request.get("top_n").and_then(Value::as_u64);
    results.truncate(top_n.map_or(usize::MAX, |most| most as usize));
    let result = |(index, score)| json!({ "index": index, "relevance_score": score });
    let tokens: usize = texts
        .iter()
        .map(|text| count_tokens(query) + count_tokens(text))
        .sum();
    Some(json!({
        "model": request.get("model"),
        "results": results.into_iter().map(result).collect::<Value>(),
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }))
}

/// Returns the share of the words of a query that a text holds, in any case.
pub(super) fn shared_words(query: &str, text: &str) -> f64 {
    let (query, text) = (query.to_lowercase(), text.to_lowercase());
    let held: Vec<&str> = words(&text).collect();
    let shared = words(&query).filter(|word| held.contains(word)).count();
    shared as f64 / words(&query).count().max(1) as f64
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}
