//! The retry budget of second and later fallbacks.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client};
use crate::support::script::{Gate, Reply};
use crate::support::until;
use crate::support::upstream::Upstream;

/// Three providers of one model, cheapest first.
fn three(urls: [String; 3]) -> Gateway {
    let (mut toml, mut models) = (String::new(), "[[models]]\nid = \"chat\"\n".to_owned());
    for (n, url) in urls.iter().enumerate() {
        toml += &format!(
            "[providers.p{n}]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\n"
        );
        models += &format!(
            "[[models.providers]]\nprovider = \"p{n}\"\nname = \"m\"\ninput_price = \"{0}\"\noutput_price = \"{0}\"\n",
            n + 1
        );
    }
    Gateway::start(&toml, &models)
}

/// Sends this many calls at once, which the provider `held` answers when the gate opens. Returns the answers.
fn at_once(
    gateway: &Gateway,
    count: usize,
    gate: &Gate,
    is_settled: impl Fn(usize) -> bool,
) -> Vec<Answer> {
    let ended = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    let answer = gateway.chat(PLAIN);
                    ended.fetch_add(1, Ordering::Relaxed);
                    answer
                })
            })
            .collect();
        until("they settle", || is_settled(ended.load(Ordering::Relaxed)));
        gate.open();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    })
}

#[test]
fn second_fallbacks_have_a_budget_and_a_refused_one_says_so() {
    let broken = [(); 2].map(|()| Upstream::always(Reply::json(500, "{}")));
    let gate = Gate::default();
    let held = gate.clone();
    let last = Upstream::answering(move |_| Reply::empty().wait(&held).then(reply()));
    let gateway = three([broken[0].url(), broken[1].url(), last.url()]);
    // Of twelve calls three may be at their second fallback at once. The others end while those wait.
    let answers = at_once(&gateway, 12, &gate, |ended| {
        ended == 9 && last.requests().len() == 3
    });
    let (served, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status() == 200);
    assert_eq!((served.len(), refused.len()), (3, 9));
    for answer in refused {
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status(), &error["code"]),
            (502, &"all_providers_failed".into())
        );
        let routing = answer.json()["metadata"]["routing"].clone();
        let types: Vec<_> = routing
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["error_type"].clone())
            .collect();
        assert_eq!(
            types,
            ["upstream_error", "upstream_error", "retry_budget_exceeded"]
        );
        assert_eq!(routing[2]["provider"], "p2");
    }
    assert!(
        gateway
            .metrics()
            .contains("weirgate_fallbacks_refused_total 9")
    );
}

#[test]
fn first_fallbacks_need_no_budget() {
    let broken = Upstream::always(Reply::json(500, "{}"));
    let gate = Gate::default();
    let held = gate.clone();
    let second = Upstream::answering(move |_| Reply::empty().wait(&held).then(reply()));
    let gateway = three([broken.url(), second.url(), broken.url()]);
    let answers = at_once(&gateway, 12, &gate, |_| second.requests().len() == 12);
    assert!(answers.iter().all(|answer| answer.status() == 200));
}

#[test]
fn a_call_leaves_the_budget_however_it_ends() {
    for (last, status) in [
        (reply(), Some(200)),
        (Reply::json(500, "{}"), Some(502)),
        (Reply::hang(), None),
    ] {
        let broken = [(); 2].map(|()| Upstream::always(Reply::json(500, "{}")));
        let gate = Gate::default();
        let last = Upstream::always(Reply::empty().wait(&gate).then(last));
        let gateway = three([broken[0].url(), broken[1].url(), last.url()]);
        let budget = || format!("{:?}", gateway.running.app.models.retry_budget);
        let wait_for = |expected: &str| {
            let what = format!("{status:?}: {expected}");
            until(&what, || budget().contains(expected));
        };
        let mut client = Client::connect(gateway.address());
        client.send(&gateway.chat_ask(PLAIN));
        last.request(0);
        wait_for("running: 1, later: 1");
        gate.open();
        if let Some(status) = status {
            assert_eq!(client.answer().status(), status);
        }
        drop(client);
        wait_for("running: 0, later: 0");
    }
}
