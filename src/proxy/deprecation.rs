//! The headers of a deprecated route. Source: docs/model-gateway.md 9.3; RFC 9745, RFC 8594.

use http::{HeaderName, HeaderValue, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// The announcement that a route will end.
#[derive(Clone, Copy, Debug)]
pub struct Deprecation {
    /// The time since which clients should not use the route: unix seconds.
    pub since_s: i64,
    /// The URL of the page that names the replacement.
    pub link: &'static str,
    /// The time from which the route may be gone, in unix seconds; `None` if it is not scheduled.
    pub sunset_s: Option<i64>,
}

impl Deprecation {
    /// Returns `Deprecation`, `Link`, and `Sunset` if the end is scheduled. Texts that are not valid in a header are
    /// left out.
    pub fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let since = Some(format!("@{}", self.since_s));
        let link = Some(format!("<{}>; rel=\"deprecation\"", self.link));
        let sunset = self.sunset_s.and_then(http_date);
        [(DEPRECATION, since), (header::LINK, link), (SUNSET, sunset)]
            .into_iter()
            .filter_map(|(name, text)| Some((name, HeaderValue::try_from(text?).ok()?)))
    }
}

/// Returns a time as HTTP writes dates, or `None` for a year beyond 9999.
fn http_date(unix_s: i64) -> Option<String> {
    let time = Timestamp::from_second(unix_s).ok()?;
    DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&time)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(deprecation: &Deprecation) -> Vec<String> {
        let headers = deprecation.headers();
        headers
            .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
            .collect()
    }

    /// Contract: model-gateway 9 3
    #[test]
    fn a_deprecated_route_says_since_when_where_to_read_and_until_when() {
        let announced = Deprecation {
            since_s: 1_767_225_600,
            link: "https://example.org/changes#old",
            sunset_s: None,
        };
        let expected = [
            "deprecation: @1767225600",
            "link: <https://example.org/changes#old>; rel=\"deprecation\"",
        ];
        assert_eq!(told(&announced), expected);
        let scheduled = Deprecation {
            sunset_s: Some(1_798_761_599),
            ..announced
        };
        assert_eq!(told(&scheduled)[..2], expected);
        assert_eq!(told(&scheduled)[2], "sunset: Thu, 31 Dec 2026 23:59:59 GMT");
    }
}
