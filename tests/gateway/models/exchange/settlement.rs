//! What a call costs that does not end well: its client leaves, or its provider breaks.

use std::time::Duration;

use filters::money::Usd;
use serde_json::json;
use sqlx::{Connection, SqliteConnection};

use crate::ledger::{begun, gateway, used};
use crate::models::exchange::streams::drain;
use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply, stream};
use crate::support::boot::{CENT, Gateway, MODELS};
use crate::support::client::{Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::sse;
use crate::support::upstream::Upstream;
use crate::support::{stays, until};

/// One token of prompt at the first provider of [`MODELS`], and at the second.
const PROMPT: [&str; 2] = ["0.0000025", "0.000005"];
/// The same and two tokens for the eight characters of [`begun`].
const DELIVERED: &str = "0.0000225";
/// The gateway notices sooner that a client has left, and nothing outside tells when.
const NOTICE: Duration = Duration::from_millis(200);

/// Sends a request and leaves once the provider has it.
fn leave_early(gateway: &Gateway, upstream: &Upstream, body: &str, id: &str) {
    let before = upstream.requests().len();
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(body).header("x-request-id", id));
    upstream.request(before);
    drop(client);
}

/// [`MODELS`] with a first provider that cannot cancel calls.
fn without_cancellation() -> String {
    MODELS.replacen(", \"cancellation\"", "", 1)
}

/// A gateway in front of one provider with more TOML, its own settings first.
fn configured(upstream: &Upstream, of_provider: &str, models: &str, more: &str) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = []\n{of_provider}\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = []\n{more}\n",
        upstream.url()
    );
    Gateway::start_with_credit(&toml, models, &[], "1")
}

/// A whole stream that says what it took: 0.0035 at the first provider of [`MODELS`].
fn reported(gate: &Gate) -> Reply {
    let usage = json!({"id": "c", "object": "chat.completion.chunk", "created": 5, "model": "m",
                       "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100,
                       "total_tokens": 1100}});
    Reply::stream()
        .wait(gate)
        .event(&chunk(json!({"content": "hello"}), Some("stop")))
        .event(&usage.to_string())
        .event("[DONE]")
        .end()
}

#[test]
fn a_client_that_leaves_before_the_first_content_pays_for_the_prompt() {
    for body in [STREAM, PLAIN] {
        let upstream = Upstream::always(Reply::hang());
        let gateway = gateway(&upstream, MODELS, "1");
        leave_early(&gateway, &upstream, body, "early");
        used(&gateway, PROMPT[0]);
        let line = gateway.log_line("early");
        assert_eq!(line["outcome"], "client_gone", "{line}");
        assert_eq!(
            (&line["prompt_tokens"], &line["estimated"]),
            (&1.into(), &true.into())
        );
    }
}

#[test]
fn a_client_that_leaves_pays_for_no_attempt_that_had_failed() {
    let upstream = Upstream::sequence([Reply::json(500, "{}"), Reply::hang()]);
    let models = MODELS.replace(
        "output_price = \"20\"",
        "output_price = \"20\"\ncapabilities = [\"streaming\", \"cancellation\"]",
    );
    let gateway = gateway(&upstream, &models, "1");
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    upstream.request(1);
    drop(client);
    used(&gateway, PROMPT[1]);
}

#[test]
fn a_client_that_leaves_before_its_request_is_sent_pays_nothing_and_no_provider_hears_of_it() {
    let upstream = Upstream::always(reply());
    let gateway = gateway(&upstream, CENT, "1");
    let file = gateway.folder.path().join("weirgate.db");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let url = format!("sqlite:{}", file.display());
    // The credit of the first call cannot be reserved while another connection writes.
    let mut other = runtime.block_on(SqliteConnection::connect(&url)).unwrap();
    let mut sql = |sql: &'static str| {
        let done = sqlx::raw_sql(sql).execute(&mut other);
        runtime.block_on(done).unwrap();
    };
    sql("BEGIN IMMEDIATE");
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(PLAIN).header("x-request-id", "unsent"));
    let is_unsent = || upstream.requests().is_empty();
    until("it waits", || {
        gateway.running.app.proxy.metrics.in_flight.get() == 1
    });
    stays("it waits for credit", NOTICE, is_unsent);
    drop(client);
    stays("it is not sent", NOTICE, is_unsent);
    sql("COMMIT");
    let line = gateway.log_line("unsent");
    assert_eq!(
        (&line["outcome"], &line["status"]),
        (&"client_gone".into(), &499.into())
    );
    assert!(upstream.requests().is_empty(), "it was sent");
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    used(&gateway, "0.01");
}

#[test]
fn a_provider_that_bills_anyway_is_read_on_whatever_its_models_claim() {
    let gate = Gate::default();
    let upstream = Upstream::always(reported(&gate));
    let gateway = configured(&upstream, "bills_after_disconnect = true", MODELS, "");
    leave_early(&gateway, &upstream, STREAM, "early");
    // The provider works on, and nothing is charged before it says what it took.
    let nothing =
        || gateway.beside(async |store| store.credit("acme").await.unwrap().used == Usd::ZERO);
    stays("nothing is charged", NOTICE, nothing);
    gate.open();
    used(&gateway, "0.0035");
    assert_eq!(gateway.log_line("early")["estimated"], false);
}

#[test]
fn reading_on_ends_with_the_time_of_the_attempt_and_costs_what_is_known() {
    let more = "[routing]\nstream_total_timeout_s = 2";
    let early = Upstream::always(Reply::hang());
    let gateway = configured(&early, "", &without_cancellation(), more);
    leave_early(&gateway, &early, STREAM, "early");
    used(&gateway, PROMPT[0]);
    early.wait_closed(0);

    let late = Upstream::always(begun().and_hang());
    let gateway = configured(&late, "", &without_cancellation(), more);
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    client.head();
    client.chunk().unwrap();
    drop(client);
    used(&gateway, DELIVERED);
    late.wait_closed(0);
}

#[test]
fn a_provider_that_fails_after_the_client_has_left_is_not_paid() {
    for failing in [Reply::json(500, "{}"), Reply::empty().and_close()] {
        let gate = Gate::default();
        let failing = Reply::empty().wait(&gate).then(failing);
        let upstream = Upstream::sequence([failing, stream()]);
        let gateway = configured(&upstream, "", &without_cancellation(), "");
        leave_early(&gateway, &upstream, STREAM, "early");
        stays("nobody else is asked", NOTICE, || {
            upstream.requests().len() == 1
        });
        gate.open();
        assert_eq!(gateway.log_line("early")["outcome"], "client_gone");
        assert_eq!(
            upstream.requests().len(),
            1,
            "nobody waits for another provider"
        );
        // What is charged next is charged behind it.
        assert_eq!(gateway.chat(STREAM).status(), 200);
        let credit = gateway.stop_and_ask(async |store| store.credit("acme").await.unwrap());
        // The next call went to the second provider, because the first has failed.
        assert_eq!(credit.used.to_string(), "0.000055");
    }
}

#[test]
fn a_stream_that_stalls_or_breaks_in_the_middle_costs_prompt_and_delivered_output() {
    let error = json!({"error": {"message": "boom"}}).to_string();
    for what in ["a stall", "half an event", "an error"] {
        let gate = Gate::default();
        let begun = begun().wait(&gate);
        let upstream = Upstream::always(match what {
            "a stall" => begun.and_hang(),
            "half an event" => begun.event("{\"choices\":[").event("[DONE]").end(),
            _ => begun.event(&error).end(),
        });
        let gateway = configured(&upstream, "", MODELS, "[routing]\nidle_timeout_s = 1");
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(STREAM));
        client.head();
        client.chunk().unwrap();
        gate.open();
        let events = sse::parse(drain(&mut client)).json();
        let usage = &events.last().unwrap()["error"]["usage"];
        assert_eq!(usage["info"], "estimated", "{what}");
        assert_eq!(usage["cost"].to_string(), DELIVERED, "{what}");
        used(&gateway, DELIVERED);
    }
}

#[test]
fn a_whole_reply_that_is_cut_short_costs_nothing() {
    let body =
        r#"{"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18},"choices":[{"#;
    let json = [("content-type", "application/json")];
    for cut in [
        Reply::claiming(200, &json, 5000, body).and_close(),
        Reply::claiming(200, &json, 5000, body).and_reset(),
        Reply::chunked(200, &json).chunk(body).and_close(),
        Reply::json(200, body),
    ] {
        let upstream = Upstream::always(cut);
        let gateway = gateway(&upstream, CENT, "0.01");
        for _ in 0..2 {
            // Each finds the credit that the one before did not use.
            let answer = ask(gateway.address(), &gateway.chat_ask(PLAIN));
            assert_eq!(answer.status(), 502, "{}", answer.text());
        }
        let credit = gateway.stop_and_ask(async |store| store.credit("acme").await.unwrap());
        assert_eq!(credit.used.to_string(), "0");
    }
}
