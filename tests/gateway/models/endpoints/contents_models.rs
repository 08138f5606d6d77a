//! `GET /v1beta/models`.

use serde_json::{Value, json};

use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::upstream::Upstream;

#[test]
fn models_are_listed_in_the_words_of_the_vendor_in_pages() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let asked = |path: &str| {
        let asked = Ask::get(path).header("x-goog-api-key", &gateway.key);
        let answer = ask(gateway.address(), &asked);
        (answer.status(), answer.json())
    };
    let (_, all) = asked("/v1beta/models?pageSize=1000");
    let models = all["models"].as_array().unwrap();
    let named = |name: &str| models.iter().find(|model| model["name"] == name).unwrap();
    let methods = json!(["generateContent", "streamGenerateContent", "countTokens"]);
    for name in ["models/chat", "models/nick"] {
        assert_eq!(named(name)["supportedGenerationMethods"], methods, "{all}");
    }
    // Clients that ask below `/v1` are known by their key.
    assert_eq!(asked("/v1/models?pageSize=1000").1, all);
    let (mut token, mut found): (String, Vec<Value>) = (String::new(), Vec::new());
    loop {
        let (_, page) = asked(&format!("//v1beta/models?pageSize=1&pageToken={token}"));
        found.extend(page["models"].as_array().unwrap().iter().cloned());
        match page["nextPageToken"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(&found, models);
    let (status, error) = asked("/v1beta/models?pageSize=many");
    assert_eq!(
        (status, &error["error"]["status"]),
        (400, &json!("INVALID_ARGUMENT"))
    );
}
