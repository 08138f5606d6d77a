//! `vendor_safeguards`: checks that a provider runs over an answer, and the betas that switch them on.
//! Source: docs/model-gateway.md 2.1, docs/facts/wire-formats.md 3.8.

use crate::json::Walker;
use crate::models::check::read::{array, object, required, string};
use crate::models::check::reject::Reject;

/// The most bytes of all betas, which go out in one header: within the 8 KiB that servers take of a line. Our choice.
const BETA_BYTES: usize = 4096;

/// A beta that widens the context of older models: what it costs beyond their usual context is in no price list.
const UNPRICED: &str = "context-1m";

/// The whole object. The provider refuses safeguards without a beta and betas without a safeguard, so both are required.
pub(super) fn safeguards(walk: &mut Walker<'_>) -> Result<(), Reject> {
    let (mut safeguards, mut betas, mut bytes) = (None, None, 0);
    object(walk, &["safeguards", "betas"], |walk, key| {
        if key == "betas" {
            betas = Some(array(walk, |walk, _| beta(walk, &mut bytes))?);
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

/// Any name: the provider knows its betas. It goes out in a header, so it is of what may stand there, and a call with it has
/// to cost what its prices say.
fn beta(walk: &mut Walker<'_>, bytes: &mut usize) -> Result<(), Reject> {
    let name = string(walk)?.unescaped();
    let mut problem = None;
    *bytes = bytes.saturating_add(name.len() + 1);
    if *bytes > BETA_BYTES {
        problem =
            Some("makes all betas longer than 4096 bytes; accepted are fewer or shorter names");
    }
    // A comma would make two of it.
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b',';
    if name.is_empty() || !name.bytes().all(is_plain) {
        problem = Some("is no name of a beta; accepted are visible ASCII characters but commas");
    }
    if name.starts_with(UNPRICED) {
        problem = Some("widens the context beyond its known prices; accepted are other betas");
    }
    let Some(problem) = problem else {
        return Ok(());
    };
    let shown: String = name.chars().take(60).collect();
    Err(Reject::rule(format!("is {shown:?}, which {problem}")))
}
