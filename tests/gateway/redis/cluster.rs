//! Windows in a Redis Cluster, which refuses scripts whose keys are in two slots.

use std::time::Duration;

use filters::limits::Algorithm;
use weirgate::config::OnOutage;

use crate::support::redis::Redis;
use crate::support::windows::{Mode, Process, ask, key, runtime, three, undisturbed};

const MINUTE: Duration = Duration::from_secs(60);

/// The slot of a key, as the cluster itself says.
fn slot(connection: &mut redis::Connection, key: &str) -> u64 {
    let mut command = redis::cmd("CLUSTER");
    command.arg("KEYSLOT").arg(key);
    command.query(connection).unwrap()
}

/// Returns how many of ten times the limit are admitted, and whether a refund makes room for exactly one more. Nothing if
/// Redis was too slow.
fn admitted_and_refunded(algorithm: Algorithm, mode: Mode) -> Option<(u64, [bool; 4])> {
    let (runtime, redis) = (runtime(), Redis::start_cluster());
    let processes = three(&redis, algorithm, MINUTE, (OnOutage::Closed, mode));
    let (admitted, unanswered) = ask(&runtime, &processes, 500, 4_800);
    let refunded = runtime.block_on(one_refund(&processes))?;
    (unanswered == 0).then(|| (admitted.iter().sum(), refunded))
}

async fn one_refund([one, other, third]: &[Process; 3]) -> Option<[bool; 4]> {
    let key = key("refunded");
    let first = one.counters.admit(&key, 1).await.ok()?;
    let is_refunded = other.counters.refund(&key, first.refund_token).await;
    let second = third.counters.admit(&key, 1).await.ok()?;
    let third = one.counters.admit(&key, 1).await.ok()?;
    let verdicts = [first, second, third].map(|verdict| verdict.is_allowed);
    let [first, second, third] = verdicts;
    Some([first, is_refunded, second, third])
}

#[test]
fn every_script_runs_in_a_cluster() {
    for algorithm in [Algorithm::Fixed, Algorithm::Sliding] {
        let run = |mode| undisturbed(|| admitted_and_refunded(algorithm, mode));
        let (admitted, refunded) = run(Mode::Exact);
        assert_eq!(admitted, 500, "{algorithm:?}");
        assert_eq!(refunded, [true, true, true, false], "{algorithm:?}");
        let (admitted, refunded) = run(Mode::Leasing);
        assert!((400..=500).contains(&admitted), "{algorithm:?} {admitted}");
        assert_eq!(refunded, [true, true, true, false], "{algorithm:?}");
    }
}

#[test]
fn what_belongs_to_one_window_has_one_slot_and_windows_are_spread() {
    let slots = undisturbed(|| {
        let (runtime, redis) = (runtime(), Redis::start_cluster());
        let [one, ..] = three(
            &redis,
            Algorithm::Fixed,
            MINUTE,
            (OnOutage::Closed, Mode::Exact),
        );
        let tenants = ["a", "b", "{c}", "d}e"].map(key);
        let asked = tenants.each_ref().map(|key| one.counters.admit(key, 1));
        let answers = runtime.block_on(futures::future::join_all(asked));
        let answered = answers.into_iter().all(|answer| answer.is_ok());
        let mut connection = redis.connect();
        let mut keys = redis::cmd("KEYS");
        let keys: Vec<String> = keys.arg("weirgate:fixed:*").query(&mut connection).unwrap();
        let slots = keys.iter().map(|key| {
            let tag = key.split_once('{').expect("a tag").1;
            let tag = tag.split_once('}').expect("its end").0;
            assert!(!tag.is_empty());
            let slots = [key, tag].map(|key| slot(&mut connection, key));
            assert_eq!(slots[0], slots[1], "{key}");
            slots[0]
        });
        let mut slots: Vec<u64> = slots.collect();
        slots.sort_unstable();
        slots.dedup();
        answered.then_some(slots)
    });
    assert_eq!(slots.len(), 4, "{slots:?}");
}
