//! The response cache of the model gateway: what is replayed, to whom, and what it costs. Source: docs/response-cache.md.

use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::store::ProjectChange;

use crate::ledger::used;
use crate::models::fronts::chat_completions::{PLAIN, STREAM, reply};
use crate::support::ask::Ask;
use crate::support::boot::{CENT, Gateway};
use crate::support::client::{Answer, Client, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

mod flights;
mod kept;
mod shared;
mod tenants;
mod wires;

impl Gateway {
    /// Sets how long replies of the project `default` are cached; 0: not at all.
    pub fn cache_for(&self, ttl_s: u32) {
        self.change(async |store| {
            let change = ProjectChange {
                cache_ttl_s: Some((ttl_s > 0).then_some(ttl_s)),
                ..ProjectChange::default()
            };
            let updated = store
                .by(&PROGRAM)
                .update_project("acme", "default", &change)
                .await;
            updated.unwrap();
        });
    }
}

/// A gateway in front of one provider, whose replies are cached for an hour.
fn caching(upstream: &Upstream) -> Gateway {
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    gateway.cache_for(3600);
    gateway
}

fn is_hit(answer: &Answer) -> bool {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.header("x-weirgate-cache") == Some("HIT")
}

fn without(mut body: Value, pointers: &[&str]) -> Value {
    for pointer in pointers {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = body.pointer_mut(parent);
        let object = parent.and_then(Value::as_object_mut);
        object.and_then(|object| object.remove(key));
    }
    body
}

/// What differs between an answer and its replay.
const OWN: [&str; 7] = [
    "/id",
    "/created",
    "/metadata/request_id",
    "/metadata/log_id",
    "/metadata/cached",
    "/usage/cost",
    "/usage/cost_details",
];

/// Contract: model-gateway 1 Cache
/// Contract: model-gateway 2.5 metadata
#[test]
fn a_replay_is_the_answer_with_ids_of_its_own_and_costs_nothing() {
    let first = Upstream::always(reply());
    let gateway = caching(&first);
    let answer = gateway.chat(PLAIN);
    assert!(!is_hit(&answer));
    let replay = gateway.chat(PLAIN);
    assert!(is_hit(&replay));
    assert_eq!(first.requests().len(), 1);
    let (one, other) = (answer.json(), replay.json());
    assert_eq!(without(one.clone(), &OWN), without(other.clone(), &OWN));
    assert_eq!(other["metadata"]["cached"], true);
    assert!(one["metadata"].get("cached").is_none());
    for own in ["/id", "/metadata/request_id", "/metadata/log_id"] {
        assert!(other.pointer(own).unwrap().is_string());
        assert_ne!(one.pointer(own), other.pointer(own), "{own}");
    }
    assert_eq!(other["usage"]["prompt_tokens"], 1000);
    assert!(other["created"].as_u64() > Some(1_700_000_000));
    assert!(replay.text().contains(r#""cost":0,"#), "{}", replay.text());
    let details = other["usage"]["cost_details"].as_object().unwrap();
    assert!(details.values().all(|cost| *cost == 0), "{details:?}");
    assert_eq!(
        replay.header("x-request-id"),
        other["metadata"]["request_id"].as_str()
    );
}

#[test]
fn the_log_and_the_metrics_tell_a_replay_and_the_ledger_does_not() {
    let first = Upstream::always(reply());
    let gateway = caching(&first);
    let named = |id| gateway.chat_ask(PLAIN).header("x-request-id", id);
    let answer = ask(gateway.address(), &named("one"));
    let replay = ask(gateway.address(), &named("two"));
    assert!(!is_hit(&answer) && is_hit(&replay));
    let (one, two) = (gateway.log_line("one"), gateway.log_line("two"));
    assert!(one.get("cached").is_none(), "{one}");
    assert_eq!(two["cached"], true, "{two}");
    assert_eq!((&two["outcome"], &two["cost"]), (&"ok".into(), &"0".into()));
    for same in ["used_model", "provider", "prompt_tokens", "cached_tokens"] {
        assert_eq!(one[same], two[same], "{same}");
    }
    assert_eq!(two["log_id"], replay.json()["metadata"]["log_id"]);
    assert_eq!(
        (&two["attempts"], &two["stream"]),
        (&json!([]), &false.into())
    );
    let metrics = gateway.metrics();
    for line in [
        "weirgate_cache_hits_total{route=\"chat_completions\"} 1",
        "weirgate_cache_misses_total{route=\"chat_completions\"} 1",
        "weirgate_upstream_attempts_total{model=\"chat\",outcome=\"ok\",provider=\"first\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
    used(&gateway, "0.003");
    let rows = gateway.beside(async |store| store.usage("acme", 0, None).await.unwrap());
    assert_eq!(rows[0].requests, 1);
}

#[test]
fn a_replay_counts_as_a_request_and_needs_no_credit() {
    let first = Upstream::always(reply());
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n\
         [limits]\nrequests_per_minute = {{ chat = 3 }}\n",
        first.url()
    );
    let gateway = Gateway::start_with_credit(&toml, CENT, &[], "0.01");
    gateway.cache_for(3600);
    assert!(!is_hit(&gateway.chat(PLAIN)));
    used(&gateway, "0.01");
    let other = PLAIN.replace("Hi", "Ho");
    assert_eq!(gateway.chat(&other).status(), 402);
    assert!(is_hit(&gateway.chat(PLAIN)));
    assert_eq!(gateway.chat(PLAIN).status(), 429);
    used(&gateway, "0.01");
}

#[test]
fn a_replay_is_served_while_its_provider_is_away() {
    let first = Upstream::sequence([reply(), Reply::json(500, "{}")]);
    let gateway = caching(&first);
    assert!(!is_hit(&gateway.chat(PLAIN)));
    let other = PLAIN.replace("Hi", "Ho");
    for _ in 0..3 {
        assert_eq!(gateway.chat(&other).status(), 502);
        assert!(is_hit(&gateway.chat(PLAIN)) && is_hit(&gateway.chat(STREAM)));
    }
    drop(first);
    assert!(is_hit(&gateway.chat(PLAIN)));
}

#[test]
fn no_cache_neither_reads_nor_stores() {
    let first = Upstream::always(reply());
    let gateway = caching(&first);
    let with = |value| gateway.chat_ask(PLAIN).header("x-no-cache", value);
    assert!(!is_hit(&ask(gateway.address(), &with("true"))));
    assert!(!is_hit(&gateway.chat(PLAIN)));
    assert!(!is_hit(&ask(gateway.address(), &with("true"))));
    assert_eq!(first.requests().len(), 3);
    // It is the exact word.
    for value in ["True", "1", "false", ""] {
        assert!(is_hit(&ask(gateway.address(), &with(value))), "{value}");
    }
}

#[test]
fn a_project_without_a_cache_has_none_and_a_change_counts_within_a_second() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    assert!(!is_hit(&gateway.chat(PLAIN)) && !is_hit(&gateway.chat(PLAIN)));
    gateway.cache_for(3600);
    assert!(!is_hit(&gateway.chat(PLAIN)) && is_hit(&gateway.chat(PLAIN)));
    gateway.cache_for(0);
    assert!(!is_hit(&gateway.chat(PLAIN)));
    assert_eq!(first.requests().len(), 4);
}

#[test]
fn without_memory_for_it_nothing_is_cached() {
    let first = Upstream::always(reply());
    let more = "[cache]\nmax_bytes = 0";
    let gateway = Gateway::with(&first.url(), &first.url(), more);
    gateway.cache_for(3600);
    assert!(!is_hit(&gateway.chat(PLAIN)) && !is_hit(&gateway.chat(PLAIN)));
}

#[test]
fn one_connection_serves_answers_and_replays_in_turn() {
    let first = Upstream::answering(|request| {
        let is_stream = request.json()["stream"] == true;
        let reply = if is_stream {
            crate::models::fronts::chat_completions::stream
        } else {
            reply
        };
        reply()
    });
    let gateway = caching(&first);
    let mut client = Client::connect(gateway.address());
    for round in 0..3 {
        for body in [PLAIN, STREAM] {
            let body = body.replace("Hi", &format!("Hi {round}"));
            let answer = client.ask(&gateway.chat_ask(&body));
            assert_eq!(is_hit(&answer), body.contains("stream"), "{round}");
        }
        let answer = client.ask(&Ask::get("/v1/models").key(&gateway.key));
        assert_eq!(answer.status(), 200);
    }
}
