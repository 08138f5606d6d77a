//! Features of the vendor whose betas and members go together: a host gets both or neither. What is not listed passes to every
//! host as it came, because the vendor adds features faster than tables do.

use http::{HeaderName, HeaderValue};

use super::request::{BETA, VERSION};

/// A feature.
struct Feature {
    /// The beginnings of the names of its betas, which end in a date.
    betas: &'static [&'static str],
    /// Its member of a request.
    member: &'static str,
}

/// Those of the vendor's own hosts alone: others refuse the member, or answer without what the client waits for.
const OF_VENDOR: [Feature; 2] = [
    // Without verdicts the client judges by itself.
    Feature {
        betas: &["dangerous-tool-use-", "auto-mode-classifier-"],
        member: "safeguards",
    },
    Feature {
        betas: &["cache-diagnosis-"],
        member: "diagnostics",
    },
];

/// Returns whether a host gets a member of a request.
pub(super) fn passes(member: &str, is_vendor: bool) -> bool {
    is_vendor || OF_VENDOR.iter().all(|feature| feature.member != member)
}

/// Returns the headers that a host gets of a client of the same dialect, but for the version, which is the host's.
pub(super) fn passed(
    headers: &[(HeaderName, HeaderValue)],
    is_vendor: bool,
) -> Vec<(HeaderName, HeaderValue)> {
    let headers = headers.iter().filter(|(name, _)| name != VERSION);
    let known = headers.filter_map(|(name, value)| match *name == BETA && !is_vendor {
        true => Some((name.clone(), without_vendors(value)?)),
        false => Some((name.clone(), value.clone())),
    });
    known.collect()
}

/// Returns a list of betas without those of the vendor's hosts; `None`: nothing is left.
fn without_vendors(list: &HeaderValue) -> Option<HeaderValue> {
    let Ok(text) = list.to_str() else {
        return Some(list.clone());
    };
    let is_vendors = |beta: &str| {
        let mut prefixes = OF_VENDOR.iter().flat_map(|feature| feature.betas);
        prefixes.any(|prefix| beta.starts_with(prefix))
    };
    let betas = text.split(',').map(str::trim);
    let left: Vec<&str> = betas
        .filter(|beta| !beta.is_empty() && !is_vendors(beta))
        .collect();
    if left.is_empty() {
        return None;
    }
    HeaderValue::from_str(&left.join(",")).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_feature_of_the_vendor_reaches_a_host_whole_or_not_at_all() {
        let list = "new-2027-01-01, dangerous-tool-use-2026-09-03,cache-diagnosis-2026-04-07,other";
        let headers = [
            (VERSION, HeaderValue::from_static("2023-06-01")),
            (BETA, HeaderValue::from_static(list)),
            (
                HeaderName::from_static("anthropic-workspace-id"),
                HeaderValue::from_static("w"),
            ),
        ];
        let told = |headers: &[(HeaderName, HeaderValue)], is_vendor| {
            let passed = passed(headers, is_vendor).into_iter();
            let text = |(name, value): (HeaderName, HeaderValue)| {
                format!("{name}: {}", value.to_str().unwrap())
            };
            passed.map(text).collect::<Vec<_>>()
        };
        let workspace = "anthropic-workspace-id: w".to_owned();
        assert_eq!(
            told(&headers, true),
            [format!("anthropic-beta: {list}"), workspace.clone()]
        );
        assert_eq!(
            told(&headers, false),
            ["anthropic-beta: new-2027-01-01,other".to_owned(), workspace]
        );
        let alone = [(
            BETA,
            HeaderValue::from_static("auto-mode-classifier-2026-10-01"),
        )];
        assert!(told(&alone, false).is_empty());
        for (member, everywhere) in [
            ("safeguards", false),
            ("diagnostics", false),
            ("thinking", true),
            ("new", true),
        ] {
            assert!(passes(member, true));
            assert_eq!(passes(member, false), everywhere, "{member}");
        }
    }
}
