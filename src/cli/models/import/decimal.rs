//! Numbers of price tables as decimal text.

use serde_json::value::RawValue;

/// The number of significant digits up to which a double is exact.
const EXACT_DIGITS: usize = 15;

/// Formats a JSON number as a plain decimal with its point moved `places` to the right. Returns `None` for any other
/// value. Digits after the fifteenth are noise of floats, so the number is rounded there.
pub(in crate::cli) fn shift_point(number: &str, places: i64) -> Option<String> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (digits, carried) = rounded(&digits)?;
    let point = i64::try_from(whole.len()).ok()? + exponent + places + carried;
    if !(-64..=64).contains(&point) {
        return None;
    }
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let padded = format!("{}{digits}", zeros(-point));
    let point = usize::try_from(point.max(0)).ok()?;
    let padded = format!("{padded}{}", zeros(point as i64 - padded.len() as i64));
    let (whole, fraction) = padded.split_at(point);
    let (whole, fraction) = (
        whole.trim_start_matches('0'),
        fraction.trim_end_matches('0'),
    );
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if fraction.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction}")
    })
}

/// Rounds digits after the last exact one. Returns them, and the number of digits that the rounding added in front.
fn rounded(digits: &str) -> Option<(String, i64)> {
    let zeros = digits.len() - digits.trim_start_matches('0').len();
    let exact = zeros + EXACT_DIGITS;
    let Some(next) = digits.as_bytes().get(exact) else {
        return Some((digits.to_owned(), 0));
    };
    let kept = digits.get(..exact)?.parse::<u128>().ok()?;
    let kept = (kept + u128::from(*next >= b'5')).to_string();
    // The sum has no leading zeros, or one digit more than before.
    let padded = format!("{kept:0>exact$}");
    let grown = i64::try_from(padded.len() - exact).ok()?;
    let dropped = "0".repeat(digits.len() - exact);
    Some((format!("{padded}{dropped}"), grown))
}

/// Rounds a plain decimal to this many fraction digits.
pub(in crate::cli) fn round_fraction(decimal: &str, digits: usize) -> String {
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let Some(next) = fraction.as_bytes().get(digits) else {
        return decimal.to_owned();
    };
    let kept = fraction.get(..digits).unwrap_or_default();
    let Ok(units) = format!("{whole}{kept}").parse::<u128>() else {
        return decimal.to_owned();
    };
    let units = units + u128::from(*next >= b'5');
    let padded = format!("{units:0>width$}", width = digits + 1);
    let (whole, fraction) = padded.split_at(padded.len() - digits);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

/// Parses a count, which may be a string or have a fraction.
pub(super) fn parse_count(raw: Option<&RawValue>) -> Option<u64> {
    let text = raw?.get().trim_matches('"');
    text.split_once('.')
        .map_or(text, |(whole, _)| whole)
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_point_moves_and_noise_goes_without_a_float() {
        for (number, places, expected) in [
            ("2.5e-06", 6, "2.5"),
            ("5.46875e-07", 6, "0.546875"),
            ("0.000003", 6, "3"),
            ("1e-5", 6, "10"),
            ("0", 6, "0"),
            ("0.0", 6, "0"),
            ("15", 0, "15"),
            ("0.25", 0, "0.25"),
            ("1.0E+1", 0, "10"),
            ("2.4999999999999998e-06", 6, "2.5"),
            ("0.19999999999999998", 0, "0.2"),
            ("9.999999999999999999", 0, "10"),
            ("1.0000000000000002e-07", 6, "0.1"),
        ] {
            assert_eq!(
                shift_point(number, places).as_deref(),
                Some(expected),
                "{number}"
            );
        }
        assert_eq!(
            (
                shift_point("-1", 0),
                shift_point("\"1\"", 0),
                shift_point("1e999", 0)
            ),
            (None, None, None)
        );
    }
}
