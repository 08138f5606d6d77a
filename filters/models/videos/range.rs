//! A part of a video's bytes, where its provider sends all of them. Source: RFC 9110, 14.

use std::ops::Range;

/// What of the bytes is sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AskedRange {
    Whole,
    Some(Range<u64>),
    /// None: the range begins behind the end.
    Unsatisfiable,
}

/// Returns what a `Range` header asks for of so many bytes. Several ranges, other units and what is not a range ask for all.
pub fn part(header: &str, length: u64) -> AskedRange {
    let Some(spec) = header.strip_prefix("bytes=") else {
        return AskedRange::Whole;
    };
    let Some((first, last)) = spec.trim().split_once('-') else {
        return AskedRange::Whole;
    };
    let number = |text: &str| -> Option<u64> {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let range = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(count)) if first.is_empty() => length.saturating_sub(count)..length,
        _ => return AskedRange::Whole,
    };
    match range.start < range.end && range.start < length {
        true => AskedRange::Some(range),
        false => AskedRange::Unsatisfiable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_at_the_end_and_none_begins_behind_it() {
        for (header, expected) in [
            ("bytes=0-0", AskedRange::Some(0..1)),
            ("bytes=0-99", AskedRange::Some(0..100)),
            ("bytes=10-", AskedRange::Some(10..100)),
            ("bytes=-10", AskedRange::Some(90..100)),
            ("bytes=-1000", AskedRange::Some(0..100)),
            ("bytes=50-1000", AskedRange::Some(50..100)),
            (
                "bytes=99-99999999999999999999999",
                AskedRange::Some(99..100),
            ),
            ("bytes=100-", AskedRange::Unsatisfiable),
            ("bytes=100-200", AskedRange::Unsatisfiable),
            ("bytes=-0", AskedRange::Unsatisfiable),
            ("bytes=99999999999999999999999-", AskedRange::Unsatisfiable),
            ("bytes=5-4", AskedRange::Whole),
            ("bytes=0-1,5-6", AskedRange::Whole),
            ("bytes=-", AskedRange::Whole),
            ("bytes=a-b", AskedRange::Whole),
            ("bytes=+1-2", AskedRange::Whole),
            ("items=0-1", AskedRange::Whole),
            ("", AskedRange::Whole),
        ] {
            assert_eq!(part(header, 100), expected, "{header}");
        }
        assert_eq!(part("bytes=0-", 0), AskedRange::Unsatisfiable);
    }
}
