//! The steps in which the durations of calls are counted, so that sums of counts tell their percentiles.
//!
//! Up to [`EXACT_MS`] milliseconds are a step each; beyond, eight steps make twice the time.

/// Shorter durations are exact.
const EXACT_MS: u64 = 8;
/// Each power of two from [`EXACT_MS`] on has two to the power of this many steps.
const STEP_BITS: u32 = 3;

/// Returns the step of a duration. Later steps hold longer durations.
pub fn duration_step(ms: u64) -> u32 {
    let exponent = ms.max(1).ilog2();
    match exponent.checked_sub(STEP_BITS) {
        None => ms as u32,
        Some(shift) => (shift << STEP_BITS) + (ms >> shift) as u32,
    }
}

/// Returns a duration in milliseconds for all of a step: its middle, so that none is more than a sixteenth away.
pub fn duration_of_step(step: u32) -> u64 {
    let steps = u64::from(step);
    if steps < EXACT_MS {
        return steps;
    }
    let shift = (step >> STEP_BITS).saturating_sub(1).min(60);
    let first = (steps & (EXACT_MS - 1)) + EXACT_MS;
    (first << shift) + (1_u64 << shift) / 2
}

/// Returns the step that holds a percentile, from the counts of steps in their order; `None`: nothing was counted.
pub fn percentile(counts: &[(u32, u64)], percent: u64) -> Option<u32> {
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let rank = all.saturating_mul(percent).div_ceil(100).max(1);
    let mut before = 0_u64;
    let found = counts.iter().find(|(_, count)| {
        before = before.saturating_add(*count);
        before >= rank
    });
    found.map(|(step, _)| *step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steps_have_no_gap_and_grow() {
        let mut last = 0;
        for ms in 0..100_000 {
            let step = duration_step(ms);
            assert!(step == last || step == last + 1, "{ms}");
            last = step;
        }
        assert_eq!([0, 1, 7, 8, 9, 15].map(duration_step), [0, 1, 7, 8, 9, 15]);
        assert_eq!(
            [16, 17, 18, 31, 32].map(duration_step),
            [16, 16, 17, 23, 24]
        );
    }

    #[test]
    fn a_percentile_is_the_least_that_so_many_do_not_exceed() {
        let counts = [(3, 1), (5, 98), (9, 1)];
        let found = [0, 1, 2, 50, 99, 100].map(|percent| percentile(&counts, percent));
        assert_eq!(found, [3, 3, 5, 5, 5, 9].map(Some));
        assert_eq!(percentile(&[(4, 1)], 95), Some(4));
        assert_eq!(percentile(&[], 50), None);
    }

    proptest! {
        #[test]
        fn a_duration_is_told_to_a_sixteenth(ms in prop_oneof![0..1000_u64, any::<u64>()]) {
            let told = duration_of_step(duration_step(ms));
            prop_assert!(told.abs_diff(ms) <= ms / 16, "{ms}: {told}");
        }
    }
}
