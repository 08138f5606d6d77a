//! The remote evaluation protocol of OpenFeature, on the same engine. Source: docs/decisions.md 24.

use std::borrow::Cow;

use bytes::Bytes;
use filters::decisions::answer::list;
use filters::decisions::ask::{Decide, DecisionUser};
use filters::decisions::decide::{Decision, DecisionSource, decide};
use filters::decisions::encode;
use filters::decisions::members::{BorrowedObject, BorrowedValue};
use filters::fault::Fault;
use filters::form;
use filters::json::Object;
use http::{HeaderValue, header};

use super::DecisionContext;
use super::decide::decided;
use super::user_state::UserState;
use crate::proxy::response::Response;

/// What an evaluation is asked with.
struct OfrepContext<'a> {
    ask: Decide<'a>,
    /// Which variable is the value; none: whether the flag is on.
    variable: Option<Cow<'a, str>>,
}

/// One flag.
pub(super) async fn flag(asked: &DecisionContext<'_>) -> Result<Response, Fault> {
    let last = asked.call.path.rsplit('/').next().unwrap_or_default();
    // A `+` in a path is itself.
    let key = form::decode(&last.replace('+', "%2B")).into_owned();
    let context = match context(asked) {
        Ok(context) => context,
        Err(code) => return Ok(refused(400, Some(&key), code)),
    };
    if !asked.loaded.project.has_flag(&key) {
        return Ok(refused(404, Some(&key), "FLAG_NOT_FOUND"));
    }
    let mut out = Vec::new();
    for one in decided(asked, &context.ask, &[&key]).await? {
        write(&one, &context, &mut out);
    }
    Ok(Response::json(out))
}

/// All flags, in the datafile's order; impressions are for single flags alone.
///
/// Errors: 413 for an answer that would be too long.
pub(super) async fn flags(asked: &DecisionContext<'_>) -> Result<Response, Fault> {
    let context = match context(asked) {
        Ok(context) => context,
        Err(code) => return Ok(refused(400, None, code)),
    };
    let project = &asked.loaded.project;
    let keys: Vec<&str> = project.flag_keys().collect();
    let mut known = UserState::new(asked, &context.ask.user, &[], context.ask.options).await;
    let all = known
        .decide(&keys, |key, inputs| decide(project, key, inputs))
        .await?;
    let listed = list(all.iter(), |decided, out| write(decided, &context, out))?;
    let mut out = Vec::with_capacity(listed.len() + 16);
    let mut body = Object::open(&mut out);
    body.value("flags", |out| out.extend_from_slice(&listed));
    body.close();
    let tag = format!("\"{:016x}\"", fold(&out));
    let known = asked.call.headers.get(header::IF_NONE_MATCH);
    let is_known = known.is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut answer = Response::json(out);
    if is_known {
        answer.status = 304;
        answer.body = Bytes::new().into();
    }
    answer
        .headers
        .extend(HeaderValue::from_str(&tag).map(|tag| (header::ETAG, tag)));
    Ok(answer)
}

/// A number that changes with the body: FNV-1a of 64 bits.
fn fold(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// `{"context": {"targetingKey": …, …}}`. Errors: the protocol's word for what is wrong.
fn context<'a>(asked: &DecisionContext<'a>) -> Result<OfrepContext<'a>, &'static str> {
    let mut body: BorrowedObject<'a> =
        serde_json::from_slice(asked.call.body).map_err(|_| "PARSE_ERROR")?;
    let mut attributes = match body.remove("context") {
        None | Some(BorrowedValue::Null) => BorrowedObject::default(),
        Some(BorrowedValue::Object(context)) => context,
        Some(_) => return Err("INVALID_CONTEXT"),
    };
    let id = match attributes.remove("targetingKey") {
        Some(BorrowedValue::Text(id)) if !id.is_empty() => id,
        None | Some(BorrowedValue::Null | BorrowedValue::Text(_)) => {
            return Err("TARGETING_KEY_MISSING");
        }
        Some(_) => return Err("INVALID_CONTEXT"),
    };
    let variable = match attributes.remove("variableKey") {
        None | Some(BorrowedValue::Null) => None,
        Some(BorrowedValue::Text(key)) => Some(key),
        Some(_) => return Err("INVALID_CONTEXT"),
    };
    Ok(OfrepContext {
        ask: Decide {
            user: DecisionUser { id, attributes },
            ..Decide::default()
        },
        variable,
    })
}

fn write(decided: &Decision<'_>, context: &OfrepContext<'_>, out: &mut Vec<u8>) {
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

fn refused(status: u16, key: Option<&str>, code: &str) -> Response {
    let mut out = Vec::new();
    let mut body = Object::open(&mut out);
    body.optional_text("key", key);
    body.text("errorCode", code);
    body.close();
    Response {
        status,
        ..Response::json(out)
    }
}
