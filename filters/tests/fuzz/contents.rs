//! Contents: requests on every wire, and answers of every wire in the chunks of this front.

use filters::models::front::{ClientHead, Front};
use filters::models::fronts::content_embeddings::{BATCH_EMBED, EMBED};
use filters::models::fronts::contents::{GENERATE, STREAM_GENERATE, count_tokens};
use filters::models::request::ModelRequest;
use filters::models::wires::{Quirks, WireKind};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::grammars::contents::{StreamEnd, chunks, fold};
use crate::models::{WIRES, encodes, quirks};
use crate::run::run;
use crate::wires::{EVENTS, WHOLE, answer, grammars, stream};
use crate::{damage, grammar};

pub fn request_grammar() -> Value {
    let signature = json!({"$one": ["c2ln", "", "skip_thought_signature_validator", "WGS1MAAAAAAAAAAAAAAAAAAAAAAAAAAAc2ln", "$text"]});
    let media = json!({"$one": [
        {"mimeType": {"$one": ["image/png", "image/svg+xml", "$text"]}, "data": {"$one": ["iVBORw0KGgo=", "$text"]}},
        {"mime_type": {"$one": ["audio/wav", "audio/mpeg", "video/mp4"]}, "data": "AAAA"},
        {"mimeType": {"$one": ["application/pdf", "text/plain"]}, "data": "aGk=", "displayName?": "$text"}]});
    let file = json!({"fileUri": {"$one": ["https://a.example/x.png", "files/abc", "gs://a/b", "$text"]}, "mimeType?": {"$one": ["image/png", "application/pdf", "$text"]}});
    let id = json!({"$one": ["c1", "c2", "", "$text"]});
    let name = json!({"$one": ["f", "f", "g", "$text"]});
    let part = json!({"$one": [
        {"text": {"$one": ["Hi", "", "$text"]}, "thought?": {"$one": [true, false]}, "thoughtSignature?": signature},
        {"text": "$text"}, {"inlineData": media}, {"inline_data": media, "videoMetadata?": {}}, {"fileData": file},
        {"functionCall": {"id?": id, "name": name, "args?": {"$one": [{}, {"a": 1}, "$any"]}}, "thought_signature?": signature},
        {"functionResponse": {"id?": id, "name": name, "response?": {"$one": [{}, {"output": "$text"}, {"error": "$text"}, "$any"]}, "parts?": {"$many": {"inlineData": media}}}},
        {"executableCode": "$any"}, {"toolCall": "$any"}, {}, "$any"]});
    let parts = json!({"$one": [{"$many": part}, [part, part], part]});
    let content =
        json!({"role?": {"$one": ["user", "model", "model", "function", "$text"]}, "parts": parts});
    let schema = json!({"$one": [{"type": "OBJECT", "properties?": {"a": {"type": "STRING", "nullable?": true}, "b?": "$any"}}, {"type": "object"}, "$any"]});
    let function = json!({"name": name, "description?": "$text", "parameters?": schema, "parametersJsonSchema?": {"type": "object"}});
    let tool = json!({"$one": [{"functionDeclarations": {"$many": function}}, {"function_declarations": [function]}, {"googleSearch": {"excludeDomains?": ["a.example"]}}, {"google_search": {}}, {"codeExecution": {}}, "$any"]});
    let thinking = json!({"includeThoughts?": {"$one": [true, false]}, "thinkingBudget?": {"$one": [0, -1, 512, "$int"]}, "thinking_level?": {"$one": ["LOW", "high", "$text"]}});
    let config = json!({
        "temperature?": "$number", "topP?": 0.5, "top_k?": "$int", "candidateCount?": {"$one": [1, 2, "$int"]}, "maxOutputTokens?": {"$one": [16, 1024, "$int"]},
        "stopSequences?": {"$one": [["END"], ["$text", ""], "$any"]}, "responseMimeType?": {"$one": ["application/json", "text/plain", "$text"]},
        "responseSchema?": schema, "response_json_schema?": {"type": "object"}, "seed?": "$int", "presencePenalty?": 0.5, "thinkingConfig?": thinking,
        "responseModalities?": {"$one": [["TEXT"], ["TEXT", "IMAGE"], ["$text"]]}, "unknown?": "$any"});
    json!({
        "model": {"$one": ["m", "m", "$text"]}, "stream?": {"$one": ["sse", "array", Value::Null]},
        "contents": {"$one": [[content], [content, content, content], {"$many": content}, content]},
        "systemInstruction?": content, "tools?": {"$one": [{"$many": tool}, tool]},
        "toolConfig?": {"functionCallingConfig": {"mode?": {"$one": ["AUTO", "ANY", "NONE", "VALIDATED", "$text"]}, "allowedFunctionNames?": {"$one": [["f"], ["$text"]]}}},
        "generation_config?": config, "safetySettings?": [{"category": "$text"}], "labels?": {"a": "$text"}, "serviceTier?": {"$one": ["flex", "$text"]},
        "routing?": "price", "unknown?": "$any",
    })
}

fn composed(choices: &mut Choices<'_>, grammar: &Value) -> Vec<u8> {
    let body = grammar::compose(choices, grammar);
    let is_damaged = !choices.once_in(4);
    let body = match is_damaged {
        true => damage::tree(choices, body),
        false => body,
    };
    let body = grammar::write(choices, &body);
    match is_damaged && choices.once_in(2) {
        true => damage::bytes(choices, body),
        false => body,
    }
}

#[test]
fn an_accepted_request_is_json_on_every_wire() {
    let grammar = request_grammar();
    let counted = std::cell::Cell::new((0_u32, 0_u32));
    run("contents: requests", |choices| {
        let body = composed(choices, &grammar);
        let (all, good) = counted.get();
        counted.set((all + 1, good));
        match GENERATE.parse(body.into()) {
            Ok(request) => {
                counted.set((all + 1, good + 1));
                encodes(&request, &quirks(choices));
            }
            Err(fault) => assert_eq!(fault.status(), 400, "{fault:?}"),
        }
    });
    let (all, good) = counted.get();
    assert!(good * 40 > all, "{good} of {all} are accepted");
}

#[test]
fn heads_and_bodies_of_any_form_are_taken_or_refused() {
    let (headers, grammar) = (HeaderMap::new(), request_grammar());
    run("contents: heads", |choices| {
        let body = composed(choices, &grammar);
        let mark = choices.pick(&["generateContent", "x", "", ":a", "%3Ax"]);
        let path = format!(
            "/v1beta/models/{}:{mark}",
            choices.pick(&["m", "", "a/b", "%", "é"])
        );
        let queries = ["", "alt=sse", "alt=json", "alt=%", "key=a&alt"];
        let query = *choices.pick(&queries);
        let head = ClientHead {
            path: &path,
            query,
            headers: &headers,
        };
        for front in [
            &GENERATE as &dyn Front,
            &STREAM_GENERATE,
            &EMBED,
            &BATCH_EMBED,
        ] {
            if let Err(fault) = front.read(&head, body.clone().into()) {
                assert_eq!(fault.status(), 400, "{fault:?}");
            }
        }
        if let Err(fault) = count_tokens(&head, body.into()) {
            assert_eq!(fault.status(), 400, "{fault:?}");
        }
    });
}

fn request(choices: &mut Choices<'_>, form: Option<&str>) -> ModelRequest {
    let mut body = json!({"model": "m", "stream": form, "contents": [{"parts": [{"text": "Hi"}]}]});
    if choices.once_in(2) {
        body["generationConfig"] =
            json!({"stopSequences": ["word"], "thinkingConfig": {"includeThoughts": true}});
    }
    GENERATE.parse(body.to_string().into()).unwrap()
}

/// Answers of a wire of another dialect keep the grammar, however they are cut and wherever they end.
fn keeps_the_grammar(name: &str, wire: WireKind) {
    let (events_grammar, _) = grammars(wire);
    let done = std::cell::Cell::new((0_u32, 0_u32));
    run(name, |choices| {
        let said = stream(choices, wire, &events_grammar);
        let said = match choices.once_in(2) {
            true => damage::bytes(choices, said),
            false => said,
        };
        let form = *choices.pick(&["sse", "array"]);
        let (request, quirks) = (request(choices, Some(form)), Quirks::default());
        let (out, ended) = answer(wire, &request, &quirks, &EVENTS, &[&said]);
        let text = std::str::from_utf8(&out).unwrap();
        let shown = || format!("{}\nmade {text}", String::from_utf8_lossy(&said));
        let list: Vec<String> = match form {
            "sse" => chunks(text)
                .unwrap()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            _ => {
                let list: Vec<Value> = serde_json::from_str(text).unwrap();
                list.iter().map(Value::to_string).collect()
            }
        };
        let end = fold(list.iter().map(String::as_str));
        let end = end.unwrap_or_else(|why| panic!("{why}\nfrom {}", shown()));
        let has_failed = matches!(end, Some(StreamEnd::Error(..)));
        assert_eq!(
            (has_failed, end.is_some()),
            (ended.is_err(), true),
            "{}",
            shown()
        );
        let pieces = choices.cut(&said);
        let (again, ended_again) = answer(wire, &request, &quirks, &EVENTS, &pieces);
        let joined = |out: &[u8]| String::from_utf8_lossy(out).into_owned();
        assert_eq!(joined(&out), joined(&again), "{}", shown());
        assert_eq!(ended, ended_again);
        let (all, good) = done.get();
        done.set((all + 1, good + u32::from(ended.is_ok())));
    });
    let (all, good) = done.get();
    assert!(
        good * 20 > all,
        "the grammar makes what is refused: {good} of {all}"
    );
}

#[test]
fn streams_of_the_openai_wire_keep_the_grammar() {
    keeps_the_grammar("contents: openai, events", WireKind::Compatible);
}

#[test]
fn streams_of_the_anthropic_wire_keep_the_grammar() {
    keeps_the_grammar("contents: anthropic, events", WireKind::Messages);
}

#[test]
fn streams_of_the_responses_wire_keep_the_grammar() {
    keeps_the_grammar("contents: responses, events", WireKind::Responses);
}

/// Chunks of the own dialect pass as they came, and are events however they are cut.
#[test]
fn streams_of_the_own_dialect_pass_however_they_are_cut() {
    let (events_grammar, _) = grammars(WireKind::Contents);
    run("contents: own events", |choices| {
        let said = stream(choices, WireKind::Contents, &events_grammar);
        let said = damage::bytes(choices, said);
        let (request, quirks) = (request(choices, Some("sse")), Quirks::default());
        let (out, ended) = answer(WireKind::Contents, &request, &quirks, &EVENTS, &[&said]);
        let text = std::str::from_utf8(&out).unwrap();
        for data in chunks(text).unwrap() {
            let read = serde_json::from_str::<Value>(data);
            assert!(read.is_ok(), "{text}");
        }
        let pieces = choices.cut(&said);
        let again = answer(WireKind::Contents, &request, &quirks, &EVENTS, &pieces);
        assert_eq!((out, ended), again, "{}", String::from_utf8_lossy(&said));
    });
}

#[test]
fn a_whole_answer_of_any_wire_is_a_response_or_a_failure() {
    run("contents: whole replies", |choices| {
        let wire = *choices.pick(&WIRES);
        let (_, grammar) = grammars(wire);
        let body = grammar::compose(choices, &grammar);
        let body = damage::tree(choices, body);
        let body = grammar::write(choices, &body);
        let (request, quirks) = (request(choices, None), Quirks::default());
        let (out, ended) = answer(wire, &request, &quirks, &WHOLE, &[&body]);
        if ended.is_ok() {
            let response: Value = serde_json::from_slice(&out).unwrap();
            let is_foreign = wire != WireKind::Contents;
            let usage = &response["usageMetadata"]["promptTokenCount"];
            let holds = response["candidates"].is_array() && usage.is_u64();
            assert!(!is_foreign || holds, "{response}");
            assert!(response["weirgate"]["metadata"].is_object(), "{response}");
        }
    });
}
