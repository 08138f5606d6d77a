#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// CRC-32 and HMAC-SHA256 of the key of 37 zeros under a pepper of 32 sevens, computed by Python's zlib and hmac.
const ZEROS_SUM: &str = "3jnQlY";
const ZEROS_HASH: &str = "567eef23fe6223f58887a9152b3aba7194376d557b04c8a87512cbaa485f215d";

fn made(seed: u8) -> KeyText {
    let mut entropy = [0_u8; 32];
    for (at, byte) in (0_u8..).zip(entropy.iter_mut()) {
        *byte = at.wrapping_mul(37).wrapping_add(seed.wrapping_mul(101));
    }
    KeyText::from_entropy(&entropy)
}

fn pepper(fill: u8) -> Pepper {
    Pepper::parse(&[fill; 32]).ok().unwrap()
}

fn is_key(text: &[u8]) -> bool {
    ApiKey::parse(text).is_ok()
}

#[test]
fn a_made_key_is_wg_and_43_base62_characters() {
    let key = made(1);
    let body = key.reveal().strip_prefix("wg_").unwrap();
    assert_eq!(body.len(), 43);
    assert!(body.bytes().all(|byte| byte.is_ascii_alphanumeric()));
}

#[test]
fn the_checksum_is_the_crc_32_of_the_random_part() {
    // The check value of CRC-32/ISO-HDLC, and the same number in base62.
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    let number = checksum(b"123456789").iter().fold(0_u64, |number, byte| {
        let value = DIGITS.iter().position(|digit| digit == byte).unwrap();
        number * 62 + value as u64
    });
    assert_eq!(number, 0xCBF4_3926);
}

#[test]
fn every_single_wrong_character_is_caught() {
    let key = made(2);
    for at in 0..KEY_LEN {
        for byte in 0..=255_u8 {
            let mut typo = key.reveal().as_bytes().to_vec();
            if typo[at] != byte {
                typo[at] = byte;
                assert!(!is_key(&typo), "position {at}, byte {byte}");
            }
        }
    }
}

#[test]
fn two_swapped_neighbours_are_caught() {
    let key = made(3);
    for at in 3..KEY_LEN - 1 {
        let mut typo = key.reveal().as_bytes().to_vec();
        typo.swap(at, at + 1);
        assert_eq!(is_key(&typo), typo == key.reveal().as_bytes(), "at {at}");
    }
}

#[test]
fn other_lengths_are_no_keys() {
    let text = made(4).reveal().to_owned();
    assert!(!is_key(b""));
    assert!(!is_key(&text.as_bytes()[..45]));
    assert!(!is_key(format!("{text}0").as_bytes()));
}

#[test]
fn different_entropy_makes_different_keys() {
    let keys: HashSet<String> = (0..=255)
        .map(|seed| made(seed).reveal().to_owned())
        .collect();
    assert_eq!(keys.len(), 256);
}

#[test]
fn the_last_entropy_bit_changes_the_key() {
    let one = KeyText::from_entropy(&[0; 32]);
    let mut entropy = [0; 32];
    entropy[31] = 1;
    assert_ne!(one.reveal(), KeyText::from_entropy(&entropy).reveal());
}

#[test]
fn the_hash_is_hmac_sha256_under_the_pepper() {
    let zeros = KeyText::from_entropy(&[0; 32]);
    assert_eq!(
        zeros.reveal(),
        format!("wg_{}{}", "0".repeat(37), ZEROS_SUM)
    );
    let hash = pepper(7).hash(zeros.to_api_key());
    let hex: String = hash
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(hex, ZEROS_HASH);
}

#[test]
fn another_pepper_makes_another_hash_and_another_mark() {
    let key = made(5);
    assert!(pepper(1).hash(key.to_api_key()) != pepper(2).hash(key.to_api_key()));
    assert_ne!(pepper(1).fingerprint(), pepper(2).fingerprint());
}

#[test]
fn a_pepper_below_32_bytes_is_refused() {
    assert!(Pepper::parse(&[7; 31]).is_err());
    assert!(Pepper::parse(&[7; 100]).is_ok());
}

#[test]
fn hashes_that_differ_in_any_one_bit_are_not_equal() {
    let hash = pepper(1).hash(made(6).to_api_key());
    for bit in 0..256_usize {
        let mut bytes = *hash.as_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(KeyHash::from_bytes(bytes) != hash, "bit {bit}");
    }
    assert!(KeyHash::from_bytes(*hash.as_bytes()) == hash);
}

proptest! {
    #[test]
    fn every_made_key_is_well_formed(entropy: [u8; 32]) {
        let key = KeyText::from_entropy(&entropy);
        prop_assert!(is_key(key.reveal().as_bytes()));
        prop_assert!(key.reveal().ends_with(&key.to_api_key().last_four()));
    }

    #[test]
    fn any_bytes_are_parsed_without_a_panic(text: Vec<u8>) {
        let _ = is_key(&text);
    }
}

#[test]
fn the_last_four_characters_name_a_key() {
    let key = made(1);
    assert!(key.reveal().ends_with(&key.to_api_key().last_four()));
    assert_eq!(key.to_api_key().last_four().len(), 4);
}

#[test]
fn each_purpose_has_a_key_of_its_own() {
    let derived = |fill: u8, purpose: &str| pepper(fill).derive(purpose);
    assert_eq!(derived(1, "tokens"), derived(1, "tokens"));
    assert_ne!(derived(1, "tokens"), derived(1, "cookies"));
    assert_ne!(derived(1, "tokens"), derived(2, "tokens"));
}

#[test]
fn hashes_of_different_keys_spread_in_a_map() {
    use std::hash::BuildHasher;
    let state = std::hash::RandomState::new();
    let hashes = (0..100).map(|seed| state.hash_one(pepper(1).hash(made(seed).to_api_key())));
    assert_eq!(hashes.collect::<HashSet<u64>>().len(), 100);
}

/// The look-up compares hashes, so its duration does not show how much of a guessed key is right.
#[test]
fn a_key_that_is_nearly_right_has_another_hash_altogether() {
    let (pepper, key) = (pepper(1), made(1));
    let right = pepper.hash(key.to_api_key());
    for nearly in 0..60_u8 {
        let mut entropy = [1; 32];
        entropy[31] = nearly;
        let other = KeyText::from_entropy(&entropy);
        if other.reveal() == key.reveal() {
            continue;
        }
        let other = pepper.hash(other.to_api_key());
        let pairs = right.as_bytes().iter().zip(other.as_bytes());
        assert!(pairs.take_while(|(a, b)| a == b).count() <= 2, "{nearly}");
    }
}
