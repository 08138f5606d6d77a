//! Flags texts by two words: `violence` and `hate`.

use serde_json::{Map, Value, json};

/// The categories. Each is also the word that is searched for.
const CATEGORIES: [&str; 2] = ["hate", "violence"];

/// Returns the reply in the convention's shape, or `None` without an input.
pub(super) fn judge(request: &Value) -> Option<Value> {
    let input = request.get("input")?;
    let results: Vec<Value> = match input.as_array() {
        Some(items) if items.iter().all(Value::is_string) => items.iter().map(result).collect(),
        _ => vec![result(input)],
    };
    Some(json!({ "id": "modr-sandbox", "model": request.get("model"), "results": results }))
}

/// Returns the result for a text, or for all parts together. Images are ignored.
fn result(input: &Value) -> Value {
    let text = input.to_string().to_lowercase();
    let found = CATEGORIES.map(|word| (word, text.contains(word)));
    let members = |value: fn(bool) -> Value| -> Map<String, Value> {
        let members = found.iter();
        let members = members.map(|(word, found)| ((*word).to_owned(), value(*found)));
        members.collect()
    };
    json!({
        "flagged": found.iter().any(|(_, found)| *found),
        "categories": members(Value::from),
        "category_scores": members(|found| if found { 0.9.into() } else { 0.01.into() }),
    })
}
