//! The lines of a bill, and how far two amounts may lie apart.

use std::fmt;

use jiff::civil::Date;

use crate::money::Usd;

/// The digits of a fraction that amounts keep.
const FRACTION_DIGITS: i64 = 18;
/// The most digits of an amount before and behind the point together, which bounds what an exponent may ask for.
const MAX_DIGITS: usize = 40;
/// The parts of a whole in which a difference is counted.
const WHOLE: u128 = 1_000_000;

/// What a bill or the ledger says of calls. `None`: it does not say.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Amounts {
    pub requests: Option<u64>,
    /// All prompt tokens, with those of caches.
    pub input: Option<u64>,
    /// Prompt tokens read from a cache.
    pub cached: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write: Option<u64>,
    /// All completion tokens, with those of reasoning.
    pub output: Option<u64>,
    pub cost: Option<Usd>,
}

/// A line of a bill.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BillLine {
    /// The day in UTC.
    pub day: Date,
    /// The provider's own name of the model; `None`: the line is of no model.
    pub model: Option<Box<str>>,
    /// The service tier, if it is not the usual one.
    pub tier: Option<Box<str>>,
    pub amounts: Amounts,
}

/// A thing that is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Measure {
    Requests,
    Input,
    Cached,
    CacheWrite,
    Output,
    Cost,
}

impl Measure {
    /// All measures.
    pub const ALL: [Self; 6] = [
        Self::Requests,
        Self::Input,
        Self::Cached,
        Self::CacheWrite,
        Self::Output,
        Self::Cost,
    ];
    /// Those that are counted, and not money.
    pub const COUNTS: [Self; 5] = [
        Self::Requests,
        Self::Input,
        Self::Cached,
        Self::CacheWrite,
        Self::Output,
    ];
}

impl Amounts {
    /// Adds what another one says.
    pub fn add(&mut self, other: &Self) {
        let count = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = match (*sum, more) {
                (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
                (sum, more) => sum.or(more),
            };
        };
        count(&mut self.requests, other.requests);
        count(&mut self.input, other.input);
        count(&mut self.cached, other.cached);
        count(&mut self.cache_write, other.cache_write);
        count(&mut self.output, other.output);
        self.cost = match (self.cost, other.cost) {
            (Some(sum), Some(more)) => Some(sum.plus(more)),
            (sum, more) => sum.or(more),
        };
    }

    /// Returns a measure as an integer: a count, or units of 1e-18 USD.
    pub fn measured(&self, measure: Measure) -> Option<i128> {
        let count = match measure {
            Measure::Requests => self.requests,
            Measure::Input => self.input,
            Measure::Cached => self.cached,
            Measure::CacheWrite => self.cache_write,
            Measure::Output => self.output,
            Measure::Cost => return self.cost.map(Usd::units),
        };
        count.map(i128::from)
    }
}

/// The share of an amount by which another one may differ. Units: millionths.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tolerance(u64);

/// A text that is no tolerance.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidTolerance(String);

impl fmt::Display for InvalidTolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no share from 0% to 100% with at most four digits behind the point, such as 1% or 0.25%",
            self.0
        )
    }
}

impl Tolerance {
    /// Parses a share, such as `1%`.
    ///
    /// Errors: no per cent sign, more than 100 or four digits behind the point.
    pub fn parse(text: &str) -> Result<Self, InvalidTolerance> {
        let invalid = || InvalidTolerance(text.chars().take(40).collect());
        let number = text.strip_suffix('%').ok_or_else(invalid)?;
        let usd = Usd::parse(number).map_err(|_| invalid())?;
        let (parts, rest) = (usd.units() / 10_i128.pow(14), usd.units() % 10_i128.pow(14));
        let parts = u64::try_from(parts).ok();
        let parts = parts.filter(|parts| rest == 0 && u128::from(*parts) <= WHOLE);
        parts.map(Self).ok_or_else(invalid)
    }

    /// Returns whether two amounts lie no farther apart.
    pub fn allows(self, one: i128, other: i128) -> bool {
        share(one, other) <= self.0
    }

    /// Returns whether a difference is none of an amount.
    pub fn allows_difference(self, difference: i128, of: i128) -> bool {
        let bound = of.unsigned_abs().saturating_mul(u128::from(self.0));
        difference.unsigned_abs().saturating_mul(WHOLE) <= bound
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} %",
            Usd::from_units(i128::from(self.0) * 10_i128.pow(14))
        )
    }
}

/// Returns the share of the larger amount by which two differ. Units: millionths, rounded up, so that no difference is none.
pub fn share(one: i128, other: i128) -> u64 {
    let difference = one.abs_diff(other);
    if difference == 0 {
        return 0;
    }
    let larger = one.unsigned_abs().max(other.unsigned_abs()).max(1);
    let share = difference.saturating_mul(WHOLE).div_ceil(larger);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Reads an amount of dollars as JSON and tables write it: `0.06`, `6e-05`, `"0.06"`. What is behind 18 digits is cut off.
pub fn parse_amount(text: &str) -> Option<Usd> {
    let text = text.trim().trim_matches('"');
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let all = format!("{whole}{fraction}");
    let all = all.trim_start_matches('0');
    if all.is_empty() {
        return Some(Usd::ZERO);
    }
    // The place of the last digit, in units of 1e-18 USD.
    let place = exponent
        .checked_sub(i64::try_from(fraction.len()).ok()?)?
        .checked_add(FRACTION_DIGITS)?;
    let kept = match place {
        0.. => all.to_owned() + &"0".repeat(usize::try_from(place).ok()?.min(MAX_DIGITS)),
        cut => {
            let cut = usize::try_from(cut.checked_neg()?).unwrap_or(usize::MAX);
            let kept = all.len().saturating_sub(cut);
            all.get(..kept)?.to_owned()
        }
    };
    match kept.len() {
        0 => Some(Usd::ZERO),
        30.. => None,
        _ => Some(Usd::from_units(kept.parse::<i128>().ok()? * sign)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_written() {
        for (text, expected) in [
            ("0.06", "0.06"),
            ("\"0.8958740000000000\"", "0.895874"),
            ("6e-05", "0.00006"),
            ("1.5E2", "150"),
            ("-12", "-12"),
            ("0", "0"),
            ("0e99999999999", "0"),
            ("1e-30", "0"),
            ("0.1234567890123456789", "0.123456789012345678"),
            ("000000000000000000000000000000000000000000000001", "1"),
        ] {
            let read = parse_amount(text).map(|usd| usd.to_string());
            assert_eq!(read.as_deref(), Some(expected), "{text}");
        }
        let huge = "9".repeat(200);
        for bad in [
            "",
            "-",
            "1,5",
            "1.2.3",
            "e5",
            "1e",
            ".5",
            "1e12",
            "1e9999999999",
            "NaN",
            "{}",
            &huge,
        ] {
            assert_eq!(parse_amount(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_tolerance_is_a_share() {
        let of = |text| Tolerance::parse(text).unwrap();
        assert_eq!(
            (of("1%"), of("0.25%"), of("0%")),
            (Tolerance(10_000), Tolerance(2_500), Tolerance(0))
        );
        assert_eq!(of("12.5%").to_string(), "12.5 %");
        for bad in ["", "%", "1", "-1%", "101%", "0.00001%", "1e1%", "one%"] {
            let error = Tolerance::parse(bad).unwrap_err();
            assert!(error.to_string().contains("such as 1%"), "{error}");
        }
        assert!(of("1%").allows(99, 100) && !of("1%").allows(98, 100));
        assert!(of("0%").allows(0, 0) && !of("99%").allows(0, 1));
        assert!(of("100%").allows(0, i128::MAX));
        assert_eq!(share(1, 3), 666_667);
        assert_eq!(share(10_i128.pow(12), 10_i128.pow(12) + 1), 1);
    }
}
