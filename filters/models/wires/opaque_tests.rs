#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use crate::models::dialects::Dialect;
use crate::models::dialects::state::{Maker, States};
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::wires::quirks::ReasoningReplay;
use crate::models::wires::tests::replay;
use crate::models::wires::{Quirks, Target, WireKind};

/// State that no other text holds.
const STATE: &str = "gAAAB+/=\u{e9}\"=";

const WIRES: [WireKind; 4] = [
    WireKind::Compatible,
    WireKind::Responses,
    WireKind::Messages,
    WireKind::Contents,
];

fn quirks() -> Quirks {
    Quirks {
        reasoning_replay: ReasoningReplay::ReasoningDetails,
        ..Quirks::default()
    }
}

fn target<'a>(origin: &'a str, quirks: &'a Quirks) -> Target<'a> {
    let (provider, model) = origin.split_once('/').unwrap();
    Target::plain(provider, model, quirks)
}

/// What a provider of this wire says in a reply: its state, and the text "Hi".
fn reply(wire: WireKind) -> Value {
    match wire {
        WireKind::Compatible => {
            json!({"id": "c", "created": 5, "choices": [{"index": 0, "finish_reason": "stop", "message": {
            "role": "assistant", "content": "Hi", "reasoning": "hm",
            "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0, "format": "x"}, {"type": "reasoning.encrypted", "data": STATE, "id": null}]}}]})
        }
        WireKind::Responses => json!({"status": "completed", "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": STATE},
            {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}]}),
        WireKind::Messages => {
            json!({"type": "message", "id": "msg_1", "stop_reason": "end_turn", "content": [
            {"type": "thinking", "thinking": "hm", "signature": STATE}, {"type": "redacted_thinking", "data": STATE}, {"type": "text", "text": "Hi"}]})
        }
        WireKind::Contents => {
            json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": "hm", "thought": true}, {"text": "Hi", "thoughtSignature": STATE}]}}]})
        }
        other => unreachable!("{other:?} has no chats"),
    }
}

/// The message that the client gets of a provider of this wire.
fn said(wire: WireKind, provider: &str) -> Value {
    let quirks = quirks();
    let answer = replay::whole(wire.wire(), &target(provider, &quirks), &reply(wire)).unwrap();
    answer["choices"][0]["message"].clone()
}

/// What a provider of this wire gets of it in the next turn.
fn sent(wire: WireKind, provider: &str, message: &Value, quirks: &Quirks) -> Value {
    let user = |text: &str| json!({"role": "user", "content": text});
    let request = json!({"model": "m", "messages": [user("Hello"), message, user("Go on")]});
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let body = wire
        .wire()
        .encode(&request, &target(provider, quirks))
        .unwrap();
    serde_json::from_slice(&body.concat()).unwrap()
}

/// Counts the values of a tree that are the state under a seal of `maker/m`.
fn sealed(tree: &Value) -> usize {
    match tree {
        Value::String(text) => {
            let maker = Maker::from_name(States::NONE, "maker/m");
            let is_state = |dialect| maker.open(dialect, text).as_deref() == Some(STATE);
            let dialects = [
                Dialect::Chat,
                Dialect::Messages,
                Dialect::Responses,
                Dialect::Contents,
            ];
            usize::from(dialects.into_iter().any(is_state))
        }
        Value::Array(items) => items.iter().map(sealed).sum(),
        Value::Object(members) => members.values().map(sealed).sum(),
        _ => 0,
    }
}

/// Counts the values of a tree that are the bare state.
fn states(tree: &Value) -> usize {
    match tree {
        Value::String(text) => usize::from(text.contains(STATE)),
        Value::Array(items) => items.iter().map(states).sum(),
        Value::Object(members) => members.values().map(states).sum(),
        _ => 0,
    }
}

/// Contract: model-gateway 2.2 reasoning_details
#[test]
fn state_goes_back_to_the_provider_that_made_it_and_to_no_other() {
    for maker in WIRES {
        let message = said(maker, "maker/m");
        let made = states(&reply(maker));
        assert_eq!(states(&message), 0, "{maker:?} hands out none that is bare");
        assert_eq!(sealed(&message), made, "{maker:?} hands it out");
        for taker in WIRES {
            for provider in ["maker/m", "other/m", "maker/n"] {
                let body = sent(taker, provider, &message, &quirks());
                let goes_back = maker == taker && provider == "maker/m";
                let expected = if goes_back { made } else { 0 };
                assert_eq!(
                    states(&body),
                    expected,
                    "{maker:?} to {taker:?} at {provider}: {body}"
                );
                assert!(body.to_string().contains("Hi"), "the text goes to all");
            }
        }
    }
}

#[test]
fn state_goes_back_in_the_shape_in_which_it_came() {
    let back = |wire: WireKind| sent(wire, "maker/m", &said(wire, "maker/m"), &quirks());
    let came = reply(WireKind::Compatible)["choices"][0]["message"]["reasoning_details"].clone();
    let message = &back(WireKind::Compatible)["messages"][1];
    assert_eq!(message["reasoning_details"].to_string(), came.to_string());
    assert!(
        message.get("reasoning").is_none(),
        "it would say the same twice"
    );
    let came = reply(WireKind::Responses)["output"][0].clone();
    assert_eq!(back(WireKind::Responses)["input"][1], came);
    let came = reply(WireKind::Messages)["content"].clone();
    assert_eq!(back(WireKind::Messages)["messages"][1]["content"], came);
    let part = &back(WireKind::Contents)["contents"][1]["parts"][0];
    assert_eq!(*part, json!({"text": "Hi", "thoughtSignature": STATE}));
}

#[test]
fn a_provider_that_takes_no_details_hands_them_out_as_they_came_and_gets_none() {
    let plain = Quirks::default();
    let whole = reply(WireKind::Compatible);
    let answer = replay::whole(
        WireKind::Compatible.wire(),
        &target("maker/m", &plain),
        &whole,
    )
    .unwrap();
    let message = &answer["choices"][0]["message"];
    assert_eq!(
        message["reasoning_details"],
        whole["choices"][0]["message"]["reasoning_details"]
    );
    let body = sent(
        WireKind::Compatible,
        "maker/m",
        &said(WireKind::Compatible, "maker/m"),
        &plain,
    );
    assert_eq!(states(&body), 0);
}

/// Contract: model-gateway 2.2 reasoning
#[test]
fn a_turn_without_details_of_this_provider_goes_back_as_text() {
    let message = json!({"role": "assistant", "content": "Hi", "reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]});
    let body = sent(WireKind::Compatible, "maker/m", &message, &quirks());
    assert_eq!(
        body["messages"][1],
        json!({"role": "assistant", "content": "Hi", "reasoning": "hm"})
    );
}

/// The state that a maker has made in a dialect, under its seal.
fn seal(dialect: Dialect, maker: &str) -> String {
    replay::seal(dialect, maker, STATE)
}

/// Contract: model-gateway 2.2 tool_calls
#[test]
fn the_signature_of_a_call_goes_back_to_its_model_and_without_a_seal_to_any() {
    let call = |google: Value| {
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
            "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": google}}]})
    };
    let quirks = quirks();
    for (google, goes_back) in [
        (
            json!({"thought_signature": seal(Dialect::Contents, "maker/m")}),
            true,
        ),
        (
            json!({"thought_signature": seal(Dialect::Contents, "maker/n")}),
            false,
        ),
        (json!({"thought_signature": STATE}), true),
    ] {
        let messages = json!([{"role": "user", "content": "Hello"}, call(google.clone()), {"role": "tool", "tool_call_id": "call_1", "content": "42"}]);
        let request = json!({"model": "m", "messages": messages});
        let request = ChatCompletions.parse(request.to_string().into()).unwrap();
        let body = WireKind::Contents
            .wire()
            .encode(&request, &target("maker/m", &quirks))
            .unwrap();
        let body: Value = serde_json::from_slice(&body.concat()).unwrap();
        assert_eq!(states(&body), usize::from(goes_back), "{google}: {body}");
    }
}

#[test]
fn a_call_hands_out_its_signature_under_the_seal_of_its_model() {
    let reply = json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": STATE}]}}]});
    let quirks = quirks();
    let answer = replay::whole(
        WireKind::Contents.wire(),
        &target("maker/m", &quirks),
        &reply,
    )
    .unwrap();
    let call = &answer["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(
        call["extra_content"],
        json!({"google": {"thought_signature": seal(Dialect::Contents, "maker/m")}})
    );
}

/// Contract: model-gateway 2.2 tool_calls
#[test]
fn what_a_provider_of_the_convention_puts_beside_a_call_or_a_message_goes_back_to_it_alone() {
    let signed = json!({"google": {"thought_signature": STATE}});
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": signed});
    let message = json!({"role": "assistant", "content": "Hi", "tool_calls": [call], "extra_content": signed});
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "finish_reason": "tool_calls", "delta": message}]});
    let whole = json!({"id": "c", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]});
    let quirks = Quirks::default();
    let maker = target("maker/m", &quirks);
    let answer = replay::whole(WireKind::Compatible.wire(), &maker, &whole).unwrap();
    let said = answer["choices"][0]["message"].clone();
    let sealed = json!({"google": {"thought_signature": seal(Dialect::Chat, "maker/m")}});
    assert_eq!(said["extra_content"], sealed);
    assert_eq!(said["tool_calls"][0]["extra_content"], sealed);
    let stream = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    let streamed = replay::fold(WireKind::Compatible.wire(), &maker, &stream, 7).unwrap();
    assert_eq!(streamed["choices"][0]["message"], said);
    let result = json!({"role": "tool", "tool_call_id": "call_1", "content": "42"});
    let messages = json!([{"role": "user", "content": "Hello"}, said, result]);
    let request = json!({"model": "m", "messages": messages});
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    for taker in WIRES {
        for provider in ["maker/m", "other/m", "maker/n"] {
            let body = taker.wire().encode(&request, &target(provider, &quirks));
            let body: Value = serde_json::from_slice(&body.unwrap().concat()).unwrap();
            let expected = match (taker, provider) {
                (WireKind::Compatible, "maker/m") => 2,
                _ => 0,
            };
            assert_eq!(states(&body), expected, "{taker:?} at {provider}: {body}");
            if expected == 2 {
                let back = &body["messages"][1];
                assert_eq!(back["extra_content"], signed);
                assert_eq!(back["tool_calls"][0]["extra_content"], signed);
            }
        }
    }
}
