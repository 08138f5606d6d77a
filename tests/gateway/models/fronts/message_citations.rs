//! Citations of Messages: what the search of any wire has found, on its way to the client and back.

use serde_json::{Value, json};

use super::messages::send;
use crate::models::wires::web_search::{cases, gateway};
use crate::support::boot::Gateway;
use crate::support::grammars::messages::{events, fold};
use crate::support::upstream::Upstream;

/// The text block of the answer of a search.
fn text_block(gateway: &Gateway, is_stream: bool) -> Value {
    let asked = json!({"model": "chat", "max_tokens": 999, "stream": is_stream, "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]});
    let answer = send(gateway, &asked);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let message = match is_stream {
        false => answer.json(),
        true => {
            let events = events(answer.text()).unwrap();
            let input = |text: &str| serde_json::from_str(text).unwrap();
            fold(events.into_iter(), input).unwrap().message
        }
    };
    let mut blocks = message["content"].as_array().unwrap().iter();
    let block = blocks.find(|block| block["type"] == "text");
    block
        .unwrap_or_else(|| panic!("no text: {message}"))
        .clone()
}

/// A citation of our making.
fn own() -> Value {
    json!({"type": "web_search_result_location", "url": "https://a.example", "title": "A", "encrypted_index": "", "cited_text": "hello"})
}

#[test]
fn the_pages_of_a_search_are_cited_on_every_wire() {
    for (kind, more, answers, ..) in cases() {
        let upstream = Upstream::answering(answers);
        let gateway = gateway(&upstream, kind, more, "1");
        // A host of the dialect cites as it does.
        let expected = match kind {
            "anthropic" => {
                json!({"type": "web_search_result_location", "url": "https://a.example", "title": "A"})
            }
            _ => own(),
        };
        for is_stream in [false, true] {
            assert_eq!(
                text_block(&gateway, is_stream),
                json!({"type": "text", "text": "hello", "citations": [expected]}),
                "{kind} {is_stream}"
            );
        }
    }
}

#[test]
fn citations_go_back_to_the_vendor_that_made_them_and_to_nobody_else() {
    let vendors = json!({"role": "assistant", "content": [{"type": "text", "text": "Theirs.", "citations": [
        {"type": "web_search_result_location", "url": "https://b.example", "title": null, "encrypted_index": "Eo8B", "cited_text": "b"},
        {"type": "char_location", "cited_text": "c", "document_index": 0, "document_title": null, "start_char_index": 0, "end_char_index": 1}]}]});
    let ours = |citations: Value| json!({"role": "assistant", "content": [{"type": "text", "text": "Ours.", "citations": citations}, {"type": "text", "text": "Bare."}]});
    let document = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "A page."}, "citations": {"enabled": true}});
    let user = |content: Value| json!({"role": "user", "content": content});
    let history = |own: Value| {
        json!([
            user(json!([document])),
            vendors,
            user("And?".into()),
            ours(own),
            user("Go on.".into())
        ])
    };
    for (kind, more, answers, ..) in cases() {
        let upstream = Upstream::answering(answers);
        let gateway = gateway(&upstream, kind, more, "1");
        let asked =
            json!({"model": "chat", "max_tokens": 999, "messages": history(json!([own(), own()]))});
        let answer = send(&gateway, &asked);
        assert_eq!(answer.status(), 200, "{kind}: {}", answer.text());
        let sent = upstream.requests().pop().unwrap();
        let text = String::from_utf8_lossy(&sent.body);
        for said in ["A page.", "Theirs.", "Ours.", "Bare."] {
            assert!(text.contains(said), "{kind} lost {said}: {text}");
        }
        if kind == "anthropic" {
            assert_eq!(sent.json()["messages"], history(Value::Null));
            assert!(text.contains(&vendors.to_string()), "{text}");
        } else {
            assert!(!text.contains("citations"), "{kind}: {text}");
            assert!(!text.contains("encrypted_index"), "{kind}: {text}");
        }
    }
}
