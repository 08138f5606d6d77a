//! Amounts and prices.

use std::fmt;

/// Fraction digits of an amount.
const DIGITS: usize = 18;
/// One dollar.
const ONE: u64 = 10_u64.pow(DIGITS as u32);
/// Dollars that nobody writes down as one amount.
const MOST: u64 = 10_u64.pow(12);
/// Fraction digits of a price per million tokens: the twelve that leave a whole number of 1e-18 per token.
const PRICE_DIGITS: usize = 12;

/// An amount of US dollars. Units: 1e-18 USD. Source: docs/decisions.md 15.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Usd(i128);

/// A price. Units: 1e-18 USD for one token, or for one call.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Price(u64);

/// Why a text is no amount.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidAmount(String);

impl fmt::Display for InvalidAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidAmount {}

impl Price {
    /// A price per million tokens, as a plain decimal with at most 12 fraction digits.
    ///
    /// Errors: signs, exponents, more digits, more than 18 USD per token.
    pub fn per_million(text: &str) -> Result<Self, InvalidAmount> {
        // 12 digits per million are 18 per token: the same integer.
        parse(text, PRICE_DIGITS).and_then(|units| Self::of(text, units))
    }

    /// A price per call, as a plain decimal with at most 18 fraction digits.
    ///
    /// Errors: as [`Self::per_million`].
    pub fn per_call(text: &str) -> Result<Self, InvalidAmount> {
        parse(text, DIGITS).and_then(|units| Self::of(text, units))
    }

    fn of(text: &str, units: u128) -> Result<Self, InvalidAmount> {
        u64::try_from(units)
            .map(Self)
            .map_err(|_| InvalidAmount(format!("{text:?} is too large a price")))
    }

    /// A price in 1e-18 USD.
    pub(super) const fn of_units(units: u64) -> Self {
        Self(units)
    }

    /// What this many cost. Exact for any count: 2^64 × 2^63 fits.
    pub fn times(self, count: u64) -> Usd {
        Usd(i128::from(self.0).saturating_mul(i128::from(count)))
    }

    /// Whether it is free.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// For comparing providers, never for money.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The price of one as a plain decimal: `0.0000025`.
    pub fn of_one(self) -> String {
        self.times(1).to_string()
    }
}

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount that somebody wrote: a plain decimal with at most 18 fraction digits and 12 before the point.
    ///
    /// Our choice: a trillion dollars bound it, so that no sum of amounts ever overflows. Errors: signs, exponents,
    /// more digits.
    pub fn parse(text: &str) -> Result<Self, InvalidAmount> {
        let amount = Self::restore(text)?;
        if text.starts_with('-') || amount.0 >= i128::from(ONE) * i128::from(MOST) {
            let why = "is no amount from 0 to less than 1000000000000 USD";
            return Err(InvalidAmount(format!("{text:?} {why}")));
        }
        Ok(amount)
    }

    /// An amount that [`Self::write`] wrote, sums and debts among them.
    ///
    /// Errors: what was never written so.
    pub fn restore(text: &str) -> Result<Self, InvalidAmount> {
        let (digits, is_debt) = match text.strip_prefix('-') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let units = parse(digits, DIGITS)?;
        let units = i128::try_from(units)
            .map_err(|_| InvalidAmount(format!("{text:?} has too many digits")))?;
        Ok(Self(if is_debt { -units } else { units }))
    }

    /// The difference, which may be a debt.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This share of it, rounded down to 1e-18. Units: 1e-9 of the whole, so that 12.5 % are 125,000,000.
    #[must_use]
    pub fn share(self, billionths: u64) -> Self {
        const WHOLE: i128 = 1_000_000_000;
        let (whole, rest) = (self.0 / WHOLE, self.0 % WHOLE);
        let billionths = i128::from(billionths);
        // Taken apart, neither product overflows for any amount that is kept.
        Self(
            whole
                .saturating_mul(billionths)
                .saturating_add(rest.saturating_mul(billionths) / WHOLE),
        )
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum; an amount that nobody has does not overflow.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// As an integer. Units: 1e-18 USD.
    pub fn units(self) -> i128 {
        self.0
    }

    /// From an integer. Units: 1e-18 USD.
    pub const fn from_units(units: i128) -> Self {
        Self(units)
    }

    /// Appends the shortest plain decimal, which is a JSON number too.
    pub fn write(self, out: &mut String) {
        let units = self.0.unsigned_abs();
        if self.0 < 0 {
            out.push('-');
        }
        // What a request costs fits 64 bits, in which dividing is ten times as fast.
        let fraction = match u64::try_from(units) {
            Ok(0) => return out.push('0'),
            Ok(units) => {
                out.push_str(itoa::Buffer::new().format(units / ONE));
                units % ONE
            }
            Err(_) => {
                out.push_str(itoa::Buffer::new().format(units / u128::from(ONE)));
                (units % u128::from(ONE)) as u64
            }
        };
        // The digits of one and the fraction are those of the fraction behind a one.
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(ONE + fraction).trim_end_matches('0');
        if let Some(digits) = digits.get(1..).filter(|digits| !digits.is_empty()) {
            out.push('.');
            out.push_str(digits);
        }
    }

    /// As a counter of Prometheus wants it, which counts in floats.
    pub fn to_f64_for_metrics(self) -> f64 {
        self.0 as f64 / 1e18
    }
}

impl fmt::Display for Usd {
    /// The shortest plain decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(32);
        self.write(&mut text);
        f.write_str(&text)
    }
}

/// A plain decimal as an integer of this many fraction digits.
fn parse(text: &str, digits: usize) -> Result<u128, InvalidAmount> {
    let bad = |why: &str| InvalidAmount(format!("{text:?} {why}"));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let is_open = text.contains('.') && fraction.is_empty();
    if whole.is_empty() || is_open || !is_digits(whole) || !is_digits(fraction) {
        return Err(bad("is not a plain decimal such as \"2.50\""));
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > digits {
        return Err(bad(&format!("has more than {digits} fraction digits")));
    }
    let padded = format!("{whole}{fraction:0<digits$}");
    padded.parse().map_err(|_| bad("has too many digits"))
}
