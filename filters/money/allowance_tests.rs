#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use proptest::prelude::*;

use super::allowance::{Allowance, KeyLimits, LimitReached, SpendingBounds, SpentSoFar};
use super::period::{Period, cycle};
use super::tally::{DAILY_WINDOW_MS, PREMIUM_WINDOW_MS, PlanSpent, PlanTally, Spent, Tally};
use super::{Price, PriceSet, Usd};
use crate::fault::Fault;
use crate::ledger::LimitTerms;

fn usd(text: &str) -> Usd {
    Usd::parse(text).unwrap()
}

/// Returns the first limit without a remainder.
fn check(
    bounds: &SpendingBounds,
    spent: &SpentSoFar,
    is_premium: bool,
) -> Result<(), LimitReached> {
    let rooms = LimitTerms::of_call(bounds, 0, is_premium).map(|terms| terms.room(spent, 0));
    let mut reached = rooms.filter(|room| room.left <= Usd::ZERO);
    reached.next().map_or(Ok(()), |room| Err(room.reached))
}

fn ms(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

#[test]
fn periods_are_those_of_the_calendar_in_utc() {
    // A Saturday.
    let now = ms("2026-02-28T23:59:59.999Z");
    let table = [
        (Period::Hour, "2026-02-28T23:00:00Z", "2026-03-01T00:00:00Z"),
        (Period::Day, "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"),
        (Period::Week, "2026-02-23T00:00:00Z", "2026-03-02T00:00:00Z"),
        (
            Period::Month,
            "2026-02-01T00:00:00Z",
            "2026-03-01T00:00:00Z",
        ),
    ];
    for (period, began, ends) in table {
        assert_eq!(
            (period.start_ms(now), period.end_ms(now)),
            (ms(began), ms(ends))
        );
    }
    assert_eq!(
        Period::Week.start_ms(ms("2026-03-02T00:00:00Z")),
        ms("2026-03-02T00:00:00Z")
    );
}

#[test]
fn a_cycle_is_a_month_from_the_plans_beginning() {
    let since = ms("2026-01-31T10:00:00Z");
    let table = [
        (
            "2026-01-31T10:00:00Z",
            "2026-01-31T10:00:00Z",
            "2026-02-28T10:00:00Z",
        ),
        (
            "2026-02-28T09:59:59Z",
            "2026-01-31T10:00:00Z",
            "2026-02-28T10:00:00Z",
        ),
        (
            "2026-02-28T10:00:00Z",
            "2026-02-28T10:00:00Z",
            "2026-03-31T10:00:00Z",
        ),
        (
            "2027-01-01T00:00:00Z",
            "2026-12-31T10:00:00Z",
            "2027-01-31T10:00:00Z",
        ),
        (
            "2025-12-01T00:00:00Z",
            "2026-01-31T10:00:00Z",
            "2026-02-28T10:00:00Z",
        ),
    ];
    for (now, began, ends) in table {
        assert_eq!(cycle(since, ms(now)), (ms(began), ms(ends)), "{now}");
    }
}

#[test]
fn a_tally_begins_anew_with_each_period() {
    let mut tally = Tally::default();
    tally.charge(usd("1"), ms("2026-03-31T23:30:00Z"));
    tally.charge(usd("2"), ms("2026-04-01T00:10:00Z"));
    let spent = tally.spent(ms("2026-04-01T00:20:00Z"));
    assert_eq!(spent.total, usd("3"));
    // The 31st was a Tuesday, so the charges fall into one week, two days and two months.
    assert_eq!(spent.periods, [usd("2"), usd("2"), usd("3"), usd("2")]);
    let later = tally.spent(ms("2026-05-01T00:00:00Z"));
    assert_eq!(later.periods, [Usd::ZERO; 4]);
}

#[test]
fn a_late_charge_of_a_past_period_counts_in_the_total_alone() {
    let mut tally = Tally::default();
    tally.charge(usd("1"), ms("2026-04-01T10:00:00Z"));
    tally.charge(usd("5"), ms("2026-04-01T09:59:00Z"));
    let spent = tally.spent(ms("2026-04-01T10:01:00Z"));
    assert_eq!(
        (spent.total, spent.periods[0], spent.periods[1]),
        (usd("6"), usd("1"), usd("6"))
    );
}

#[test]
fn a_clock_that_is_set_opens_no_limit_twice() {
    let (day, next) = (ms("2026-04-02T12:00:00Z"), ms("2026-04-03T12:00:00Z"));
    let mut tally = Tally::default();
    tally.charge(usd("10"), day);
    // A clock that was ahead dated this one.
    tally.charge(usd("1"), next);
    assert_eq!(tally.spent(day).periods[1], usd("11"));
    // The day before has nothing to give that was spent since.
    let back = ms("2026-04-01T12:00:00Z");
    assert_eq!(tally.spent(back).periods[1], usd("11"));
    tally.charge(usd("2"), back);
    assert_eq!(tally.spent(back).periods[1], usd("13"));
    assert_eq!(tally.spent(day).periods[1], usd("11"));
    // The day that comes has the rest of its limit.
    assert_eq!(tally.spent(next).periods[1], usd("1"));
}

#[test]
fn a_plans_windows_open_for_no_clock_that_is_set() {
    let since = ms("2026-01-10T00:00:00Z");
    let first = ms("2026-01-11T12:00:00Z");
    let mut tally = PlanTally::default();
    tally.charge(usd("10"), true, at(first), since);
    // A clock that was ahead by ten days opened the next windows.
    let ahead = first + 10 * DAILY_WINDOW_MS;
    tally.charge(usd("1"), true, at(ahead), since);
    let spent = tally.spent(first + 1000, since);
    assert_eq!((spent.daily, spent.premium), (usd("11"), usd("11")));
    let between = tally.spent(ahead - 1000, since);
    assert_eq!((between.daily, between.premium), (usd("1"), usd("1")));
    let before = tally.spent(since, since);
    assert_eq!((before.daily, before.premium), (usd("11"), usd("11")));
    // A clock that is behind names another month, whose cycle still has the later spending.
    let cycle = tally.spent(ms("2025-06-01T00:00:00Z"), since).cycle;
    assert_eq!(cycle, usd("11"));
}

/// Returns the times of one call.
fn at(ms: i64) -> (i64, i64) {
    (ms, ms)
}

#[test]
fn an_hour_in_which_a_window_or_a_plan_begins_counts_in_the_later_one() {
    let opened = ms("2026-03-10T10:30:00Z");
    let since = ms("2026-03-11T10:20:00Z");
    let mut tally = PlanTally::default();
    tally.charge(usd("1"), false, at(opened), since);
    // The window ends at 10:30 of the next day and the plan begins at 10:20. The hour has calls on both sides.
    let hour = (ms("2026-03-11T10:15:00Z"), ms("2026-03-11T10:45:00Z"));
    tally.charge(usd("5"), false, hour, since);
    let spent = tally.spent(hour.1 + 1, since);
    assert_eq!((spent.daily, spent.cycle), (usd("5"), usd("5")));
    let ends = opened + 2 * DAILY_WINDOW_MS;
    assert_eq!(spent.daily_resets_ms, Some(ends));
}

#[test]
fn payments_of_an_earlier_plan_count_in_no_cycle_of_the_next() {
    let upgraded = ms("2026-03-10T12:00:00Z");
    let mut tally = PlanTally::default();
    // As after a restart: all calls are read again under the new plan.
    tally.charge(usd("800"), true, at(ms("2025-04-01T00:00:00Z")), upgraded);
    tally.charge(usd("7"), false, at(upgraded - 1), upgraded);
    tally.charge(usd("2"), false, at(upgraded), upgraded);
    let spent = tally.spent(upgraded + 1000, upgraded);
    assert_eq!((spent.cycle, spent.daily), (usd("2"), usd("9")));
}

#[test]
fn a_plans_windows_begin_with_the_first_call_and_end_by_themselves() {
    let since = ms("2026-01-10T00:00:00Z");
    let first = ms("2026-01-11T12:00:00Z");
    let mut tally = PlanTally::default();
    let quiet = tally.spent(first, since);
    assert_eq!(
        (quiet.premium_resets_ms, quiet.daily_resets_ms),
        (None, None)
    );
    tally.charge(usd("1"), false, at(first), since);
    tally.charge(usd("2"), true, at(first + 1000), since);
    let spent = tally.spent(first + 2000, since);
    assert_eq!(
        (spent.cycle, spent.premium, spent.daily),
        (usd("3"), usd("2"), usd("3"))
    );
    assert_eq!(spent.daily_resets_ms, Some(first + DAILY_WINDOW_MS));
    assert_eq!(
        spent.premium_resets_ms,
        Some(first + 1000 + PREMIUM_WINDOW_MS)
    );
    let next_day = tally.spent(first + DAILY_WINDOW_MS, since);
    assert_eq!(
        (next_day.daily, next_day.daily_resets_ms),
        (Usd::ZERO, None)
    );
    assert_eq!(next_day.premium, usd("2"));
    let next_cycle = tally.spent(ms("2026-02-10T00:00:00Z"), since);
    assert_eq!(next_cycle, PlanSpent::default());
}

#[test]
fn premium_is_output_from_15_or_input_from_5_per_million() {
    let table = [
        ("4.999999999999", "14.999999999999", false),
        ("5", "0", true),
        ("0", "15", true),
        ("0", "0", false),
    ];
    for (input, output, is_premium) in table {
        let prices = PriceSet {
            input: Price::per_million(input).unwrap(),
            output: Price::per_million(output).unwrap(),
            ..PriceSet::default()
        };
        assert_eq!(prices.is_premium(), is_premium, "{input} {output}");
    }
}

fn bounds() -> SpendingBounds {
    SpendingBounds {
        key: KeyLimits {
            lifetime: Some(usd("100")),
            periods: [
                Some(usd("1")),
                Some(usd("2")),
                Some(usd("3")),
                Some(usd("4")),
            ],
        },
        member: Some(usd("50")),
        plan: Some(Allowance {
            cycle: usd("87"),
            weekly_premium: usd("8.7"),
            daily: usd("6.96"),
        }),
    }
}

#[test]
fn each_bound_is_reached_exactly_at_its_amount() {
    let below = |limit: &str| usd(limit).minus(Usd::parse_signed("0.000000000000000001").unwrap());
    type Set = fn(&mut SpentSoFar, Usd);
    let table: [(Set, &str, LimitReached, &str); 9] = [
        (
            |s, u| s.key.total = u,
            "100",
            LimitReached::Key(usd("100")),
            "key_limit_reached",
        ),
        (
            |s, u| s.key.periods[0] = u,
            "1",
            LimitReached::KeyPeriod(Period::Hour, usd("1")),
            "key_limit_reached",
        ),
        (
            |s, u| s.key.periods[1] = u,
            "2",
            LimitReached::KeyPeriod(Period::Day, usd("2")),
            "key_limit_reached",
        ),
        (
            |s, u| s.key.periods[2] = u,
            "3",
            LimitReached::KeyPeriod(Period::Week, usd("3")),
            "key_limit_reached",
        ),
        (
            |s, u| s.key.periods[3] = u,
            "4",
            LimitReached::KeyPeriod(Period::Month, usd("4")),
            "key_limit_reached",
        ),
        (
            |s, u| s.member = u,
            "50",
            LimitReached::Member(usd("50")),
            "member_budget_reached",
        ),
        (
            |s, u| s.plan.cycle = u,
            "87",
            LimitReached::Cycle(usd("87")),
            "plan_credits_used",
        ),
        (
            |s, u| s.plan.premium = u,
            "8.7",
            LimitReached::Premium(usd("8.7")),
            "plan_premium_limit_reached",
        ),
        (
            |s, u| s.plan.daily = u,
            "6.96",
            LimitReached::Daily(usd("6.96")),
            "plan_daily_limit_reached",
        ),
    ];
    for (set, limit, why, code) in table {
        let mut spent = SpentSoFar::default();
        set(&mut spent, below(limit));
        assert_eq!(check(&bounds(), &spent, true), Ok(()), "{code}");
        set(&mut spent, usd(limit));
        assert_eq!(check(&bounds(), &spent, true), Err(why));
        let fault = Fault::from(why);
        assert_eq!((fault.status(), fault.code()), (402, Some(code)));
    }
}

#[test]
fn the_premium_share_stops_premium_models_alone() {
    let mut spent = SpentSoFar::default();
    spent.plan.premium = usd("8.7");
    assert_eq!(check(&bounds(), &spent, false), Ok(()));
}

#[test]
fn a_limit_of_zero_is_reached_at_once() {
    let key = KeyLimits {
        lifetime: Some(Usd::ZERO),
        ..KeyLimits::default()
    };
    let bounds = SpendingBounds {
        key,
        ..SpendingBounds::default()
    };
    assert_eq!(
        check(&bounds, &SpentSoFar::default(), false),
        Err(LimitReached::Key(Usd::ZERO))
    );
}

#[test]
fn a_caller_without_bounds_may_spend() {
    let spent = SpentSoFar {
        key: Spent {
            total: usd("999999999999"),
            periods: [usd("999999999999"); 4],
        },
        ..SpentSoFar::default()
    };
    assert_eq!(check(&SpendingBounds::default(), &spent, true), Ok(()));
}

proptest! {
    #[test]
    fn a_period_holds_its_moment(now_ms in 0..4_102_444_800_000_i64) {
        for period in Period::ALL {
            let (began, ends) = (period.start_ms(now_ms), period.end_ms(now_ms));
            prop_assert!(began <= now_ms && now_ms < ends);
            prop_assert_eq!(period.end_ms(began), ends);
            prop_assert_eq!(period.start_ms(ends), ends);
        }
    }

    #[test]
    fn cycles_follow_each_other_without_a_gap(since in 0..4_000_000_000_000_i64, after in 0..400_000_000_000_i64) {
        let now = since + after;
        let (began, ends) = cycle(since, now);
        prop_assert!(began <= now && now < ends);
        prop_assert_eq!(cycle(since, ends).0, ends);
        prop_assert_eq!(cycle(since, began), (began, ends));
    }

    #[test]
    fn a_tally_sums_the_charges_of_the_current_period(
        charges in proptest::collection::vec((0..90 * 86_400_000_i64, 1..1_000_000_u64), 1..40),
    ) {
        let start = ms("2026-01-01T00:00:00Z");
        let mut charges = charges;
        charges.sort_unstable();
        let cent = Price::per_call("0.000001").unwrap();
        let mut tally = Tally::default();
        for (at, units) in &charges {
            tally.charge(cent.times(*units), start + at);
        }
        let now = start + charges.last().unwrap().0;
        let spent = tally.spent(now);
        for (period, found) in Period::ALL.into_iter().zip(spent.periods) {
            let inside = charges.iter().filter(|(at, _)| start + at >= period.start_ms(now));
            let sum = inside.map(|(_, units)| cent.times(*units)).fold(Usd::ZERO, Usd::plus);
            prop_assert_eq!(found, sum);
        }
    }

    #[test]
    fn no_order_of_charges_and_no_time_hides_what_was_spent_since(
        charges in proptest::collection::vec((0..90 * 86_400_000_i64, 1..1_000_000_u64), 1..40),
        now in 0..90 * 86_400_000_i64,
    ) {
        let start = ms("2026-01-01T00:00:00Z");
        let now = start + now;
        let cent = Price::per_call("0.000001").unwrap();
        let (mut tally, mut plan) = (Tally::default(), PlanTally::default());
        for (at, units) in &charges {
            let ended = start + at;
            tally.charge(cent.times(*units), ended);
            plan.charge(cent.times(*units), true, (ended, ended), start);
        }
        let since = |from: i64| {
            let inside = charges.iter().filter(|(at, _)| start + at >= from);
            inside.map(|(_, units)| cent.times(*units)).fold(Usd::ZERO, Usd::plus)
        };
        for (period, found) in Period::ALL.into_iter().zip(tally.spent(now).periods) {
            prop_assert!(found >= since(period.start_ms(now)));
        }
        let spent = plan.spent(now, start);
        prop_assert!(spent.cycle >= since(cycle(start, now).0));
        // Windows begin with a call, so that the last ones count as long as they can be open.
        prop_assert!(spent.daily >= since(now.max(start + charges.iter().map(|it| it.0).max().unwrap() + 1)));
    }
}
