//! Messages: requests on every wire, and answers of every wire in this front's events.

use filters::models::front::Front;
use filters::models::fronts::messages::{Messages, count_tokens};
use filters::models::request::ModelRequest;
use filters::models::wires::{Quirks, WireKind};
use filters::sse::{EventReader, SseEvent, TooLong};
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::grammars::messages::{StreamEnd, events, fold};
use crate::models::{WIRES, encodes, quirks};
use crate::run::run;
use crate::wires::{EVENTS, WHOLE, answer, grammars, stream};
use crate::{damage, grammar};

pub fn request_grammar() -> Value {
    let cached = json!({"type": "ephemeral", "ttl?": {"$one": ["5m", "1h", "$text"]}});
    let image = json!({"type": "image", "source": {"$one": [
        {"type": "base64", "media_type": {"$one": ["image/png", "$text"]}, "data": {"$one": ["AAE=", "$text"]}},
        {"type": "url", "url": {"$one": ["https://a.example/x.png", "$text"]}}, {"type": "file", "file_id": "$text"}, "$any"]}});
    let document = json!({"type": "document", "title?": "$text", "citations?": {"enabled": true}, "source": {"$one": [
        {"type": "base64", "media_type": "application/pdf", "data": "aGk="}, {"type": "text", "media_type": "text/plain", "data": "$text"},
        {"type": "content", "content": "$any"}, {"type": "url", "url": "$text"}]}});
    let text = json!({"type": "text", "text": {"$one": ["Hi", "$text"]}, "cache_control?": cached, "citations?": "$any"});
    let inner = json!({"$one": [text, image, document, {"type": "tool_reference", "tool_name": "f"}, {"type": "search_result", "source": "u", "title": "t", "content": [text]}]});
    let result = json!({"type": "tool_result", "tool_use_id": {"$one": ["t1", "$text"]}, "is_error?": {"$one": [true, "$any"]}, "content?": {"$one": ["42", "$text", [inner], []]}});
    let block = json!({"$one": [text, text, image, document, result, {"type": "tool_use", "id": {"$one": ["t1", "$text"]}, "name": "f", "input": {"$one": [{}, {"a": 1}, "$any"]}},
        {"type": "thinking", "thinking": "hm", "signature": {"$one": ["sig", "", "$text"]}}, {"type": "redacted_thinking", "data": "$text"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "web_search_tool_result", "tool_use_id": "s", "content": "$any"}, {"type": "$text"}, "$any"]});
    let message = json!({"role": {"$one": ["user", "user", "assistant", "assistant", "system", "$text"]}, "content": {"$one": ["Hi", "$text", {"$many": block}, [text, block]]}});
    let tool = json!({"$one": [
        {"name": {"$one": ["f", "$text"]}, "description?": "$text", "input_schema": {"type": "object", "properties?": "$any"}, "defer_loading?": true, "strict?": true, "cache_control?": cached},
        {"type": {"$one": ["bash_20250124", "text_editor_20250728", "web_search_20250305", "code_execution_20250825", "tool_search_tool_regex_20251119", "$text"]}, "name": "$text", "max_uses?": "$int", "allowed_domains?": ["a.example"]},
    ]});
    json!({
        "model": {"$one": ["m", "$text"]}, "max_tokens": {"$one": [16, 1024, "$int"]},
        "system?": {"$one": ["Be brief.", "$text", [text, text], [{"type": "text", "text": "x-anthropic-billing-header: a"}, text]]},
        "messages": {"$one": [[message], [message, message, message], {"$many": message}]},
        "stream?": true, "stop_sequences?": {"$one": [["x"], ["$text", " "], {"$many": "$text"}]}, "temperature?": "$number", "top_p?": 0.5, "top_k?": "$int",
        "tools?": {"$many": tool}, "tool_choice?": {"$one": [{"type": "auto"}, {"type": "any", "disable_parallel_tool_use?": true}, {"type": "tool", "name": "f"}, {"type": "none"}, "$any"]},
        "thinking?": {"$one": [{"type": "enabled", "budget_tokens": {"$one": [1024, "$int"]}}, {"type": "adaptive", "display?": "$text"}, {"type": "disabled"}, "$any"]},
        "output_config?": {"effort?": {"$one": ["low", "max", "$text"]}, "format?": {"type": "json_schema", "schema": {"type": "object"}}},
        "metadata?": {"user_id": "$text"}, "service_tier?": "auto", "container?": "$any", "mcp_servers?": "$any", "context_management?": "$any", "unknown?": "$any",
    })
}

#[test]
fn an_accepted_request_is_json_on_every_wire_and_has_tokens() {
    let grammar = request_grammar();
    let counted = std::cell::Cell::new((0_u32, 0_u32));
    run("messages: requests", |choices| {
        let body = grammar::compose(choices, &grammar);
        let is_damaged = !choices.once_in(4);
        let body = match is_damaged {
            true => damage::tree(choices, body),
            false => body,
        };
        let body = grammar::write(choices, &body);
        let body = match is_damaged && choices.once_in(2) {
            true => damage::bytes(choices, body),
            false => body,
        };
        let (all, good) = counted.get();
        counted.set((all + 1, good));
        match count_tokens(body.clone().into()) {
            Ok(counted) => assert!(counted.estimate > 0),
            Err(fault) => assert_eq!(fault.status(), 400, "{fault:?}"),
        }
        match Messages.parse(body.into()) {
            Ok(request) => {
                counted.set((all + 1, good + 1));
                encodes(&request, &quirks(choices));
            }
            Err(fault) => assert_eq!(fault.status(), 400, "{fault:?}"),
        }
    });
    let (all, good) = counted.get();
    assert!(good * 20 > all, "{good} of {all} are accepted");
}

fn request(choices: &mut Choices<'_>, is_stream: bool) -> ModelRequest {
    let mut body = json!({"model": "m", "max_tokens": 64, "stream": is_stream, "messages": [{"role": "user", "content": "Hi"}]});
    if choices.once_in(2) {
        body["stop_sequences"] = json!(["wo", "rd"]);
    }
    if choices.once_in(2) {
        body["tools"] = json!([{"name": "f", "input_schema": {"type": "object"}}]);
    }
    Messages.parse(body.to_string().into()).unwrap()
}

/// What a client reads, where it does not fail: objects that were cut are no rule of the stream.
fn input(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
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
        let (request, quirks) = (request(choices, true), Quirks::default());
        let (out, ended) = answer(wire, &request, &quirks, &EVENTS, &[&said]);
        let shown = || {
            let (said, out) = (
                String::from_utf8_lossy(&said),
                String::from_utf8_lossy(&out),
            );
            format!("{said}\nmade {out}")
        };
        let text = std::str::from_utf8(&out).unwrap();
        let folded = events(text).and_then(|events| fold(events.into_iter(), input));
        let folded = folded.unwrap_or_else(|why| panic!("{why}\nfrom {}", shown()));
        let end = match ended.is_ok() {
            true => StreamEnd::Whole,
            false => StreamEnd::Error,
        };
        assert_eq!(folded.end, end, "{}", shown());
        if let Some(calls) = folded.message["content"].as_array() {
            let has_calls = calls.iter().any(|block| block["type"] == "tool_use");
            let reason = &folded.message["stop_reason"];
            assert!(reason != "tool_use" || has_calls, "{}", shown());
            assert!(reason != "end_turn" || !has_calls, "{}", shown());
        }
        let pieces = choices.cut(&said);
        let (again, ended_again) = answer(wire, &request, &quirks, &EVENTS, &pieces);
        assert_eq!(text, String::from_utf8_lossy(&again), "{}", shown());
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
    keeps_the_grammar("messages: openai, events", WireKind::Compatible);
}

#[test]
fn streams_of_the_responses_wire_keep_the_grammar() {
    keeps_the_grammar("messages: responses, events", WireKind::Responses);
}

#[test]
fn streams_of_the_google_wire_keep_the_grammar() {
    keeps_the_grammar("messages: google, events", WireKind::Contents);
}

/// Events of the own dialect pass as they came, and are events however they are cut.
#[test]
fn streams_of_the_own_dialect_pass_however_they_are_cut() {
    let (events_grammar, _) = grammars(WireKind::Messages);
    run("messages: own events", |choices| {
        let said = stream(choices, WireKind::Messages, &events_grammar);
        let said = damage::bytes(choices, said);
        let (request, quirks) = (request(choices, true), Quirks::default());
        let (out, ended) = answer(WireKind::Messages, &request, &quirks, &EVENTS, &[&said]);
        let mut reader = EventReader::default();
        let mut check = |event: SseEvent<'_>| {
            let read = serde_json::from_slice::<Value>(event.data);
            assert!(read.is_ok(), "{}", String::from_utf8_lossy(&out));
            Ok::<(), TooLong>(())
        };
        reader.feed(&out, &mut check).unwrap();
        reader.finish(check).unwrap();
        let pieces = choices.cut(&said);
        let again = answer(WireKind::Messages, &request, &quirks, &EVENTS, &pieces);
        assert_eq!((out, ended), again, "{}", String::from_utf8_lossy(&said));
    });
}

#[test]
fn a_whole_answer_of_any_wire_is_a_message_or_a_failure() {
    run("messages: whole replies", |choices| {
        let wire = *choices.pick(&WIRES);
        let (_, grammar) = grammars(wire);
        let body = grammar::compose(choices, &grammar);
        let body = damage::tree(choices, body);
        let body = grammar::write(choices, &body);
        let (request, quirks) = (request(choices, false), Quirks::default());
        let (out, ended) = answer(wire, &request, &quirks, &WHOLE, &[&body]);
        if ended.is_ok() {
            let message: Value = serde_json::from_slice(&out).unwrap();
            let is_foreign = wire != WireKind::Messages;
            let holds = message["content"].is_array() && message["usage"]["input_tokens"].is_u64();
            assert!(!is_foreign || holds, "{message}");
            assert!(message["weirgate"]["metadata"].is_object(), "{message}");
        }
    });
}
