//! The model sandbox on the wire, without the gateway in front.

use std::net::SocketAddr;

use serde_json::json;
use tokio::sync::watch;
use weirgate::sandbox::ModelSandbox;

use crate::support::client::{Answer, Ask, Client, End, ask};

/// A sandbox that serves on its own thread until it is dropped.
struct Running {
    address: SocketAddr,
    stop: watch::Sender<bool>,
}

impl Running {
    fn start() -> Running {
        let model = ModelSandbox::bind().unwrap();
        let (stop, stopped) = watch::channel(false);
        let address = model.address();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(model.serve(stopped)).unwrap();
        });
        Running { address, stop }
    }

    fn ask(&self, model: &str, stream: bool) -> Answer {
        ask(self.address, &chat(model, stream))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

fn chat(model: &str, stream: bool) -> Ask {
    let messages = json!([{"role": "user", "content": "one two three"}]);
    let body = json!({"model": model, "messages": messages, "stream": stream});
    Ask::post("/v1/chat/completions", body.to_string())
}

#[test]
fn it_answers_whole_and_streamed_on_one_connection() {
    let sandbox = Running::start();
    let mut client = Client::connect(sandbox.address);
    let whole = client.ask(&chat("sandbox-chat", false));
    let streamed = client.ask(&chat("sandbox-chat", true));
    assert_eq!(
        whole.json()["choices"][0]["message"]["content"],
        "You said: one two three"
    );
    assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
    assert_eq!(streamed.events().content(), "You said: one two three");
    assert!(streamed.events().is_done());
}

#[test]
fn the_same_request_gets_the_same_bytes() {
    let sandbox = Running::start();
    let answers = [0, 1].map(|_| sandbox.ask("sandbox-chat", true).body);
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn it_refuses_on_demand() {
    let sandbox = Running::start();
    for (model, status) in [
        ("sandbox-401", 401),
        ("sandbox-429", 429),
        ("sandbox-500", 500),
    ] {
        let answer = sandbox.ask(model, true);
        assert_eq!(answer.status(), status);
        assert!(answer.json()["error"]["message"].is_string());
        assert_eq!(answer.header("retry-after"), (status == 429).then_some("1"));
    }
    let unknown = sandbox.ask("other", false);
    assert_eq!(
        (unknown.status(), &unknown.json()["error"]["code"]),
        (404, &json!("model_not_found"))
    );
}

#[test]
fn it_refuses_other_paths_and_bodies() {
    let sandbox = Running::start();
    assert_eq!(ask(sandbox.address, &Ask::get("/v1/models")).status(), 404);
    assert_eq!(
        ask(sandbox.address, &Ask::post("/v1/chat/completions", "{")).status(),
        400
    );
}

#[test]
fn a_cut_stream_has_events_and_no_end() {
    let answer = Running::start().ask("sandbox-cut", true);
    assert_eq!((answer.status(), answer.end), (200, End::Closed));
    assert!(!answer.events().json().is_empty());
    assert!(!answer.events().says_done());
}

#[test]
fn a_cut_body_is_shorter_than_announced() {
    let answer = Running::start().ask("sandbox-cut", false);
    let announced: usize = answer.header("content-length").unwrap().parse().unwrap();
    assert_eq!(
        (answer.end, answer.body.len()),
        (End::Closed, announced / 2)
    );
}

#[test]
fn an_error_event_comes_under_a_200() {
    let sandbox = Running::start();
    let streamed = sandbox.ask("sandbox-error-event", true);
    assert_eq!((streamed.status(), streamed.end), (200, End::Complete));
    assert_eq!(streamed.events().json()[0]["error"]["code"], "server_error");
    assert!(!streamed.events().says_done());
    let whole = sandbox.ask("sandbox-error-event", false);
    assert_eq!(
        (whole.status(), &whole.json()["error"]["code"]),
        (200, &json!("server_error"))
    );
}

#[test]
fn a_slow_answer_begins_after_two_seconds_and_comes_event_by_event() {
    let sandbox = Running::start();
    let mut client = Client::connect(sandbox.address);
    let asked = std::time::Instant::now();
    client.send(&chat("sandbox-slow", true));
    let answer = client.answer();
    assert!(answer.head.at - asked >= std::time::Duration::from_millis(1900));
    assert!(answer.chunks.len() > 3 && answer.events().is_done());
    // A busy machine may read two events at once, but it cannot read the last one before all pauses are over.
    let pauses = u32::try_from(answer.chunks.len() - 1).unwrap();
    let paced =
        std::time::Duration::from_millis(1900) + pauses * std::time::Duration::from_millis(20);
    assert!(answer.chunks.last().unwrap().at - asked >= paced);
}

#[test]
fn a_hanging_answer_leaves_the_connection_to_the_caller() {
    let sandbox = Running::start();
    let mut client = Client::connect(sandbox.address);
    client.send(&chat("sandbox-hang", true));
    client.half_close();
    // It hangs up as soon as the caller has: nothing was sent before.
    assert_eq!(client.try_head().unwrap_err(), End::Closed);
}

#[test]
fn an_answer_without_bound_is_refused() {
    let schema = json!({"type": "array", "minItems": 64, "items": {"$ref": "#"}});
    let body = json!({"model": "sandbox-chat", "messages": [{"role": "user", "content": "Hi"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}});
    let sandbox = Running::start();
    let request = Ask::post("/v1/chat/completions", body.to_string());
    let answer = ask(sandbox.address, &request);
    assert_eq!(answer.status(), 400);
    assert_eq!(
        answer.json()["error"]["message"],
        "The answer is too large."
    );
}

#[test]
fn it_ranks_by_shared_words_and_flags_two_of_them() {
    let sandbox = Running::start();
    let post = |path: &str, body: serde_json::Value| {
        ask(sandbox.address, &Ask::post(path, body.to_string()))
    };
    let documents = json!(["of dogs", "a cat sleeps", "the cat"]);
    let body =
        json!({"model": "sandbox-rerank", "query": "a cat", "documents": documents, "top_n": 2});
    let ranked = post("/v1/rerank", body).json();
    let result = |index: usize, score: f64| json!({"index": index, "relevance_score": score});
    assert_eq!(ranked["results"], json!([result(1, 1.0), result(2, 0.5)]));
    assert_eq!(ranked["usage"]["total_tokens"], 13);
    let body = json!({"model": "sandbox-moderation", "input": ["I hate this", "Hi"]});
    let judged = post("/v1/moderations", body).json();
    let flagged = |at: usize| judged["results"][at]["flagged"].as_bool().unwrap();
    assert_eq!([flagged(0), flagged(1)], [true, false]);
    for (path, body, status) in [
        ("/v1/rerank", json!({"model": "sandbox-rerank"}), 400),
        ("/v1/rerank", json!({"model": "sandbox-chat"}), 404),
        (
            "/v1/moderations",
            json!({"model": "sandbox-moderation"}),
            400,
        ),
        ("/v1/nothing", json!({}), 404),
    ] {
        assert_eq!(post(path, body).status(), status, "{path}");
    }
}

#[test]
fn it_reads_the_pages_that_are_named() {
    let sandbox = Running::start();
    let post =
        |body: serde_json::Value| ask(sandbox.address, &Ask::post("/v1/ocr", body.to_string()));
    let document = json!({"document_url": "https://a.test/b"});
    let body = json!({"model": "sandbox-ocr", "document": document, "pages": [4], "document_annotation_format": {}});
    let read = post(body).json();
    let pages = read["pages"].as_array().unwrap();
    assert_eq!((pages.len(), &pages[0]["index"]), (1, &json!(4)));
    assert_eq!(pages[0]["markdown"], "# Page 4\n\nof https://a.test/b");
    assert_eq!(read["document_annotation"], "{}");
    assert_eq!(read["usage_info"]["pages_processed"], 1);
    let all = post(json!({"model": "sandbox-ocr", "document": document})).json();
    assert_eq!(all["usage_info"]["pages_processed"], 2);
    assert_eq!(post(json!({"model": "sandbox-ocr"})).status(), 400);
}

#[test]
fn it_finds_as_many_pages_as_are_asked_for() {
    let sandbox = Running::start();
    let post =
        |body: serde_json::Value| ask(sandbox.address, &Ask::post("/v1/search", body.to_string()));
    let body = json!({"model": "sandbox-search", "query": ["a", "b"], "max_results": 2});
    let found = post(body).json();
    let titles: Vec<&str> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|page| page["title"].as_str().unwrap())
        .collect();
    let about = [
        "Page 1 about a",
        "Page 2 about a",
        "Page 1 about b",
        "Page 2 about b",
    ];
    assert_eq!(titles, about);
    let all = post(json!({"model": "sandbox-search", "query": "a"})).json();
    assert_eq!(all["results"].as_array().unwrap().len(), 10);
    assert_eq!(post(json!({"model": "sandbox-search"})).status(), 400);
}
