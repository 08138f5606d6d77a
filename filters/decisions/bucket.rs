//! Buckets: a user falls into one of ten thousand, and ranges of buckets belong to variations. Source:
//! docs/facts/decision-engine.md B.

use super::murmur;

/// The seed that all SDKs share.
const SEED: u32 = 1;
/// The number of buckets.
const BUCKET_COUNT: u64 = 10_000;

/// A range of buckets.
#[derive(Clone, Debug)]
pub(super) struct BucketRange<T> {
    /// The first bucket after the range.
    pub(super) end: u32,
    pub(super) owner: T,
}

/// Returns the bucket of a user in a parent, which is an experiment, a group or a holdout: 0 to 9999.
pub fn bucket(bucketing_id: &str, parent_id: &str) -> u32 {
    let hash = murmur::hash(SEED, [bucketing_id.as_bytes(), parent_id.as_bytes()]);
    // Other SDKs compute the same number with floats.
    ((u64::from(hash) * BUCKET_COUNT) >> 32) as u32
}

/// Returns the owner of the first range that contains `bucket`.
pub(super) fn owner<T>(ranges: &[BucketRange<T>], bucket: u32) -> Option<&T> {
    ranges
        .iter()
        .find(|range| bucket < range.end)
        .map(|range| &range.owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_fall_into_the_buckets_of_all_sdks() {
        for (user, parent, expected) in [
            ("ppid1", "1886780721", 5254),
            ("ppid2", "1886780721", 4299),
            ("ppid2", "1886780722", 2434),
            ("ppid3", "1886780721", 5439),
            ("matjaz", "16910084756", 2477),
            ("user-1", "16911963060", 4880),
            ("", "", 3175),
            ("é", "1", 3677),
            ("用户-", "1x", 7534),
        ] {
            assert_eq!(bucket(user, parent), expected, "{user}{parent}");
        }
    }

    #[test]
    fn where_a_text_is_cut_does_not_matter() {
        let text = "a text of some length, 31 bytes";
        for cut in 0..=text.len() {
            let (user, parent) = text.split_at(cut);
            assert_eq!(bucket(user, parent), bucket(text, ""), "{cut}");
        }
    }
}
