//! Decisions as they are answered. Source: decision-agent 2.3, facts D, E.

use super::activate::Activated;
use super::decide::Decided;
use super::members::Members;
use super::{Compat, Profile, encode, kept};
use crate::json::{Object, write_escaped};

/// Writes a decide result. Cost: what always stands between two values is copied as one piece.
pub fn write_decided(
    decided: &Decided<'_>,
    user_id: &str,
    attributes: &Members<'_>,
    compat: Compat,
    out: &mut Vec<u8>,
) {
    let text = |before: &str, value: &str, out: &mut Vec<u8>| {
        out.extend_from_slice(before.as_bytes());
        write_escaped(value, out);
    };
    let truth = |is_so: bool| if is_so { "true" } else { "false" };
    text(r#"{"variationKey":""#, decided.variation_key, out);
    out.extend_from_slice(br#"","enabled":"#);
    out.extend_from_slice(truth(decided.is_enabled).as_bytes());
    text(r#","ruleKey":""#, decided.rule_key, out);
    text(r#"","flagKey":""#, &decided.flag_key, out);
    text(r#"","userContext":{"userId":""#, user_id, out);
    out.extend_from_slice(br#"","attributes":"#);
    encode::write_members(attributes, out);
    out.extend_from_slice(br#"},"reasons":["#);
    for (at, reason) in decided.reasons.iter().enumerate() {
        text(if at > 0 { ",\"" } else { "\"" }, reason, out);
        out.push(b'"');
    }
    out.push(b']');
    if has_variables(&decided.variables, compat) {
        out.extend_from_slice(br#","variables":"#);
        write_map(&decided.variables, out);
    }
    if compat == Compat::Agent {
        out.extend_from_slice(br#","isEveryoneElseVariation":"#);
        out.extend_from_slice(truth(decided.is_everyone_else).as_bytes());
    }
    out.push(b'}');
}

/// Writes an item of what activate answers.
pub fn write_activated(item: &Activated<'_>, user_id: &str, compat: Compat, out: &mut Vec<u8>) {
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
    if has_variables(&item.variables, compat) {
        result.value("variables", |out| write_map(&item.variables, out));
    }
    result.truth("enabled", item.is_enabled);
    result.some_text(
        "error",
        Some(&*item.error).filter(|error| !error.is_empty()),
    );
    result.close();
}

/// The agents leave variables out where there are none.
fn has_variables(variables: &[(&str, &str)], compat: Compat) -> bool {
    !variables.is_empty() || compat == Compat::Document
}

/// Variables as an object, sorted by key.
pub(super) fn write_map(variables: &[(&str, &str)], out: &mut Vec<u8>) {
    let variables = variables.iter().map(|(key, json)| (*key, json));
    let write = |json: &&str, out: &mut Vec<u8>| out.extend_from_slice(json.as_bytes());
    encode::write_sorted(variables, write, out);
}

/// A profile as lookup answers it.
pub fn profile(user_id: &str, profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    let mut result = Object::open(&mut out);
    result.text("userId", user_id);
    result.value("experimentBucketMap", |out| kept::write(profile, out));
    result.close();
    out
}
