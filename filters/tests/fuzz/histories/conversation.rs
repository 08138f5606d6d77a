//! Conversations that keep the rules of the chat convention, at random.

use serde_json::{Value, json};

use crate::choices::Choices;

/// A conversation in the making.
#[derive(Default)]
pub struct Conversation {
    messages: Vec<Value>,
    calls: usize,
}

impl Conversation {
    /// Composes one to five rounds: a user speaks, the assistant answers, and calls are answered in any order.
    pub fn compose(choices: &mut Choices<'_>) -> Self {
        let mut conversation = Self::default();
        if choices.once_in(2) {
            let role = *choices.pick(&["system", "developer"]);
            conversation
                .messages
                .push(json!({"role": role, "content": "Be brief."}));
        }
        for _ in 0..=choices.below(5) {
            conversation.user(choices);
            while conversation.assistant(choices) {
                if choices.once_in(4) {
                    break;
                }
            }
        }
        conversation.user(choices);
        conversation
    }

    pub fn into_messages(self) -> Value {
        self.messages.into()
    }

    fn user(&mut self, choices: &mut Choices<'_>) {
        let parts = [
            json!("Hi"),
            json!([{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAE=", "detail": "low"}}]),
            json!([{"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAE="}}]),
            json!([{"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}}, {"type": "text", "text": "Read", "cache_control": {"type": "ephemeral"}}]),
            json!([{"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}, {"type": "text", "text": "b"}]),
        ];
        let mut message = json!({"role": "user", "content": choices.pick(&parts)});
        if choices.once_in(4) {
            message["name"] = "ann".into();
        }
        self.messages.push(message);
    }

    /// The assistant says something, calls functions, or both; returns whether it called.
    fn assistant(&mut self, choices: &mut Choices<'_>) -> bool {
        let count = if choices.once_in(2) {
            choices.below(4)
        } else {
            0
        };
        let content = match count {
            0 => json!(choices.pick(&["Hello", "Hello\n", " x"])),
            _ => choices
                .pick(&[json!(null), json!(""), json!("Let me see.")])
                .clone(),
        };
        let mut message = json!({"role": "assistant", "content": content});
        let calls: Vec<Value> = (0..count).map(|_| self.call(choices)).collect();
        if !calls.is_empty() {
            message["tool_calls"] = calls.clone().into();
        }
        self.state(choices, &mut message);
        self.messages.push(message);
        let mut open = calls;
        while !open.is_empty() {
            let call = open.remove(choices.below(open.len()));
            let results = [
                json!("42"),
                json!("{\"degrees\": 20}"),
                json!(""),
                json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            ];
            let mut result = json!({"role": "tool", "tool_call_id": call["id"], "content": choices.pick(&results)});
            if choices.once_in(4) {
                result["tool_result_cache_control"] = json!({"type": "ephemeral", "ttl": "5m"});
            }
            self.messages.push(result);
        }
        count > 0
    }

    fn call(&mut self, choices: &mut Choices<'_>) -> Value {
        self.calls += 1;
        let number = self.calls;
        let ids = [
            format!("call_{number}"),
            format!("toolu:{number}"),
            format!(
                "a very long id of a call, with blanks and more than sixty-four characters: {number}"
            ),
        ];
        let arguments = ["{\"a\":1}", "{}", "", "{\"a\": [1, {\"b\": null}]}"];
        let mut call = json!({"id": choices.pick(&ids), "type": "function", "function": {"name": "f", "arguments": choices.pick(&arguments)}});
        if choices.once_in(3) {
            call["extra_content"] = json!({"google": {"thought_signature": "c2ln"}});
        }
        call
    }

    /// What a gateway says of a turn beside its text: reasoning, state of any maker, phases.
    fn state(&mut self, choices: &mut Choices<'_>, message: &mut Value) {
        let details = [
            json!({"type": "reasoning.encrypted", "format": "openai-responses-v1", "model": "here/upstream-model", "index": 0, "id": "rs_1", "summary": [], "data": "gAAA"}),
            json!({"type": "reasoning.encrypted", "format": "openai-responses-v1", "model": "here/upstream-model", "index": 1, "data": "gAAB"}),
            json!({"type": "reasoning.text", "format": "anthropic-claude-v1", "model": "here/upstream-model", "index": 0, "text": "hm", "signature": "sig"}),
            json!({"type": "reasoning.encrypted", "format": "anthropic-claude-v1", "model": "here/upstream-model", "index": 1, "data": "redacted"}),
            json!({"type": "reasoning.encrypted", "format": "google-gemini-v1", "model": "here/upstream-model", "data": "c2ln"}),
            json!({"type": "reasoning.text", "format": "anthropic-claude-v1", "model": "there/another", "index": 0, "text": "hm", "signature": "sig"}),
            json!({"type": "reasoning.summary", "summary": "hm", "origin": "here/upstream-model"}),
            json!({"type": "reasoning.text", "text": "hm"}),
        ];
        if choices.once_in(2) {
            message["reasoning"] = "hm".into();
        }
        if choices.once_in(2) {
            let picked: Vec<Value> = (0..choices.below(4))
                .map(|_| choices.pick(&details).clone())
                .collect();
            message["reasoning_details"] = picked.into();
        }
        if choices.once_in(4) {
            message["images"] =
                json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAE="}}]);
        }
        if choices.once_in(4) {
            message["content_before_tool_calls"] = choices.once_in(2).into();
        }
        if choices.once_in(6) {
            message["phase"] = "commentary".into();
        }
        if choices.once_in(6) {
            message["vendor_native_blocks"] = json!([{"type": "compaction", "content": "x"}]);
        }
    }
}
