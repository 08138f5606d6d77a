//! The cost of a decision: one flag, a hundred, and decisions while datafiles are swapped.
//!
//! `make bench`. One process, no sockets. The best of several rounds counts, because machines are noisy.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench"
)]

use std::borrow::Cow;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use filters::auth::claims::ClaimRules;
use filters::decisions::borrowed_object::BorrowedObject;
use filters::decisions::credentials::SdkRules;
use filters::decisions::decide::decide;
use filters::decisions::inputs::{Inputs, Predicted};
use filters::decisions::protocol::{Document, Protocol};
use filters::decisions::response_body::write_decision;
use filters::decisions::{Options, Project};
use filters::form;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROUNDS: usize = 7;
const FLAGS: usize = 100;

fn main() {
    let project = project(FLAGS, 0);
    let none = HashMap::new();
    if std::env::args().any(|one| one == "calls") {
        let call = call();
        return (0..2000).for_each(|_| {
            black_box(answered(&project, &call, &none));
        });
    }
    let attributes = json!({"country": "DE", "version": "2.1.0", "age": 40});
    let attributes = &attributes.as_object().unwrap().clone().into();
    let one = best(200_000, |at| {
        let user = format!("user-{at}");
        black_box(decide(
            &project,
            "flag-7",
            &inputs(&user, attributes, &none),
        ));
    });
    println!("one flag, a rollout and three conditions: {one:?} (target: under 2 us)");
    let all = best(5_000, |at| {
        let user = format!("user-{at}");
        for key in project.flag_keys() {
            black_box(decide(&project, key, &inputs(&user, attributes, &none)));
        }
    });
    println!("{FLAGS} flags: {all:?} (target: under 100 us)");
    let call = call();
    let calls = best(200_000, |_| {
        black_box(answered(&project, &call, &none));
    });
    println!("decide over values, from a body to an answer: {calls:?}");
    swaps(attributes);
}

/// One request of `POST /v1/decide`.
struct Call {
    headers: HeaderMap,
    rules: SdkRules,
    query: String,
    body: String,
}

fn call() -> Call {
    let key = HeaderName::from_static("x-platform-sdk-key");
    let old = HeaderName::from_static("x-optimizely-sdk-key");
    let value = |value| HeaderValue::from_static(value);
    Call {
        headers: HeaderMap::from_iter([
            (HOST, value("127.0.0.1:8080")),
            (CONTENT_TYPE, value("application/json")),
            (CONTENT_LENGTH, value("75")),
            (key.clone(), value("an-sdk-key-of-22-bytes")),
        ]),
        rules: SdkRules {
            headers: vec![key, old],
            tokens: None,
            trusts_foreign: false,
            claim_rules: ClaimRules::default(),
        },
        query: "keys=flag-7".to_owned(),
        body: json!({"userId": "user-1", "userAttributes": {"version": "2.1", "country": "DE", "age": 40}})
            .to_string(),
    }
}

/// All work on a request but its sockets: the SDK key, the query, the body, the decision, its JSON.
#[inline(never)]
fn answered(
    project: &Project,
    call: &Call,
    none: &HashMap<Box<str>, Predicted>,
) -> (Box<str>, Vec<u8>) {
    let protocol: &dyn Protocol = black_box(&Document);
    let sdk_key = protocol
        .credentials(&call.headers, &call.rules, None, 0)
        .and_then(|granted| granted.into_key(&call.rules))
        .unwrap();
    let asked = protocol.read(call.body.as_bytes()).unwrap();
    let asked = asked.into_decide().unwrap();
    let keys: Vec<Cow<'_, str>> = form::pairs(&call.query)
        .filter(|pair| pair.decoded_name() == "keys")
        .map(form::Pair::decoded_value)
        .collect();
    let user = &asked.user;
    let inputs = inputs(&user.id, &user.attributes, none);
    let decided = decide(project, &keys[0], &inputs);
    let mut out = Vec::with_capacity(1024);
    write_decision(
        &decided,
        &user.id,
        &user.attributes,
        protocol.result_shape(),
        &mut out,
    );
    (sdk_key, out)
}

/// The slowest of a thousand decisions, alone and while a datafile of 10 MB is swapped in all the time.
fn swaps(attributes: &BorrowedObject<'_>) {
    let text = datafile(20_000, 0);
    println!("swapping a datafile of {} MB", text.len() / 1_000_000);
    let current = Arc::new(ArcSwap::from_pointee(parse(&text)));
    let quiet = slowest(&current, attributes);
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (current, stop) = (Arc::clone(&current), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut swaps = 0;
            while !stop.load(Ordering::Relaxed) {
                let before = current.swap(Arc::new(parse(&text)));
                while Arc::strong_count(&before) > 1 {
                    std::thread::yield_now();
                }
                swaps += 1;
            }
            swaps
        })
    };
    let busy = slowest(&current, attributes);
    stop.store(true, Ordering::Relaxed);
    let swaps = swapper.join().unwrap();
    println!(
        "p99.9 of a decision: {quiet:?} alone, {busy:?} during {swaps} swaps: {:.2} times (target: 2)",
        busy.as_secs_f64() / quiet.as_secs_f64()
    );
}

fn slowest(current: &ArcSwap<Project>, attributes: &BorrowedObject<'_>) -> Duration {
    let none = HashMap::new();
    let mut took: Vec<Duration> = (0..400_000)
        .map(|at| {
            let user = format!("user-{at}");
            let inputs = inputs(&user, attributes, &none);
            let started = Instant::now();
            let project = current.load();
            black_box(decide(&project, "flag-7", &inputs));
            started.elapsed()
        })
        .collect();
    took.sort_unstable();
    took[took.len() * 999 / 1000]
}

fn inputs<'a>(
    user_id: &'a str,
    attributes: &'a BorrowedObject<'a>,
    predictions: &'a HashMap<Box<str>, Predicted>,
) -> Inputs<'a> {
    Inputs {
        user_id,
        attributes,
        segments: &[],
        forced: &[],
        overrides: &[],
        profile: None,
        predictions,
        options: Options::default(),
    }
}

fn best(count: u32, mut work: impl FnMut(u32)) -> Duration {
    let round = |_| {
        let started = Instant::now();
        (0..count).for_each(&mut work);
        started.elapsed() / count
    };
    (0..ROUNDS).map(round).min().unwrap()
}

fn project(flags: usize, revision: usize) -> Project {
    parse(&datafile(flags, revision))
}

fn parse(text: &[u8]) -> Project {
    Project::parse(text, Document.rules()).unwrap()
}

/// Flags with a rollout each. The first rule has an audience of three conditions.
fn datafile(flags: usize, revision: usize) -> Vec<u8> {
    let condition = |name: &str, word: &str, value: Value| json!({"type": "custom_attribute", "name": name, "match": word, "value": value});
    let all = [
        condition("country", "exact", "DE".into()),
        condition("version", "semver_ge", "2.0".into()),
        condition("age", "gt", 18.into()),
    ];
    let rule = |id: String, audiences: Value| {
        json!({"id": id, "key": format!("rule-{id}"), "layerId": id, "status": "Running", "audienceIds": audiences,
               "forcedVariations": {}, "trafficAllocation": [{"entityId": format!("v{id}"), "endOfRange": 10_000}],
               "variations": [{"id": format!("v{id}"), "key": "on", "featureEnabled": true, "variables": [{"id": "1", "value": "text"}]}]})
    };
    let numbers = 0..flags;
    json!({
        "version": "4", "revision": revision.to_string(),
        "typedAudiences": [{"id": "a", "name": "a", "conditions": ["and", all[0], all[1], all[2]]}],
        "featureFlags": numbers.clone().map(|n| json!({"id": n.to_string(), "key": format!("flag-{n}"), "rolloutId": format!("r{n}"),
            "experimentIds": [], "variables": [{"id": "1", "key": "text", "type": "string", "defaultValue": "none"}]})).collect::<Vec<_>>(),
        "rollouts": numbers.map(|n| json!({"id": format!("r{n}"), "experiments": [rule(format!("{n}a"), json!(["a"])), rule(format!("{n}b"), json!([]))]})).collect::<Vec<_>>(),
    })
    .to_string()
    .into_bytes()
}
