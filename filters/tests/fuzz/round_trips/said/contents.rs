//! A chat in the words of contents.

use filters::models::dialects::Dialect;
use filters::models::dialects::told_reasoning::ToldReasoning;
use serde_json::{Value, json};

use super::{body, item, sealed};
use crate::round_trips::talk::{Form, Outcome, Part, Talk, Thought, Turn, schema};

fn part(part: &Part) -> Value {
    let inline = |kind: &str, data: &str| json!({"inlineData": {"mimeType": kind, "data": data}});
    let of_url = |url: &str| {
        let (kind, data) = url[5..].split_once(";base64,").unwrap();
        inline(kind, data)
    };
    match part {
        Part::Text(text) => json!({"text": text}),
        Part::Image { url, .. } => of_url(url),
        Part::File { name, url } => {
            let mut file = of_url(url);
            file["inlineData"]["displayName"] = name.as_str().into();
            file
        }
        Part::Sound { data, format } => inline(&["audio/", format].concat(), data),
    }
}

/// The signature that a thought is.
fn signature(thought: &Thought) -> String {
    match thought.made {
        Some(Dialect::Responses) => sealed(thought, &item(thought)),
        Some(Dialect::Contents) => sealed(thought, &thought.state),
        _ => sealed(
            thought,
            &ToldReasoning::write(&thought.text, &thought.state),
        ),
    }
}

fn result(talk: &Talk, result: &Outcome) -> Value {
    let (mut said, mut media) = (String::new(), Vec::new());
    for it in &result.parts {
        match it {
            Part::Text(text) => said.push_str(text),
            other => media.push(part(other)),
        }
    }
    let key = if result.is_error { "error" } else { "output" };
    let mut response =
        json!({"id": result.id, "name": talk.tools[result.tool].name, "response": {key: said}});
    if !media.is_empty() {
        response["parts"] = media.into();
    }
    json!({ "functionResponse": response })
}

/// Contents, and instructions.
fn turns(talk: &Talk) -> (Vec<Value>, Vec<Value>) {
    let (mut contents, mut system) = (Vec::new(), Vec::new());
    for turn in &talk.turns {
        let (role, parts) = match turn {
            Turn::Given {
                role: "system",
                parts,
            } => {
                system.extend(parts.iter().map(part));
                continue;
            }
            Turn::Given { parts, .. } => ("user", parts.iter().map(part).collect()),
            Turn::Said {
                thought,
                text,
                calls,
                ..
            } => {
                let text = text.as_ref().map(|text| json!({"text": text}));
                let calls = calls.iter().map(|call| {
                    json!({"functionCall": {"id": call.id, "name": talk.tools[call.tool].name, "args": call.input}})
                });
                let mut parts: Vec<Value> = text.into_iter().chain(calls).collect();
                if let Some(thought) = thought {
                    let call = parts.iter().position(|it| it.get("functionCall").is_some());
                    let signed = call.filter(|_| thought.made == Some(Dialect::Contents));
                    parts[signed.unwrap_or(0)]["thoughtSignature"] = signature(thought).into();
                }
                ("model", parts)
            }
            Turn::Results(results) => ("user", results.iter().map(|it| result(talk, it)).collect()),
        };
        contents.push(json!({"role": role, "parts": Value::Array(parts)}));
    }
    (contents, system)
}

pub fn contents(talk: &Talk) -> Value {
    let (contents, system) = turns(talk);
    let mut body = json!({"model": body(talk)["model"], "contents": contents});
    if !system.is_empty() {
        body["systemInstruction"] = json!({ "parts": system });
    }
    let mut config = json!({"maxOutputTokens": 64});
    if let Some(temperature) = talk.temperature {
        config["temperature"] = temperature.into();
    }
    if !talk.stop.is_empty() {
        config["stopSequences"] = talk.stop.clone().into();
    }
    if talk.form != Form::Text {
        config["responseMimeType"] = "application/json".into();
    }
    if talk.form == Form::Schema {
        config["responseJsonSchema"] = schema();
    }
    body["generationConfig"] = config;
    if !talk.tools.is_empty() {
        let functions = talk.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": schema()})
        });
        body["tools"] = json!([{"functionDeclarations": functions.collect::<Value>()}]);
    }
    if let Some(choice) = talk.choice {
        let calling = match choice {
            "look" => json!({"mode": "ANY", "allowedFunctionNames": ["look"]}),
            "required" => json!({"mode": "ANY"}),
            word => json!({"mode": word.to_uppercase()}),
        };
        body["toolConfig"] = json!({ "functionCallingConfig": calling });
    }
    body
}
