#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::SEARCH;
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::tests::complete;
use crate::models::reply::ReplyIdentity;
use crate::models::request::{ModelRequest, Payload};
use crate::models::search::{Day, SearchFacts, SearchKind};
use crate::models::usage::Usage;
use crate::money::Unit;

fn checked(body: &Value) -> Result<ModelRequest, Fault> {
    SEARCH.parse(body.to_string().into())
}

fn with(key: &str, value: Value) -> Result<ModelRequest, Fault> {
    let mut body = json!({"model": "m", "query": "cats"});
    body[key] = value;
    checked(&body)
}

fn facts(request: &ModelRequest) -> &SearchFacts {
    match &request.payload {
        Payload::Search(facts) => facts,
        _ => unreachable!("a front makes its own payload"),
    }
}

/// Contract: model-gateway 2.14 query
/// Contract: model-gateway 2.14 max_results
#[test]
fn one_query_or_several_are_one_search() {
    for (query, queries, bytes) in [(json!("cats"), 1, 4), (json!(["a", "bc"]), 2, 3)] {
        let request = with("query", query).unwrap();
        let found = facts(&request);
        assert_eq!((found.queries, request.text_bytes), (queries, bytes));
        for units in [request.units, request.cost_inputs.units] {
            assert_eq!(
                (units.get(Unit::Search), units.get(Unit::Document)),
                (1, 10)
            );
        }
    }
}

/// Contract: model-gateway 2.14 model
#[test]
fn a_request_without_a_model_has_the_usual_one() {
    for body in [json!({"query": "a"}), json!({"query": "a", "model": null})] {
        assert_eq!(&*checked(&body).unwrap().model, "web-search");
    }
}

#[test]
fn filters_are_read() {
    let body = json!({"query": "a", "max_results": 7, "search_type": "fast", "country": "us",
        "search_domain_filter": ["a.test", "-b.test"], "search_recency_filter": "week",
        "search_after_date_filter": "1/2/2026", "search_before_date_filter": "12/31/2026"});
    let request = checked(&body).unwrap();
    let found = facts(&request);
    assert_eq!((found.max_results, found.kind), (7, Some(SearchKind::Fast)));
    assert_eq!(found.country.as_deref(), Some("US"));
    let domain = |domains: &[Box<str>]| domains.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(domain(&found.included), ["a.test"]);
    assert_eq!(domain(&found.excluded), ["b.test"]);
    assert_eq!(found.recency, Some("week"));
    let days = [found.after, found.before].map(|day| day.unwrap().to_iso());
    assert_eq!(days, ["2026-01-02", "2026-12-31"]);
    assert!(found.accepts("fast") && !found.accepts("web"));
    let usual = with("search_type", json!("web")).unwrap();
    assert!(facts(&usual).accepts("basic") && !facts(&usual).accepts("fast"));
    assert!(facts(&with("search_type", json!(null)).unwrap()).accepts("fast"));
}

/// Contract: model-gateway 2.14 search_after_date_filter
#[test]
fn days_are_those_of_the_calendar() {
    for day in ["02/29/2028", "2/29/2000", "01/31/2026", "12/31/9999"] {
        assert!(Day::parse(day).is_some(), "{day}");
    }
    for day in [
        "02/29/2026",
        "02/29/1900",
        "04/31/2026",
        "00/10/2026",
        "13/10/2026",
        "1/0/2026",
        "1/1/26",
        "1/1/2026/",
        "1/1",
        "2026-01-01",
        "+1/1/2026",
        "1/1/20266",
        "",
        "//",
    ] {
        assert!(Day::parse(day).is_none(), "{day}");
    }
}

/// Checks that each value is refused with the field, what came and what is accepted.
fn refuses(cases: &[(&str, Value, &str, &str, &str)]) {
    for (key, value, param, came, accepted) in cases {
        let fault = with(key, value.clone()).unwrap_err();
        let named = (fault.status(), fault.param.as_deref());
        assert_eq!(named, (400, Some(*param)), "{key} {value}: {fault}");
        for part in [came, accepted] {
            assert!(fault.message.contains(part), "{part:?} in {fault}");
        }
    }
}

/// Contract: model-gateway 2.14 query
/// Contract: model-gateway 2.14 max_results
/// Contract: model-gateway 2.14 max_tokens
#[test]
fn a_refusal_names_the_field_what_came_and_what_is_accepted() {
    refuses(&[
        ("model", json!(7), "model", "7", "a string"),
        (
            "query",
            json!(null),
            "query",
            "null",
            "a string, or an array",
        ),
        ("query", json!(""), "query", "empty", "a text"),
        ("query", json!(" \n"), "query", "empty", "a text"),
        ("query", json!([]), "query", "empty", "1 to 5"),
        ("query", json!(["a", 7]), "query[1]", "7", "a string"),
        (
            "query",
            json!(vec!["a"; 6]),
            "query[5]",
            "more than 5",
            "queries",
        ),
        (
            "query",
            json!("a".repeat(8193)),
            "query",
            "8193 bytes",
            "8192",
        ),
        (
            "search_type",
            json!("people"),
            "search_type",
            "people",
            "web, fast",
        ),
        ("max_results", json!(0), "max_results", "0", "from 1 to 50"),
        (
            "max_results",
            json!(51),
            "max_results",
            "51",
            "from 1 to 50",
        ),
        ("max_tokens", json!(0), "max_tokens", "0", "from 1"),
        (
            "max_tokens_per_page",
            json!("9"),
            "max_tokens_per_page",
            "9",
            "an integer",
        ),
    ]);
    let fault = checked(&json!({"model": "m"})).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("query"));
}

/// Contract: model-gateway 2.14 search_context_size
/// Contract: model-gateway 2.14 country
/// Contract: model-gateway 2.14 search_language_filter
/// Contract: model-gateway 2.14 search_domain_filter
/// Contract: model-gateway 2.14 search_recency_filter
/// Contract: model-gateway 2.14 search_after_date_filter
#[test]
fn filters_of_another_shape_are_named() {
    let domain = "search_domain_filter";
    refuses(&[
        (
            "search_context_size",
            json!("huge"),
            "search_context_size",
            "huge",
            "low, medium, high",
        ),
        ("country", json!("USA"), "country", "USA", "two letters"),
        ("country", json!("ß"), "country", "ß", "two letters"),
        (
            "search_language_filter",
            json!("en"),
            "search_language_filter",
            "en",
            "an array",
        ),
        (
            "search_language_filter",
            json!([7]),
            "search_language_filter[0]",
            "7",
            "a string",
        ),
        (
            domain,
            json!(vec!["a.test"; 21]),
            "search_domain_filter[20]",
            "more than 20",
            "values",
        ),
        (
            "search_language_filter",
            json!(vec!["en"; 21]),
            "search_language_filter[20]",
            "more than 20",
            "values",
        ),
        (
            domain,
            json!(["-"]),
            "search_domain_filter[0]",
            "empty",
            "a domain",
        ),
        (
            "search_recency_filter",
            json!("decade"),
            "search_recency_filter",
            "decade",
            "hour, day",
        ),
        (
            "search_after_date_filter",
            json!("2026-01-01"),
            "search_after_date_filter",
            "2026-01-01",
            "MM/DD/YYYY",
        ),
        (
            "last_updated_after_filter",
            json!("13/1/2026"),
            "last_updated_after_filter",
            "13/1/2026",
            "MM/DD/YYYY",
        ),
        (
            "last_updated_before_filter",
            json!("1/32/2026"),
            "last_updated_before_filter",
            "1/32/2026",
            "MM/DD/YYYY",
        ),
    ]);
    let turned = json!({"query": "a", "search_after_date_filter": "2/1/2026", "search_before_date_filter": "1/1/2026"});
    let fault = checked(&turned).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("search_after_date_filter"));
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        _ = SEARCH.parse(bytes.into());
    }

    #[test]
    fn a_day_of_any_text_is_one_or_none(text in "[0-9/]{0,12}") {
        if let Some(day) = Day::parse(&text) {
            prop_assert_eq!(day.to_iso().len(), 10);
        }
    }
}

#[test]
fn the_response_has_the_conventions_members() {
    let request = with("query", json!("a")).unwrap();
    let identity = || ReplyIdentity {
        id: "r-1".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    let mut writer = request.front.writer(&request, identity());
    writer.item(br#"{"title":"a"}"#);
    writer.member("server_time", r#""now""#);
    assert!(!writer.has_content());
    let expected =
        json!({"id": "r-1", "model": "here/m", "results": [{"title": "a"}], "server_time": "now"});
    assert_eq!(complete(&mut *writer, Usage::default()), expected);
    let mut writer = request.front.writer(&request, identity());
    let expected = json!({"id": "r-1", "model": "here/m", "results": []});
    assert_eq!(complete(&mut *writer, Usage::default()), expected);
}
