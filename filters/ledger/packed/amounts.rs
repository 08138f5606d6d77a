//! Amounts of packed calls.

use crate::money::Usd;

/// Amounts keep at most this many zeros apart from their digits.
const MAX_ZEROS: u32 = 18;

/// Splits trailing zeros off an amount, so that a price of a few digits takes few bytes. Amounts beyond 1e17 USD, which
/// no sum of money reaches, become that.
pub(super) fn pack_usd(usd: Usd) -> u128 {
    const MAX_UNITS: i128 = 10_i128.pow(35);
    let units = usd.units().clamp(-MAX_UNITS, MAX_UNITS);
    let mut digits = units.unsigned_abs();
    let mut zeros = 0;
    // Division of 64 bits is ten times as fast, and holds the cost of any one call.
    if let Ok(mut small) = u64::try_from(digits)
        && small != 0
    {
        for step in [8, 4, 4, 2, 1] {
            let power = 10_u64.pow(step);
            if zeros + step <= MAX_ZEROS && small.is_multiple_of(power) {
                small /= power;
                zeros += step;
            }
        }
        digits = small.into();
    }
    let packed = digits * u128::from(MAX_ZEROS + 1) + u128::from(zeros);
    packed << 1 | u128::from(units < 0)
}

/// Returns the amount of packed digits.
pub(super) fn unpack_usd(packed: u128) -> Usd {
    let (digits, zeros) = (packed >> 1, (packed >> 1) % u128::from(MAX_ZEROS + 1));
    let digits = digits / u128::from(MAX_ZEROS + 1);
    let power = 10_u128.pow(u32::try_from(zeros).unwrap_or_default());
    let units = i128::try_from(digits.saturating_mul(power)).unwrap_or(i128::MAX);
    Usd::from_units(if packed & 1 == 1 { -units } else { units })
}
