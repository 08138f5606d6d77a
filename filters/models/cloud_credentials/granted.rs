//! What a source gives, and how long that is used.

use jiff::Timestamp;

use super::secret_text::SecretText;
use super::sigv4::AwsKeys;

/// What is used is refreshed so many seconds before its end, or a fifth of its life if that is less.
const MAX_REFRESH_AHEAD_S: u64 = 300;
/// The part of a life that is left at a refresh.
const LIFE_PART: u64 = 5;

/// What a source gives.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Granted {
    pub secret: GrantedSecret,
    /// Its end, in Unix seconds; `None`: it has none.
    pub expires_s: Option<u64>,
}

/// A token, or keys that sign.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GrantedSecret {
    Token(SecretText),
    Keys(AwsKeys),
}

impl Granted {
    /// Creates a token that lives so many seconds from now on.
    pub fn token(text: impl Into<std::sync::Arc<str>>, lives_s: u64, now_s: u64) -> Self {
        Self {
            secret: GrantedSecret::Token(SecretText::new(text)),
            expires_s: Some(now_s.saturating_add(lives_s)),
        }
    }

    /// Returns whether it has not ended.
    pub fn is_valid(&self, now_s: u64) -> bool {
        self.expires_s.is_none_or(|end| now_s < end)
    }

    /// Returns when it should be replaced, if it was given at this time.
    pub fn refresh_s(&self, given_s: u64) -> Option<u64> {
        let end = self.expires_s?;
        let life = end.saturating_sub(given_s);
        Some(end - MAX_REFRESH_AHEAD_S.min(life / LIFE_PART).min(end))
    }
}

/// Reads a moment such as `2026-01-02T03:04:05Z`, in Unix seconds.
pub fn read_time(text: &str) -> Option<u64> {
    let time: Timestamp = text.parse().ok()?;
    u64::try_from(time.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_refreshed_five_minutes_or_a_fifth_of_its_life_before_its_end() {
        for (lives_s, refresh_s) in [(3600, 3300), (1500, 1200), (100, 80), (4, 4), (0, 0)] {
            let token = Granted::token("t", lives_s, 1000);
            assert_eq!(token.refresh_s(1000), Some(1000 + refresh_s), "{lives_s}");
            assert_eq!(token.is_valid(1000), lives_s > 0);
            assert!(!token.is_valid(1000 + lives_s));
        }
        let keys = Granted {
            expires_s: None,
            ..Granted::token("t", 0, 0)
        };
        assert!(keys.is_valid(u64::MAX) && keys.refresh_s(0).is_none());
    }

    #[test]
    fn a_moment_is_read() {
        assert_eq!(read_time("2026-01-02T03:04:05Z"), Some(1_767_323_045));
        assert_eq!(read_time("soon"), None);
    }
}
