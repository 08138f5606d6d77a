//! Decisions in responses. Source: docs/decision-agent.md 2.3, docs/facts/decision-engine.md D, E.

use std::ops::Range;

use super::activate::Activation;
use super::borrowed_object::BorrowedObject;
use super::decide::Decision;
use super::request_body::DecisionUser;
use super::{Profile, encode, profile_json};
use crate::fault::{Fault, FaultKind};
use crate::json::{Object, write_escaped};

/// The largest body of a response that repeats the caller's input, and of all responses of a batch together.
pub const MAX_BODY_BYTES: usize = 16 << 20;

/// The members of results in which the protocols differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResultShape {
    /// Whether results without variables have an empty `variables`.
    pub has_empty_variables: bool,
    /// Whether decisions have `isEveryoneElseVariation`.
    pub has_everyone_else: bool,
}

/// Returns a body of at most [`MAX_BODY_BYTES`]. Errors: 413.
pub fn check_body(out: Vec<u8>) -> Result<Vec<u8>, Fault> {
    check_size(out.len()).map(|()| out)
}

/// Checks the size of a body. Errors: 413.
pub fn check_size(bytes: usize) -> Result<(), Fault> {
    if bytes <= MAX_BODY_BYTES {
        return Ok(());
    }
    let message = format!(
        "the answer has {bytes} bytes or more; at most {MAX_BODY_BYTES} are answered at once: ask for fewer flags, or with \
         a smaller user"
    );
    Err(Fault::new(FaultKind::TooLarge, message))
}

/// Returns items as a JSON list. Errors: 413 as [`check_body`], before more items are written.
pub fn list<T>(
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::with_capacity(1024);
    out.push(b'[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(item, &mut out);
        out = check_body(out)?;
    }
    out.push(b']');
    Ok(out)
}

/// Returns the decisions of one user as a JSON list. Errors: 413 as [`list`].
///
/// Cost: the user is encoded once, and copied into each result.
pub fn decision_list<'d>(
    all: impl Iterator<Item = &'d Decision<'d>>,
    user: &DecisionUser<'_>,
    shape: ResultShape,
) -> Result<Vec<u8>, Fault> {
    let mut encoded = None;
    let mut write_once = |out: &mut Vec<u8>| match &encoded {
        Some(known) => out.extend_from_within(Range::clone(known)),
        None => {
            let start = out.len();
            write_user(&user.id, &user.attributes, out);
            encoded = Some(start..out.len());
        }
    };
    list(all, |decided, out| {
        write_result(decided, shape, &mut write_once, out);
    })
}

/// Writes one decision.
pub fn write_decision(
    decided: &Decision<'_>,
    user_id: &str,
    attributes: &BorrowedObject<'_>,
    shape: ResultShape,
    out: &mut Vec<u8>,
) {
    let write_user = |out: &mut Vec<u8>| write_user(user_id, attributes, out);
    write_result(decided, shape, write_user, out);
}

/// Cost: the constant text between two values is copied in one piece.
fn write_result(
    decided: &Decision<'_>,
    shape: ResultShape,
    write_user: impl FnOnce(&mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    write_after(r#"{"variationKey":""#, decided.variation_key, out);
    out.extend_from_slice(br#"","enabled":"#);
    write_bool(decided.is_enabled, out);
    write_after(r#","ruleKey":""#, decided.rule_key, out);
    write_after(r#"","flagKey":""#, &decided.flag_key, out);
    out.extend_from_slice(br#"","userContext":"#);
    write_user(out);
    out.extend_from_slice(br#","reasons":["#);
    for (at, reason) in decided.reasons.iter().enumerate() {
        write_after(if at > 0 { ",\"" } else { "\"" }, reason, out);
        out.push(b'"');
    }
    out.push(b']');
    if shape.has_empty_variables || !decided.variables.is_empty() {
        out.extend_from_slice(br#","variables":"#);
        write_map(&decided.variables, out);
    }
    if shape.has_everyone_else {
        out.extend_from_slice(br#","isEveryoneElseVariation":"#);
        write_bool(decided.is_everyone_else, out);
    }
    out.push(b'}');
}

fn write_user(id: &str, attributes: &BorrowedObject<'_>, out: &mut Vec<u8>) {
    write_after(r#"{"userId":""#, id, out);
    out.extend_from_slice(br#"","attributes":"#);
    encode::write_members(attributes, out);
    out.push(b'}');
}

fn write_after(prefix: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(prefix.as_bytes());
    write_escaped(value, out);
}

fn write_bool(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Writes an item of activate.
pub fn write_activation(
    item: &Activation<'_>,
    user_id: &str,
    shape: ResultShape,
    out: &mut Vec<u8>,
) {
    let mut result = Object::open(out);
    for (key, value) in [
        ("userId", user_id),
        ("experimentKey", &item.experiment_key),
        ("featureKey", &item.feature_key),
        ("variationKey", item.variation_key),
        ("type", item.kind),
    ] {
        result.value(key, |out| encode::write_text(value, out));
    }
    if shape.has_empty_variables || !item.variables.is_empty() {
        result.value("variables", |out| write_map(&item.variables, out));
    }
    result.bool("enabled", item.is_enabled);
    result.optional_text(
        "error",
        Some(&*item.error).filter(|error| !error.is_empty()),
    );
    result.close();
}

/// Writes variables as an object, sorted by key.
pub(super) fn write_map(variables: &[(&str, &str)], out: &mut Vec<u8>) {
    let variables = variables.iter().map(|(key, json)| (*key, json));
    let write = |json: &&str, out: &mut Vec<u8>| out.extend_from_slice(json.as_bytes());
    encode::write_sorted(variables, write, out);
}

/// Returns a profile in the form of lookup.
pub fn profile_body(user_id: &str, profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    let mut result = Object::open(&mut out);
    result.text("userId", user_id);
    result.value("experimentBucketMap", |out| {
        profile_json::write(profile, out)
    });
    result.close();
    out
}

#[cfg(test)]
#[path = "response_body_tests.rs"]
mod tests;
