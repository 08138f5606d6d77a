//! The top-level object of a request, which every front walks alike.

use super::read::{any_object, string, twice};
use super::reject::{Reject, other};
use crate::fault_code::FaultCode;
use crate::json::{Type, Walker};
use crate::models::managed::variation::FLAG_PREFIX;
use crate::models::prompts::reference::PREFIX;
use crate::models::request::RequestMember;

/// How many top-level members a request may have: a hundred more than any client sends.
const MAX_MEMBERS: usize = 256;

/// Walks the top-level object; `member` checks each value. Returns where the members stand.
pub(crate) fn members<'a>(
    walk: &mut Walker<'a>,
    mut member: impl FnMut(&mut Walker<'a>, &str) -> Result<(), Reject>,
) -> Result<Vec<RequestMember>, Reject> {
    if walk.peek()? != Type::Object {
        return Err(match other(walk, "an object") {
            Reject::Rule { said, .. } => Reject::rule(said)
                .with_code(FaultCode::InvalidJson)
                .within("body"),
            syntax => syntax,
        });
    }
    let mut members: Vec<RequestMember> = Vec::new();
    any_object(walk, &[], |walk, key, _| {
        let start = walk.key_at();
        walk.peek()?;
        let value = walk.at();
        if members.iter().any(|member| *member.key == key) {
            return Err(twice().within(&key));
        }
        if members.len() >= MAX_MEMBERS {
            let said = format!("is one of more than {MAX_MEMBERS} members");
            return Err(Reject::rule(said).within(&key));
        }
        member(walk, &key).map_err(|reject| reject.within(&key))?;
        let end = walk.at();
        members.push(RequestMember {
            key: key.into(),
            whole: start..end,
            value: value..end,
        });
        Ok(())
    })?;
    Ok(members)
}

/// `model` of an operation that has no prompts.
pub(crate) fn model(walk: &mut Walker<'_>) -> Result<Box<str>, Reject> {
    plain_model(&string(walk)?.unescaped())
}

/// Checks a model string of an operation that has no prompts.
pub(crate) fn plain_model(model: &str) -> Result<Box<str>, Reject> {
    if model.starts_with(PREFIX) {
        let said = "names a prompt, which only chats take; accepted is a model id";
        return Err(Reject::rule(said));
    }
    if model.starts_with(FLAG_PREFIX) {
        let said = "names a flag, which only chats take; accepted is a model id";
        return Err(Reject::rule(said));
    }
    check_model(model)
}

/// Checks a model string that names no prompt.
pub(crate) fn check_model(model: &str) -> Result<Box<str>, Reject> {
    if model.is_empty() || model.len() > 512 || model.chars().any(char::is_control) {
        return Err(Reject::rule(
            "is empty, longer than 512 bytes or holds control characters; accepted is a model id",
        ));
    }
    Ok(model.into())
}

/// The accepted values of `model`, for the refusal of a request without one.
pub(crate) const MODEL: &str = "a model id; `GET /v1/models` lists them";
