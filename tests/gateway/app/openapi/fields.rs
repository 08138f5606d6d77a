//! The schemas of bodies against what is accepted: each member in turn has values of all kinds, and words of the code that no
//! schema names have to be unknown.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use boon::{Compiler, Schemas};
use filters::models::dialects::contents::canonical;
use serde_json::{Value, json};

use super::fetch;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::described::{everything, operations};

/// Members that need others beside them, or that not every model has: an allowed value may be refused.
const BY_MEANING: &[(&str, &str)] = &[
    ("/v1/chat/completions", "effort"),
    ("/v1/chat/completions", "model"),
    ("/v1/chat/completions", "service_tier"),
    ("/v1/chat/completions", "tool_choice"),
    ("/v1/chat/completions", "verbosity"),
    ("/v1/chat/completions", "web_search"),
    ("/v1/completions", "echo"),
    ("/v1/completions", "logprobs"),
    ("/v1/completions", "prompt"),
    ("/v1/completions", "suffix"),
    ("/v1/messages", "thread"),
    ("/v1/messages", "tools"),
    ("/v1/messages/count_tokens", "tools"),
    ("/v1/responses", "previous_response_id"),
    ("/v1/responses", "service_tier"),
    ("/v1/responses", "tool_choice"),
    ("/v1/responses", "top_logprobs"),
    ("/v1/responses/compact", "background"),
    ("/v1/responses/compact", "previous_response_id"),
    ("/v1/responses/compact", "service_tier"),
    ("/v1/responses/compact", "store"),
    ("/v1/responses/compact", "stream"),
    ("/v1/responses/compact", "tool_choice"),
    ("/v1/responses/compact", "top_logprobs"),
    ("/v1beta/models/{model}:batchEmbedContents", "requests"),
    ("/v1beta/models/{model}:countTokens", "contents"),
    (
        "/v1beta/models/{model}:countTokens",
        "generateContentRequest",
    ),
    ("/v1beta/models/{model}:embedContent", "model"),
    ("/v1/images/edits", "background"),
    ("/v1/images/edits", "input_fidelity"),
    ("/v1/images/edits", "output_compression"),
    ("/v1/images/edits", "output_format"),
    ("/v1/images/edits", "quality"),
    ("/v1/images/edits", "service_tier"),
    ("/v1/images/generations", "background"),
    ("/v1/images/generations", "output_compression"),
    ("/v1/images/generations", "output_format"),
    ("/v1/images/generations", "quality"),
    ("/v1/images/generations", "service_tier"),
    ("/v1/images/generations", "style"),
    ("/v1/audio/speech", "response_format"),
    ("/v1/ocr", "pages"),
    ("/v1/videos", "callback_secret"),
    ("/v1/videos", "seconds"),
];

/// Values of all kinds.
fn values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(-1),
        json!(0),
        json!(1),
        json!(2.5),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("\n"),
        json!([]),
        json!({}),
        json!([null]),
        json!([1]),
        json!(["x"]),
        json!([""]),
        json!([[1]]),
        json!([{}]),
        json!({"x": 1}),
        json!({"type": "x"}),
    ]
}

/// The words that a schema names for a value, wherever in it.
fn words(schema: &Value, found: &mut Vec<Value>) {
    found.extend(schema["enum"].as_array().into_iter().flatten().cloned());
    found.extend(schema.get("const").cloned());
    for key in ["anyOf", "oneOf"] {
        for one in schema[key].as_array().into_iter().flatten() {
            words(one, found);
        }
    }
}

fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    let pointer = schema["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    pointer.map_or(schema, |pointer| document.pointer(pointer).unwrap())
}

fn with(example: &Value, name: &str, value: &Value) -> Value {
    let mut body = example.clone();
    body[name] = value.clone();
    body
}

/// Sends a body, and returns whether the front takes it, and the field that it refuses. What is refused later than by the front
/// is not the schema's to say.
fn takes(gateway: &Gateway, path: &str, body: &Value) -> (bool, String) {
    let answer = ask(
        gateway.address(),
        &Ask::post(path, body.to_string()).key(&gateway.key),
    );
    let is_refused = answer.status() == 400;
    let param = if is_refused {
        let error = &answer.json()["error"];
        let details = error["details"].as_array().into_iter().flatten();
        let fields = details.filter_map(|detail| detail["metadata"].get("field"));
        let mut named = error.get("param").into_iter().chain(fields);
        named.next().cloned().unwrap_or_default()
    } else {
        json!("")
    };
    (!is_refused, param.as_str().unwrap_or_default().to_owned())
}

#[test]
fn what_the_schema_of_a_body_forbids_is_refused_and_nothing_else() {
    let gateway = everything();
    let document = fetch(&gateway).json();
    let mut compiler = Compiler::new();
    compiler.add_resource("api.json", document.clone()).unwrap();
    let mut schemas = Schemas::new();
    let mut findings = Vec::new();
    for (method, path, operation) in operations(&document) {
        let content = &operation["requestBody"]["content"]["application/json"];
        if operation["tags"][0] != "Models" || content["example"].is_null() {
            continue;
        }
        let escaped = path.replace('/', "~1");
        let method = method.to_lowercase();
        let place = format!(
            "api.json#/paths/{escaped}/{method}/requestBody/content/application~1json/schema"
        );
        let index = compiler.compile(&place, &mut schemas).unwrap();
        let example = &content["example"];
        assert!(
            schemas.validate(example, index).is_ok(),
            "{path}: {example}"
        );
        let properties = &resolved(&document, &content["schema"])["properties"];
        for (name, schema) in properties.as_object().unwrap() {
            let mut all = values();
            words(resolved(&document, schema), &mut all);
            for value in all {
                let body = with(example, name, &value);
                let allowed = schemas.validate(&body, index).is_ok();
                let (taken, param) = takes(&gateway, path, &body);
                let is_by_meaning = allowed && BY_MEANING.contains(&(path, name));
                if allowed != taken && !is_by_meaning {
                    findings.push(format!(
                        "{path}: {name}: {value}: allowed {allowed}, taken {taken} ({param})"
                    ));
                }
            }
        }
    }
    assert!(
        findings.is_empty(),
        "{}:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// The words in quotes of the front that serves an operation.
fn words_of_code(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_code = path.extension().is_some_and(|it| it == "rs");
        if path.is_dir() {
            words_of_code(&path, found);
        } else if is_code && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let is_word = |word: &&str| {
                let mut letters = word.chars();
                !word.is_empty()
                    && letters
                        .all(|it| it.is_ascii_lowercase() || it == '_' || it == '[' || it == ']')
            };
            found.extend(text.split('"').filter(is_word).map(str::to_owned));
        }
    }
}

#[test]
fn every_member_that_a_front_knows_is_in_its_schema() {
    let gateway = everything();
    let document = fetch(&gateway).json();
    let fronts = Path::new(env!("CARGO_MANIFEST_DIR")).join("filters/models/fronts");
    let mut known = BTreeSet::new();
    words_of_code(&fronts, &mut known);
    assert!(known.contains("encoding_format") && known.contains("top_n"));
    let mut findings = Vec::new();
    for (_, path, operation) in operations(&document) {
        let content = &operation["requestBody"]["content"]["application/json"];
        if operation["tags"][0] != "Models" || content["example"].is_null() {
            continue;
        }
        let mut properties = resolved(&document, &content["schema"])["properties"].clone();
        // It counts the tokens of any request for an answer, so it has the members of that path, too.
        if let Some(counted) = path.strip_suffix(":countTokens") {
            let asked = &document["paths"][format!("{counted}:generateContent")]["post"];
            let asked = &asked["requestBody"]["content"]["application/json"]["schema"];
            let asked = resolved(&document, asked)["properties"]
                .as_object()
                .unwrap();
            properties.as_object_mut().unwrap().extend(asked.clone());
        }
        // A body with one member twice is refused, whichever it is.
        let mut asked = BTreeSet::new();
        let unsaid = known.iter().filter(|word| {
            let member = member(path, word);
            let is_of_path = path.starts_with("/v1beta/") && OF_PATH.contains(&&*member);
            !is_of_path && properties[&*member].is_null() && asked.insert(member)
        });
        let unsaid: Vec<&String> = unsaid.collect();
        for (words, value) in unsaid.chunks(MEMBERS_AT_ONCE).flat_map(with_values) {
            // A refusal names one member that is known; the others come again without it.
            let mut words = words.to_vec();
            while let Some(known) = first_known(&gateway, path, &content["example"], &words, &value)
            {
                findings.push(format!("{path}: {known}: {value}"));
                words.retain(|word| *word != known);
            }
        }
    }
    assert!(
        findings.is_empty(),
        "{}:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// What the path says where it names the model.
const OF_PATH: [&str; 2] = ["model", "stream"];

/// Returns the member that a word is: the Gemini API takes `snake_case` as well.
fn member<'w>(path: &str, word: &'w str) -> Cow<'w, str> {
    match path.starts_with("/v1beta/") {
        true => canonical(word),
        false => word.into(),
    }
}

/// A body has a bound of members.
const MEMBERS_AT_ONCE: usize = 50;

/// Returns words with each of the values that a member may not have.
fn with_values<'w>(words: &'w [&'w String]) -> [(&'w [&'w String], Value); 5] {
    let values = [
        json!(true),
        json!(-1),
        json!("\n"),
        json!([[]]),
        json!({"x": []}),
    ];
    values.map(|value| (words, value))
}

/// Returns one of the members that a path knows, of those that do not fit beside the example.
fn first_known<'w>(
    gateway: &Gateway,
    path: &str,
    example: &Value,
    words: &[&'w String],
    value: &Value,
) -> Option<&'w String> {
    let body = words
        .iter()
        .fold(example.clone(), |body, word| with(&body, word, value));
    let (taken, param) = takes(gateway, path, &body);
    if taken {
        return None;
    }
    let refused = param.split(['.', '[']).next();
    let is_refused = |word: &str| {
        let member = member(path, word);
        param == *member || refused == Some(&*member)
    };
    let known = words.iter().find(|word| is_refused(word));
    assert!(
        known.is_some(),
        "{path}: refused for `{param}`, which is none of {words:?}"
    );
    known.copied()
}
