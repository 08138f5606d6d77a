//! Decisions as they are answered. Source: decision-agent 2.3, facts D, E.

use super::activate::Activated;
use super::decide::Decided;
use super::members::Members;
use super::{Compat, Profile, encode, kept};
use crate::json::Object;

/// Writes a decide result.
pub fn write_decided(
    decided: &Decided<'_>,
    user_id: &str,
    attributes: &Members<'_>,
    compat: Compat,
    out: &mut Vec<u8>,
) {
    let mut result = Object::open(out);
    let text = |key: &str, value: &str, result: &mut Object<'_>| {
        result.value(key, |out| encode::write_text(value, out));
    };
    text("variationKey", decided.variation_key, &mut result);
    result.truth("enabled", decided.is_enabled);
    text("ruleKey", decided.rule_key, &mut result);
    text("flagKey", &decided.flag_key, &mut result);
    result.object("userContext", |context| {
        text("userId", user_id, context);
        context.value("attributes", |out| encode::write_members(attributes, out));
    });
    result.array("reasons", &decided.reasons, |reason, out| {
        encode::write_text(reason, out);
    });
    write_variables(&decided.variables, compat, &mut result);
    if compat == Compat::Agent {
        result.truth("isEveryoneElseVariation", decided.is_everyone_else);
    }
    result.close();
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
    write_variables(&item.variables, compat, &mut result);
    result.truth("enabled", item.is_enabled);
    result.some_text(
        "error",
        Some(&*item.error).filter(|error| !error.is_empty()),
    );
    result.close();
}

/// Variables by key, sorted; the agents leave them out where there are none.
fn write_variables(variables: &[(&str, &str)], compat: Compat, result: &mut Object<'_>) {
    if variables.is_empty() && compat == Compat::Agent {
        return;
    }
    result.value("variables", |out| write_map(variables, out));
}

/// Variables as an object, sorted by key.
pub(super) fn write_map(variables: &[(&str, &str)], out: &mut Vec<u8>) {
    let mut sorted: Vec<&(&str, &str)> = variables.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    out.push(b'{');
    for (at, (key, json)) in sorted.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        encode::write_text(key, out);
        out.push(b':');
        out.extend_from_slice(json.as_bytes());
    }
    out.push(b'}');
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
