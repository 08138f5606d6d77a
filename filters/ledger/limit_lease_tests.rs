use super::{LimitLease, LimitScope, LimitTerms};
use crate::money::allowance::{Allowance, KeyLimits, LimitReached, SpendingBounds, SpentSoFar};
use crate::money::{Period, Usd};

fn usd(units: i128) -> Usd {
    Usd::from_units(units)
}

/// A lease of so much, under these limits, granted at 1,000.
fn granted(terms: LimitTerms, left: i128) -> LimitLease {
    let mut lease = LimitLease::default();
    let offer = lease.offer(Usd::ZERO, usd(left), Some(usd(1)));
    lease.apply(&offer, usd(left), terms, 1_000);
    lease
}

const TERMS: LimitTerms = LimitTerms::Member(Usd::ZERO);

#[test]
fn calls_are_admitted_until_the_lease_is_used_up_and_the_last_one_may_exceed_it() {
    let mut lease = granted(TERMS, 10);
    lease.reserve(usd(9));
    assert!(lease.admits());
    lease.reserve(usd(9));
    assert!(!lease.admits());
    // The first costs less than it reserved, and the rest serves others.
    lease.reserve(usd(-9));
    lease.charge(usd(2));
    assert!(!lease.admits());
    lease.reserve(usd(-9));
    lease.charge(usd(7));
    assert!(lease.admits());
    lease.charge(usd(1));
    assert!(!lease.admits());
}

#[test]
fn a_lease_serves_its_own_limits_alone_and_no_earlier_time() {
    let lease = granted(TERMS, 10);
    assert!(lease.is_of(&TERMS, 1_000));
    assert!(!lease.is_of(&TERMS, 999), "the clock was set back");
    assert!(!lease.is_of(&LimitTerms::Member(usd(1)), 1_000));
    assert!(!LimitLease::default().is_of(&TERMS, 1_000));
}

#[test]
fn nothing_is_spent_of_a_lease_before_its_grant_or_after_its_end() {
    let mut lease = LimitLease::default();
    // A call that began before there was a lease ends and leaves a part of its reservation.
    lease.reserve(usd(-10));
    assert!(!lease.admits());
    let offer = lease.offer(Usd::ZERO, usd(5), Some(usd(1)));
    assert_eq!(offer.kept, Usd::ZERO);
    lease.apply(&offer, usd(5), TERMS, 0);
    lease.charge(usd(5));
    assert!(!lease.admits());
    let mut lease = granted(TERMS, 10);
    assert!(lease.is_held());
    lease.revoke();
    assert!(!lease.admits() && !lease.is_held());
}

#[test]
fn a_grant_keeps_what_calls_have_taken_meanwhile() {
    let mut lease = granted(TERMS, 10);
    lease.reserve(usd(4));
    let offer = lease.offer(usd(4), usd(100), Some(usd(1)));
    assert_eq!((offer.kept, offer.held), (usd(6), usd(4)));
    lease.reserve(usd(5));
    lease.apply(&offer, usd(20), TERMS, 1_000);
    lease.charge(usd(14));
    assert!(lease.admits());
    lease.charge(usd(1));
    assert!(!lease.admits());
}

#[test]
fn what_is_left_is_taken_out_at_once_when_it_is_returned() {
    let mut lease = granted(TERMS, 10);
    lease.charge(usd(3));
    let offer = lease.offer(usd(2), Usd::ZERO, None);
    assert_eq!((offer.kept, offer.held), (Usd::ZERO, usd(5)));
    assert!(!lease.admits());
    lease.mark_returned();
    assert!(!lease.is_held());
}

#[test]
fn a_process_asks_for_more_while_a_quarter_is_left_but_not_where_there_is_none() {
    let mut lease = granted(TERMS, 100);
    lease.charge(usd(75));
    assert!(!lease.is_low());
    lease.charge(usd(1));
    assert!(lease.is_low());
    let offer = lease.offer(Usd::ZERO, usd(24), Some(usd(1)));
    lease.apply(&offer, usd(24), TERMS, 0);
    assert!(!lease.is_low());
    lease.charge(usd(25));
    assert!(!lease.is_low(), "the last call has exceeded it");
}

#[test]
fn what_is_told_to_be_stored_never_falls() {
    let mut lease = granted(TERMS, 100);
    lease.continue_from(usd(40));
    lease.charge(usd(5));
    assert_eq!(lease.offer(Usd::ZERO, Usd::ZERO, None).stored, usd(40));
    lease.forget_unstored();
    assert_eq!(lease.offer(Usd::ZERO, Usd::ZERO, None).stored, usd(45));
    // Calls that ended before there was a lease are not stored.
    lease.add_unstored(usd(7));
    lease.continue_from(usd(45));
    assert_eq!(lease.offer(Usd::ZERO, Usd::ZERO, None).stored, usd(45));
}

#[test]
fn the_tightest_limit_gives_the_room_and_its_name() {
    let mut spent = SpentSoFar::default();
    (spent.key.total, spent.key.periods[1], spent.member) = (usd(60), usd(7), usd(3));
    (spent.plan.cycle, spent.plan.daily, spent.plan.premium) = (usd(50), usd(8), usd(2));
    let limits = KeyLimits {
        lifetime: Some(usd(100)),
        periods: [None, Some(usd(10)), None, None],
    };
    let plan = Allowance {
        cycle: usd(55),
        weekly_premium: usd(1),
        daily: usd(20),
    };
    let bounds = SpendingBounds {
        key: limits,
        member: Some(usd(5)),
        plan: Some(plan),
    };
    let rooms: Vec<_> = LimitTerms::of_call(&bounds, 0, true)
        .map(|terms| terms.room(&spent))
        .collect();
    let expected = [
        (usd(3), LimitReached::KeyPeriod(Period::Day, usd(10))),
        (usd(2), LimitReached::Member(usd(5))),
        (usd(5), LimitReached::Cycle(usd(55))),
        (usd(-1), LimitReached::Premium(usd(1))),
    ];
    assert_eq!(rooms, expected);
    assert_eq!(LimitTerms::of_call(&bounds, 0, false).count(), 3);
    let none = SpendingBounds::default();
    assert_eq!(LimitTerms::of_call(&none, 0, true).count(), 0);
}

#[test]
fn scopes_are_read_as_they_are_written() {
    for scope in [
        LimitScope::Key("key_1".into()),
        LimitScope::Member("a/b".into()),
        LimitScope::Plan,
        LimitScope::Premium,
    ] {
        assert_eq!(scope.to_string().parse(), Ok(scope));
    }
    for text in ["", "key", "other/1", "plan/1"] {
        assert!(text.parse::<LimitScope>().is_err(), "{text}");
    }
}
