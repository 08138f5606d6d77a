//! Histories with state under seals, written with the names of its makers.

use filters::models::dialects::Dialect;
use filters::models::dialects::state::{Maker, States};
use serde_json::Value;

/// Puts the seals of `maker` where a history names one: in `model` beside the state of the gateway's own formats, in `origin`
/// beside all else.
pub(crate) fn seal(history: &mut Value) {
    match history {
        Value::Array(items) => items.iter_mut().for_each(seal),
        Value::Object(members) => {
            let is_ours = members.contains_key("format");
            let is_item = members
                .get("type")
                .and_then(Value::as_str)
                .is_some_and(|kind| kind.starts_with("reasoning."));
            let named = match is_ours && is_item {
                true => members.shift_remove("model"),
                false => members.shift_remove("origin"),
            };
            let format = members.get("format").and_then(Value::as_str);
            let dialect = format.and_then(Dialect::find_format);
            let dialect = dialect.unwrap_or(Dialect::Chat);
            if let Some(name) = named.as_ref().and_then(Value::as_str) {
                let maker = Maker::from_name(States::NONE, name);
                let states = ["data", "signature", "thought_signature"];
                let mut is_sealed = false;
                for (key, value) in members.iter_mut() {
                    if let Value::String(state) = value
                        && states.contains(&key.as_str())
                        && !state.is_empty()
                    {
                        *state = maker.seal(dialect, state);
                        is_sealed = true;
                    }
                }
                if !(is_sealed || is_ours && is_item) {
                    let maker = if is_item { maker } else { maker.any_model() };
                    members.insert("origin".to_owned(), maker.seal(dialect, "").into());
                }
            }
            members.values_mut().for_each(seal);
        }
        _ => {}
    }
}
