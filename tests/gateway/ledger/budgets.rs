//! Budgets of sessions, agents and tags: what is refused, in which words, and how it goes on.

use std::net::SocketAddr;

use filters::accounts::{Plan, TermsFile};
use filters::audit::PROGRAM;
use filters::money::Usd;
use filters::money::budgets::{nameless_budget, session_budget};
use serde_json::json;
use weirgate::store::{BudgetChange, KeyChange, NewKey};

use super::money::Place;
use super::used;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::{CENT, Gateway};
use crate::support::client::{self, Answer, ask_at_once};
use crate::support::own_postgres::Postgres;
use crate::support::server::Server;
use crate::support::upstream::Upstream;

const SESSION: &str = "x-claude-code-session-id";
const AGENT: &str = "x-claude-code-agent-id";
const PARENT: &str = "x-claude-code-parent-agent-id";
const TAGS: &str = "x-weirgate-tags";
const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";

fn call(gateway: &Gateway, key: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let body = match path {
        RESPONSES => {
            json!({"model": "chat", "max_output_tokens": 1, "input": "Hi", "store": false})
        }
        _ => {
            json!({"model": "chat", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]})
        }
    };
    let asked = Ask::post(path, body.to_string()).key(key);
    let named = |asked: Ask, (name, value): &(&str, &str)| asked.header(name, value);
    client::ask(gateway.address(), &headers.iter().fold(asked, named))
}

fn served(gateway: &Gateway, key: &str, headers: &[(&str, &str)]) -> Answer {
    let answer = call(gateway, key, CHAT, headers);
    assert_eq!(answer.status(), 200, "{headers:?}: {}", answer.text());
    answer
}

fn refused(gateway: &Gateway, key: &str, headers: &[(&str, &str)]) -> Answer {
    let answer = call(gateway, key, CHAT, headers);
    assert_eq!(answer.status(), 402, "{headers:?}: {}", answer.text());
    answer
}

/// A gateway whose calls cost 0.01, and may not cost more.
fn cheap() -> (Upstream, Gateway) {
    let first = Upstream::always(reply());
    let gateway = super::gateway(&first, CENT, "50");
    (first, gateway)
}

fn grant(gateway: &Gateway, name: &str, change: BudgetChange) {
    gateway.change(async |store| {
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let editor = store.by(&PROGRAM);
        editor
            .change_budget("acme", name, change, now_ms)
            .await
            .unwrap();
    });
}

fn usd(text: &str) -> Usd {
    Usd::parse(text).unwrap()
}

#[test]
fn a_session_is_paused_at_its_limit_granted_more_and_goes_on() {
    let (first, gateway) = cheap();
    let key = gateway.key_with(r#"{"budgets":{"session":["0.025"]}}"#);
    let session = [(SESSION, "s 1")];
    for left in ["0.015", "0.005"] {
        let answer = call(&gateway, &key, MESSAGES, &session);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(answer.header("x-budget-limit"), Some("0.025"));
        assert_eq!(answer.header("x-budget-remaining"), Some(left));
        let warned = answer.header("anthropic-ratelimit-unified-status");
        assert_eq!(warned, (left == "0.005").then_some("allowed_warning"));
    }
    let asked = first.requests().len();
    let messages = call(&gateway, &key, MESSAGES, &session);
    assert_eq!(messages.status(), 429, "{}", messages.text());
    let error = messages.json()["error"].clone();
    assert_eq!(error["type"], "billing_error");
    let told = "this session has used 0.02 of its 0.025 USD, and this call may cost more than the 0.005 USD that are left; \
                an operator can grant more with `weirgate session grant --org acme 's 1' USD`, and the session goes on with its \
                next request";
    assert_eq!(error["message"], told);
    assert_eq!(messages.header("retry-after"), Some("86400"));
    assert_eq!(messages.header("x-should-retry"), Some("false"));
    let status = messages.header("anthropic-ratelimit-unified-status");
    assert_eq!(status, Some("rejected"));
    assert_eq!(messages.header("x-budget-remaining"), Some("0.005"));
    let responses = call(&gateway, &key, RESPONSES, &session);
    assert_eq!(responses.status(), 429);
    assert_eq!(responses.json()["error"]["code"], "insufficient_quota");
    assert_eq!(responses.header("retry-after"), Some("86400"));
    let chat = refused(&gateway, &key, &session);
    let error = chat.json()["error"].clone();
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("billing_error"), &json!("insufficient_quota"))
    );
    assert_eq!(
        first.requests().len(),
        asked,
        "nothing is asked for a paused session"
    );
    // Another session, and the same key without one, go on.
    served(&gateway, &key, &[(SESSION, "s 2")]);
    served(&gateway, &key, &[]);
    grant(
        &gateway,
        &session_budget("s 1"),
        BudgetChange::Grant(usd("0.005")),
    );
    let answer = call(&gateway, &key, MESSAGES, &session);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(answer.header("x-budget-limit"), Some("0.03"));
    let again = refused(&gateway, &key, &session);
    assert!(
        again.text().contains("has used 0.03 of its 0.03 USD;"),
        "{}",
        again.text()
    );
}

#[test]
fn what_was_spent_is_known_behind_a_restart() {
    let (_first, gateway) = cheap();
    let key = gateway.key_with(r#"{"budgets":{"session":["0.02"]}}"#);
    served(&gateway, &key, &[(SESSION, "s")]);
    let gateway = gateway.restart();
    served(&gateway, &key, &[(SESSION, "s")]);
    let gateway = gateway.restart();
    refused(&gateway, &key, &[(SESSION, "s")]);
}

#[test]
fn calls_without_a_session_are_one_session_of_their_key() {
    let (_first, mut gateway) = cheap();
    let key = gateway.key_with(r#"{"budgets":{"session":["0.01"]}}"#);
    served(&gateway, &key, &[]);
    let answer = refused(&gateway, &key, &[]);
    let id = gateway.change(async |store| store.keys("acme").await.unwrap().pop().unwrap().id);
    let how = format!("`weirgate session grant --org acme {id} USD`");
    assert!(answer.text().contains(&how), "{}", answer.text());
    // Another key with the same terms has its own.
    let other = gateway.key_with(r#"{"budgets":{"session":["0.01"]}}"#);
    served(&gateway, &other, &[]);
    grant(
        &gateway,
        &nameless_budget(&id),
        BudgetChange::Grant(usd("0.01")),
    );
    served(&gateway, &key, &[]);
    // An empty id names none, and a long one is a session of its own.
    refused(&gateway, &key, &[(SESSION, "")]);
    gateway.key = key;
    let long = "x".repeat(10 << 10);
    served(&gateway, &gateway.key, &[(SESSION, &long)]);
    refused(&gateway, &gateway.key, &[(SESSION, &long)]);
}

#[test]
fn an_id_of_another_organization_is_another_session() {
    let (_first, gateway) = cheap();
    let terms = r#"{"budgets":{"session":["0.01"]}}"#;
    let key = gateway.key_with(terms);
    let others = gateway.change(async |store| {
        let editor = store.by(&PROGRAM);
        let plan = Plan::None;
        editor.create_organization("globex", plan, 0).await.unwrap();
        editor.add_credit("globex", usd("1"), 0).await.unwrap();
        let terms: TermsFile = serde_json::from_str(terms).unwrap();
        let new = NewKey {
            organization: "globex",
            terms: &terms,
            ..NewKey::default()
        };
        let (key, _) = editor.create_key(&new, 0).await.unwrap();
        key.reveal().to_owned()
    });
    let session = [(SESSION, "s")];
    served(&gateway, &key, &session);
    refused(&gateway, &key, &session);
    served(&gateway, &others, &session);
    grant(
        &gateway,
        &session_budget("s"),
        BudgetChange::Grant(usd("0.01")),
    );
    refused(&gateway, &others, &session);
    served(&gateway, &key, &session);
}

#[test]
fn sub_agents_share_the_budget_of_the_agent_that_has_asked_them() {
    let (_first, gateway) = cheap();
    let key = gateway.key_with(r#"{"budgets":{"agent":["0.02"]}}"#);
    let (session, a) = ((SESSION, "s"), (AGENT, "a"));
    served(&gateway, &key, &[session, a]);
    served(&gateway, &key, &[session, (AGENT, "b"), (PARENT, "a")]);
    let answer = refused(&gateway, &key, &[session, (AGENT, "c"), (PARENT, "b")]);
    let told = answer.text();
    assert!(
        told.contains("this agent has used 0.02") && told.contains("--agent-limit"),
        "{told}"
    );
    served(&gateway, &key, &[session, (AGENT, "d")]);
    served(&gateway, &key, &[session]);
    served(&gateway, &key, &[(SESSION, "t"), ("x-agent-id", "a")]);
}

#[test]
fn a_tag_of_a_key_has_a_budget_and_wrong_tags_are_refused_by_name() {
    let (_first, gateway) = cheap();
    let key = gateway.key_with(r#"{"budgets":{"tags":{"nightly":["0.01/month"]}}}"#);
    served(&gateway, &key, &[(TAGS, "team=a, nightly")]);
    let answer = refused(&gateway, &key, &[(TAGS, "nightly")]);
    assert!(
        answer
            .text()
            .contains("this tag has used 0.01 of its 0.01 USD per month"),
        "{}",
        answer.text()
    );
    let reset: u64 = answer.header("x-budget-reset").unwrap().parse().unwrap();
    assert!((1..=31 * 86_400).contains(&reset));
    assert_eq!(
        answer.header("retry-after"),
        answer.header("x-budget-reset")
    );
    served(&gateway, &key, &[(TAGS, "team=a")]);
    let wrong = call(&gateway, &key, CHAT, &[(TAGS, "a b")]);
    assert_eq!(wrong.status(), 400);
    let error = wrong.json()["error"].clone();
    assert_eq!(error["param"], "x-weirgate-tags");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("`a b` is no tag"),
        "{error}"
    );
}

#[test]
fn behind_the_end_a_session_has_a_few_calls_to_end_what_it_does() {
    let (_first, gateway) = cheap();
    let key = gateway.key_with(r#"{"budgets":{"session":["0.01"],"grace_calls":2}}"#);
    let session = [(SESSION, "s")];
    for _ in 0..3 {
        served(&gateway, &key, &session);
    }
    refused(&gateway, &key, &session);
    refused(&gateway, &key, &session);
    let gateway = gateway.restart();
    let told = refused(&gateway, &key, &session);
    assert!(
        told.text().contains("has used 0.03 of its 0.01 USD;"),
        "{}",
        told.text()
    );
    // Behind a grant that is used up there are as many again.
    grant(
        &gateway,
        &session_budget("s"),
        BudgetChange::Grant(usd("0.03")),
    );
    for _ in 0..3 {
        served(&gateway, &key, &session);
    }
    refused(&gateway, &key, &session);
}

#[test]
fn a_person_pauses_a_session_without_a_budget_and_lets_it_go_on() {
    let (first, gateway) = cheap();
    let session = [(SESSION, "s")];
    served(&gateway, &gateway.key, &session);
    grant(&gateway, &session_budget("s"), BudgetChange::Pause);
    let asked = first.requests().len();
    let answer = refused(&gateway, &gateway.key, &session);
    assert!(
        answer
            .text()
            .contains("weirgate session resume --org acme 's'"),
        "{}",
        answer.text()
    );
    assert_eq!(first.requests().len(), asked);
    served(&gateway, &gateway.key, &[(SESSION, "t")]);
    let gateway = gateway.restart();
    refused(&gateway, &gateway.key, &session);
    grant(&gateway, &session_budget("s"), BudgetChange::Resume);
    served(&gateway, &gateway.key, &session);
}

#[test]
fn a_model_without_a_price_does_not_run_under_a_budget() {
    let first = Upstream::always(reply());
    let models =
        "[[models]]\nid = \"chat\"\n[[models.providers]]\nprovider = \"first\"\nname = \"c\"\n";
    let gateway = super::gateway(&first, models, "1");
    let key = gateway.key_with(r#"{"budgets":{"session":["1"]}}"#);
    let answer = call(&gateway, &key, CHAT, &[]);
    assert_eq!(answer.status(), 403, "{}", answer.text());
    assert!(
        answer.text().contains("price of this model is not known"),
        "{}",
        answer.text()
    );
    assert!(first.requests().is_empty());
}

#[test]
fn three_processes_serve_exactly_a_hundred_parallel_calls_of_a_session_of_a_dollar() {
    let postgres = Postgres::start();
    let upstream = Upstream::always(reply());
    let places: Vec<Place> = (0..3)
        .map(|_| Place::new(&postgres.url(), &upstream, CENT))
        .collect();
    let key = places[0].fund("50");
    places[0].store(async |store| {
        let mut terms = TermsFile::default();
        terms.budgets.session.push("1".to_owned());
        let id = store.keys("acme").await.unwrap().remove(0).id;
        let wanted = KeyChange {
            terms: Some(terms),
            ..KeyChange::default()
        };
        store.by(&PROGRAM).update_key(&id, &wanted).await.unwrap();
    });
    let servers: Vec<Server> = places
        .iter()
        .map(|place| Server::start(place.path()))
        .collect();
    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    let ask = Ask::post(CHAT, PLAIN).key(&key).header(SESSION, "one");
    assert_eq!(ask_at_once(&addresses, &ask, 1000), (100, 900));
    assert_eq!(upstream.requests().len(), 100);
    places[0].used("1");
    let report = places[0].store(async |store| {
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let name = session_budget("one");
        store.budget_report("acme", &name, now_ms).await.unwrap()
    });
    assert_eq!(report.spent.total, usd("1"));
    assert_eq!(report.left(), Some(Usd::ZERO));
    // Other sessions of the key have their own.
    let other = Ask::post(CHAT, PLAIN).key(&key).header(SESSION, "two");
    assert_eq!(client::ask(addresses[1], &other).status(), 200);
}

#[test]
fn a_killed_process_loses_nothing_that_a_session_has_spent() {
    let upstream = Upstream::always(reply());
    let place = Place::new("", &upstream, CENT);
    let key = place.fund("50");
    place.store(async |store| {
        let mut terms = TermsFile::default();
        terms.budgets.session.push("0.02".to_owned());
        let id = store.keys("acme").await.unwrap().remove(0).id;
        let wanted = KeyChange {
            terms: Some(terms),
            ..KeyChange::default()
        };
        store.by(&PROGRAM).update_key(&id, &wanted).await.unwrap();
    });
    let ask = Ask::post(CHAT, PLAIN).key(&key).header(SESSION, "one");
    for expected in [200, 200, 402] {
        let server = Server::start(place.path());
        assert_eq!(client::ask(server.address, &ask).status(), expected);
        server.kill();
    }
}

#[test]
fn a_million_ids_of_a_key_do_not_make_a_million_budgets() {
    let (_first, gateway) = cheap();
    let key = gateway.key_with(r#"{"budgets":{"session":["0.01"]}}"#);
    // So many names may be new in an hour; the others are the session without a name.
    let wanted = |n: usize| {
        let id = format!("s-{n}");
        call(&gateway, &key, CHAT, &[(SESSION, &id)]).status()
    };
    let statuses: Vec<u16> = (0..1_010).map(wanted).collect();
    let served = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(served, 1_001, "the thousand, and one without a name");
    refused(&gateway, &key, &[]);
    // A known one is still itself.
    let told = refused(&gateway, &key, &[(SESSION, "s-1")]);
    assert!(told.text().contains("'s-1'"), "{}", told.text());
    used(&gateway, "10.01");
}
