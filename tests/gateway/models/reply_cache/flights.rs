//! Equal requests at once: one calls, the others wait for it.

use std::time::{Duration, Instant};

use super::*;
use crate::support::script::Gate;
use crate::support::{stays, until};

fn wait_in_flight(gateway: &Gateway, count: usize) {
    let line = format!("\nweirgate_requests_in_flight {count}\n");
    until("requests in flight", || gateway.metrics().contains(&line));
}

fn sent(gateway: &Gateway, body: &str, count: usize) -> Vec<Client> {
    let request = gateway.chat_ask(body);
    let clients = (0..count).map(|_| {
        let mut client = Client::connect(gateway.address());
        client.send(&request);
        client
    });
    clients.collect()
}

#[test]
fn two_hundred_equal_requests_are_one_call_and_one_charge() {
    let gate = Gate::default();
    let first = Upstream::always(Reply::empty().wait(&gate).then(reply()));
    let gateway = caching(&first);
    let mut clients = sent(&gateway, PLAIN, 100);
    clients.extend(sent(&gateway, STREAM, 100));
    wait_in_flight(&gateway, 200);
    gate.open();
    let answers: Vec<Answer> = clients.iter_mut().map(Client::answer).collect();
    assert_eq!(answers.iter().filter(|answer| !is_hit(answer)).count(), 1);
    let (whole, streamed) = answers.split_at(100);
    let of = |answer: &Answer| without(answer.json(), &OWN);
    assert!(whole.iter().all(|answer| of(answer) == of(&whole[0])));
    assert!(
        streamed
            .iter()
            .all(|answer| answer.events().content() == "hello")
    );
    assert_eq!(first.requests().len(), 1);
    used(&gateway, "0.003");
}

#[test]
fn a_follower_calls_when_the_leader_leaves() {
    let gate = Gate::default();
    let held = Reply::empty().wait(&gate).then(reply());
    let first = Upstream::sequence([held, reply()]);
    let gateway = caching(&first);
    let leader = sent(&gateway, PLAIN, 1);
    first.wait_requests(1);
    let mut followers = sent(&gateway, PLAIN, 5);
    wait_in_flight(&gateway, 6);
    let left = Instant::now();
    drop(leader);
    let answers: Vec<Answer> = followers.iter_mut().map(Client::answer).collect();
    assert!(left.elapsed() < Duration::from_secs(4));
    assert_eq!(answers.iter().filter(|answer| !is_hit(answer)).count(), 1);
    assert_eq!(first.requests().len(), 2);
}

#[test]
fn followers_of_a_failed_call_go_on_at_once() {
    let gate = Gate::default();
    let failed = Reply::empty().wait(&gate).then(Reply::json(400, "{}"));
    let first = Upstream::sequence([failed, reply()]);
    let gateway = caching(&first);
    let mut leader = sent(&gateway, PLAIN, 1).pop().unwrap();
    first.wait_requests(1);
    let mut followers = sent(&gateway, PLAIN, 3);
    wait_in_flight(&gateway, 4);
    let failed = Instant::now();
    gate.open();
    assert_eq!(leader.answer().status(), 400);
    for follower in &mut followers {
        assert_eq!(follower.answer().status(), 200);
    }
    assert!(failed.elapsed() < Duration::from_secs(4));
    assert!(first.requests().len() > 1);
}

#[test]
fn a_leader_without_credit_leaves_its_place_to_one_that_has() {
    let gate = Gate::default();
    let first = Upstream::always(Reply::empty().wait(&gate).then(reply()));
    let gateway = caching(&first);
    let poor = gateway.key_with(r#"{"limit":"0"}"#);
    let refused = gateway.asked(&poor, "chat", json!({}));
    assert_eq!(refused.status(), 402, "{}", refused.text());
    gate.open();
    let answer = gateway.chat(PLAIN);
    assert!(!is_hit(&answer));
    // What the project has paid for, its other keys get.
    assert!(is_hit(&gateway.asked(&poor, "chat", json!({}))));
}

#[test]
fn a_reply_that_is_read_to_its_end_is_stored_though_its_client_has_left() {
    let gate = Gate::default();
    let first = Upstream::always(Reply::empty().wait(&gate).then(reply()));
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\nbills_after_disconnect = true\n",
        first.url()
    );
    let gateway = Gateway::start(&toml, CENT);
    gateway.cache_for(3600);
    let leader = sent(&gateway, PLAIN, 1);
    first.wait_requests(1);
    drop(leader);
    let is_read_on = || !first.is_closed(0);
    stays("it is read on", Duration::from_millis(200), is_read_on);
    gate.open();
    used(&gateway, "0.01");
    until("a hit", || is_hit(&gateway.chat(PLAIN)));
    assert_eq!(first.requests().len(), 1);
}
