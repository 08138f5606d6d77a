#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;

use super::{Health, MAX_BYTES, Measurements, PeerState, Readiness};

fn answer(health: &Health, started_ms: u64, ended_ms: u64) {
    let mut attempt = health.begin(0, true, started_ms);
    attempt.record_content(ended_ms);
    attempt.record_tokens([2_000, 500, 100, 40], ended_ms);
    attempt.record_answer(Some(80.0), ended_ms);
}

fn fail(health: &Health, now_ms: u64) {
    health.begin(0, true, now_ms).record_failure(now_ms);
}

/// Tells one process what another has measured, over bytes, although their clocks differ by `ahead_ms`.
fn tell(from: &Health, to: &Health, process: u128, now_ms: u64, ahead_ms: u64) -> bool {
    let Some(measured) = from.changed(0, now_ms) else {
        return false;
    };
    let measured = Measurements::from_bytes(&measured.to_bytes()).unwrap();
    let told = PeerState {
        process,
        version: now_ms,
        at_ms: i64::try_from(now_ms + ahead_ms).unwrap(),
        measured,
    };
    to.take_in(0, told, now_ms + ahead_ms);
    true
}

fn readiness(health: &Health, now_ms: u64) -> Readiness {
    health.standing(0, now_ms).readiness
}

#[test]
fn a_new_process_knows_what_the_others_know() {
    let (old, new) = (Health::new(1), Health::new(1));
    (0..40).for_each(|at| answer(&old, 100_000 + at * 100, 100_300 + at * 100));
    assert!(tell(&old, &new, 1, 105_000, 3_600_000));
    let (was, is) = (old.standing(0, 105_000), new.standing(0, 3_705_000));
    let (was, is) = (
        (was.stats.unwrap(), was.shares),
        (is.stats.unwrap(), is.shares),
    );
    assert!(
        (was.0.latency_ms - is.0.latency_ms).abs() < 10.0,
        "{was:?} {is:?}"
    );
    assert!(
        (was.0.throughput - is.0.throughput).abs() < 3.0,
        "{was:?} {is:?}"
    );
    assert_eq!(was.0.uptime, is.0.uptime);
    assert!((was.1.unwrap().cached - is.1.unwrap().cached).abs() < 0.001);
    assert!(!tell(&old, &new, 1, 106_000, 0), "nothing has changed");
}

#[test]
fn failures_of_one_process_lower_the_uptime_in_the_others() {
    let (one, other) = (Health::new(1), Health::new(1));
    (0..30).for_each(|at| answer(&other, at * 10, at * 10 + 5));
    fail(&one, 1_000);
    fail(&one, 1_010);
    tell(&one, &other, 1, 1_020, 0);
    let uptime = other.standing(0, 1_030).stats.unwrap().uptime;
    assert!((90.0..98.0).contains(&uptime), "{uptime}");
    assert_eq!(readiness(&other, 1_030), Readiness::Ready);
}

#[test]
fn a_cool_down_is_adopted_and_ends_with_the_recovery() {
    let (one, other) = (Health::new(1), Health::new(1));
    (0..3).for_each(|_| fail(&one, 10_000));
    tell(&one, &other, 1, 10_500, 0);
    assert_eq!(readiness(&other, 10_500), Readiness::Later);
    assert_eq!(
        other.standing(0, 10_500).due_ms,
        17_000,
        "after the first's trial"
    );
    assert_eq!(
        other.changed(0, 10_600),
        None,
        "it has measured nothing itself"
    );
    // The trial of the first fails, so that the other's is put off.
    one.begin(0, true, 15_000).record_failure(15_010);
    tell(&one, &other, 1, 15_500, 0);
    assert_eq!(other.standing(0, 15_500).due_ms, 27_000);
    answer(&one, 25_000, 25_100);
    tell(&one, &other, 1, 25_500, 0);
    assert_eq!(readiness(&other, 25_500), Readiness::Ready);
    assert_eq!(other.standing(0, 25_500).stats.unwrap().uptime, 100.0);
}

#[test]
fn what_one_process_cannot_reach_is_tried_by_the_others_and_then_used() {
    let (cut_off, other) = (Health::new(1), Health::new(1));
    (0..3).for_each(|_| fail(&cut_off, 10_000));
    for now_ms in (10_500..60_000).step_by(1_000) {
        fail(&cut_off, now_ms - 10);
        tell(&cut_off, &other, 1, now_ms, 0);
        if readiness(&other, now_ms) == Readiness::TrialDue {
            answer(&other, now_ms, now_ms + 100);
            tell(&cut_off, &other, 1, now_ms + 200, 0);
            assert_eq!(readiness(&other, now_ms + 300), Readiness::Ready);
            assert!(now_ms <= 31_500, "{now_ms}");
            // The one that has failed tries once, at once, and not again at each telling.
            tell(&other, &cut_off, 2, now_ms + 400, 0);
            assert_eq!(readiness(&cut_off, now_ms + 400), Readiness::TrialDue);
            cut_off
                .begin(0, true, now_ms + 500)
                .record_failure(now_ms + 510);
            answer(&other, now_ms + 600, now_ms + 700);
            tell(&other, &cut_off, 2, now_ms + 800, 1);
            assert_eq!(readiness(&cut_off, now_ms + 800), Readiness::Later);
            return;
        }
    }
    panic!("the other process has never tried");
}

#[test]
fn a_process_where_it_works_does_not_believe_that_it_fails() {
    let (cut_off, other) = (Health::new(1), Health::new(1));
    (0..3).for_each(|_| fail(&cut_off, 10_000));
    answer(&other, 10_100, 10_200);
    tell(&cut_off, &other, 1, 10_500, 0);
    assert_eq!(readiness(&other, 10_500), Readiness::Ready);
}

#[test]
fn what_a_process_told_that_is_gone_fades() {
    let (gone, other) = (Health::new(1), Health::new(1));
    fail(&gone, 1_000);
    fail(&gone, 1_000);
    (0..30).for_each(|at| answer(&gone, at, at + 50_000));
    tell(&gone, &other, 1, 60_000, 0);
    assert!(other.standing(0, 60_000).stats.unwrap().latency_ms > 40_000.0);
    (0..30).for_each(|at| answer(&other, 1_900_000 + at, 1_900_200 + at));
    let stats = other.standing(0, 1_900_300).stats.unwrap();
    assert!(stats.latency_ms < 300.0, "{stats:?}");
    assert_eq!(stats.uptime, 100.0);
    // A state of more than an hour ago is none.
    let late = Health::new(1);
    gone.mark_changed(0);
    let measured = gone.changed(0, 60_000).unwrap();
    let told = PeerState {
        process: 1,
        version: 1,
        at_ms: -3_700_000,
        measured,
    };
    late.take_in(0, told, 0);
    assert_eq!(late.standing(0, 0).stats, None);
}

#[test]
fn thousands_of_processes_take_bounded_memory_and_weigh_as_one() {
    let (liar, health) = (Health::new(1), Health::new(1));
    (0..200).for_each(|at| answer(&liar, at, at + 60_000));
    let measured = liar.changed(0, 60_300).unwrap();
    for process in 0..5_000 {
        let told = PeerState {
            process,
            version: u64::try_from(process).unwrap(),
            at_ms: 60_300,
            measured: measured.clone(),
        };
        health.take_in(0, told, 60_300);
    }
    (0..100).for_each(|at| answer(&health, 61_000 + at, 61_100 + at));
    // Half of all weight is our own, of which the lower half decides.
    let latency_ms = health.standing(0, 62_000).stats.unwrap().latency_ms;
    assert!(latency_ms < 130.0, "{latency_ms}");
}

/// What a process does to a candidate, in drawn order.
fn measured(steps: &[(u8, u64)], now_ms: u64) -> Measurements {
    let health = Health::new(1);
    for (step, at_ms) in steps {
        match step % 3 {
            0 => fail(&health, *at_ms),
            1 => answer(&health, *at_ms, at_ms + u64::from(*step) * 50),
            _ => drop(health.begin(0, true, *at_ms)),
        }
    }
    health.mark_changed(0);
    health.changed(0, now_ms).unwrap_or_default()
}

fn any_measured() -> impl Strategy<Value = Measurements> {
    prop::collection::vec((any::<u8>(), 0..100_000_u64), 0..60)
        .prop_map(|steps| measured(&steps, 120_000))
}

fn any_told() -> impl Strategy<Value = Vec<PeerState>> {
    let one = (0..6_u128, 0..1_000_u64, any_measured());
    prop::collection::vec(one, 1..20).prop_map(|all| {
        let told = all
            .into_iter()
            .map(|(process, version, measured)| PeerState {
                process,
                version,
                // The later state was measured later.
                at_ms: i64::try_from(100_000 + version).unwrap(),
                measured,
            });
        let mut told: Vec<PeerState> = told.collect();
        // No process tells two states in one version.
        told.sort_by_key(|it| (it.process, it.version));
        told.dedup_by_key(|it| (it.process, it.version));
        told
    })
}

fn standing_after(told: impl IntoIterator<Item = PeerState>) -> String {
    let health = Health::new(1);
    told.into_iter()
        .for_each(|it| health.take_in(0, it, 130_000));
    let standing = health.standing(0, 130_000);
    // Whether a candidate cools down depends on what comes first, until the next telling.
    format!(
        "{:?} {:?}",
        standing.stats.map(|it| (it.latency_ms, it.throughput)),
        standing.shares
    )
}

proptest! {
    #[test]
    fn states_in_any_order_and_any_number_of_times_count_once(
        told in any_told(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let expected = standing_after(told.clone());
        let reversed = standing_after(told.iter().rev().cloned());
        prop_assert_eq!(&expected, &reversed);
        let again = order.iter().map(|at| at.get(&told).clone());
        let repeated: Vec<PeerState> = again.chain(told.iter().cloned()).collect();
        prop_assert_eq!(&expected, &standing_after(repeated));
    }

    #[test]
    fn a_state_is_read_as_it_was_written(measured in any_measured()) {
        let bytes = measured.to_bytes();
        prop_assert!(bytes.len() <= MAX_BYTES);
        prop_assert_eq!(Measurements::from_bytes(&bytes), Some(measured));
        for end in 0..bytes.len() {
            prop_assert_eq!(Measurements::from_bytes(&bytes[..end]), None);
        }
        let longer = [&bytes[..], &[0]].concat();
        prop_assert_eq!(Measurements::from_bytes(&longer), None);
    }

    #[test]
    fn no_bytes_make_a_standing_that_cannot_be(
        measured in any_measured(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        at_ms in any::<i64>(),
        now_ms in 0..u64::MAX / 2,
    ) {
        let mut bytes = measured.to_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let health = Health::new(1);
        if let Some(measured) = Measurements::from_bytes(&bytes) {
            let told = PeerState { process: 1, version: 1, at_ms: at_ms.min(now_ms as i64), measured };
            health.take_in(0, told, now_ms);
        }
        check_standing(&health, now_ms)?;
        // Whatever was told, the measurements of this process are not lost in it.
        (0..100).for_each(|at| answer(&health, now_ms + 60_000 + at, now_ms + 60_200 + at));
        let standing = check_standing(&health, now_ms + 61_000)?;
        prop_assert!(standing.unwrap().latency_ms < 300.0);
        prop_assert_eq!(readiness(&health, now_ms + 61_000), Readiness::Ready);
    }

    #[test]
    fn random_bytes_are_refused_or_in_bounds(bytes in prop::collection::vec(any::<u8>(), 0..1_200)) {
        let health = Health::new(1);
        if let Some(measured) = Measurements::from_bytes(&bytes) {
            health.take_in(0, PeerState { process: 1, version: 1, at_ms: 0, measured }, 0);
        }
        check_standing(&health, 0)?;
    }
}

/// Returns the stats, which are in bounds.
fn check_standing(
    health: &Health,
    now_ms: u64,
) -> Result<Option<super::HealthStats>, TestCaseError> {
    let standing = health.standing(0, now_ms);
    prop_assert!(standing.due_ms <= now_ms + 150_000, "{standing:?}");
    if let Some(shares) = standing.shares {
        prop_assert!((0.0..=1.001).contains(&(shares.cached + shares.written)));
        prop_assert!(shares.output_ratio.is_finite());
    }
    if let Some(stats) = standing.stats {
        prop_assert!((0.0..=100.0).contains(&stats.uptime), "{stats:?}");
        prop_assert!((1.0..=70_000.0).contains(&stats.latency_ms), "{stats:?}");
        prop_assert!((1.0..=70_000.0).contains(&stats.throughput), "{stats:?}");
    }
    Ok(standing.stats)
}
