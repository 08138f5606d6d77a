//! Errors as providers of OpenAI's conventions say them, in refusals and inside a 200.

use serde::Deserialize;
use serde_json::Value;

use crate::models::wires::blame;
use crate::models::wires::failure::{Failure, ProviderWords};

/// The shapes seen: `{error: {message, type, param, code}}`, `{error: "…"}`, `{object: "error", message, code}`,
/// `{message}`, `{detail: …}`, `{detail: {error: "…"}}`. Source: docs/facts/wire-formats.md 1.4, 5.3, 5.4.
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
        (Value::Null, Value::Object(detail)) => {
            detail.get("error").and_then(Value::as_str).map(Into::into)
        }
        _ => member("message", &body.message),
    };
    // The account's state stands in the code of some providers, in the type of others, and in the message of others.
    let kind = member("type", &body.kind);
    let blames_key = kind.as_deref().is_some_and(blame::by_code);
    let failure = Failure::refused_with(
        status,
        ProviderWords {
            message: message.unwrap_or_default(),
            code: member("code", &body.code),
            param: member("param", &body.param),
        },
    );
    if blames_key {
        failure.about_the_key()
    } else {
        failure
    }
}

/// Returns the status that an error inside a 200 amounts to. A status that rests a key follows from a code or from the
/// first words of the message, because the rest may quote the caller.
fn guess_status(error: &Value) -> u16 {
    let code = error.get("code").or_else(|| error.get("status"));
    if let Some(status) = code
        .and_then(Value::as_u64)
        .filter(|code| (400..600).contains(code))
    {
        return status as u16;
    }
    let names = ["code", "status", "type"].map(|name| error.get(name).and_then(Value::as_str));
    let has_code = |words: &[&str]| {
        let mut names = names.iter().flatten();
        names.any(|name| {
            let name = name.to_ascii_lowercase();
            words.iter().any(|word| name.contains(word))
        })
    };
    let message = error.as_str().or_else(|| error.get("message")?.as_str());
    let message = message.unwrap_or_default().to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let throttled = [
        "rate limit",
        "rate limited",
        "too many requests",
        "quota exceeded",
    ];
    let refused = [
        "unauthorized",
        "authentication failed",
        "invalid authentication",
    ];
    if has_code(&["rate_limit", "too_many_requests", "quota"])
        || blame::begins_with(&message, &throttled)
    {
        429
    } else if has_code(&["authentication", "invalid_api_key", "unauthorized"])
        || blame::begins_with(&message, &refused)
        || blame::by_message(&message)
    {
        401
    } else if has_code(&["model_not_found"]) || says(&["model_not_found", "does not exist"]) {
        404
    } else if has_code(&["invalid_request"]) || says(&["invalid_request"]) {
        400
    } else if has_code(&["overloaded", "unavailable"]) || says(&["overloaded", "unavailable"]) {
        503
    } else {
        500
    }
}
