//! The description of a chat against its checks: bodies that the schema makes are taken, and what it forbids is refused.

use boon::{Compiler, SchemaIndex, Schemas};
use filters::models::front::{ClientHead, Front};
use filters::models::fronts::chat_completions::ChatCompletions;
use serde_json::{Map, Value, json};

use crate::choices::Choices;
use crate::run::run;

/// Fields whose rules no schema says: they stand between members, or are about what a text holds.
const BY_MEANING: [&str; 16] = [
    "model",
    "prompt",
    "messages",
    "messages[].content[].image_url.url",
    "messages[].content[].file.file_data",
    "messages[].images[].image_url.url",
    "image_config.n",
    "n",
    "reasoning_effort",
    "response_format.json_schema",
    "tool_choice",
    "tool_choice.function.name",
    "tools",
    "tools[].defer_loading",
    "tools[].type",
    "vendor_safeguards.betas[]",
];

const SHARED: &str = include_str!("../../../src/app/openapi/components.json");

/// The schemas that a description and all others have.
fn schemas() -> Value {
    let mut shared: Value = serde_json::from_str(SHARED).unwrap();
    let own: Value = serde_json::from_str(&Front::row(&ChatCompletions).description).unwrap();
    let mut schemas = shared["schemas"].take();
    let own = own["schemas"].as_object().unwrap().clone();
    schemas.as_object_mut().unwrap().extend(own);
    json!({"components": {"schemas": schemas}})
}

fn compiled(document: &Value) -> (Schemas, SchemaIndex) {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("urn:api", document.clone()).unwrap();
    let place = "urn:api#/components/schemas/ChatRequest";
    let index = compiler.compile(place, &mut schemas).unwrap();
    (schemas, index)
}

/// Returns a value that a schema allows.
fn allowed(document: &Value, schema: &Value, choices: &mut Choices<'_>) -> Value {
    if let Some(place) = schema["$ref"].as_str() {
        let named = document.pointer(place.trim_start_matches('#')).unwrap();
        return allowed(document, named, choices);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(all) = schema[key].as_array() {
            return allowed(document, choices.pick(all), choices);
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        return choices.pick(words).clone();
    }
    if let Some(word) = schema.get("const") {
        return word.clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) if choices.once_in(4) => choices.pick(kinds),
        Value::Array(kinds) => &kinds[0],
        kind => kind,
    };
    match kind.as_str() {
        Some("object") => object(document, schema, choices),
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
            let count = least + choices.below(3);
            let items = (0..count).map(|_| allowed(document, &schema["items"], choices));
            items.collect()
        }
        Some("string") => text(schema, choices).into(),
        Some("integer") => {
            let least = schema["minimum"].as_u64().unwrap_or(0);
            let most = schema["maximum"].as_u64().unwrap_or(least + 300);
            json!(*choices.pick(&[least, most, (least + most) / 2]))
        }
        Some("number") => json!(*choices.pick(&[0.5, -1.0, 0.0, 1e300, 7.0])),
        Some("boolean") => json!(choices.once_in(2)),
        _ => anything(choices),
    }
}

fn object(document: &Value, schema: &Value, choices: &mut Choices<'_>) -> Value {
    let required = schema["required"].as_array();
    let is_required = |key: &str| required.is_some_and(|all| all.contains(&key.into()));
    let mut members = Map::new();
    for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
        if is_required(key) || choices.once_in(5) {
            members.insert(key.clone(), allowed(document, schema, choices));
        }
    }
    let others = &schema["additionalProperties"];
    if others.is_object() && choices.once_in(2) {
        members.insert("x".to_owned(), allowed(document, others, choices));
    }
    members.into()
}

fn text(schema: &Value, choices: &mut Choices<'_>) -> String {
    let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
    match schema["pattern"].as_str() {
        Some(pattern) if pattern.starts_with("^tool_search_tool") => {
            "tool_search_tool_x".to_owned()
        }
        _ => (*choices.pick(&["", "x", "a-1", "https://a.test/x.png"][least.min(1)..])).to_owned(),
    }
}

fn anything(choices: &mut Choices<'_>) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(2.5),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!([1]),
        json!(["x"]),
        json!([{}]),
        json!({"type": "x"}),
    ];
    choices.pick(&values).clone()
}

/// Replaces one value of a body.
fn damage(value: &mut Value, choices: &mut Choices<'_>) {
    let inside: Vec<&mut Value> = match value {
        Value::Object(members) => members.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    let at = choices.below(inside.len() + 1);
    match inside.into_iter().nth(at) {
        Some(value) if !choices.once_in(6) => damage(value, choices),
        Some(value) => *value = anything(choices),
        None => *value = anything(choices),
    }
}

/// Returns a field without the places of items.
fn field(param: &str) -> String {
    let mut parts = param.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |field, part| {
        let rest = part.split_once(']').map_or("", |(_, rest)| rest);
        format!("{field}[]{rest}")
    })
}

#[test]
fn a_chat_is_what_its_description_says() {
    let document = schemas();
    let (schemas, index) = compiled(&document);
    let request = &document["components"]["schemas"]["ChatRequest"];
    run("shapes: chats", |choices| {
        let mut body = allowed(&document, request, choices);
        if choices.once_in(2) {
            damage(&mut body, choices);
        }
        // A prompt may have the messages.
        if let Value::Object(members) = &mut body {
            let messages = members.entry("messages").or_insert(Value::Null);
            if messages.is_null() || *messages == json!([]) {
                *messages = json!([{"role": "user", "content": "a"}]);
            }
        }
        let is_allowed = schemas.validate(&body, index).is_ok();
        let fault = ChatCompletions
            .read(&ClientHead::silent(), body.to_string().into())
            .err();
        let param = fault.as_ref().and_then(|fault| fault.param.as_deref());
        let is_by_meaning = is_allowed && BY_MEANING.contains(&&*field(param.unwrap_or_default()));
        assert!(
            is_allowed == fault.is_none() || is_by_meaning,
            "allowed {is_allowed}, {fault:?}: {body}"
        );
    });
}
