#![allow(clippy::unwrap_used, reason = "tests")]
use super::super::byok::ByokKeys;
use super::*;
use crate::store::ByokKeyRow;

fn row(id: &str, text: Option<&str>) -> ByokKeyRow {
    ByokKeyRow {
        id: id.to_owned(),
        organization_id: "org_1".to_owned(),
        provider: "first".to_owned(),
        label: format!("label of {id}"),
        secret: text.map(|text| Secret::new(text.to_owned())),
    }
}

fn keys(rows: Vec<ByokKeyRow>, before: &ByokKeys) -> ByokKeys {
    ByokKeys::new(rows, before, b"fingerprints")
}

fn status(status: u16) -> Failure {
    let mut failure = Failure::new(FailureKind::Status(status));
    failure.is_retryable = !(400..401).contains(&status);
    failure
}

fn three() -> Arc<KeyPool> {
    let rows = ["a", "b", "c"].map(|id| row(id, Some(id))).into();
    let all = keys(rows, &ByokKeys::default());
    Arc::clone(all.find("org_1", "first").unwrap())
}

#[test]
fn keys_take_turns_and_resting_ones_come_last() {
    let keys = three();
    let picks: Vec<usize> = (0..4).map(|_| keys.pick(0, 0, 1000)).collect();
    assert_eq!(picks, [0, 1, 2, 0]);
    keys.get(1).unwrap().rest(0, 11_000);
    let picks: Vec<usize> = (0..3).map(|_| keys.pick(0, 0, 1000)).collect();
    assert!(!picks.contains(&1), "{picks:?}");
    assert_eq!(keys.pick(0b101, 0, 1000), 1);
}

#[test]
fn a_refused_key_rests_longer_than_a_throttled_one() {
    let keys = three();
    keys.get(0).unwrap().record_failure(&status(401), 0);
    keys.get(1).unwrap().rest(0, 10_000);
    assert_eq!(keys.pick(0b100, 0, 1), 1);
    assert_eq!(
        (0..6).filter(|_| keys.pick(0b100, 0, 20_000) == 0).count(),
        0
    );
    assert!((0..6).any(|_| keys.pick(0b100, 0, 400_000) == 0));
}

#[test]
fn a_key_rests_after_three_failures_in_a_row_and_not_after_two() {
    let rests = |failures: usize| {
        let keys = three();
        for _ in 0..failures {
            keys.get(0).unwrap().record_failure(&status(500), 0);
        }
        (0..6).all(|_| keys.pick(0, 0, 1) != 0)
    };
    assert_eq!([rests(2), rests(3)], [false, true]);
}

#[test]
fn a_caller_s_wrong_request_says_nothing_about_the_key() {
    let keys = three();
    for _ in 0..5 {
        keys.get(0).unwrap().record_failure(&status(400), 0);
    }
    assert!((0..3).any(|_| keys.pick(0, 0, 1) == 0));
}

#[test]
fn what_is_known_of_a_key_outlives_the_snapshot_and_ends_with_the_key() {
    let before = keys(
        vec![row("a", Some("x")), row("b", Some("y"))],
        &ByokKeys::default(),
    );
    let pool = |all: &ByokKeys| Arc::clone(all.find("org_1", "first").unwrap());
    pool(&before)
        .get(0)
        .unwrap()
        .record_failure(&status(401), 0);
    let after = keys(vec![row("a", Some("x")), row("c", Some("z"))], &before);
    assert!((0..4).all(|_| pool(&after).pick(0, 0, 1) == 1));
    assert!(pool(&after).find_byok("b").is_none());
    assert!(pool(&after).is_byok());
}

#[test]
fn a_key_that_cannot_be_opened_is_left_out_and_others_stay_apart() {
    let all = keys(vec![row("a", None)], &ByokKeys::default());
    assert!(all.find("org_1", "first").is_none());
    let all = keys(vec![row("a", Some("x"))], &ByokKeys::default());
    assert!(all.find("org_2", "first").is_none() && all.find("org_1", "second").is_none());
}

#[test]
fn a_fingerprint_stands_for_the_text_and_does_not_tell_it() {
    let print = |text: &str| {
        let secret = Secret::new(text.to_owned());
        Credential::new(secret, b"fingerprints", None)
            .fingerprint
            .unwrap()
    };
    assert_eq!(print("sk-1"), print("sk-1"));
    assert_ne!(print("sk-1"), print("sk-2"));
    assert!(print("sk-1").len() == 16 && print("sk-1").bytes().all(|b| b.is_ascii_hexdigit()));
}

#[test]
fn a_key_rests_for_the_candidate_whose_limit_is_used_up_and_until_it_ends() {
    let keys = three();
    let picks = |candidate, now_ms| {
        let picks: Vec<usize> = (0..3).map(|_| keys.pick(0, candidate, now_ms)).collect();
        picks.contains(&0)
    };
    keys.get(0).unwrap().rest(7, 20_000);
    assert_eq!(
        [picks(7, 19_999), picks(7, 20_000), picks(8, 0)],
        [false, true, true]
    );
    assert_eq!(keys.rest_until_ms(7, 0), None, "two others are ready");
    keys.get(1).unwrap().rest(7, 30_000);
    keys.get(2).unwrap().rest(7, 10_000);
    assert_eq!(keys.rest_until_ms(7, 0), Some(10_000));
    assert_eq!(keys.pick(0, 7, 0), 2, "the one that is ready first");
    assert_eq!(keys.rest_until_ms(8, 0), None);
}
