//! Answers to typed decisions on their way to the client.

use serde_json::value::RawValue;

use crate::models::reply::Sink;
use crate::models::typed_decisions::{Answer, DecisionFacts};
use crate::models::usage::Usage;

/// Returns a finite number as it is written; `None`: it is not one.
pub(super) fn number(raw: &RawValue) -> Option<&str> {
    let text = raw.get();
    let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let value: Option<f64> = text.parse().ok();
    (is_number && value?.is_finite()).then_some(text)
}

/// Returns whether a choice is one of the options of its question.
pub(super) fn is_option(options: &[(Box<str>, Option<Box<str>>)], choice: &str) -> bool {
    options.iter().any(|(option, _)| **option == *choice)
}

/// Puts the answers into a sink, in the order of the questions.
pub(super) fn write_answers(facts: &DecisionFacts, answers: &[Answer<'_>], sink: &mut dyn Sink) {
    let mut out = Vec::new();
    for (question, answer) in facts.questions.iter().zip(answers) {
        out.clear();
        answer.write(&question.id, &mut out);
        sink.item(&out);
    }
}

/// Reports what is billed, which is the input alone, and tells the tokens of the answers. What a provider gets wrong is put
/// right, so that prompt ≥ cached + written.
pub(super) fn input_tokens(reported: Usage, output: Option<u64>, sink: &mut dyn Sink) {
    if let Some(output) = output {
        sink.member("output_tokens", &output.to_string());
    }
    if reported.is_zero() {
        return;
    }
    let cached = reported.cached.min(reported.prompt);
    sink.usage(Usage {
        cached,
        cache_write: reported.cache_write.min(reported.prompt - cached),
        ..reported
    });
}
