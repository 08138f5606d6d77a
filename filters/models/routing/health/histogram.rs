//! A histogram of measured times or rates that forgets: a value weighs less with time and with each later value.

/// Buckets of a doubling: their bounds are 19 % apart, and readings interpolate.
const PER_DOUBLING: f32 = 4.0;
/// 16 doublings: from 1 to 65,536, of milliseconds or of tokens a second.
const BUCKETS: usize = 64;
/// The time in which the weight of a value halves.
const HALF_LIFE_MS: f64 = 300_000.0;
/// The weight of all values together, so that a busy provider's latest 64 values decide.
const MAX_WEIGHT: f32 = 64.0;
/// Below this weight nothing is known.
const MIN_WEIGHT: f64 = 0.2;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    weights: [f32; BUCKETS],
    sum: f32,
    at_ms: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            weights: [0.0; BUCKETS],
            sum: 0.0,
            at_ms: 0,
        }
    }
}

impl Histogram {
    /// Adds a value. Cost: one pass over the buckets.
    pub(super) fn add(&mut self, value: f64, now_ms: u64) {
        let age_ms = now_ms.saturating_sub(self.at_ms) as f64;
        let by_age = (-age_ms / HALF_LIFE_MS).exp2() as f32;
        let by_count = (MAX_WEIGHT - 1.0) / (self.sum * by_age).max(MAX_WEIGHT - 1.0);
        let kept = by_age * by_count;
        for weight in &mut self.weights {
            *weight *= kept;
        }
        let bucket = (value.max(1.0).log2() as f32 * PER_DOUBLING) as usize;
        if let Some(weight) = self.weights.get_mut(bucket.min(BUCKETS - 1)) {
            *weight += 1.0;
        }
        self.sum = self.sum * kept + 1.0;
        self.at_ms = now_ms;
    }

    /// Returns the value that this share of the weight does not exceed; `None` without values.
    pub(super) fn quantile(&self, share: f32) -> Option<f32> {
        let wanted = self.sum * share;
        let mut passed = 0.0;
        for (bucket, weight) in self.weights.iter().enumerate() {
            if *weight > 0.0 && passed + weight >= wanted {
                let inside = ((wanted - passed) / weight).clamp(0.0, 1.0);
                return Some(((bucket as f32 + inside) / PER_DOUBLING).exp2());
            }
            passed += weight;
        }
        None
    }

    /// Returns when the values will have been forgotten.
    pub(super) fn known_until_ms(&self) -> u64 {
        let halvings = (f64::from(self.sum) / MIN_WEIGHT).log2();
        self.at_ms + (halvings * HALF_LIFE_MS).max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    fn median(values: impl IntoIterator<Item = (f64, u64)>) -> f32 {
        let mut histogram = Histogram::default();
        for (value, at_ms) in values {
            histogram.add(value, at_ms);
        }
        histogram.quantile(0.5).unwrap()
    }

    #[test]
    fn later_values_weigh_more() {
        let slow = (0..1000).map(|at| (4000.0, at));
        let early = median(slow.clone().chain((0..30).map(|at| (200.0, 1000 + at))));
        let late = median(slow.chain((0..60).map(|at| (200.0, 1000 + at))));
        assert!(early > 3000.0 && late < 300.0, "{early} {late}");
    }

    #[test]
    fn values_are_forgotten_with_time() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        (0..50).for_each(|at| histogram.add(4000.0, at));
        let (many, until) = (histogram.quantile(0.5).unwrap(), histogram.known_until_ms());
        assert!(
            many > 3000.0 && (2_300_000..2_600_000).contains(&until),
            "{until}"
        );
        histogram.add(100.0, 3_000_000);
        assert!(histogram.quantile(0.5).unwrap() < 125.0);
    }

    proptest! {
        #[test]
        fn the_median_lies_within_a_bucket_of_the_true_one(
            values in proptest::collection::vec(1.0..60_000.0_f64, 1..60),
        ) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let read = median(values.into_iter().map(|value| (value, 0)));
            let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
            prop_assert!(f64::from(read) >= low / 1.2 && f64::from(read) <= high * 1.2);
        }
    }
}
