//! How providers say that a prompt is longer than the model's context. Clients recognize one wording each, and make the history
//! shorter then.

use crate::fault::Fault;

/// Words of providers for it, in lower case.
const WORDS: [&str; 11] = [
    "prompt is too long",
    "input is too long",
    "context length",
    "context_length_exceeded",
    "context window",
    "maximum context",
    "input token count",
    "too many tokens",
    "reduce the length of the messages",
    "exceeds the maximum number of tokens",
    "longer than the model's context",
];

/// Returns whether a fault says that the prompt is too long.
pub(super) fn is_told_by(fault: &Fault) -> bool {
    let lower = fault.message.to_ascii_lowercase();
    matches!(fault.status(), 400 | 413) && WORDS.iter().any(|words| lower.contains(words))
}
