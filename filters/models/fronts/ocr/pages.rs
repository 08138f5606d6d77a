//! The pages that are read: numbers from 0 in an array, or numbers and ranges in a string, such as `0,2-4`.

use crate::json::{Type, Walker};
use crate::models::check::read::{array, integer, string};
use crate::models::check::reject::{Reject, other};
use crate::models::ocr::OcrFacts;

const PAGES: &str = "an array of page numbers from 0, or a string such as \"0,2-4\"";
/// The highest number of a page. Our choice: no document has as many.
const LAST: u64 = 99_999;
/// The most numbers and ranges, which may name pages again.
const MAX_RANGES: usize = 4096;

/// Reads them; returns how many they are, each once.
pub(super) fn pages(walk: &mut Walker<'_>) -> Result<u64, Reject> {
    let ranges = match walk.peek()? {
        Type::Array => listed(walk)?,
        Type::String => {
            let text = string(walk)?.unescaped();
            ranges(&text).ok_or_else(|| {
                let shown: String = text.chars().take(40).collect();
                Reject::rule(format!("is {shown:?}; accepted is {PAGES}"))
            })?
        }
        _ => return Err(other(walk, PAGES)),
    };
    if ranges.len() > MAX_RANGES {
        return Err(too_many());
    }
    let max = OcrFacts::MAX_PAGES;
    match count(ranges) {
        0 => Err(Reject::rule(format!("is empty; accepted is {PAGES}"))),
        count if count > max => {
            let said = format!("names {count} pages; accepted are at most {max}");
            Err(Reject::rule(said))
        }
        count => Ok(count),
    }
}

fn too_many() -> Reject {
    let max = OcrFacts::MAX_PAGES;
    Reject::rule(format!(
        "has more than {MAX_RANGES} numbers and ranges; accepted are at most {max} pages"
    ))
}

/// The first and the last page of a range. Ranges are not spelt out, because six bytes may name a thousand pages.
type Range = (u32, u32);

fn listed(walk: &mut Walker<'_>) -> Result<Vec<Range>, Reject> {
    let mut ranges = Vec::new();
    array(walk, |walk, _| {
        let page = integer(walk, 0, LAST)? as u32;
        if ranges.len() == MAX_RANGES {
            return Err(too_many());
        }
        ranges.push((page, page));
        Ok(())
    })?;
    Ok(ranges)
}

/// Returns the ranges of a string; `None`: it names none, or in another way.
fn ranges(text: &str) -> Option<Vec<Range>> {
    let number = |text: &str| {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number: Option<u32> = text.parse().ok();
        number.filter(|number| is_digits && u64::from(*number) <= LAST)
    };
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then_some((first, last))
    };
    let parts = text.split(',').take(MAX_RANGES + 1);
    parts.map(|text| range(text.trim())).collect()
}

/// Returns how many pages the ranges name, each once.
fn count(mut ranges: Vec<Range>) -> u64 {
    ranges.sort_unstable();
    let (mut pages, mut next) = (0, 0);
    for (first, last) in ranges {
        pages += u64::from((last + 1).saturating_sub(first.max(next)));
        next = next.max(last + 1);
    }
    pages
}
