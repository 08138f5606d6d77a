//! Reads a body of Cohere's wire, which no front reads.

use serde_json::{Value, json};

use super::meaning::{Entry, Meaning, joined, text, tool};

pub fn read(body: &Value) -> Meaning {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut said = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for message in list(&body["messages"]) {
        let role = match message["role"].as_str() {
            Some("system") => "system",
            Some("assistant") => "assistant",
            Some("tool") => "result",
            _ => "user",
        };
        assert_eq!(message.get("tool_plan"), None, "nobody's plan");
        let parts: Vec<Entry> = match &message["content"] {
            Value::String(said) => vec![text(role, said)],
            parts => list(parts).iter().map(|it| part(role, it)).collect(),
        };
        if role == "result" {
            let id = message["tool_call_id"].as_str();
            let number = ids.iter().rposition(|known| Some(&**known) == id);
            said.push(Entry::Result {
                number: number.unwrap(),
                is_error: false,
                parts,
            });
            continue;
        }
        said.extend(parts);
        for call in list(&message["tool_calls"]) {
            ids.push(call["id"].as_str().unwrap().to_owned());
            let function = &call["function"];
            said.push(Entry::Call {
                number: ids.len() - 1,
                name: function["name"].as_str().unwrap().to_owned(),
                input: serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap(),
            });
        }
    }
    let strict = body["strict_tools"] == true;
    let form = &body["response_format"];
    Meaning {
        said: joined(said),
        tools: list(&body["tools"])
            .iter()
            .map(|it| {
                let own = &it["function"];
                let (name, schema) = (own["name"].as_str(), own["parameters"].clone());
                tool(name.unwrap(), own["description"].as_str(), schema, strict)
            })
            .collect(),
        choice: match body["tool_choice"].as_str() {
            Some("NONE") => "none",
            Some("REQUIRED") => "required",
            _ => "auto",
        }
        .to_owned(),
        form: match (form.get("json_schema"), form["type"].as_str()) {
            (Some(schema), _) => json!({ "answer": schema }),
            (None, Some("json_object")) => "object".into(),
            _ => Value::Null,
        },
        stop: list(&body["stop_sequences"])
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect(),
        is_serial: false,
        temperature: body["temperature"].as_f64(),
        max_tokens: body["max_tokens"].as_u64(),
    }
}

fn part(role: &'static str, part: &Value) -> Entry {
    match part["text"].as_str() {
        Some(said) => text(role, said),
        None => {
            let image = &part["image_url"];
            let detail = image.get("detail").filter(|it| *it != "auto");
            let media = json!({"image": image["url"], "detail": detail});
            Entry::Media { role, media }
        }
    }
}
