//! Destinations that fail: what waits is sent until it has arrived, as the same object, and calls notice nothing.

use std::time::Duration;

use super::*;
use crate::support::script::Cut;
use crate::support::upstream::ClosedPort;

/// A status, a reply that is cut, a connection that is cut, silence.
#[test]
fn a_batch_is_sent_as_the_same_object_until_it_has_arrived() {
    let provider = provider();
    let refused = "<Error><Code>SlowDown</Code></Error>";
    let storage = Upstream::sequence([
        Reply::whole(503, &[], refused),
        Reply::whole(200, &[], "x").cut(10, Cut::Close),
        Reply::empty().and_reset(),
        Reply::hang(),
        is_ok(),
    ]);
    let section = bucket(&storage.url(), "timeout_s = 1");
    let gateway = gateway(&provider, &section);
    let asked = call(gateway.address(), &gateway.key, CHAT, 1);
    wait_lines(&gateway, "exported", 1);
    let puts = storage.requests();
    assert_eq!(puts.len(), 5);
    for put in &puts {
        assert_eq!((&put.path, &put.body), (&puts[0].path, &puts[0].body));
    }
    assert_eq!(ids(&objects(&puts)), asked);
    until("nothing waits", || {
        segments(gateway.folder.path()).is_empty()
    });
    let metrics = gateway.metrics();
    assert_eq!(metric(&metrics, "weirgate_log_export_failures_total"), 4);
    assert_eq!(metric(&metrics, "weirgate_log_export_spool_bytes"), 0);
    assert_eq!(metric(&metrics, "weirgate_log_export_oldest_seconds"), 0);
}

/// Neither the calls nor the end of the process wait for it.
#[test]
fn a_dead_or_frozen_destination_costs_calls_nothing() {
    let (provider, dead) = (provider(), ClosedPort::take());
    let frozen = Upstream::always(Reply::hang());
    for url in [dead.url(), frozen.url()] {
        let section = bucket(&url, "timeout_s = 600");
        let gateway = gateway(&provider, &section);
        let asked = call(gateway.address(), &gateway.key, CHAT, 5);
        until("all lines on disk", || spooled(gateway.folder.path()) == 5);
        let name = "weirgate_log_export_spool_bytes";
        until("a size", || metric(&gateway.metrics(), name) > 0);
        let name = "weirgate_log_export_oldest_seconds";
        until("an age", || metric(&gateway.metrics(), name) > 1);
        assert_eq!(
            call(gateway.address(), &gateway.key, CHAT, 5).len(),
            asked.len()
        );
        let Gateway {
            folder, running, ..
        } = gateway;
        let stopping = std::time::Instant::now();
        drop(running);
        assert!(stopping.elapsed() < Duration::from_secs(10));
        assert_eq!(spooled(folder.path()), 10, "what waits stays on disk");
    }
}

/// The bound of the spool holds, and what was there before is sent.
#[test]
fn a_full_spool_drops_new_lines_and_counts_them() {
    let (provider, gate) = (provider(), crate::support::script::Gate::default());
    let storage = Upstream::always(Reply::empty().wait(&gate).then(is_ok()));
    let more = "spool_bytes = 131072\nbatch_bytes = 65536\ntimeout_s = 600";
    let gateway = gateway(&provider, &bucket(&storage.url(), more));
    let mut asked = Vec::new();
    let name = "weirgate_log_export_lines_total{outcome=\"spool_full\"}";
    while metric(&gateway.metrics(), name) == 0 {
        asked.extend(call(gateway.address(), &gateway.key, CHAT, 20));
        assert!(asked.len() < 2000, "the spool has no bound");
    }
    let sizes = segments(gateway.folder.path()).into_iter();
    let sizes = sizes.map(|path| std::fs::metadata(path).map_or(0, |it| it.len()));
    assert!(sizes.sum::<u64>() <= 131_072);
    gate.open();
    until("nothing waits", || {
        segments(gateway.folder.path()).is_empty()
    });
    let count = |outcome: &str| {
        let name = format!("weirgate_log_export_lines_total{{outcome=\"{outcome}\"}}");
        metric(&gateway.metrics(), &name)
    };
    assert_eq!(count("exported") + count("spool_full"), asked.len() as u64);
    asked.sort_unstable();
    let arrived = ids(&objects(&storage.requests()));
    assert_eq!(arrived.len() as u64, count("exported"));
    assert!(arrived.iter().all(|id| asked.binary_search(id).is_ok()));
}

/// A batch that the destination does not take does not stand in the way of others.
#[test]
fn a_refused_batch_lets_the_others_pass() {
    let provider = provider();
    let first = std::sync::Mutex::new(None);
    let storage = Upstream::answering(move |put| {
        let mut first = first.lock().unwrap();
        let bad = first.get_or_insert_with(|| put.path.clone());
        match *bad == put.path {
            true => Reply::whole(400, &[], "<Error><Code>InvalidRequest</Code></Error>"),
            false => is_ok(),
        }
    });
    let gateway = gateway(&provider, &bucket(&storage.url(), ""));
    call(gateway.address(), &gateway.key, CHAT, 1);
    storage.wait_requests(1);
    call(gateway.address(), &gateway.key, CHAT, 2);
    wait_lines(&gateway, "exported", 2);
    assert_eq!(spooled(gateway.folder.path()), 1, "the other one waits");
}
