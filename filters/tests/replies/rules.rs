//! What a client's answer has to keep, whoever made it: docs/facts/wire-formats.md 9.

use std::collections::BTreeMap;

use filters::sse::{EventReader, SseEvent, TooLong};
use serde_json::{Value, json};

/// Reads a client's stream and checks R1 to R4 and R8. Returns it folded into choices and usage, to be compared.
pub(crate) fn read_stream(name: &str, bytes: &[u8]) -> Value {
    let mut events = Vec::new();
    let mut reader = EventReader::default();
    let mut take = |event: SseEvent<'_>| {
        events.push(String::from_utf8(event.data.to_vec()).unwrap());
        Ok::<(), TooLong>(())
    };
    reader.feed(bytes, &mut take).unwrap();
    reader.finish(&mut take).unwrap();
    assert_eq!(events.pop().as_deref(), Some("[DONE]"), "{name}: the end");
    let chunks: Vec<Value> = events
        .iter()
        .map(|event| serde_json::from_str(event).unwrap())
        .collect();
    let mut fold = Fold::default();
    for chunk in &chunks {
        fold.chunk(name, chunk);
    }
    fold.finish(name)
}

/// Reads a client's whole answer and checks R2, R3 and R8.
pub(crate) fn read_whole(name: &str, bytes: &[u8]) -> Value {
    let answer: Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(answer["object"], "chat.completion", "{name}");
    let choices = answer["choices"].as_array().unwrap();
    let choices: Vec<Value> = choices
        .iter()
        .map(|choice| {
            let message = &choice["message"];
            assert_eq!(message["role"], "assistant", "{name}");
            let calls: Vec<Value> = message["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .cloned()
                .collect();
            let finish = choice["finish_reason"].as_str().unwrap();
            check_calls(name, &calls, finish);
            said(
                message["content"].as_str().unwrap_or_default(),
                message["reasoning"].as_str().unwrap_or_default(),
                &calls,
                finish,
            )
        })
        .collect();
    check_usage(name, &answer["usage"]);
    json!({"choices": choices, "usage": answer["usage"]})
}

fn said(content: &str, reasoning: &str, calls: &[Value], finish: &str) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|call| json!({"id": call["id"], "function": call["function"]}))
        .collect();
    json!({"content": content, "reasoning": reasoning, "calls": calls, "finish": finish})
}

#[derive(Default)]
struct Fold {
    identity: Option<Value>,
    choices: BTreeMap<u64, Choice>,
    usage: Option<Value>,
}

#[derive(Default)]
struct Choice {
    has_role: bool,
    content: String,
    reasoning: String,
    calls: Vec<Value>,
    finish: Option<String>,
}

impl Fold {
    fn chunk(&mut self, name: &str, chunk: &Value) {
        // R1: one identity.
        let identity = json!([
            chunk["id"],
            chunk["object"],
            chunk["created"],
            chunk["model"]
        ]);
        assert_eq!(chunk["object"], "chat.completion.chunk", "{name}");
        let first = self.identity.get_or_insert_with(|| identity.clone());
        assert_eq!(*first, identity, "{name}: another identity");
        if let Some(usage) = chunk.get("usage").filter(|usage| !usage.is_null()) {
            // R4: at most one report, behind every finish.
            assert!(self.usage.is_none(), "{name}: usage twice");
            assert!(
                self.choices.values().all(|choice| choice.finish.is_some()),
                "{name}: usage before the finish"
            );
            self.usage = Some(usage.clone());
            let deltas = chunk["choices"].as_array().unwrap();
            assert!(deltas.iter().all(|choice| choice["delta"] == json!({}) && choice["finish_reason"].is_null()), "{name}: {chunk}");
            return;
        }
        for piece in chunk["choices"].as_array().unwrap() {
            let index = piece["index"].as_u64().unwrap();
            self.choices.entry(index).or_default().piece(name, piece);
        }
    }

    fn finish(self, name: &str) -> Value {
        let choices: Vec<Value> = self
            .choices
            .into_values()
            .map(|choice| {
                let finish = choice.finish.unwrap_or_else(|| panic!("{name}: no finish"));
                check_calls(name, &choice.calls, &finish);
                said(&choice.content, &choice.reasoning, &choice.calls, &finish)
            })
            .collect();
        let usage = self.usage.unwrap_or_else(|| panic!("{name}: no usage"));
        check_usage(name, &usage);
        json!({"choices": choices, "usage": usage})
    }
}

impl Choice {
    fn piece(&mut self, name: &str, piece: &Value) {
        // R1: the role once and first, one finish, nothing behind it.
        assert!(self.finish.is_none(), "{name}: behind the finish: {piece}");
        let delta = &piece["delta"];
        assert_eq!(
            delta.get("role").is_some(),
            !self.has_role,
            "{name}: the role: {piece}"
        );
        self.has_role = true;
        self.content += delta["content"].as_str().unwrap_or_default();
        self.reasoning += delta["reasoning"].as_str().unwrap_or_default();
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(name, call);
        }
        self.finish = piece["finish_reason"].as_str().map(str::to_owned);
    }

    /// R2: dense indexes; the first piece has everything, the others only arguments.
    fn call(&mut self, name: &str, piece: &Value) {
        let index = piece["index"].as_u64().unwrap() as usize;
        assert!(index <= self.calls.len(), "{name}: a gap: {piece}");
        if index == self.calls.len() {
            assert!(
                piece["id"].is_string()
                    && piece["type"] == "function"
                    && piece["function"]["name"].is_string(),
                "{name}: {piece}"
            );
            self.calls.push(json!({"id": piece["id"], "function": {"name": piece["function"]["name"], "arguments": ""}}));
        } else {
            assert!(
                piece.get("id").is_none() && piece["function"].get("name").is_none(),
                "{name}: {piece}"
            );
        }
        let more = piece["function"]["arguments"].as_str().unwrap_or_default();
        let whole = self.calls[index]["function"]["arguments"]
            .as_str()
            .unwrap()
            .to_owned()
            + more;
        self.calls[index]["function"]["arguments"] = whole.into();
    }
}

fn check_calls(name: &str, calls: &[Value], finish: &str) {
    // R3: calls were made, if that is why it ended.
    assert!(
        finish != "tool_calls" || !calls.is_empty(),
        "{name}: no calls"
    );
    let mut ids: Vec<&str> = calls
        .iter()
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), calls.len(), "{name}: an id twice");
    for call in calls {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let parsed = serde_json::from_str::<Value>(arguments);
        assert!(
            finish != "tool_calls" || parsed.is_ok_and(|parsed| parsed.is_object()),
            "{name}: {arguments}"
        );
    }
}

/// R8: the counts fit together. R9: what was not reported says that it is an estimate.
fn check_usage(name: &str, usage: &Value) {
    let count = |pointer: &str| {
        usage
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    };
    let (prompt, completion) = (count("/prompt_tokens"), count("/completion_tokens"));
    assert_eq!(
        count("/total_tokens"),
        prompt + completion,
        "{name}: {usage}"
    );
    let cached = count("/prompt_tokens_details/cached_tokens")
        + count("/prompt_tokens_details/cache_write_tokens");
    assert!(prompt >= cached, "{name}: {usage}");
    assert!(
        completion >= count("/completion_tokens_details/reasoning_tokens"),
        "{name}: {usage}"
    );
    assert!(prompt > 0 && completion > 0, "{name}: {usage}");
}
