//! What prompts and variations say, which is written in the words of chat completions, in those of another dialect: what all of them
//! share.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::ManagedRequest;
use super::expand::Filling;
use crate::fault::{Fault, FaultKind, quoted};
use crate::fault_code::FaultCode;
use crate::models::dialects::chat;
use crate::models::prompts::origin::FilledBy;

/// A message of a prompt.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) role: Cow<'a, str>,
    #[serde(default)]
    pub(super) content: Value,
    #[serde(flatten)]
    pub(super) more: Map<String, Value>,
}

/// Returns what a pointer names; null where it names nothing.
pub(super) fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Members of a request, as JSON, and who has filled them.
pub(super) type Filled = Vec<(Box<str>, String, FilledBy)>;

/// A member of the dialect, and who has filled it.
pub(super) type FilledMember = (&'static str, Value, FilledBy);

/// Returns the members that prompt and variation fill, where the caller has left them unset. `translate` says a parameter in the words
/// of the dialect, whose API `api` names.
///
/// Errors: 400 naming a parameter that these words cannot say.
pub(super) fn members(
    request: &ManagedRequest,
    filling: Filling<'_>,
    api: &str,
    translate: impl Fn(&str, Value) -> Translated,
) -> Result<(Vec<FilledMember>, Filled), Fault> {
    let mut filled: Vec<FilledMember> = Vec::new();
    let mut passed: Filled = Vec::new();
    for (parameter, by) in filling.parameters() {
        let key = &*parameter.key;
        // A number that no value holds, such as 1e400, is passed on too.
        let value = serde_json::from_str(&parameter.json);
        let said = match value.map_or(Translated::Unknown, |value| translate(key, value)) {
            Translated::Members(said) => said,
            Translated::Unknown if is_of_chat(key) => {
                return Err(unsaid(filling, api, &format!("`{}`", quoted(key))));
            }
            // What the gateway does not know reaches the provider as it is.
            Translated::Unknown => {
                if !request.is_set(key) && !passed.iter().any(|(other, ..)| **other == *key) {
                    passed.push((key.into(), parameter.json.to_string(), by));
                }
                continue;
            }
        };
        for (key, value) in said {
            if !request.is_set(key) {
                fill(&mut filled, (key, value, by));
            }
        }
    }
    Ok((filled, passed))
}

/// Returns all members that are filled, as JSON.
pub(super) fn as_json(filled: Vec<FilledMember>, passed: Filled) -> Filled {
    let filled = filled.into_iter();
    let filled = filled.map(|(key, value, by)| (key.into(), value.to_string(), by));
    filled.chain(passed).collect()
}

/// Fills a member, unless it is filled. Several parameters are members of one here.
fn fill(filled: &mut Vec<FilledMember>, more: FilledMember) {
    let earlier = filled.iter_mut().find(|(key, ..)| *key == more.0);
    match (earlier, more) {
        (None, more) => filled.push(more),
        (Some((_, Value::Object(members), _)), (_, Value::Object(more), _)) => {
            for (key, value) in more {
                members.entry(key).or_insert(value);
            }
        }
        (Some(_), _) => {}
    }
}

/// Returns whether chat completions have a member.
fn is_of_chat(key: &str) -> bool {
    let mut own = chat::GATEWAY_MEMBERS.iter();
    chat::KEYS.contains(&key) || own.any(|(own, _)| *own == key)
}

/// What a parameter is in these words.
pub(super) enum Translated {
    /// Members; none where it asks for nothing.
    Members(Vec<(&'static str, Value)>),
    Unknown,
}

/// The fault of JSON that was checked when it came and cannot be read now: 500.
pub(super) fn unread(what: &str, error: &serde_json::Error) -> Fault {
    let fault = Fault::new(FaultKind::Internal, format!("the {what} could not be read"));
    fault.with_detail(error.to_string())
}

/// The fault of something that these words cannot say: 400.
pub(super) fn unsaid(filling: Filling<'_>, api: &str, what: &str) -> Fault {
    let message = format!(
        "{} has {what}, which requests of {api} cannot say; chat completions can",
        filling.describe()
    );
    Fault::invalid("model", message).with_code(FaultCode::InvalidParameters)
}
