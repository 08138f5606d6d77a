//! Replies of providers: the same answer however they are cut, and what the client gets is always well-formed.

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::fronts::embeddings::EMBEDDINGS;
use filters::models::fronts::images::ImageGenerations;
use filters::models::metadata::{AnswerMembers, Metadata, UsedNames};
use filters::models::operation::Operation;
use filters::models::reply::{ReplyIdentity, Writer};
use filters::models::request::ModelRequest;
use filters::models::usage::Settlement;
use filters::models::wires::quirks::ReasoningReplay;
use filters::models::wires::{
    EventFraming, Failure, Progress, Quirks, ReplyHead, WireKind, decode_reply,
};
use filters::sse::{EventReader, SseEvent, TooLong};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::models::{WIRES, target};
use crate::run::run;
use crate::{clouds, cohere, converse, damage, grammar};

fn openai_event() -> Value {
    let call = json!({"index": {"$one": [0, 1, 3, "$int"]}, "id?": {"$one": ["call_1", "", null]}, "type?": "function",
        "function": {"name?": {"$one": ["f", null, ""]}, "arguments": {"$one": ["", "{\"a\"", ":1}", "$text"]}}});
    let delta = json!({"$one": [
        {"content": {"$one": ["Hi", "$text"]}}, {"role": "assistant", "content": "", "refusal": null}, {"reasoning_content": "$text"},
        {"reasoning": "hm"}, {"tool_calls": [call]}, {"content": null}, {}, {"refusal": "no"}, {"reasoning_details": [{"type": "x", "text": "$text"}]},
    ]});
    let choice = json!({"index": {"$one": [0, 0, 0, 1, "$int"]}, "delta": delta, "finish_reason": {"$one": [null, null, null, "stop", "tool_calls", "$text"]},
        "logprobs?": {"content": []}});
    let usage = json!({"$one": [null, {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8},
        {"prompt_tokens": "$int", "completion_tokens": "$int", "prompt_tokens_details?": {"cached_tokens": "$int"}, "completion_tokens_details?": {"reasoning_tokens": "$int"}}]});
    json!({"$one": [
        {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [choice]},
        {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [{"index": 0, "delta": {"content": "$text"}, "finish_reason": null}]},
        {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [{"index": 0, "delta": {"content": " word"}, "finish_reason": null}], "obfuscation?": "x"},
        {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [], "usage": usage},
        {"id": "c1", "choices": [choice, choice], "usage?": usage, "system_fingerprint?": "fp"},
        {"error": {"message": "$text", "code?": {"$one": [429, "rate_limit_exceeded"]}}},
    ]})
}

fn text_choice() -> Value {
    let logprobs = json!({"$one": [null, {"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": [{"a": -0.5}], "text_offset": [0]}, "$any"]});
    json!({"index": {"$one": [0, 0, 0, 1, "$int"]}, "text": {"$one": ["Hi", " word", "", "$text"]}, "logprobs?": logprobs,
        "finish_reason": {"$one": [null, null, null, "stop", "length", "$text"]}, "stop_reason?": "$any"})
}

fn text_event() -> Value {
    let usage =
        json!({"prompt_tokens": "$int", "completion_tokens": "$int", "total_tokens?": "$int"});
    json!({"$one": [
        {"id": "c1", "object": "text_completion", "created": 5, "model": "m", "choices": [text_choice()]},
        {"id": "c1", "object": "text_completion", "created": 5, "model": "m", "choices": [{"index": 0, "text": "$text", "logprobs": null, "finish_reason": null}]},
        {"id": "c1", "choices": [text_choice(), text_choice()], "usage?": usage, "system_fingerprint?": "fp"},
        {"id": "c1", "choices": [], "usage": usage}, {"error": {"message": "$text"}},
    ]})
}

fn text_reply() -> Value {
    json!({"id": "c1", "object": "text_completion", "created": "$int", "model": "m", "choices": {"$many": text_choice()},
        "usage?": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}, "error?": {"$one": [null, "$any"]}})
}

fn openai_reply() -> Value {
    json!({"id": "c1", "object": "chat.completion", "created": "$int", "model": "m", "choices": [{"index": 0, "finish_reason": {"$one": ["stop", "length", null]},
        "message": {"role": "assistant", "content": {"$one": ["Hi", "$text", null]}, "reasoning_content?": "$text", "annotations?": [],
            "tool_calls?": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]}}],
        "usage?": {"prompt_tokens": "$int", "completion_tokens": "$int"}, "error?": {"$one": [null, {"message": "down"}]}, "system_fingerprint?": "$any"})
}

fn responses_item() -> Value {
    let part = json!({"$one": [{"type": "output_text", "text": "$text", "annotations?": {"$one": [[], "$any", [{"type": "url_citation", "url": "$text", "title": "t", "start_index": "$int", "end_index": 2}]]}},
        {"type": "refusal", "refusal": "$text"}, "$any"]});
    json!({"$one": [
        {"type": "message", "id": "m", "phase?": {"$one": ["commentary", "final_answer", "$text"]}, "content": {"$many": part}},
        {"type": "reasoning", "id?": "rs_1", "summary": {"$many": {"type": "summary_text", "text": "$text"}}, "encrypted_content?": {"$one": ["gAAA", null, "$text"]}, "content?": "$any"},
        {"type": "function_call", "id": "fc", "call_id?": {"$one": ["call_1", "call_2", ""]}, "name?": {"$one": ["f", "", "$text"]}, "arguments?": {"$one": ["", "{\"a\":1}", {"a": 1}, "$text"]}},
        {"type": "web_search_call", "id": "ws", "status": "completed"}, "$any",
    ]})
}

fn responses_reply() -> Value {
    let usage = json!({"$one": [null, {"input_tokens": "$int", "output_tokens": "$int", "input_tokens_details?": {"cached_tokens": "$int"}, "output_tokens_details?": {"reasoning_tokens": "$int"}}]});
    json!({"id": "resp_1", "object": "response", "created_at": {"$one": [5, 5.5, "$int"]}, "status": {"$one": ["completed", "incomplete", "failed", "in_progress", "$text"]},
        "error?": {"$one": [null, null, {"code": "server_error", "message": "$text"}]}, "incomplete_details?": {"reason": {"$one": ["max_output_tokens", "content_filter", "$text"]}},
        "output?": {"$many": responses_item()}, "usage?": usage, "service_tier?": {"$one": ["default", "$any"]}})
}

fn responses_event() -> Value {
    let kind = json!({"$one": ["response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta",
        "response.function_call_arguments.delta", "response.function_call_arguments.done", "$text"]});
    let number = json!({"$one": [0, 0, 1, 2, "$int"]});
    json!({"$one": [
        {"type": kind, "output_index": number, "content_index?": number, "summary_index?": number, "delta": {"$one": ["$text", "word"]}, "arguments?": "{}", "obfuscation?": "x"},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "word"},
        {"type": "response.output_item.added", "output_index": number, "item": responses_item()},
        {"type": "response.output_item.done", "output_index": number, "item": responses_item()},
        {"type": "response.created", "response": responses_reply()}, {"type": "keepalive"},
        {"type": "response.completed", "response": responses_reply()},
        {"type": "error", "code?": "rate_limit_exceeded", "message": "$text"},
    ]})
}

fn anthropic_event() -> Value {
    let block = json!({"$one": [{"type": "text", "text": ""}, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
        {"type": "redacted_thinking", "data": "x"}, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "$text"}]});
    let delta = json!({"$one": [{"type": "text_delta", "text": "$text"}, {"type": "thinking_delta", "thinking": "$text"}, {"type": "signature_delta", "signature": "s"},
        {"type": "input_json_delta", "partial_json": {"$one": ["{\"a\"", ":1}", "$text"]}}, {"type": "citations_delta", "citation": {}}]});
    let usage = json!({"input_tokens": {"$one": [10, null, "$int"]}, "output_tokens": "$int", "cache_read_input_tokens?": "$int", "cache_creation_input_tokens?": "$int",
        "server_tool_use?": {"web_search_requests": 1}});
    let index = json!({"$one": [0, 0, 1, 2, "$int"]});
    json!({"$one": [
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word"}},
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": usage}},
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_stop", "index": index}, {"type": "ping"},
        {"type": "message_delta", "delta": {"stop_reason": {"$one": ["end_turn", "tool_use", "max_tokens", null, "$text"]}}, "usage": usage},
        {"type": "message_stop"}, {"type": "error", "error": {"type": "overloaded_error", "message": "$text"}}, {"type": "$text"},
    ]})
}

fn anthropic_reply() -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": {"$one": ["end_turn", "tool_use", "refusal", null]}, "content": {"$many": {"$one": [
        {"type": "text", "text": "$text", "citations?": "$any"}, {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "tool_use", "id": "t", "name": "f", "input": "$any"}, "$any"]}},
        "usage?": {"input_tokens": "$int", "output_tokens": "$int"}})
}

fn google_reply() -> Value {
    let part = json!({"$one": [{"text": "$text"}, {"text": "word"}, {"text": "hm", "thought": true, "thoughtSignature?": "s"},
        {"functionCall": {"name": "f", "args": "$any", "id?": "$text"}, "thoughtSignature?": "s"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}, "$any"]});
    json!({"$one": [
        {"candidates": [{"index?": {"$one": [0, 1, "$int"]}, "content?": {"role": "model", "parts": {"$many": part}},
            "finishReason?": {"$one": ["STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "$text"]}, "groundingMetadata?": "$any"}],
         "responseId?": "r", "usageMetadata?": {"promptTokenCount": "$int", "candidatesTokenCount?": "$int", "thoughtsTokenCount?": "$int", "cachedContentTokenCount?": "$int"}},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "$text"}]}}]},
        {"promptFeedback": {"blockReason": "SAFETY"}}, {"error": {"code": 503, "message": "$text", "status": "UNAVAILABLE"}},
        {"embeddings": {"$many": {"values": {"$many": "$number"}}}}, {"embedding": {"values": [0.5, 1]}},
    ]})
}

fn embeddings_reply() -> Value {
    json!({"object": "list", "data": {"$many": {"object": "embedding", "index": {"$one": [0, 1, "$int"]}, "embedding": {"$one": [[0.5, 1, -2e-3], "AAAAPw==", {"$many": "$number"}, "$text"]}}},
        "usage?": {"prompt_tokens": "$int", "total_tokens": "$int"}})
}

fn found_reply() -> Value {
    json!({"results": {"$many": {"title?": "$text", "url": "$text", "content?": "$text", "highlights?": {"$many": "$text"}}}})
}

pub fn grammars(wire: WireKind) -> (Value, Value) {
    match wire {
        WireKind::Compatible => (openai_event(), openai_reply()),
        WireKind::Completions => (text_event(), text_reply()),
        WireKind::Responses => (responses_event(), responses_reply()),
        WireKind::Messages => (anthropic_event(), anthropic_reply()),
        WireKind::Contents | WireKind::CloudContents => (google_reply(), google_reply()),
        WireKind::Predictions | WireKind::Titan | WireKind::InvokedCohere => {
            (clouds::reply(), clouds::reply())
        }
        WireKind::Converse => (converse::event(), converse::reply()),
        WireKind::Cohere => (cohere::event(), cohere::reply()),
        WireKind::Voyage => (embeddings_reply(), embeddings_reply()),
        WireKind::Tavily | WireKind::Exa => (found_reply(), found_reply()),
        WireKind::Images | WireKind::ImagesByRatio => (images_event(), images_reply()),
    }
}

fn images_event() -> Value {
    let usage = json!({"input_tokens": "$int", "output_tokens": "$int", "output_tokens_details?": {"image_tokens": "$int"}});
    json!({"$one": [
        {"type": "image_generation.partial_image", "b64_json": "aGk=", "partial_image_index": "$int", "size?": "$text"},
        {"type": "image_generation.completed", "b64_json": {"$one": ["aGk=", "$text"]}, "usage?": usage, "background?": "$any"},
        {"type": "error", "error": {"message": "$text", "code": {"$one": ["moderation_blocked", "$text"]}}}, {"type": "$text"},
    ]})
}

fn images_reply() -> Value {
    json!({"created": "$int", "data": {"$many": {"$one": [{"b64_json": {"$one": ["aGk=", "$text"]}, "revised_prompt?": "$text"}, {"url": "$text"}, "$any"]}},
        "output_format?": {"$one": ["png", "$any"]}, "usage?": {"input_tokens": "$int", "output_tokens": "$int", "input_tokens_details?": "$any"}})
}

/// The requests that a reply may answer.
struct Requests([ModelRequest; 5]);

impl Requests {
    fn new() -> Self {
        let chat = |stream: bool| {
            let body = json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Hi"}]});
            ChatCompletions.parse(body.to_string().into()).unwrap()
        };
        let embeddings = json!({"model": "m", "input": ["a", "b"]}).to_string();
        let images = |stream: bool| {
            let body = json!({"model": "m", "stream": stream, "prompt": "A cat"});
            ImageGenerations.parse(body.to_string().into()).unwrap()
        };
        Self([
            chat(true),
            chat(false),
            EMBEDDINGS.parse(embeddings.into()).unwrap(),
            images(true),
            images(false),
        ])
    }
}

/// Feeds a reply in pieces; answers what the client gets, and how it ended.
pub fn answer(
    wire: WireKind,
    request: &ModelRequest,
    quirks: &Quirks,
    head: &ReplyHead,
    pieces: &[&[u8]],
) -> (Vec<u8>, Result<(), String>) {
    let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece));
    answer_pieces(wire, request, (quirks, head), pieces, |_| {})
}

/// Answers the same, and lets `sent` take what can be sent after each piece.
pub fn answer_pieces(
    wire: WireKind,
    request: &ModelRequest,
    (quirks, head): (&Quirks, &ReplyHead),
    pieces: impl Iterator<Item = Bytes>,
    sent: impl Fn(&mut dyn Writer),
) -> (Vec<u8>, Result<(), String>) {
    let identity = ReplyIdentity {
        id: "made".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/upstream-model".into(),
    };
    let mut writer = request.front.writer(request, identity);
    let read = || -> Result<(), Failure> {
        let decoder = decode_reply(wire.wire(), request, &target(quirks), head);
        let mut decoder = decoder.ok_or_else(|| Failure::malformed("not offered"))?;
        for piece in pieces {
            if decoder.feed(&piece, &mut *writer)? == Progress::Complete {
                return Ok(());
            }
            sent(&mut *writer);
        }
        match decoder.end(&mut *writer)? {
            Progress::Complete => Ok(()),
            Progress::Open => panic!("an end that leaves the reply open"),
        }
    };
    let ended = read();
    let usage = writer.reported().to_usage(2, ended.is_ok());
    let settlement = Settlement { usage, cost: None };
    match &ended {
        Ok(()) => {
            let metadata = Metadata {
                route: None,
                request_id: "r",
                requested_model: "m",
                managed: None,
                requested_provider: None,
                organization_id: "o",
                project_id: "p",
                log_id: None,
                answer: AnswerMembers::Fresh {
                    used: &UsedNames::new("m", "here", None, "upstream-model"),
                    price: Default::default(),
                    routing: &[],
                },
            };
            writer.complete(&settlement, &metadata);
        }
        Err(_) => writer.fail(
            &Fault::new(FaultKind::UpstreamFailed, "broken"),
            Some(&settlement),
        ),
    }
    (
        writer.take().into(),
        ended.map_err(|failure| format!("{failure:?}")),
    )
}

/// Every event is JSON or the last mark; a whole reply is JSON.
fn is_well_formed(out: &[u8], request: &ModelRequest, is_complete: bool) {
    let shown = String::from_utf8_lossy(out);
    let is_json = |json: &[u8]| {
        serde_json::from_slice::<IgnoredAny>(json).is_ok() && std::str::from_utf8(json).is_ok()
    };
    if !request.is_stream {
        assert!(!is_complete || is_json(out), "{shown}");
        return;
    }
    let mut reader = EventReader::default();
    let mut ends = 0;
    let mut check = |event: SseEvent<'_>| {
        assert_eq!(ends, 0, "behind the end: {shown}");
        if event.data == b"[DONE]" {
            ends += 1;
        } else {
            assert!(is_json(event.data), "{shown}");
        }
        Ok::<(), TooLong>(())
    };
    reader.feed(out, &mut check).unwrap();
    reader.finish(&mut check).unwrap();
    // A stream of images has no last mark.
    let has_mark = !request.payload.operation().draws();
    assert_eq!(ends == 1, is_complete && has_mark, "{shown}");
}

/// A stream of events that a provider sends, or nearly so.
pub fn stream(choices: &mut Choices<'_>, wire: WireKind, grammar: &Value) -> Vec<u8> {
    if wire == WireKind::Converse {
        return converse::stream(choices, grammar);
    }
    let end = *choices.pick(&["\n", "\n", "\r\n", "\r"]);
    let mut stream = Vec::new();
    for _ in 0..choices.below(10) {
        let event = grammar::compose(choices, grammar);
        let event = if choices.once_in(8) {
            damage::tree(choices, event)
        } else {
            event
        };
        if wire == WireKind::Messages && !choices.once_in(8) {
            stream.extend_from_slice(
                format!(
                    "event: {}{end}",
                    event["type"]
                        .as_str()
                        .unwrap_or("x")
                        .replace(['\r', '\n'], "")
                )
                .as_bytes(),
            );
        }
        stream.extend_from_slice(b"data: ");
        stream.extend_from_slice(event.to_string().as_bytes());
        stream.extend_from_slice(end.repeat(2).as_bytes());
    }
    let last: &[u8] = match wire {
        WireKind::Compatible => b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        WireKind::Completions => b"data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        WireKind::Responses => b"data: {\"type\":\"response.output_text.delta\",\"output_index\":9,\"delta\":\"a\"}\n\nevent: response.completed\ndata: {\"response\":{}}\n\n",
        WireKind::Messages => b"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        WireKind::Images | WireKind::ImagesByRatio => b"data: {\"type\":\"image_edit.completed\",\"b64_json\":\"aGk=\"}\n\n",
        WireKind::Contents | WireKind::CloudContents => b"data: {\"candidates\":[{\"content\":{\"parts\":[]},\"finishReason\":\"STOP\"}]}\n\n",
        WireKind::Cohere => cohere::LAST,
        WireKind::Converse
        | WireKind::Voyage
        | WireKind::Tavily
        | WireKind::Exa
        | WireKind::Predictions
        | WireKind::Titan
        | WireKind::InvokedCohere => b"",
    };
    if !choices.once_in(4) {
        stream.extend_from_slice(last);
    }
    stream
}

pub const EVENTS: ReplyHead = ReplyHead {
    status: 200,
    events: Some(EventFraming::Sse),
    file: None,
    prompt_tokens: None,
    is_by_quota: false,
};
pub const WHOLE: ReplyHead = ReplyHead {
    status: 200,
    events: None,
    file: None,
    prompt_tokens: None,
    is_by_quota: false,
};

/// The head of an event stream of a wire.
pub fn events_head(wire: WireKind) -> &'static ReplyHead {
    match wire {
        WireKind::Converse => &converse::FRAMES,
        _ => &EVENTS,
    }
}

pub fn events(name: &str, wire: WireKind) {
    let (grammar, _) = grammars(wire);
    let quirks = Quirks {
        reasoning_replay: ReasoningReplay::ReasoningDetails,
        ..Quirks::default()
    };
    let requests = Requests::new();
    let done = std::cell::Cell::new((0, 0));
    run(name, |choices| {
        let stream = stream(choices, wire, &grammar);
        let stream = if choices.once_in(2) {
            damage::bytes(choices, stream)
        } else {
            stream
        };
        let first = if wire == WireKind::Images { 3 } else { 0 };
        let request = &requests.0[first + choices.below(2)];
        let (out, ended) = answer(wire, request, &quirks, events_head(wire), &[&stream]);
        is_well_formed(&out, request, ended.is_ok());
        let pieces = choices.cut(&stream);
        let (again, ended_again) = answer(wire, request, &quirks, events_head(wire), &pieces);
        let shown = String::from_utf8_lossy(&stream);
        assert_eq!(
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(&again),
            "{shown}"
        );
        assert_eq!(ended, ended_again, "{shown}");
        let (all, good) = done.get();
        done.set((all + 1, good + u32::from(ended.is_ok())));
    });
    let (all, good) = done.get();
    assert!(
        good * 20 > all,
        "the grammar makes what is refused: {good} of {all}"
    );
}

pub fn whole(name: &str, wire: WireKind) {
    let (_, grammar) = grammars(wire);
    let others = embeddings_reply();
    let (requests, quirks) = (Requests::new(), Quirks::default());
    run(name, |choices| {
        let request = &requests.0[choices.below(5)];
        let is_chat = request.payload.operation() != Operation::Embeddings;
        let grammar = if is_chat || wire != WireKind::Compatible {
            &grammar
        } else {
            &others
        };
        let body = grammar::compose(choices, grammar);
        let body = damage::tree(choices, body);
        let body = grammar::write(choices, &body);
        let body = if choices.once_in(2) {
            damage::bytes(choices, body)
        } else {
            body
        };
        let (out, ended) = answer(wire, request, &quirks, &WHOLE, &[&body]);
        is_well_formed(&out, request, ended.is_ok());
        let pieces = choices.cut(&body);
        let (again, ended_again) = answer(wire, request, &quirks, &WHOLE, &pieces);
        assert_eq!(
            (out, ended),
            (again, ended_again),
            "{}",
            String::from_utf8_lossy(&body)
        );
    });
}

#[test]
fn events_of_the_openai_wire_are_the_same_however_they_are_cut() {
    events("wires: openai, events", WireKind::Compatible);
}

#[test]
fn events_of_the_wire_of_texts_are_the_same_however_they_are_cut() {
    events("wires: completions, events", WireKind::Completions);
}

#[test]
fn replies_of_the_wire_of_texts_are_the_same_however_they_are_cut() {
    whole("wires: completions, whole replies", WireKind::Completions);
}

#[test]
fn events_of_the_responses_wire_are_the_same_however_they_are_cut() {
    events("wires: responses, events", WireKind::Responses);
}

#[test]
fn events_of_the_anthropic_wire_are_the_same_however_they_are_cut() {
    events("wires: anthropic, events", WireKind::Messages);
}

#[test]
fn events_of_the_google_wire_are_the_same_however_they_are_cut() {
    events("wires: google, events", WireKind::Contents);
}

#[test]
fn events_of_the_wire_of_images_are_the_same_however_they_are_cut() {
    events("wires: images, events", WireKind::Images);
}

#[test]
fn replies_of_the_wire_of_images_are_the_same_however_they_are_cut() {
    whole("wires: images, whole replies", WireKind::Images);
}

#[test]
fn replies_of_the_openai_wire_are_the_same_however_they_are_cut() {
    whole("wires: openai, whole replies", WireKind::Compatible);
}

#[test]
fn replies_of_the_responses_wire_are_the_same_however_they_are_cut() {
    whole("wires: responses, whole replies", WireKind::Responses);
}

#[test]
fn replies_of_the_anthropic_wire_are_the_same_however_they_are_cut() {
    whole("wires: anthropic, whole replies", WireKind::Messages);
}

#[test]
fn replies_of_the_google_wire_are_the_same_however_they_are_cut() {
    whole("wires: google, whole replies", WireKind::Contents);
}

#[test]
fn whole_replies_of_voyages_wire_fail_or_become_a_list() {
    whole("wires: voyage, whole replies", WireKind::Voyage);
}

/// A chunk like the one before is read by comparison; a space behind the first brace keeps the reader from that.
#[test]
fn an_event_read_by_comparison_is_the_event_read_as_json() {
    let grammar = openai_event();
    let (requests, quirks) = (Requests::new(), Quirks::default());
    run("wires: openai, compared events", |choices| {
        let stream = stream(choices, WireKind::Compatible, &grammar);
        let mut spaced = format!("\n{}", String::from_utf8(stream.clone()).unwrap());
        // A text in an event has no raw line end.
        for end in ["\n", "\r"] {
            spaced = spaced.replace(&format!("{end}data: {{"), &format!("{end}data: {{ "));
        }
        let request = &requests.0[choices.below(2)];
        let compared = answer(WireKind::Compatible, request, &quirks, &EVENTS, &[&stream]);
        let read = answer(
            WireKind::Compatible,
            request,
            &quirks,
            &EVENTS,
            &[spaced.as_bytes()],
        );
        let shown = String::from_utf8_lossy(&stream);
        assert_eq!(
            String::from_utf8_lossy(&compared.0),
            String::from_utf8_lossy(&read.0),
            "{shown}"
        );
        // The message of a failure names a place, which the space has moved.
        assert_eq!(compared.1.is_ok(), read.1.is_ok(), "{shown}");
    });
}

#[test]
fn any_refusal_is_classified() {
    let grammar = json!({"$one": [
        {"error": {"message": "$text", "type?": "$text", "code?": {"$one": ["invalid_api_key", "insufficient_quota", 401, "$any"]}, "param?": "$any"}},
        {"error": "$any"}, {"type": "error", "error": {"type": "authentication_error", "message": "$text"}},
        [{"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT", "details?": "$any"}}], "$any",
    ]});
    run("wires: refusals", |choices| {
        let body = grammar::compose(choices, &grammar);
        let body = grammar::write(choices, &body);
        let body = damage::bytes(choices, body);
        let status = 100 + u16::try_from(choices.below(500)).unwrap();
        for wire in WIRES {
            let failure = wire.wire().classify(status, &body);
            assert!(!failure.blames_key || failure.is_retryable, "{failure:?}");
            let mut cause = Vec::new();
            failure
                .scrubbed(&["secret-of-mine"])
                .write_cause(&mut cause);
            assert!(serde_json::from_slice::<String>(&cause).is_ok());
        }
    });
}
