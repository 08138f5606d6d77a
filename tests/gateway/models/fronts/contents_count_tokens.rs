//! `:countTokens`: by the model's provider, or here.

use serde_json::json;

use super::contents::send;
use crate::support::script::Reply;
use crate::support::scripted::gateway;
use crate::support::upstream::Upstream;

#[test]
fn tokens_are_counted_by_a_provider_of_the_dialect_or_here_and_cost_nothing() {
    let provider = Upstream::answering(|request| match request.path.contains(":countTokens") {
        true => Reply::json(200, r#"{"totalTokens": 4321, "promptTokensDetails": []}"#),
        false => Reply::json(404, "{}"),
    });
    let gateway = gateway(&provider);
    let contents = json!([{"role": "user", "parts": [{"text": "Hi there"}]}]);
    let plain = json!({"contents": contents});
    let counted = |model: &str, body: &serde_json::Value| {
        let answer = send(&gateway, model, "countTokens", body);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer.json()["totalTokens"].as_u64().unwrap()
    };
    assert!(counted("chat", &plain) > 0);
    assert!(provider.requests().is_empty());
    assert_eq!(counted("parts", &plain), 4321);
    let whole = json!({"generateContentRequest": {"model": "models/parts", "contents": contents, "systemInstruction": {"parts": [{"text": "s"}]}}});
    assert_eq!(counted("parts", &whole), 4321);
    let sent = provider.requests().pop().unwrap();
    assert_eq!(&*sent.path, "/v1beta/models/up-parts:countTokens");
    let inner = &sent.json()["generateContentRequest"];
    assert_eq!(
        (&inner["model"], &inner["contents"]),
        (&json!("models/up-parts"), &contents)
    );
    let empty = send(&gateway, "chat", "countTokens", &json!({}));
    assert_eq!(empty.status(), 400);
}
