//! Batches of more inputs than a provider takes at once: split, joined, paid part by part.

use std::time::Duration;

use serde_json::{Value, json};

use crate::ledger::used;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client};
use crate::support::script::Reply;
use crate::support::stays;
use crate::support::upstream::{Received, Upstream};

/// The first provider takes two inputs at once, the second all of them.
const MODELS: &str = r#"
[[models]]
id = "vectors"
type = "embedding"
[[models.providers]]
provider = "first"
name = "vectors-at-first"
input_price = "2"
max_inputs = 2
[[models.providers]]
provider = "second"
name = "vectors-at-second"
input_price = "4"
"#;

fn gateway(first: &Upstream, second: &Upstream, of_first: &str) -> Gateway {
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\n{of_first}\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        first.url(),
        second.url()
    );
    let keys = [("ONE", "sk-one-0123456789"), ("TWO", "sk-two-0123456789")];
    Gateway::start_with_credit(&toml, MODELS, &keys, "1")
}

/// A vector of each input, with its number in it, and two tokens for each.
fn embed(request: &Received) -> Reply {
    let body = request.json();
    let inputs = body["input"].as_array().unwrap();
    let item = |(index, input): (usize, &Value)| {
        let number: f64 = input.as_str().unwrap().parse().unwrap();
        json!({"object": "embedding", "index": index, "embedding": [number, 0.5]})
    };
    let data: Vec<Value> = inputs.iter().enumerate().map(item).collect();
    let tokens = 2 * inputs.len();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    let reply = json!({"object": "list", "data": data, "model": "m", "usage": usage});
    Reply::json(200, reply.to_string())
}

fn inputs(count: usize) -> Vec<String> {
    (0..count).map(|at| at.to_string()).collect()
}

fn body(count: usize) -> String {
    json!({"model": "vectors", "input": inputs(count)}).to_string()
}

/// The list of this many vectors, from one provider.
fn list(count: usize, model: &str) -> Value {
    let item =
        |at: usize| json!({"object": "embedding", "index": at, "embedding": [at as f64, 0.5]});
    let data: Vec<Value> = (0..count).map(item).collect();
    json!({"object": "list", "data": data, "model": model,
           "usage": {"prompt_tokens": 2 * count, "total_tokens": 2 * count}})
}

fn asked(upstream: &Upstream) -> Vec<Value> {
    let requests = upstream.requests();
    requests
        .iter()
        .map(|it| it.json()["input"].clone())
        .collect()
}

fn log_line(gateway: &Gateway, answer: &Answer) -> Value {
    gateway.log_line(answer.header("x-request-id").unwrap())
}

#[test]
fn a_batch_is_split_and_the_answer_is_one_list_at_the_price_of_all_parts() {
    let first = Upstream::answering(embed);
    let gateway = gateway(&first, &first, "keys = []");
    let answer = gateway.embed(body(5));
    assert_eq!(
        (answer.status(), answer.json()),
        (200, list(5, "first/vectors"))
    );
    let parts = json!([["0", "1"], ["2", "3"], ["4"]]);
    assert_eq!(Value::from(asked(&first)), parts);
    used(&gateway, "0.00002");
    let line = log_line(&gateway, &answer);
    assert_eq!(
        (&line["parts"], &line["prompt_tokens"]),
        (&3.into(), &10.into()),
        "{line}"
    );
    assert_eq!(line["attempts"].as_array().unwrap().len(), 1);
}

#[test]
fn a_split_batch_is_cached_as_one_answer_that_costs_nothing_again() {
    let first = Upstream::answering(embed);
    let gateway = gateway(&first, &first, "keys = []");
    gateway.cache_for(3600);
    let (fresh, replay) = (gateway.embed(body(5)), gateway.embed(body(5)));
    assert_eq!(fresh.header("x-weirgate-cache"), None);
    assert_eq!(replay.header("x-weirgate-cache"), Some("HIT"));
    assert_eq!(replay.json(), fresh.json());
    assert_eq!(asked(&first).len(), 3);
    log_line(&gateway, &replay);
    used(&gateway, "0.00002");
}

#[test]
fn base64_and_estimates_are_made_of_every_part() {
    let first = Upstream::answering(|request| {
        let inputs = request.json()["input"].as_array().unwrap().len();
        let data = vec![json!({"embedding": [1, -0.5]}); inputs];
        Reply::json(200, json!({"data": data}).to_string())
    });
    let gateway = gateway(&first, &first, "keys = []");
    let input = ["four", "four", "four", "four", "four"];
    let body = json!({"model": "vectors", "input": input, "encoding_format": "base64"});
    let answer = gateway.embed(body.to_string()).json();
    let item = |at: usize| json!({"object": "embedding", "index": at, "embedding": "AACAPwAAAL8="});
    assert_eq!(answer["data"], (0..5).map(item).collect::<Value>());
    let usage = json!({"prompt_tokens": 5, "total_tokens": 5, "info": "estimated"});
    assert_eq!(answer["usage"], usage);
}

#[test]
fn a_failed_part_fails_the_attempt_and_the_next_provider_begins_again() {
    let first = Upstream::answering(|request| match request.json()["input"][0] == "2" {
        true => Reply::json(500, "{}"),
        false => embed(request),
    });
    let second = Upstream::answering(embed);
    let gateway = gateway(&first, &second, "keys = []");
    let answer = gateway.embed(body(5));
    assert_eq!(
        (answer.status(), answer.json()),
        (200, list(5, "second/vectors"))
    );
    assert_eq!(Value::from(asked(&first)), json!([["0", "1"], ["2", "3"]]));
    assert_eq!(Value::from(asked(&second)), json!([inputs(5)]));
    // Four tokens at the first provider, which has billed them, and ten at the second.
    used(&gateway, "0.000048");
    let line = log_line(&gateway, &answer);
    assert_eq!(line["abandoned_cost"], "0.000008", "{line}");
    assert_eq!(line["attempts"].as_array().unwrap().len(), 2);
}

#[test]
fn parts_of_a_call_that_nobody_answers_cost_nothing() {
    for failure in [
        Reply::json(500, "{}"),
        Reply::json(400, "{}"),
        Reply::json(200, "{}"),
    ] {
        let first = Upstream::answering(move |request| match request.json()["input"][0] == "2" {
            true => failure.clone(),
            false => embed(request),
        });
        let second = Upstream::always(Reply::json(500, "{}"));
        let gateway = gateway(&first, &second, "keys = []");
        let answer = gateway.embed(body(5));
        assert!(answer.status() >= 400, "{}", answer.text());
        assert_eq!(gateway.embed(body(1)).status(), 200);
        // The one that is answered comes alone.
        used(&gateway, "0.000004");
    }
}

#[test]
fn a_part_is_repeated_with_another_key_and_the_parts_before_it_stay() {
    let first = Upstream::answering(|request| {
        let is_one = request.header("authorization") == Some("Bearer sk-one-0123456789");
        match is_one && request.json()["input"][0] == "2" {
            true => Reply::json(429, "{}"),
            false => embed(request),
        }
    });
    let second = Upstream::answering(embed);
    let keys = "keys = [{ env = \"ONE\" }, { env = \"TWO\" }]";
    let gateway = gateway(&first, &second, keys);
    // Keys take turns, so that one of two calls begins with the first.
    for _ in 0..2 {
        let answer = gateway.embed(body(5));
        assert_eq!(
            (answer.status(), answer.json()),
            (200, list(5, "first/vectors"))
        );
    }
    let parts: Vec<Value> = asked(&first);
    let again = parts.iter().filter(|part| **part == json!(["2", "3"]));
    assert_eq!((parts.len(), again.count()), (7, 3), "{parts:?}");
    assert!(second.requests().is_empty());
    used(&gateway, "0.00004");
}

#[test]
fn a_client_that_leaves_pays_the_parts_that_have_ended_and_the_prompt_of_the_one_that_runs() {
    let first = Upstream::answering(|request| match request.json()["input"][0] == "2" {
        true => Reply::hang(),
        false => embed(request),
    });
    let gateway = gateway(&first, &first, "keys = []");
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.embed_ask(body(5)));
    first.request(1);
    drop(client);
    // Four tokens are reported, and two bytes are estimated as one token.
    used(&gateway, "0.00001");
    let is_last = || first.requests().len() == 2;
    stays("no part follows", Duration::from_millis(200), is_last);
}

#[test]
fn a_provider_that_hangs_in_a_part_is_left_for_the_next() {
    let first = Upstream::answering(|request| match request.json()["input"][0] == "2" {
        true => Reply::hang(),
        false => embed(request),
    });
    let second = Upstream::answering(embed);
    let more = "keys = []\n[routing]\ntotal_timeout_s = 1";
    let gateway = gateway(&first, &second, more);
    let answer = gateway.embed(body(5));
    assert_eq!(
        (answer.status(), answer.json()),
        (200, list(5, "second/vectors"))
    );
    used(&gateway, "0.000048");
}

#[test]
fn two_thousand_inputs_are_joined_in_their_order() {
    let first = Upstream::answering(embed);
    let gateway = gateway(&first, &first, "keys = []");
    let answer = gateway.embed(body(2048));
    assert_eq!(answer.json(), list(2048, "first/vectors"));
    assert_eq!(first.requests().len(), 1024);
    used(&gateway, "0.008192");
}
