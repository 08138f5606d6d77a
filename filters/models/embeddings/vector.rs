//! Vectors as JSON numbers and as base64. What goes in exactly comes out: a number is written with as many digits as
//! its 32 bits need.

use std::fmt::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Encoding;
use crate::json::{Error, Type, Walker};

/// Reads an array of numbers; `None` where it is not one, or a number has no 32-bit form.
pub fn read_floats(array: &str) -> Option<Vec<f32>> {
    let mut walk = Walker::over(array);
    if walk.peek().ok()? != Type::Array {
        return None;
    }
    let mut floats = Vec::with_capacity(array.len() / 12);
    let mut is_finite = true;
    walk.array(|walk, _| {
        let float: f32 = walk.number()?.parse().unwrap_or(f32::NAN);
        is_finite &= float.is_finite();
        floats.push(float);
        Ok::<(), Error>(())
    })
    .ok()?;
    is_finite.then_some(floats)
}

/// Reads base64 of little-endian floats; `None` where it is not one, or a float is not a number.
pub fn read_base64(text: &str) -> Option<Vec<f32>> {
    let bytes = STANDARD.decode(text).ok()?;
    let (floats, rest) = bytes.as_chunks::<4>();
    let floats: Vec<f32> = floats
        .iter()
        .map(|four| f32::from_le_bytes(*four))
        .collect();
    (rest.is_empty() && floats.iter().all(|float| float.is_finite())).then_some(floats)
}

/// Writes a vector as JSON.
pub fn write(floats: &[f32], encoding: Encoding, out: &mut Vec<u8>) {
    match encoding {
        Encoding::Float => {
            out.push(b'[');
            for (at, float) in floats.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                // Writing to a vector does not fail. Rust writes floats without an exponent, which is JSON.
                _ = write!(TextOut(out), "{float}");
            }
            out.push(b']');
        }
        Encoding::Base64 => {
            let bytes: Vec<u8> = floats
                .iter()
                .flat_map(|float| float.to_le_bytes())
                .collect();
            out.push(b'"');
            out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
            out.push(b'"');
        }
    }
}

/// Takes text into bytes.
struct TextOut<'o>(&'o mut Vec<u8>);

impl Write for TextOut<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Scales a vector to the length 1; one without length stays.
pub fn normalise(floats: &mut [f32]) {
    let square: f64 = floats.iter().map(|float| f64::from(*float).powi(2)).sum();
    let length = square.sqrt();
    if length > 0.0 {
        for float in floats {
            *float = (f64::from(*float) / length) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    fn written(floats: &[f32], encoding: Encoding) -> String {
        let mut out = Vec::new();
        write(floats, encoding, &mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn a_vector_comes_back_from_both_encodings_bit_by_bit(
            floats in proptest::collection::vec(
                any::<f32>().prop_filter("finite", |float| float.is_finite()), 0..40)
        ) {
            let bits = |floats: &[f32]| floats.iter().map(|f| f.to_bits()).collect::<Vec<_>>();
            let array = written(&floats, Encoding::Float);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&array).is_ok());
            prop_assert_eq!(bits(&read_floats(&array).unwrap()), bits(&floats));
            let text = written(&floats, Encoding::Base64);
            prop_assert_eq!(bits(&read_base64(text.trim_matches('"')).unwrap()), bits(&floats));
        }

        #[test]
        fn a_normalised_vector_has_the_length_one(
            mut floats in proptest::collection::vec(-1e6_f32..1e6, 1..40)
        ) {
            prop_assume!(floats.iter().any(|float| float.abs() > 1e-3));
            normalise(&mut floats);
            let square: f64 = floats.iter().map(|float| f64::from(*float).powi(2)).sum();
            prop_assert!((square - 1.0).abs() < 1e-5, "{}", square);
        }
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        for bad in ["1", "[1,\"a\"]", "[1e99]", "[null]", "{}", "\"x\""] {
            assert!(read_floats(bad).is_none(), "{bad}");
        }
        for bad in ["AAA", "AAAA", "****", "AADAfw=="] {
            assert!(read_base64(bad).is_none(), "{bad}");
        }
        assert_eq!(read_base64("AACAPw==").unwrap(), [1.0]);
    }

    #[test]
    fn a_vector_without_length_stays() {
        let mut none = [0.0, 0.0];
        normalise(&mut none);
        assert_eq!(none, [0.0, 0.0]);
    }
}
