//! Auto mode over every wire: hosts that do not judge are not asked to, and no verdict is made up.

use std::time::Duration;

use serde_json::{Value, json};

use super::messages::first_turn;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::every;
use crate::support::grammars::messages::{events, fold};
use crate::support::scripted::{self, MODELS, Turn};
use crate::support::upstream::Upstream;

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

/// A provider whose models call `read` where the user asks for it, and whose judge says this.
fn judged_by(said: &'static str) -> Upstream {
    scripted::saying(move |asked| match &asked.body {
        body if body["model"] == "up-judge" => Turn::text(said).into(),
        _ if asked.holds("Call") => Turn {
            text: Some("Let me.".to_owned()),
            ..Turn::call("read", json!({"path": "a"}))
        }
        .into(),
        _ => Turn::text("Done.").into(),
    })
}

fn asking(model: &str, is_stream: bool, prompt: &str) -> Value {
    let mut asked = first_turn(model);
    asked["stream"] = is_stream.into();
    asked["messages"] = json!([{"role": "user", "content": prompt}]);
    asked["safeguards"] = json!([{"type": "dangerous_tool_use", "classifier_context": {"rules": {"deny": ["NEVER-THIS"]}}}]);
    asked
}

/// The status of the only call of an answer.
fn verdict(told: &Value) -> Value {
    let call = told["content"].as_array().unwrap().last().unwrap();
    assert_eq!(call["type"], "tool_use", "{told}");
    let results = told["safeguard_results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "{told}");
    let uses = results[0]["status"]["tool_uses"].as_object().unwrap();
    assert_eq!(uses.len(), 1, "{told}");
    uses[call["id"].as_str().unwrap()].clone()
}

#[test]
fn the_operators_judge_says_what_no_host_does_on_every_wire() {
    // The ids of calls are the scripted provider's.
    let provider = scripted::saying(|asked| {
        if asked.body["model"] == "up-judge" {
            let question: Value = serde_json::from_str(&asked.last_text()).unwrap();
            assert_eq!(question["context"]["rules"]["deny"][0], "NEVER-THIS");
            assert_eq!(question["user"], json!(["Call"]));
            let call = &question["calls"][0];
            assert_eq!(
                (&call["name"], &call["input"]),
                (&json!("read"), &json!({"path": "a"}))
            );
            let verdicts = json!({"verdicts": [{"id": call["id"], "outcome": "flagged", "explanation": "Reads a."}]});
            return Turn::text(format!("```json\n{verdicts}\n```")).into();
        }
        match asked.holds("Call") {
            true => Turn::call("read", json!({"path": "a"})).into(),
            false => Turn::text("Done.").into(),
        }
    });
    let gateway = scripted::gateway_with_judge(&provider, "judge");
    for model in MODELS {
        for is_stream in [false, true] {
            let before = provider.requests().len();
            let told = message(&gateway, &asking(model, is_stream, "Call"));
            let expected =
                json!({"type": "evaluated", "outcome": "flagged", "explanation": "Reads a."});
            assert_eq!(verdict(&told), expected, "{model}, {is_stream}: {told}");
            assert_eq!(told["stop_reason"], "tool_use");
            assert_eq!(provider.requests().len() - before, 2);
            // The judge's tokens are none of the answer's, its cost is one of the call: nine tokens at 100 USD a million.
            assert_eq!(told["usage"]["input_tokens"], 9, "{told}");
            let told = message(&gateway, &asking(model, is_stream, "Talk"));
            assert_eq!(told.get("safeguard_results"), None);
            assert_eq!(provider.requests().len() - before, 3, "nothing to judge");
        }
    }
    let spent = || {
        let credit = gateway.beside(async |store| store.credit("acme").await.unwrap());
        credit.used.to_string().parse::<f64>().unwrap()
    };
    let mut seen = every(Duration::from_millis(50), Duration::from_secs(5)).map(|_| spent());
    assert!(seen.any(|spent| spent >= 8.0 * 9.0 * 100e-6), "{}", spent());
}

#[test]
fn a_judge_that_says_nothing_leaves_calls_without_a_verdict() {
    for (judge, said) in [
        ("judge", "It is fine."),
        ("judge", "{\"verdicts\":[]}"),
        ("gone", ""),
    ] {
        let provider = judged_by(said);
        let gateway = scripted::gateway_with_judge(&provider, judge);
        for is_stream in [false, true] {
            let told = message(&gateway, &asking("chat", is_stream, "Call"));
            assert_eq!(
                verdict(&told),
                json!({"type": "unavailable", "reason": "error"}),
                "{told}"
            );
            assert_eq!(told["content"][0]["text"], "Let me.");
        }
    }
}

/// Who does not ask, and the clients of hosts that judge, get answers as without a judge.
#[test]
fn a_judge_is_asked_only_where_it_has_to_be() {
    let provider = judged_by("{}");
    let gateway = scripted::gateway_with_judge(&provider, "judge");
    let mut asked = asking("chat", true, "Call");
    asked.as_object_mut().unwrap().remove("safeguards");
    message(&gateway, &asked);
    assert_eq!(provider.requests().len(), 1);
}
