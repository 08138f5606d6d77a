//! Pings of Messages over every wire, while a provider is silent.

use std::time::Duration;

use serde_json::json;

use super::messages::{first_turn, send};
use crate::support::grammars::messages::{StreamEnd, events, fold};
use crate::support::scripted::{self, MODELS, Turn};

/// A provider is silent before its first byte, within an event and between two, each time for longer than clients are left without
/// a sign.
#[test]
fn pings_stand_between_events_wherever_a_provider_is_silent() {
    let provider = scripted::saying(|asked| {
        let silence = asked.holds("Slowly").then_some(Duration::from_millis(1600));
        let turn =
            Turn::text("Let me look at it, one by one.").and_call("read", json!({"path": "a"}));
        Turn { silence, ..turn }.into()
    });
    let gateway = scripted::gateway_with(&provider, "[routing]\nkeepalive_s = 1", "", "1");
    let told = |model: &str, prompt: &str| {
        let mut asked = first_turn(model);
        asked["stream"] = true.into();
        asked["messages"] = json!([{"role": "user", "content": prompt}]);
        let answer = send(&gateway, &asked);
        let text = answer.text().to_owned();
        let events = events(&text).unwrap();
        let names: Vec<String> = events.iter().map(|(name, _)| (*name).to_owned()).collect();
        let input = |text: &str| serde_json::from_str(text).unwrap();
        let folded = fold(events.into_iter(), input).unwrap();
        assert_eq!(folded.end, StreamEnd::Whole, "{model}: {text}");
        (names, folded.message["content"].clone())
    };
    let check = |model: &str| {
        let (names, content) = told(model, "Slowly");
        let pings = |names: &[String]| names.iter().filter(|name| *name == "ping").count();
        let begun = names.iter().position(|name| name == "message_start");
        let (before, behind) = names.split_at(begun.unwrap());
        assert!(pings(before) >= 1, "{model}: {names:?}");
        assert!(pings(behind) >= 2, "{model}: {names:?}");
        let (plain, expected) = told(model, "Quickly");
        assert_eq!(pings(&plain), 0, "{model}: {plain:?}");
        let said: Vec<&String> = names.iter().filter(|name| *name != "ping").collect();
        assert_eq!(said, plain.iter().collect::<Vec<_>>(), "{model}");
        assert_eq!(content, expected, "{model}");
    };
    std::thread::scope(|scope| {
        for model in MODELS {
            scope.spawn(move || check(model));
        }
    });
}
