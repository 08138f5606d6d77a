//! Decides by the words that the input shares with questions, options and levels.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::rerank::words;
use super::response::count_tokens;

/// Returns the reply in the convention's shape, or `None` without an input or questions.
pub(super) fn decide(request: &Value) -> Option<Value> {
    let input = request.get("input")?.as_str()?;
    let questions = request.get("questions")?.as_array()?;
    let lower = input.to_lowercase();
    let held: HashSet<&str> = words(&lower).collect();
    let answers: Option<Vec<Value>> = questions.iter().map(|it| answer(it, &held)).collect();
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

fn answer(question: &Value, held: &HashSet<&str>) -> Option<Value> {
    let name = question.get("name");
    match text(question, "type")? {
        "predicate" => {
            let probability = held_share(text(question, "instructions")?, held);
            Some(json!({"type": "predicate", "name": name, "probability": probability}))
        }
        "choice" => {
            let options = question.get("choices")?.as_array()?;
            let values: Vec<&str> = options.iter().filter_map(|it| text(it, "value")).collect();
            let chances = chances(&values, held);
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
            let chances = chances(&labels, held);
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

/// Returns the share of a text's words, in any case, that the input contains.
fn held_share(text: &str, held: &HashSet<&str>) -> f64 {
    let text = text.to_lowercase();
    let shared = words(&text).filter(|word| held.contains(word)).count();
    shared as f64 / words(&text).count().max(1) as f64
}

/// Returns the probabilities of names. A name counts twice if the input contains all of its words.
fn chances(names: &[&str], held: &HashSet<&str>) -> Vec<f64> {
    let weights: Vec<f64> = names
        .iter()
        .map(|name| 1.0 + held_share(name, held))
        .collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}
