//! Rules for caching a response, and for recognising a response from the service's own cache.

use http::header::{AGE, CACHE_CONTROL, HeaderName, SET_COOKIE, VARY};
use http::{HeaderMap, StatusCode};

use super::cache_key::{has_directive, is_keyed};

const CF_CACHE_STATUS: HeaderName = HeaderName::from_static("cf-cache-status");
const X_CACHE: HeaderName = HeaderName::from_static("x-cache");

/// Returns whether a complete response may be cached. Source: docs/decisions.md 28.
pub fn is_cacheable(status: StatusCode, headers: &HeaderMap) -> bool {
    const FORBIDDING: &[&str] = &["private", "no-store", "no-cache"];
    let mut lines = headers.get_all(CACHE_CONTROL).iter();
    let is_forbidden = lines.any(|line| has_directive(line.as_bytes(), FORBIDDING));
    status == StatusCode::OK
        && !is_forbidden
        && !headers.contains_key(SET_COOKIE)
        && headers.get_all(VARY).iter().all(|line| {
            let names = line.to_str().unwrap_or("*").split(',');
            let mut names = names.map(str::trim).filter(|name| !name.is_empty());
            names.all(is_keyed)
        })
}

/// Returns how long a response stays fresh, in seconds: its `s-maxage`, else its `max-age`, less its `Age`. Returns
/// `None` without either.
pub fn fresh_for_s(headers: &HeaderMap) -> Option<u64> {
    let value = |wanted: &str| {
        let lines = headers.get_all(CACHE_CONTROL).iter();
        let mut directives = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','));
        directives.find_map(|directive| {
            let (name, value) = directive.split_once('=')?;
            let matches = name.trim().eq_ignore_ascii_case(wanted);
            matches.then(|| value.trim().trim_matches('"').parse::<u64>().unwrap_or(0))
        })
    };
    let whole = value("s-maxage").or_else(|| value("max-age"))?;
    Some(whole.saturating_sub(age_s(headers).unwrap_or(0)))
}

/// Returns the `Age` of a response in seconds.
pub fn age_s(headers: &HeaderMap) -> Option<u64> {
    let age = headers.get(AGE).and_then(|age| age.to_str().ok());
    age.and_then(|age| age.trim().parse().ok())
}

/// Returns whether the service responded from its own cache. Such a request does not count: its unit is refunded.
///
/// A hit is `cf-cache-status` or `x-cache` with the word hit, or an `age` above zero. Source: docs/graph-limits.md
/// 8.1.3; docs/facts/graph-service.md 1.4.
pub fn is_upstream_hit(headers: &HeaderMap) -> bool {
    let says_hit = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        values.any(|value| {
            let mut words = value.as_bytes().split(|byte| !byte.is_ascii_alphanumeric());
            words.any(|word| word.eq_ignore_ascii_case(b"hit"))
        })
    };
    let is_old = age_s(headers).is_some_and(|age_s| age_s > 0);
    says_hit(&CF_CACHE_STATUS) || says_hit(&X_CACHE) || is_old
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use http::HeaderValue;

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn keeps(lines: &[(&'static str, &'static str)]) -> bool {
        is_cacheable(StatusCode::OK, &headers(lines))
    }

    #[test]
    fn only_a_200_is_kept() {
        for status in [201, 203, 204, 206, 301, 304, 400, 429, 500, 503] {
            let status = StatusCode::from_u16(status).unwrap();
            assert!(!is_cacheable(status, &HeaderMap::new()), "{status}");
        }
        assert!(keeps(&[]));
    }

    #[test]
    fn an_answer_that_says_so_is_not_kept() {
        assert!(!keeps(&[("set-cookie", "a=b")]));
        assert!(!keeps(&[("cache-control", "max-age=1, Private")]));
        assert!(!keeps(&[("cache-control", "private=\"x\"")]));
        assert!(!keeps(&[
            ("cache-control", "public"),
            ("cache-control", "no-store")
        ]));
        assert!(!keeps(&[("cache-control", "no-cache")]));
        assert!(keeps(&[("cache-control", "public, max-age=1")]));
    }

    #[test]
    fn an_answer_that_varies_outside_the_key_is_not_kept() {
        assert!(keeps(&[("vary", "Accept-Encoding, origin, CG-Roles,")]));
        assert!(!keeps(&[("vary", "Accept-Encoding, Cookie")]));
        assert!(!keeps(&[
            ("vary", "accept-encoding"),
            ("vary", "user-agent")
        ]));
        assert!(!keeps(&[("vary", "*")]));
    }

    #[test]
    fn an_answer_says_how_long_it_is_fresh() {
        let fresh = |lines: &[_]| fresh_for_s(&headers(lines));
        assert_eq!(fresh(&[("cache-control", "public, Max-Age=60")]), Some(60));
        assert_eq!(
            fresh(&[
                ("cache-control", "max-age=60, s-maxage=\"10\""),
                ("age", "4")
            ]),
            Some(6)
        );
        assert_eq!(
            fresh(&[("cache-control", "max-age=1"), ("age", "9")]),
            Some(0)
        );
        assert_eq!(fresh(&[("cache-control", "max-age=soon")]), Some(0));
        assert_eq!(fresh(&[("cache-control", "public")]), None);
    }

    #[test]
    fn a_hit_upstream_is_seen_in_each_notation() {
        for line in [
            ("cf-cache-status", "HIT"),
            ("x-cache", "Hit from cloudfront"),
            ("x-cache", "TCP_HIT"),
            ("x-cache", "MISS, HIT"),
            ("age", "1"),
        ] {
            assert!(is_upstream_hit(&headers(&[line])), "{line:?}");
        }
    }

    #[test]
    fn a_miss_upstream_is_no_hit() {
        for line in [
            ("cf-cache-status", "MISS"),
            ("cf-cache-status", "DYNAMIC"),
            ("x-cache", "WHITE"),
            ("age", "0"),
            ("age", "-1"),
            ("age", "soon"),
        ] {
            assert!(!is_upstream_hit(&headers(&[line])), "{line:?}");
        }
    }
}
