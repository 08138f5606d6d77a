//! A profile as JSON, in responses and in Redis.
//!
//! Shape: `{"EXPERIMENT ID": {"variation_id": "ID"}}`. Source: docs/facts/decision-engine.md E, wire of profiles.

use serde_json::{Map, Value};

use super::inputs::Profile;
use crate::json::{Object, Str};

/// Writes a profile.
pub fn write(profile: &Profile, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, (experiment, variation)) in profile.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        Str::Plain(experiment).write(out);
        out.push(b':');
        let mut decision = Object::open(out);
        decision.text("variation_id", variation);
        decision.close();
    }
    out.push(b'}');
}

/// Reads a profile. Members of another shape are skipped.
pub fn read(text: &[u8]) -> Profile {
    let read: Map<String, Value> = serde_json::from_slice(text).unwrap_or_default();
    let decisions = read.into_iter().filter_map(|(experiment, decision)| {
        let variation = decision.get("variation_id")?.as_str()?;
        Some((experiment.into(), variation.into()))
    });
    decisions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_as_it_was_written() {
        let profile = Profile::from([("401".into(), "6\"02".into()), ("4".into(), "5".into())]);
        let mut text = Vec::new();
        write(&profile, &mut text);
        assert_eq!(read(&text), profile);
    }

    #[test]
    fn what_is_no_profile_is_an_empty_one() {
        for text in ["", "[]", "{", r#"{"a":1,"b":{"variation_id":2},"c":{}}"#] {
            assert_eq!(read(text.as_bytes()), Profile::new(), "{text}");
        }
    }
}
