//! The remote evaluation protocol of OpenFeature: requests and responses.
//! Source: docs/decisions.md 24, and the protocol's own description, <https://openfeature.dev/docs/reference/other-technologies/ofrep/openapi>.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use super::borrowed_object::{BorrowedObject, BorrowedValue};
use super::decide::{Decision, DecisionSource};
use super::encode;
use super::request_body::{Decide, DecisionUser};
use crate::fault::Fault;
use crate::form;
use crate::json::Object;

/// The request of an evaluation.
pub struct OfrepContext<'a> {
    /// The user, and no options.
    pub ask: Decide<'a>,
    /// The variable whose value is returned; `None` returns whether the flag is on.
    variable: Option<Cow<'a, str>>,
}

/// The reason for which an evaluation is refused, in the protocol's words.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OfrepError {
    /// The body is not a JSON object.
    Parse,
    Context,
    /// This member of the context is not a string.
    Member(&'static str),
    /// The context names no user.
    TargetingKeyMissing,
    FlagNotFound,
}

impl OfrepError {
    /// Returns the status.
    pub fn status(self) -> u16 {
        match self {
            Self::FlagNotFound => 404,
            Self::Parse | Self::Context | Self::Member(_) | Self::TargetingKeyMissing => 400,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Parse => "PARSE_ERROR",
            Self::Context | Self::Member(_) => "INVALID_CONTEXT",
            Self::TargetingKeyMissing => "TARGETING_KEY_MISSING",
            Self::FlagNotFound => "FLAG_NOT_FOUND",
        }
    }

    fn details(self) -> Cow<'static, str> {
        match self {
            Self::Parse => "the body is not a JSON object".into(),
            Self::Context => "`context` is not an object".into(),
            Self::Member(name) => format!("`context.{name}` is not a string").into(),
            Self::TargetingKeyMissing => {
                "`context.targetingKey` is missing or empty: it is the user's id".into()
            }
            Self::FlagNotFound => "the project of this SDK key has no flag of this key".into(),
        }
    }

    /// Returns the error as JSON, with the key of a single flag.
    pub fn to_json(self, key: Option<&str>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut body = Object::open(&mut out);
        body.optional_text("key", key);
        body.text("errorCode", self.code());
        body.text("errorDetails", &self.details());
        body.close();
        out
    }
}

/// Returns any other fault as JSON, with the member `error` that all faults of decisions have.
pub fn write_fault(fault: &Fault) -> Vec<u8> {
    let mut out = Vec::new();
    let mut body = Object::open(&mut out);
    body.text("error", &fault.message);
    body.text("errorCode", "GENERAL");
    body.text("errorDetails", &fault.message);
    body.close();
    out
}

/// The end of the path of all flags. The key of a flag follows.
const FLAGS: &str = "/evaluate/flags/";

/// Returns the key of the flag that a path names. The key is the rest of the path as received, decoded once, so it
/// may contain any character. A `+` in a path means a plus.
pub fn flag_key(path: &str) -> String {
    let key = match path.split_once(FLAGS) {
        Some((_, key)) => key,
        // The path is not spelled as in the table. Its last segment is still the key.
        None => path.rsplit('/').next().unwrap_or_default(),
    };
    form::decode(&key.replace('+', "%2B")).into_owned()
}

/// Reads `{"context": {"targetingKey": …, …}}`. Errors: [`OfrepError`].
pub fn read_context(body: &[u8]) -> Result<OfrepContext<'_>, OfrepError> {
    let mut body: BorrowedObject<'_> =
        serde_json::from_slice(body).map_err(|_| OfrepError::Parse)?;
    let mut attributes = match body.remove("context") {
        None | Some(BorrowedValue::Null) => BorrowedObject::default(),
        Some(BorrowedValue::Object(context)) => context,
        Some(_) => return Err(OfrepError::Context),
    };
    let id = match attributes.remove("targetingKey") {
        Some(BorrowedValue::Text(id)) if !id.is_empty() => id,
        None | Some(BorrowedValue::Null | BorrowedValue::Text(_)) => {
            return Err(OfrepError::TargetingKeyMissing);
        }
        Some(_) => return Err(OfrepError::Member("targetingKey")),
    };
    let variable = match attributes.remove("variableKey") {
        None | Some(BorrowedValue::Null) => None,
        Some(BorrowedValue::Text(key)) => Some(key),
        Some(_) => return Err(OfrepError::Member("variableKey")),
    };
    Ok(OfrepContext {
        ask: Decide {
            user: DecisionUser { id, attributes },
            ..Decide::default()
        },
        variable,
    })
}

/// Writes one evaluation.
pub fn write_evaluation(decided: &Decision<'_>, context: &OfrepContext<'_>, out: &mut Vec<u8>) {
    let mut result = Object::open(out);
    result.text("key", &decided.flag_key);
    let variable = context.variable.as_deref();
    let value =
        variable.and_then(|wanted| decided.variables.iter().find(|(key, _)| *key == wanted));
    match (variable, value) {
        (None, _) => result.bool("value", decided.is_enabled),
        (Some(_), Some((_, json))) => result.raw("value", json),
        (Some(_), None) => result.raw("value", "null"),
    }
    let reason = match decided.source {
        _ if !decided.is_enabled => "DISABLED",
        DecisionSource::FeatureTest | DecisionSource::Experiment => "SPLIT",
        DecisionSource::Rollout if decided.is_everyone_else || decided.rule_key.is_empty() => {
            "DEFAULT"
        }
        DecisionSource::Rollout | DecisionSource::Holdout => "TARGETING_MATCH",
    };
    result.text("reason", reason);
    if !decided.variation_key.is_empty() {
        result.text("variant", decided.variation_key);
    }
    result.object("metadata", |metadata| {
        metadata.value("ruleKey", |out| {
            encode::write_text(decided.rule_key, out);
        });
    });
    result.close();
}

/// Returns the body of an answer with all flags. `stream` is the path and the query of the stream of changes, if one is offered.
pub fn write_all(flags: &[u8], stream: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(flags.len() + 256);
    let mut body = Object::open(&mut out);
    body.value("flags", |out| out.extend_from_slice(flags));
    if let Some(uri) = stream {
        body.value("eventStreams", |out| {
            out.push(b'[');
            let mut stream = Object::open(out);
            stream.text("type", "sse");
            stream.object("endpoint", |endpoint| endpoint.text("requestUri", uri));
            stream.close();
            out.push(b']');
        });
    }
    body.close();
    out
}

/// Returns the ETag of an answer with all flags. It covers the SDK key and the request with its context, so that no answer to
/// another context has the same one.
pub fn etag(sdk_key: &str, request: &[u8], flags: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in [sdk_key.as_bytes(), request, flags] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    format!("\"{}\"", short_hex(&hash.finalize()))
}

/// Returns the tag of a datafile that streams announce.
pub fn flag_config_etag(datafile: &[u8]) -> String {
    short_hex(&Sha256::digest(datafile))
}

/// Writes the first half of a hash in hexadecimal digits.
fn short_hex(hash: &[u8]) -> String {
    let half = hash.iter().take(hash.len() / 2);
    half.fold(String::with_capacity(hash.len()), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
        text
    })
}

/// Returns whether the header `If-None-Match` names an ETag. Proxies that compress make strong tags weak, so both are the same.
pub fn names_etag(if_none_match: &[u8], etag: &str) -> bool {
    let mut tags = if_none_match.split(|byte| *byte == b',');
    tags.any(|tag| {
        let tag = tag.trim_ascii();
        tag.strip_prefix(b"W/").unwrap_or(tag) == etag.as_bytes()
    })
}

/// Returns the event that tells a client to evaluate its flags again.
pub fn refetch_event(flag_config_etag: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    out.extend_from_slice(b"id: ");
    out.extend_from_slice(flag_config_etag.as_bytes());
    out.extend_from_slice(b"\nevent: message\ndata: ");
    let mut data = Object::open(&mut out);
    data.text("type", "refetchEvaluation");
    data.text("etag", flag_config_etag);
    data.close();
    out.extend_from_slice(b"\n\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_etag_is_never_for_another_context() {
        let asked = etag("key", b"{}", b"[]");
        assert_eq!(asked.len(), 34);
        assert_eq!(asked, etag("key", b"{}", b"[]"));
        for other in [
            etag("other", b"{}", b"[]"),
            etag("key", b"{ }", b"[]"),
            etag("key", b"{}", b"[1]"),
            etag("key{", b"}", b"[]"),
        ] {
            assert_ne!(asked, other);
        }
    }

    #[test]
    fn a_header_names_a_tag_alone_in_a_list_or_weakly() {
        let header = |text: &str| names_etag(text.as_bytes(), "\"a\"");
        assert!(header("\"a\"") && header("W/\"a\"") && header("\"b\", W/\"a\""));
        assert!(!header("a") && !header("\"b\"") && !header("*") && !header(""));
    }

    #[test]
    fn an_event_has_the_tag_as_its_id() {
        let event = String::from_utf8(refetch_event("ab")).unwrap_or_default();
        let data = r#"{"type":"refetchEvaluation","etag":"ab"}"#;
        assert_eq!(event, format!("id: ab\nevent: message\ndata: {data}\n\n"));
    }

    #[test]
    fn an_answer_offers_a_stream_by_its_path() {
        let answer = String::from_utf8(write_all(b"[]", Some("/s?ticket=1"))).unwrap_or_default();
        let stream = r#"{"type":"sse","endpoint":{"requestUri":"/s?ticket=1"}}"#;
        assert_eq!(
            answer,
            format!(r#"{{"flags":[],"eventStreams":[{stream}]}}"#)
        );
        assert_eq!(write_all(b"[]", None), br#"{"flags":[]}"#);
    }
}
