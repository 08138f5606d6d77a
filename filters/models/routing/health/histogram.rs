//! A histogram of measured times or rates that forgets: a value weighs less with time and with each later value.

/// Buckets of a doubling: their bounds are 19 % apart, and readings interpolate.
const PER_DOUBLING: f32 = 4.0;
/// 16 doublings: from 1 to 65,536, of milliseconds or of tokens a second.
const BUCKETS: usize = 64;
/// The time in which the weight of a value halves.
const HALF_LIFE_MS: f64 = 300_000.0;
/// The weight of all values together, so that a busy provider's latest 64 values decide.
pub(super) const MAX_WEIGHT: f32 = 64.0;
/// Below this weight nothing is known.
const MIN_WEIGHT: f64 = 0.2;

/// Parts of a weight of one, in [`Weights`].
const WEIGHT_PARTS: f32 = 256.0;

/// The buckets that have values, in order, with their weights in 256ths. What processes tell each other.
///
/// Shape of the bytes: the number of buckets, then for each its number and its weight, two bytes little-endian.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Weights(Vec<(u8, u16)>);

impl Weights {
    /// Returns the weight of all values.
    pub(super) fn sum(&self) -> f32 {
        self.0.iter().map(|(_, weight)| part(*weight)).sum()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::try_from(self.0.len()).unwrap_or(u8::MAX));
        for (bucket, weight) in &self.0 {
            out.push(*bucket);
            out.extend(weight.to_le_bytes());
        }
    }

    /// Reads from the front of the bytes; `None`: they are not a histogram, or name a bucket twice or one that there is not.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (count, mut rest) = bytes.split_first()?;
        let (mut weights, mut least) = (Vec::with_capacity((*count).into()), 0);
        for _ in 0..*count {
            let (&[bucket, low, high], after) = rest.split_first_chunk()?;
            let weight = u16::from_le_bytes([low, high]);
            if bucket < least || usize::from(bucket) >= BUCKETS || weight == 0 {
                return None;
            }
            weights.push((bucket, weight));
            (least, rest) = (bucket + 1, after);
        }
        *bytes = rest;
        Some(Self(weights))
    }
}

fn part(weight: u16) -> f32 {
    f32::from(weight) / WEIGHT_PARTS
}

/// Returns the share of a weight that is left after this time.
pub(super) fn kept_after(age_ms: u64) -> f32 {
    (-(age_ms as f64) / HALF_LIFE_MS).exp2() as f32
}

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
        let by_age = kept_after(now_ms.saturating_sub(self.at_ms));
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

    /// Returns the weights at a time.
    pub(super) fn weights(&self, now_ms: u64) -> Weights {
        let kept = kept_after(now_ms.saturating_sub(self.at_ms)) * WEIGHT_PARTS;
        let weights = self.weights.iter().enumerate();
        let weights = weights.filter_map(|(bucket, weight)| {
            let weight = (weight * kept).round() as u16;
            let bucket = u8::try_from(bucket).ok()?;
            (weight > 0).then_some((bucket, weight))
        });
        Weights(weights.collect())
    }

    /// Returns the values of several processes at a time, each with the share of its weights that is left. All together
    /// weigh no more than those of one process may.
    pub(super) fn of_others<'w>(
        others: impl Iterator<Item = (&'w Weights, f32)>,
        now_ms: u64,
    ) -> Self {
        let mut joined = Self {
            at_ms: now_ms,
            ..Self::default()
        };
        for (weights, kept) in others {
            for (bucket, weight) in &weights.0 {
                if let Some(sum) = joined.weights.get_mut(usize::from(*bucket)) {
                    *sum += part(*weight) * kept;
                }
            }
        }
        let sum: f32 = joined.weights.iter().sum();
        joined.scale(MAX_WEIGHT / sum.max(MAX_WEIGHT));
        joined
    }

    /// Returns the values of both.
    pub(super) fn joined(&self, other: &Self) -> Self {
        let (mut early, mut late) = (self.clone(), other.clone());
        if early.at_ms > late.at_ms {
            std::mem::swap(&mut early, &mut late);
        }
        early.scale(kept_after(late.at_ms - early.at_ms));
        for (sum, weight) in late.weights.iter_mut().zip(early.weights) {
            *sum += weight;
        }
        late.sum += early.sum;
        late
    }

    fn scale(&mut self, kept: f32) {
        self.weights.iter_mut().for_each(|weight| *weight *= kept);
        self.sum = self.weights.iter().sum();
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
