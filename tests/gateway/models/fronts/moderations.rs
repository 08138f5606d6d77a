//! `POST /v1/moderations`: what goes up, what comes down, who is tried, what it costs. Source: docs/model-gateway.md
//! 2.11.

use serde_json::json;

use crate::ledger::used;
use crate::models::fronts::operations::Operation;
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// A model at two providers, the first of which sees no pictures; and one that is free.
const MODELS: &str = r#"
[[models]]
id = "guard"
type = "moderation"
[[models.providers]]
provider = "first"
name = "guard-at-first"
input_price = "10"
capabilities = ["cancellation"]
[[models.providers]]
provider = "second"
name = "guard-at-second"
input_price = "20"
[[models]]
id = "omni-moderation-latest"
type = "moderation"
[[models.providers]]
provider = "second"
name = "omni"
input_price = "0"
[[models]]
id = "chat"
[[models.providers]]
provider = "second"
name = "chat"
"#;

const MODERATIONS: Operation = Operation {
    path: "/v1/moderations",
    kinds: ["openai-compatible", "openai-compatible"],
    models: MODELS,
    body: r#"{"model":"guard","input":"1234"}"#,
    replies: [bare, marked],
    costs: ["0.00001", "0.00002"],
    left: "0.00001",
};

/// As Mistral answers.
fn bare() -> Reply {
    let result = json!({"categories": {"selfharm": true}, "category_scores": {"selfharm": 0.9}});
    Reply::json(
        200,
        json!({"id": "x", "model": "up", "results": [result]}).to_string(),
    )
}

/// As OpenAI answers.
fn marked() -> Reply {
    let result = json!({"flagged": true, "categories": {"hate": true}, "category_scores": {"hate": 0.9},
                        "category_applied_input_types": {"hate": ["text"]}});
    Reply::json(
        200,
        json!({"id": "modr-x", "model": "up", "results": [result]}).to_string(),
    )
}

/// Contract: model-gateway 4 POST /v1/moderations
#[test]
fn results_pass_and_the_client_gets_the_conventions_members() {
    let first = Upstream::always(marked());
    let gateway = MODERATIONS.gateway([&first, &first], "", "1");
    let request = MODERATIONS.request(&gateway).body(
        r#"{"model":"second/guard","input":[{"type":"image_url","image_url":{"url":"https://a.test/b"}}]}"#,
    );
    let answer = ask(gateway.address(), &request.header("x-request-id", "m-1"));
    let expected = json!({
        "id": "modr-m-1",
        "model": "second/guard",
        "results": [{"flagged": true, "categories": {"hate": true}, "category_scores": {"hate": 0.9},
                     "category_applied_input_types": {"hate": ["text"]}}],
    });
    assert_eq!((answer.status(), answer.json()), (200, expected));
    let sent = first.request(0);
    assert_eq!(sent.path, "/v1/moderations");
    assert_eq!(sent.json()["model"], "guard-at-second");
}

#[test]
fn a_picture_goes_to_who_sees_it() {
    let (first, second) = (Upstream::always(bare()), Upstream::always(marked()));
    let gateway = MODERATIONS.gateway([&first, &second], "", "1");
    let body = r#"{"model":"guard","input":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}}]}"#;
    let answer = ask(gateway.address(), &MODERATIONS.request(&gateway).body(body));
    assert_eq!(answer.json()["model"], "second/guard", "{}", answer.text());
    let pinned = body.replace("\"guard\"", "\"first/guard\"");
    let answer = ask(
        gateway.address(),
        &MODERATIONS.request(&gateway).body(pinned),
    );
    let error = &answer.json()["error"];
    assert_eq!(
        (answer.status(), &error["param"]),
        (400, &json!("input")),
        "{error}"
    );
}

/// Contract: model-gateway 2.11 model
#[test]
fn without_a_model_the_usual_one_judges_for_nothing_and_without_credit() {
    let first = Upstream::always(marked());
    let gateway = MODERATIONS.gateway([&first, &first], "", "0");
    let request = MODERATIONS.request(&gateway).body(r#"{"input":"1234"}"#);
    let answer = ask(gateway.address(), &request);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(answer.json()["model"], "second/omni-moderation-latest");
    used(&gateway, "0");
}

#[test]
fn a_failed_provider_is_followed_by_the_next() {
    MODERATIONS.falls_back();
}

#[test]
fn what_is_priced_costs() {
    MODERATIONS.costs();
}

#[test]
fn credit_and_limits_of_keys_hold() {
    MODERATIONS.is_paid_for();
}

#[test]
fn moderations_have_a_quota_of_their_own() {
    MODERATIONS.has_a_quota("moderation");
}

#[test]
fn a_client_that_leaves_pays_and_a_failure_costs_nothing() {
    MODERATIONS.is_left();
}

/// Contract: model-gateway 2.11 input
#[test]
fn a_bad_request_is_named_and_reaches_no_provider() {
    MODERATIONS.refuses(&[
        ("{", None),
        (r#"{"model":"guard"}"#, Some("input")),
        (r#"{"model":7,"input":"a"}"#, Some("model")),
        (r#"{"model":"guard","input":""}"#, Some("input")),
        (r#"{"model":"guard","input":[]}"#, Some("input")),
        (r#"{"model":"guard","input":["a",7]}"#, Some("input[1]")),
        (
            r#"{"model":"guard","input":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}"#,
            Some("input[0].image_url.url"),
        ),
        (
            r#"{"model":"guard","input":[{"type":"image_url","image_url":{"url":"https://[2606:4700::1111]@169.254.169.254/"}}]}"#,
            Some("input[0].image_url.url"),
        ),
        (r#"{"model":"auto","input":"a"}"#, Some("model")),
        (r#"{"model":"chat","input":"a"}"#, Some("model")),
    ]);
}
