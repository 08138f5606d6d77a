//! Amounts of US dollars and prices.

use std::fmt;

use crate::json::write_number;

/// Fraction digits of an amount.
const FRACTION_DIGITS: usize = 18;
/// One dollar in units.
const UNITS_PER_USD: u64 = 10_u64.pow(FRACTION_DIGITS as u32);
/// The unit of the upper half of a fraction's digits.
const HALF_FRACTION: u64 = 10_u64.pow(FRACTION_DIGITS as u32 / 2);
/// The exclusive maximum of an amount, in dollars.
const MAX_USD: u64 = 10_u64.pow(12);
/// Fraction digits of a price per million tokens. With twelve, a price per token is a whole number of 1e-18 USD.
const PRICE_FRACTION_DIGITS: usize = 12;
/// Fraction digits of a price per thousand.
const THOUSAND_FRACTION_DIGITS: usize = 15;

/// Fraction digits of a factor of prices.
const FACTOR_FRACTION_DIGITS: usize = 6;

/// An amount of US dollars. Units: 1e-18 USD. Source: docs/decisions.md 15.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Usd(i128);

/// A price. Units: 1e-18 USD for one token, call or unit.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Price(u64);

/// A factor of prices. Units: 1e-6.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Factor(u32);

/// Why a text is not an amount.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidAmount(String);

impl fmt::Display for InvalidAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidAmount {}

impl Price {
    /// Parses a price per million tokens: a plain decimal with at most 12 fraction digits.
    ///
    /// Errors: signs, exponents, more digits, more than 18 USD per token.
    pub fn per_million(text: &str) -> Result<Self, InvalidAmount> {
        // 12 digits per million tokens are 18 per token, so the integer is the same.
        parse(text, PRICE_FRACTION_DIGITS).and_then(|units| Self::from_parsed(text, units))
    }

    /// Parses a price per thousand: a plain decimal with at most 15 fraction digits.
    ///
    /// Errors: as [`Self::per_million`].
    pub fn per_thousand(text: &str) -> Result<Self, InvalidAmount> {
        parse(text, THOUSAND_FRACTION_DIGITS).and_then(|units| Self::from_parsed(text, units))
    }

    /// Parses a price per call: a plain decimal with at most 18 fraction digits.
    ///
    /// Errors: as [`Self::per_million`].
    pub fn per_call(text: &str) -> Result<Self, InvalidAmount> {
        parse(text, FRACTION_DIGITS).and_then(|units| Self::from_parsed(text, units))
    }

    fn from_parsed(text: &str, units: u128) -> Result<Self, InvalidAmount> {
        u64::try_from(units)
            .map(Self)
            .map_err(|_| InvalidAmount(format!("{text:?} is too large a price")))
    }

    /// Makes a price of 1e-18 USD.
    pub(super) const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// Returns the cost of `count` tokens or calls. Exact for any count: 2^64 × 2^63 fits.
    pub fn times(self, count: u64) -> Usd {
        Usd(i128::from(self.0).saturating_mul(i128::from(count)))
    }

    /// Returns the price times a factor.
    ///
    /// Errors: the product is no whole number of 1e-18 USD, or too large.
    pub fn scaled(self, factor: Factor) -> Result<Self, InvalidAmount> {
        let product = u128::from(self.0) * u128::from(factor.0);
        let one = u128::from(Factor::ONE.0);
        let units = (product % one == 0).then(|| u64::try_from(product / one).ok());
        units.flatten().map(Self).ok_or_else(|| {
            let (price, factor) = (self.to_decimal(), factor.to_decimal());
            InvalidAmount(format!("{price} times {factor} has more than {FRACTION_DIGITS} fraction digits, or is too large"))
        })
    }

    /// Returns whether the price is zero.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the price as a float, for comparing providers and never for money.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Returns the price of one token, call or unit as a plain decimal: `0.0000025`.
    pub fn to_decimal(self) -> String {
        self.times(1).to_string()
    }
}

impl Factor {
    /// The factor that changes nothing.
    pub const ONE: Self = Self(10_u32.pow(FACTOR_FRACTION_DIGITS as u32));

    /// Parses a plain decimal with at most 6 fraction digits, up to 1000.
    ///
    /// Errors: signs, exponents, more digits, more than 1000.
    pub fn parse(text: &str) -> Result<Self, InvalidAmount> {
        let units = parse(text, FACTOR_FRACTION_DIGITS)?;
        let units = u32::try_from(units).ok();
        let units = units.filter(|units| *units <= 1000 * Self::ONE.0);
        units
            .map(Self)
            .ok_or_else(|| InvalidAmount(format!("{text:?} is more than 1000")))
    }

    /// Returns one minus the factor.
    ///
    /// Errors: the factor is more than one.
    pub fn complement(self) -> Result<Self, InvalidAmount> {
        let rest = Self::ONE.0.checked_sub(self.0).map(Self);
        rest.ok_or_else(|| InvalidAmount(format!("\"{}\" is more than 1", self.to_decimal())))
    }

    /// Returns the shortest plain decimal, which is also a JSON number.
    pub fn to_decimal(self) -> String {
        const UNIT: i128 = 10_i128.pow((FRACTION_DIGITS - FACTOR_FRACTION_DIGITS) as u32);
        Usd(i128::from(self.0) * UNIT).to_string()
    }
}

impl Usd {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Parses an amount from a user: a plain decimal with at most 18 fraction digits and 12 digits before the point.
    ///
    /// Our choice: amounts are below a trillion dollars, so that no sum of amounts overflows. Errors: signs, exponents,
    /// more digits.
    pub fn parse(text: &str) -> Result<Self, InvalidAmount> {
        let amount = Self::parse_signed(text)?;
        if text.starts_with('-') || amount.0 >= i128::from(UNITS_PER_USD) * i128::from(MAX_USD) {
            let reason = "is no amount from 0 to less than 1000000000000 USD";
            return Err(InvalidAmount(format!("{text:?} {reason}")));
        }
        Ok(amount)
    }

    /// Parses an amount that [`Self::write`] wrote, which may be a sum or a debt.
    ///
    /// Errors: the text is not one that [`Self::write`] produces.
    pub fn parse_signed(text: &str) -> Result<Self, InvalidAmount> {
        let (digits, is_negative) = match text.strip_prefix('-') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let units = parse(digits, FRACTION_DIGITS)?;
        let units = i128::try_from(units)
            .map_err(|_| InvalidAmount(format!("{text:?} has too many digits")))?;
        Ok(Self(if is_negative { -units } else { units }))
    }

    /// Returns the difference, which may be negative.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns a share of the amount, rounded down to 1e-18 USD. Units: 1e-9 of the whole, so 12.5 % are 125,000,000.
    #[must_use]
    pub fn share(self, billionths: u64) -> Self {
        const WHOLE: i128 = 1_000_000_000;
        let (whole, rest) = (self.0 / WHOLE, self.0 % WHOLE);
        let billionths = i128::from(billionths);
        // The product is split in two, so that neither part overflows for any stored amount.
        Self(
            whole
                .saturating_mul(billionths)
                .saturating_add(rest.saturating_mul(billionths) / WHOLE),
        )
    }

    /// Returns whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the sum, which saturates far beyond any real amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the amount in units of 1e-18 USD.
    pub fn units(self) -> i128 {
        self.0
    }

    /// Makes an amount of units of 1e-18 USD.
    pub const fn from_units(units: i128) -> Self {
        Self(units)
    }

    /// Appends the shortest plain decimal, which is also a JSON number.
    pub fn write(self, out: &mut Vec<u8>) {
        let units = self.0.unsigned_abs();
        if self.0 < 0 {
            out.push(b'-');
        }
        // The cost of a request fits into 64 bits, where division is ten times as fast.
        let fraction = match u64::try_from(units) {
            Ok(0) => return out.push(b'0'),
            Ok(units) => {
                write_number(units / UNITS_PER_USD, out);
                units % UNITS_PER_USD
            }
            Err(_) => {
                let whole = units / u128::from(UNITS_PER_USD);
                out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
                (units % u128::from(UNITS_PER_USD)) as u64
            }
        };
        // Most costs have zeros in the lower half of the fraction.
        let (upper, lower) = (fraction / HALF_FRACTION, fraction % HALF_FRACTION);
        let mut buffer = itoa::Buffer::new();
        // The decimal digits of 1 plus the fraction are a 1 followed by the padded fraction, so they keep its leading
        // zeros.
        let digits = match lower {
            0 => buffer.format(HALF_FRACTION + upper),
            _ => buffer.format(UNITS_PER_USD + fraction),
        };
        let (_, digits) = digits.as_bytes().split_at(1);
        let end = digits.iter().rposition(|&digit| digit != b'0');
        if let Some(digits) = end.and_then(|end| digits.get(..=end)) {
            out.push(b'.');
            out.extend_from_slice(digits);
        }
    }

    /// Returns the amount in dollars for Prometheus, which counts in floats.
    pub fn to_f64_for_metrics(self) -> f64 {
        self.0 as f64 / 1e18
    }
}

impl fmt::Display for Usd {
    /// Writes the shortest plain decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(32);
        self.write(&mut text);
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Parses a plain decimal into an integer with this many fraction digits.
fn parse(text: &str, digits: usize) -> Result<u128, InvalidAmount> {
    let invalid = |reason: &str| InvalidAmount(format!("{text:?} {reason}"));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let ends_in_point = text.contains('.') && fraction.is_empty();
    if whole.is_empty() || ends_in_point || !is_digits(whole) || !is_digits(fraction) {
        return Err(invalid("is not a plain decimal such as \"2.50\""));
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > digits {
        return Err(invalid(&format!("has more than {digits} fraction digits")));
    }
    let padded = format!("{whole}{fraction:0<digits$}");
    padded.parse().map_err(|_| invalid("has too many digits"))
}
