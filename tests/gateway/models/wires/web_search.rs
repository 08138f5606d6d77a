//! Searches of the web over each wire, whole and streamed: what the provider is asked, what the client gets, what it costs.

use serde_json::{Value, json};

use crate::ledger::used;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

/// A model of one provider that searches for a cent; tokens cost 1 and 10 USD per million, results are 1000 tokens.
fn models(more: &str) -> String {
    format!(
        "[[models]]\nid = \"chat\"\n[[models.providers]]\nprovider = \"first\"\nname = \"up\"\ninput_price = \"1\"\n\
         output_price = \"10\"\nweb_search_price = \"0.01\"\nsearch_tokens = 1000\nmax_output = 1000\n\
         capabilities = [\"streaming\", \"tools\", \"forced_tools\", \"web_search\", \"cancellation\"]\n{more}\n"
    )
}

/// A gateway in front of a provider of this kind.
pub fn gateway(upstream: &Upstream, kind: &str, more: &str, credit: &str) -> Gateway {
    let base = match kind {
        "openai" | "openai-compatible" => "/v1",
        _ => "",
    };
    let toml = format!(
        "[providers.first]\nkind = \"{kind}\"\nbase_url = \"{}{base}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n",
        upstream.url()
    );
    let env = [("FIRST_KEY", "sk-first")];
    Gateway::start_with_credit(&toml, &models(more), &env, credit)
}

fn asked(is_stream: bool, members: &Value) -> String {
    let mut body = json!({"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "web_search": true, "stream": is_stream});
    let members = members.as_object().cloned().unwrap();
    body.as_object_mut().unwrap().extend(members);
    body.to_string()
}

/// The text, the citations, the tokens of the prompt and the cost of the searches, whole or streamed alike.
fn got(answer: &Answer) -> (String, Value, Value) {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let is_stream = answer
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    if !is_stream {
        let body = answer.json();
        let message = &body["choices"][0]["message"];
        assert_eq!(message.get("tool_calls"), None, "{body}");
        let text = message["content"].as_str().unwrap().to_owned();
        return (text, message["annotations"].clone(), body["usage"].clone());
    }
    let events = answer.events();
    assert!(events.is_done(), "{}", answer.text());
    let chunks = events.json();
    let deltas = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["annotations"].as_array());
    let annotations: Vec<Value> = deltas.flatten().cloned().collect();
    assert!(!answer.text().contains("tool_calls"), "{}", answer.text());
    let usage = chunks.last().unwrap()["usage"].clone();
    (events.content(), annotations.into(), usage)
}

fn citation(start: u64, end: u64) -> Value {
    json!([{"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A", "start_index": start, "end_index": end}}])
}

fn send(reply: Reply, event: &Value) -> Reply {
    let kind = event["type"].as_str().unwrap();
    reply.named_event(kind, &event.to_string())
}

/// An answer on the Messages wire that searched twice.
fn messages(request: &Received) -> Reply {
    let usage = json!({"input_tokens": 2000, "output_tokens": 10, "server_tool_use": {"web_search_requests": 2}});
    let call = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}});
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "encrypted_content": "X="}]});
    let source =
        json!({"type": "web_search_result_location", "url": "https://a.example", "title": "A"});
    if request.json()["stream"] != true {
        let content =
            json!([call, result, {"type": "text", "text": "hello", "citations": [source]}]);
        let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "stop_reason": "end_turn", "content": content, "usage": usage});
        return Reply::json(200, body.to_string());
    }
    let block = |index: u64, block: &Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 2, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let events = [
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": [],
            "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        block(0, &call),
        stop(0),
        block(1, &result),
        stop(1),
        block(2, &json!({"type": "text", "text": ""})),
        delta(json!({"type": "citations_delta", "citation": source})),
        delta(json!({"type": "text_delta", "text": "hello"})),
        stop(2),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    events.iter().fold(Reply::stream(), send).end()
}

/// The same on the Responses wire.
fn items(request: &Received) -> Reply {
    let cited = json!({"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 5});
    let search = |id: &str| json!({"type": "web_search_call", "id": id, "status": "completed", "action": {"type": "search", "query": "q"}});
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "hello", "annotations": [cited]}]});
    let output = [search("ws_1"), search("ws_2"), text];
    let response = json!({"id": "resp_1", "status": "completed", "output": output, "usage": {"input_tokens": 2000, "output_tokens": 10}});
    if request.json()["stream"] != true {
        return Reply::json(200, response.to_string());
    }
    let mut events = Vec::new();
    for (at, item) in output.iter().enumerate() {
        events.push(json!({"type": "response.output_item.added", "output_index": at, "item": {"type": item["type"]}}));
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": response}));
    events.iter().fold(Reply::stream(), send).end()
}

/// The same on the wire of contents.
fn contents(request: &Received) -> Reply {
    let grounds = json!({"webSearchQueries": ["a", "b"], "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
        "groundingSupports": [{"segment": {"endIndex": 5, "text": "hello"}, "groundingChunkIndices": [0]}]});
    let reply = json!({"candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP", "groundingMetadata": grounds}],
        "usageMetadata": {"promptTokenCount": 2000, "candidatesTokenCount": 10}});
    match request.path.contains("stream") {
        true => Reply::stream().event(&reply.to_string()).end(),
        false => Reply::json(200, reply.to_string()),
    }
}

/// A search model of the convention, which searched once and counts nothing.
fn chunks(request: &Received) -> Reply {
    let usage = json!({"prompt_tokens": 2000, "completion_tokens": 10});
    let said = json!({"role": "assistant", "content": "hello", "annotations": citation(0, 5)});
    let choice = |key: &str, said: &Value| json!({"id": "c", "created": 5, "choices": [{"index": 0, key: said, "finish_reason": "stop"}], "usage": usage});
    match request.json()["stream"] == true {
        true => Reply::stream()
            .event(&choice("delta", &said).to_string())
            .event("[DONE]")
            .end(),
        false => Reply::json(200, choice("message", &said).to_string()),
    }
}

/// A kind of provider: its name, more of its mapping, its answers, its searches and its words for one.
pub type Case = (
    &'static str,
    &'static str,
    fn(&Received) -> Reply,
    u64,
    Value,
);

pub fn cases() -> [Case; 4] {
    [
        (
            "anthropic",
            "",
            messages,
            2,
            json!({"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]}),
        ),
        (
            "openai",
            "wire = \"responses\"",
            items,
            2,
            json!({"tools": [{"type": "web_search"}], "max_tool_calls": 5}),
        ),
        (
            "google",
            "",
            contents,
            2,
            json!({"tools": [{"googleSearch": {}}]}),
        ),
        (
            "openai-compatible",
            "web_search = \"options\"",
            chunks,
            1,
            json!({"web_search_options": {}}),
        ),
    ]
}

/// Contract: model-gateway 2.1 web_search
#[test]
fn a_search_is_asked_for_cited_and_charged_on_every_wire() {
    for (kind, more, answers, searches, words) in cases() {
        let upstream = Upstream::answering(answers);
        let gateway = gateway(&upstream, kind, more, "1");
        for is_stream in [false, true] {
            let answer = gateway.chat(asked(is_stream, &json!({})));
            let (text, annotations, usage) = got(&answer);
            assert_eq!(
                (text.as_str(), &annotations),
                ("hello", &citation(0, 5)),
                "{kind} {is_stream}"
            );
            let details = &usage["cost_details"];
            // 2000 at 1 and 10 at 10 USD per million.
            let (fee, cost) = match searches {
                2 => ("0.02", "0.0221"),
                _ => ("0.01", "0.0121"),
            };
            assert_eq!(
                details["web_search_cost"].to_string(),
                fee,
                "{kind} {is_stream} {usage}"
            );
            assert_eq!(
                (
                    usage["cost"].to_string(),
                    details["request_cost"].to_string()
                ),
                (cost.to_owned(), "0".to_owned())
            );
        }
        let twice = if searches == 2 { "0.0442" } else { "0.0242" };
        used(&gateway, twice);
        for request in upstream.requests() {
            let sent = request.json();
            for (key, value) in words.as_object().unwrap() {
                assert_eq!(&sent[key], value, "{kind}");
            }
            assert_eq!(sent.get("web_search"), None, "{kind}");
        }
    }
}

#[test]
fn the_searches_that_a_request_allows_are_reserved() {
    // Two searches, their 2000 tokens, at most 1000 tokens of answer at 10, and some bytes of the request.
    let limited = json!({"tools": [{"type": "web_search", "max_uses": 2}]});
    for (members, credit, expected) in [
        (&limited, "0.031", 402),
        (&limited, "0.033", 200),
        // Without a limit there are five.
        (&json!({}), "0.06", 402),
        (&json!({}), "0.066", 200),
    ] {
        let upstream = Upstream::answering(messages);
        let gateway = gateway(&upstream, "anthropic", "", credit);
        let answer = gateway.chat(asked(false, members));
        assert_eq!(answer.status(), expected, "{credit}: {}", answer.text());
        assert_eq!(upstream.requests().len(), usize::from(expected == 200));
    }
}

#[test]
fn an_answer_is_charged_once_where_the_provider_bills_answers() {
    let upstream = Upstream::answering(contents);
    let gateway = gateway(&upstream, "google", "web_search_unit = \"answer\"", "1");
    let (_, _, usage) = got(&gateway.chat(asked(false, &json!({}))));
    assert_eq!(usage["cost_details"]["web_search_cost"].to_string(), "0.01");
    used(&gateway, "0.0121");
}

#[test]
fn who_cannot_search_is_left_out_and_the_answer_names_the_field() {
    let upstream = Upstream::answering(contents);
    let gateway = gateway(&upstream, "google", "", "1");
    let tool = json!([{"type": "web_search"}]);
    let function = json!({"type": "function", "function": {"name": "f"}});
    for (members, param) in [
        (
            json!({"tools": tool, "tool_choice": {"type": "web_search"}}),
            "tool_choice",
        ),
        (json!({"tools": [function]}), "web_search"),
        (
            json!({"tools": [{"type": "web_search", "allowed_domains": ["a.example"]}]}),
            "tools[].allowed_domains",
        ),
        (
            json!({"vendor_safeguards": {"safeguards": [{"type": "dangerous_tool_use"}], "betas": ["dangerous-tool-use-2026-09-03"]}}),
            "vendor_safeguards",
        ),
        (
            json!({"tool_choice": {"type": "web_search"}}),
            "tool_choice",
        ),
    ] {
        for model in ["chat", "first/chat"] {
            let mut body: Value = serde_json::from_str(&asked(false, &members)).unwrap();
            body["model"] = model.into();
            let answer = gateway.chat(body.to_string());
            assert_eq!(answer.status(), 400, "{}", answer.text());
            assert_eq!(answer.json()["error"]["param"], param, "{}", answer.text());
        }
    }
    assert!(upstream.requests().is_empty());
}

/// Contract: model-gateway 2.2 vendor_native_blocks
#[test]
fn blocks_of_a_search_go_back_in_the_next_turn() {
    let upstream = Upstream::answering(messages);
    let gateway = gateway(&upstream, "anthropic", "", "1");
    let first = gateway.chat(asked(false, &json!({}))).json();
    let said = first["choices"][0]["message"].clone();
    let user = |text: &str| json!({"role": "user", "content": text});
    let next = json!({"messages": [user("Hi"), said, user("And?")]});
    got(&gateway.chat(asked(false, &next)));
    let content = &upstream.requests()[1].json()["messages"][1]["content"];
    let kinds: Vec<&str> = content
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|block| block["type"].as_str())
        .collect();
    assert_eq!(kinds, ["server_tool_use", "web_search_tool_result", "text"]);
    assert_eq!(content[1]["content"][0]["encrypted_content"], "X=");
    assert_eq!(content[1].as_object().unwrap().len(), 3, "{content}");
}

/// Contract: model-gateway 2.1 vendor_safeguards
#[test]
fn safeguards_go_out_with_their_beta_and_their_verdicts_come_back() {
    let verdicts = json!([{"type": "dangerous_tool_use", "status": {"type": "available"}}]);
    let of_reply = verdicts.clone();
    let upstream = Upstream::answering(move |request| {
        let usage = json!({"input_tokens": 5, "output_tokens": 1});
        if request.json()["stream"] != true {
            let body = json!({"id": "msg_1", "type": "message", "stop_reason": "end_turn", "content": [{"type": "text", "text": "hello"}], "usage": usage,
                "safeguard_results": of_reply});
            return Reply::json(200, body.to_string());
        }
        let events = [
            json!({"type": "message_start", "message": {"id": "msg_1", "usage": usage}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hello"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "safeguard_results": of_reply}, "usage": usage}),
            json!({"type": "message_stop"}),
        ];
        events.iter().fold(Reply::stream(), send).end()
    });
    let gateway = gateway(&upstream, "anthropic", "", "1");
    let safeguards = json!([{"type": "dangerous_tool_use", "classifier_context": {"v": 1}}]);
    let members = json!({"web_search": false, "vendor_safeguards": {"safeguards": safeguards, "betas": ["dangerous-tool-use-2026-09-03"]}});
    let whole = gateway.chat(asked(false, &members)).json();
    assert_eq!(
        whole["choices"][0]["message"]["vendor_safeguard_results"],
        verdicts
    );
    let streamed = gateway.chat(asked(true, &members)).events().json();
    let results: Vec<&Value> = streamed
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"].get("vendor_safeguard_results"))
        .collect();
    assert_eq!(results, [&verdicts]);
    for request in upstream.requests() {
        assert_eq!(
            request.header("anthropic-beta"),
            Some("dangerous-tool-use-2026-09-03")
        );
        assert_eq!(request.json()["safeguards"], safeguards);
    }
    got(&gateway.chat(asked(false, &json!({"web_search": false}))));
    assert_eq!(upstream.requests()[2].header("anthropic-beta"), None);
}

#[test]
fn the_list_of_models_tells_who_searches_and_for_how_much() {
    let upstream = Upstream::answering(contents);
    let gateway = gateway(&upstream, "google", "", "1");
    let list = Ask::get("/v1/models").key(&gateway.key);
    let list = ask(gateway.address(), &list).json();
    let model = &list["data"][0];
    assert_eq!(model["pricing"]["web_search"], "0.01");
    assert_eq!(model["providers"][0]["webSearch"], true);
    let parameters = model["supported_parameters"].as_array().unwrap();
    assert!(parameters.contains(&"web_search".into()), "{model}");
}
