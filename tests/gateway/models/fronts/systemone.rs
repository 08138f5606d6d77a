//! `POST /v1/systemone`: what goes up, what comes down, who is tried, what it costs. Source: docs/model-gateway.md 2.15.

use serde_json::{Value, json};

use crate::ledger::used;
use crate::models::fronts::operations::Operation;
use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// A model at two providers. Its output has a price, which decisions do not pay.
const MODELS: &str = r#"
[[models]]
id = "judge"
type = "decision"
[[models.providers]]
provider = "first"
name = "judge-at-first"
input_price = "10"
output_price = "1000"
[[models.providers]]
provider = "second"
name = "judge-at-second"
input_price = "20"
output_price = "1000"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat"
"#;

const DECISIONS: Operation = Operation {
    path: "/v1/systemone",
    kinds: ["openai-compatible", "google"],
    models: MODELS,
    body: r#"{"model":"judge","state":"late","questions":{"q":{"type":"noul","instructions":"Is it late?"}}}"#,
    replies: [openai, google],
    costs: ["0.0001", "0.0002"],
    left: "0.00024",
};

fn openai() -> Reply {
    let answer = json!({"type": "predicate", "name": "q", "probability": 0.75});
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}});
    let body = json!({"model": "up", "answers": [answer], "usage": usage});
    Reply::json(200, body.to_string())
}

fn google() -> Reply {
    let body = json!({"answers": {"q": {"noul": 0.75, "confidence": 0.5}},
        "usage": {"total_input_tokens": 10, "total_output_tokens": 5, "total_tokens": 15}});
    Reply::json(200, body.to_string())
}

/// Contract: model-gateway 2.15 questions.*.instructions
/// Contract: model-gateway 4 POST /v1/systemone
#[test]
fn each_provider_gets_its_words_and_the_client_the_conventions() {
    let (first, second) = (Upstream::always(openai()), Upstream::always(google()));
    let gateway = DECISIONS.gateway([&first, &second], "", "1");
    for (provider, upstream, path, sent) in [
        (
            "first",
            &first,
            "/v1/decisions",
            json!({"model": "judge-at-first", "input": "late",
                "questions": [{"type": "predicate", "name": "q", "instructions": "Is it late?"}]}),
        ),
        (
            "second",
            &second,
            "/v1beta/decisions",
            json!({"model": "judge-at-second", "input": "late",
                "questions": {"q": {"type": "noul", "instructions": "Is it late?"}}}),
        ),
    ] {
        let model = format!("{provider}/judge");
        let body = DECISIONS.body.replace("judge", &model);
        let answer = ask(gateway.address(), &DECISIONS.request(&gateway).body(body));
        let expected = json!({"model": model, "answers": {"q": {"type": "noul", "noul": 0.75}},
            "usage": {"input_tokens": 10, "output_tokens": 5}});
        assert_eq!((answer.status(), answer.json()), (200, expected));
        let received = upstream.request(0);
        assert_eq!((received.path.as_str(), received.json()), (path, sent));
    }
}

/// Contract: model-gateway 2.15 questions.*.type
/// Contract: model-gateway 2.15 questions.*.criteria
/// Contract: model-gateway 1 It accepts chat
#[test]
fn the_sandbox_decides() {
    let models = "[[models]]\nid = \"sandbox-decision\"\ntype = \"decision\"\n[[models.providers]]\nprovider = \"sandbox\"\nname = \"sandbox-decision\"\n";
    let gateway =
        crate::support::boot::Gateway::start("[providers.sandbox]\nkind = \"sandbox\"\n", models);
    let body = json!({"model": "sandbox-decision", "state": ["The parcel is late", {"weight": 3}], "questions": {
        "late": {"type": "noul", "instructions": "late parcel"},
        "about": {"type": "choice", "instructions": "What is it about?", "criteria": {"parcel": "A parcel.", "bill": null}},
        "mood": {"type": "score", "instructions": "How urgent?", "criteria": ["early", "late"]},
    }});
    let request = Ask::post("/v1/systemone", body.to_string()).key(&gateway.key);
    let answer = ask(gateway.address(), &request).json();
    let answers = &answer["answers"];
    assert_eq!(
        answers["late"],
        json!({"type": "noul", "noul": 1.0}),
        "{answer}"
    );
    assert_eq!(answers["about"]["choice"], "parcel", "{answer}");
    assert_eq!(
        answers["mood"]["legend"],
        json!({"0": "early", "1": "late"})
    );
    assert!(answers["mood"]["score"].as_f64().unwrap() > 0.5, "{answer}");
    assert!(
        answer["usage"]["input_tokens"].as_u64().unwrap() > 5,
        "{answer}"
    );
}

#[test]
fn a_failed_provider_is_followed_by_the_next() {
    DECISIONS.falls_back();
}

#[test]
fn the_input_alone_costs() {
    DECISIONS.costs();
}

#[test]
fn credit_and_limits_of_keys_hold() {
    DECISIONS.is_paid_for();
}

/// Source: model-gateway 8.1
#[test]
fn decisions_have_a_quota_of_their_own() {
    DECISIONS.has_a_quota("decision");
}

#[test]
fn a_client_that_leaves_pays_for_its_input_and_a_failure_costs_nothing() {
    DECISIONS.is_left();
}

/// Contract: model-gateway 2.15 state
/// Contract: model-gateway 2.15 questions
/// Contract: model-gateway 2.15 questions.*.type
#[test]
fn a_bad_request_is_named_and_reaches_no_provider() {
    let with = |state: Value, question: Value| {
        json!({"model": "judge", "state": state, "questions": {"q": question}}).to_string()
    };
    let noul = json!({"type": "noul", "instructions": "a"});
    let empty = with(json!({}), noul.clone());
    let other = with(json!("a"), json!({"type": "bool", "instructions": "a"}));
    let few = with(
        json!("a"),
        json!({"type": "score", "instructions": "a", "criteria": ["b"]}),
    );
    let model = with(json!("a"), noul).replace("judge", "chat");
    DECISIONS.refuses(&[
        ("{", None),
        (r#"{"state":"a","questions":{}}"#, Some("questions")),
        (r#"{"model":"judge","state":"a"}"#, Some("questions")),
        (&empty, Some("state")),
        (&other, Some("questions.q.type")),
        (&few, Some("questions.q.criteria")),
        (&model, Some("model")),
    ]);
    let first = Upstream::always(openai());
    let gateway = DECISIONS.gateway([&first, &first], "", "1");
    let answer = gateway.chat(r#"{"model":"judge","messages":[{"role":"user","content":"Hi"}]}"#);
    assert!(
        answer.text().contains("use `POST /v1/systemone`"),
        "{}",
        answer.text()
    );
    used(&gateway, "0");
}
