#![allow(clippy::unwrap_used, reason = "tests")]
use proptest::prelude::*;

use super::*;

const DAY_MS: i64 = 24 * 3_600_000;
const NOW_MS: i64 = 1_800_000_000_000;

proptest! {
    #[test]
    fn a_tally_is_the_same_after_it_was_written_and_read(
        charges in prop::collection::vec((0..1_000_000_000_i128, -90..90_i64, any::<bool>()), 0..20),
    ) {
        let (mut tally, mut plan) = (Tally::default(), PlanTally::default());
        for (units, days, is_premium) in charges {
            let at_ms = NOW_MS + days * DAY_MS;
            tally.charge(Usd::from_units(units), at_ms);
            plan.charge(Usd::from_units(units), is_premium, (at_ms, at_ms), NOW_MS);
        }
        prop_assert_eq!(tally.to_string().parse::<Tally>(), Ok(tally));
        prop_assert_eq!(plan.to_string().parse::<PlanTally>(), Ok(plan));
    }

    #[test]
    fn what_a_clock_that_was_ahead_has_dated_counts_at_once(
        charges in prop::collection::vec((1..1_000_i128, -40..80_i64), 1..12), now in -40..80_i64,
    ) {
        let now_ms = NOW_MS + now * DAY_MS;
        let (mut tally, mut clamped) = (Tally::default(), Tally::default());
        for (units, days) in charges {
            let at_ms = NOW_MS + days * DAY_MS;
            tally.charge(Usd::from_units(units), at_ms);
            clamped.charge(Usd::from_units(units), at_ms.min(now_ms));
        }
        let (spent, clamped) = (tally.spent(now_ms), clamped.spent(now_ms));
        prop_assert_eq!(spent.total, clamped.total);
        for (spent, clamped) in spent.periods.into_iter().zip(clamped.periods) {
            prop_assert!(spent >= clamped);
        }
    }
}

#[test]
fn what_is_no_tally_is_refused() {
    let whole = Tally::default().to_string();
    for bad in [
        "",
        "1",
        "x",
        &whole[2..],
        &format!("{whole} 0"),
        &whole.replace("0 0", "0 x"),
    ] {
        assert_eq!(bad.parse::<Tally>(), Err(InvalidTally), "{bad}");
        assert!(bad.parse::<PlanTally>().is_err(), "{bad}");
    }
}
