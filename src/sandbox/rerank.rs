//! Ranks documents by the share of the query's words that they contain.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::response::count_tokens;

/// Returns the reply in the convention's shape, or `None` without a query or documents.
pub(super) fn rank(request: &Value) -> Option<Value> {
    let query = request.get("query")?.as_str()?;
    let documents = request.get("documents")?.as_array()?;
    let texts: Vec<&str> = documents.iter().filter_map(Value::as_str).collect();
    let lower = query.to_lowercase();
    let mut asked = AskedWords::new(&lower);
    let scores = texts.iter().map(|text| asked.share_in(text));
    let mut results: Vec<(usize, f64)> = scores.enumerate().collect();
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

/// A map of the words of a query, so that a document takes only the time of its own words.
struct AskedWords<'q> {
    words: HashMap<&'q str, AskedWord>,
    count: usize,
    texts: usize,
}

struct AskedWord {
    /// How many times the query contains the word.
    count: usize,
    /// The number of the last document that contained the word.
    last_text: usize,
}

impl<'q> AskedWords<'q> {
    /// Returns the words of a query in lower case.
    fn new(query: &'q str) -> Self {
        let mut asked = HashMap::new();
        for word in words(query) {
            let none = AskedWord {
                count: 0,
                last_text: 0,
            };
            asked.entry(word).or_insert(none).count += 1;
        }
        Self {
            count: words(query).count(),
            words: asked,
            texts: 0,
        }
    }

    /// Returns the share of the query's words that a text contains, in any case.
    fn share_in(&mut self, text: &str) -> f64 {
        self.texts += 1;
        let mut shared = 0;
        for word in words(&text.to_lowercase()) {
            if let Some(asked) = self.words.get_mut(word)
                && asked.last_text != self.texts
            {
                asked.last_text = self.texts;
                shared += asked.count;
            }
        }
        shared as f64 / self.count.max(1) as f64
    }
}

/// Returns the words of a text.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}
