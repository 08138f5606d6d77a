//! Reads a body of the wire of contents, which no front reads.

use serde_json::{Value, json};

use super::meaning::{Entry, Meaning, joined, text, tool};

pub fn read(body: &Value) -> Meaning {
    let mut said = Vec::new();
    for part in body["systemInstruction"]["parts"]
        .as_array()
        .into_iter()
        .flatten()
    {
        said.push(text("system", part["text"].as_str().unwrap()));
    }
    let mut calls = 0;
    // Names of calls without a result.
    let mut open: Vec<(usize, String)> = Vec::new();
    for content in body["contents"].as_array().unwrap() {
        let role = if content["role"] == "model" {
            "assistant"
        } else {
            "user"
        };
        for part in content["parts"].as_array().unwrap() {
            if let Some(call) = part.get("functionCall") {
                let name = call["name"].as_str().unwrap().to_owned();
                open.push((calls, name.clone()));
                said.push(Entry::Call {
                    number: calls,
                    name,
                    input: call["args"].clone(),
                });
                calls += 1;
            } else if let Some(result) = part.get("functionResponse") {
                let at = open
                    .iter()
                    .position(|(_, name)| result["name"] == **name)
                    .unwrap();
                let (is_error, response) = outcome(&result["response"]);
                let mut parts = vec![text("result", &response)];
                parts.extend(result["parts"].as_array().into_iter().flatten().map(|it| {
                    Entry::Media {
                        role: "result",
                        media: media(&it["inlineData"]),
                    }
                }));
                said.push(Entry::Result {
                    number: open.remove(at).0,
                    is_error,
                    parts,
                });
            } else if let Some(data) = part.get("inlineData") {
                said.push(Entry::Media {
                    role,
                    media: media(data),
                });
            } else {
                said.push(text(role, part["text"].as_str().unwrap()));
            }
        }
    }
    let config = &body["generationConfig"];
    let functions = body["tools"][0]["functionDeclarations"]
        .as_array()
        .into_iter()
        .flatten();
    let calling = &body["toolConfig"]["functionCallingConfig"];
    Meaning {
        said: joined(said),
        tools: functions
            .map(|it| {
                tool(
                    it["name"].as_str().unwrap(),
                    it["description"].as_str(),
                    it["parameters"].clone(),
                    false,
                )
            })
            .collect(),
        choice: match calling["mode"].as_str() {
            Some("NONE") => "none",
            Some("ANY") => calling["allowedFunctionNames"][0]
                .as_str()
                .unwrap_or("required"),
            _ => "auto",
        }
        .to_owned(),
        form: match (
            config.get("responseSchema"),
            config["responseMimeType"].as_str(),
        ) {
            (Some(schema), _) => json!({ "answer": schema }),
            (None, Some("application/json")) => "object".into(),
            _ => Value::Null,
        },
        stop: config["stopSequences"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect(),
        is_serial: false,
        temperature: config["temperature"].as_f64(),
        max_tokens: config["maxOutputTokens"].as_u64(),
    }
}

/// Whether a response says that the call failed, and its text.
fn outcome(response: &Value) -> (bool, String) {
    let members = response.as_object().unwrap();
    match members.iter().next() {
        Some((key, Value::String(said))) if members.len() == 1 && key == "result" => {
            (false, said.clone())
        }
        Some((key, Value::String(said))) if members.len() == 1 && key == "error" => {
            (true, said.clone())
        }
        _ => (false, response.to_string()),
    }
}

fn media(data: &Value) -> Value {
    let (kind, data) = (
        data["mimeType"].as_str().unwrap(),
        data["data"].as_str().unwrap(),
    );
    let url = format!("data:{kind};base64,{data}");
    match kind.split_once('/') {
        Some(("image", _)) => json!({"image": url, "detail": null}),
        Some(("audio", format)) => json!({"sound": data, "format": format}),
        _ => json!({"file": url, "name": null}),
    }
}
