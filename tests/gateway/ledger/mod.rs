//! The ledger of calls: money is reserved before a call, settled after it, never lost and never below zero.

mod budgets;
mod crashes;
mod frozen;
mod limits;
pub mod money;
mod refused_calls;
mod shared_limits;

use std::time::Duration;

use filters::audit::PROGRAM;
use serde_json::json;
use weirgate::store::Credit;

use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply, stream};
use crate::support::boot::{CENT, Gateway, MODELS};
use crate::support::client::{self, Client};
use crate::support::script::{Cut, Gate, Reply};
use crate::support::upstream::Upstream;
use crate::support::{POLL, every, stays};

/// A reasoning model at a provider of the Anthropic wire.
const THINKER: &str = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
input_price = "1"
cached_input_price = "0.1"
output_price = "10"
max_output = 64000
capabilities = ["streaming", "reasoning", "cancellation"]
"#;

/// A gateway in front of one provider, with this catalogue and credit.
pub fn gateway(upstream: &Upstream, models: &str, credit: &str) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = []\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{0}/v1\"\nkeys = []\n",
        upstream.url()
    );
    Gateway::start_with_credit(&toml, models, &[], credit)
}

/// A gateway in front of a provider of the Anthropic wire.
fn of_messages(upstream: &Upstream, credit: &str) -> Gateway {
    let url = upstream.url();
    let toml = format!(
        "[providers.first]\nkind = \"anthropic\"\nbase_url = \"{url}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n"
    );
    Gateway::start_with_credit(&toml, THINKER, &[("FIRST_KEY", "sk-platform-1")], credit)
}

/// A whole reply of such a provider.
fn message() -> Reply {
    let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "end_turn",
                      "content": [{"type": "text", "text": "hello"}],
                      "usage": {"input_tokens": 10, "output_tokens": 5}});
    Reply::json(200, body.to_string())
}

/// Waits until this much of the organization's credit is used, and returns the credit.
pub fn used(gateway: &Gateway, amount: &str) -> Credit {
    let credit = || gateway.beside(async |store| store.credit("acme").await.unwrap());
    let mut seen = every(POLL, Duration::from_secs(3)).map(|_| credit());
    let is_used = |credit: &Credit| credit.used.to_string() == amount;
    let found = seen.find(is_used);
    found.unwrap_or_else(|| panic!("{amount} is not used, but {:?}", credit()))
}

/// Sends this many requests at once; returns how many were served and how many had no credit.
fn ask_at_once(gateway: &Gateway, count: usize) -> (usize, usize) {
    let (address, ask) = (gateway.address(), gateway.chat_ask(PLAIN));
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let ask = ask.clone();
            let small = std::thread::Builder::new().stack_size(256 << 10);
            small
                .spawn(move || client::ask(address, &ask).status())
                .unwrap()
        })
        .collect();
    let statuses: Vec<u16> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    let of = |status| statuses.iter().filter(|it| **it == status).count();
    (of(200), of(402))
}

#[test]
fn a_credit_of_one_serves_exactly_a_hundred_calls_of_a_cent() {
    let upstream = Upstream::always(reply());
    let gateway = gateway(&upstream, CENT, "1.00");
    assert_eq!(ask_at_once(&gateway, 1000), (100, 900));
    assert_eq!(upstream.requests().len(), 100);
    let credit = used(&gateway, "1");
    assert_eq!(credit.balance().to_string(), "0");
}

/// Contract: model-gateway 7 402
#[test]
fn a_call_without_credit_is_a_402_that_reaches_no_provider() {
    let upstream = Upstream::always(reply());
    let gateway = gateway(&upstream, MODELS, "0");
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.status(), 402);
    let error = &answer.json()["error"];
    assert_eq!(error["type"], "billing_error");
    assert_eq!(error["code"], "insufficient_credits");
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn credit_that_is_added_counts_at_once() {
    let upstream = Upstream::always(reply());
    let gateway = gateway(&upstream, CENT, "0.01");
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    assert_eq!(gateway.chat(PLAIN).status(), 402);
    gateway.beside(async |store| {
        let cent = filters::money::Usd::parse("0.01").unwrap();
        store
            .by(&PROGRAM)
            .add_credit("acme", cent, 0)
            .await
            .unwrap();
    });
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    used(&gateway, "0.02");
}

#[test]
fn a_reported_zero_is_a_zero() {
    let said = json!({
        "id": "x", "object": "chat.completion", "created": 5, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 0, "total_tokens": 1000},
    });
    let upstream = Upstream::always(Reply::json(200, said.to_string()));
    let gateway = gateway(&upstream, MODELS, "1");
    let usage = &gateway.chat(PLAIN).json()["usage"];
    assert_eq!(usage["completion_tokens"], 0, "{usage}");
    assert!(usage.get("info").is_none(), "not estimated: {usage}");
    let details = &usage["cost_details"];
    assert_eq!(details["output_cost"], 0, "{usage}");
    assert_eq!(usage["cost"], details["input_cost"], "{usage}");
    used(&gateway, &usage["cost"].to_string());
}

/// Contract: model-gateway 1 Credentials
#[test]
fn a_response_costs_what_it_says() {
    let upstream = Upstream::always(reply());
    let gateway = gateway(&upstream, MODELS, "1");
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.json()["usage"]["cost"].to_string(), "0.003");
    let credit = used(&gateway, "0.003");
    assert_eq!(credit.balance().to_string(), "0.997");
}

#[test]
fn failed_attempts_cost_nothing() {
    let upstream = Upstream::always(Reply::json(500, "{}"));
    let gateway = gateway(&upstream, CENT, "0.01");
    for _ in 0..3 {
        // Each finds the credit that the one before did not use.
        assert_eq!(gateway.chat(PLAIN).status(), 502);
    }
    used(&gateway, "0");
}

#[test]
fn a_request_that_the_provider_refuses_costs_nothing() {
    let refusal = Reply::json(400, r#"{"error":{"message":"no"}}"#);
    let upstream = Upstream::always(refusal);
    let gateway = gateway(&upstream, CENT, "0.01");
    assert_eq!(gateway.chat(PLAIN).status(), 400);
    assert_eq!(gateway.chat(PLAIN).status(), 400);
    used(&gateway, "0");
}

pub fn begun() -> Reply {
    Reply::stream()
        .event(&chunk(json!({"role": "assistant", "content": ""}), None))
        .event(&chunk(json!({"content": "hello wo"}), None))
}

#[test]
fn a_stream_that_breaks_costs_prompt_and_delivered_output() {
    let upstream = Upstream::always(begun().cut(usize::MAX, Cut::Close));
    let gateway = gateway(&upstream, MODELS, "1");
    let answer = gateway.chat(STREAM);
    let events = answer.events().json();
    let usage = &events.last().unwrap()["error"]["usage"];
    assert_eq!(usage["info"], "estimated");
    // One token of prompt, two of eight delivered characters.
    let cost = usage["cost"].to_string();
    assert_eq!(cost, "0.0000225");
    used(&gateway, &cost);
}

#[test]
fn a_stream_of_messages_that_breaks_costs_the_prompt_that_was_reported() {
    let usage =
        json!({"input_tokens": 1000, "cache_read_input_tokens": 100_000, "output_tokens": 1});
    let start = json!({"type": "message_start", "message": {"id": "m", "type": "message",
                       "role": "assistant", "content": [], "usage": usage}});
    let block = json!({"type": "content_block_start", "index": 0,
                       "content_block": {"type": "text", "text": "hello wo"}});
    let events = Reply::stream()
        .event(&start.to_string())
        .event(&block.to_string());
    let upstream = Upstream::always(events.cut(usize::MAX, Cut::Close));
    let gateway = of_messages(&upstream, "1");
    let answer = gateway.chat(STREAM);
    let events = answer.events().json();
    let usage = &events.last().unwrap()["error"]["usage"];
    assert_eq!(usage["prompt_tokens"], 101_000, "{usage}");
    // 1,000 tokens at 1, 100,000 at 0.1, two of eight delivered characters at 10 USD per million.
    assert_eq!(usage["cost"].to_string(), "0.01102");
    used(&gateway, "0.01102");
}

#[test]
fn a_client_that_leaves_pays_for_what_was_delivered() {
    let gate = Gate::default();
    let upstream = Upstream::always(begun().wait(&gate));
    let gateway = gateway(&upstream, MODELS, "1");
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    client.head();
    client.chunk().unwrap();
    drop(client);
    used(&gateway, "0.0000225");
}

#[test]
fn a_provider_that_bills_anyway_is_read_on_when_the_client_leaves() {
    let gate = Gate::default();
    let rest = begun()
        .wait(&gate)
        .event(&chunk(json!({"content": "rld"}), Some("stop")))
        .event(
            &json!({"id": "c", "object": "chat.completion.chunk", "created": 5, "model": "m",
                    "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100,
                    "total_tokens": 1100}})
            .to_string(),
        )
        .event("[DONE]")
        .end();
    let upstream = Upstream::always(rest);
    // The second model can be cancelled: it costs only the part that was delivered.
    let models = MODELS.replacen(", \"cancellation\"", "", 1);
    let gateway = gateway(&upstream, &models, "1");
    for body in [STREAM, &STREAM.replace("\"chat\"", "\"only-first\"")] {
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(body));
        client.head();
        client.chunk().unwrap();
        drop(client);
    }
    // The second client left later and is charged already, but the first one is not.
    used(&gateway, "0.000003");
    gate.open();
    used(&gateway, "0.003503");
}

#[test]
fn a_budget_of_thinking_is_reserved_beside_the_maximum_output() {
    let upstream = Upstream::always(message());
    let gateway = of_messages(&upstream, "0.5");
    let think = |budget: u32| {
        let body = json!({"model": "chat", "max_tokens": 1, "reasoning": {"max_tokens": budget},
                          "messages": [{"role": "user", "content": "Hi"}]});
        gateway.chat(body.to_string()).status()
    };
    // 1,000 more than the budget are sent as the bound, at 10 USD per million.
    assert_eq!(think(60_000), 402);
    assert_eq!(think(40_000), 200);
    assert_eq!(upstream.request(0).json()["max_tokens"], 41_000);
}

#[test]
fn a_reservation_is_free_again_after_the_response() {
    let upstream = Upstream::always(stream());
    // A little more than the max cost of one call: 78 bytes and 16384 tokens at the more expensive provider.
    let gateway = gateway(&upstream, MODELS, "0.3285");
    for _ in 0..5 {
        assert_eq!(gateway.chat(STREAM).status(), 200);
    }
    // 3 tokens of prompt, 2 of completion.
    used(&gateway, "0.0001375");
}

#[test]
fn what_is_not_stored_when_the_server_stops_is_there_after_the_next_start() {
    let upstream = Upstream::always(reply());
    let gateway = gateway(&upstream, MODELS, "1");
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    let credit = gateway.stop_and_ask(async |store| store.credit("acme").await.unwrap());
    assert_eq!(credit.used.to_string(), "0.003");
    assert_eq!(credit.reserved.to_string(), "0", "leases are given back");
}

#[test]
fn a_lease_stays_where_no_other_process_could_use_it() {
    let upstream = Upstream::always(reply());
    let gateway = gateway(&upstream, CENT, "1");
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    used(&gateway, "0.01");
    // Idle: the next call is served though the store may be away by then. Where leases go back, they are looked at each
    // second.
    let lease = || gateway.beside(async |store| store.credit("acme").await.unwrap().reserved);
    let is_kept = || lease().to_string() == "0.99";
    stays("the lease is kept", Duration::from_millis(1500), is_kept);
}

#[test]
fn metrics_tell_what_was_settled() {
    let upstream = Upstream::always(reply());
    let gateway = gateway(&upstream, MODELS, "1");
    gateway.chat(PLAIN);
    used(&gateway, "0.003");
    let metrics = gateway.metrics();
    assert!(
        metrics.contains("weirgate_ledger_settled_usd_total 0.003\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("weirgate_ledger_shortfall_usd_total 0\n"),
        "{metrics}"
    );
}

#[test]
fn usage_and_metrics_agree_with_the_responses() {
    let broken = begun().cut(usize::MAX, Cut::Close);
    let failed = Reply::json(500, "{}");
    let upstream = Upstream::sequence([reply(), failed.clone(), failed, reply(), broken, stream()]);
    let models = MODELS.replace("provider = \"second\"", "provider = \"absent\"");
    let gateway = gateway(&upstream, &models, "1");
    let costs = [PLAIN, PLAIN, PLAIN, PLAIN, STREAM, STREAM].map(|body| {
        let answer = gateway.chat(body);
        let text = answer.text().to_owned();
        let cost = text
            .rsplit_once("\"cost\":")
            .map(|(_, rest)| rest.to_owned());
        cost.map(|rest| rest.split([',', '}']).next().unwrap().to_owned())
    });
    let usd = |text: &String| filters::money::Usd::parse_signed(text).unwrap();
    let zero = filters::money::Usd::default();
    let sum = costs
        .iter()
        .flatten()
        .map(usd)
        .fold(zero, filters::money::Usd::plus);
    // Two whole responses, the delivered part of the broken stream, a whole stream.
    assert_eq!(sum.to_string(), "0.00605", "{costs:?}");
    used(&gateway, "0.00605");
    let usage = gateway.beside(async |store| store.usage("acme", 0, None).await.unwrap());
    assert_eq!((usage[0].cost, usage[0].requests), (sum, 4));
    let metrics = gateway.metrics();
    let counted: f64 = metrics
        .lines()
        .filter(|line| line.starts_with("weirgate_cost_usd_total{"))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert!((counted - 0.00605).abs() < 1e-9, "{counted}");
    let prompt = "weirgate_tokens_total{kind=\"prompt\",model=\"chat\",provider=\"first\"} ";
    let tokens = metrics.lines().find_map(|line| line.strip_prefix(prompt));
    assert_eq!(tokens, Some(&*usage[0].prompt_tokens.to_string()));
}
