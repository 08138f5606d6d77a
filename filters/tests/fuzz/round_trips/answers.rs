//! Answers keep their meaning there and back: what a wire's reply says, a front tells; and what the client sends back of it, the front
//! reads, and the wire gets again, with its own state.

use filters::models::dialects::Dialect;
use filters::models::wires::{Quirks, WireKind};
use serde_json::{Value, json};

use super::lost::CELLS;
use super::meaning::{Entry, joined, text};
use super::said::{FRONTS, Saying, WIRES};
use super::talk;
use super::{read, sent};
use crate::choices::Choices;
use crate::grammars::{contents, messages, responses};
use crate::run::run;
use crate::wires::{WHOLE, answer};

/// What a model answers.
#[derive(Debug)]
struct Said {
    /// The text of its reasoning, and the state.
    thought: Option<(String, String)>,
    text: Option<String>,
    refusal: Option<String>,
    inputs: Vec<Value>,
}

impl Said {
    fn compose(choices: &mut Choices<'_>, wire: Dialect) -> Self {
        let calls = choices.below(4);
        let can_refuse = matches!(wire, Dialect::Chat | Dialect::Responses);
        let refuses = can_refuse && calls == 0 && choices.once_in(4);
        let inputs = [json!({"a": "é\n"}), json!({}), json!({"a": [1, null]})];
        Self {
            thought: choices.once_in(2).then(|| {
                let state = format!("c3RhdGU{}", choices.below(10));
                (talk::text(choices), state)
            }),
            text: (!refuses && (calls == 0 || choices.once_in(2))).then(|| talk::text(choices)),
            refusal: refuses.then(|| talk::text(choices)),
            inputs: (0..calls).map(|_| choices.pick(&inputs).clone()).collect(),
        }
    }

    /// The whole reply of a wire.
    fn reply(&self, wire: Dialect) -> Value {
        let calls = self.inputs.iter().enumerate();
        match wire {
            Dialect::Chat => {
                let calls: Vec<Value> = calls.map(|(at, input)| json!({"id": format!("call_{at}"), "type": "function", "function": {"name": "look", "arguments": input.to_string()}})).collect();
                let mut message =
                    json!({"role": "assistant", "content": self.text, "refusal": self.refusal});
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                if let Some((thought, _)) = &self.thought {
                    message["reasoning_content"] = thought.as_str().into();
                }
                let finish = if self.inputs.is_empty() {
                    "stop"
                } else {
                    "tool_calls"
                };
                json!({"id": "c", "created": 5, "choices": [{"index": 0, "finish_reason": finish, "message": message}]})
            }
            Dialect::Messages => {
                let thought = self.thought.iter().map(|(thought, state)| json!({"type": "thinking", "thinking": thought, "signature": state}));
                let said = self
                    .text
                    .iter()
                    .map(|text| json!({"type": "text", "text": text}));
                let calls = calls.map(|(at, input)| json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": "look", "input": input}));
                let content: Vec<Value> = thought.chain(said).chain(calls).collect();
                let reason = if self.inputs.is_empty() {
                    "end_turn"
                } else {
                    "tool_use"
                };
                json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason, "usage": {"input_tokens": 1, "output_tokens": 1}})
            }
            Dialect::Responses => {
                let thought = self.thought.iter().map(|(thought, state)| json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": thought}], "encrypted_content": state}));
                let said = self
                    .text
                    .iter()
                    .map(|text| json!({"type": "output_text", "text": text, "annotations": []}));
                let refused = self
                    .refusal
                    .iter()
                    .map(|refusal| json!({"type": "refusal", "refusal": refusal}));
                let said = said.chain(refused).map(|part| json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}));
                let calls = calls.map(|(at, input)| json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{at}"), "name": "look", "arguments": input.to_string()}));
                let output: Vec<Value> = thought.chain(said).chain(calls).collect();
                json!({"id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "model": "m", "output": output})
            }
            Dialect::Converse => {
                let thought = self.thought.iter().map(|(thought, state)| json!({"reasoningContent": {"reasoningText": {"text": thought, "signature": state}}}));
                let said = self.text.iter().map(|text| json!({"text": text}));
                let calls = calls.map(|(at, input)| json!({"toolUse": {"toolUseId": format!("tooluse_{at}"), "name": "look", "input": input}}));
                let content: Vec<Value> = thought.chain(said).chain(calls).collect();
                let reason = if self.inputs.is_empty() {
                    "end_turn"
                } else {
                    "tool_use"
                };
                json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason})
            }
            Dialect::ChatV2 => {
                let said = self
                    .text
                    .iter()
                    .map(|text| json!({"type": "text", "text": text}));
                let content: Vec<Value> = said.collect();
                let calls: Vec<Value> = calls.map(|(at, input)| json!({"id": format!("look_{at}"), "type": "function", "function": {"name": "look", "arguments": input.to_string()}})).collect();
                let plan = self.thought.as_ref().map(|(thought, _)| thought);
                json!({"id": "c", "finish_reason": "COMPLETE", "message": {"role": "assistant", "content": content, "tool_plan": plan, "tool_calls": calls}})
            }
            _ => {
                let thought = self
                    .thought
                    .iter()
                    .map(|(thought, _)| json!({"text": thought, "thought": true}));
                let said = self.text.iter().map(|text| json!({"text": text}));
                let calls = calls.map(|(at, input)| {
                    let mut part = json!({"functionCall": {"name": "look", "args": input}});
                    if let Some((_, state)) = self.thought.as_ref().filter(|_| at == 0) {
                        part["thoughtSignature"] = state.as_str().into();
                    }
                    part
                });
                let parts: Vec<Value> = thought.chain(said).chain(calls).collect();
                json!({"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": parts}}]})
            }
        }
    }

    /// What the answer means, said on a wire.
    fn meaning(&self, wire: Dialect) -> Vec<Entry> {
        let made = match wire {
            Dialect::Converse => Dialect::Messages,
            other => other,
        };
        let keeps_state = matches!(made, Dialect::Messages | Dialect::Responses);
        let thought = self.thought.iter().filter(|_| keeps_state);
        let mut said: Vec<Entry> = thought
            .map(|(text, state)| Entry::Thought {
                made: Some(made),
                text: text.clone(),
                state: state.clone(),
            })
            .collect();
        said.extend(self.text.as_ref().map(|said| text("assistant", said)));
        said.extend(self.refusal.clone().map(Entry::Refusal));
        let signature = self.thought.iter().filter(|_| wire == Dialect::Contents);
        let signed = signature.filter(|_| !self.inputs.is_empty());
        said.extend(signed.map(|(text, state)| Entry::Thought {
            made: Some(wire),
            text: text.clone(),
            state: state.clone(),
        }));
        let calls = self.inputs.iter().enumerate();
        said.extend(calls.map(|(number, input)| Entry::Call {
            number,
            name: "look".to_owned(),
            input: input.clone(),
        }));
        said
    }
}

/// The request of a front whose answer is a stream or whole, with these entries behind the user's first words.
fn request(dialect: Dialect, is_stream: bool, entries: &[Value]) -> Value {
    let hi = match dialect {
        Dialect::Contents => json!({"role": "user", "parts": [{"text": "Hi"}]}),
        _ => json!({"role": "user", "content": "Hi"}),
    };
    let entries: Vec<Value> = std::iter::once(hi).chain(entries.iter().cloned()).collect();
    let schema = talk::schema();
    match dialect {
        Dialect::Responses => {
            json!({"model": "m", "stream": is_stream, "input": entries, "tools": [{"type": "function", "name": "look", "parameters": schema}]})
        }
        Dialect::Messages => {
            json!({"model": "m", "stream": is_stream, "max_tokens": 64, "messages": entries, "tools": [{"name": "look", "input_schema": schema}]})
        }
        Dialect::Contents => {
            let form = is_stream.then_some("sse");
            json!({"model": "m", "stream": form, "contents": entries, "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": schema}]}]})
        }
        _ => {
            json!({"model": "m", "stream": is_stream, "messages": entries, "tools": [{"type": "function", "function": {"name": "look", "parameters": schema}}]})
        }
    }
}

/// What a client keeps of an answer, and the results of its calls behind it.
fn history(dialect: Dialect, answer: &Value) -> Vec<Value> {
    match dialect {
        Dialect::Responses => {
            let items = answer["output"].as_array().unwrap();
            let calls = items.iter().filter(|item| item["type"] == "function_call");
            let results = calls.map(|call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}));
            items.iter().cloned().chain(results).collect()
        }
        Dialect::Messages => {
            let content = answer["content"].as_array().unwrap();
            let calls = content.iter().filter(|block| block["type"] == "tool_use");
            let results: Vec<Value> = calls.map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "ok"})).collect();
            let results =
                (!results.is_empty()).then(|| json!({"role": "user", "content": results}));
            std::iter::once(json!({"role": "assistant", "content": content}))
                .chain(results)
                .collect()
        }
        Dialect::Contents => {
            let content = &answer["candidates"][0]["content"];
            let parts = content["parts"].as_array().unwrap();
            let calls = parts.iter().filter_map(|part| part.get("functionCall"));
            let results: Vec<Value> = calls.map(|call| json!({"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "ok"}}})).collect();
            let results = (!results.is_empty()).then(|| json!({"role": "user", "parts": results}));
            std::iter::once(content.clone()).chain(results).collect()
        }
        _ => {
            let message = &answer["choices"][0]["message"];
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let results = calls
                .map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": "ok"}));
            std::iter::once(message.clone()).chain(results).collect()
        }
    }
}

/// The answer that a client reads of a stream.
fn folded(dialect: Dialect, stream: &str) -> Value {
    if dialect == Dialect::Contents {
        return match contents::fold(contents::chunks(stream).unwrap()).unwrap() {
            Some(contents::StreamEnd::Response(response)) => response,
            other => panic!("{other:?}"),
        };
    }
    let events = messages::events(stream).unwrap().into_iter();
    match dialect {
        Dialect::Responses => responses::fold(events).unwrap(),
        _ => {
            let input = |text: &str| serde_json::from_str(text).unwrap();
            messages::fold(events, input).unwrap().message
        }
    }
}

fn go_there_and_back(saying: &Saying, kind: WireKind, wire: Dialect) {
    let (dialect, quirks) = (saying.dialect, Quirks::default());
    let name = format!("round trips: answers of {kind:?} to {}", saying.name);
    run(&name, |choices| {
        let said = Said::compose(choices, wire);
        // Grammars of streams are those of what the gateway writes itself.
        let is_stream = dialect != Dialect::Chat && dialect != wire && choices.once_in(2);
        let asked = request(dialect, is_stream, &[]);
        let asked = saying.front.parse(asked.to_string().into()).unwrap();
        let reply = said.reply(wire).to_string();
        let (out, ended) = answer(kind, &asked, &quirks, &WHOLE, &[reply.as_bytes()]);
        assert_eq!(ended, Ok(()), "{name}: {reply}");
        let told = match is_stream {
            true => folded(dialect, std::str::from_utf8(&out).unwrap()),
            false => serde_json::from_slice(&out).unwrap(),
        };
        let mut entries = history(dialect, &told);
        entries.push(match dialect {
            Dialect::Contents => json!({"role": "user", "parts": [{"text": "Go on"}]}),
            _ => json!({"role": "user", "content": "Go on"}),
        });
        let back = request(dialect, false, &entries).to_string();
        let asked = saying.front.parse(back.clone().into());
        let asked = asked.unwrap_or_else(|fault| panic!("{name}: {fault:?}\n{back}"));
        let sent = sent(kind, &asked).unwrap();
        let mut meaning = read(&sent, wire);
        let mut expected = meaning.clone();
        expected.said = vec![text("user", "Hi")];
        expected.said.extend(said.meaning(wire));
        let results = (0..said.inputs.len()).map(|number| Entry::Result {
            number,
            is_error: false,
            parts: vec![text("result", "ok")],
        });
        expected.said.extend(results);
        expected.said.push(text("user", "Go on"));
        if matches!(dialect, Dialect::Messages | Dialect::Contents) {
            // The API has no refusals within a message.
            refusals_are_texts(&mut expected.said);
        }
        for cell in CELLS.iter().filter(|cell| cell.holds(dialect, wire)) {
            (cell.change)(&mut expected, wire);
        }
        expected.said = joined(expected.said);
        meaning.said = joined(meaning.said);
        if let Some(difference) = meaning.difference(&expected) {
            panic!("{name}: {difference}\nof {reply}\ntold {told}\nsent {sent}");
        }
    });
}

fn refusals_are_texts(said: &mut [Entry]) {
    for entry in said {
        if let Entry::Refusal(refusal) = entry {
            *entry = text("assistant", refusal);
        }
    }
}

#[test]
fn answers_of_every_wire_go_there_and_back() {
    for saying in &FRONTS {
        for (kind, wire) in WIRES {
            // Texts have no history.
            let is_text = [saying.dialect, wire].contains(&Dialect::Completions);
            if !is_text {
                go_there_and_back(saying, kind, wire);
            }
        }
    }
}
