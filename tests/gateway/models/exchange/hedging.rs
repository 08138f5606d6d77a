//! A second attempt beside a stream that says nothing: the first content wins, and the other attempt is cancelled.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use filters::accounts::Mode;
use serde_json::{Value, json};

use crate::ledger::money::Place;
use crate::ledger::used;
use crate::models::exchange::streams::drain;
use crate::models::fronts::chat_completions::{STREAM, chunk, stream, usage};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::server::Server;
use crate::support::sse;
use crate::support::upstream::Upstream;
use crate::support::{stays, until};

const SOON: &str = "[routing]\nhedge_after_ms = 100";
/// Providers that stop billing when nobody reads on, and such that do not.
const CANCELS: &str = "\"streaming\", \"cancellation\"";
const BILLS: &str = "\"streaming\"";

/// A model whose call costs one cent at `p0`, two at `p1` and three at `p2`, which are asked in this order.
fn models(capabilities: [&str; 3]) -> String {
    let mut models = "[[models]]\nid = \"chat\"\n".to_owned();
    for (n, capabilities) in capabilities.iter().enumerate() {
        models += &format!(
            "[[models.providers]]\nprovider = \"p{n}\"\nname = \"m\"\ninput_price = \"0\"\noutput_price = \"0\"\n\
             request_price = \"0.0{}\"\ncapabilities = [{capabilities}, \"json_object\"]\n",
            n + 1
        );
    }
    models
}

/// A gateway in front of these providers of the model, with this credit.
fn gateway(
    upstreams: [&Upstream; 3],
    capabilities: [&str; 3],
    more: &str,
    credit: &str,
) -> Gateway {
    let mut toml = String::new();
    for (n, upstream) in upstreams.iter().enumerate() {
        toml += &format!(
            "[providers.p{n}]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
            upstream.url()
        );
    }
    toml += more;
    Gateway::start_with_credit(&toml, &models(capabilities), &[], credit)
}

/// A provider that nobody should ask.
fn unasked() -> Upstream {
    Upstream::always(Reply::json(500, "{}"))
}

fn routing(answer: &Answer) -> Value {
    let last = answer.events().json().pop().unwrap();
    last["metadata"]["routing"].clone()
}

/// Who was asked, and how that ended.
fn attempts(routing: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let attempts = routing.as_array().unwrap().iter();
    attempts
        .map(|attempt| (text(&attempt["provider"]), text(&attempt["error_type"])))
        .collect()
}

fn expected(attempts: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(provider, end): &(&str, &str)| ((*provider).to_owned(), (*end).to_owned());
    attempts.iter().map(owned).collect()
}

#[track_caller]
fn assert_answered(answer: &Answer) {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let events = answer.events();
    assert_eq!(events.content(), "hello", "{}", answer.text());
    assert!(events.is_done());
}

#[track_caller]
fn assert_counted(gateway: &Gateway, outcome: &str, count: usize) {
    let metrics = gateway.metrics();
    let line = format!("weirgate_hedges_total{{outcome=\"{outcome}\"}} {count}");
    assert!(metrics.contains(&line), "{line}: {metrics}");
}

#[test]
fn a_silent_stream_is_answered_by_the_next_provider_and_cancelled() {
    // Silence is a head or a role without content as well.
    let role = chunk(json!({"role": "assistant", "content": ""}), None);
    for silent in [
        Reply::hang(),
        Reply::stream().and_hang(),
        Reply::stream().event(&role).and_hang(),
    ] {
        let first = Upstream::always(silent);
        let (second, third) = (Upstream::always(stream()), unasked());
        let gateway = gateway([&first, &second, &third], [CANCELS; 3], SOON, "1");
        let answer = ask(
            gateway.address(),
            &gateway.chat_ask(STREAM).header("x-request-id", "hedged"),
        );
        assert_answered(&answer);
        let routing = routing(&answer);
        let ended = [("p0", "cancelled"), ("p1", "none")];
        assert_eq!(attempts(&routing), expected(&ended));
        assert_eq!(
            (&routing[0]["status_code"], &routing[0]["succeeded"]),
            (&0.into(), &false.into())
        );
        assert_eq!(
            (routing[0].get("cost"), routing[0].get("logId")),
            (None, None)
        );
        first.wait_closed(first.request(0).connection);
        let line = gateway.log_line("hedged");
        assert_eq!(
            (&line["outcome"], &line["provider"]),
            (&"ok".into(), &"p1".into())
        );
        assert_eq!(line["attempts"][0]["cause"], "cancelled", "{line}");
        assert_counted(&gateway, "won", 1);
        assert!(gateway.metrics().contains(
            "weirgate_upstream_attempts_total{model=\"chat\",outcome=\"cancelled\",provider=\"p0\"} 1"
        ));
        assert_eq!((second.requests().len(), third.requests().len()), (1, 0));
        let [one, other] = [first.request(0), second.request(0)];
        assert_eq!((one.path, one.body), (other.path, other.body));
        used(&gateway, "0.02");
    }
}

#[test]
fn a_cancelled_attempt_that_is_billed_anyway_is_paid_and_has_an_entry_of_its_own() {
    let first = Upstream::always(Reply::hang());
    let second = Upstream::always(stream());
    let gateway = gateway([&first, &second, &unasked()], [BILLS; 3], SOON, "1");
    let answer = gateway.chat(STREAM);
    assert_answered(&answer);
    let routing = routing(&answer);
    assert_eq!(routing[0]["cost"].to_string(), "0.01");
    assert!(routing[1].get("cost").is_none());
    // The answer tells what it cost itself.
    let last = answer.events().json().pop().unwrap();
    assert_eq!(last["usage"]["cost"].to_string(), "0.02");
    assert_ne!(routing[0]["logId"], last["metadata"]["log_id"]);
    assert_eq!(routing[0]["logId"].as_str().unwrap().len(), 36);
    first.wait_closed(first.request(0).connection);
    used(&gateway, "0.03");
    let cost = |provider: &str, cost: &str| {
        format!("weirgate_cost_usd_total{{model=\"chat\",provider=\"{provider}\"}} {cost}")
    };
    let metrics = gateway.metrics();
    assert!(metrics.contains(&cost("p0", "0.01")) && metrics.contains(&cost("p1", "0.02")));
    // Nothing stays reserved.
    assert!(
        metrics.contains("weirgate_ledger_reserved_usd 0\n"),
        "{metrics}"
    );
}

#[test]
fn content_of_the_first_attempt_cancels_the_hedge() {
    let at_once = [
        chunk(json!({"content": "hello"}), Some("stop")),
        usage(),
        "[DONE]".to_owned(),
    ];
    let at_once = at_once.map(|event| format!("data: {event}\n\n")).concat();
    let at_once = Reply::whole(200, &[("content-type", "text/event-stream")], at_once);
    for (capabilities, cost, answer) in [
        (CANCELS, "0.01", stream()),
        (BILLS, "0.03", stream()),
        (BILLS, "0.03", at_once),
    ] {
        let gate = Gate::default();
        let first = Upstream::always(Reply::empty().wait(&gate).then(answer));
        let second = Upstream::always(Reply::hang());
        let gateway = gateway([&first, &second, &unasked()], [capabilities; 3], SOON, "1");
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(STREAM));
        let hedge = second.request(0);
        gate.open();
        let answer = client.answer();
        assert_answered(&answer);
        let ended = [("p1", "cancelled"), ("p0", "none")];
        assert_eq!(attempts(&routing(&answer)), expected(&ended));
        second.wait_closed(hedge.connection);
        assert_counted(&gateway, "lost", 1);
        used(&gateway, cost);
    }
}

#[test]
fn nothing_is_asked_twice_unless_the_operator_wants_it() {
    let pause = Reply::empty().pause(Duration::from_millis(400));
    let first = Upstream::always(pause.then(stream()));
    let second = unasked();
    for more in ["", "[routing]\nhedge_after_ms = 5000"] {
        let gateway = gateway([&first, &second, &second], [CANCELS; 3], more, "1");
        assert_answered(&gateway.chat(STREAM));
        assert!(second.requests().is_empty());
    }
    // A provider that the caller has named has no other beside it.
    let gateway = gateway([&first, &second, &second], [CANCELS; 3], SOON, "1");
    assert_answered(&gateway.chat(STREAM.replace("\"chat\"", "\"p0/chat\"")));
    let only = gateway.chat_ask(STREAM).header("x-no-fallback", "true");
    assert_answered(&ask(gateway.address(), &only));
    assert!(second.requests().is_empty());
}

#[test]
fn when_one_attempt_fails_the_other_goes_on() {
    // The first fails while the hedge runs.
    let (failing, answering) = (Gate::default(), Gate::default());
    let first = Upstream::always(Reply::empty().wait(&failing).then(Reply::json(500, "{}")));
    let second = Upstream::always(Reply::empty().wait(&answering).then(stream()));
    let gateway = gateway([&first, &second, &unasked()], [BILLS; 3], SOON, "1");
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    second.request(0);
    failing.open();
    until("the hedge takes over", || {
        gateway.metrics().contains("outcome=\"took_over\"} 1")
    });
    answering.open();
    let answer = client.answer();
    assert_answered(&answer);
    let ended = [("p0", "upstream_error"), ("p1", "none")];
    assert_eq!(attempts(&routing(&answer)), expected(&ended));
    assert_eq!(second.requests().len(), 1, "it was asked once");
    used(&gateway, "0.02");
}

#[test]
fn a_hedge_that_fails_leaves_the_first_attempt_alone() {
    for (failing, end) in [
        (Reply::json(500, "{}"), "upstream_error"),
        (
            Reply::json(400, "{\"error\":{\"message\":\"no\"}}"),
            "upstream_error",
        ),
        (Reply::empty().and_close(), "network_error"),
        (
            Reply::sse(["{\"error\":{\"message\":\"boom\"}}"]),
            "upstream_error",
        ),
        (Reply::stream().end(), "upstream_error"),
    ] {
        let gate = Gate::default();
        let first = Upstream::always(Reply::empty().wait(&gate).then(stream()));
        let second = Upstream::always(failing);
        let gateway = gateway([&first, &second, &unasked()], [BILLS; 3], SOON, "1");
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(STREAM));
        until("the hedge fails", || {
            gateway.metrics().contains("outcome=\"failed\"} 1")
        });
        gate.open();
        let answer = client.answer();
        assert_answered(&answer);
        assert_eq!(
            attempts(&routing(&answer)),
            expected(&[("p1", end), ("p0", "none")])
        );
        // What has failed costs nothing.
        used(&gateway, "0.01");
    }
}

#[test]
fn when_both_fail_the_attempts_that_are_left_follow() {
    for hedge_fails_first in [true, false] {
        let gates = [Gate::default(), Gate::default()];
        let failing =
            |gate: &Gate| Upstream::always(Reply::empty().wait(gate).then(Reply::json(503, "{}")));
        let (first, second) = (failing(&gates[0]), failing(&gates[1]));
        let third = Upstream::always(stream());
        let gateway = gateway([&first, &second, &third], [BILLS; 3], SOON, "1");
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(STREAM));
        second.request(0);
        let (outcome, ended) = match hedge_fails_first {
            true => ("failed", ["p1", "p0", "p2"]),
            false => ("took_over", ["p0", "p1", "p2"]),
        };
        gates[usize::from(hedge_fails_first)].open();
        until(outcome, || {
            gateway
                .metrics()
                .contains(&format!("outcome=\"{outcome}\"}} 1"))
        });
        gates.iter().for_each(Gate::open);
        let answer = client.answer();
        assert_answered(&answer);
        let ended = [
            (ended[0], "upstream_error"),
            (ended[1], "upstream_error"),
            (ended[2], "none"),
        ];
        assert_eq!(attempts(&routing(&answer)), expected(&ended));
        assert_eq!(
            [&first, &second, &third].map(|it| it.requests().len()),
            [1; 3]
        );
        used(&gateway, "0.03");
    }
}

#[test]
fn no_hedge_begins_without_the_credit_for_both() {
    // The call itself may cost three cents, and the cancelled attempt two.
    for (credit, capabilities, hedges) in
        [("0.04", BILLS, 0), ("0.05", BILLS, 1), ("0.03", CANCELS, 1)]
    {
        let gate = Gate::default();
        let first = Upstream::always(Reply::empty().wait(&gate).then(stream()));
        let second = Upstream::always(Reply::hang());
        let gateway = gateway(
            [&first, &second, &unasked()],
            [capabilities; 3],
            SOON,
            credit,
        );
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(STREAM));
        if hedges == 0 {
            until("it is refused", || {
                gateway.metrics().contains("outcome=\"no_credit\"} 1")
            });
        } else {
            second.request(0);
        }
        gate.open();
        assert_answered(&client.answer());
        assert_eq!(second.requests().len(), hedges, "{credit}");
        used(
            &gateway,
            if capabilities == BILLS && hedges > 0 {
                "0.03"
            } else {
                "0.01"
            },
        );
    }
}

#[test]
fn a_client_that_leaves_cancels_both() {
    // Who leaves owes the attempt that ran, and the hedge only where it is billed anyway.
    for (capabilities, cost) in [([CANCELS; 3], "0.01"), ([CANCELS, BILLS, BILLS], "0.03")] {
        let (first, second) = (
            Upstream::always(Reply::hang()),
            Upstream::always(Reply::hang()),
        );
        let gateway = gateway([&first, &second, &unasked()], capabilities, SOON, "1");
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(STREAM).header("x-request-id", "left"));
        let (one, other) = (first.request(0), second.request(0));
        drop(client);
        first.wait_closed(one.connection);
        second.wait_closed(other.connection);
        let line = gateway.log_line("left");
        assert_eq!(line["outcome"], "client_gone", "{line}");
        assert_eq!(line["attempts"][0]["error_type"], "cancelled", "{line}");
        assert_counted(&gateway, "abandoned", 1);
        used(&gateway, cost);
    }
}

#[test]
fn hedges_share_the_budget_of_later_fallbacks() {
    let gate = Gate::default();
    let first = Upstream::always(Reply::empty().wait(&gate).then(stream()));
    let second = Upstream::always(Reply::hang());
    let gateway = gateway([&first, &second, &unasked()], [CANCELS; 3], SOON, "1");
    let served = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                assert_answered(&gateway.chat(STREAM));
                served.fetch_add(1, Ordering::Relaxed);
            });
        }
        until("five are refused", || {
            gateway.metrics().contains("outcome=\"no_budget\"} 5")
        });
        second.wait_requests(3);
        gate.open();
    });
    assert_eq!((served.into_inner(), second.requests().len()), (8, 3));
    assert_counted(&gateway, "lost", 3);
    let budget = || format!("{:?}", gateway.running.app.models.retry_budget);
    until("calls end", || budget().contains("running: 0, later: 0"));
}

#[test]
fn a_long_answer_of_the_hedge_is_whole_and_one_that_breaks_says_so() {
    let piece = "x".repeat(4000);
    let mut long = Reply::stream();
    for _ in 0..500 {
        long = long.event(&chunk(json!({ "content": piece }), None));
    }
    let begun = long.clone();
    let whole = long
        .event(&chunk(json!({}), Some("stop")))
        .event(&usage())
        .event("[DONE]")
        .end();
    let first = Upstream::always(Reply::hang());
    let second = Upstream::sequence([whole, begun.and_reset()]);
    let more = format!("{SOON}\nsticky_ttl_s = 0");
    let gateway = gateway([&first, &second, &unasked()], [CANCELS; 3], &more, "1");
    let answer = gateway.chat(STREAM);
    assert!(answer.events().is_done());
    assert_eq!(answer.events().content().len(), 500 * 4000);
    let answer = gateway.chat(STREAM);
    let last = answer.events().json().pop().unwrap();
    assert_eq!(last["error"]["code"], "stream_truncated", "{last}");
    assert!(!answer.events().says_done());
}

#[test]
fn a_hedge_answers_a_client_of_http_2_and_one_that_was_kept_alive() {
    let first = Upstream::always(Reply::hang());
    let slow = Reply::empty()
        .pause(Duration::from_millis(1500))
        .then(stream());
    let second = Upstream::always(slow);
    let more = format!("{SOON}\nkeepalive_s = 1");
    let gateway = gateway([&first, &second, &unasked()], [CANCELS; 3], &more, "1");
    let output = std::process::Command::new("curl")
        .args([
            "-sN",
            "--http2-prior-knowledge",
            "-d",
            STREAM,
            "-w",
            "\n%{http_version} %{http_code}",
        ])
        .args(["-H", "content-type: application/json", "-H"])
        .arg(format!("authorization: Bearer {}", gateway.key))
        .arg(format!("http://{}/v1/chat/completions", gateway.address()))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    assert_eq!(status, "2 200", "{text}");
    let events = sse::parse(body);
    assert!(!events.comments().is_empty() && events.is_done());
    assert_eq!(events.content(), "hello");
    first.wait_closed(first.request(0).connection);
    assert_counted(&gateway, "won", 1);
}

#[test]
fn a_session_stays_with_the_hedge_that_answered() {
    let first = Upstream::sequence([Reply::hang(), stream()]);
    let second = Upstream::always(stream());
    let gateway = gateway([&first, &second, &unasked()], [CANCELS; 3], SOON, "1");
    for id in ["one", "two"] {
        let of_session = gateway.chat_ask(STREAM).header("x-session-id", "s");
        let of_session = of_session.header("x-request-id", id);
        assert_answered(&ask(gateway.address(), &of_session));
        // A session is bound when its call has ended.
        gateway.log_line(id);
    }
    assert_eq!((first.requests().len(), second.requests().len()), (1, 2));
}

#[test]
fn text_that_is_held_back_is_content() {
    let asked = json!({"model": "chat", "stream": true, "messages": [{"role": "user", "content": "Hi"}],
        "response_format": {"type": "json_object"}, "plugins": [{"id": "response-healing"}]});
    let begun = || {
        Reply::stream()
            .event(&chunk(json!({"content": "{\"a\": 1"}), None))
            .pause(Duration::from_millis(500))
            .event(&chunk(json!({"content": "}"}), Some("stop")))
            .event(&usage())
            .event("[DONE]")
            .end()
    };
    let silent = Upstream::always(Reply::hang());
    // The attempt whose text is held back needs no hedge, and a hedge with such a text has won.
    for (first, second, hedges) in [(begun(), Reply::hang(), 0), (Reply::hang(), begun(), 1)] {
        let (first, second) = (Upstream::always(first), Upstream::always(second));
        let gateway = gateway([&first, &second, &silent], [CANCELS; 3], SOON, "1");
        let answer = gateway.chat(asked.to_string());
        assert_eq!(answer.events().content(), "{\"a\": 1}", "{}", answer.text());
        assert_eq!(second.requests().len(), hedges);
    }
}

#[test]
fn a_call_on_the_caller_s_own_key_has_no_hedge_on_the_platform_s() {
    let gate = Gate::default();
    let first = Upstream::always(Reply::empty().wait(&gate).then(stream()));
    let second = Upstream::always(Reply::hang());
    let gateway = gateway([&first, &second, &second], [CANCELS; 3], SOON, "1");
    gateway.set_mode(Mode::Hybrid);
    gateway.own("p0", "sk-own");
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    first.request(0);
    let has_none = || second.requests().is_empty();
    stays("there is no hedge", Duration::from_millis(400), has_none);
    gate.open();
    assert_answered(&client.answer());
    assert!(has_none());
}

/// Starts a process in front of two silent providers, the second of which goes on as told.
fn killed_while(second: Reply, is_time: impl FnOnce(&Upstream, &Upstream, &mut Client)) -> Place {
    let (first, second) = (Upstream::always(Reply::hang()), Upstream::always(second));
    let models = models([BILLS; 3])
        .replace("p0", "first")
        .replace("p1", "second");
    let models = models
        .split("[[models.providers]]\nprovider = \"p2\"")
        .next()
        .unwrap()
        .to_owned();
    let mut place = Place::new("", &first, &models);
    let of_second = |url: &str| {
        format!("[providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"")
    };
    place.set(&of_second(&first.url()), &of_second(&second.url()));
    place.set(
        "[providers.first]",
        &format!("{SOON}\nexploration = 0\n[providers.first]"),
    );
    let key = place.fund("1");
    let server = Server::start(place.path());
    let mut client = Client::connect(server.address);
    client.send(&Ask::post("/v1/chat/completions", STREAM).key(&key));
    is_time(&first, &second, &mut client);
    server.kill();
    place
}

#[test]
fn a_process_killed_with_both_attempts_running_charges_what_was_delivered_and_what_was_cancelled() {
    // Neither has content: nobody pays.
    let place = killed_while(Reply::hang(), |first, second, _| {
        first.request(0);
        second.request(0);
    });
    let server = Server::start(place.path());
    assert_eq!(place.used("0").balance().to_string(), "1");
    server.stop();

    // The hedge has won: the cancelled attempt is charged, and what was delivered.
    let begun = Reply::stream()
        .event(&chunk(json!({"content": "hel"}), None))
        .and_hang();
    let place = killed_while(begun, |first, _, client| {
        client.head();
        assert!(client.chunk().is_some());
        first.wait_closed(first.request(0).connection);
    });
    let server = Server::start(place.path());
    assert_eq!(place.used("0.03").balance().to_string(), "0.97");
    server.stop();
    assert_eq!(place.credit().balance().to_string(), "0.97");
}

#[test]
fn the_rest_of_a_slow_answer_keeps_its_pieces() {
    let gate = Gate::default();
    let first = Upstream::always(Reply::hang());
    let answer = Reply::stream()
        .event(&chunk(json!({"content": "hel"}), None))
        .wait(&gate)
        .event(&chunk(json!({"content": "lo"}), Some("stop")))
        .event(&usage())
        .event("[DONE]")
        .end();
    let second = Upstream::always(answer);
    let gateway = gateway([&first, &second, &unasked()], [CANCELS; 3], SOON, "1");
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    client.head();
    // The first piece does not wait for the second.
    let piece = client.chunk().unwrap();
    assert!(String::from_utf8_lossy(&piece.bytes).contains("hel"));
    gate.open();
    let rest = drain(&mut client);
    assert!(rest.contains("lo") && rest.contains("[DONE]"), "{rest}");
}
