//! The regions in which the calls of an organization or of a project are computed.

use std::fmt;
use std::str::FromStr;

use super::caller::UnknownValue;

/// The maximum number of regions of one list.
const MAX_REGIONS: usize = 32;
/// The maximum length of the name of a region.
const MAX_NAME_BYTES: usize = 60;
const ACCEPTED: &str = "up to 32 names of regions of small letters, digits and dashes, with commas between them, as in eu,us-east-1";

/// The regions in which calls may be computed.
///
/// Our choice: a name stands for the region of that name and for all whose names go on behind a dash, so `eu` is also
/// `eu-west-1`. A call whose region is unknown is in none of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AllowedRegions(Vec<Box<str>>);

impl AllowedRegions {
    /// Returns whether a call may be computed in a region.
    pub fn contains(&self, region: &str) -> bool {
        let region = region.as_bytes();
        let mut names = self.0.iter().map(|name| name.as_bytes());
        names.any(|name| match region.split_at_checked(name.len()) {
            Some((first, rest)) => {
                first.eq_ignore_ascii_case(name) && (rest.is_empty() || rest.starts_with(b"-"))
            }
            None => false,
        })
    }
}

impl fmt::Display for AllowedRegions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl FromStr for AllowedRegions {
    type Err = UnknownValue;
    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = |name: &str| {
            (1..=MAX_NAME_BYTES).contains(&name.len())
                && name.bytes().all(is_plain)
                && !name.starts_with('-')
                && !name.ends_with('-')
        };
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        if names.len() > MAX_REGIONS || !names.iter().all(|name| is_name(name)) {
            return Err(UnknownValue(ACCEPTED));
        }
        Ok(Self(names.into_iter().map(Box::from).collect()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_name_stands_for_itself_and_for_what_goes_on_behind_a_dash() {
        let regions: AllowedRegions = "eu, us-east-1".parse().unwrap();
        for inside in ["eu", "EU", "eu-west-1", "us-east-1"] {
            assert!(regions.contains(inside), "{inside}");
        }
        for outside in [
            "",
            "e",
            "europe-west4",
            "us",
            "us-east-12",
            "us-east-2",
            "global",
        ] {
            assert!(!regions.contains(outside), "{outside}");
        }
        assert_eq!(regions.to_string(), "eu,us-east-1");
    }

    #[test]
    fn what_is_no_list_of_names_is_refused() {
        let long = "a".repeat(61);
        let many = vec!["eu"; 33].join(",");
        for text in [
            "", ",", "eu,", "EU", "eu west", "-eu", "eu-", "eu*", "é", &long, &many,
        ] {
            assert!(text.parse::<AllowedRegions>().is_err(), "{text:?}");
        }
    }
}
