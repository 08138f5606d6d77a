//! What a response says, whoever wrote it: its items as entries that two responses of one meaning have alike.

use std::collections::BTreeSet;

use filters::models::dialects::Dialect;
use filters::models::dialects::state::{Maker, States, is_sealed};
use serde_json::{Value, json};

/// Reads a response without what is lost in other words than the provider's own.
///
/// Panics: what should be lost is not there.
pub(crate) fn of_answer(response: &Value, lost: &[String]) -> Value {
    let mut reading = Reading::new(lost);
    let mut read = json!({
        "said": reading.items(&response["output"]),
        "status": response["status"],
        "reason": response["incomplete_details"]["reason"],
        "usage": usage(&response["usage"]),
    });
    if reading.is_lost("reason") {
        read["reason"] = Value::Null;
    }
    if reading.is_lost("usage") {
        read["usage"] = Value::Null;
    }
    read
}

/// Reads the same of items alone.
pub(crate) fn of_items(items: &Value, lost: &[String]) -> Value {
    Reading::new(lost).items(items)
}

/// Returns which of what is lost a response has.
pub(crate) fn lost_of<'l>(response: &Value, lost: &'l [String]) -> BTreeSet<&'l str> {
    let mut reading = Reading::new(lost);
    reading.items(&response["output"]);
    reading.seen
}

fn usage(usage: &Value) -> Value {
    let count = |pointer: &str| usage.pointer(pointer).cloned().unwrap_or(json!(0));
    json!([
        count("/input_tokens"),
        count("/input_tokens_details/cached_tokens"),
        count("/input_tokens_details/cache_write_tokens"),
        count("/output_tokens"),
        count("/output_tokens_details/reasoning_tokens"),
        count("/total_tokens"),
    ])
}

struct Reading<'l> {
    lost: &'l [String],
    seen: BTreeSet<&'l str>,
    said: Vec<Value>,
}

impl<'l> Reading<'l> {
    fn new(lost: &'l [String]) -> Self {
        Self {
            lost,
            seen: BTreeSet::new(),
            said: Vec::new(),
        }
    }

    /// Returns whether this is lost, which was seen.
    fn is_lost(&mut self, word: &str) -> bool {
        let found = self.lost.iter().find(|lost| *lost == word);
        self.seen.extend(found.map(String::as_str));
        found.is_some()
    }

    fn items(&mut self, items: &Value) -> Value {
        for item in items.as_array().into_iter().flatten() {
            let kind = item["type"].as_str().unwrap();
            if self.is_lost(kind) {
                continue;
            }
            match kind {
                "message" => self.message(item),
                "reasoning" => self.reasoning(item),
                "function_call" => self.call(item),
                "image_generation_call" => {
                    let image = json!({"image": item["result"], "format": item["output_format"]});
                    self.said.push(image);
                }
                _ => self.said.push(item.clone()),
            }
        }
        std::mem::take(&mut self.said).into()
    }

    /// The parts of a message are one text, which its citations count by characters.
    fn message(&mut self, item: &Value) {
        let (mut text, mut citations) = (String::new(), Vec::new());
        for part in item["content"].as_array().unwrap() {
            if part["type"] == "refusal" {
                self.said.push(json!({"refusal": part["refusal"]}));
                continue;
            }
            let before = text.chars().count() as u64;
            for annotation in part["annotations"].as_array().into_iter().flatten() {
                if self.is_lost(annotation["type"].as_str().unwrap()) {
                    continue;
                }
                assert_eq!(annotation["type"], "url_citation");
                let place = |key: &str| before + annotation[key].as_u64().unwrap();
                citations.push(json!([
                    annotation["url"],
                    annotation["title"],
                    place("start_index"),
                    place("end_index")
                ]));
            }
            let has_logprobs = part["logprobs"].as_array().is_some_and(|it| !it.is_empty());
            if has_logprobs {
                assert!(self.is_lost("logprobs"), "{part}");
            }
            text += part["text"].as_str().unwrap();
        }
        if !text.is_empty() {
            self.said.push(json!({"text": text, "phase": item["phase"], "citations": citations, "status": item["status"]}));
        }
    }

    /// Reasoning that says nothing and has no state is nothing.
    fn reasoning(&mut self, item: &Value) {
        let texts = [&item["summary"], &item["content"]];
        let texts = texts.iter().filter_map(|list| list.as_array()).flatten();
        let texts: Vec<&str> = texts.map(|part| part["text"].as_str().unwrap()).collect();
        let state = match item["encrypted_content"].as_str() {
            Some(state) if is_sealed(state) => {
                let maker = Maker::from_name(States::NONE, "here/upstream-model");
                let opened = maker.open(Dialect::Responses, state).unwrap_or_default();
                match opened.is_empty() {
                    true => Value::Null,
                    false => serde_json::from_str(&opened).unwrap_or_else(|_| opened.into()),
                }
            }
            Some(state) => {
                json!({"id": item["id"], "summary": item["summary"], "encrypted_content": state})
            }
            None => Value::Null,
        };
        let text = texts.join("\n\n");
        if !(text.is_empty() && state.is_null()) {
            self.said.push(json!({"reasoning": text, "state": state}));
        }
    }

    fn call(&mut self, item: &Value) {
        let mut arguments = item["arguments"].clone();
        if arguments == "" && self.is_lost("empty_arguments") {
            arguments = "{}".into();
        }
        let mut call = json!({"call": item["call_id"], "name": item["name"], "arguments": arguments, "status": item["status"]});
        if !item["namespace"].is_null() && !self.is_lost("namespace") {
            call["namespace"] = item["namespace"].clone();
        }
        self.said.push(call);
    }
}
