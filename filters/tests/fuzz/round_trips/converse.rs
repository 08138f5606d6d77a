//! Reads a body of the Converse wire, which no front reads.

use filters::models::dialects::Dialect;
use serde_json::{Value, json};

use super::meaning::{Entry, Meaning, joined, text, tool};

pub fn read(body: &Value) -> Meaning {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let system = list(&body["system"]);
    let texts = system.iter().filter_map(|block| block["text"].as_str());
    let mut said: Vec<Entry> = texts.map(|it| text("system", it)).collect();
    let mut ids: Vec<String> = Vec::new();
    for turn in list(&body["messages"]) {
        let role = match turn["role"].as_str() {
            Some("assistant") => "assistant",
            _ => "user",
        };
        for block in list(&turn["content"]) {
            said.push(entry(role, &block, &mut ids));
        }
    }
    let config = &body["inferenceConfig"];
    let specs = list(&body["toolConfig"]["tools"]);
    let specs = specs.iter().filter_map(|it| it.get("toolSpec"));
    let choice = &body["toolConfig"]["toolChoice"];
    let form = &body["outputConfig"]["textFormat"]["structure"]["jsonSchema"];
    Meaning {
        said: joined(said),
        tools: specs
            .map(|it| {
                let strict = it["strict"] == true;
                let (name, schema) = (it["name"].as_str(), &it["inputSchema"]["json"]);
                let description = it["description"].as_str();
                tool(name.unwrap(), description, schema.clone(), strict)
            })
            .collect(),
        choice: match choice["tool"]["name"].as_str() {
            Some(name) => name.to_owned(),
            None if choice.get("any").is_some() => "required".to_owned(),
            None => "auto".to_owned(),
        },
        form: match form["schema"].as_str() {
            Some(schema) => {
                let schema: Value = serde_json::from_str(schema).unwrap();
                json!({form["name"].as_str().unwrap(): schema})
            }
            None => Value::Null,
        },
        stop: list(&config["stopSequences"])
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect(),
        is_serial: false,
        temperature: config["temperature"].as_f64(),
        max_tokens: config["maxTokens"].as_u64(),
    }
}

fn entry(role: &'static str, block: &Value, ids: &mut Vec<String>) -> Entry {
    let (kind, own) = block.as_object().unwrap().iter().next().unwrap();
    let owned = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "text" => text(role, own.as_str().unwrap()),
        "image" => {
            let (format, data) = (owned(&own["format"]), owned(&own["source"]["bytes"]));
            let url = format!("data:image/{format};base64,{data}");
            let media = json!({"image": url, "detail": null});
            Entry::Media { role, media }
        }
        "document" => {
            let (format, data) = (owned(&own["format"]), owned(&own["source"]["bytes"]));
            let url = format!("data:application/{format};base64,{data}");
            let media = json!({"file": url, "name": null});
            Entry::Media { role, media }
        }
        "reasoningContent" => {
            let whole = &own["reasoningText"];
            let redacted = own["redactedContent"].as_str();
            Entry::Thought {
                made: Some(Dialect::Messages),
                text: owned(&whole["text"]),
                state: redacted.map_or_else(|| owned(&whole["signature"]), str::to_owned),
            }
        }
        "toolUse" => {
            ids.push(owned(&own["toolUseId"]));
            Entry::Call {
                number: ids.len() - 1,
                name: owned(&own["name"]),
                input: own["input"].clone(),
            }
        }
        "toolResult" => {
            let id = owned(&own["toolUseId"]);
            let parts = own["content"].as_array().unwrap();
            Entry::Result {
                number: ids.iter().rposition(|known| *known == id).unwrap(),
                is_error: own["status"] == "error",
                parts: parts.iter().map(|it| entry("result", it, ids)).collect(),
            }
        }
        other => panic!("{other}"),
    }
}
