#![allow(clippy::unwrap_used, reason = "tests")]

use super::{Health, HealthStats, Readiness, RunningAttempt};

fn fail(health: &Health, now_ms: u64) {
    health.begin(0, true, now_ms).record_failure(now_ms);
}

fn answer(health: &Health, is_stream: bool, started_ms: u64, content_ms: u64) {
    let mut attempt = health.begin(0, is_stream, started_ms);
    attempt.record_content(content_ms);
    attempt.record_answer(Some(80.0), content_ms);
}

fn readiness(health: &Health, now_ms: u64) -> Readiness {
    health.standing(0, now_ms).readiness
}

fn stats(health: &Health, now_ms: u64) -> HealthStats {
    health.standing(0, now_ms).stats.unwrap()
}

#[test]
fn three_failures_in_a_row_are_a_cool_down_and_two_are_none() {
    let health = Health::new(1);
    fail(&health, 10);
    fail(&health, 20);
    assert_eq!(readiness(&health, 20), Readiness::Ready);
    answer(&health, true, 20, 30);
    fail(&health, 40);
    fail(&health, 50);
    assert_eq!(readiness(&health, 50), Readiness::Ready);
    fail(&health, 60);
    assert_eq!(readiness(&health, 60), Readiness::Later);
    assert_eq!(health.standing(0, 60).due_ms, 5060);
}

#[test]
fn one_trial_at_a_time_goes_through_after_ever_longer_cool_downs() {
    let health = Health::new(1);
    (0..3).for_each(|_| fail(&health, 0));
    let mut now_ms = 5_000;
    for cool_down_ms in [10_000, 20_000, 40_000, 50_000, 50_000] {
        assert_eq!(readiness(&health, now_ms - 1), Readiness::Later);
        assert_eq!(readiness(&health, now_ms), Readiness::TrialDue);
        let trial = health.begin(0, true, now_ms);
        assert!(trial.trial_patience_ms().is_some());
        assert_eq!(readiness(&health, now_ms), Readiness::Later);
        // Others that are sent there all the same are not trials.
        assert_eq!(health.begin(0, true, now_ms).trial_patience_ms(), None);
        trial.record_failure(now_ms + 1);
        now_ms += cool_down_ms;
    }
}

#[test]
fn the_first_content_of_a_trial_ends_it_all() {
    let health = Health::new(1);
    (0..3).for_each(|_| fail(&health, 0));
    let mut trial = health.begin(0, true, 5_000);
    trial.record_reply(5_100);
    assert_eq!(readiness(&health, 5_100), Readiness::Later);
    trial.record_content(5_200);
    assert_eq!(readiness(&health, 5_200), Readiness::Ready);
    trial.record_answer(None, 5_300);
    assert_eq!(stats(&health, 5_300).uptime, 100.0);
}

#[test]
fn what_was_begun_before_the_failures_proves_nothing_after_them() {
    let health = Health::new(1);
    let mut stream = health.begin(0, true, 0);
    (1..4).for_each(|at| fail(&health, at));
    stream.record_content(1_000);
    assert_eq!(readiness(&health, 1_000), Readiness::Later);
}

#[test]
fn what_fails_late_says_nothing_after_the_recovery() {
    let health = Health::new(1);
    let hung: Vec<RunningAttempt> = (0..3).map(|_| health.begin(0, true, 0)).collect();
    (0..3).for_each(|_| fail(&health, 100));
    answer(&health, true, 6_000, 6_100);
    hung.into_iter().for_each(|it| it.record_failure(120_000));
    assert_eq!(readiness(&health, 120_000), Readiness::Ready);
    assert_eq!(stats(&health, 120_000).uptime, 100.0);
}

#[test]
fn a_provider_that_is_silent_while_three_wait_cools_down_until_it_is_heard() {
    let health = Health::new(1);
    (0..20).for_each(|at| answer(&health, true, at * 1000, at * 1000 + 500));
    let mut waiting: Vec<RunningAttempt> =
        vec![health.begin(0, true, 30_000), health.begin(0, true, 31_000)];
    assert_eq!(
        readiness(&health, 90_000),
        Readiness::Ready,
        "two may be unlucky"
    );
    waiting.push(health.begin(0, true, 90_000));
    assert_eq!(readiness(&health, 90_000), Readiness::Later);
    // Whatever comes, it is not silent any more.
    waiting.remove(0).record_answer(None, 91_000);
    assert_eq!(readiness(&health, 91_000), Readiness::Ready);
}

#[test]
fn silence_is_patience_with_what_is_usually_slow() {
    let health = Health::new(1);
    (0..20).for_each(|at| answer(&health, false, at, at + 20_000));
    let _waiting: Vec<RunningAttempt> = (0..9).map(|_| health.begin(0, false, 100_000)).collect();
    assert_eq!(readiness(&health, 150_000), Readiness::Ready);
    assert_eq!(readiness(&health, 180_000), Readiness::Later);
}

#[test]
fn attempts_that_are_dropped_or_answered_wait_no_longer() {
    let health = Health::new(1);
    for at in 0..50 {
        drop(health.begin(0, true, at));
        health.begin(0, true, at).record_reply(at);
        answer(&health, true, at, at);
        fail(&health, at);
        answer(&health, true, at, at);
    }
    assert_eq!(readiness(&health, 3_000_000), Readiness::Ready);
}

#[test]
fn the_uptime_is_that_of_the_last_attempts() {
    let health = Health::new(1);
    let uptime = |failing: fn(u64) -> bool, from: u64| {
        for at in from..from + 60 {
            match failing(at) {
                true => fail(&health, at * 100),
                false => answer(&health, true, at * 100, at * 100 + 10),
            }
        }
        stats(&health, (from + 60) * 100).uptime
    };
    assert_eq!(uptime(|_| false, 0), 100.0);
    let third = uptime(|at| at % 3 == 0, 60);
    assert!((65.0..75.0).contains(&third), "{third}");
    let mended = uptime(|_| false, 120);
    assert!(mended > 95.0, "{mended}");
}

#[test]
fn one_early_failure_says_little_and_a_minute_forgives_it() {
    let health = Health::new(1);
    fail(&health, 0);
    assert_eq!(stats(&health, 0).uptime, 75.0);
    assert_eq!(stats(&health, 20_000).uptime, 75.0);
    let forgiven = stats(&health, 80_000).uptime;
    assert!(forgiven > 95.0, "{forgiven}");
    fail(&health, 80_000);
    let again = stats(&health, 80_000).uptime;
    assert!(
        (59.9..60.1).contains(&again),
        "no success, so not for good: {again}"
    );
    assert_eq!(health.standing(0, 3_700_000).stats, None);
}

#[test]
fn latency_and_throughput_are_those_of_streams() {
    let health = Health::new(2);
    (0..9).for_each(|at| answer(&health, true, at, at + 300));
    (0..90).for_each(|at| answer(&health, false, 1000 + at, 9000 + at));
    let read = stats(&health, 9_100);
    assert!((250.0..350.0).contains(&read.latency_ms), "{read:?}");
    assert!((70.0..95.0).contains(&read.throughput), "{read:?}");
    assert_eq!(health.standing(1, 9_100).stats, None, "each on its own");
}

#[test]
fn a_limit_that_was_told_rests_until_its_end_and_is_no_failure() {
    let health = Health::new(1);
    health.rest(0, 20_000);
    let resting = health.standing(0, 19_999);
    assert_eq!(
        (resting.readiness, resting.due_ms),
        (Readiness::Later, 20_000)
    );
    assert_eq!(readiness(&health, 20_000), Readiness::Ready);
}

#[test]
fn a_cancelled_attempt_is_no_failure_and_its_content_came_later_than_that() {
    let health = Health::new(1);
    let cancel = |started_ms, now_ms| health.begin(0, true, started_ms).record_cancelled(now_ms);
    (0..10).for_each(|at| answer(&health, true, at, at + 1_000));
    let before = stats(&health, 1_010);
    // Shorter than usual: it says little, and nothing good.
    (0..5).for_each(|_| cancel(1_000, 1_010));
    let after = stats(&health, 1_010);
    assert_eq!(after.uptime, before.uptime);
    assert!((after.latency_ms / before.latency_ms - 1.0).abs() < 0.1);
    // Longer than usual, again and again.
    (0..30).for_each(|_| {
        let mut attempt = health.begin(0, true, 2_000);
        attempt.record_reply(2_001);
        attempt.record_cancelled(10_000);
    });
    let slow = stats(&health, 10_000);
    assert_eq!(
        (slow.uptime, readiness(&health, 10_000)),
        (100.0, Readiness::Ready)
    );
    assert!(slow.latency_ms > 6_000.0, "{slow:?}");
}

#[test]
fn a_provider_whose_silent_attempts_are_cancelled_is_found_silent() {
    let health = Health::new(1);
    answer(&health, true, 0, 100);
    for started_ms in [1_000, 2_000, 3_000] {
        health
            .begin(0, true, started_ms)
            .record_cancelled(started_ms + 500);
    }
    // The patience counts from the first of them.
    assert_eq!(readiness(&health, 6_000), Readiness::Ready);
    assert_eq!(readiness(&health, 6_001), Readiness::Later);
    let mut trial = health.begin(0, true, 11_001);
    assert!(trial.trial_patience_ms().is_some());
    trial.record_content(11_100);
    assert_eq!(readiness(&health, 20_000), Readiness::Ready);
}

#[test]
fn what_was_made_in_silence_is_the_throughput_times_the_time_before_content() {
    let health = Health::new(1);
    let mut attempt = health.begin(0, true, 1_000);
    // Nothing was measured yet.
    assert_eq!(attempt.silent_tokens(11_000), 500);
    attempt.record_content(3_000);
    assert_eq!(attempt.silent_tokens(11_000), 100);
    attempt.record_answer(Some(100.0), 11_000);
    let next = health.begin(0, true, 20_000);
    let made = next.silent_tokens(30_000);
    assert!((900..1_100).contains(&made), "{made}");
    let unknown = health.begin(7, true, 0);
    assert_eq!(unknown.silent_tokens(1_000), 50);
}

#[test]
fn a_candidate_of_the_next_catalogue_shares_its_measurements() {
    let old = Health::new(2);
    let running = old.begin(0, false, 0);
    (0..3).for_each(|_| old.begin(1, false, 0).record_failure(0));
    let new = old.following([Some(1), None, Some(0)]);
    assert_ne!(new.standing(0, 1).readiness, Readiness::Ready);
    assert_eq!(new.standing(1, 1).stats, None);
    assert_eq!(new.standing(2, 1).stats, None);
    running.record_answer(None, 500);
    let learnt = new.standing(2, 501).stats;
    assert!(learnt.is_some() && learnt == old.standing(0, 501).stats);
    new.begin(0, false, 60_000).record_answer(None, 60_001);
    assert_eq!(old.standing(1, 60_002).readiness, Readiness::Ready);
}
