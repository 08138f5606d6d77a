//! Members of a request that another host than the vendor's refuses, as it takes them. Source: docs/facts/clouds.md 1.2.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::json::members::{find_text, with_member, without};
use crate::json::{Error, Type, Walker, quoted};
use crate::models::wires::BodyForm;

/// Bytes of a hash that stand for a user.
const HASH_BYTES: usize = 16;

/// Returns the name that stands for a user: the same for the same user, and of letters and digits alone.
pub(super) fn hashed(user: &str) -> String {
    let mut name = String::with_capacity(2 * HASH_BYTES);
    for byte in Sha256::digest(user).iter().take(HASH_BYTES) {
        _ = write!(name, "{byte:02x}");
    }
    name
}

/// What becomes of a member.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Member {
    /// It stays as it came.
    Same,
    /// This JSON takes its place.
    Changed(String),
    /// Nothing is left of it.
    Gone,
}

/// Returns what becomes of a member of a request.
///
/// Cost: one pass over `metadata`, `output_config` and `tools` where the host deviates, else nothing. Errors: broken JSON.
pub(super) fn member(key: &str, value: &str, body: BodyForm) -> Result<Member, Error> {
    match key {
        "metadata" if body.hashes_users => Ok(match find_text(value, "user_id") {
            Some(user) => Member::Changed(with_member(value, "user_id", &quoted(&hashed(&user)))?),
            None => Member::Same,
        }),
        "output_config" if body.refuses_forms => leave_out(value, "format"),
        "tools" if body.refuses_forms => without_strict(value),
        _ => Ok(Member::Same),
    }
}

/// Leaves a member out of an object. What is none stays.
fn leave_out(json: &str, key: &str) -> Result<Member, Error> {
    if Walker::over(json).peek()? != Type::Object {
        return Ok(Member::Same);
    }
    Ok(match without(json, key)? {
        (_, None) => Member::Same,
        (rest, _) if rest == "{}" => Member::Gone,
        (rest, _) => Member::Changed(rest),
    })
}

fn without_strict(tools: &str) -> Result<Member, Error> {
    let mut walk = Walker::over(tools);
    if walk.peek()? != Type::Array {
        return Ok(Member::Same);
    }
    let (mut out, mut has_changed) = (String::with_capacity(tools.len()), false);
    out.push('[');
    walk.array(|walk, at| {
        if at > 0 {
            out.push(',');
        }
        let tool = walk.skip()?;
        match leave_out(tool, "strict")? {
            Member::Changed(tool) => {
                has_changed = true;
                out.push_str(&tool);
            }
            _ => out.push_str(tool),
        }
        Ok::<(), Error>(())
    })?;
    out.push(']');
    Ok(match has_changed {
        true => Member::Changed(out),
        false => Member::Same,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const STRICT_HOST: BodyForm = BodyForm {
        hashes_users: true,
        refuses_forms: true,
        ..BodyForm::OF_WIRE
    };

    #[test]
    fn what_a_host_refuses_is_left_out_and_users_are_hashed() {
        let hash = hashed("{\"a\":1}");
        assert!(hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let user = format!("{{\"user_id\":\"{hash}\",\"x\":[1]}}");
        for (key, value, expected) in [
            (
                "metadata",
                r#"{"user_id":"{\"a\":1}","x":[1]}"#,
                Member::Changed(user),
            ),
            ("metadata", r#"{"x":1}"#, Member::Same),
            ("metadata", r#"{"user_id":null}"#, Member::Same),
            (
                "output_config",
                r#"{"format":{"type":"json_schema"}}"#,
                Member::Gone,
            ),
            (
                "output_config",
                r#"{"effort":"low","format":{}, "a\"":2}"#,
                Member::Changed(r#"{"effort":"low","a\"":2}"#.to_owned()),
            ),
            ("output_config", r#"{"effort":"low"}"#, Member::Same),
            ("output_config", "null", Member::Same),
            (
                "tools",
                r#"[{"name":"a","strict":true},{"name":"b"}, 1]"#,
                Member::Changed(r#"[{"name":"a"},{"name":"b"},1]"#.to_owned()),
            ),
            ("tools", r#"[{"name":"b"}]"#, Member::Same),
            ("tools", "null", Member::Same),
            ("system", r#"{"strict":true}"#, Member::Same),
        ] {
            assert_eq!(
                member(key, value, STRICT_HOST).unwrap(),
                expected,
                "{value}"
            );
            assert_eq!(member(key, value, BodyForm::OF_WIRE).unwrap(), Member::Same);
        }
    }
}
