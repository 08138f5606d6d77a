//! Errors as providers of this convention say them, in refusals and inside a 200.

use serde::Deserialize;
use serde_json::Value;

use crate::models::wires::failure::Failure;

/// The shapes seen: `{error: {message, type, param, code}}`, `{error: "…"}`, `{object: "error", message, code}`,
/// `{message}`, `{detail: …}`. Source: docs/facts/wire-formats.md 1.4, 5.3, 5.4.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    error: Value,
    message: Value,
    detail: Value,
    code: Value,
    param: Value,
    #[serde(rename = "type")]
    kind: Value,
}

pub(super) fn classify(status: u16, body: &[u8]) -> Failure {
    let body: Body = serde_json::from_slice(body).unwrap_or_default();
    named(status, &body)
}

/// An error inside a 200, as the text of the `error` member. Its status is guessed from its words.
pub(super) fn classify_error(error: &str) -> Failure {
    let value: Value = serde_json::from_str(error).unwrap_or_default();
    let body = match value.get("error") {
        Some(inner) => Body {
            error: inner.clone(),
            ..Body::default()
        },
        None => Body {
            error: value,
            ..Body::default()
        },
    };
    let mut failure = named(guess_status(&body.error), &body);
    // Whatever its words: nothing of this answer has been seen, so the next provider may try.
    failure.is_retryable = true;
    failure
}

fn named(status: u16, body: &Body) -> Failure {
    let member = |name: &str, outer: &Value| -> Option<Box<str>> {
        body.error
            .get(name)
            .and_then(Value::as_str)
            .or(outer.as_str())
            .map(Into::into)
    };
    let message = match (&body.error, &body.detail) {
        (Value::String(text), _) => Some(text.as_str().into()),
        (Value::Null, Value::String(text)) => Some(text.as_str().into()),
        _ => member("message", &body.message),
    };
    // The account's state stands in the code of some providers and in the message of others.
    let code = member("code", &body.code);
    let kind = member("type", &body.kind);
    let words = [message.as_deref(), code.as_deref(), kind.as_deref()];
    let all: Vec<&str> = words.into_iter().flatten().collect();
    let told = Failure::refused(status, &all.join(" "));
    Failure {
        is_retryable: told.is_retryable,
        blames_key: told.blames_key,
        code: code.filter(|code| is_word(code)),
        param: member("param", &body.param).filter(|param| param.len() <= 100),
        ..Failure::refused(status, message.as_deref().unwrap_or_default())
    }
}

fn guess_status(error: &Value) -> u16 {
    let code = error.get("code").or_else(|| error.get("status"));
    if let Some(status) = code
        .and_then(Value::as_u64)
        .filter(|code| (400..600).contains(code))
    {
        return status as u16;
    }
    let text = error.to_string().to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["rate_limit", "rate limit", "too many requests", "quota"]) {
        429
    } else if has(&["model_not_found", "does not exist"]) {
        404
    } else if has(&["authentication", "invalid_api_key", "unauthorized"]) {
        401
    } else if has(&["invalid_request"]) {
        400
    } else if has(&["overloaded", "unavailable"]) {
        503
    } else {
        500
    }
}

fn is_word(code: &str) -> bool {
    code.len() <= 64
        && code
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}
