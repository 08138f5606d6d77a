//! Searches of the web on all wires: requests and replies as golden texts, and what hostile replies become.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::item::{Got, encoded, read, target};
use super::{FailureKind, Quirks, Target, WireKind};
use crate::models::front::Front;
use crate::models::fronts::search::SEARCH;
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;
use crate::money::Unit;

/// The wires that offer it.
const WIRES: [WireKind; 3] = [WireKind::Compatible, WireKind::Tavily, WireKind::Exa];

fn request(more: &Value) -> ModelRequest {
    let mut body = json!({"model": "m", "query": "cats\n"});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    SEARCH.parse(body.to_string().into()).unwrap()
}

fn sent(wire: WireKind, more: &Value) -> (String, Value) {
    encoded(wire.wire(), &request(more), &Quirks::default()).unwrap()
}

/// The body for a mapping of this model; else the field that keeps the provider out.
fn sent_to(wire: WireKind, model: &str, more: &Value) -> Result<Value, Option<String>> {
    let quirks = Quirks::default();
    let target = Target {
        model,
        ..target(&quirks)
    };
    let body = wire.wire().encode(&request(more), &target);
    let body = body.map_err(|fault| fault.param.map(|param| param.to_string()))?;
    Ok(serde_json::from_slice(&body.concat()).unwrap())
}

fn received(wire: WireKind, more: &Value, reply: &Value) -> Result<Got, FailureKind> {
    let got = read(
        wire.wire(),
        &request(more),
        200,
        reply.to_string().as_bytes(),
    );
    got.map_err(|failure| failure.kind)
}

/// Contract: model-gateway 2.14 search_domain_filter
/// Contract: model-gateway 2.14 search_after_date_filter
#[test]
fn each_wire_has_its_path_and_its_words() {
    let more = json!({"max_results": 5, "search_domain_filter": ["a.test", "-b.test"],
        "search_after_date_filter": "1/2/2026", "search_before_date_filter": "12/31/2026", "x": 1});
    for (wire, expected) in [
        (
            WireKind::Compatible,
            json!({"model": "up x", "query": "cats\n", "max_results": 5, "search_domain_filter": ["a.test", "-b.test"],
                "search_after_date_filter": "1/2/2026", "search_before_date_filter": "12/31/2026", "x": 1}),
        ),
        (
            WireKind::Tavily,
            json!({"query": "cats\n", "search_depth": "up x", "max_results": 5, "include_domains": ["a.test"],
                "exclude_domains": ["b.test"], "start_date": "2026-01-02", "end_date": "2026-12-31"}),
        ),
        (
            WireKind::Exa,
            json!({"query": "cats\n", "type": "up x", "numResults": 5, "includeDomains": ["a.test"],
                "excludeDomains": ["b.test"], "startPublishedDate": "2026-01-02T00:00:00.000Z",
                "endPublishedDate": "2026-12-31T23:59:59.999Z", "contents": {"highlights": {"maxCharacters": 2000}}}),
        ),
    ] {
        assert_eq!(
            sent(wire, &more),
            ("/search".to_owned(), expected),
            "{wire:?}"
        );
        let plain = sent(
            wire,
            &json!({"search_recency_filter": null, "max_tokens": null}),
        )
        .1;
        assert_eq!(plain["query"], "cats\n", "{wire:?}");
    }
    let closed = Quirks {
        drop_unknown_fields: true,
        ..Quirks::default()
    };
    let compatible = WireKind::Compatible.wire();
    let (_, body) = encoded(compatible, &request(&more), &closed).unwrap();
    assert_eq!((body.get("x"), &body["max_results"]), (None, &json!(5)));
    let (name, value) = WireKind::Exa
        .wire()
        .host()
        .credential("sk", &closed)
        .unwrap();
    assert_eq!((name.as_str(), value.as_bytes()), ("x-api-key", &b"sk"[..]));
    let (name, value) = WireKind::Tavily
        .wire()
        .host()
        .credential("sk", &closed)
        .unwrap();
    assert_eq!(
        (name.as_str(), value.as_bytes()),
        ("authorization", &b"Bearer sk"[..])
    );
    for wire in [WireKind::Messages, WireKind::Contents, WireKind::Cohere] {
        assert!(wire.wire().limits(Operation::Search).is_none());
    }
    for wire in [WireKind::Tavily, WireKind::Exa] {
        assert!(
            wire.wire().limits(Operation::Chat).is_none()
                && wire.wire().host().model_lists.lists.is_empty()
        );
    }
}

/// Contract: model-gateway 2.14 search_context_size
/// Contract: model-gateway 2.14 country
/// Contract: model-gateway 2.14 search_language_filter
/// Contract: model-gateway 2.14 search_recency_filter
#[test]
fn options_without_a_word_keep_a_provider_out() {
    let refused = |wire, key: &str, value: Value| match sent_to(wire, "basic", &json!({key: value}))
    {
        Ok(_) => false,
        Err(param) => {
            assert_eq!(param.as_deref(), Some(key));
            true
        }
    };
    for (key, value, expected) in [
        ("query", json!(["a", "b"]), [false, true, true]),
        ("query", json!(["a"]), [false, false, false]),
        ("max_results", json!(21), [false, true, false]),
        ("max_results", json!(26), [false, true, true]),
        ("country", json!("US"), [false, true, false]),
        ("search_recency_filter", json!("hour"), [false, true, true]),
        ("search_recency_filter", json!("week"), [false, false, true]),
        ("search_type", json!("fast"), [false, true, true]),
        ("search_type", json!("web"), [false, false, false]),
        ("max_tokens", json!(9), [false, true, true]),
        ("search_context_size", json!("low"), [false, true, true]),
        ("search_language_filter", json!(["en"]), [false, true, true]),
        (
            "last_updated_after_filter",
            json!("1/1/2026"),
            [false, true, true],
        ),
    ] {
        let refused = WIRES.map(|wire| refused(wire, key, value.clone()));
        assert_eq!(refused, expected, "{key} {value}");
    }
    let only = sent_to(
        WireKind::Tavily,
        "basic",
        &json!({"query": ["a"], "search_recency_filter": "day"}),
    );
    let expected =
        json!({"query": "a", "search_depth": "basic", "max_results": 10, "time_range": "day"});
    assert_eq!(only, Ok(expected));
    let there = sent_to(WireKind::Exa, "auto", &json!({"country": "de"})).unwrap();
    assert_eq!(there["userLocation"], "DE");
}

/// Contract: model-gateway 2.14 search_type
#[test]
fn the_kind_of_a_search_is_the_model_of_its_mapping() {
    let fast = json!({"search_type": "fast"});
    let web = json!({"search_type": "web"});
    for (wire, key) in [
        (WireKind::Compatible, "search_type"),
        (WireKind::Tavily, "search_depth"),
        (WireKind::Exa, "type"),
    ] {
        assert_eq!(sent_to(wire, "fast", &fast).unwrap()[key], "fast");
        assert_eq!(sent_to(wire, "fast", &json!({})).unwrap()[key], "fast");
        assert_eq!(
            sent_to(wire, "fast", &web),
            Err(Some("search_type".to_owned()))
        );
    }
    assert_eq!(
        sent_to(WireKind::Compatible, "web", &fast),
        Err(Some("search_type".to_owned()))
    );
    let body = sent_to(WireKind::Compatible, "web", &web).unwrap();
    assert_eq!(body, json!({"search_type": "web", "query": "cats\n"}));
    let body = sent_to(WireKind::Compatible, "their-search", &fast).unwrap();
    assert_eq!(
        (&body["model"], &body["search_type"]),
        (&json!("their-search"), &json!("fast"))
    );
}

fn page(number: u32) -> Value {
    json!({"title": format!("T{number}\n"), "url": "https://a.test", "snippet": "s", "date": "2026-01-31"})
}

/// Contract: model-gateway 2.14 max_results
#[test]
fn results_have_one_shape() {
    let own = json!({"id": "x", "results": [page(1), page(2)], "server_time": "2026"});
    let tavily = |number| {
        json!({"title": format!("T{number}\n"), "url": "https://a.test", "content": "s", "score": 0.9,
        "published_date": "2026-01-31", "raw_content": null})
    };
    let exa = |number| {
        json!({"id": "i", "title": format!("T{number}\n"), "url": "https://a.test", "highlights": ["s"],
        "publishedDate": "2026-01-31", "author": "", "score": null})
    };
    for (wire, reply) in [
        (WireKind::Compatible, own),
        (
            WireKind::Tavily,
            json!({"query": "q", "answer": null, "results": [tavily(1), tavily(2)], "response_time": 1.5}),
        ),
        (
            WireKind::Exa,
            json!({"requestId": "r", "results": [exa(1), exa(2)], "costDollars": {"total": 0.007}}),
        ),
    ] {
        let got = received(wire, &json!({}), &reply).unwrap();
        assert_eq!(got.items, [page(1), page(2)], "{wire:?}");
        let units = got.usage.unwrap().units;
        assert_eq!((units.get(Unit::Search), units.get(Unit::Document)), (1, 2));
        let first = received(wire, &json!({"max_results": 1}), &reply).unwrap();
        assert_eq!((first.items.len(), first.usage.unwrap().prompt), (1, 0));
        let has_time = wire == WireKind::Compatible;
        assert_eq!(
            got.members.iter().any(|(key, _)| key == "server_time"),
            has_time
        );
    }
    let several = json!({"results": [[page(1)], [page(2), page(1)]]});
    let got = received(
        WireKind::Compatible,
        &json!({"query": ["a", "b"], "max_results": 1}),
        &several,
    );
    assert_eq!(got.unwrap().items, [page(1), page(2)]);
    let bare = json!({"results": [{"url": "https://a.test", "title": null, "highlights": ["a\"", 7, "b"]}]});
    let got = received(WireKind::Exa, &json!({}), &bare).unwrap();
    assert_eq!(
        got.items,
        [json!({"title": "", "url": "https://a.test", "snippet": "a\"\nb"})]
    );
    for wire in WIRES {
        let none = received(wire, &json!({}), &json!({"results": []})).unwrap();
        assert_eq!(
            (
                none.items.len(),
                none.usage.unwrap().units.get(Unit::Search)
            ),
            (0, 1)
        );
    }
}

#[test]
fn what_holds_no_results_is_malformed() {
    for bad in [
        json!({}),
        json!([]),
        json!({"results": null}),
        json!({"results": {}}),
        json!({"results": [7]}),
        json!({"results": [{"title": "a"}]}),
        json!({"results": [{"title": "a", "url": 7}]}),
        json!({"results": [page(1), "x"]}),
    ] {
        for wire in WIRES {
            let failed = received(wire, &json!({}), &bad).unwrap_err();
            assert_eq!(failed, FailureKind::Malformed, "{wire:?}: {bad}");
        }
    }
    let error = json!({"error": {"message": "Rate limit reached", "code": 429}});
    for wire in WIRES {
        assert_eq!(
            received(wire, &json!({}), &error).unwrap_err(),
            FailureKind::Status(429)
        );
    }
}

#[test]
fn refusals_are_read_in_the_words_of_each_provider() {
    for (wire, status, body, kind, said) in [
        (
            WireKind::Tavily,
            400,
            json!({"detail": {"error": "Query is too long."}}),
            400,
            "Query is too long.",
        ),
        (
            WireKind::Tavily,
            432,
            json!({"detail": {"error": "over your plan's limit"}}),
            402,
            "over your plan's limit",
        ),
        (
            WireKind::Exa,
            400,
            json!({"requestId": "r", "error": "bad type", "tag": "X"}),
            400,
            "bad type",
        ),
    ] {
        let body = body.to_string();
        let failure = read(wire.wire(), &request(&json!({})), status, body.as_bytes()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Status(kind));
        let failure = failure.scrubbed(&[""; 0]);
        assert!(failure.message.contains(said), "{failure:?}");
    }
}

proptest! {
    #[test]
    fn a_reply_cut_anywhere_or_of_any_bytes_never_panics(
        end in 0_usize..80, bytes in proptest::collection::vec(any::<u8>(), 0..60)
    ) {
        let reply = json!({"results": [page(1)]}).to_string();
        let cut = &reply.as_bytes()[..end.min(reply.len() - 1)];
        for wire in WIRES {
            let read_cut = read(wire.wire(), &request(&json!({})), 200, cut);
            prop_assert!(read_cut.is_err());
            _ = read(wire.wire(), &request(&json!({})), 200, &bytes);
        }
    }
}
