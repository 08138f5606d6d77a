//! The pages that are read: numbers from 0 in an array, or numbers and ranges in a string, such as `0,2-4`.

use std::collections::BTreeSet;

use crate::json::{Type, Walker};
use crate::models::check::read::{array, integer, string};
use crate::models::check::reject::{Reject, other};
use crate::models::ocr::OcrFacts;

const PAGES: &str = "an array of page numbers from 0, or a string such as \"0,2-4\"";
/// The highest number of a page. Our choice: no document has as many.
const LAST: u64 = 99_999;

/// Reads them; returns how many they are, each once.
pub(super) fn pages(walk: &mut Walker<'_>) -> Result<u64, Reject> {
    let numbers = match walk.peek()? {
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
    let max = OcrFacts::MAX_PAGES;
    match numbers.len() as u64 {
        0 => Err(Reject::rule(format!("is empty; accepted is {PAGES}"))),
        count if count > max => {
            let said = format!("names {count} pages; accepted are at most {max}");
            Err(Reject::rule(said))
        }
        count => Ok(count),
    }
}

fn listed(walk: &mut Walker<'_>) -> Result<BTreeSet<u64>, Reject> {
    let mut numbers = BTreeSet::new();
    array(walk, |walk, _| {
        numbers.insert(integer(walk, 0, LAST)?);
        Ok(())
    })?;
    Ok(numbers)
}

/// Returns the numbers of a string; `None`: it names none, or in another way.
fn ranges(text: &str) -> Option<BTreeSet<u64>> {
    let number = |text: &str| {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number: Option<u64> = text.parse().ok();
        number.filter(|number| is_digits && *number <= LAST)
    };
    let mut numbers = BTreeSet::new();
    for range in text.split(',') {
        let (first, last) = range
            .trim()
            .split_once('-')
            .unwrap_or((range.trim(), range.trim()));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        // More than enough to be refused.
        let most = first.saturating_add(OcrFacts::MAX_PAGES);
        numbers.extend(first..=last.min(most));
    }
    Some(numbers)
}
