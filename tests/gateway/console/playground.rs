//! The playground asks as a client does.

use serde_json::json;

use super::Browser;
use crate::models::fronts::chat_completions::chunk;
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

const FORM: [(&str, &str); 2] = [("model", "chat"), ("prompt", "Say <b>hello</b>")];

fn streaming() -> Upstream {
    let hello = chunk(json!({"content": "Hello "}), None);
    let there = chunk(json!({"content": "<b>there</b>"}), None);
    let reply = Reply::stream().event(&hello).event(&there);
    let reply = reply.event(&chunk(json!({}), Some("stop")));
    Upstream::always(reply.event("[DONE]").end())
}

#[test]
fn an_answer_comes_with_what_it_was_and_cost() {
    let upstream = streaming();
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    let mut browser = Browser::new(&gateway);
    let page = browser.page("/console/playground");
    assert!(page.contains("<option value=\"chat\">"), "{page}");
    let key = gateway.key.clone();
    let mut fields = FORM.to_vec();
    fields.extend([
        ("key", key.as_str()),
        ("system", "Be brief."),
        ("max_tokens", "7"),
    ]);
    let answer = browser.submit("/console/playground", &fields);
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let text = answer.text();
    assert!(text.starts_with("Hello <b>there</b>\n"), "{text}");
    for part in ["by first", "tokens in", "cost $", "request "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let sent = upstream.requests().remove(0).json();
    assert_eq!(sent["messages"][0]["content"], "Be brief.");
    assert_eq!(sent["messages"][1]["content"], "Say <b>hello</b>");
}

#[test]
fn what_is_refused_is_said() {
    let upstream = streaming();
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    let mut browser = Browser::new(&gateway);
    for (more, said) in [
        (vec![("key", "wg_wrong")], "401"),
        (
            vec![("key", &*gateway.key), ("max_tokens", "many")],
            "\"many\"",
        ),
        (vec![], "key is empty"),
    ] {
        let fields: Vec<_> = FORM.into_iter().chain(more).collect();
        let answer = browser.submit("/console/playground", &fields);
        assert!(answer.text().contains(said), "{said}: {}", answer.text());
    }
    assert!(upstream.requests().is_empty());
}
