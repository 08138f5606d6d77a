//! Requests of models, what the wires make of them, and names of models.

use filters::fault::Fault;
use filters::models::chat::data_url;
use filters::models::dialects::Dialect;
use filters::models::dialects::state::{Maker, States};
use filters::models::front::{Front, Received};
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::embeddings::EMBEDDINGS;
use filters::models::fronts::images::{ImageEdits, ImageGenerations};
use filters::models::operation::Operation;
use filters::models::request::ModelRequest;
use filters::models::routing::CatalogFile;
use filters::models::routing::catalog::Catalog;
use filters::models::routing::providers::ProviderNames;
use filters::models::routing::resolve::resolve;
use filters::models::wires::quirks::ReasoningReplay;
use filters::models::wires::{BodySlice, Failure, Quirks, Target, WireKind};
use filters::multipart;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::run::run;
use crate::{damage, grammar};

pub const WIRES: [WireKind; 6] = [
    WireKind::Compatible,
    WireKind::Responses,
    WireKind::Messages,
    WireKind::Contents,
    WireKind::Converse,
    WireKind::Cohere,
];

pub fn target(quirks: &Quirks) -> Target<'_> {
    Target {
        max_output: Some(4096),
        key_id: Some("key_1"),
        ..Target::plain("here", "upstream-model", quirks)
    }
}

/// Quirks that change a request, at random.
pub fn quirks(choices: &mut Choices<'_>) -> Quirks {
    let mut flag = || choices.once_in(2);
    Quirks {
        strict_messages: flag(),
        drop_unknown_fields: flag(),
        tool_call_ids_of_nine: flag(),
        null_content_is_empty: flag(),
        json_schema: flag(),
        forced_tools: flag(),
        strict_schema: flag(),
        developer_is_system: flag(),
        reasoning_replay: if flag() {
            ReasoningReplay::ReasoningDetails
        } else {
            ReasoningReplay::None
        },
        pass_members: if flag() {
            vec!["models".into()]
        } else {
            Vec::new()
        },
        ..Quirks::default()
    }
}

pub fn chat_grammar() -> Value {
    let part = json!({"$one": [
        {"type": "text", "text": {"$one": ["a", "$text"]}, "cache_control?": {"type": "ephemeral", "ttl?": "1h"}},
        {"type": "image_url", "image_url": {"url": {"$one": ["https://a.example/x.png", "data:image/png;base64,AAE=", "$text"]}, "detail?": "low"}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": {"$one": ["wav", "mp3"]}}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
    ]});
    let call = json!({"id": {"$one": ["call_1", "call-of-many-characters", "$text"]}, "type": "function",
        "function": {"name": "f", "arguments": {"$one": ["{\"a\":1}", "", "{", "$text"]}}, "extra_content?": {"google": {"thought_signature": "s"}}});
    let maker = Maker::from_name(States::NONE, "here/upstream-model");
    let details = json!({"type": "reasoning.encrypted", "format": {"$one": ["openai-responses-v1", "anthropic-claude-v1", "google-gemini-v1"]}, 
        "index?": {"$one": [0, 1, "$int"]}, "id?": "rs_1", "summary?": {"$one": [[], "$any"]}, "data?": {"$one": [maker.seal(Dialect::Chat, "gAAA"), "gAAA", "$any"]}, "origin?": {"$one": [maker.seal(Dialect::Chat, ""), "here", "$any"]}});
    let message = json!({"$one": [
        {"role": "user", "content": {"$one": ["Hi", "$text", [part]]}, "name?": "ann"},
        {"role": {"$one": ["system", "developer"]}, "content": {"$one": ["Be brief.", [{"type": "text", "text": "x"}]]}},
        {"role": "assistant", "content": {"$one": ["Hello", null]}, "tool_calls?": [call], "reasoning?": "hm",
         "reasoning_details?": [details, details], "refusal?": {"$one": [null, "no"]}, "phase?": "commentary", "content_before_tool_calls?": false,
         "message_items?": {"$many": {"text": "$text", "phase": "final_answer", "preceding_tool_calls": {"$one": [0, 1, 1.0, "$int"]}}}},
        {"role": "tool", "tool_call_id": "call_1", "content": {"$one": ["42", "$text", [{"type": "text", "text": "x"}]]}},
    ]});
    let schema = json!({"type": "object", "properties": {"a": {"$one": [{"type": "string"}, {"type": ["number", "null"], "enum": [1, 2]},
        {"$ref": "#/$defs/x"}, {"type": "array", "items": {"type": "integer"}}]}}, "required?": ["a"], "additionalProperties?": false,
        "$defs?": {"x": {"type": "object"}}});
    let tool = json!({"type": "function", "function": {"name": "f", "description?": "$text", "parameters?": schema, "strict?": true}});
    json!({
        "model": {"$one": ["m", "a/m:eu", "$text"]},
        "messages": [message, message, message],
        "stream?": {"$one": [true, false, null]}, "stream_options?": {"include_usage": true},
        "temperature?": "$number", "top_p?": 0.5, "n?": {"$one": [1, 2, "$int"]}, "seed?": "$int",
        "max_tokens?": {"$one": [16, "$int"]}, "max_completion_tokens?": 16, "stop?": {"$one": ["x", ["a", "b"], null]},
        "tools?": [tool], "tool_choice?": {"$one": ["auto", "none", "required", {"type": "function", "function": {"name": "f"}}]},
        "parallel_tool_calls?": false, "response_format?": {"$one": [{"type": "json_object"}, {"type": "text"},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict?": true}}]},
        "reasoning_effort?": {"$one": ["low", "none", "max"]}, "reasoning?": {"effort": "high"}, "user?": "$text",
        "logprobs?": true, "top_logprobs?": 2, "presence_penalty?": 0, "metadata?": {"a": "b"}, "routing?": {"strategy": "price"},
        "models?": ["other"], "some_unknown_member?": "$any",
    })
}

/// A body of a chat request, damaged or not.
fn chat(choices: &mut Choices<'_>) -> Vec<u8> {
    let body = grammar::compose(choices, &chat_grammar());
    let body = damage::tree(choices, body);
    let body = grammar::write(choices, &body);
    if choices.once_in(2) {
        damage::bytes(choices, body)
    } else {
        body
    }
}

/// Checks that a text is JSON.
pub fn json(bytes: &[u8]) {
    let read = serde_json::from_slice::<IgnoredAny>(bytes);
    assert!(
        read.is_ok(),
        "{:?} {}",
        read.err(),
        String::from_utf8_lossy(bytes)
    );
}

/// The bytes of a body that is whole in memory.
pub fn in_memory(slices: Vec<BodySlice>) -> Vec<u8> {
    let bytes = slices.into_iter().map(|slice| match slice {
        BodySlice::Bytes(bytes) => bytes,
        BodySlice::Upload(range) => panic!("{range:?} is not in memory"),
    });
    bytes.collect::<Vec<_>>().concat()
}

/// What has to hold of every accepted request on every wire.
pub fn encodes(request: &ModelRequest, quirks: &Quirks) {
    json(&request.source.body);
    for wire in WIRES {
        let (wire, target) = (wire.wire(), target(quirks));
        let Some(codec) = wire.codec(request.payload.operation()) else {
            continue;
        };
        let _ = codec.max_output(request, &target);
        if let Ok(slices) = codec.encode(request, &target) {
            let body = in_memory(slices);
            json(&body);
            let again = codec.encode(request, &target).unwrap();
            assert_eq!(body, in_memory(again));
        }
    }
}

#[test]
fn an_accepted_chat_is_json_on_every_wire() {
    let grammar = chat_grammar();
    let counted = std::cell::Cell::new((0, 0));
    run("models: chat requests", |choices| {
        let body = match choices.below(8) {
            0 => {
                let body = grammar::compose(choices, &grammar);
                grammar::write(choices, &body)
            }
            _ => chat(choices),
        };
        let (all, good) = counted.get();
        match ChatCompletions.parse(body.clone().into()) {
            Ok(request) => {
                counted.set((all + 1, good + 1));
                let tree: Value = serde_json::from_slice(&body).unwrap_or_default();
                if let Some(model) = tree["model"].as_str() {
                    assert_eq!(&*request.model, model);
                }
                let quirks = if choices.once_in(2) {
                    quirks(choices)
                } else {
                    Quirks::default()
                };
                encodes(&request, &quirks);
            }
            Err(fault) => {
                counted.set((all + 1, good));
                assert!((400..500).contains(&fault.status()), "{fault:?}");
                json(&fault.compatible_body());
            }
        }
    });
    let (all, good) = counted.get();
    assert!(
        good * 20 > all,
        "the grammar makes what is refused: {good} of {all}"
    );
}

#[test]
fn accepted_embeddings_are_json_on_every_wire() {
    let grammar = json!({
        "model": {"$one": ["m", "$text"]},
        "input": {"$one": ["Hi", "$text", ["a", "b"], {"$many": "$text"}, [1, 2], [[1], [2, 3]], {"$many": "$int"}]},
        "dimensions?": {"$one": [8, "$int"]}, "encoding_format?": {"$one": ["float", "base64"]}, "user?": "$text", "unknown?": "$any",
    });
    run("models: embeddings requests", |choices| {
        let body = grammar::compose(choices, &grammar);
        let body = damage::tree(choices, body);
        let body = grammar::write(choices, &body);
        let body = damage::bytes(choices, body);
        match EMBEDDINGS.parse(body.into()) {
            Ok(request) => encodes(&request, &quirks(choices)),
            Err(fault) => assert!((400..500).contains(&fault.status()), "{fault:?}"),
        }
    });
}

#[test]
fn accepted_requests_for_images_are_json_on_every_wire_or_a_form() {
    let url = json!({"$one": ["https://a.example/x.png", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB", "$text"]});
    let grammar = json!({
        "prompt": {"$one": ["A cat", "$text"]}, "model?": {"$one": ["m", "$text", null]}, "n?": {"$one": [1, 10, "$int"]},
        "images?": {"$one": [[{"image_url": url}], [{"image_url": url}, {"image_url": url}]]},
        "size?": {"$one": ["1024x1024", "2K", "$text"]}, "aspect_ratio?": {"$one": ["3:2", "$text"]}, "quality?": "high",
        "background?": "opaque", "output_format?": {"$one": ["jpeg", "png"]}, "output_compression?": {"$one": [50, "$int"]},
        "moderation?": "low", "service_tier?": "flex", "stream?": {"$one": [true, false]}, "user?": "$text", "unknown?": "$any",
    });
    run("models: image requests", |choices| {
        let body = grammar::compose(choices, &grammar);
        let body = damage::tree(choices, body);
        let body = grammar::write(choices, &body);
        let body = damage::bytes(choices, body);
        let front: &dyn Front = match choices.once_in(2) {
            true => &ImageEdits,
            false => &ImageGenerations,
        };
        match front.parse(body.into()) {
            Ok(request) => {
                encodes(&request, &quirks(choices));
                let quirks = Quirks::default();
                for wire in [WireKind::Images, WireKind::ImagesByRatio] {
                    let operation = request.payload.operation();
                    let codec = wire.wire().codec(operation).unwrap();
                    let sent = codec.encode(&request, &target(&quirks)).map(in_memory);
                    let is_form = wire == WireKind::Images && operation == Operation::ImageEdits;
                    match sent {
                        Ok(body) if is_form => assert!(body.ends_with(b"--\r\n")),
                        Ok(body) => json(&body),
                        Err(fault) => assert_eq!(fault.status(), 400, "{fault:?}"),
                    }
                }
            }
            Err(fault) => assert!((400..500).contains(&fault.status()), "{fault:?}"),
        }
    });
}

#[test]
fn a_form_is_read_or_refused() {
    run("models: forms", |choices| {
        let mut form = Vec::new();
        for _ in 0..choices.below(5) {
            let name = *choices.pick(&["prompt", "n", "image[]", "mask", "stream", "x\\\"y"]);
            let file = *choices.pick(&["", "; filename=\"a;b.png\"", "; filename=c"]);
            let text = choices.text();
            let content = *choices.pick(&["A cat", "2", "iVBOR", "\r\n--", &text]);
            let part = format!(
                "--b\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{content}\r\n"
            );
            form.extend_from_slice(part.as_bytes());
        }
        form.extend_from_slice(b"--b--\r\n");
        let form = damage::bytes(choices, form);
        let _ = multipart::parts(&form, "b");
        match ImageEdits.read_form(&form.into(), "b") {
            Ok(Received::Complete(request)) => encodes(&request, &Quirks::default()),
            Ok(other) => panic!("no prompts here: {other:?}"),
            Err(fault) => assert!((400..500).contains(&fault.status()), "{fault:?}"),
        }
    });
}

/// Finds models of a catalogue by any name; returns how many candidates they have.
pub fn names() -> impl Fn(&str, Operation) -> Result<usize, Fault> {
    let models = json!({"models": [
        {"id": "m", "aliases": ["nick"], "providers": [{"provider": "a", "name": "m-up", "input_price": "1", "output_price": "2", "regions": ["eu"]}]},
        {"id": "org/slashed", "providers": [{"provider": "b", "name": "slashed:8b", "input_price": "3", "output_price": "3"}]},
        {"id": "vec", "type": "embedding", "providers": [{"provider": "a", "name": "vec-up", "input_price": "1"}]},
    ]});
    let names = || ["a", "b", "local"].into_iter().collect::<ProviderNames>();
    let catalog = Catalog::check(serde_json::from_value(models).unwrap(), names()).unwrap();
    let on = names().set(["a", "b", "local"]);
    move |name, operation| {
        let auto = ["m".to_owned()];
        let found = resolve(name, operation, &catalog, &on, &auto, 1_800_000_000)?;
        Ok(found.candidates.len())
    }
}

#[test]
fn any_name_of_a_model_is_found_or_refused() {
    let find = names();
    run("models: names", |choices| {
        const PARTS: [&str; 16] = [
            "m",
            "a/",
            "b/",
            "local/",
            "nick",
            ":eu",
            "slashed:8b",
            "org/slashed",
            "auto",
            "vec",
            "/",
            ":",
            "m-up",
            "..",
            "%00",
            "\r\n",
        ];
        let mut name: String = (0..1 + choices.below(4))
            .map(|_| *choices.pick(&PARTS))
            .collect();
        if choices.once_in(8) {
            name.push_str(&choices.text().repeat(1000));
        }
        for operation in [
            Operation::Chat,
            Operation::Embeddings,
            Operation::Rerank,
            Operation::Moderations,
            Operation::Speech,
        ] {
            match find(&name, operation) {
                Ok(count) => assert!(count > 0, "{name}"),
                Err(fault) => assert!(matches!(fault.status(), 400 | 404 | 410), "{fault:?}"),
            }
        }
    });
}

/// The grammar of catalogues.
pub fn catalog_grammar() -> Value {
    json!({"models": [{
        "id": {"$one": ["m", "a/m", "$text"]}, "type?": {"$one": ["text", "embedding", "$text"]}, "aliases?": {"$many": "$text"}, "created?": {"$one": ["2026-01-01", "$text"]},
        "providers": [{"provider": "a", "name": "up", "input_price?": {"$one": ["1.5", "$text"]}, "output_price?": "2", "context_size?": "$int", "max_output?": "$int",
            "regions?": {"$many": "$text"}, "capabilities?": {"$many": {"$one": ["tools", "streaming", "vision"]}}, "deactivated_at?": "2026-02-30"}],
    }]})
}

#[test]
fn a_catalogue_is_checked_or_refused() {
    let grammar = catalog_grammar();
    run("models: catalogue", |choices| {
        let written = grammar::compose(choices, &grammar);
        let written = damage::tree(choices, written);
        let Ok(written) = serde_json::from_value::<CatalogFile>(written) else {
            return;
        };
        if let Err(problems) = Catalog::check(written, ["a", "b"].into_iter().collect()) {
            assert!(!problems.is_empty());
        }
    });
}

#[test]
fn a_data_url_is_its_parts() {
    run("models: data URLs", |choices| {
        const PARTS: [&str; 12] = [
            "data:",
            "image/png",
            ";base64,",
            "aGk=",
            ";charset=utf-8",
            ",",
            "%20",
            "DATA:",
            ";",
            "=",
            "é",
            "",
        ];
        let url: String = (0..choices.below(8))
            .map(|_| *choices.pick(&PARTS))
            .collect();
        let url = damage::bytes(choices, url.into_bytes());
        let url = String::from_utf8_lossy(&url);
        if let Some(parsed) = data_url::parse(&url) {
            assert!(
                url[..5].eq_ignore_ascii_case("data:") && parsed.data.len() <= 2 * url.len(),
                "{url}"
            );
        }
    });
}

#[test]
fn a_credential_that_a_provider_quotes_does_not_pass() {
    const SECRETS: [&str; 5] = [
        "hunter2hunter2",
        "sk-proj-abc123def",
        "correct horse, battery",
        "p@ss/w0rd+x1",
        "https://internal.example:8443/v1",
    ];
    run("models: quoted credentials", |choices| {
        let secret = *choices.pick(&SECRETS);
        let shown = match choices.below(3) {
            0 => secret.to_owned(),
            1 => secret.to_uppercase(),
            _ => form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
        };
        let (before, after) = (choices.text(), choices.text());
        let message = format!("{before} {shown} {after}");
        let body = json!({"error": {"message": message, "code": *choices.pick(&["invalid_api_key", &shown]), "param": message, "type": "x"}});
        let body = grammar::write(choices, &body);
        let status = *choices.pick(&[400, 401, 403, 422, 429, 500]);
        for wire in WIRES {
            let failure: Failure = wire.wire().classify(status, &body).scrubbed(&[secret]);
            let told = format!("{} {:?} {:?}", failure.message, failure.code, failure.param)
                .to_lowercase();
            assert!(!told.contains(&shown.to_lowercase()), "{shown} in {told}");
            let mut cause = Vec::new();
            failure.write_cause(&mut cause);
            json(&cause);
        }
    });
}
