//! The client's view when providers break before content was sent: the first rows of docs/promises-tests.md.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply, stream};
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::{ClosedPort, Upstream};

const FAST: &str = "[routing]\nfirst_event_timeout_s = 1\ntotal_timeout_s = 1\nidle_timeout_s = 1";

fn both() -> Upstream {
    Upstream::answering(|request| {
        if request.json()["stream"] == true {
            stream()
        } else {
            reply()
        }
    })
}

/// Checks that the client gets the second provider's reply, whole, with both attempts listed.
fn assert_second(answer: &Answer, status: u64, error_type: &str) {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let body = if answer
        .header("content-type")
        .unwrap()
        .starts_with("text/event-stream")
    {
        let events = answer.events();
        assert!(events.is_done(), "{}", answer.text());
        assert_eq!(events.content(), "hello");
        events.json().last().unwrap().clone()
    } else {
        answer.json()
    };
    assert!(!answer.text().contains("error\":"), "{}", answer.text());
    let routing = &body["metadata"]["routing"];
    assert_eq!(routing.as_array().unwrap().len(), 2, "{routing}");
    assert_eq!(
        (&routing[0]["provider"], &routing[0]["succeeded"]),
        (&"first".into(), &false.into())
    );
    assert_eq!(
        (&routing[0]["status_code"], &routing[0]["error_type"]),
        (&status.into(), &error_type.into())
    );
    assert_eq!(
        (&routing[1]["provider"], &routing[1]["succeeded"]),
        (&"second".into(), &true.into())
    );
}

/// Runs the failure with bodies of 1 KB, 100 KB and 5 MB, plain and streaming. Each case starts a new gateway, because a
/// gateway remembers failures and then tries the provider last.
fn each_size(first_url: &str, status: u64, error_type: &str) {
    let second = both();
    for bytes in [1 << 10, 100 << 10, 5 << 20] {
        for is_stream in [false, true] {
            let gateway = Gateway::with(first_url, &second.url(), &format!("{FAST}\nattempts = 2"));
            let text = "a".repeat(bytes);
            let body = json!({"model": "chat", "stream": is_stream, "messages": [{"role": "user", "content": text}]});
            let request = gateway.chat_ask(body.to_string());
            let answer = ask(gateway.address(), &request.header("x-request-id", "size"));
            assert_eq!(answer.header("x-request-id"), Some("size"));
            assert_second(&answer, status, error_type);
            let sent = second.requests().last().unwrap().json();
            assert_eq!(sent["messages"][0]["content"].as_str(), Some(&*text));
        }
    }
}

#[test]
fn a_refused_connection() {
    let closed = ClosedPort::take();
    each_size(&closed.url(), 0, "network_error");
}

#[test]
fn a_reset_connection() {
    let first = Upstream::always(Reply::empty().and_reset());
    each_size(&first.url(), 0, "network_error");
}

/// Contract: model-gateway 1 Routing
/// Contract: model-gateway 8 4
#[test]
fn a_throttled_provider() {
    let first = Upstream::always(Reply::whole(429, &[("retry-after", "86400")], "{}"));
    each_size(&first.url(), 429, "rate_limited");
}

#[test]
fn a_broken_provider() {
    let first = Upstream::always(Reply::json(500, "<html>oops</html>"));
    each_size(&first.url(), 500, "upstream_error");
}

/// The key and the prompt go where the operator said, and nowhere else.
#[test]
fn a_provider_that_redirects_has_failed_and_is_not_followed() {
    let elsewhere = both();
    let location = format!("{}/v1/chat/completions", elsewhere.url());
    for status in [300, 301, 302, 303, 304, 307, 308] {
        let first = Upstream::always(Reply::whole(status, &[("location", &location)], ""));
        let second = both();
        for body in [PLAIN, STREAM] {
            let gateway = Gateway::with(
                &first.url(),
                &second.url(),
                &format!("{FAST}\nattempts = 2"),
            );
            assert_second(&gateway.chat(body), status.into(), "upstream_error");
        }
        let gateway = Gateway::with(&first.url(), &first.url(), FAST);
        let answer = gateway.chat(PLAIN);
        assert_eq!(answer.status(), 502, "{}", answer.text());
        assert_eq!(answer.header("location"), None);
        assert!(
            !answer.text().contains(&elsewhere.url()),
            "{}",
            answer.text()
        );
    }
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn a_provider_that_answers_before_it_has_read_the_body() {
    let first = Upstream::early(Reply::json(503, "{}"));
    each_size(&first.url(), 503, "upstream_error");
}

#[test]
fn a_provider_that_says_nothing() {
    let first = Upstream::always(Reply::hang());
    each_size(&first.url(), 0, "network_error");
}

#[test]
fn an_error_as_the_first_event_or_inside_a_200() {
    let error =
        json!({"error": {"message": "overloaded", "type": "overloaded_error", "code": 503}})
            .to_string();
    let first = Upstream::answering(move |request| {
        if request.json()["stream"] == true {
            Reply::sse([error.as_str()])
        } else {
            Reply::json(200, &error)
        }
    });
    each_size(&first.url(), 503, "upstream_error");
}

#[test]
fn a_redirect_is_never_followed() {
    let elsewhere = Upstream::always(reply());
    let location = format!("{}/v1/chat/completions", elsewhere.url());
    for status in [301, 302, 303, 307, 308] {
        let moved = Reply::whole(status, &[("location", &location)], "");
        let first = Upstream::always(moved);
        let gateway = Gateway::between(&first.url(), &first.url());
        let answer = gateway.chat(PLAIN);
        assert!(
            answer.status() >= 400,
            "{status} became {}",
            answer.status()
        );
        assert_eq!(answer.header("location"), None);
    }
    assert!(elsewhere.requests().is_empty());
}

/// Contract: model-gateway 1 Routing
#[test]
fn every_retryable_status_falls_back() {
    for status in [
        401, 402, 403, 404, 405, 408, 425, 429, 500, 502, 503, 504, 529,
    ] {
        let (first, second) = (Upstream::always(Reply::json(status, "{}")), both());
        let gateway = Gateway::between(&first.url(), &second.url());
        let error_type = match status {
            429 => "rate_limited",
            401 | 403 => "gateway_error",
            _ => "upstream_error",
        };
        assert_second(&gateway.chat(PLAIN), u64::from(status), error_type);
    }
}

/// Source: model-gateway 7
#[test]
fn a_request_that_is_wrong_itself_is_answered_with_the_providers_word_and_tried_once() {
    let error = json!({"error": {"message": "max_tokens is too large, see https://x.example sk-abcdef", "type": "invalid_request_error", "param": "max_tokens", "code": "bad_max"}});
    for (status, told) in [
        (400, 400),
        (406, 400),
        (409, 400),
        (410, 404),
        (413, 413),
        (414, 413),
        (415, 415),
        (416, 400),
        (422, 400),
        (431, 413),
        (451, 403),
    ] {
        let (first, second) = (
            Upstream::always(Reply::json(status, error.to_string())),
            both(),
        );
        let gateway = Gateway::between(&first.url(), &second.url());
        let answer = gateway.chat(PLAIN);
        let body = answer.json();
        assert_eq!(answer.status(), told, "{status}");
        let attempt = &body["metadata"]["routing"][0];
        assert_eq!(attempt["status_code"], status);
        assert_eq!(
            (&body["error"]["param"], &body["error"]["code"]),
            (&"max_tokens".into(), &"bad_max".into())
        );
        assert!(
            body["error"]["message"]
                .as_str()
                .unwrap()
                .contains("too large")
        );
        assert!(!answer.text().contains("sk-abcdef") && !answer.text().contains("x.example"));
        assert_eq!(answer.header("x-should-retry"), Some("false"));
        assert!(second.requests().is_empty());
    }
}

#[test]
fn a_refusal_that_blames_our_account_falls_back_whatever_its_status() {
    let error = json!({"error": {"message": "Your credit balance is too low", "type": "invalid_request_error"}});
    let (first, second) = (
        Upstream::always(Reply::json(400, error.to_string())),
        both(),
    );
    let gateway = Gateway::between(&first.url(), &second.url());
    assert_second(&gateway.chat(PLAIN), 400, "upstream_error");
}

#[test]
fn a_200_that_is_empty_malformed_or_cut_falls_back() {
    let whole = r#"{"id":"x","created":1,"choices":[{"index":0,"message":{"content":"a"}"#;
    let role = chunk(json!({"role": "assistant", "content": ""}), None);
    for reply in [
        Reply::json(200, ""),
        Reply::json(200, "<html>"),
        Reply::json(200, whole),
        Reply::claiming(200, &[("content-type", "application/json")], 5000, whole).and_close(),
        Reply::raw("garbage\r\n\r\n").and_close(),
        Reply::sse([role.as_str()]),
        Reply::stream().event("{broken").end(),
    ] {
        for body in [PLAIN, STREAM] {
            let (first, second) = (Upstream::always(reply.clone()), both());
            let gateway = Gateway::between(&first.url(), &second.url());
            let answer = gateway.chat(body);
            assert_eq!(answer.status(), 200, "{}", answer.text());
            assert!(
                answer.text().contains("\"used_provider\":\"second\""),
                "{}",
                answer.text()
            );
        }
    }
}

/// A connection on which a failed reply came may hold more of it.
#[test]
fn after_a_200_that_is_no_answer_the_connection_is_closed() {
    let error = json!({"error": {"message": "overloaded", "type": "overloaded_error"}}).to_string();
    for (reply, body) in [
        (Reply::json(200, &error), PLAIN),
        (Reply::json(200, ""), PLAIN),
        (Reply::json(200, "<html>"), PLAIN),
        (Reply::sse([error.as_str()]), STREAM),
        (Reply::sse([]), STREAM),
        (Reply::sse(["{broken"]), STREAM),
        (Reply::stream().event(&error).and_hang(), STREAM),
        (Reply::stream().event("{broken").and_hang(), STREAM),
    ] {
        let (first, second) = (Upstream::always(reply), both());
        let gateway = Gateway::between(&first.url(), &second.url());
        let answer = gateway.chat(body);
        assert!(answer.text().contains("\"used_provider\":\"second\""));
        first.wait_closed(first.request(0).connection);
        // What has answered well is kept for the next request.
        assert!(!second.is_closed(second.request(0).connection));
    }
}

/// Contract: model-gateway 7 403
/// Contract: model-gateway 7 404
/// Contract: model-gateway 7 502
/// Contract: model-gateway 7 503
/// Contract: model-gateway 7 504
#[test]
fn exhausted_attempts_say_why() {
    let hang = Upstream::always(Reply::hang());
    let closed = ClosedPort::take();
    let of = |status: u16| Upstream::always(Reply::json(status, "{}"));
    let cases = [
        (of(500), 502, "all_providers_failed"),
        (of(503), 503, "upstream_unavailable"),
        (of(429), 503, "upstream_unavailable"),
        (of(401), 502, "all_providers_failed"),
        (of(408), 504, "upstream_timeout"),
        (of(403), 403, "permission_denied"),
        (of(404), 404, "not_found"),
    ];
    for (upstream, status, code) in &cases {
        let gateway = Gateway::between(&upstream.url(), &upstream.url());
        let answer = gateway.chat(PLAIN);
        assert_eq!(
            (answer.status(), &answer.json()["error"]["code"]),
            (*status, &(*code).into()),
            "{}",
            answer.text()
        );
        assert!(answer.header("x-request-id").is_some() && answer.header("retry-after").is_none());
    }
    let gateway = Gateway::with(&hang.url(), &hang.url(), FAST);
    assert_eq!(
        (gateway.chat(PLAIN).status(), gateway.chat(STREAM).status()),
        (504, 504)
    );
    let gateway = Gateway::between(&closed.url(), &closed.url());
    assert_eq!(
        (
            gateway.chat(PLAIN).status(),
            gateway.chat(PLAIN).json()["error"]["code"].clone()
        ),
        (502, "connect_failed".into())
    );
}

#[test]
fn a_pinned_provider_and_a_client_that_wants_no_fallback_get_one_attempt() {
    let (first, second) = (Upstream::always(Reply::json(500, "{}")), both());
    let gateway = Gateway::between(&first.url(), &second.url());
    let pinned = gateway.chat(PLAIN.replace("\"chat\"", "\"first/chat\""));
    assert_eq!(pinned.status(), 502);
    let gateway = Gateway::between(&first.url(), &second.url());
    let plain = ask(
        gateway.address(),
        &gateway.chat_ask(PLAIN).header("x-no-fallback", "true"),
    );
    assert_eq!(plain.status(), 502);
    assert!(second.requests().is_empty());
}

#[test]
fn another_key_of_the_same_provider_is_tried_inside_the_attempt() {
    let first = Upstream::answering(|request| {
        if request.header("authorization") == Some("Bearer good") {
            reply()
        } else {
            Reply::json(401, "{}")
        }
    });
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = [{{ env = \"WEIRGATE_TEST_BAD\" }}, {{ env = \"WEIRGATE_TEST_GOOD\" }}]\n",
        first.url()
    );
    let gateway = Gateway::start_with_env(
        &toml,
        crate::support::boot::MODELS,
        &[("WEIRGATE_TEST_BAD", "bad"), ("WEIRGATE_TEST_GOOD", "good")],
    );
    let answers: Vec<Answer> = (0..2).map(|_| gateway.chat(PLAIN)).collect();
    for answer in &answers {
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert!(!answer.text().contains("\"good\"") && !answer.text().contains("\"bad\""));
    }
    let routing = answers[0].json()["metadata"]["routing"].clone();
    let hashes: Vec<&str> = routing
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["apiKeyHash"].as_str().unwrap())
        .collect();
    assert_eq!((hashes.len(), hashes[0].len()), (2, 16));
    assert_ne!(hashes[0], hashes[1]);
}

#[test]
fn a_reused_connection_that_has_died_is_not_the_providers_fault() {
    let (first, closed) = (Upstream::always(reply().and_close()), ClosedPort::take());
    let gateway = Gateway::between(&first.url(), &closed.url());
    for turn in 0..6 {
        let answer = gateway.chat(PLAIN);
        let routing = answer.json()["metadata"]["routing"].clone();
        assert_eq!(routing.as_array().unwrap().len(), 1, "{}", answer.text());
        // Only half of the turns wait: in the others the dead connection may still be in the pool.
        if turn % 2 == 0 {
            first.wait_closed(first.requests().last().unwrap().connection);
        }
    }
}

/// A reply to a first call that keeps its connection, and then `broken` on the same connection.
fn broken_on_a_reused_connection(broken: Reply) -> Upstream {
    let is_first = AtomicBool::new(true);
    Upstream::answering(move |_| {
        if is_first.swap(false, Ordering::Relaxed) {
            reply()
        } else {
            broken.clone()
        }
    })
}

#[test]
fn a_call_of_which_response_bytes_were_seen_is_not_repeated() {
    let json = [("content-type", "application/json")];
    let role = chunk(json!({"role": "assistant", "content": ""}), None);
    let cases = [
        (STREAM, Reply::stream().event(&role)),
        (STREAM, Reply::stream()),
        (PLAIN, Reply::claiming(200, &json, 5000, "{\"id\":")),
        (PLAIN, Reply::claiming(200, &json, 5000, "")),
        (PLAIN, Reply::raw("HTTP/1.1 200 OK\r\ncontent-le")),
        (PLAIN, Reply::raw("HTTP/1.1 103 Early Hints\r\n\r\n")),
    ];
    for (body, seen) in cases {
        // The first answer may be here before its connection is free again, and then the second call takes a new one.
        let is_reused = || {
            let first = broken_on_a_reused_connection(seen.clone().and_close());
            let second = both();
            let gateway = Gateway::between(&first.url(), &second.url());
            assert_eq!(gateway.chat(PLAIN).status(), 200);
            assert_second(&gateway.chat(body), 0, "network_error");
            let connections: Vec<usize> = first.requests().iter().map(|it| it.connection).collect();
            assert_eq!(connections.len(), 2, "not repeated: {seen:?}");
            connections == [0, 0]
        };
        until("a reused connection", is_reused);
    }
}

#[test]
fn a_name_without_an_address_is_no_connection() {
    let second = both();
    let gateway = Gateway::between("http://nowhere.invalid:1", &second.url());
    assert_second(&gateway.chat(PLAIN), 0, "network_error");
}

#[test]
fn what_is_no_response_of_http_falls_back() {
    let field = format!("x: {}\r\n", "y".repeat(2 << 20));
    for bytes in [
        "\u{1}\u{2}\u{3}garbage\r\n\r\n".to_owned(),
        "<html>from HTTP/0.9</html>".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}".to_owned(),
        format!(
            "HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\n{{}}",
            "x: y\r\n".repeat(300)
        ),
        format!("HTTP/1.1 200 OK\r\n{field}Content-Length: 2\r\n\r\n{{}}"),
    ] {
        let first = Upstream::always(Reply::raw(&bytes).and_close());
        let second = both();
        let gateway = Gateway::between(&first.url(), &second.url());
        let answer = gateway.chat(PLAIN);
        assert_eq!(answer.status(), 200, "{bytes:.60}: {}", answer.text());
        assert_eq!(
            answer.json()["metadata"]["routing"][1]["succeeded"],
            true,
            "{bytes:.60}"
        );
    }
}

/// A gateway whose first provider is of the Anthropic wire; `second` may refuse parameters.
pub fn before_another_wire(first: &Upstream, second: &str, parameters: &str) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"anthropic\"\nbase_url = \"{}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{second}/v1\"\nkeys = []\n{parameters}",
        first.url()
    );
    let models = "[[models]]\nid = \"chat\"\n\
        [[models.providers]]\nprovider = \"first\"\nname = \"first-up\"\ninput_price = \"0.1\"\noutput_price = \"0.1\"\n\
        [[models.providers]]\nprovider = \"second\"\nname = \"second-up\"\ninput_price = \"1\"\noutput_price = \"1\"\n";
    Gateway::start_with_env(&toml, models, &[("FIRST_KEY", "sk-platform-1")])
}

/// A blank message, which the Anthropic wire cannot express.
pub const BLANK: &str = r#"{"model": "chat", "messages": [{"role": "user", "content": " "}]}"#;

#[test]
fn who_cannot_be_told_the_request_is_passed_over_without_an_attempt() {
    let (first, second) = (both(), both());
    let gateway = before_another_wire(&first, &second.url(), "");
    let ask_blank = gateway.chat_ask(BLANK).header("x-request-id", "blank");
    let answer = ask(gateway.address(), &ask_blank);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let routing = answer.json()["metadata"]["routing"].clone();
    assert_eq!(routing.as_array().unwrap().len(), 1, "{routing}");
    assert_eq!(routing[0]["provider"], "second");
    assert!(first.requests().is_empty());
    let left_out = gateway.log_line("blank")["left_out"].clone();
    assert_eq!(
        (&left_out[0]["provider"], &left_out[0]["param"]),
        (&"first".into(), &"messages[0].content".into())
    );
    // Its health has not suffered: what it can be told goes to it first.
    gateway.chat(PLAIN);
    assert_eq!(first.requests().len(), 1);
}

#[test]
fn a_request_that_no_provider_can_be_told_is_refused_with_its_field() {
    let first = both();
    let closed = ClosedPort::take();
    let gateway = before_another_wire(&first, &closed.url(), "");
    // The provider that could be told it does not answer, and that is what the client hears.
    let answer = gateway.chat(BLANK);
    assert_eq!(answer.status(), 502, "{}", answer.text());
    let pinned = gateway.chat(BLANK.replace("\"chat\"", "\"first/chat\""));
    let error = pinned.json()["error"].clone();
    assert_eq!(
        (pinned.status(), &error["param"]),
        (400, &"messages[0].content".into()),
        "{error}"
    );
    assert!(first.requests().is_empty());
}

#[test]
fn who_refuses_a_parameter_is_left_out_and_named_in_the_log() {
    let (first, second) = (both(), both());
    let refuses = "parameters = { refuse = [\"seed\"] }\n";
    let gateway = before_another_wire(&first, &second.url(), refuses);
    let body =
        r#"{"model": "chat", "logprobs": true, "messages": [{"role": "user", "content": "Hi"}]}"#;
    let request = gateway.chat_ask(body).header("x-request-id", "logprobs");
    assert_eq!(ask(gateway.address(), &request).status(), 200);
    assert!(first.requests().is_empty());
    assert_eq!(second.requests()[0].json()["logprobs"], true);
    assert_eq!(
        gateway.log_line("logprobs")["left_out"],
        json!([{"provider": "first", "model": "chat", "param": "logprobs", "reason": "takes no `logprobs`"}])
    );
    let nobody = gateway.chat(body.replace("\"logprobs\"", "\"seed\":1,\"logprobs\""));
    let error = nobody.json()["error"].clone();
    assert_eq!((nobody.status(), &error["param"]), (400, &"seed".into()));
    let message = error["message"].as_str().unwrap();
    let said = "first takes no `logprobs`; second takes no `seed`";
    assert!(message.ends_with(said), "{message}");
}
