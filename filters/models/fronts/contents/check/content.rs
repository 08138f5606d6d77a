//! `contents` and `systemInstruction`.

use super::Findings;
use super::part::part;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, string};
use crate::models::check::reject::{Reject, other};
use crate::models::fronts::contents::members::object;

/// The maximum number of contents. Source: docs/hostile-input.md 28.
const MAX_CONTENTS: usize = 100_000;

const ROLES: &str = "one of user, model, function";

/// `contents`: an array; one content alone is taken, too, as the vendor's server takes it.
pub(super) fn contents(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut count = 0;
    let mut one = |walk: &mut Walker<'_>, found: &mut Findings, at: usize| {
        if at >= MAX_CONTENTS {
            let said = format!("is one of more than {MAX_CONTENTS} contents");
            return Err(Reject::rule(said));
        }
        found.place = (at, 0);
        walk.peek()?;
        let (start, special) = (walk.at(), found.special_parts);
        let says_something = content(walk, found, true)?;
        count += usize::from(says_something);
        if found.special_parts > special {
            found.special.push(start..walk.at());
        }
        Ok(())
    };
    match walk.peek()? {
        Type::Object => one(walk, found, 0)?,
        Type::Array => _ = array(walk, |walk, at| one(walk, found, at))?,
        _ => return Err(other(walk, "an array of contents")),
    }
    found.contents = Some(count);
    Ok(())
}

/// `systemInstruction`: a content, whose role says nothing.
pub(super) fn system_instruction(
    walk: &mut Walker<'_>,
    found: &mut Findings,
) -> Result<(), Reject> {
    content(walk, found, false).map(|_| ())
}

/// `{role, parts}`. Returns whether it has parts.
fn content(walk: &mut Walker<'_>, found: &mut Findings, is_turn: bool) -> Result<bool, Reject> {
    let (mut role, mut count) = (None, 0);
    object(walk, &["role", "parts"], |walk, key| {
        if key == "role" {
            role = Some(string(walk)?.unescaped().into_owned());
            return Ok(());
        }
        count = parts(walk, found)?;
        Ok(())
    })?;
    let role = role.as_deref().unwrap_or("user");
    let is_known = matches!(role, "user" | "model" | "function" | "tool" | "");
    if is_turn && !is_known {
        let shown: String = role.chars().take(40).collect();
        let said = format!("is {shown:?}; accepted is {ROLES}");
        return Err(Reject::rule(said).within("role"));
    }
    if is_turn && count > 0 && !std::mem::replace(&mut found.has_turn, true) {
        found.needs.assistant_first = role == "model";
    }
    Ok(count > 0)
}

/// An array of parts; one part alone is taken, too.
fn parts(walk: &mut Walker<'_>, found: &mut Findings) -> Result<usize, Reject> {
    match walk.peek()? {
        Type::Object => {
            found.place.1 = 0;
            part(walk, found)?;
            Ok(1)
        }
        Type::Array => array(walk, |walk, at| {
            found.place.1 = at;
            part(walk, found)
        }),
        _ => Err(other(walk, "an array of parts")),
    }
}
