//! Auto mode over every wire: hosts that do not judge are not asked to, and no verdict is made up.

use serde_json::{Value, json};

use super::messages::first_turn;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::grammars::messages::{events, fold};
use crate::support::scripted::{self, MODELS, Turn};

/// The message of an answer.
fn message(gateway: &Gateway, asked: &Value) -> Value {
    let asking = Ask::post("/v1/messages?beta=true", asked.to_string())
        .key(&gateway.key)
        .header("anthropic-version", "2023-06-01")
        .header(
            "anthropic-beta",
            "new-2027-01-01,dangerous-tool-use-2026-09-03",
        );
    let answer = ask(gateway.address(), &asking);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    if asked["stream"] != true {
        return answer.json();
    }
    let events = events(answer.text()).unwrap();
    let input = |text: &str| serde_json::from_str(text).unwrap();
    fold(events.into_iter(), input).unwrap().message
}

#[test]
fn who_asks_for_verdicts_hears_that_nobody_judges_and_others_hear_nothing() {
    let provider = scripted::saying(|asked| match asked.holds("Call") {
        true => Turn::call("read", json!({"path": "a"})).into(),
        false => Turn::text("Done.").into(),
    });
    let gateway = scripted::gateway(&provider);
    let safeguard = json!([{"type": "dangerous_tool_use", "classifier_context": {"v": 1}}]);
    let unjudged = json!([{"type": "dangerous_tool_use", "status": {"type": "unsupported"}}]);
    for model in MODELS {
        for is_stream in [false, true] {
            for (safeguards, prompt, expected) in [
                (Some(&safeguard), "Call", Some(&unjudged)),
                (Some(&safeguard), "Talk", None),
                (Some(&json!([{"type": "other"}])), "Call", None),
                (None, "Call", None),
            ] {
                let mut asked = first_turn(model);
                asked["stream"] = is_stream.into();
                asked["messages"] = json!([{"role": "user", "content": prompt}]);
                if let Some(safeguards) = safeguards {
                    asked["safeguards"] = safeguards.clone();
                }
                let told = message(&gateway, &asked);
                let shown = || format!("{model}, {is_stream}, {safeguards:?}, {prompt}: {told}");
                assert_eq!(told.get("safeguard_results"), expected, "{}", shown());
                let calls = told["content"].as_array().unwrap().iter();
                let has_call = calls.clone().any(|block| block["type"] == "tool_use");
                assert_eq!(has_call, prompt == "Call", "{}", shown());
                assert!(!told.to_string().contains("flagged"), "{}", shown());
                let sent = provider.requests().pop().unwrap();
                assert_eq!(sent.json().get("safeguards"), None, "{}", shown());
                let betas = sent.header("anthropic-beta");
                let expected = (model == "blocks").then_some("new-2027-01-01");
                assert_eq!(betas, expected, "{}", shown());
            }
        }
    }
}
