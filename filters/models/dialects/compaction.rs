//! A history that was summarized: the request for the summary, and the summary as clients keep it, for any model.
//!
//! A summary stands in `encrypted_content` of an item: [`MAGIC`], then its CRC in 4 bytes and the text, in base64. It is what the
//! client's own conversation says, so it needs neither a key nor a maker, and opens in any process. The vendor of the dialect
//! compacts with state that its own models alone read. Source: docs/decisions.md 71.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::fault::Fault;
use crate::fault_code::FaultCode;
use crate::json;

/// The first characters, which are base64 too.
const MAGIC: &str = "WGC1";
/// The bytes before the text.
const SUM_BYTES: usize = 4;

/// What asks a model for a summary. It stands behind the history, as the user's.
pub const REQUEST: &str = "The conversation above will be replaced by a summary, and you or another model will go on with nothing but that. \
Write the summary now. Say what the user wants, with every wish, rule and preference that still holds, in the user's own words where they matter, \
and all standing instructions of the system and the developer word for word. Say what was done and decided, and why. Name each file, command, \
address, identifier and number that is needed again. Say what was found out, what has failed, what is unfinished, and the next step. \
Call no tools, answer nothing else, and write nothing around the summary.";

/// What a model is told before a summary.
const INTRODUCTION: &str = "The conversation so far, summarized to save room. Go on from here.\n\n";

/// What makes a request one for a summary.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Compaction {
    /// Nothing: it asks for an answer.
    #[default]
    No,
    /// The last item of its input.
    Item,
    /// Its path.
    Path,
}

/// Returns a summary as clients keep it.
pub fn seal(summary: &str) -> String {
    let mut bytes = Vec::with_capacity(SUM_BYTES + summary.len());
    bytes.extend_from_slice(&crc32fast::hash(summary.as_bytes()).to_le_bytes());
    bytes.extend_from_slice(summary.as_bytes());
    let mut sealed = MAGIC.to_owned();
    STANDARD.encode_string(bytes, &mut sealed);
    sealed
}

/// Returns whether the gateway has made what `encrypted_content` holds, damaged or not.
pub fn is_summary(content: &str) -> bool {
    content.starts_with(MAGIC)
}

/// Returns what a model is told of a summary; `None`: it is damaged, or none of the gateway's.
pub fn open(content: &str) -> Option<String> {
    let bytes = STANDARD.decode(content.strip_prefix(MAGIC)?).ok()?;
    let (sum, text) = bytes.split_first_chunk::<SUM_BYTES>()?;
    let is_whole = u32::from_le_bytes(*sum) == crc32fast::hash(text);
    let text = std::str::from_utf8(text).ok().filter(|_| is_whole)?;
    Some([INTRODUCTION, text].concat())
}

/// Returns the 400 for an item, at an offset of a body, that holds a summary which only another provider or model can read.
pub fn unreadable(body: &str, at: usize) -> Fault {
    let said = "holds a summary that only the provider and the model can read that have made it; accepted there is their own, a summary of this gateway's, or the history itself";
    Fault::invalid(json::path_at(body, at), said).with_code(FaultCode::UnsupportedValue)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use proptest::prelude::*;

    use super::*;
    use crate::models::dialects::state::is_sealed;

    #[test]
    fn what_others_have_made_is_no_summary() {
        for other in [
            "",
            "WGC1",
            "WGC1====",
            "gAAAAABo",
            "WGS1AAAA",
            "WGC1AAAAAAA=",
        ] {
            assert_eq!(open(other), None, "{other}");
        }
        assert!(!is_sealed(&seal(
            "so far, so good, and more than a seal has"
        )));
    }

    proptest! {
        #[test]
        fn a_summary_opens_and_a_damaged_one_does_not(summary in "\\PC{0,80}", at in 0_usize..400) {
            let sealed = seal(&summary);
            prop_assert!(is_summary(&sealed) && STANDARD.decode(&sealed).is_ok());
            let opened = open(&sealed).unwrap();
            prop_assert_eq!(opened.strip_prefix(INTRODUCTION), Some(&*summary));
            let mut damaged = sealed.into_bytes();
            let at = at % damaged.len();
            damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
            prop_assert_eq!(open(&String::from_utf8(damaged).unwrap()), None);
        }
    }
}
