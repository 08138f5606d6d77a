//! Makes the embeddings of the sandbox: equal texts get equal vectors, and texts that share words get similar ones.

use serde_json::{Value, json};

use super::response::count_tokens;

/// The length of the vectors, unless a request asks for another.
const DIMENSIONS: u64 = 64;
/// The maximum length of the vectors.
const MAX_DIMENSIONS: u64 = 4096;

/// The maximum count of numbers in all vectors of a reply together.
const MAX_NUMBERS: u64 = 256 << 10;

/// Returns the list of vectors for a request, or `None` without inputs, or with too many for their dimensions.
pub(super) fn embed(body: &Value) -> Option<Value> {
    let inputs = match &body["input"] {
        Value::Array(items) if items.first().is_some_and(Value::is_number) => {
            vec![body["input"].clone()]
        }
        Value::Array(items) => items.clone(),
        Value::String(_) => vec![body["input"].clone()],
        _ => return None,
    };
    let asked = body["dimensions"].as_u64().unwrap_or(DIMENSIONS);
    let dimensions = asked.clamp(1, MAX_DIMENSIONS);
    if dimensions.saturating_mul(inputs.len() as u64) > MAX_NUMBERS {
        return None;
    }
    let item = |(index, input): (usize, &Value)| {
        let vector = vector(&words(input), dimensions);
        json!({"object": "embedding", "index": index, "embedding": vector})
    };
    let data: Vec<Value> = inputs.iter().enumerate().map(item).collect();
    let tokens: usize = inputs.iter().map(tokens).sum();
    Some(json!({
        "object": "list",
        "data": data,
        "model": body["model"],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }))
}

fn tokens(input: &Value) -> usize {
    match input {
        Value::Array(tokens) => tokens.len(),
        input => count_tokens(input.as_str().unwrap_or_default()),
    }
}

/// Returns the words of a text, or its tokens.
fn words(input: &Value) -> Vec<String> {
    match input {
        Value::Array(tokens) => tokens.iter().map(Value::to_string).collect(),
        input => {
            let text = input.as_str().unwrap_or_default().to_lowercase();
            text.split_whitespace().map(str::to_owned).collect()
        }
    }
}

/// Returns a vector of length 1. Each word adds to one of its numbers.
fn vector(words: &[String], dimensions: u64) -> Vec<f32> {
    let mut vector: Vec<f32> = (0..dimensions).map(|_| 0.0).collect();
    for word in words {
        let hash = hash(word);
        let at = usize::try_from(hash % dimensions).unwrap_or_default();
        if let Some(number) = vector.get_mut(at) {
            *number += 1.0;
        }
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>();
    match length > 0.0 {
        true => {
            let length = length.sqrt();
            vector.iter().map(|number| number / length).collect()
        }
        false => {
            vector.iter_mut().take(1).for_each(|number| *number = 1.0);
            vector
        }
    }
}

/// Returns the FNV-1a hash of a word.
fn hash(word: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    word.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(one: &Value, two: &Value) -> f64 {
        let numbers = |vector: &Value| -> Vec<f64> {
            let numbers = vector.as_array().into_iter().flatten();
            numbers.filter_map(Value::as_f64).collect()
        };
        let (one, two) = (numbers(one), numbers(two));
        one.iter().zip(two).map(|(one, two)| one * two).sum()
    }

    #[test]
    fn texts_that_share_words_have_similar_vectors() {
        let input = [
            "a red house",
            "A red house",
            "the red house",
            "three blind mice",
        ];
        let list = embed(&json!({"model": "m", "input": input, "dimensions": 512})).unwrap();
        let vector = |at: usize| &list["data"][at]["embedding"];
        assert!((product(vector(0), vector(1)) - 1.0).abs() < 1e-5);
        let (near, far) = (product(vector(0), vector(2)), product(vector(0), vector(3)));
        assert!(near > 0.5 && far < 0.1, "{near} {far}");
        assert_eq!(vector(0).as_array().unwrap().len(), 512);
        assert_eq!(list["usage"]["prompt_tokens"], 14);
    }

    #[test]
    fn every_form_of_input_has_vectors() {
        for (input, count, tokens) in [
            (json!("word"), 1, 1),
            (json!([1, 2, 3]), 1, 3),
            (json!([[1], [2, 3]]), 2, 3),
            (json!([" "]), 1, 1),
        ] {
            let list = embed(&json!({"input": input})).unwrap();
            assert_eq!(list["data"].as_array().unwrap().len(), count, "{input}");
            assert_eq!(list["usage"]["total_tokens"], tokens, "{input}");
        }
        assert_eq!(embed(&json!({"input": 7})), None);
    }
}
