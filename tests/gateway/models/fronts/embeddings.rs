//! `POST /v1/embeddings`: what goes up, what comes down, who is tried, what it costs. Source: docs/model-gateway.md
//! 2.6.

mod lengths;
mod parts;

use serde_json::{Value, json};
use weirgate::store::ledger::By;

use crate::ledger::used;
use crate::models::fronts::chat_completions::PLAIN;
use crate::models::fronts::operations::Operation;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// Vectors at three providers, the first two of which speak OpenAI's convention; and what serves no vectors.
const MODELS: &str = r#"
[[models]]
id = "vectors"
type = "embedding"
[[models.providers]]
provider = "first"
name = "vectors-at-first"
input_price = "2"
context_size = 20
[[models.providers]]
provider = "second"
name = "vectors-at-second"
input_price = "4"
context_size = 2000
capabilities = []
[[models]]
id = "gemini-vectors"
operations = ["embeddings"]
[[models.providers]]
provider = "gemini"
name = "vectors-at-gemini"
input_price = "1"
[[models]]
id = "claude-vectors"
operations = ["chat", "embeddings"]
[[models.providers]]
provider = "claude"
name = "claude"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
"#;

/// Vectors at two providers, cheaper at the first.
const PAIR_MODELS: &str = r#"
[[models]]
id = "vectors"
type = "embedding"
[[models.providers]]
provider = "first"
name = "vectors-at-first"
input_price = "2"
[[models.providers]]
provider = "second"
name = "vectors-at-second"
input_price = "4"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
"#;

const PAIR: &str = r#"{"model":"vectors","input":["one","two"],"user":"ann@example.com"}"#;

pub fn vectors() -> Reply {
    let item = |index: usize| json!({"object": "embedding", "index": index, "embedding": [0.5, index as f64]});
    Reply::json(
        200,
        json!({"object": "list", "data": [item(0), item(1)], "model": "vectors-2026",
               "usage": {"prompt_tokens": 6, "total_tokens": 6}})
        .to_string(),
    )
}

fn cohere_vectors() -> Reply {
    let body = json!({"id": "up", "embeddings": {"float": [[0.5, 0], [0.5, 1]]}, "texts": ["one", "two"],
        "meta": {"billed_units": {"input_tokens": 6}}});
    Reply::json(200, body.to_string())
}

fn gemini_vectors() -> Reply {
    let body = json!({"embeddings": [{"values": [3.0, 4.0]}, {"values": [0.5, 0.25]}]});
    Reply::json(200, body.to_string())
}

fn gateway_with(first: &Upstream, second: &Upstream, more: &str, credit: &str) -> Gateway {
    let (first, second) = (first.url(), second.url());
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{first}/v1\"\nkeys = []\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{second}/v1\"\nkeys = []\n\
         [providers.gemini]\nkind = \"google\"\nbase_url = \"{first}\"\nkeys = [{{ env = \"GEMINI_KEY\" }}]\n\
         [providers.claude]\nkind = \"anthropic\"\nbase_url = \"{first}\"\nkeys = [{{ env = \"CLAUDE_KEY\" }}]\n{more}\n"
    );
    let keys = [("GEMINI_KEY", "AIza-platform"), ("CLAUDE_KEY", "sk-ant-1")];
    Gateway::start_with_credit(&toml, MODELS, &keys, credit)
}

fn gateway(first: &Upstream, second: &Upstream) -> Gateway {
    gateway_with(first, second, "", "1")
}

impl Gateway {
    fn embed(&self, body: impl AsRef<[u8]>) -> Answer {
        ask(self.address(), &self.embed_ask(body))
    }

    fn embed_ask(&self, body: impl AsRef<[u8]>) -> Ask {
        Ask::post("/v1/embeddings", body).key(&self.key)
    }
}

/// Contract: model-gateway 4 POST /v1/embeddings
#[test]
fn a_list_has_the_contracts_members_and_no_others() {
    let first = Upstream::always(vectors());
    let gateway = gateway(&first, &first);
    let answer = gateway.embed(PAIR);
    let expected = json!({
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.0]},
                 {"object": "embedding", "index": 1, "embedding": [0.5, 1.0]}],
        "model": "first/vectors",
        "usage": {"prompt_tokens": 6, "total_tokens": 6},
    });
    assert_eq!((answer.status(), answer.json()), (200, expected));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("request-id"), answer.header("x-request-id"));
}

/// Contract: model-gateway 2.6 user
/// Contract: model-gateway 2.6 dimensions
#[test]
fn the_provider_sees_an_identifier_of_the_key_in_place_of_the_user() {
    let first = Upstream::always(vectors());
    let gateway = gateway(&first, &first);
    gateway.embed(PAIR);
    gateway.embed(r#"{"model":"vectors","input":["one","two"],"dimensions":8}"#);
    let requests = first.wait_requests(2);
    let bodies: Vec<Value> = requests.iter().map(|request| request.json()).collect();
    let user = bodies[0]["user"].as_str().unwrap().to_owned();
    let expected = json!({"model": "vectors-at-first", "input": ["one", "two"], "user": user});
    assert_eq!(bodies[0], expected);
    assert_eq!(
        (&bodies[1]["user"], &bodies[1]["dimensions"]),
        (&user.into(), &8.into())
    );
    assert_eq!(requests[0].path, "/v1/embeddings");
    let text = String::from_utf8_lossy(&requests[0].body).into_owned();
    assert!(!text.contains("ann@") && !text.contains("key_"), "{text}");
}

#[test]
fn gemini_gets_contents_and_the_client_a_list() {
    let first = Upstream::always(gemini_vectors());
    let gateway = gateway(&first, &first);
    let answer =
        gateway.embed(r#"{"model":"gemini-vectors","input":["one","two"],"dimensions":2}"#);
    let expected = json!({
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.6, 0.8]},
                 {"object": "embedding", "index": 1, "embedding": [0.8944272, 0.4472136]}],
        "model": "gemini/gemini-vectors",
        "usage": {"prompt_tokens": 2, "total_tokens": 2, "info": "estimated"},
    });
    assert_eq!((answer.status(), answer.json()), (200, expected));
    let request = first.request(0);
    assert_eq!(
        request.path,
        "/v1beta/models/vectors-at-gemini:batchEmbedContents"
    );
    assert_eq!(request.header("x-goog-api-key"), Some("AIza-platform"));
    let content = |text: &str| {
        json!({"model": "models/vectors-at-gemini", "content": {"parts": [{"text": text}]},
               "outputDimensionality": 2})
    };
    let expected = json!({"requests": [content("one"), content("two")]});
    assert_eq!(request.json(), expected);
}

/// Contract: model-gateway 2.6 encoding_format
#[test]
fn base64_is_made_where_the_provider_gives_numbers() {
    for (model, reply) in [("vectors", vectors()), ("gemini-vectors", gemini_vectors())] {
        let first = Upstream::always(reply);
        let gateway = gateway(&first, &first);
        let body = json!({"model": model, "input": ["one", "two"], "encoding_format": "base64"});
        let answer = gateway.embed(body.to_string()).json();
        // The second vector is (0.5, 1) or (0.5, 0.25) in little-endian floats.
        let expected = ["AAAAPwAAgD8=", "AAAAPwAAgD4="];
        let text = answer["data"][1]["embedding"].as_str().unwrap();
        assert!(expected.contains(&text), "{answer}");
    }
}

#[test]
fn a_failed_provider_is_followed_by_the_next_until_the_list_is_whole() {
    let short = json!({"data": [{"index": 0, "embedding": [1]}]}).to_string();
    let half = vectors().cut(250, crate::support::script::Cut::Close);
    for failed in [
        Reply::json(500, "{}"),
        Reply::json(429, "{}"),
        Reply::json(200, "<html>"),
        Reply::json(200, short),
        half,
    ] {
        let (first, second) = (Upstream::always(failed), Upstream::always(vectors()));
        let answer = gateway(&first, &second).embed(PAIR);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(answer.json()["model"], "second/vectors");
        assert_eq!(first.requests().len(), 1);
    }
}

#[test]
fn a_refusal_of_the_request_is_told_and_no_other_provider_asked() {
    let refusal =
        json!({"error": {"message": "too many dimensions", "code": "bad", "param": "dimensions"}});
    let first = Upstream::always(Reply::json(400, refusal.to_string()));
    let second = Upstream::always(vectors());
    let answer = gateway(&first, &second).embed(PAIR);
    assert_eq!(answer.status(), 400);
    assert!(answer.text().contains("too many dimensions"));
    assert!(second.requests().is_empty());
}

#[test]
fn every_provider_failing_is_a_502() {
    let first = Upstream::always(Reply::json(500, "{}"));
    let answer = gateway(&first, &first).embed(PAIR);
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["error"]["code"], "all_providers_failed");
}

/// Contract: model-gateway 2.6 dimensions
#[test]
fn who_cannot_serve_the_request_is_left_out() {
    let (first, second) = (Upstream::always(vectors()), Upstream::always(vectors()));
    let gateway = gateway(&first, &second);
    let long = json!({"model": "vectors", "input": [[1, 2, 3], vec![7; 21]]});
    let answer = gateway.embed(long.to_string());
    assert_eq!(
        answer.json()["model"],
        "second/vectors",
        "{}",
        answer.text()
    );
    assert_eq!(second.request(0).json()["input"], long["input"]);
    let short = json!({"model": "second/vectors", "input": ["a", "b"], "dimensions": 2});
    for (body, param, said) in [
        (short, "dimensions", "second takes no `dimensions`"),
        (
            json!({"model": "gemini-vectors", "input": [1, 2]}),
            "input",
            "texts, not tokens",
        ),
        (
            json!({"model": "claude-vectors", "input": "a"}),
            "model",
            "claude does not offer embeddings",
        ),
        (
            json!({"model": "chat", "input": "a"}),
            "model",
            "is a model for chat, not for embeddings",
        ),
        (
            json!({"model": "auto", "input": "a"}),
            "model",
            "`auto` chooses among chat models",
        ),
        (
            json!({"model": "vectors", "input": vec![7; 2001]}),
            "input",
            "takes at most 2000 tokens in an input",
        ),
    ] {
        let answer = gateway.embed(body.to_string());
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status(), error["param"].as_str()),
            (400, Some(param)),
            "{error}"
        );
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
    }
    let unknown = gateway.embed(r#"{"model":"nope","input":"a"}"#);
    assert_eq!(unknown.status(), 404);
    // The other way round a model for vectors is no model for chat.
    let answer = gateway.chat(PLAIN.replace("\"chat\"", "\"vectors\""));
    assert_eq!(answer.status(), 400);
    assert!(answer.text().contains("not for chat completions"));
}

/// Contract: model-gateway 2.6 model
/// Contract: model-gateway 2.6 encoding_format
/// Contract: model-gateway 2.6 dimensions
#[test]
fn a_bad_request_is_named_and_reaches_no_provider() {
    let first = Upstream::always(vectors());
    let gateway = gateway(&first, &first);
    for (body, param) in [
        (r#"{"model":"vectors"}"#, Some("input")),
        (r#"{"input":"a"}"#, Some("model")),
        (r#"{"model":"vectors","input":[]}"#, Some("input")),
        (r#"{"model":"vectors","input":["a",1]}"#, Some("input[1]")),
        (
            r#"{"model":"vectors","input":"a","encoding_format":"hex"}"#,
            Some("encoding_format"),
        ),
        (
            r#"{"model":"vectors","input":"a","dimensions":0}"#,
            Some("dimensions"),
        ),
        ("{", None),
    ] {
        let answer = gateway.embed(body);
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status(), error["param"].as_str()),
            (400, param),
            "{body}: {error}"
        );
        assert_eq!(error["type"], "invalid_request_error");
    }
    let text = gateway.embed_ask(PAIR).without("content-type");
    let text = text.header("content-type", "text/plain");
    assert_eq!(ask(gateway.address(), &text).status(), 415);
    let get = ask(
        gateway.address(),
        &Ask::get("/v1/embeddings").key(&gateway.key),
    );
    assert_eq!(get.status(), 405);
    let keyless = ask(gateway.address(), &Ask::post("/v1/embeddings", PAIR));
    assert_eq!(keyless.status(), 401);
    assert!(first.requests().is_empty());
}

#[test]
fn only_the_prompt_costs_and_the_ledger_has_the_call() {
    let first = Upstream::always(vectors());
    let gateway = gateway(&first, &first);
    assert_eq!(gateway.embed(PAIR).status(), 200);
    used(&gateway, "0.000012");
    let by = Some(By::Model);
    let usage = gateway.beside(async |store| store.usage("acme", 0, by).await.unwrap());
    assert_eq!((usage.len(), &*usage[0].name), (1, "vectors"));
    assert_eq!(
        (
            usage[0].requests,
            usage[0].prompt_tokens,
            usage[0].completion_tokens
        ),
        (1, 6, 0)
    );
    let metrics = gateway.metrics();
    let prompt = "weirgate_tokens_total{kind=\"prompt\",model=\"vectors\",provider=\"first\"} 6";
    assert!(metrics.contains(prompt), "{metrics}");
    let requests = "weirgate_requests_total";
    assert!(
        metrics
            .lines()
            .any(|line| line.starts_with(requests) && line.contains("\"embeddings\"")),
        "{metrics}"
    );
}

/// What holds for every operation, with vectors that cost by the token.
const EMBEDDINGS: Operation = Operation {
    path: "/v1/embeddings",
    kinds: ["openai-compatible", "cohere"],
    models: PAIR_MODELS,
    body: PAIR,
    replies: [vectors, cohere_vectors],
    costs: ["0.000012", "0.000024"],
    left: "0.000004",
};

#[test]
fn without_credit_or_over_the_limit_of_its_key_a_call_reaches_nobody() {
    EMBEDDINGS.is_paid_for();
}

#[test]
fn a_client_that_leaves_pays_the_prompt_and_a_failed_call_nothing() {
    EMBEDDINGS.is_left();
}

#[test]
fn a_provider_that_fails_in_any_way_is_followed_by_the_next_which_alone_is_paid() {
    EMBEDDINGS.falls_back();
}

#[test]
fn embeddings_have_a_quota_of_their_own() {
    let first = Upstream::always(vectors());
    let more = "[limits]\nrequests_per_minute = { embeddings = 2, chat = 1 }";
    let gateway = gateway_with(&first, &first, more, "1");
    let answers = [PAIR, "{", PAIR].map(|body| gateway.embed(body));
    assert_eq!(answers.each_ref().map(Answer::status), [200, 400, 429]);
    for (answer, left) in answers.iter().zip(["1", "0", "0"]) {
        assert_eq!(answer.header("ratelimit-limit"), Some("2"));
        assert_eq!(answer.header("ratelimit-remaining"), Some(left));
    }
    assert!(answers[2].header("retry-after").is_some());
    assert_ne!(gateway.chat("{").status(), 429);
}

#[test]
fn the_listing_says_that_the_model_makes_vectors() {
    let first = Upstream::always(vectors());
    let gateway = gateway(&first, &first);
    let models = ask(gateway.address(), &Ask::get("/v1/models").key(&gateway.key)).json();
    let entry = |id: &str| {
        let data = models["data"].as_array().unwrap();
        data.iter().find(|entry| entry["id"] == id).unwrap().clone()
    };
    let vectors = entry("vectors");
    assert_eq!(
        vectors["architecture"]["output_modalities"],
        json!(["embedding"])
    );
    assert_eq!(
        vectors["supported_parameters"],
        json!(["encoding_format", "dimensions"])
    );
    assert_eq!(
        entry("chat")["architecture"]["output_modalities"],
        json!(["text"])
    );
}
