//! Clouds: what their hosts get over each of their wires, and what becomes of what they answer.

mod cuts;
mod fallbacks;
mod requests;

use serde_json::Value;

use crate::models::fronts::promises::{APIS, Api, events};
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};

/// The APIs whose clients ask clouds here: chat completions, Messages, Responses.
fn fronts() -> &'static [Api] {
    const FRONTS: &[Api] = &APIS;
    &FRONTS[..3]
}

/// Asks a model by an API.
fn ask_model(gateway: &Gateway, api: &Api, model: &str, mut body: Value) -> Answer {
    body["model"] = model.into();
    ask(gateway.address(), &api.request(gateway, &body))
}

fn is_stream(answer: &Answer) -> bool {
    let kind = answer.header("content-type").unwrap_or_default();
    kind.starts_with("text/event-stream")
}

/// The text and the input of calls of an answer, whole or streamed, by whichever API.
#[derive(Debug, Default, PartialEq)]
struct SaidByModel {
    text: String,
    input: String,
}

impl SaidByModel {
    fn read(answer: &Answer) -> SaidByModel {
        let mut said = SaidByModel::default();
        if !is_stream(answer) {
            said.whole(&answer.json());
            return said;
        }
        for data in events(answer).iter().filter(|data| *data != "[DONE]") {
            said.event(&serde_json::from_str(data).unwrap_or_else(|e| panic!("{e}: {data}")));
        }
        said
    }

    fn add(&mut self, text: &Value, input: &Value) {
        self.text += text.as_str().unwrap_or_default();
        match input {
            Value::String(piece) => self.input += piece,
            Value::Object(_) => self.input += &input.to_string(),
            _ => {}
        }
    }

    fn whole(&mut self, answer: &Value) {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let message = &answer["choices"][0]["message"];
        self.add(&message["content"], &Value::Null);
        for call in list(&message["tool_calls"]) {
            self.add(&Value::Null, &call["function"]["arguments"]);
        }
        for block in list(&answer["content"]) {
            self.add(&block["text"], &block["input"]);
        }
        for item in list(&answer["output"]) {
            self.add(&item["content"][0]["text"], &item["arguments"]);
        }
    }

    fn event(&mut self, event: &Value) {
        let delta = &event["choices"][0]["delta"];
        self.add(
            &delta["content"],
            &delta["tool_calls"][0]["function"]["arguments"],
        );
        match event["type"].as_str() {
            Some("content_block_delta") => {
                self.add(&event["delta"]["text"], &event["delta"]["partial_json"]);
            }
            Some("response.output_text.delta") => self.add(&event["delta"], &Value::Null),
            Some("response.function_call_arguments.delta") => {
                self.add(&Value::Null, &event["delta"]);
            }
            _ => {}
        }
    }
}
