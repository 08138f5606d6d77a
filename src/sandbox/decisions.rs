//! Decides by the words that the input shares with questions, options and levels.

use serde_json::{Value, json};

use super::rerank::shared_words;
use super::response::count_tokens;

/// Returns the reply in the convention's shape; `None`: input or questions are missing.
pub(super) fn decide(request: &Value) -> Option<Value> {
    let input = request.get("input")?.as_str()?;
    let questions = request.get("questions")?.as_array()?;
    let answers: Option<Vec<Value>> = questions.iter().map(|it| answer(it, input)).collect();
    let instructions = questions.iter().filter_map(|it| text(it, "instructions"));
    let asked: usize = instructions.map(count_tokens).sum();
    let tokens = count_tokens(input) + asked;
    let answers = answers?;
    Some(json!({
        "model": request.get("model"),
        "usage": {"input_tokens": tokens, "output_tokens": answers.len(), "total_tokens": tokens + answers.len()},
        "answers": answers,
    }))
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

fn answer(question: &Value, input: &str) -> Option<Value> {
    let name = question.get("name");
    match text(question, "type")? {
        "predicate" => {
            let probability = shared_words(text(question, "instructions")?, input);
            Some(json!({"type": "predicate", "name": name, "probability": probability}))
        }
        "choice" => {
            let options = question.get("choices")?.as_array()?;
            let values: Vec<&str> = options.iter().filter_map(|it| text(it, "value")).collect();
            let chances = chances(&values, input);
            let pairs = values.iter().zip(&chances);
            let (choice, confidence) =
                pairs.clone().reduce(|best, next| match next.1 > best.1 {
                    true => next,
                    false => best,
                })?;
            let each = pairs.map(|(value, chance)| json!({"value": value, "probability": chance}));
            Some(
                json!({"type": "choice", "name": name, "choice": choice, "confidence": confidence,
                "probabilities": each.collect::<Value>()}),
            )
        }
        "score" => {
            let levels = question.get("levels")?.as_array()?;
            let labels: Vec<&str> = levels.iter().filter_map(|it| text(it, "label")).collect();
            let chances = chances(&labels, input);
            let score: f64 = (0_u32..)
                .zip(&chances)
                .map(|(at, chance)| f64::from(at) * chance)
                .sum();
            let confidence = chances.iter().copied().fold(0.0, f64::max);
            let each = labels.iter().zip(&chances).enumerate();
            let each = each.map(
                |(at, (label, chance))| json!({"value": at, "label": label, "probability": chance}),
            );
            Some(
                json!({"type": "score", "name": name, "score": score, "confidence": confidence,
                "probabilities": each.collect::<Value>()}),
            )
        }
        _ => None,
    }
}

/// Returns the probabilities of names: twice as much for one whose words all stand in the input.
fn chances(names: &[&str], input: &str) -> Vec<f64> {
    let weights: Vec<f64> = names
        .iter()
        .map(|name| 1.0 + shared_words(name, input))
        .collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}
