//! What a search has found, for the model and for the client.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The most bytes of what a page says about the query that a model is told.
const MAX_SNIPPET_BYTES: usize = 4096;
/// The most bytes of a page's title and of its address.
const MAX_NAME_BYTES: usize = 2048;

/// What became of a search.
#[derive(Clone, Debug)]
pub enum SearchOutcome {
    Pages(Vec<Page>),
    /// The word for the failure, as Messages has it: `max_uses_exceeded`, `unavailable`, `invalid_tool_input`,
    /// `query_too_long`.
    Failed(&'static str),
}

/// A page.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Page {
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub url: String,
    /// What it says about the query.
    #[serde(default)]
    pub snippet: String,
    /// When it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
}

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    results: Vec<&'a RawValue>,
}

impl SearchOutcome {
    /// Reads the reply of `POST /v1/search`, up to so many pages. What is no page is left out.
    pub fn read(reply: &[u8], most: usize) -> Self {
        let Ok(reply) = serde_json::from_slice::<Reply<'_>>(reply) else {
            return Self::Failed("unavailable");
        };
        let pages = reply.results.into_iter().filter_map(Page::read);
        Self::Pages(pages.take(most).collect())
    }

    /// Returns the pages as JSON; the word for the failure where there are none.
    pub fn to_json(&self) -> Result<String, &'static str> {
        match self {
            Self::Pages(pages) => serde_json::to_string(pages).map_err(|_| "unavailable"),
            Self::Failed(word) => Err(word),
        }
    }

    /// Returns whether the search has failed.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// Returns what the model is told.
    pub fn to_text(&self) -> String {
        let pages = match self {
            Self::Pages(pages) => pages,
            Self::Failed(word) => return failure(word).to_owned(),
        };
        if pages.is_empty() {
            return "The search has found nothing.".to_owned();
        }
        let mut text = String::new();
        for (at, page) in pages.iter().enumerate() {
            let number = (at + 1).to_string();
            let date = page.date.as_deref().map(|date| [" (", date, ")"].concat());
            let date = date.unwrap_or_default();
            let separator = if at > 0 { "\n\n" } else { "" };
            let parts = [
                separator,
                &number,
                ". ",
                &page.title,
                &date,
                "\n",
                &page.url,
                "\n",
                &page.snippet,
            ];
            text.extend(parts);
        }
        text
    }
}

/// Returns what the model is told of a search that has failed.
fn failure(word: &str) -> &'static str {
    match word {
        "max_uses_exceeded" => "No more searches are allowed. Answer with what is known.",
        "query_too_long" => "The query is too long. Search for fewer words.",
        "invalid_tool_input" => {
            "The arguments hold no query. Accepted is an object with a text `query`."
        }
        _ => "The search has failed. Answer without it, and say so.",
    }
}

impl Page {
    fn read(json: &RawValue) -> Option<Self> {
        let page = serde_json::from_str::<Self>(json.get()).ok()?;
        let is_good = !page.url.is_empty() && page.url.len() <= MAX_NAME_BYTES;
        is_good.then(|| Self {
            title: shortened(page.title, MAX_NAME_BYTES),
            snippet: shortened(page.snippet, MAX_SNIPPET_BYTES),
            ..page
        })
    }
}

fn shortened(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn pages_are_numbered_and_bounded() {
        let long = "é".repeat(MAX_SNIPPET_BYTES);
        let reply = serde_json::json!({"results": [
            {"title": "One", "url": "https://one.example", "snippet": "first", "date": "2026-11-01", "more": 1},
            {"title": "no address"}, 5,
            {"title": "Two", "url": "https://two.example", "snippet": long},
            {"title": "Three", "url": "https://three.example"}]});
        let found = SearchOutcome::read(reply.to_string().as_bytes(), 2);
        let text = found.to_text();
        assert!(
            text.starts_with("1. One (2026-11-01)\nhttps://one.example\nfirst\n\n2. Two\n"),
            "{text}"
        );
        assert!(text.len() < MAX_SNIPPET_BYTES + 200 && !text.contains("Three"));
        let pages: serde_json::Value = serde_json::from_str(&found.to_json().unwrap()).unwrap();
        assert_eq!(pages[0]["date"], "2026-11-01");
        assert!(pages[1].get("date").is_none());
    }

    #[test]
    fn a_failure_is_told_in_words() {
        for word in [
            "max_uses_exceeded",
            "query_too_long",
            "invalid_tool_input",
            "unavailable",
        ] {
            let found = SearchOutcome::Failed(word);
            assert_eq!(found.to_json(), Err(word));
            assert!(found.is_failed() && !found.to_text().is_empty());
        }
        assert!(SearchOutcome::read(b"{\"error\":1}", 5).is_failed());
        assert_eq!(
            SearchOutcome::read(b"{\"results\":[]}", 5).to_text(),
            "The search has found nothing."
        );
    }
}
