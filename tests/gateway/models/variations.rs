//! What experiments on models tell: impressions, and usage by variation. Source: docs/prompts.md, Experiments.

use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::store::ProjectChange;
use weirgate::store::ledger::VariationUsage;

use crate::ledger::money::{Place, TOKENS};
use crate::models::experiments::{asked, datafile, gateway, no_events};
use crate::models::fronts::chat_completions::{PLAIN, reply, stream};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client;
use crate::support::own_postgres::Postgres;
use crate::support::script::Reply;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::Upstream;

/// Answers, but for the model `only`.
fn half_broken() -> Upstream {
    Upstream::answering(|request| {
        let asked = request.json();
        match asked["model"] == "only" {
            true => Reply::json(500, r#"{"error":{"message":"no"}}"#),
            false if asked["stream"] == true => stream(),
            false => reply(),
        }
    })
}

fn of(gateway: &Gateway, flag: &str, members: Value) -> u16 {
    gateway.chat(asked(flag, members)).status()
}

/// Waits until so many calls of experiments are in the store; returns them by variation.
fn wait_usage(requests: u64, read: impl Fn() -> Vec<VariationUsage>) -> Vec<VariationUsage> {
    let mut rows = Vec::new();
    until("the calls are stored", || {
        rows = read();
        rows.iter().map(|row| row.requests).sum::<u64>() >= requests
    });
    rows
}

#[test]
fn usage_by_variation_has_calls_failures_costs_and_durations() {
    let (first, events) = (half_broken(), no_events());
    let (gateway, _folder) = gateway(&first, &first, &events);
    for (user, is_stream, status) in [
        ("ada", false, 200),
        ("ada", true, 200),
        ("bob", false, 502),
        ("bob", true, 502),
    ] {
        let members = json!({"user": user, "stream": is_stream});
        assert_eq!(of(&gateway, "models", members), status, "{user}");
    }
    // Of what is refused, and of calls without an experiment, no variation hears.
    assert_eq!(of(&gateway, "bad", json!({"user": "ada"})), 400);
    assert_eq!(of(&gateway, "off", json!({"user": "ada"})), 404);
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    let read = || gateway.beside(async |store| store.usage_by_variation("acme", 0).await.unwrap());
    let rows = wait_usage(4, read);
    let [a, b] = &rows[..] else {
        panic!("{rows:?}")
    };
    for (row, key) in [(a, "a"), (b, "b")] {
        assert_eq!((&*row.project, &*row.names.flag), ("default", "models"));
        assert_eq!(
            (&*row.names.rule, &*row.names.variation),
            ("models_test", key)
        );
    }
    assert_eq!((a.requests, a.failures, a.prompt_tokens), (2, 0, 1003));
    assert!(
        !a.cost.is_zero() && a.duration_p95_ms >= a.duration_p50_ms,
        "{a:?}"
    );
    assert_eq!((b.requests, b.failures, b.prompt_tokens), (2, 2, 0));
    assert!(b.cost.is_zero() && b.duration_p50_ms.is_none(), "{b:?}");
    assert!(a.duration_p50_ms.is_some());
    until("the plain call is stored", || {
        let all = gateway.beside(async |store| store.usage("acme", 0, None).await.unwrap());
        assert!(all[0].requests <= 3, "failed calls are no usage");
        all[0].requests == 3
    });
}

#[test]
fn an_impression_goes_out_when_a_model_is_asked_or_a_reply_replayed() {
    let (broken, second) = (
        Upstream::always(Reply::json(500, "{}")),
        Upstream::always(reply()),
    );
    let events = no_events();
    let (gateway, _folder) = gateway(&broken, &second, &events);
    let limited = gateway.key_with(r#"{"limit":"0"}"#);
    let refused = Ask::post(
        "/v1/chat/completions",
        asked("models", json!({"user": "bob"})),
    );
    let refused = client::ask(gateway.address(), &refused.key(&limited));
    assert_eq!(refused.status(), 402, "{}", refused.text());
    assert_eq!(of(&gateway, "bad", json!({"user": "bob"})), 400);
    // A wire is asked only for what its model can do.
    let tools = json!({"user": "bob", "tools": [{"type": "function", "function": {"name": "f"}}]});
    assert_eq!(of(&gateway, "models", tools), 400);
    gateway.cache_for(3600);
    for (user, status) in [("ada", 200), ("ada", 200), ("eve", 200)] {
        assert_eq!(of(&gateway, "odd", json!({"user": user})), status);
    }
    assert_eq!(
        (broken.requests().len(), second.requests().len()),
        (1, 1),
        "two are replayed"
    );
    // A call that fails has asked a model.
    assert_eq!(of(&gateway, "models", json!({"user": "bob"})), 502);
    let told = events.wait_requests(4);
    let users: Vec<Value> = told
        .iter()
        .map(|request| request.json()["visitors"][0]["visitor_id"].clone())
        .collect();
    assert_eq!(
        users,
        ["ada", "ada", "eve", "bob"],
        "one each, and none of what was refused"
    );
}

#[test]
fn two_processes_add_up_and_a_killed_one_loses_no_call_of_a_variation() {
    let postgres = Postgres::start();
    let upstream = Upstream::answering(|request| match request.json()["temperature"] == 2 {
        true => Reply::json(500, "{}"),
        false => reply(),
    });
    let flags = tempfile::tempdir().unwrap();
    let path = flags.path().join("flags.json");
    std::fs::write(&path, datafile(false).to_string()).unwrap();
    let decisions = format!(
        "[[decisions.projects]]\nsdk_key = \"exp\"\ndatafile = \"{}\"\n[providers.first]",
        path.display()
    );
    let places = [0, 1].map(|_| {
        let mut place = Place::new(&postgres.url(), &upstream, TOKENS);
        place.set("[providers.first]", &decisions);
        place
    });
    let key = places[0].fund("100");
    places[0].store(async |store| {
        let change = ProjectChange {
            experiments: Some(Some("exp")),
            ..ProjectChange::default()
        };
        store
            .by(&PROGRAM)
            .update_project("acme", "default", &change)
            .await
            .unwrap();
    });
    let ask = |server: &Server, user: &str, temperature: u8| {
        let body = asked("odd", json!({"user": user, "temperature": temperature}));
        let ask = Ask::post("/v1/chat/completions", body).key(&key);
        client::ask(server.address, &ask).status()
    };
    let (killed, other) = (
        Server::start(places[0].path()),
        Server::start(places[1].path()),
    );
    for (server, user, temperature, status) in [
        (&other, "ada", 0, 200),
        (&other, "bob", 0, 200),
        (&other, "bob", 2, 502),
        (&killed, "ada", 0, 200),
        (&killed, "ada", 0, 200),
        (&killed, "bob", 2, 502),
    ] {
        assert_eq!(ask(server, user, temperature), status);
    }
    killed.kill();
    let _again = Server::start(places[0].path());
    let read = || places[1].store(async |store| store.usage_by_variation("acme", 0).await.unwrap());
    let rows = wait_usage(6, read);
    let counts: Vec<_> = rows
        .iter()
        .map(|row| (&*row.names.variation, row.requests, row.failures))
        .collect();
    assert_eq!(counts, [("a", 3, 0), ("b", 3, 2)]);
}
