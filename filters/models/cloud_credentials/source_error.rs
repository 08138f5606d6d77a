//! Why a source gives no credential.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// The longest word of a vendor's error that is shown.
const MAX_WORD_BYTES: usize = 64;

/// Why a source gives no credential. It never holds a secret, or what a server has said but for its error word.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SourceError {
    /// The variable, the file or the setting at fault.
    pub setting: Cow<'static, str>,
    /// What came, or what is wrong with it.
    pub came: String,
    pub cure: Cow<'static, str>,
}

impl SourceError {
    /// Creates an error of a setting.
    pub fn new(
        setting: impl Into<Cow<'static, str>>,
        came: impl Into<String>,
        cure: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            setting: setting.into(),
            came: came.into(),
            cure: cure.into(),
        }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.setting, self.came, self.cure)
    }
}

/// The error of a token endpoint, as OAuth 2.0 writes it.
#[derive(Deserialize)]
struct OAuthError {
    error: Value,
    #[serde(default)]
    error_codes: Vec<u64>,
}

/// Describes a reply that is no credential: by its status, and by its error word if that is harmless to show.
pub fn describe_refusal(status: u16, body: &[u8]) -> String {
    if (300..400).contains(&status) {
        return format!("it answered with a redirect ({status}), which is not followed");
    }
    let word = error_word(body);
    match word {
        Some(word) => format!("it answered {status}, {word}"),
        None if is_html(body) => format!("it answered {status} with a page of HTML"),
        None => format!("it answered {status}"),
    }
}

/// Describes a reply of success that is not what it should be.
pub fn describe_unreadable(body: &[u8], wanted: &str) -> String {
    match is_html(body) {
        true => "it answered with a page of HTML".to_owned(),
        false => format!("its answer has no {wanted}"),
    }
}

fn is_html(body: &[u8]) -> bool {
    let start = body.get(..body.len().min(256)).unwrap_or_default();
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let start = start.trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

fn error_word(body: &[u8]) -> Option<String> {
    if let Ok(error) = serde_json::from_slice::<OAuthError>(body) {
        let word = match &error.error {
            Value::String(word) => word.as_str(),
            other => other.get("status").and_then(Value::as_str)?,
        };
        let code = error.error_codes.first();
        let code = code.map(|code| format!(" (AADSTS{code})"));
        return is_word(word).then(|| format!("{word}{}", code.unwrap_or_default()));
    }
    let text = std::str::from_utf8(body).ok()?;
    let word = super::aws::replies::xml_text(text, "Code")?;
    is_word(&word).then_some(word)
}

fn is_word(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !text.is_empty() && text.len() <= MAX_WORD_BYTES && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_of_a_reply_are_shown() {
        for (status, body, expected) in [
            (
                302,
                "",
                "it answered with a redirect (302), which is not followed",
            ),
            (500, "secret text", "it answered 500"),
            (
                200,
                "<!DOCTYPE html><p>",
                "it answered 200 with a page of HTML",
            ),
            (
                400,
                r#"{"error":"invalid_grant","error_description":"sk"}"#,
                "it answered 400, invalid_grant",
            ),
            (
                401,
                r#"{"error":"invalid_client","error_codes":[7000222]}"#,
                "it answered 401, invalid_client (AADSTS7000222)",
            ),
            (
                403,
                r#"{"error":{"status":"PERMISSION_DENIED","message":"x"}}"#,
                "it answered 403, PERMISSION_DENIED",
            ),
            (400, r#"{"error":"a b"}"#, "it answered 400"),
            (
                400,
                "<ErrorResponse><Error><Code>ExpiredTokenException</Code></Error></ErrorResponse>",
                "it answered 400, ExpiredTokenException",
            ),
        ] {
            assert_eq!(
                describe_refusal(status, body.as_bytes()),
                expected,
                "{body}"
            );
        }
        let page = describe_unreadable(b" <html>", "token");
        assert_eq!(page, "it answered with a page of HTML");
        assert_eq!(
            describe_unreadable(b"{}", "token"),
            "its answer has no token"
        );
    }
}
