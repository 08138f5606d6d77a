//! Requests per minute of an organization: admission and headers. Source: docs/model-gateway.md 8.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use filters::accounts::{FIRST_RUN_LABEL, FIRST_RUN_ORGANIZATION, Plan};
use filters::audit::PROGRAM;
use filters::limits::QuotaGroup;
use filters::money::Usd;
use weirgate::store::{NewKey, Store};

use crate::models::exchange::streams::drain;
use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply, stream};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_key, create_organization};
use crate::support::client::{Answer, Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::upstream::Upstream;

const STATE: [&str; 5] = [
    "ratelimit-policy",
    "ratelimit",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
];
const LEGACY: [&str; 3] = [
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

fn limited(first: &Upstream, per_minute: u32) -> Gateway {
    let more = format!("[limits]\nrequests_per_minute = {{ chat = {per_minute} }}");
    Gateway::with(&first.url(), &first.url(), &more)
}

fn number(answer: &Answer, name: &str) -> u64 {
    answer.header(name).expect(name).parse().unwrap()
}

fn has(answer: &Answer, names: &[&str]) -> bool {
    names.iter().any(|name| answer.header(name).is_some())
}

/// Limit, remaining and reset as all headers say them.
fn state(answer: &Answer) -> (u64, u64, u64) {
    let said = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    let [limit, remaining, reset] = said.map(|name| number(answer, name));
    let policy = format!("\"requests\";q={limit};w=60");
    assert_eq!(answer.header("ratelimit-policy"), Some(&*policy));
    let state = format!("\"requests\";r={remaining};t={reset}");
    assert_eq!(answer.header("ratelimit"), Some(&*state));
    (limit, remaining, reset)
}

/// Contract: model-gateway 8 2
#[test]
fn every_response_says_what_is_left() {
    let first = Upstream::sequence([reply(), stream(), reply()]);
    let gateway = limited(&first, 4);
    let answers = [PLAIN, STREAM, "{", PLAIN].map(|body| gateway.chat(body));
    assert_eq!(answers.each_ref().map(Answer::status), [200, 200, 400, 200]);
    for (answer, left) in answers.iter().zip([3, 2, 1, 0]) {
        let (limit, remaining, reset) = state(answer);
        assert_eq!((limit, remaining), (4, left));
        assert!((1..=60).contains(&reset), "{reset}");
        assert!(!has(answer, &LEGACY) && !has(answer, &["retry-after"]));
    }
}

#[test]
fn a_response_without_a_provider_says_it_too() {
    let first = Upstream::always(Reply::json(500, "{}"));
    let gateway = limited(&first, 4);
    let answer = gateway.chat(PLAIN);
    assert_eq!((answer.status(), state(&answer).1), (502, 3));
}

#[test]
fn the_head_of_a_keepalive_says_it_too() {
    let gate = Gate::default();
    let event = chunk(
        serde_json::json!({"role": "assistant", "content": "a"}),
        Some("stop"),
    );
    let late = Reply::stream()
        .wait(&gate)
        .event(&event)
        .event("[DONE]")
        .end();
    let first = Upstream::always(late);
    let more = "[limits]\nrequests_per_minute = { chat = 4 }\n[routing]\nkeepalive_s = 1";
    let gateway = Gateway::with(&first.url(), &first.url(), more);
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(STREAM));
    let head = client.head();
    assert_eq!(head.header("ratelimit-remaining"), Some("3"));
    gate.open();
    assert!(crate::support::sse::parse(drain(&mut client)).is_done());
}

/// Contract: model-gateway 7 429
/// Contract: model-gateway 8 3
#[test]
fn a_refusal_says_when_and_reaches_no_provider() {
    let first = Upstream::always(reply());
    let gateway = limited(&first, 1);
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    let now_s = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    let before = now_s();
    let refused = gateway.chat(PLAIN);
    let error = &refused.json()["error"];
    assert_eq!(refused.status(), 429);
    assert_eq!(
        (&error["type"], &error["code"]),
        (&"rate_limit_error".into(), &"rate_limit_exceeded".into())
    );
    crate::support::client::check_limit_headers(&refused);
    let (limit, remaining, reset) = state(&refused);
    assert_eq!((limit, remaining), (1, 0));
    assert_eq!(number(&refused, "retry-after"), reset);
    let ms = number(&refused, "retry-after-ms");
    assert!(
        ms <= reset * 1000 && ms > (reset - 1) * 1000,
        "{ms} of {reset} s"
    );
    assert_eq!(number(&refused, "x-ratelimit-limit"), 1);
    assert_eq!(number(&refused, "x-ratelimit-remaining"), 0);
    let legacy = number(&refused, "x-ratelimit-reset");
    assert!(
        (before + reset..=now_s() + reset).contains(&legacy),
        "a moment, no span"
    );
    assert_eq!(first.requests().len(), 1);
}

#[test]
fn only_admitted_requests_count() {
    let first = Upstream::always(reply());
    let gateway = limited(&first, 2);
    let strange = Ask::post("/v1/chat/completions", PLAIN).key("wg_none");
    let unknown = ask(gateway.address(), &strange);
    assert_eq!(unknown.status(), 401);
    assert!(!has(&unknown, &STATE), "no quota was checked");
    let statuses: Vec<u16> = (0..6).map(|_| gateway.chat(PLAIN).status()).collect();
    assert_eq!(statuses, [200, 200, 429, 429, 429, 429]);
    let metrics = gateway.metrics();
    for line in [
        "weirgate_limiter_decisions_total{decision=\"admitted\",operation=\"chat\"} 2",
        "weirgate_limiter_decisions_total{decision=\"refused\",operation=\"chat\"} 4",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

/// Source: docs/hostile-input.md 48.
/// Contract: model-gateway 5 5
/// Contract: model-gateway 8 1
#[test]
fn all_keys_of_an_organization_share_its_quota() {
    let first = Upstream::always(reply());
    let gateway = limited(&first, 2);
    let other = gateway.change(async |store| create_key(store).await);
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    let with_other = Ask::post("/v1/chat/completions", PLAIN).key(&other);
    assert_eq!(ask(gateway.address(), &with_other).status(), 200);
    assert_eq!(gateway.chat(PLAIN).status(), 429);
    let stranger = gateway.change(async |store| create_organization("other", store).await);
    let of_another = Ask::post("/v1/chat/completions", PLAIN).key(&stranger);
    assert_eq!(ask(gateway.address(), &of_another).status(), 200);
}

/// Contract: model-gateway 8 2
#[test]
fn endpoints_without_a_quota_say_nothing_of_one() {
    let first = Upstream::always(reply());
    let gateway = limited(&first, 1);
    for path in ["/", "/v1/models"] {
        let answer = ask(gateway.address(), &Ask::get(path).key(&gateway.key));
        assert_eq!(answer.status(), 200);
        assert!(!has(&answer, &STATE), "{path}");
    }
    let free = Gateway::between(&first.url(), &first.url());
    assert!(!has(&free.chat(PLAIN), &STATE));
}

/// Source: model-gateway 8.1
/// Contract: model-gateway 8 1
#[test]
fn every_group_limits_an_endpoint_and_only_fronts_of_a_conversation_share_one() {
    let first = Upstream::always(reply());
    let limits = "[limits]\nrequests_per_minute = {}";
    let gateway = Gateway::with(&first.url(), &first.url(), limits);
    let document = ask(gateway.address(), &Ask::get("/v1/openapi.json")).json();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|path| path.as_object().unwrap());
    let mut groups: Vec<_> = operations
        .filter_map(|(_, operation)| operation["x-quota"].as_str())
        .collect();
    groups.sort_unstable();
    let fronts = [
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/responses",
        "/v1/completions",
        "/v1beta/models/{model}:generateContent",
        "/v1beta/models/{model}:streamGenerateContent",
        "/v1/responses/compact",
    ];
    for front in fronts {
        let path = &paths[front];
        assert_eq!(path["post"]["x-quota"], "chat", "{front}");
    }
    let chats = groups.iter().filter(|group| **group == "chat");
    assert_eq!(chats.count(), fronts.len());
    groups.dedup();
    let mut known = QuotaGroup::ALL.map(QuotaGroup::as_str);
    known.sort_unstable();
    assert_eq!(groups, known);
}

/// Source: model-gateway 8.2
/// Contract: model-gateway 8 5
#[test]
fn without_a_setting_an_organization_has_limits_and_the_key_of_the_first_run_has_none() {
    let first = Upstream::always(reply());
    let unset = "[limits]\nrequests_per_minute = {}";
    let gateway = Gateway::with(&first.url(), &first.url(), unset);
    assert_eq!(state(&gateway.chat(PLAIN)).0, 600);
    let tried = gateway.change(async |store| create_first_key(&store.clone()).await);
    let request = Ask::post("/v1/chat/completions", PLAIN).key(&tried);
    let answer = ask(gateway.address(), &request);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert!(!has(&answer, &STATE));
    let set = "[limits]\nrequests_per_minute = { chat = 1 }";
    let limited = Gateway::with(&first.url(), &first.url(), set);
    let tried = limited.change(async |store| create_first_key(&store.clone()).await);
    let request = Ask::post("/v1/chat/completions", PLAIN).key(&tried);
    let statuses = [0, 1].map(|_| ask(limited.address(), &request).status());
    assert_eq!(statuses, [200, 429], "what is set holds for all");
}

/// A key as the first start makes it.
async fn create_first_key(store: &Store) -> String {
    let name = FIRST_RUN_ORGANIZATION;
    store
        .by(&PROGRAM)
        .create_organization(name, Plan::None, 0)
        .await
        .unwrap();
    let credit = Usd::parse("1").unwrap();
    store
        .by(&PROGRAM)
        .add_credit(name, credit, 0)
        .await
        .unwrap();
    let new = NewKey {
        organization: name,
        label: FIRST_RUN_LABEL,
        ..NewKey::default()
    };
    let (key, _) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
    key.reveal().to_owned()
}

/// Source: docs/hostile-input.md 43.
#[test]
fn of_ten_times_the_limit_from_many_clients_exactly_the_limit_is_admitted() {
    const LIMIT: u32 = 64;
    let first = Upstream::always(reply());
    let gateway = limited(&first, LIMIT);
    let (served, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..LIMIT * 10 / 16 {
                    match gateway.chat(PLAIN).status() {
                        200 => served.fetch_add(1, Ordering::Relaxed),
                        429 => refused.fetch_add(1, Ordering::Relaxed),
                        other => panic!("{other}"),
                    };
                }
            });
        }
    });
    assert_eq!((served.into_inner(), refused.into_inner()), (64, 576));
    assert_eq!(first.requests().len(), 64);
}

#[test]
fn a_refusal_does_not_wait_for_the_body() {
    let first = Upstream::always(reply());
    let gateway = limited(&first, 1);
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    let mut client = Client::connect(gateway.address());
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
        gateway.key
    );
    client.send_bytes(head);
    let started = std::time::Instant::now();
    assert_eq!(client.head().status, 429);
    assert!(started.elapsed() < Duration::from_secs(1));
}
