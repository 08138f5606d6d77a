//! Answers that rest on searches, whole and streamed, and their way back to the provider.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use bytes::Bytes;
use serde_json::{Value, json};

use super::replay::{EVENTS, WHOLE};
use super::search::{mapping, request, sent, target};
use super::{Progress, ReplyHead, WireKind};
use crate::models::dialects::Dialect;
use crate::models::fronts::chat_completions::whole::WholeWriter;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::usage::Usage;
use crate::models::wires::Quirks;
use crate::models::wires::tests::replay;

const CHAT: WireKind = WireKind::Compatible;

/// A provider's answer to a request that searches, as choice and usage.
fn read(
    kind: WireKind,
    own: &Value,
    head: &ReplyHead,
    body: &str,
    piece: usize,
) -> Result<(Value, Usage), Box<Usage>> {
    let (mapping, quirks) = (mapping(kind, own), Quirks::default());
    let request = request(&json!({"web_search": true}));
    let target = target(&mapping, &quirks);
    let mut decoder = kind.wire().decoder(&request, &target, head);
    let mut writer = WholeWriter::new(ReplyIdentity {
        id: "i".into(),
        created: 1,
        model: "m".into(),
        maker: (&*target.maker.name()).into(),
    });
    let mut progress = Progress::Open;
    let mut pieces = body.as_bytes().chunks(piece);
    let failure = loop {
        let fed = match pieces.next() {
            Some(bytes) if progress == Progress::Open => {
                decoder.feed(&Bytes::copy_from_slice(bytes), &mut writer)
            }
            _ if progress == Progress::Open => decoder.end(&mut writer),
            _ => break None,
        };
        match fed {
            Ok(now) => progress = now,
            Err(failure) => break Some(failure),
        }
    };
    let usage = writer.reported().to_usage(4, failure.is_none());
    if failure.is_some() {
        return Err(Box::new(usage));
    }
    let response = writer.render(
        0,
        |out| out.extend_from_slice(b"{}"),
        |out| out.extend_from_slice(b"{}"),
    );
    let response: Value = serde_json::from_slice(&response).unwrap();
    Ok((response["choices"][0].clone(), usage))
}

fn whole(kind: WireKind, own: &Value, body: &Value) -> (Value, Usage) {
    read(kind, own, &WHOLE, &body.to_string(), usize::MAX).unwrap()
}

/// A stream, which gives the same however it is cut.
fn streamed(kind: WireKind, own: &Value, events: &[Value]) -> (Value, Usage) {
    let text = events_of(events);
    let first = read(kind, own, &EVENTS, &text, text.len()).unwrap();
    for piece in [1, 2, 3, 7, 64] {
        let again = read(kind, own, &EVENTS, &text, piece).unwrap();
        assert_eq!((&again.0, again.1), (&first.0, first.1), "{piece}");
    }
    first
}

fn events_of(events: &[Value]) -> String {
    let event = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or("message");
        match kind {
            "message" => format!("data: {event}\n\n"),
            kind => format!("event: {kind}\ndata: {event}\n\n"),
        }
    };
    events.iter().map(event).collect()
}

fn citation(url: &str, title: &str, start: u64, end: u64) -> Value {
    json!({"type": "url_citation", "url_citation": {"url": url, "title": title, "start_index": start, "end_index": end}})
}

/// The blocks of an answer that searched once, in the form of a whole reply.
fn blocks() -> Value {
    let place = json!({"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": "c", "encrypted_index": "E="});
    json!([
        {"type": "thinking", "thinking": "hm", "signature": "S="},
        {"type": "text", "text": "Größe 😀: "},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "https://a.example", "encrypted_content": "X+/="}]},
        {"type": "text", "text": "acht.", "citations": [place, {"type": "char_location", "cited_text": "c"}]},
    ])
}

fn message(blocks: &Value, stop: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "content": blocks, "stop_reason": stop,
        "usage": {"input_tokens": 900, "output_tokens": 20, "server_tool_use": {"web_search_requests": 1}}})
}

/// The same answer as events, without the last two.
fn block_events(blocks: &Value) -> Vec<Value> {
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 10, "output_tokens": 1}}}),
    ];
    for (index, block) in blocks.as_array().unwrap().iter().enumerate() {
        let delta =
            |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let (start, deltas) = match block["type"].as_str().unwrap() {
            "text" => {
                let mut deltas: Vec<Value> = block["citations"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|citation| delta(json!({"type": "citations_delta", "citation": citation})))
                    .collect();
                deltas.extend(
                    block["text"]
                        .as_str()
                        .unwrap()
                        .split_inclusive(' ')
                        .map(|text| delta(json!({"type": "text_delta", "text": text}))),
                );
                (json!({"type": "text", "text": ""}), deltas)
            }
            "thinking" => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    delta(json!({"type": "thinking_delta", "thinking": block["thinking"]})),
                    delta(json!({"type": "signature_delta", "signature": block["signature"]})),
                ],
            ),
            "server_tool_use" => {
                let mut start = block.clone();
                start["input"] = json!({});
                let input = block["input"].to_string();
                let (first, rest) = input.split_at(3);
                (
                    start,
                    ["", first, rest]
                        .map(|piece| {
                            delta(json!({"type": "input_json_delta", "partial_json": piece}))
                        })
                        .to_vec(),
                )
            }
            _ => (block.clone(), Vec::new()),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.extend(deltas);
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events
}

fn ended(mut events: Vec<Value>, delta: Value) -> Vec<Value> {
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"input_tokens": 900, "output_tokens": 20, "server_tool_use": {"web_search_requests": 1}}}));
    events.push(json!({"type": "message_stop"}));
    events
}

#[test]
fn blocks_of_a_search_are_kept_and_its_sources_cited() {
    let by_body = whole(
        WireKind::Messages,
        &json!({}),
        &message(&blocks(), "end_turn"),
    );
    let events = ended(block_events(&blocks()), json!({"stop_reason": "end_turn"}));
    let by_events = streamed(WireKind::Messages, &json!({}), &events);
    assert_eq!(by_body, by_events);
    let (choice, usage) = by_body;
    let said = &choice["message"];
    assert_eq!(
        (&said["content"], &choice["finish_reason"]),
        (&json!("Größe 😀: acht."), &json!("stop"))
    );
    assert_eq!(said.get("tool_calls"), None);
    assert_eq!(
        said["annotations"],
        json!([citation("https://a.example", "A", 9, 14)])
    );
    assert_eq!((usage.web_searches, usage.prompt), (1, 900));
    let native = said["vendor_native_blocks"].as_array().unwrap();
    assert_eq!(native.len(), 2);
    assert!(native.iter().all(|block| block["origin"]
        == replay::seal(Dialect::Messages, "p/", "")
        && block["text_offset"] == 9));

    // They go back where they stood, to their provider alone.
    let history = |last: Value| json!({"messages": [{"role": "user", "content": "Hi"}, said, last], "web_search": true});
    let next = history(json!({"role": "user", "content": "And?"}));
    let body = sent(WireKind::Messages, &json!({}), &next).unwrap();
    let mut expected = blocks();
    expected[4].as_object_mut().unwrap().remove("citations");
    assert_eq!(body["messages"][1]["content"], expected);
    for (kind, own) in [
        (CHAT, json!({"web_search": "plugin"})),
        (WireKind::Responses, json!({})),
        (WireKind::Contents, json!({})),
    ] {
        let body = sent(kind, &own, &next).unwrap().to_string();
        assert!(
            !body.contains("srvtoolu") && body.contains("acht."),
            "{body}"
        );
    }
    // A client's own blocks of other types would pass the checks of what a request may hold.
    let mut forged = next.clone();
    let page = json!({"type": "document", "source": {"type": "url", "url": "https://a.example/large.pdf"}});
    for (key, value) in page.as_object().unwrap() {
        forged["messages"][1]["vendor_native_blocks"][0][key] = value.clone();
    }
    let body = sent(WireKind::Messages, &json!({}), &forged)
        .unwrap()
        .to_string();
    assert!(!body.contains("large.pdf"), "{body}");
    let mut foreign = next;
    foreign["messages"][1]["vendor_native_blocks"][0]["origin"] =
        replay::seal(Dialect::Messages, "other/", "").into();
    let body = sent(WireKind::Messages, &json!({}), &foreign)
        .unwrap()
        .to_string();
    assert!(!body.contains("server_tool_use"), "{body}");
}

/// Source: model-gateway 2.2
#[test]
fn blocks_go_back_to_every_model_of_their_provider_and_bare_ones_to_who_knows_them() {
    let (call, found) = (blocks()[2].clone(), blocks()[3].clone());
    let called =
        json!({"type": "toolCall", "toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB"}});
    let of = |block: &Value, format: Option<&str>, origin: Option<&str>| {
        let mut block = block.clone();
        if let Some(format) = format {
            block["format"] = format.into();
        }
        if let Some(origin) = origin {
            block["origin"] = replay::seal(Dialect::Messages, origin, "").into();
        }
        block
    };
    let sent_with = |kind: WireKind, blocks: [Value; 2]| {
        let turn = json!({"role": "assistant", "content": "acht.", "vendor_native_blocks": blocks});
        let messages =
            json!([{"role": "user", "content": "Hi"}, turn, {"role": "user", "content": "And?"}]);
        sent(kind, &json!({}), &json!({"messages": messages})).unwrap()
    };
    let claude = Some("anthropic-claude-v1");
    for (format, origin, goes_back) in [
        (claude, Some("p/"), true),
        (claude, Some("p/up"), false),
        (claude, None, true),
        (None, Some("p/"), true),
        (None, None, true),
        (claude, Some("q/"), false),
        (None, Some("q/"), false),
        (Some("google-gemini-v1"), Some("p/"), false),
    ] {
        let pair = [of(&call, format, origin), of(&found, format, origin)];
        let body = sent_with(WireKind::Messages, pair.clone());
        let content = &body["messages"][1]["content"];
        let expected = match goes_back {
            true => json!([call, found, {"type": "text", "text": "acht."}]),
            false => json!([{"type": "text", "text": "acht."}]),
        };
        assert_eq!(*content, expected, "{format:?} {origin:?}");
        for other in [CHAT, WireKind::Responses, WireKind::Contents] {
            let body = sent_with(other, pair.clone()).to_string();
            assert!(!body.contains("srvtoolu"), "{other:?}: {body}");
        }
    }
    let bare = [called.clone(), json!({"type": "unheard_of"})];
    let body = sent_with(WireKind::Contents, bare.clone());
    assert_eq!(
        body["contents"][1]["parts"][0]["toolCall"],
        called["toolCall"]
    );
    for other in [CHAT, WireKind::Responses, WireKind::Messages] {
        let body = sent_with(other, bare.clone()).to_string();
        let is_stripped = !body.contains("toolCall") && !body.contains("unheard_of");
        assert!(is_stripped, "{other:?}: {body}");
    }
}

#[test]
fn a_search_that_failed_is_seen_and_costs_nothing() {
    let failed = json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}},
        {"type": "text", "text": "acht."}]);
    let mut reply = message(&failed, "end_turn");
    reply["usage"]["server_tool_use"]["web_search_requests"] = 0.into();
    let (_, usage) = whole(WireKind::Messages, &json!({}), &reply);
    assert_eq!(usage.web_searches, 0);
    // Without a count of the provider, what was seen counts.
    reply["usage"]
        .as_object_mut()
        .unwrap()
        .remove("server_tool_use");
    let (_, usage) = whole(WireKind::Messages, &json!({}), &reply);
    assert_eq!(usage.web_searches, 1);
}

#[test]
fn a_paused_turn_is_cut_short_and_goes_on_where_it_is_sent_back() {
    let mut open = blocks();
    open.as_array_mut().unwrap().truncate(3);
    let (choice, _) = whole(
        WireKind::Messages,
        &json!({}),
        &message(&open, "pause_turn"),
    );
    assert_eq!(choice["finish_reason"], "length");
    let said = &choice["message"];
    let user = |text: &str| json!({"role": "user", "content": text});
    let going_on = json!({"messages": [user("Hi"), said], "web_search": true});
    let body = sent(WireKind::Messages, &json!({}), &going_on).unwrap();
    assert_eq!(body["messages"][1]["content"][2]["type"], "server_tool_use");
    // Behind it another message would be refused: the call has no result.
    let another = json!({"messages": [user("Hi"), said, user("Stop")]});
    let body = sent(WireKind::Messages, &json!({}), &another).unwrap();
    assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn searches_of_a_stream_that_breaks_are_counted() {
    let text = events_of(&block_events(&blocks()));
    let usage = read(WireKind::Messages, &json!({}), &EVENTS, &text, 50).unwrap_err();
    assert_eq!(usage.web_searches, 1);
    let chunk = json!({"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}}]});
    let own = json!({"web_search": "options"});
    let usage = read(CHAT, &own, &EVENTS, &events_of(&[chunk]), 50).unwrap_err();
    assert_eq!((usage.web_searches, usage.estimated), (1, true));
}

#[test]
fn a_search_among_functions_is_kept_before_the_call_that_it_found() {
    let found = json!({"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "f"}]});
    let blocks = json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_regex", "input": {"pattern": "f"}},
        {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
    ]);
    let (choice, usage) = whole(
        WireKind::Messages,
        &json!({}),
        &message(&blocks, "tool_use"),
    );
    let events = ended(
        block_events(&json!([blocks[0], blocks[1]])),
        json!({"stop_reason": "tool_use"}),
    );
    assert_eq!(
        streamed(WireKind::Messages, &json!({}), &events).0["message"]["vendor_native_blocks"],
        choice["message"]["vendor_native_blocks"]
    );
    // The report counts searches of the web alone.
    assert_eq!(usage.web_searches, 1);
    let said = &choice["message"];
    assert_eq!(said["tool_calls"].as_array().unwrap().len(), 1);
    let result = json!({"role": "tool", "tool_call_id": "toolu_1", "content": "1"});
    let body = sent(
        WireKind::Messages,
        &json!({}),
        &json!({"messages": [{"role": "user", "content": "Hi"}, said, result]}),
    )
    .unwrap();
    assert_eq!(body["messages"][1]["content"], blocks);
}

#[test]
fn verdicts_of_safeguards_come_with_the_message() {
    let verdicts = json!([{"type": "dangerous_tool_use", "status": {"type": "available"}}]);
    let text = json!([{"type": "text", "text": "Hi"}]);
    let mut body = message(&text, "end_turn");
    body["safeguard_results"] = verdicts.clone();
    let (choice, _) = whole(WireKind::Messages, &json!({}), &body);
    assert_eq!(choice["message"]["vendor_safeguard_results"], verdicts);
    let delta = json!({"stop_reason": "end_turn", "safeguard_results": verdicts});
    let (choice, _) = streamed(
        WireKind::Messages,
        &json!({}),
        &ended(block_events(&text), delta),
    );
    assert_eq!(choice["message"]["vendor_safeguard_results"], verdicts);
}

#[test]
fn items_of_searches_are_counted_and_looks_at_pages_are_not() {
    let look = |id: &str, action: Value| json!({"type": "web_search_call", "id": id, "status": "completed", "action": action});
    let cited = json!({"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2});
    let output = json!([
        look("ws_1", json!({"type": "search", "query": "q", "sources": []})), look("ws_2", json!({"type": "open_page", "url": "https://a.example"})),
        look("ws_3", json!({"type": "find_in_page"})), look("ws_4", json!({"type": "search"})),
        {"type": "message", "content": [{"type": "output_text", "text": "Hi", "annotations": [cited]}]},
    ]);
    let response = |more: Value| {
        let mut response = json!({"status": "completed", "output": output, "usage": {"input_tokens": 9, "output_tokens": 2}});
        response
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap());
        response
    };
    let (choice, usage) = whole(WireKind::Responses, &json!({}), &response(json!({})));
    assert_eq!(
        choice["message"]["annotations"],
        json!([citation("https://a.example", "A", 0, 2)])
    );
    assert_eq!(
        (usage.web_searches, choice["message"].get("tool_calls")),
        (2, None)
    );
    let mut events: Vec<Value> = Vec::new();
    for (at, item) in output.as_array().unwrap().iter().enumerate() {
        events.push(json!({"type": "response.output_item.added", "output_index": at, "item": {"type": item["type"]}}));
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": response(json!({}))}));
    assert_eq!(
        streamed(WireKind::Responses, &json!({}), &events),
        (choice, usage)
    );
    // What the provider itself counts is what it bills.
    let counted = response(json!({"tool_usage": {"web_search": {"num_requests": 1}}}));
    assert_eq!(
        whole(WireKind::Responses, &json!({}), &counted)
            .1
            .web_searches,
        1
    );
}

#[test]
fn pages_under_an_answer_of_contents_are_cited_and_its_queries_counted() {
    let grounds = json!({"webSearchQueries": ["a", "b"], "searchEntryPoint": {}, "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
        "groundingSupports": [{"segment": {"startIndex": 0, "endIndex": 7, "text": "Größe"}, "groundingChunkIndices": [0]}]});
    let call =
        json!({"toolCall": {"toolType": "GOOGLE_SEARCH", "id": "c"}, "thoughtSignature": "S="});
    let reply = |parts: Value, more: Value| {
        let mut candidate = json!({"index": 0, "content": {"parts": parts}});
        candidate
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap());
        json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2}})
    };
    let all = json!([call, {"text": "Größe acht"}]);
    let by_body = whole(
        WireKind::Contents,
        &json!({}),
        &reply(
            all,
            json!({"finishReason": "STOP", "groundingMetadata": grounds}),
        ),
    );
    let events = [
        reply(json!([call]), json!({})),
        reply(json!([{"text": "Grö"}]), json!({})),
        reply(
            json!([{"text": "ße acht"}]),
            json!({"groundingMetadata": grounds}),
        ),
        reply(json!([]), json!({"finishReason": "STOP"})),
    ];
    assert_eq!(streamed(WireKind::Contents, &json!({}), &events), by_body);
    let (choice, usage) = by_body;
    let said = &choice["message"];
    assert_eq!(
        said["annotations"],
        json!([citation("https://a.example", "A", 0, 5)])
    );
    assert_eq!(
        (usage.web_searches, &said["content"]),
        (2, &json!("Größe acht"))
    );
    // The search goes back before the text that it led to.
    let next = json!({"messages": [{"role": "user", "content": "Hi"}, said, {"role": "user", "content": "And?"}]});
    let body = sent(WireKind::Contents, &json!({}), &next).unwrap();
    assert_eq!(
        body["contents"][1]["parts"],
        json!([call, {"text": "Größe acht"}])
    );
    let body = sent(WireKind::Messages, &json!({}), &next)
        .unwrap()
        .to_string();
    assert!(!body.contains("GOOGLE_SEARCH"), "{body}");
}

#[test]
fn sources_that_a_reply_lists_become_annotations_once() {
    let reply = |key: &str, sources: Value| {
        json!({"id": "c", "created": 5, "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2}, key: sources})
    };
    let own = |dialect: &str| json!({"web_search": dialect});
    let listed = json!([{"title": "A", "url": "https://a.example", "date": "2026-01-01"}, {"title": "no page"}]);
    let (choice, usage) = whole(
        CHAT,
        &own("always"),
        &reply("search_results", listed.clone()),
    );
    assert_eq!(
        choice["message"]["annotations"],
        json!([citation("https://a.example", "A", 0, 0)])
    );
    assert_eq!(usage.web_searches, 0);
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "search_results": listed,
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "num_search_queries": 3}})
    };
    let events = [
        chunk(json!({"role": "assistant", "content": "H"}), Value::Null),
        chunk(json!({"content": "i"}), Value::Null),
        chunk(json!({}), json!("stop")),
    ];
    let (streamed, usage) = streamed(CHAT, &own("always"), &events);
    assert_eq!(
        (
            streamed["message"]["annotations"].clone(),
            usage.web_searches
        ),
        (choice["message"]["annotations"].clone(), 3)
    );

    let linked = json!([{"title": "A", "link": "https://a.example", "refer": "ref_1"}]);
    let (choice, usage) = whole(CHAT, &own("tool"), &reply("web_search", linked));
    assert_eq!(
        (
            choice["message"]["annotations"][0]["url_citation"]["url"].clone(),
            usage.web_searches
        ),
        (json!("https://a.example"), 1)
    );
    let (_, usage) = whole(CHAT, &own("tool"), &reply("other", json!([])));
    assert_eq!(usage.web_searches, 0);
    // Those that come as annotations pass as they are.
    let mut annotated = reply("other", json!([]));
    annotated["choices"][0]["message"]["annotations"] =
        json!([citation("https://a.example", "A", 0, 2)]);
    let (choice, usage) = whole(CHAT, &own("options"), &annotated);
    assert_eq!(
        (choice["message"]["annotations"].clone(), usage.web_searches),
        (annotated["choices"][0]["message"]["annotations"].clone(), 1)
    );
}
