//! The content of calls, for organizations that allow it.

use serde_json::json;

use super::*;
use crate::models::fronts::chat_completions;

/// Returns the line of the next call.
fn next_line(gateway: &Gateway, storage: &Upstream, body: &str) -> Value {
    let answer = gateway.chat(body);
    let id = id_of(&answer);
    let line = || {
        let lines = objects(&storage.requests());
        lines
            .into_iter()
            .find(|line| line["request_id"] == id.as_str())
    };
    until("the line", || line().is_some());
    line().unwrap()
}

#[test]
fn content_is_exported_where_the_organization_allows_it_and_never_logged() {
    let provider = Upstream::sequence([
        chat_completions::reply(),
        chat_completions::reply(),
        chat_completions::stream(),
        chat_completions::reply(),
    ]);
    let storage = Upstream::always(is_ok());
    let gateway = gateway(&provider, &bucket(&storage.url(), ""));
    let line = next_line(&gateway, &storage, CHAT);
    assert_eq!(
        (&line["request"], &line["answer"]),
        (&Value::Null, &Value::Null)
    );
    allow(&gateway, true);
    let text: Value = serde_json::from_str(&chat_completions::reply_body()).unwrap();
    let text = &text["choices"][0]["message"]["content"];
    let stream = CHAT.replace("{\"model\"", "{\"stream\":true,\"model\"");
    for body in [CHAT, &stream] {
        let line = next_line(&gateway, &storage, body);
        let asked: Value = serde_json::from_str(line["request"].as_str().unwrap()).unwrap();
        assert_eq!(
            asked,
            json!({"messages": [{"role": "user", "content": "Hi é"}]})
        );
        assert!(line["content_cut"].is_null());
        if body == CHAT {
            assert_eq!(&line["answer"], text);
        } else {
            assert!(!line["answer"].as_str().unwrap().is_empty(), "{line}");
        }
        let logged = gateway.log_line(line["request_id"].as_str().unwrap());
        assert!(logged["request"].is_null() && logged["answer"].is_null());
        let mut without = line.clone();
        for member in ["request", "answer"] {
            without.as_object_mut().unwrap().remove(member);
        }
        assert_eq!(without, logged);
    }
    allow(&gateway, false);
    let line = next_line(&gateway, &storage, CHAT);
    assert!(line["request"].is_null() && line["answer"].is_null());
}

#[test]
fn long_content_is_cut_at_the_border_of_a_character() {
    let long = "é".repeat(50_000);
    let body = chat_completions::reply_body();
    let mut reply: Value = serde_json::from_str(&body).unwrap();
    reply["choices"][0]["message"]["content"] = json!(long);
    let provider = Upstream::always(Reply::json(200, reply.to_string()));
    let storage = Upstream::always(is_ok());
    let gateway = gateway(&provider, &bucket(&storage.url(), ""));
    allow(&gateway, true);
    let asked = json!({"model": "chat", "messages": [{"role": "user", "content": long}]});
    let line = next_line(&gateway, &storage, &asked.to_string());
    assert_eq!(line["content_cut"], true);
    let (request, answer) = (
        line["request"].as_str().unwrap(),
        line["answer"].as_str().unwrap(),
    );
    assert_eq!(answer, "é".repeat(32 << 10));
    assert!(request.len() > (64 << 10) - 2 && request.len() <= 64 << 10);
    assert!(request.ends_with('é'));
}

/// A replayed answer has the same text as the one that was stored.
#[test]
fn a_cached_answer_is_exported_too() {
    let (provider, storage) = (provider(), Upstream::always(is_ok()));
    let gateway = gateway(&provider, &bucket(&storage.url(), ""));
    allow(&gateway, true);
    gateway.cache_for(60);
    let first = next_line(&gateway, &storage, CHAT);
    let second = next_line(&gateway, &storage, CHAT);
    assert_eq!(second["cached"], true, "{second}");
    assert!(!second["answer"].as_str().unwrap().is_empty());
    assert_eq!(second["answer"], first["answer"]);
}
