//! `POST /v1/search`: what goes up, what comes down, who is tried, what it costs. Source: docs/model-gateway.md 2.14.

use serde_json::{Value, json};

use crate::ledger::used;
use crate::models::fronts::operations::{Operation, two_providers};
use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// A search at two providers, the second of which bills what it reads of each page, too.
const MODELS: &str = concat!(
    two_providers!(
        "finder",
        "search",
        "name = \"basic\"\nsearch_price = \"0.0001\"",
        "name = \"auto\"\nsearch_price = \"0.0001\"\ndocument_price = \"0.1\""
    ),
    "[[models]]\nid = \"web-search\"\ntype = \"search\"\n\
     [[models.providers]]\nprovider = \"second\"\nname = \"fast\"\nsearch_price = \"0\"\n",
);

const SEARCH: Operation = Operation {
    path: "/v1/search",
    kinds: ["tavily", "exa"],
    models: MODELS,
    body: r#"{"model":"finder","query":"cats"}"#,
    replies: [tavily, exa],
    costs: ["0.0001", "0.0002"],
    left: "0.0001",
};

fn tavily() -> Reply {
    let page = json!({"title": "T", "url": "https://a.test", "content": "Cats are small.", "score": 0.9, "raw_content": null});
    let body = json!({"query": "cats", "answer": null, "images": [], "results": [page], "response_time": 1.5});
    Reply::json(200, body.to_string())
}

fn exa() -> Reply {
    let page = json!({"id": "i", "title": "T", "url": "https://a.test", "highlights": ["Cats are small."]});
    let body = json!({"requestId": "r", "results": [page], "costDollars": {"total": 0.006}});
    Reply::json(200, body.to_string())
}

fn response(model: &str) -> Value {
    let page = json!({"title": "T", "url": "https://a.test", "snippet": "Cats are small."});
    json!({"id": "s-1", "model": model, "results": [page]})
}

/// Contract: model-gateway 2.14 search_domain_filter
/// Contract: model-gateway 4 POST /v1/search
#[test]
fn each_provider_gets_its_words_and_the_client_the_conventions() {
    let (first, second) = (Upstream::always(tavily()), Upstream::always(exa()));
    let gateway = SEARCH.gateway([&first, &second], "", "1");
    for (provider, upstream, credential, sent) in [
        (
            "first",
            &first,
            ("authorization", "Bearer sk-platform"),
            json!({"query": "cats", "search_depth": "basic", "max_results": 3, "include_domains": ["a.test"]}),
        ),
        (
            "second",
            &second,
            ("x-api-key", "sk-platform"),
            json!({"query": "cats", "type": "auto", "numResults": 3, "includeDomains": ["a.test"],
                "contents": {"highlights": {"maxCharacters": 2000}}}),
        ),
    ] {
        let model = format!("{provider}/finder");
        let body = json!({"model": model, "query": "cats", "max_results": 3, "search_domain_filter": ["a.test"]});
        let request = SEARCH.request(&gateway).body(body.to_string());
        let answer = ask(gateway.address(), &request.header("x-request-id", "s-1"));
        assert_eq!((answer.status(), answer.json()), (200, response(&model)));
        let received = upstream.request(0);
        assert_eq!(
            (received.path.as_str(), received.json()),
            ("/v1/search", sent)
        );
        assert_eq!(received.header(credential.0), Some(credential.1));
    }
    assert_eq!(gateway.log_line("s-1")["searches"], 1);
}

/// Contract: model-gateway 2.14 max_tokens
/// Contract: model-gateway 2.14 search_recency_filter
#[test]
fn a_provider_of_the_convention_gets_options_and_gives_results_as_they_are() {
    let page = json!({"title": "T", "url": "https://a.test", "snippet": "s", "date": "2026-01-31", "last_updated": null});
    let reply = json!({"id": "up", "results": [page], "server_time": "2026"});
    let upstream = Upstream::always(Reply::json(200, reply.to_string()));
    let compatible = Operation {
        kinds: ["openai-compatible", "exa"],
        ..SEARCH
    };
    let gateway = compatible.gateway([&upstream, &upstream], "", "1");
    let body = json!({"model": "first/finder", "query": ["cats", "dogs"], "max_tokens": 9, "search_recency_filter": "hour", "search_type": "web"});
    let request = compatible.request(&gateway).body(body.to_string());
    let answer = ask(gateway.address(), &request.header("x-request-id", "s-2"));
    let expected =
        json!({"id": "s-2", "model": "first/finder", "results": [page], "server_time": "2026"});
    assert_eq!((answer.status(), answer.json()), (200, expected));
    let mut sent = body;
    sent["model"] = "basic".into();
    assert_eq!(upstream.request(0).json(), sent);
}

/// Contract: model-gateway 2.14 max_tokens
/// Contract: model-gateway 2.14 country
#[test]
fn an_option_that_no_provider_has_a_word_for_is_named() {
    let first = Upstream::always(tavily());
    let gateway = SEARCH.gateway([&first, &first], "", "1");
    let mut body = json!({"model": "finder", "query": "cats", "max_tokens": 100});
    let answer = ask(
        gateway.address(),
        &SEARCH.request(&gateway).body(body.to_string()),
    );
    let error = &answer.json()["error"];
    let named = (answer.status(), error["param"].as_str());
    assert_eq!(named, (400, Some("max_tokens")), "{error}");
    body["max_tokens"] = Value::Null;
    body["country"] = "US".into();
    let answer = ask(
        gateway.address(),
        &SEARCH.request(&gateway).body(body.to_string()),
    );
    assert_eq!(answer.json()["model"], "second/finder", "{}", answer.text());
}

/// Contract: model-gateway 2.14 model
/// Contract: model-gateway 2.14 search_type
#[test]
fn without_a_model_the_usual_one_searches() {
    let first = Upstream::always(exa());
    let gateway = SEARCH.gateway([&first, &first], "", "0");
    let request = SEARCH.request(&gateway).body(r#"{"query":"cats"}"#);
    let answer = ask(gateway.address(), &request);
    assert_eq!(
        answer.json()["model"],
        "second/web-search",
        "{}",
        answer.text()
    );
    assert_eq!(first.request(0).json()["type"], "fast");
    used(&gateway, "0");
    let request = SEARCH
        .request(&gateway)
        .body(r#"{"query":"cats","search_type":"web"}"#);
    let answer = ask(gateway.address(), &request);
    assert_eq!(
        answer.json()["error"]["param"],
        "search_type",
        "{}",
        answer.text()
    );
}

#[test]
fn a_failed_provider_is_followed_by_the_next() {
    SEARCH.falls_back();
}

#[test]
fn searches_and_read_pages_cost_their_prices() {
    SEARCH.costs();
}

#[test]
fn credit_and_limits_of_keys_hold() {
    SEARCH.is_paid_for();
}

#[test]
fn searching_has_a_quota_of_its_own() {
    SEARCH.has_a_quota("search");
}

#[test]
fn a_client_that_leaves_pays_for_the_search_and_a_failure_costs_nothing() {
    SEARCH.is_left();
}

/// Contract: model-gateway 2.14 query
/// Contract: model-gateway 2.14 search_type
#[test]
fn a_bad_request_is_named_and_reaches_no_provider() {
    SEARCH.refuses(&[
        ("{", None),
        (r#"{"model":"finder"}"#, Some("query")),
        (r#"{"model":"finder","query":""}"#, Some("query")),
        (r#"{"model":"finder","query":["a",7]}"#, Some("query[1]")),
        (
            r#"{"model":"finder","query":"a","max_results":51}"#,
            Some("max_results"),
        ),
        (
            r#"{"model":"finder","query":"a","search_type":"people"}"#,
            Some("search_type"),
        ),
        (
            r#"{"model":"finder","query":"a","search_after_date_filter":"31/12/2026"}"#,
            Some("search_after_date_filter"),
        ),
        (r#"{"model":"auto","query":"a"}"#, Some("model")),
        (r#"{"model":"chat","query":"a"}"#, Some("model")),
    ]);
}

#[test]
fn the_listing_has_the_price_of_a_search() {
    let first = Upstream::always(tavily());
    let gateway = SEARCH.gateway([&first, &first], "", "1");
    let models = ask(
        gateway.address(),
        &Ask::get("/v1/models/finder").key(&gateway.key),
    )
    .json();
    assert_eq!(
        models["providers"][0]["pricing"]["search"], "0.0001",
        "{models}"
    );
    let outputs = &models["architecture"]["output_modalities"];
    assert_eq!(outputs, &json!(["search"]));
}
