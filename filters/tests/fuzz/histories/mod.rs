//! Histories of conversations: on every wire they are a request that its schema allows, or a 400 that names the message.

mod cohere;
mod conversation;
mod converse;
mod schema;

use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::request::ModelRequest;
use filters::models::routing::capable;
use filters::models::routing::catalog::Mapping;
use filters::models::wires::{Quirks, Target, WireKind};
use serde_json::{Value, json};

use self::conversation::Conversation;
use crate::choices::Choices;
use crate::models::{WIRES, in_memory, target};
use crate::{run::run, seals};

/// What a wire sends upstream. Errors: the parameter that the 400 names.
fn sent(kind: WireKind, request: &ModelRequest, auto_cache: Option<u64>) -> Result<Value, String> {
    let wire = kind.wire();
    let quirks = Quirks {
        strict_messages: true,
        ..Quirks::default()
    };
    let mapping = Mapping {
        parameters: wire.defaults().parameters,
        ..Mapping::default()
    };
    let codec = wire.codec(request.payload.operation()).unwrap();
    if let Err(lack) = capable::check(request, &mapping, Some(&codec.limits())) {
        return Err(lack.param.into_owned());
    }
    let target = Target {
        parameters: &mapping.parameters,
        auto_cache,
        ..target(&quirks)
    };
    match codec.encode(request, &target) {
        Ok(slices) => Ok(serde_json::from_slice(&in_memory(slices)).unwrap()),
        Err(fault) => {
            assert_eq!(fault.status(), 400, "{fault:?}");
            Err(fault.param.unwrap_or_default())
        }
    }
}

/// Takes the marks out of a body that another one does not have.
fn without_marks(mut body: Value, plain: &Value) -> Value {
    match (&mut body, plain) {
        (Value::Object(members), Value::Object(known)) => {
            members.retain(|key, _| key != "cache_control" || known.contains_key(key));
            for (key, member) in members.iter_mut() {
                *member = without_marks(member.take(), &known[key]);
            }
        }
        (Value::Array(items), Value::Array(known)) => {
            let is_point = |item: &Value| item.get("cachePoint").is_some();
            if !known.iter().any(is_point) {
                items.retain(|item| !is_point(item));
            }
            for (item, known) in items.iter_mut().zip(known) {
                *item = without_marks(item.take(), known);
            }
        }
        _ => {}
    }
    body
}

fn read(messages: &Value) -> Result<ModelRequest, String> {
    let mut body = json!({"model": "m", "messages": messages});
    seals::seal(&mut body["messages"]);
    let body = body.to_string();
    ChatCompletions.parse(body.into()).map_err(|fault| {
        assert_eq!(fault.status(), 400, "{fault:?}");
        fault.param.unwrap_or_default()
    })
}

fn check(kind: WireKind, messages: &Value) -> Result<(), String> {
    let request = read(messages)?;
    let body = sent(kind, &request, None)?;
    let marked = sent(kind, &request, Some(1))?;
    for body in [&body, &marked] {
        if let Err(wrong) = schema::check(kind, body) {
            panic!("{kind:?}: {wrong}\nfrom {messages}\nmade {body}");
        }
    }
    if request.needs.cache_control {
        assert_eq!(body, marked, "marks beside those of {messages}");
    }
    assert_eq!(body, without_marks(marked, &body), "{messages}");
    Ok(())
}

#[test]
fn a_history_that_keeps_the_rules_is_said_on_every_wire() {
    run("histories: whole ones", |choices| {
        let history = Conversation::compose(choices).into_messages();
        for kind in WIRES {
            let has_files = history.to_string().contains("\"file_data\"");
            if kind == WireKind::Cohere && has_files {
                continue;
            }
            if let Err(param) = check(kind, &history) {
                panic!("{kind:?} refuses {param} of {history}");
            }
        }
    });
}

#[test]
fn any_history_is_a_valid_request_or_a_400_that_names_the_message() {
    let counted = std::cell::Cell::new((0_u32, 0_u32));
    run("histories: any", |choices| {
        let mut history = Conversation::compose(choices).into_messages();
        for _ in 0..=choices.below(3) {
            damage(choices, &mut history);
        }
        for kind in WIRES {
            let (all, good) = counted.get();
            counted.set((all + 1, good));
            match check(kind, &history) {
                Ok(()) => counted.set((all + 1, good + 1)),
                Err(param) => assert!(
                    param.starts_with("messages"),
                    "{kind:?} names {param} of {history}"
                ),
            }
        }
    });
    let (all, good) = counted.get();
    assert!(good * 4 > all && good < all, "{good} of {all} pass");
}

/// Breaks a rule: a message is lost, doubled, moved, or of another role, or it says nothing.
fn damage(choices: &mut Choices<'_>, history: &mut Value) {
    let messages = history.as_array_mut().unwrap();
    let at = choices.below(messages.len());
    let Some(message) = messages.get(at).cloned() else {
        return;
    };
    match choices.below(6) {
        0 => drop(messages.remove(at)),
        1 => messages.insert(at, message),
        2 => messages.swap(at, 0),
        3 => {
            messages[at]["role"] = (*choices.pick(&[
                "user",
                "assistant",
                "tool",
                "system",
                "developer",
                "function",
            ]))
            .into()
        }
        4 => {
            messages[at]["content"] = choices
                .pick(&[
                    json!(null),
                    json!(""),
                    json!(" "),
                    json!([]),
                    json!([{"type": "text", "text": ""}]),
                ])
                .clone()
        }
        _ if message["role"] == "tool" => messages[at]["tool_call_id"] = "call_elsewhere".into(),
        _ => messages[at]["tool_calls"] = json!([]),
    }
}

#[test]
fn what_a_wire_has_said_goes_back_to_it_and_to_all_others() {
    // The state of each wire in one turn: a wire sends its own, and none of another's.
    let details = json!([
        {"type": "reasoning.encrypted", "format": "openai-responses-v1", "model": "here/upstream-model", "index": 0, "data": "STATE-items"},
        {"type": "reasoning.text", "format": "anthropic-claude-v1", "model": "here/upstream-model", "text": "hm", "signature": "STATE-blocks"},
        {"type": "reasoning.encrypted", "format": "google-gemini-v1", "model": "here/upstream-model", "data": "STATE-parts"}]);
    let messages = json!([{"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello", "reasoning_details": details}, {"role": "user", "content": "Go on"}]);
    let request = read(&messages).unwrap();
    for (kind, own) in [
        (WireKind::Compatible, None),
        (WireKind::Responses, Some("STATE-items")),
        (WireKind::Messages, Some("STATE-blocks")),
        (WireKind::Contents, Some("STATE-parts")),
        (WireKind::Converse, Some("STATE-blocks")),
        (WireKind::Cohere, None),
    ] {
        let body = sent(kind, &request, None).unwrap();
        schema::check(kind, &body).unwrap();
        let text = body.to_string();
        for state in ["STATE-items", "STATE-blocks", "STATE-parts"] {
            assert_eq!(text.contains(state), own == Some(state), "{kind:?}: {text}");
        }
    }
}
