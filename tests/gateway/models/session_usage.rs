//! What clients' sessions and their agents took and cost. Source: docs/model-gateway.md 2.18.

use std::sync::Arc;

use filters::audit::PROGRAM;
use filters::ledger::{CallOwner, EntryId, Funding, LedgerEntry, SessionNames};
use filters::money::Usd;
use serde_json::{Value, json};
use weirgate::store::ledger::UsagePart;

use crate::ledger::money::{Place, TOKENS};
use crate::ledger::used;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::Upstream;

const HOUR_MS: i64 = 3_600_000;
const SESSION: &str = "x-claude-code-session-id";
const AGENT: &str = "x-claude-code-agent-id";
const PARENT: &str = "x-claude-code-parent-agent-id";

/// Makes a call of the key with these headers, to the path of one of the fronts.
fn call(gateway: &Gateway, path: &str, model: &str, headers: &[(&str, &str)]) {
    let body = json!({"model": model, "max_tokens": 100,
                      "messages": [{"role": "user", "content": "Hi"}]});
    let asked = Ask::post(path, body.to_string()).key(&gateway.key);
    let named = |asked: Ask, (name, value): &(&str, &str)| asked.header(name, value);
    let answer = client::ask(gateway.address(), &headers.iter().fold(asked, named));
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

fn told(gateway: &Gateway, key: &str, query: &str) -> Value {
    let answer = gateway.usage(key, &format!("/v1/usage/breakdown?{query}"));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.json()
}

/// The parts of this group, by cost.
fn parts(gateway: &Gateway, group: &str) -> Vec<Value> {
    let mut body = told(
        gateway,
        &gateway.key,
        &format!("group_by={group}&limit=100"),
    );
    let Value::Array(parts) = body["data"].take() else {
        panic!("{body}")
    };
    parts
}

/// Session, id, parent and cost of each part.
fn named(parts: &[Value]) -> Vec<[&str; 4]> {
    let parts = parts.iter().map(|part| {
        ["session_id", "id", "parent_agent_id", "cost"]
            .map(|name| part.get(name).and_then(Value::as_str).unwrap_or("-"))
    });
    parts.collect()
}

fn sum(parts: &[Value]) -> Usd {
    let costs = parts.iter().map(|part| part["cost"].as_str().unwrap());
    costs.fold(Usd::ZERO, |sum, cost| sum.plus(Usd::parse(cost).unwrap()))
}

/// A session that asks by itself, by an agent and by the sub-agent of that one, and another session.
fn with_sessions(upstream: &Upstream) -> Gateway {
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    let (messages, chat) = ("/v1/messages", "/v1/chat/completions");
    let (session, agent) = ((SESSION, "s-1"), (AGENT, "a-1"));
    let sub_agent = [session, (AGENT, "a-2"), (PARENT, "a-1")];
    call(&gateway, messages, "chat", &[session]);
    call(&gateway, messages, "chat", &[session, agent]);
    call(&gateway, messages, "chat", &sub_agent);
    call(&gateway, chat, "only-first", &sub_agent);
    call(&gateway, chat, "chat", &[("x-session-id", "s-2")]);
    // These are in no session.
    call(&gateway, chat, "chat", &[]);
    call(&gateway, messages, "chat", &[agent]);
    used(&gateway, "0.0191");
    gateway
}

/// Contract: model-gateway 4 GET /v1/usage/breakdown
#[test]
fn each_session_and_each_agent_has_its_cost_also_after_a_restart() {
    let upstream = Upstream::always(reply());
    let gateway = with_sessions(&upstream);
    let check = |gateway: &Gateway| {
        let sessions = parts(gateway, "session");
        let expected = [["-", "s-1", "-", "0.0101"], ["-", "s-2", "-", "0.003"]];
        assert_eq!(named(&sessions), expected);
        let agents = parts(gateway, "agent");
        let expected = [
            ["s-1", "a-2", "a-1", "0.0041"],
            ["s-1", "", "-", "0.003"],
            ["s-1", "a-1", "-", "0.003"],
            ["s-2", "", "-", "0.003"],
        ];
        assert_eq!(named(&agents), expected);
        let sub_agent = json!({"id": "a-2", "session_id": "s-1", "parent_agent_id": "a-1",
            "requests": 2, "prompt_tokens": 2000, "cached_tokens": 800, "completion_tokens": 200,
            "cost": "0.0041"});
        assert_eq!(agents[0], sub_agent);
        assert_eq!(sum(&agents), sum(&sessions));
        // But for the two calls without a session, that is all.
        let all = sum(&parts(gateway, "model"));
        assert_eq!(sum(&agents).plus(Usd::parse("0.006").unwrap()), all);
    };
    check(&gateway);
    check(&gateway.restart());
}

#[test]
fn threads_of_codex_are_agents_of_their_session() {
    let upstream = Upstream::always(reply());
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    let (session, thread) = ("session-id", "thread-id");
    let parent = "x-codex-parent-thread-id";
    for headers in [
        &[(session, "s"), (thread, "s")][..],
        &[(session, "s"), (thread, "t"), (parent, "s")],
        &[(session, "s"), (thread, "u"), (parent, "t")],
    ] {
        call(&gateway, "/v1/chat/completions", "chat", headers);
    }
    used(&gateway, "0.009");
    assert_eq!(
        named(&parts(&gateway, "session")),
        [["-", "s", "-", "0.009"]]
    );
    let agents = parts(&gateway, "agent");
    let mut agents = named(&agents);
    agents.sort_unstable();
    let expected = [
        ["s", "", "-", "0.003"],
        ["s", "t", "-", "0.003"],
        ["s", "u", "t", "0.003"],
    ];
    assert_eq!(agents, expected);
}

#[test]
fn sessions_are_sorted_and_paged_and_a_members_key_sees_its_own() {
    let upstream = Upstream::always(reply());
    let mut gateway = with_sessions(&upstream);
    let page = "group_by=agent&sort_by=requests&limit=1";
    let page = told(&gateway, &gateway.key, page);
    assert_eq!(
        (
            &page["group_by"],
            &page["data"][0]["requests"],
            &page["has_more"]
        ),
        (&json!("agent"), &json!(2), &json!(true))
    );
    let last = "group_by=agent&sort_by=tokens&limit=1&offset=3";
    let last = told(&gateway, &gateway.key, last);
    assert_eq!(
        (&last["data"][0]["session_id"], &last["has_more"]),
        (&json!("s-2"), &json!(false))
    );
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .add_member("acme", "ada", 0)
            .await
            .unwrap();
    });
    let ada = gateway.labelled("laptop", Some("ada"));
    let of_all = std::mem::replace(&mut gateway.key, ada);
    call(&gateway, "/v1/messages", "chat", &[(SESSION, "s-1")]);
    used(&gateway, "0.0221");
    assert_eq!(
        named(&parts(&gateway, "session")),
        [["-", "s-1", "-", "0.003"]]
    );
    gateway.key = of_all;
    assert_eq!(
        named(&parts(&gateway, "session"))[0],
        ["-", "s-1", "-", "0.0131"]
    );
}

#[test]
fn hostile_ids_are_told_as_they_came_or_by_their_hash() {
    let upstream = Upstream::always(reply());
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    let strange = [
        "'; DROP TABLE session_hours; --",
        r#"","cost":"0"},{"id":"x"#,
        r"\u0000\",
        "%s{}$1",
    ];
    let long = "x".repeat(129);
    let text = |id| [(SESSION, id), (AGENT, id), (PARENT, id)];
    for id in strange {
        call(&gateway, "/v1/messages", "chat", &text(id));
    }
    let hashed = [&*long, "caf\u{e9}", &*gateway.key];
    for id in hashed {
        call(&gateway, "/v1/messages", "chat", &text(id));
        call(
            &gateway,
            "/v1/messages",
            "chat",
            &[(SESSION, "s"), (AGENT, id), (PARENT, id)],
        );
    }
    used(&gateway, "0.03");
    let agents = parts(&gateway, "agent");
    let (hashed, mut ids): (Vec<_>, Vec<_>) = named(&agents)
        .into_iter()
        .partition(|[_, id, ..]| id.starts_with("sha256:"));
    ids.sort_unstable();
    let mut expected: Vec<_> = strange.iter().map(|id| [*id, id, id, "0.003"]).collect();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    // Each of the three was an agent of its own session, and one of another.
    let of_other = hashed
        .iter()
        .filter(|[session, ..]| *session == "s")
        .count();
    assert_eq!((hashed.len(), of_other), (6, 3));
    assert!(
        !agents
            .iter()
            .any(|part| part.to_string().contains(&gateway.key))
    );
}

fn now_ms() -> i64 {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

#[test]
fn a_month_of_sessions_is_kept_and_told() {
    let upstream = Upstream::always(reply());
    let gateway = Gateway::between(&upstream.url(), &upstream.url());
    let now_ms = now_ms();
    gateway.beside(async |store| {
        let organization_id: Arc<str> = store.organization("acme").await.unwrap().id.into();
        let calls = (0..40_u8).map(|day| LedgerEntry {
            id: EntryId([day + 1; 16]),
            at_ms: now_ms - i64::from(day) * 24 * HOUR_MS,
            owner: CallOwner {
                organization_id: Arc::clone(&organization_id),
                ..CallOwner::default()
            },
            funding: Funding::Byok,
            session: Some(Arc::new(SessionNames {
                session: format!("day-{day}").into(),
                ..SessionNames::default()
            })),
            ..LedgerEntry::default()
        });
        let calls: Vec<_> = calls.collect();
        store.post("x", &calls, false).await.unwrap();
    });
    // Older ones are not told even before they are deleted, which a start does.
    assert_eq!(parts(&gateway, "session").len(), 31);
    let body = told(&gateway, &gateway.key, "group_by=session&from=2026-01-01");
    let from: jiff::Timestamp = body["from"].as_str().unwrap().parse().unwrap();
    let age_ms = now_ms - from.as_millisecond();
    assert!((30 * 24 * HOUR_MS..=31 * 24 * HOUR_MS).contains(&age_ms));
    let gateway = gateway.restart();
    until("old sums are deleted", || {
        let kept = gateway.beside(async |store| by_agent(&store).await);
        kept.len() == 31
    });
    assert_eq!(parts(&gateway, "session").len(), 31);
}

async fn by_agent(store: &weirgate::store::Store) -> Vec<UsagePart> {
    let group = filters::ledger::usage_query::UsageGroup::Agent;
    store.usage_by_session("acme", 0, group).await.unwrap()
}

#[test]
fn a_killed_process_loses_no_call_of_an_agent() {
    let upstream = Upstream::always(reply());
    let place = Place::new("", &upstream, TOKENS);
    let key = place.fund("100");
    let server = Server::start(place.path());
    for agent in ["a", "b", "b"] {
        let asked = Ask::post("/v1/chat/completions", PLAIN).key(&key);
        let asked = asked.header(SESSION, "s").header(AGENT, agent);
        assert_eq!(client::ask(server.address, &asked).status(), 200);
    }
    server.kill();
    let _again = Server::start(place.path());
    until("the calls are stored", || {
        let agents = place.store(async |store| by_agent(store).await);
        let counts: Vec<_> = agents
            .iter()
            .map(|part| (&*part.usage.name, part.usage.requests))
            .collect();
        counts == [("a", 1), ("b", 2)]
    });
}
