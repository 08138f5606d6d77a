//! Searches of the web for models that have none: the gateway runs them between two turns of the model, over every wire and for
//! each API of chats. Source: docs/decisions.md 66.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use weirgate::store::Credit;

use crate::ledger::used;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::scripted::{
    Asked, MODELS, Said, Turn, found_page, gateway_with, gateway_with_search, saying,
};
use crate::support::upstream::Upstream;
use crate::support::{every, until};

/// A model that searches once, and then tells what was found.
fn searches_once(asked: &Asked) -> Said {
    if asked.has_result {
        let seen = asked.results.last().cloned().unwrap_or_default();
        return Turn::text(format!("They say: {seen}")).into();
    }
    assert!(asked.offers("web_search"), "{}", asked.body);
    let call = Turn::call("web_search", json!({"query": "cats"}));
    let said = Turn {
        text: Some("Let me look.".to_owned()),
        ..call
    };
    said.into()
}

fn messages_body(model: &str, is_stream: bool) -> Value {
    json!({"model": model, "max_tokens": 1000, "stream": is_stream,
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "blocked_domains": ["dogs.test"]}],
        "messages": [{"role": "user", "content": "What are cats?"}]})
}

fn chat_body(model: &str, is_stream: bool) -> Value {
    json!({"model": model, "stream": is_stream, "web_search": true, "stream_options": if is_stream { json!({"include_usage": true}) } else { Value::Null },
        "messages": [{"role": "user", "content": "What are cats?"}]})
}

fn send(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    let asked = Ask::post(path, body.to_string()).key(&gateway.key);
    ask(gateway.address(), &asked)
}

/// The content of a message, whole or streamed alike.
fn content(answer: &Answer) -> Vec<Value> {
    let is_stream = answer
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    if !is_stream {
        return answer.json()["content"].as_array().unwrap().clone();
    }
    let mut blocks: Vec<Value> = Vec::new();
    let mut input = String::new();
    for event in answer.events().json() {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(event["index"], blocks.len(), "{}", answer.text());
                blocks.push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let block = blocks.last_mut().unwrap();
                if let Some(text) = event["delta"]["text"].as_str() {
                    block["text"] = (block["text"].as_str().unwrap().to_owned() + text).into();
                }
                input += event["delta"]["partial_json"].as_str().unwrap_or_default();
            }
            "content_block_stop" if !input.is_empty() => {
                blocks.last_mut().unwrap()["input"] =
                    serde_json::from_str(&std::mem::take(&mut input)).unwrap();
            }
            _ => {}
        }
    }
    blocks
}

/// The last part of an answer: the whole one, or `message_delta`.
fn end(answer: &Answer) -> Value {
    let is_stream = answer.text().starts_with("event:");
    if !is_stream {
        return answer.json();
    }
    let events = answer.events().json();
    assert_eq!(
        events.last().unwrap()["type"],
        "message_stop",
        "{}",
        answer.text()
    );
    let mut end = events[events.len() - 2].clone();
    end["stop_reason"] = end["delta"]["stop_reason"].clone();
    end
}

#[test]
fn the_turns_and_the_searches_of_an_answer_are_in_its_session() {
    let (model, finder) = (saying(searches_once), Upstream::always(found_page()));
    let gateway = gateway_with_search(&model, &finder, "1000");
    let asked = Ask::post("/v1/messages", messages_body(MODELS[0], false).to_string());
    let asked = asked
        .key(&gateway.key)
        .header("x-claude-code-session-id", "s");
    assert_eq!(ask(gateway.address(), &asked).status(), 200);
    let told = |path| gateway.usage(&gateway.key, path).json();
    let session = || {
        let told = told("/v1/usage/breakdown?group_by=session");
        told.pointer("/data/0").cloned().unwrap_or_default()
    };
    until("two turns and a search", || session()["requests"] == 3);
    assert_eq!(session()["cost"], told("/v1/usage")["total"]["cost"]);
}

#[test]
fn any_model_searches_for_clients_of_messages() {
    let (model, finder) = (saying(searches_once), Upstream::always(found_page()));
    let gateway = gateway_with_search(&model, &finder, "1000");
    for (wire, is_stream) in MODELS.iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let before = (model.requests().len(), finder.requests().len());
        let answer = send(&gateway, "/v1/messages", &messages_body(wire, is_stream));
        assert_eq!(answer.status(), 200, "{wire}: {}", answer.text());
        let blocks = content(&answer);
        let kinds: Vec<&str> = blocks
            .iter()
            .map(|block| block["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            ["text", "server_tool_use", "web_search_tool_result", "text"],
            "{wire}: {}",
            answer.text()
        );
        assert_eq!(blocks[0]["text"], "Let me look.");
        assert_eq!(blocks[1]["name"], "web_search");
        assert_eq!(blocks[1]["input"], json!({"query": "cats"}));
        assert_eq!(blocks[1]["id"], blocks[2]["tool_use_id"]);
        let page = &blocks[2]["content"][0];
        assert_eq!(
            (&page["type"], &page["url"], &page["title"]),
            (
                &json!("web_search_result"),
                &json!("https://cats.test"),
                &json!("Cats")
            )
        );
        assert!(page["encrypted_content"].is_string() && page.get("page_age").is_some());
        let said = blocks[3]["text"].as_str().unwrap();
        assert!(
            said.starts_with("They say: 1. Cats\nhttps://cats.test\nCats are small."),
            "{wire}: {said}"
        );
        let end = end(&answer);
        assert_eq!(end["stop_reason"], "end_turn");
        assert_eq!(end["usage"]["server_tool_use"]["web_search_requests"], 1);
        // Both turns.
        assert_eq!(end["usage"]["input_tokens"], 18, "{wire}: {end}");
        let own = &end["weirgate"];
        assert_eq!(
            own["usage"]["cost_details"]["web_search_cost"], 0.01,
            "{own}"
        );
        let routing: Vec<&Value> = own["metadata"]["routing"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["provider"])
            .collect();
        assert_eq!(routing.len(), 3, "{own}");
        assert_eq!(routing[1], "finder");
        assert_eq!(model.requests().len() - before.0, 2);
        let search = finder.request(before.1).json();
        assert_eq!(search["query"], "cats");
        assert_eq!(search["exclude_domains"], json!(["dogs.test"]), "{search}");
    }
}

#[test]
fn any_model_searches_for_clients_of_chat_completions() {
    let (model, finder) = (saying(searches_once), Upstream::always(found_page()));
    let gateway = gateway_with_search(&model, &finder, "1000");
    for (wire, is_stream) in MODELS.iter().flat_map(|wire| [(wire, false), (wire, true)]) {
        let answer = send(
            &gateway,
            "/v1/chat/completions",
            &chat_body(wire, is_stream),
        );
        assert_eq!(answer.status(), 200, "{wire}: {}", answer.text());
        assert!(
            !answer.text().contains("tool_calls"),
            "{wire}: {}",
            answer.text()
        );
        let (text, annotations, usage) = if is_stream {
            let events = answer.events();
            assert!(events.is_done(), "{}", answer.text());
            let chunks = events.json();
            let lists = chunks
                .iter()
                .filter_map(|chunk| chunk["choices"][0]["delta"]["annotations"].as_array());
            let annotations: Vec<Value> = lists.flatten().cloned().collect();
            let usage = chunks
                .iter()
                .rev()
                .find(|chunk| chunk["usage"].is_object())
                .unwrap()["usage"]
                .clone();
            (events.content(), Value::from(annotations), usage)
        } else {
            let body = answer.json();
            let message = &body["choices"][0]["message"];
            assert_eq!(body["choices"][0]["finish_reason"], "stop");
            (
                message["content"].as_str().unwrap().to_owned(),
                message["annotations"].clone(),
                body["usage"].clone(),
            )
        };
        assert!(
            text.starts_with("Let me look.\n\nThey say: 1. Cats\n"),
            "{wire}: {text}"
        );
        let cited = json!([{"type": "url_citation", "url_citation": {"url": "https://cats.test", "title": "Cats", "start_index": 0, "end_index": 0}}]);
        assert_eq!(annotations, cited, "{wire}");
        assert_eq!(usage["prompt_tokens"], 18, "{usage}");
        assert_eq!(usage["cost_details"]["web_search_cost"], 0.01, "{usage}");
    }
}

/// Two turns of 9 and 4 tokens cost (9 + 9) × 1 and (4 + 4) × 2 millionths, and a search a cent.
#[test]
fn every_turn_and_every_search_is_charged_once() {
    let (model, finder) = (saying(searches_once), Upstream::always(found_page()));
    let gateway = gateway_with_search(&model, &finder, "1");
    let answer = send(&gateway, "/v1/messages", &messages_body("chat", false));
    let cost = answer.json()["weirgate"]["usage"]["cost"].clone();
    let credit = used(&gateway, &cost.to_string());
    assert_eq!(
        Value::from(credit.used.to_string().parse::<f64>().unwrap()),
        cost
    );
    assert!(cost.as_f64().unwrap() > 0.01, "{cost}");
}

#[test]
fn no_more_searches_run_than_are_allowed() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let model = saying(move |asked| {
        count.fetch_add(1, Ordering::Relaxed);
        match asked
            .results
            .last()
            .filter(|it| it.contains("No more searches"))
        {
            Some(_) => Turn::text("enough").into(),
            None => Turn::call("web_search", json!({"query": "cats"})).into(),
        }
    });
    let finder = Upstream::always(found_page());
    let gateway = gateway_with_search(&model, &finder, "1000");
    let answer = send(&gateway, "/v1/messages", &messages_body("chat", true));
    let blocks = content(&answer);
    let results: Vec<&Value> = blocks
        .iter()
        .filter(|it| it["type"] == "web_search_tool_result")
        .collect();
    assert_eq!(results.len(), 4, "{}", answer.text());
    assert_eq!(
        results[3]["content"],
        json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"})
    );
    assert_eq!(
        (calls.load(Ordering::Relaxed), finder.requests().len()),
        (5, 3)
    );
    assert_eq!(
        end(&answer)["usage"]["server_tool_use"]["web_search_requests"],
        3
    );
}

#[test]
fn a_model_that_never_stops_searching_pauses() {
    let model = saying(|_| Turn::call("web_search", json!({"query": "cats"})).into());
    let finder = Upstream::always(found_page());
    let gateway = gateway_with_search(&model, &finder, "1000");
    for is_stream in [false, true] {
        let before = model.requests().len();
        let answer = send(&gateway, "/v1/messages", &messages_body("items", is_stream));
        assert_eq!(
            end(&answer)["stop_reason"],
            "pause_turn",
            "{}",
            answer.text()
        );
        assert_eq!(model.requests().len() - before, 10);
    }
}

#[test]
fn a_search_that_fails_is_told_and_costs_nothing() {
    let model = saying(searches_once);
    for reply in [
        Reply::json(500, "{}"),
        Reply::json(200, "no json"),
        Reply::empty().and_reset(),
    ] {
        let finder = Upstream::always(reply);
        let gateway = gateway_with_search(&model, &finder, "1000");
        let answer = send(&gateway, "/v1/messages", &messages_body("chat", true));
        let blocks = content(&answer);
        assert_eq!(
            blocks[2]["content"]["error_code"],
            "unavailable",
            "{}",
            answer.text()
        );
        assert!(
            blocks[3]["text"]
                .as_str()
                .unwrap()
                .contains("The search has failed")
        );
        let end = end(&answer);
        assert_eq!(
            end["weirgate"]["usage"]["cost_details"]["web_search_cost"], 0,
            "{end}"
        );
        assert_eq!(end["usage"].get("server_tool_use"), None);
    }
}

#[test]
fn arguments_without_a_query_are_told_to_the_model() {
    let model = saying(|asked| match asked.has_result {
        true => Turn::text(asked.results.last().unwrap().clone()).into(),
        false => Turn::call("web_search", json!({"q": "cats"})).into(),
    });
    let finder = Upstream::always(found_page());
    let gateway = gateway_with_search(&model, &finder, "1000");
    let answer = send(&gateway, "/v1/messages", &messages_body("chat", false));
    let blocks = content(&answer);
    assert_eq!(
        blocks[1]["content"]["error_code"],
        "invalid_tool_input",
        "{}",
        answer.text()
    );
    assert!(blocks[2]["text"].as_str().unwrap().contains("`query`"));
    assert_eq!(finder.requests().len(), 0);
}

#[test]
fn calls_of_the_clients_tools_go_first() {
    let model = saying(|_| {
        let both = Turn::call("web_search", json!({"query": "cats"}));
        both.and_call("read", json!({"path": "a"})).into()
    });
    let finder = Upstream::always(found_page());
    let gateway = gateway_with_search(&model, &finder, "1000");
    for is_stream in [false, true] {
        let mut body = messages_body("chat", is_stream);
        let read = json!({"name": "read", "input_schema": {"type": "object"}});
        body["tools"].as_array_mut().unwrap().push(read);
        let answer = send(&gateway, "/v1/messages", &body);
        let blocks = content(&answer);
        assert_eq!(blocks.len(), 1, "{}", answer.text());
        assert_eq!(
            (&blocks[0]["type"], &blocks[0]["name"]),
            (&json!("tool_use"), &json!("read"))
        );
        assert_eq!(end(&answer)["stop_reason"], "tool_use");
    }
    assert_eq!(finder.requests().len(), 0);
}

#[test]
fn a_search_that_is_demanded_is_demanded_once() {
    let (model, finder) = (saying(searches_once), Upstream::always(found_page()));
    let gateway = gateway_with_search(&model, &finder, "1000");
    let mut body = messages_body("chat", false);
    body["tool_choice"] = json!({"type": "tool", "name": "web_search"});
    send(&gateway, "/v1/messages", &body);
    let mut chat = chat_body("chat", false);
    chat["tools"] = json!([{"type": "web_search"}]);
    chat["tool_choice"] = json!({"type": "web_search"});
    send(&gateway, "/v1/chat/completions", &chat);
    let choices: Vec<Value> = model
        .requests()
        .iter()
        .map(|it| it.json()["tool_choice"].clone())
        .collect();
    let demanded = json!({"type": "function", "function": {"name": "web_search"}});
    assert_eq!(
        choices,
        [demanded.clone(), json!("auto"), demanded, json!("auto")]
    );
}

/// Without a search of its own the gateway cannot help.
#[test]
fn without_a_search_the_field_is_named() {
    let model = saying(searches_once);
    let gateway = gateway_with(&model, "", "", "1000");
    let answer = send(&gateway, "/v1/messages", &messages_body("chat", false));
    assert_eq!(answer.status(), 400, "{}", answer.text());
    assert!(
        answer.text().contains("does not search the web"),
        "{}",
        answer.text()
    );
    let answer = send(&gateway, "/v1/chat/completions", &chat_body("chat", false));
    assert_eq!(
        answer.json()["error"]["param"],
        "web_search",
        "{}",
        answer.text()
    );
}

#[test]
fn a_later_turn_that_breaks_is_no_answer() {
    let model = saying(|asked| match asked.has_result {
        true => Said::Turn(Turn {
            breaks: true,
            ..Turn::text("They say")
        }),
        false => searches_once(asked),
    });
    let finder = Upstream::always(found_page());
    let gateway = gateway_with_search(&model, &finder, "1000");
    let answer = send(&gateway, "/v1/messages", &messages_body("chat", true));
    let events = answer.events().json();
    assert_eq!(events.last().unwrap()["type"], "error", "{}", answer.text());
    assert!(!answer.text().contains("message_stop"));
    assert!(answer.text().contains("web_search_tool_result"));
    let answer = send(&gateway, "/v1/messages", &messages_body("chat", false));
    assert_eq!(answer.status(), 502, "{}", answer.text());
    // The first turn and the search of both calls are charged, some moments behind.
    let credit = || gateway.beside(async |store| store.credit("acme").await.unwrap());
    let mut seen = every(Duration::from_millis(50), Duration::from_secs(5)).map(|_| credit());
    let is_charged = |credit: &Credit| credit.used.to_string().starts_with("0.02");
    assert!(seen.any(|credit| is_charged(&credit)), "{:?}", credit());
}

/// A turn on its way is the history of the next one, and what the gateway has said of its searches goes to nobody.
#[test]
fn a_history_with_searches_goes_to_every_wire_without_them() {
    let (model, finder) = (saying(searches_once), Upstream::always(found_page()));
    let gateway = gateway_with_search(&model, &finder, "1000");
    let first = content(&send(
        &gateway,
        "/v1/messages",
        &messages_body("chat", false),
    ));
    for wire in MODELS {
        let mut body = messages_body(wire, false);
        let history = body["messages"].as_array_mut().unwrap();
        history.push(json!({"role": "assistant", "content": first}));
        history.push(json!({"role": "user", "content": "And dogs?"}));
        body.as_object_mut().unwrap().remove("tools");
        let before = model.requests().len();
        send(&gateway, "/v1/messages", &body);
        let sent = String::from_utf8_lossy(&model.request(before).body).into_owned();
        assert!(!sent.contains("srvtoolu_"), "{wire}: {sent}");
        assert!(
            sent.contains("They say") && sent.contains("And dogs?"),
            "{wire}: {sent}"
        );
    }
}

#[test]
fn a_client_is_pinged_while_a_search_takes_long() {
    let gate = Gate::default();
    let finder = Upstream::always(Reply::empty().wait(&gate).then(found_page()));
    let model = saying(searches_once);
    let gateway = gateway_with_search(&model, &finder, "1000");
    let mut client = Client::connect(gateway.address());
    client.send(
        &Ask::post("/v1/messages", messages_body("chat", true).to_string()).key(&gateway.key),
    );
    assert_eq!(client.head().status, 200);
    let mut seen = String::new();
    let mut pings = 0;
    while pings < 2 {
        let chunk = client.chunk().unwrap();
        let text = String::from_utf8_lossy(&chunk.bytes).into_owned();
        pings += text.matches("event: ping").count();
        seen += &text;
    }
    assert!(!seen.contains("web_search_tool_result"), "{seen}");
    gate.open();
    let mut rest = String::new();
    while let Some(chunk) = client.chunk() {
        rest += &String::from_utf8_lossy(&chunk.bytes);
    }
    assert!(
        rest.contains("web_search_tool_result") && rest.contains("message_stop"),
        "{rest}"
    );
}

#[test]
fn a_client_that_leaves_during_a_search_ends_it() {
    let finder = Upstream::always(Reply::hang());
    let model = saying(searches_once);
    let gateway = gateway_with_search(&model, &finder, "1000");
    let mut client = Client::connect(gateway.address());
    client.send(
        &Ask::post("/v1/messages", messages_body("chat", false).to_string()).key(&gateway.key),
    );
    finder.wait_requests(1);
    client.reset();
    finder.wait_closed(0);
    assert_eq!(model.requests().len(), 1);
    // The first turn is charged, and nothing of the search.
    std::thread::sleep(Duration::from_millis(100));
    let credit = gateway.beside(async |store| store.credit("acme").await.unwrap());
    assert!(credit.used.to_string().starts_with("0.0000"), "{credit:?}");
}

#[test]
fn a_turn_that_credit_does_not_cover_is_refused() {
    let model = saying(searches_once);
    let finder = Upstream::always(found_page());
    // The first turn and the search fit, but what the second turn may cost does not.
    let gateway = gateway_with_search(&model, &finder, "0.012");
    let answer = send(&gateway, "/v1/messages", &messages_body("chat", true));
    assert!(answer.text().contains("billing_error"), "{}", answer.text());
    assert!(!answer.text().contains("message_stop"), "{}", answer.text());
    assert_eq!(model.requests().len(), 1);
}
