//! `GET /v1beta/models/{id}`.

use serde_json::json;

use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::upstream::Upstream;

#[test]
fn a_model_is_told_by_its_name_which_may_have_slashes() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let asked = |path: &str| {
        let asked = Ask::get(path).header("x-goog-api-key", &gateway.key);
        let answer = ask(gateway.address(), &asked);
        (answer.status(), answer.json())
    };
    for id in ["chat", "first/chat", "first%2Fchat"] {
        let (status, told) = asked(&format!("/v1beta/models/{id}"));
        assert_eq!(status, 200, "{told}");
        let name = format!("models/{}", id.replace("%2F", "/"));
        assert_eq!(told["name"], json!(name));
    }
    assert_eq!(asked("/v1/models/chat").1["name"], "models/chat");
    let (status, error) = asked("/v1beta/models/nobody");
    assert_eq!(
        (status, &error["error"]["status"]),
        (404, &json!("NOT_FOUND"))
    );
}
