use super::{LimitLease, LimitScope, LimitTerms, Room};
use crate::ledger::{LimitGrant, LimitOffer, LimitState};
use crate::money::allowance::{Allowance, KeyLimits, LimitReached, SpendingBounds, SpentSoFar};
use crate::money::budgets::BudgetKind;
use crate::money::{Period, Usd};

fn usd(units: i128) -> Usd {
    Usd::from_units(units)
}

/// What the store grants where so much is left of the limits, and others hold nothing.
fn grant(offer: &LimitOffer, left: i128) -> LimitGrant {
    let room = Room {
        left: usd(left),
        reached: LimitReached::Member(usd(left)),
        resets_ms: 9_000,
    };
    offer.decide(&LimitState {
        room: Some(room),
        processes: 1,
        ..LimitState::default()
    })
}

/// A lease of so much, under these limits, granted at 1,000.
fn granted(terms: LimitTerms, left: i128) -> LimitLease {
    let mut lease = LimitLease::default();
    let offer = lease.offer(Usd::ZERO, Some((terms, usd(1))), 1_000);
    lease.apply(&offer, &grant(&offer, left));
    lease
}

const TERMS: LimitTerms = LimitTerms::Member(Usd::ZERO);

#[test]
fn calls_are_admitted_until_the_lease_is_used_up_and_the_last_one_may_exceed_it() {
    let mut lease = granted(TERMS, 10);
    lease.reserve(usd(9));
    assert!(lease.admits(Usd::ZERO));
    lease.reserve(usd(9));
    assert!(!lease.admits(Usd::ZERO));
    // The first costs less than it reserved, and the rest serves others.
    lease.reserve(usd(-9));
    lease.charge(usd(2));
    assert!(!lease.admits(Usd::ZERO));
    lease.reserve(usd(-9));
    lease.charge(usd(7));
    assert!(lease.admits(Usd::ZERO));
    lease.charge(usd(1));
    assert!(!lease.admits(Usd::ZERO));
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
    assert!(!lease.admits(Usd::ZERO));
    let offer = lease.offer(Usd::ZERO, Some((TERMS, usd(1))), 0);
    assert_eq!(offer.left, Usd::ZERO);
    lease.apply(&offer, &grant(&offer, 5));
    lease.charge(usd(5));
    assert!(!lease.admits(Usd::ZERO));
    let mut lease = granted(TERMS, 10);
    assert!(lease.is_held());
    lease.revoke();
    assert!(!lease.admits(Usd::ZERO) && !lease.is_held());
}

#[test]
fn a_grant_keeps_what_calls_have_taken_meanwhile() {
    let mut lease = granted(TERMS, 10);
    lease.reserve(usd(4));
    let offer = lease.offer(usd(4), Some((TERMS, usd(1))), 1_000);
    assert_eq!((offer.left, offer.granted), (usd(6), Some(usd(10))));
    lease.reserve(usd(5));
    lease.apply(&offer, &grant(&offer, 24));
    lease.charge(usd(14));
    assert!(lease.admits(Usd::ZERO));
    lease.charge(usd(1));
    assert!(!lease.admits(Usd::ZERO));
}

#[test]
fn what_is_left_is_taken_out_at_once_when_it_is_returned_and_told_again_where_no_answer_came() {
    let mut lease = granted(TERMS, 10);
    lease.charge(usd(3));
    let offer = lease.offer(Usd::ZERO, None, 1_000);
    assert_eq!(offer.granted, Some(usd(3)));
    assert!(!lease.admits(Usd::ZERO));
    let again = lease.offer(Usd::ZERO, None, 1_000);
    assert_eq!(again.granted, Some(usd(3)));
    let stored = LimitState {
        stored: usd(3),
        ..LimitState::default()
    };
    lease.apply(&again, &again.decide(&stored));
    assert!(!lease.is_held());
}

#[test]
fn what_nobody_stores_is_held_until_the_next_change_alone() {
    let mut lease = granted(TERMS, 10);
    lease.charge_unstored(usd(4));
    let offer = lease.offer(Usd::ZERO, Some((TERMS, usd(1))), 1_000);
    assert_eq!((offer.granted, offer.left), (Some(usd(6)), usd(6)));
    let grant = grant(&offer, 10);
    assert_eq!(grant.added, usd(4));
}

#[test]
fn what_nobody_stores_while_a_change_runs_is_told_with_the_next_one() {
    let mut lease = granted(TERMS, 10);
    let offer = lease.offer(Usd::ZERO, Some((TERMS, usd(1))), 1_000);
    lease.charge_unstored(usd(4));
    lease.apply(&offer, &grant(&offer, 10));
    let next = lease.offer(Usd::ZERO, None, 1_000);
    assert_eq!(next.granted, Some(Usd::ZERO));
    // The first lease holds what runs, and a call that has ended before does not.
    let mut lease = LimitLease::default();
    lease.charge_unstored(usd(4));
    let offer = lease.offer(usd(3), Some((TERMS, usd(1))), 1_000);
    lease.reserve(usd(-3));
    lease.charge_unstored(usd(3));
    lease.apply(&offer, &grant(&offer, 10));
    let next = lease.offer(Usd::ZERO, Some((TERMS, usd(1))), 1_000);
    assert_eq!((next.granted, next.left), (Some(usd(7)), usd(7)));
}

#[test]
fn a_call_that_exceeds_a_lease_is_asked_for_with_the_next() {
    let mut lease = granted(TERMS, 10);
    lease.reserve(usd(30));
    let offer = lease.offer(usd(30), Some((TERMS, usd(2))), 1_000);
    assert_eq!(offer.wanted, Some((TERMS, usd(22))));
}

#[test]
fn without_a_lease_what_was_left_at_the_last_grant_decides_until_the_limit_begins_anew() {
    let mut lease = granted(TERMS, 10);
    lease.charge(usd(9));
    assert!(lease.may_be_left(&TERMS, 2_000));
    lease.charge(usd(1));
    assert!(!lease.may_be_left(&TERMS, 2_000));
    assert!(lease.may_be_left(&TERMS, 9_000), "it has begun anew");
    assert!(lease.may_be_left(&LimitTerms::Member(usd(1)), 2_000));
    // What others hold may come back.
    let mut lease = LimitLease::default();
    let offer = lease.offer(Usd::ZERO, Some((TERMS, usd(1))), 1_000);
    let mut grant = grant(&offer, 10);
    (grant.granted, grant.added, grant.held) = (usd(4), usd(4), usd(4));
    lease.apply(&offer, &grant);
    lease.charge(usd(9));
    assert!(lease.may_be_left(&TERMS, 2_000));
    lease.charge(usd(1));
    assert!(!lease.may_be_left(&TERMS, 2_000));
}

#[test]
fn a_process_asks_for_more_while_a_quarter_is_left_but_not_where_there_is_none() {
    let mut lease = granted(TERMS, 100);
    lease.charge(usd(75));
    assert!(!lease.is_low());
    lease.charge(usd(1));
    assert!(lease.is_low());
    let offer = lease.offer(Usd::ZERO, Some((TERMS, usd(1))), 0);
    let stored = LimitState {
        stored: usd(76),
        ..LimitState::default()
    };
    lease.apply(&offer, &offer.decide(&stored));
    assert!(!lease.is_low());
    lease.charge(usd(25));
    assert!(!lease.is_low(), "the last call has exceeded it");
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
        .map(|terms| terms.room(&spent, 0))
        .map(|room| (room.left, room.reached))
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

#[test]
fn a_budget_covers_all_that_a_call_may_cost_or_refuses_it_and_says_what_is_left() {
    let limits = KeyLimits {
        lifetime: Some(usd(10)),
        ..KeyLimits::default()
    };
    let terms = LimitTerms::Budget(BudgetKind::Agent, limits);
    let mut lease = LimitLease::default();
    let offer = lease.offer(Usd::ZERO, Some((terms, usd(4))), 1_000);
    let room = terms.room(&SpentSoFar::default(), 1_000);
    let state = LimitState {
        room: Some(room),
        processes: 1,
        ..LimitState::default()
    };
    lease.apply(&offer, &offer.decide(&state));
    assert!(lease.admits(terms.need(usd(10))) && !lease.admits(terms.need(usd(11))));
    lease.charge(usd(7));
    assert!(lease.admits(terms.need(usd(3))) && !lease.admits(terms.need(usd(4))));
    let left = |lease: &LimitLease| match lease.reached() {
        Some(LimitReached::Budget(reached)) => (reached.kind, reached.limit, reached.left),
        other => panic!("{other:?}"),
    };
    assert_eq!(left(&lease), (BudgetKind::Agent, usd(10), usd(3)));
    // A call that costs more than it reserved, or that may pass, leaves less than nothing.
    lease.charge(usd(5));
    assert_eq!(left(&lease).2, usd(-2));
    assert!(!lease.admits(Usd::ZERO));
}

#[test]
fn the_tightest_limit_of_a_budget_is_told_with_its_period() {
    let limits = KeyLimits {
        lifetime: Some(usd(10)),
        periods: [None, Some(usd(4)), None, None],
    };
    let terms = LimitTerms::Budget(BudgetKind::Session, limits);
    let mut spent = SpentSoFar::default();
    (spent.key.total, spent.key.periods[1]) = (usd(5), usd(3));
    let room = terms.room(&spent, 0);
    let LimitReached::Budget(reached) = room.reached else {
        panic!("{room:?}")
    };
    assert_eq!(
        (room.left, reached.limit, reached.period),
        (usd(1), usd(4), Some(Period::Day))
    );
    assert_eq!(
        (room.resets_ms, reached.resets_ms),
        (86_400_000, 86_400_000)
    );
    let name = LimitScope::Budget("session/a b".into());
    assert_eq!(name.to_string().parse(), Ok(name));
}
