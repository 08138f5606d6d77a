//! Numbers that mappings and candidates have in every catalogue, for what is remembered of them beyond one.

use sha2::{Digest, Sha256};

/// Returns the id of the mapping of a model at a provider. Of mappings with equal names, `copy` is the number of those
/// before it.
pub(super) fn mapping_id(model: &str, provider: &str, upstream: &str, copy: usize) -> u64 {
    let copy = (copy as u64).to_le_bytes();
    let names = [model, provider, upstream].map(str::as_bytes);
    hash(names.into_iter().chain([&copy[..]]))
}

/// Returns the id of a candidate: its mapping in a region, or where none is named.
pub(super) fn candidate_id(mapping: u64, region: Option<&str>) -> u64 {
    match region {
        None => mapping,
        Some(region) => hash([&mapping.to_le_bytes(), region.as_bytes()].into_iter()),
    }
}

fn hash<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let digest: [u8; 32] = digest.finalize().into();
    u64::from_le_bytes(digest.first_chunk().copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_and_each_copy_has_its_own_number() {
        let one = mapping_id("m", "p", "u", 0);
        assert_eq!(candidate_id(one, None), one);
        let others = [
            mapping_id("m", "p", "u", 1),
            mapping_id("mp", "", "u", 0),
            mapping_id("m", "pu", "", 0),
            mapping_id("p", "m", "u", 0),
            candidate_id(one, Some("")),
            candidate_id(one, Some("eu")),
            candidate_id(mapping_id("m", "p", "u", 1), Some("eu")),
        ];
        for (at, other) in others.iter().enumerate() {
            assert_ne!(one, *other);
            assert!(!others[..at].contains(other));
        }
    }
}
