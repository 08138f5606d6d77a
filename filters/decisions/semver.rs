//! Versions in conditions. They are compared part by part, up to the length of the condition's version.
//!
//! Source: docs/facts/decision-engine.md C. This order differs from that of semver.org: `2.0` equals `2.0.5`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use super::evaluation_rules::SemverSuffix;

/// The parts of a version.
#[derive(Debug)]
pub(super) struct Version<'t> {
    /// The numbers, followed by the suffix as one part.
    parts: [Option<SemverPart<'t>>; 4],
    is_pre_release: bool,
    is_build: bool,
}

#[derive(Debug)]
enum SemverPart<'t> {
    Number(u64, Cow<'t, str>),
    Text(Cow<'t, str>),
}

impl<'t> SemverPart<'t> {
    fn new(text: &'t str) -> Self {
        match text.parse() {
            Ok(number) if !text.starts_with('+') => Self::Number(number, text.into()),
            _ => Self::Text(text.into()),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Number(_, text) | Self::Text(text) => text,
        }
    }

    fn into_owned(self) -> SemverPart<'static> {
        let owned = |text: Cow<'_, str>| text.into_owned().into();
        match self {
            Self::Number(number, text) => SemverPart::Number(number, owned(text)),
            Self::Text(text) => SemverPart::Text(owned(text)),
        }
    }
}

impl<'t> Version<'t> {
    /// Parses a version. Returns `None` for an empty text, white space, more than three numbers, or a number with a
    /// character that is not a digit.
    pub(super) fn parse(text: &'t str) -> Option<Self> {
        // Most versions are ASCII, and then a check byte by byte suffices.
        let is_spaced = match text.is_ascii() {
            true => text.bytes().any(|b| matches!(b, b'\t'..=b'\r' | b' ')),
            false => text.contains(char::is_whitespace),
        };
        if text.is_empty() || is_spaced {
            return None;
        }
        let found = |mark: u8| text.bytes().position(|b| b == mark).filter(|at| *at > 0);
        let (dash, plus) = (found(b'-'), found(b'+'));
        let is_pre_release = dash.is_some_and(|dash| plus.is_none_or(|plus| dash < plus));
        let is_build = plus.is_some_and(|plus| dash.is_none_or(|dash| plus < dash));
        let mark = if is_pre_release {
            dash
        } else {
            plus.filter(|_| is_build)
        };
        let (numbers, suffix) = match mark {
            Some(at) => (text.get(..at)?, text.get(at + 1..)),
            None => (text, None),
        };
        let mut parts = [const { None }; 4];
        let mut rest = Some(numbers);
        for slot in parts.iter_mut().take(3) {
            let Some(numbers) = rest else { break };
            let dot = numbers.bytes().position(|b| b == b'.');
            let number = numbers.get(..dot.unwrap_or(numbers.len()))?;
            match SemverPart::new(number) {
                part @ SemverPart::Number(..) => *slot = Some(part),
                SemverPart::Text(_) => return None,
            }
            rest = dot.and_then(|dot| numbers.get(dot + 1..));
        }
        if rest.is_some() {
            return None;
        }
        let mut free = parts.iter_mut().filter(|slot| slot.is_none());
        if let Some(slot) = free.next() {
            *slot = suffix.map(SemverPart::new);
        }
        Some(Self {
            parts,
            is_pre_release,
            is_build,
        })
    }

    /// Returns the same version with owned texts.
    pub(super) fn into_owned(self) -> Version<'static> {
        Version {
            parts: self.parts.map(|part| part.map(SemverPart::into_owned)),
            is_pre_release: self.is_pre_release,
            is_build: self.is_build,
        }
    }

    fn parts(&self) -> impl Iterator<Item = &SemverPart<'t>> {
        self.parts.iter().flatten()
    }
}

impl fmt::Display for Version<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match (self.is_pre_release, self.is_build) {
            (true, _) => Some('-'),
            (_, true) => Some('+'),
            _ => None,
        };
        let last = self.parts().count().saturating_sub(1);
        for (at, part) in self.parts().enumerate() {
            match suffix.filter(|_| at == last) {
                Some(mark) => write!(f, "{mark}")?,
                None if at > 0 => f.write_str(".")?,
                None => {}
            }
            f.write_str(part.text())?;
        }
        Ok(())
    }
}

/// Compares the user's version with the condition's.
pub(super) fn compare(user: &Version<'_>, wanted: &Version<'_>, suffix: SemverSuffix) -> Ordering {
    let mut parts = user.parts();
    for target in wanted.parts() {
        let Some(part) = parts.next() else {
            return compare_shorter(user, wanted, suffix);
        };
        let found = match (part, target) {
            (SemverPart::Number(user, _), SemverPart::Number(target, _)) => user.cmp(target),
            (SemverPart::Number(..), SemverPart::Text(_)) => Ordering::Less,
            (SemverPart::Text(_), _) => match part.text().cmp(target.text()) {
                Ordering::Less if wanted.is_pre_release && !user.is_pre_release => {
                    Ordering::Greater
                }
                Ordering::Greater if !wanted.is_pre_release && user.is_pre_release => {
                    Ordering::Less
                }
                order => order,
            },
        };
        if found.is_ne() {
            return found;
        }
    }
    if user.is_pre_release && !wanted.is_pre_release {
        return Ordering::Less;
    }
    Ordering::Equal
}

/// Compares a user's version that ends before the condition's version and is equal up to its end.
fn compare_shorter(user: &Version<'_>, wanted: &Version<'_>, suffix: SemverSuffix) -> Ordering {
    let is_later = match suffix {
        SemverSuffix::Condition => wanted.is_pre_release || wanted.is_build,
        SemverSuffix::User => user.is_pre_release,
    };
    if is_later {
        Ordering::Greater
    } else {
        Ordering::Less
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn versions_compare_as_far_as_the_condition_goes() {
        use Ordering::{Equal, Greater, Less};
        for (user, wanted, document, agent) in [
            ("2.0.5", "2.0", Equal, Equal),
            ("2.0", "2.0.5", Less, Less),
            ("2.0.5", "2.1.0-beta", Less, Less),
            ("2.1.0", "2.1.0-beta", Greater, Less),
            ("2.1", "2.1.0-beta", Greater, Less),
            ("2.1.0", "2.1.0+b1", Greater, Less),
            ("2.1.0-beta", "2.1.0", Less, Less),
            ("2.1.0-beta", "2.1.0-alpha", Greater, Greater),
            ("2.1.0-beta", "2.1", Less, Less),
            ("10.0", "9", Greater, Greater),
        ] {
            let parsed = (
                Version::parse(user).unwrap(),
                Version::parse(wanted).unwrap(),
            );
            let both = [SemverSuffix::Condition, SemverSuffix::User]
                .map(|c| compare(&parsed.0, &parsed.1, c));
            assert_eq!(both, [document, agent], "{user} {wanted}");
        }
    }

    #[test]
    fn what_is_no_version_is_unknown() {
        for bad in [
            "",
            " ",
            "v1",
            "1..2",
            "1.2.3.4",
            "1.2.x",
            "1. 2",
            "-1",
            "+1",
            "1.2.-",
            "1.",
            ".1",
            "1.+1",
            "1.2.3.",
            "1.2-\u{a0}",
            "1\u{b}",
            "99999999999999999999",
        ] {
            assert!(Version::parse(bad).is_none(), "{bad:?}");
        }
    }
}
