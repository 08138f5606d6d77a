//! For how long what is asked and answered in the calls of an organization may be kept in memory.

use std::str::FromStr;

use super::caller::UnknownValue;

/// The most hours.
const MAX_HOURS: u8 = 72;
const HOUR_MS: i64 = 3_600_000;

/// So many hours from now on, or not at all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyHours(Option<u8>);

impl BodyHours {
    /// Returns when the time is over that begins now, both in unix milliseconds; `None`: nothing may be kept.
    pub fn until_ms(self, now_ms: i64) -> Option<i64> {
        Some(now_ms.saturating_add(i64::from(self.0?) * HOUR_MS))
    }
}

impl FromStr for BodyHours {
    type Err = UnknownValue;
    fn from_str(word: &str) -> Result<Self, UnknownValue> {
        const ACCEPTED: UnknownValue = UnknownValue("off, or hours such as 4h, 1h to 72h");
        if word == "off" {
            return Ok(Self(None));
        }
        let hours = word.strip_suffix('h').and_then(|hours| hours.parse().ok());
        let hours = hours.filter(|hours| (1..=MAX_HOURS).contains(hours));
        hours.map(|hours| Self(Some(hours))).ok_or(ACCEPTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_few_and_others_are_refused_with_what_is_accepted() {
        let until = |word: &str| word.parse::<BodyHours>().map(|hours| hours.until_ms(1));
        assert_eq!(until("off"), Ok(None));
        assert_eq!(until("1h"), Ok(Some(3_600_001)));
        assert_eq!(until("72h"), Ok(Some(72 * 3_600_000 + 1)));
        for wrong in ["", "0h", "73h", "4", "4d", "-1h", "1.5h", "on", "999h"] {
            let told = until(wrong).map_err(|error| error.to_string());
            assert!(
                told.is_err_and(|told| told.contains("1h to 72h")),
                "{wrong}"
            );
        }
    }
}
