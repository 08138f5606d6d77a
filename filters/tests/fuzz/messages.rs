//! Messages: requests on every wire, and answers of every wire in this front's events.

use filters::models::front::Front;
use filters::models::fronts::messages::{Messages, count_tokens};
use filters::models::request::ModelRequest;
use filters::models::wires::WireKind;
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::grammars::messages::{StreamEnd, events, fold};
use crate::streams::{keep_the_grammar, pass, requests, whole_replies};

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
    requests(
        "messages: requests",
        &Messages,
        &grammar,
        |body, _, _| match count_tokens(body.to_vec().into()) {
            Ok(counted) => assert!(counted.estimate > 0),
            Err(fault) => assert_eq!(fault.status(), 400, "{fault:?}"),
        },
    );
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

fn keeps_the_grammar(name: &str, wire: WireKind) {
    keep_the_grammar(name, wire, request, |stream, is_whole| {
        let folded = events(stream).and_then(|events| fold(events.into_iter(), input))?;
        let end = match is_whole {
            true => StreamEnd::Whole,
            false => StreamEnd::Error,
        };
        let calls = folded.message["content"].as_array();
        let has_calls = calls.map(|calls| calls.iter().any(|block| block["type"] == "tool_use"));
        let reason = &folded.message["stop_reason"];
        let fits = has_calls.is_none_or(|has_calls| {
            (reason != "tool_use" || has_calls) && (reason != "end_turn" || !has_calls)
        });
        match folded.end == end && fits {
            true => Ok(()),
            false => Err("another end than that of the reply".to_owned()),
        }
    });
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

#[test]
fn streams_of_the_own_dialect_pass_however_they_are_cut() {
    pass("messages: own events", WireKind::Messages, request);
}

#[test]
fn a_whole_answer_of_any_wire_is_a_message_or_a_failure() {
    let name = "messages: whole replies";
    whole_replies(name, WireKind::Messages, request, |message, is_foreign| {
        let holds = message["content"].is_array() && message["usage"]["input_tokens"].is_u64();
        !is_foreign || holds
    });
}
