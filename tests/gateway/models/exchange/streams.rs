//! Streams that break after their first content, and streams whose client waits.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply, stream};
use crate::support::boot::Gateway;
use crate::support::client::Client;
use crate::support::script::{Gate, Reply};
use crate::support::upstream::Upstream;

/// The bytes that the client reads of a stream that `breaking` breaks after its first content.
fn broken_by(breaking: impl Fn(Reply) -> Reply, more: &str) -> (String, Upstream) {
    let gate = Gate::default();
    let first = Upstream::always(breaking(begun().wait(&gate)));
    let gateway = Gateway::with(&first.url(), &first.url(), more);
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    assert_eq!(client.head().status, 200);
    let begun = client.chunk().unwrap();
    gate.open();
    (
        String::from_utf8_lossy(&begun.bytes).into_owned() + &drain(&mut client),
        first,
    )
}

/// The rest of the body, to its proper end.
pub fn drain(client: &mut Client) -> String {
    let mut text = String::new();
    while let Some(chunk) = client.chunk() {
        text.push_str(&String::from_utf8_lossy(&chunk.bytes));
    }
    text
}

fn begun() -> Reply {
    Reply::stream()
        .event(&chunk(json!({"role": "assistant", "content": ""}), None))
        .event(&chunk(json!({"content": "hel"}), None))
}

/// An error event with usage so far, then a clean end of the body; never `[DONE]`, never a finish reason.
fn assert_broken(text: &str, code: &str) {
    let events = crate::support::sse::parse(text);
    assert!(!events.says_done(), "{text}");
    assert!(text.contains("event: error\n"), "{text}");
    let last = events.json().last().unwrap().clone();
    assert_eq!(last["error"]["code"], code, "{text}");
    for key in ["message", "type", "param"] {
        assert!(
            last["error"].as_object().unwrap().contains_key(key),
            "{key}"
        );
    }
    assert_eq!(last["error"]["usage"]["info"], "estimated", "{text}");
    assert!(!text.contains("\"finish_reason\":\""), "{text}");
}

#[test]
fn a_stream_that_is_cut_reset_or_ends_early_ends_with_an_error_event() {
    for breaking in [Reply::and_close, Reply::and_reset, Reply::end] {
        let (text, first) = broken_by(breaking, "");
        assert_broken(&text, "stream_truncated");
        assert_eq!(
            first.requests().len(),
            1,
            "no other provider once content has gone out"
        );
    }
}

#[test]
fn a_stream_that_stalls_ends_with_a_timeout() {
    let (text, first) = broken_by(Reply::and_hang, "[routing]\nidle_timeout_s = 1");
    assert_broken(&text, "upstream_timeout");
    first.wait_closed(0);
}

#[test]
fn a_malformed_event_or_an_error_in_the_middle_ends_the_stream() {
    let error = json!({"error": {"message": "boom"}}).to_string();
    for event in ["{\"choices\":[", error.as_str()] {
        let (text, _) = broken_by(|reply| reply.event(event).event("[DONE]").end(), "");
        assert_broken(&text, "stream_truncated");
    }
}

#[test]
fn a_killed_provider_ends_the_stream_with_an_error_event() {
    let first = Upstream::always(begun().and_hang());
    let gateway = Gateway::between(&first.url(), &first.url());
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    client.head();
    let mut text = String::from_utf8(client.chunk().unwrap().bytes.to_vec()).unwrap();
    first.kill();
    text.push_str(&drain(&mut client));
    assert_broken(&text, "stream_truncated");
}

/// How long the provider's connection stays open after the client disconnects, which it does after `begun`. The shortest
/// time of five counts, because a busy machine delays some of them, but not all.
fn quickest_close(first: &Upstream, body: &str, begun: impl Fn(&mut Client)) -> Duration {
    let gateway = Gateway::between(&first.url(), &first.url());
    let times = (0..5).map(|turn| {
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(body));
        let connection = first.request(turn).connection;
        begun(&mut client);
        assert!(!first.is_closed(connection), "it is open until then");
        let left = Instant::now();
        drop(client);
        first.wait_closed(connection).duration_since(left)
    });
    times.min().unwrap()
}

#[test]
fn a_client_that_leaves_closes_the_providers_connection_within_100_ms() {
    let first = Upstream::always(begun().and_hang());
    let after = quickest_close(&first, STREAM, |client| {
        client.head();
        client.chunk().unwrap();
    });
    assert!(after < Duration::from_millis(100), "{after:?}");
}

#[test]
fn a_client_that_leaves_before_the_first_event_closes_it_too() {
    let first = Upstream::always(Reply::hang());
    let after = quickest_close(&first, PLAIN, |_| {});
    assert!(after < Duration::from_millis(100), "{after:?}");
}

#[test]
fn events_go_out_as_they_come() {
    let gate = Gate::default();
    let reply = begun()
        .wait(&gate)
        .event(&chunk(json!({"content": "lo"}), Some("stop")))
        .event("[DONE]")
        .end();
    let first = Upstream::always(reply);
    let gateway = Gateway::between(&first.url(), &first.url());
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    client.head();
    let begun = client.chunk().unwrap();
    assert!(
        String::from_utf8_lossy(&begun.bytes).contains("hel"),
        "before the provider sends the rest"
    );
    gate.open();
    assert!(crate::support::sse::parse(drain(&mut client)).is_done());
}

#[test]
fn the_head_is_buffered_until_there_is_content() {
    let gate = Gate::default();
    let role = chunk(json!({"role": "assistant", "content": ""}), None);
    let reply = Reply::stream()
        .event(&role)
        .wait(&gate)
        .event(&json!({"error": {"message": "late"}}).to_string())
        .end();
    let (first, second) = (Upstream::always(reply), Upstream::always(stream()));
    let gateway = Gateway::between(&first.url(), &second.url());
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    first.wait_requests(1);
    gate.open();
    let answer = client.answer();
    assert_eq!(answer.events().content(), "hello");
    assert_eq!(
        answer.events().json().last().unwrap()["metadata"]["used_provider"],
        "second"
    );
}

#[test]
fn a_waiting_client_is_kept_alive_and_still_gets_the_next_provider() {
    let (first, second) = (Upstream::always(Reply::hang()), Upstream::always(stream()));
    let more = "[routing]\nkeepalive_s = 1\nfirst_event_timeout_s = 3";
    let gateway = Gateway::with(&first.url(), &second.url(), more);
    let answer = gateway.chat(STREAM);
    let events = answer.events();
    assert!(!events.comments().is_empty(), "{}", answer.text());
    assert!(events.is_done());
    assert_eq!(events.content(), "hello");
}

#[test]
fn a_failure_after_a_keepalive_is_an_error_event() {
    let first = Upstream::always(Reply::hang());
    let more = "[routing]\nkeepalive_s = 1\nfirst_event_timeout_s = 2\nattempts = 1";
    let gateway = Gateway::with(&first.url(), &first.url(), more);
    let answer = gateway.chat(STREAM);
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.events().json().last().unwrap()["error"]["code"],
        "upstream_timeout"
    );
    assert!(!answer.events().says_done());
}

#[test]
fn a_provider_that_lingers_after_done_does_not_delay_the_client() {
    let reply = begun()
        .event(&chunk(json!({}), Some("stop")))
        .event("[DONE]")
        .and_hang();
    let first = Upstream::always(reply);
    let gateway = Gateway::between(&first.url(), &first.url());
    let started = Instant::now();
    let answer = gateway.chat(STREAM);
    assert!(answer.events().is_done(), "{}", answer.text());
    assert!(started.elapsed() < Duration::from_secs(4));
}

#[test]
fn a_json_reply_to_a_stream_request_becomes_a_stream_and_events_a_json_reply() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = gateway.chat(STREAM);
    assert_eq!(
        (
            answer.events().content().as_str(),
            answer.events().is_done()
        ),
        ("hello", true)
    );
    let first = Upstream::always(stream());
    let gateway = Gateway::between(&first.url(), &first.url());
    assert_eq!(
        gateway.chat(PLAIN).json()["choices"][0]["message"]["content"],
        "hello"
    );
}

#[test]
fn a_stream_sent_byte_by_byte_is_the_same_stream() {
    let first = Upstream::always(stream().dripped());
    let gateway = Gateway::between(&first.url(), &first.url());
    let answer = gateway.chat(STREAM);
    assert_eq!(
        (
            answer.events().content().as_str(),
            answer.events().is_done()
        ),
        ("hello", true)
    );
}

/// A reply that sends so many words at once, each in an event and a chunk of its own. The first word comes alone.
fn at_once(words: usize) -> Reply {
    let word = |index: usize| chunk(json!({"content": format!("{index} ")}), None);
    let rest = (1..words).map(|index| format!("data: {}\n\n", word(index)));
    let framed = rest.map(|event| format!("{:x}\r\n{event}\r\n", event.len()));
    let rest = framed.collect::<String>();
    Reply::stream().event(&word(0)).bytes(rest)
}

fn words(count: usize) -> String {
    (0..count).map(|index| format!("{index} ")).collect()
}

#[test]
fn events_that_arrive_together_leave_together_and_none_waits_for_the_next() {
    // Numbers of events around those that fill Pingora's pipe.
    for count in [2, 4, 5, 6, 8, 9, 10, 200] {
        let gate = Gate::default();
        let first = Upstream::always(at_once(count).wait(&gate).event("[DONE]").end());
        let gateway = Gateway::between(&first.url(), &first.url());
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(STREAM));
        client.head();
        let (mut text, mut chunks) = (String::new(), 0);
        while crate::support::sse::parse(&text).content() != words(count) {
            text += &String::from_utf8_lossy(&client.chunk().unwrap().bytes);
            chunks += 1;
        }
        assert!(
            chunks <= 2 + count / 10,
            "{count} events in {chunks} chunks"
        );
        gate.open();
        drain(&mut client);
    }
}

#[test]
fn what_came_before_a_break_is_delivered() {
    let malformed = |reply: Reply| reply.event("{\"choices\":[").end();
    let breaks: [(&str, &dyn Fn(Reply) -> Reply); 4] = [
        ("malformed", &malformed),
        ("closed", &Reply::and_close),
        ("reset", &Reply::and_reset),
        ("ended", &Reply::end),
    ];
    for count in [5, 8, 9, 11, 100] {
        for (name, breaking) in breaks {
            let first = Upstream::always(breaking(at_once(count)));
            let gateway = Gateway::between(&first.url(), &first.url());
            let text = gateway.chat(STREAM).text().to_owned();
            assert_broken(&text, "stream_truncated");
            let said = crate::support::sse::parse(&text).content();
            assert_eq!(said, words(count), "{name} after {count}");
        }
    }
}
