//! Reports of a scripted provider, which refuses, freezes and has no end.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use filters::models::hosts::ProviderKind;
use filters::reconcile::report::reports;
use jiff::civil::date;
use serde_json::json;

use super::*;

const KEY: &str = "sk-admin-0123456789abcdef";

/// A provider on loopback, and the requests that it has got.
struct Provider {
    base_url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

/// How a provider answers a request: with a status and a body, or never.
type Answer = Option<(u16, String)>;

impl Provider {
    fn new(answer: impl Fn(&str) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            let mut frozen = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                let mut piece = [0; 1024];
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut piece) {
                        Ok(count @ 1..) => head.extend_from_slice(&piece[..count]),
                        _ => break,
                    }
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let answered = answer(head.lines().next().unwrap_or_default());
                seen.lock().unwrap().push(head);
                match answered {
                    None => frozen.push(stream),
                    Some((status, body)) => {
                        let length = body.len();
                        let head = format!(
                            "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nlocation: /elsewhere\r\nconnection: close\r\n\r\n"
                        );
                        _ = stream.write_all(head.as_bytes());
                        _ = stream.write_all(body.as_bytes());
                    }
                }
            }
        });
        Self { base_url, requests }
    }

    fn fetch(&self, kind: ProviderKind, limits: FetchLimits) -> Result<Vec<BillLine>, String> {
        _ = rustls::crypto::ring::default_provider().install_default();
        let key = Secret::new(KEY);
        let asked = ReportRequest {
            base_url: &self.base_url,
            reports: reports(kind).unwrap(),
            key: &key,
            days: [date(2026, 11, 1), date(2026, 11, 3)],
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(fetch(&asked, limits))
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn fetched(answer: impl Fn(&str) -> Answer + Send + 'static) -> Result<Vec<BillLine>, String> {
    Provider::new(answer).fetch(ProviderKind::OpenAi, FetchLimits::USUAL)
}

fn usage(model: &str, next: Option<&str>) -> String {
    let result =
        json!({"input_tokens": 1, "output_tokens": 2, "num_model_requests": 3, "model": model});
    json!({"data": [{"start_time": 1_793_491_200, "results": [result]}], "has_more": next.is_some(), "next_page": next})
        .to_string()
}

fn empty() -> String {
    json!({"data": [], "has_more": false, "next_page": null}).to_string()
}

#[test]
fn all_pages_of_all_reports_are_read_with_the_key_in_its_header() {
    let provider = Provider::new(|line| {
        let body = match line {
            line if line.contains("page=a%2Fb") => usage("second", None),
            line if line.contains("/usage/completions") => usage("first", Some("a/b")),
            _ => empty(),
        };
        Some((200, body))
    });
    let lines = provider
        .fetch(ProviderKind::OpenAi, FetchLimits::USUAL)
        .unwrap();
    let models: Vec<_> = lines
        .iter()
        .map(|line| line.model.as_deref().unwrap())
        .collect();
    assert_eq!(models, ["first", "second"]);
    let requests = provider.requests();
    assert_eq!(requests.len(), 4);
    assert!(
        requests
            .iter()
            .all(|it| it.contains(&format!("authorization: Bearer {KEY}"))),
        "{requests:?}"
    );
    assert!(
        requests[3].starts_with("GET /organization/costs?start_time=1793491200&"),
        "{}",
        requests[3]
    );
    let provider = Provider::new(|_| Some((200, empty())));
    assert_eq!(
        provider.fetch(ProviderKind::Anthropic, FetchLimits::USUAL),
        Ok(Vec::new())
    );
    let requests = provider.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert!(request.contains(&format!("x-api-key: {KEY}")), "{request}");
        assert!(
            request.contains("anthropic-version: 2023-06-01"),
            "{request}"
        );
        assert!(
            request.contains("starting_at=2026-11-01T00:00:00Z"),
            "{request}"
        );
    }
}

#[test]
fn a_refusal_is_told_in_few_words_without_the_key() {
    for (status, body, said) in [
        (
            401,
            json!({"error": {"message": format!("Incorrect key {KEY}\nprovided")}}).to_string(),
            "admin key",
        ),
        (
            404,
            "<html>not here</html>".to_owned(),
            "it answered 404; this server has no such report",
        ),
        (
            429,
            json!({"error": "slow down"}).to_string(),
            "it answered 429 (slow down); try again in a minute",
        ),
        (500, "x".repeat(1 << 20), "it answered 500"),
        (302, String::new(), "it answered 302"),
        (
            403,
            json!({"error": {"message": "word ".repeat(500)}}).to_string(),
            "…)",
        ),
    ] {
        let error = fetched(move |_| Some((status, body.clone()))).unwrap_err();
        assert!(
            error.starts_with("the report on usage of completions: it answered"),
            "{error}"
        );
        assert!(error.contains(said), "{error}");
        assert!(
            !error.contains(KEY) && !error.contains('\n') && error.len() < 500,
            "{error}"
        );
    }
}

#[test]
fn pages_without_an_end_are_not_read_on() {
    let circle = fetched(|_| Some((200, usage("m", Some("again"))))).unwrap_err();
    assert!(circle.contains("its pages lead in a circle"), "{circle}");
    let number = std::sync::atomic::AtomicUsize::new(0);
    let provider = Provider::new(move |_| {
        let next = number.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Some((200, usage("m", Some(&next.to_string()))))
    });
    let endless = provider
        .fetch(ProviderKind::OpenAi, FetchLimits::USUAL)
        .unwrap_err();
    assert!(endless.contains("it has more than 60 pages"), "{endless}");
    assert_eq!(provider.requests().len(), MAX_PAGES);
}

#[test]
fn a_page_that_is_too_large_or_none_is_refused() {
    let large = fetched(|_| Some((200, " ".repeat(MAX_PAGE_BYTES + 1)))).unwrap_err();
    assert!(large.contains("it has more than 8388608 bytes"), "{large}");
    let html = fetched(|_| Some((200, "<html>".to_owned()))).unwrap_err();
    assert!(html.contains("it is no JSON"), "{html}");
    let other = fetched(|_| Some((200, "{\"object\": \"list\"}".to_owned()))).unwrap_err();
    assert!(other.contains("missing field `data`"), "{other}");
}

#[test]
fn a_frozen_provider_is_waited_for_as_long_as_the_limits_say() {
    let short = FetchLimits {
        page: Duration::from_millis(200),
        ..FetchLimits::USUAL
    };
    let began = Instant::now();
    let frozen = Provider::new(|_| None).fetch(ProviderKind::OpenAi, short);
    assert!(
        frozen
            .unwrap_err()
            .contains("the report on usage of completions")
    );
    let slow = FetchLimits {
        all: Duration::from_millis(200),
        ..FetchLimits::USUAL
    };
    let error = Provider::new(|_| None)
        .fetch(ProviderKind::OpenAi, slow)
        .unwrap_err();
    assert!(
        error.contains("the reports took more than") && error.contains("ask for fewer days"),
        "{error}"
    );
    assert!(began.elapsed() < Duration::from_secs(20));
    let nobody = Provider {
        base_url: "http://127.0.0.1:1".to_owned(),
        requests: Arc::default(),
    };
    assert!(
        nobody
            .fetch(ProviderKind::OpenAi, FetchLimits::USUAL)
            .is_err()
    );
}
