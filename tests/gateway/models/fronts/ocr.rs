//! `POST /v1/ocr`: what goes up, what comes down, who is tried, what it costs. Source: docs/model-gateway.md 2.13.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::ledger::used;
use crate::models::fronts::operations::{Operation, two_providers};
use crate::proxy::uploads::{assert_flat, spooled};
use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::Upstream;

/// A model at two providers, which cost by the page.
const MODELS: &str = two_providers!(
    "reader",
    "ocr",
    "name = \"reader-at-first\"\npage_price = \"0.0001\"\nannotated_page_price = \"0.00015\"",
    "name = \"reader-at-second\"\npage_price = \"0.0002\""
);

const OCR: Operation = Operation {
    path: "/v1/ocr",
    kinds: ["openai-compatible", "openai-compatible"],
    models: MODELS,
    body: r#"{"model":"reader","document":{"type":"document_url","document_url":"https://a.test/b.pdf"}}"#,
    replies: [counted, uncounted],
    costs: ["0.0003", "0.0002"],
    left: "0.0001",
};

/// Three pages, of which one is shown.
fn counted() -> Reply {
    let page = json!({"index": 0, "markdown": "# Hi", "images": [], "dimensions": {"dpi": 200, "height": 2, "width": 1}});
    let body = json!({"pages": [page], "model": "up", "document_annotation": null,
        "usage_info": {"pages_processed": 3, "doc_size_bytes": 99}});
    Reply::json(200, body.to_string())
}

/// A page, and nothing about it.
fn uncounted() -> Reply {
    Reply::json(
        200,
        json!({"pages": [{"index": 0, "markdown": "# Hi"}]}).to_string(),
    )
}

/// Contract: model-gateway 4 POST /v1/ocr
#[test]
fn documents_go_up_as_they_came_and_pages_come_down_so() {
    let first = Upstream::always(counted());
    let gateway = OCR.gateway([&first, &first], "", "1");
    let body = json!({"model": "second/reader", "document": {"type": "file", "file_id": "f-1"}, "pages": [0, 1, 2], "own": {"a": 1}});
    let request = OCR.request(&gateway).body(body.to_string());
    let answer = ask(gateway.address(), &request.header("x-request-id", "o-1"));
    let mut expected = counted_json();
    expected["model"] = "second/reader".into();
    assert_eq!((answer.status(), answer.json()), (200, expected));
    let sent = first.request(0);
    let mut body = body;
    body["model"] = "reader-at-second".into();
    assert_eq!((sent.path.as_str(), sent.json()), ("/v1/ocr", body));
    assert_eq!(gateway.log_line("o-1")["pages"], 3);
    used(&gateway, "0.0006");
}

fn counted_json() -> serde_json::Value {
    let page = json!({"index": 0, "markdown": "# Hi", "images": [], "dimensions": {"dpi": 200, "height": 2, "width": 1}});
    json!({"pages": [page], "model": "up", "document_annotation": null,
        "usage_info": {"pages_processed": 3, "doc_size_bytes": 99}})
}

#[test]
fn a_failed_provider_is_followed_by_the_next() {
    OCR.falls_back();
}

#[test]
fn pages_cost_their_price() {
    OCR.costs();
}

#[test]
fn credit_and_limits_of_keys_hold() {
    OCR.is_paid_for();
}

/// Contract: model-gateway 2.13 pages
#[test]
fn what_a_whole_document_may_cost_is_reserved_and_named_pages_are_less() {
    let first = Upstream::always(counted());
    let gateway = OCR.gateway([&first, &first], "", "0.15");
    let answer = OCR.ask(&gateway);
    assert_eq!(answer.status(), 402, "{}", answer.text());
    let body = OCR.body.replace("}}", r#"},"pages":"0-2"}"#);
    let answer = ask(gateway.address(), &OCR.request(&gateway).body(body));
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

#[test]
fn annotated_pages_cost_more() {
    let first = Upstream::always(counted());
    let gateway = OCR.gateway([&first, &first], "", "1");
    let body = OCR
        .body
        .replace("}}", r#"},"document_annotation_format":{"type":"text"}}"#);
    let body = body.replace("\"reader\"", "\"first/reader\"");
    let answer = ask(gateway.address(), &OCR.request(&gateway).body(body));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    used(&gateway, "0.00045");
}

#[test]
fn ocr_has_a_quota_of_its_own() {
    OCR.has_a_quota("ocr");
}

#[test]
fn a_client_that_leaves_pays_a_page_and_a_failure_costs_nothing() {
    OCR.is_left();
}

#[test]
fn a_body_beyond_its_own_bound_is_413() {
    let first = Upstream::always(counted());
    let more = "[limits.body_bytes]\nocr = 2048\nchat = 1024";
    let gateway = OCR.gateway([&first, &first], more, "1");
    let long = |bytes: usize| {
        let data = "JVBERi0x".repeat(bytes / 8);
        let document = json!({"document_url": format!("data:application/pdf;base64,{data}")});
        let body = json!({"model": "reader", "document": document});
        ask(
            gateway.address(),
            &OCR.request(&gateway).body(body.to_string()),
        )
        .status()
    };
    assert_eq!([long(1536), long(2048)], [200, 413]);
}

/// A document of this length in a data URL, of bytes that differ.
fn document(media_type: &str, begin: &[u8], bytes: usize) -> String {
    let rest = (begin.len()..bytes).map(|at| (at % 251) as u8 ^ (at / 65_536) as u8);
    let document: Vec<u8> = begin.iter().copied().chain(rest).collect();
    format!("data:{media_type};base64,{}", STANDARD.encode(document))
}

fn pdf(bytes: usize) -> String {
    document("application/pdf", b"%PDF-1.7", bytes)
}

#[test]
fn a_document_of_25_mb_takes_no_memory() {
    let first = Upstream::answering(|request| {
        let document = &request.json()["document"]["document_url"];
        let markdown = document.as_str().unwrap().len().to_string();
        Reply::json(
            200,
            json!({"pages": [{"index": 0, "markdown": markdown}]}).to_string(),
        )
    });
    for (media_type, begin) in [
        ("application/pdf", &b"%PDF-1.7"[..]),
        // All that may stand in front of the size of an image is in memory.
        ("image/jpeg", b"\xff\xd8\xff\xe0"),
    ] {
        // The smallest of which something is not in memory.
        assert_flat(&first, MODELS, 1_500_000, |address, key, bytes| {
            let document = document(media_type, begin, bytes * 3 / 4);
            let length = document.len().to_string();
            let body = json!({"model": "reader", "document": {"document_url": document}});
            let answer = ask(address, &Ask::post(OCR.path, body.to_string()).key(key));
            assert_eq!(answer.json()["pages"][0]["markdown"], length);
        });
    }
}

#[test]
fn every_provider_that_is_tried_gets_the_whole_document() {
    let (first, second) = (
        Upstream::always(Reply::json(500, "{}")),
        Upstream::always(counted()),
    );
    let gateway = OCR.gateway([&first, &second], "", "1");
    let document = pdf(3 << 20);
    let body = json!({"pages": "0", "document": {"document_url": document}, "model": "reader", "own": document});
    for request in [
        OCR.request(&gateway).body(body.to_string()),
        OCR.request(&gateway).body(body.to_string()).chunked(10_007),
    ] {
        let answer = ask(gateway.address(), &request.header("x-request-id", "o-long"));
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let line = gateway.log_line("o-long");
        assert_eq!(line["request_bytes"], body.to_string().len(), "{line}");
    }
    for (provider, name) in [(&first, "first"), (&second, "second")] {
        for request in provider.requests() {
            let mut expected = body.clone();
            expected["model"] = format!("reader-at-{name}").into();
            assert!(
                request.json() == expected,
                "{name}: {} bytes",
                request.body.len()
            );
        }
    }
    assert!(!first.requests().is_empty() && second.requests().len() == 2);
    until("the disk is given back", || spooled(&gateway) == 0);
}

#[test]
fn a_long_document_that_is_refused_or_left_leaves_nothing() {
    let first = Upstream::always(counted());
    let more = "[limits]\nspooled_bytes = 3000000\nbody_bytes = { ocr = 5000000 }";
    let gateway = OCR.gateway([&first, &first], more, "1");
    let send = |document: String| {
        let body = json!({"model": "reader", "document": {"document_url": document}});
        ask(
            gateway.address(),
            &OCR.request(&gateway).body(body.to_string()),
        )
        .status()
    };
    let lies = pdf(1_500_000).replace("data:application/pdf", "data:image/png");
    // Too long, no place for it on the disk, no image, no base64 behind what is in memory, and a good one.
    let statuses = [
        pdf(4_000_000),
        pdf(3_000_000),
        lies,
        pdf(1_500_000) + "%",
        pdf(1_500_000),
    ]
    .map(send);
    assert_eq!(statuses, [413, 529, 400, 400, 200]);
    until("the disk is given back", || spooled(&gateway) == 0);
    assert_eq!(first.requests().len(), 1);
}

#[test]
fn long_documents_that_differ_at_their_end_are_not_one_in_the_cache() {
    let first = Upstream::always(counted());
    let gateway = OCR.gateway([&first, &first], "", "1");
    gateway.cache_for(60);
    let send = |document: &str| {
        let body = json!({"model": "reader", "document": {"document_url": document}});
        let answer = ask(
            gateway.address(),
            &OCR.request(&gateway).body(body.to_string()),
        );
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer.header("x-weirgate-cache") == Some("HIT")
    };
    let one = pdf(1_500_000);
    let other = format!("{}AAA=", &one[..one.len() - 4]);
    assert_eq!([send(&one), send(&one), send(&other)], [false, true, false]);
    assert_eq!(first.requests().len(), 2);
}

/// Contract: model-gateway 2.13 model
/// Contract: model-gateway 2.13 document
#[test]
fn a_bad_request_is_named_and_reaches_no_provider() {
    let url = Some("document.document_url");
    OCR.refuses(&[
        ("{", None),
        (r#"{"document":{"file_id":"f"}}"#, Some("model")),
        (r#"{"model":"reader"}"#, Some("document")),
        (
            r#"{"model":"reader","document":{"file_id":"f"}}"#,
            Some("document"),
        ),
        (
            r#"{"model":"reader","document":{"document_url":"file:///etc/passwd"}}"#,
            url,
        ),
        (
            r#"{"model":"reader","document":{"document_url":"http://127.0.0.1/"}}"#,
            url,
        ),
        (
            r#"{"model":"reader","document":{"document_url":"https://[::1]/"}}"#,
            url,
        ),
        (
            r#"{"model":"reader","document":{"document_url":"data:application/pdf;base64,aGk="}}"#,
            url,
        ),
        (
            r#"{"model":"reader","document":{"image_url":"data:image/png;base64,aGk="}}"#,
            Some("document.image_url"),
        ),
        (
            r#"{"model":"reader","document":{"document_url":"https://a.test/"},"pages":"4-1"}"#,
            Some("pages"),
        ),
        (
            r#"{"model":"auto","document":{"document_url":"https://a.test/"}}"#,
            Some("model"),
        ),
        (
            r#"{"model":"chat","document":{"document_url":"https://a.test/"}}"#,
            Some("model"),
        ),
    ]);
}

#[test]
fn the_listing_has_the_price_of_a_page() {
    let first = Upstream::always(counted());
    let gateway = OCR.gateway([&first, &first], "", "1");
    let models = ask(
        gateway.address(),
        &Ask::get("/v1/models?type=ocr").key(&gateway.key),
    )
    .json();
    let data = models["data"].as_array().unwrap();
    assert_eq!(data.len(), 1, "{models}");
    let pricing = &data[0]["providers"][0]["pricing"];
    assert_eq!(pricing["ocr_page"], "0.0001");
    assert_eq!(pricing["ocr_annotated_page"], "0.00015");
    let outputs = &data[0]["architecture"]["output_modalities"];
    assert_eq!(outputs, &json!(["ocr"]));
}
