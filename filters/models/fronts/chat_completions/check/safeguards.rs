//! `vendor_safeguards`: checks that a provider runs over an answer, and the betas that switch them on.
//! Source: docs/model-gateway.md 2.1, docs/facts/wire-formats.md 3.8.

use crate::json::Walker;
use crate::models::check::read::{array, object, required, string};
use crate::models::check::reject::Reject;

/// The betas of safeguards, without their dates.
const FAMILIES: [&str; 2] = ["dangerous-tool-use", "auto-mode-classifier"];

/// The whole object. The provider refuses safeguards without a beta and betas without a safeguard, so both are required.
pub(super) fn safeguards(walk: &mut Walker<'_>) -> Result<(), Reject> {
    let (mut safeguards, mut betas) = (None, None);
    object(walk, &["safeguards", "betas"], |walk, key| {
        if key == "betas" {
            betas = Some(array(walk, |walk, _| beta(walk))?);
            return Ok(());
        }
        let count = array(walk, |walk, _| {
            let mut kind = None;
            object(walk, &["type"], |walk, _| {
                kind = Some(string(walk)?).filter(|kind| !kind.is_empty());
                Ok(())
            })?;
            required(kind, "type", "a name").map(|_| ())
        })?;
        safeguards = Some(count);
        Ok(())
    })?;
    required(
        safeguards.filter(|count| *count > 0),
        "safeguards",
        "at least one safeguard",
    )?;
    required(
        betas.filter(|count| *count > 0),
        "betas",
        "at least one beta",
    )
    .map(|_| ())
}

/// A beta goes out in a header, so nothing else than the names of safeguards may stand there.
fn beta(walk: &mut Walker<'_>) -> Result<(), Reject> {
    let name = string(walk)?.unescaped();
    let is_dated = |date: &str| {
        let bytes = date.as_bytes();
        let is_digit = |at: &usize| bytes.get(*at).is_some_and(u8::is_ascii_digit);
        let digits = [0, 1, 2, 3, 5, 6, 8, 9];
        let dashes = (bytes.get(4), bytes.get(7)) == (Some(&b'-'), Some(&b'-'));
        bytes.len() == 10 && dashes && digits.iter().all(is_digit)
    };
    let is_known = FAMILIES.iter().any(|family| {
        let rest = name.strip_prefix(family);
        rest.and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(is_dated)
    });
    if is_known {
        return Ok(());
    }
    let shown: String = name.chars().take(60).collect();
    let known = FAMILIES.map(|family| format!("`{family}-YYYY-MM-DD`"));
    Err(Reject::rule(format!(
        "is {shown:?}, which switches on no safeguard; accepted is {}",
        known.join(" or ")
    )))
}
