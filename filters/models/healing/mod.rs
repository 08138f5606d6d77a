//! Repairs the JSON that a model was asked for: its syntax, never its meaning. Source: docs/facts/model-gateway.md 11.1.
//!
//! [`fences`] finds the blocks of a text that is written in Markdown, [`lenient`] reads what is nearly JSON. Valid JSON is
//! never changed, and a text that holds no object and no list stays as it is. Deliberately absent: schemas, whose members
//! nothing can make up.

mod fences;
mod lenient;
#[cfg(test)]
mod tests;

use serde::de::IgnoredAny;

use self::fences::{Block, blocks};
use self::lenient::repair;
use crate::json::{Error, ErrorKind, Walker};

/// The most places of a text at which a valid value is looked for.
const MAX_STARTS: usize = 50;
/// The most places of a text at which a broken value is looked for, and the most bytes that are read for it, but for one
/// reading: each may go to the end of the text.
const MAX_REPAIRS: usize = 8;
const MAX_REPAIR_BYTES: usize = 1 << 20;

/// A text that was repaired.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Healed {
    /// Valid JSON: an object or a list.
    pub json: String,
    pub strategy: HealingStrategy,
    /// Two values stood side by side.
    lacks_comma: bool,
}

/// What repaired a text. Source: docs/facts/model-gateway.md 11.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HealingStrategy {
    /// It stood in a fenced block.
    MarkdownExtraction,
    /// It stood among other text.
    MixedContentExtraction,
    SyntaxFix,
    /// Its end was missing.
    TruncationCompletion,
    CombinedStrategies,
}

impl HealingStrategy {
    /// Returns the reference's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MarkdownExtraction => "markdown_extraction",
            Self::MixedContentExtraction => "mixed_content_extraction",
            Self::SyntaxFix => "syntax_fix",
            Self::TruncationCompletion => "truncation_completion",
            Self::CombinedStrategies => "combined_strategies",
        }
    }
}

/// What became of a text that should be JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    Valid,
    Healed(HealingStrategy),
    /// It is not valid, and was not changed.
    Unhealed,
}

impl Outcome {
    /// Returns the word of the log line. Source: docs/interface.md, Logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Healed(strategy) => strategy.as_str(),
            Self::Unhealed => "unhealed",
        }
    }
}

/// Repairs a text; `None`: it is valid, or holds nothing to repair, or lacks a comma, where nobody knows whether two values or one
/// are meant. `wants_object`: a list is not an answer, unless the text is nothing else.
///
/// Cost: one scan of valid JSON, without an allocation. Of other texts a bounded number of scans, and of readings at a
/// tenth of their speed.
pub fn heal(text: &str, wants_object: bool) -> Option<Healed> {
    if is_valid(text) {
        return None;
    }
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let blocks = blocks(text);
    as_answer(text, wants_object)
        .or_else(|| in_blocks(&blocks, wants_object))
        .or_else(|| inside(text, &blocks, wants_object))
        .filter(|healed| !healed.lacks_comma)
}

/// Returns whether a text is valid JSON.
///
/// The scanner refuses what the grammar allows and requests may not have: deep nesting, and halves of surrogate pairs.
pub fn is_valid(text: &str) -> bool {
    match scan(text) {
        Ok(()) => true,
        Err(error) if matches!(error.kind, ErrorKind::TooDeep | ErrorKind::LoneSurrogate) => {
            serde_json::from_str::<IgnoredAny>(text).is_ok()
        }
        Err(_) => false,
    }
}

fn scan(text: &str) -> Result<(), Error> {
    let mut walker = Walker::over(text);
    walker.skip()?;
    walker.end()
}

/// A text that begins with a bracket.
#[derive(Clone, Copy)]
struct Start<'t> {
    text: &'t str,
    place: Position,
}

/// Where it stands.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Position {
    /// It is the whole text.
    Text,
    /// At the beginning of a block, or inside of one.
    Block,
    /// Among other text.
    Inside,
}

/// A text that begins with a value is that value.
fn as_answer(text: &str, wants_object: bool) -> Option<Healed> {
    let start = Start {
        text,
        place: Position::Text,
    };
    let is_citation = |end| text.starts_with('[') && wants_object && says_more(text, end);
    let (healed, end) = start.read().or_else(|| start.mend())?;
    (!is_citation(end)).then_some(healed)
}

/// A fenced block that begins with a value is that value: an object before a list, where an object is wanted.
fn in_blocks(blocks: &[Block<'_>], wants_object: bool) -> Option<Healed> {
    let orders: &[&[char]] = if wants_object {
        &[&['{'], &['[']]
    } else {
        &[&['{', '[']]
    };
    let at = |text| Start {
        text,
        place: Position::Block,
    };
    orders.iter().find_map(|opens| {
        let mut blocks = blocks
            .iter()
            .filter(|block| block.inside.starts_with(*opens));
        // A string of the value may hold a fence, so that the block would seem to end inside of it.
        let (healed, _) =
            blocks.find_map(|block| at(block.rest).read().or_else(|| at(block.inside).mend()))?;
        Some(healed)
    })
}

/// Looks for a value among other text, in blocks first; a valid one counts before one that has to be repaired.
fn inside(text: &str, blocks: &[Block<'_>], wants_object: bool) -> Option<Healed> {
    let opens: &[char] = if wants_object { &['{'] } else { &['{', '['] };
    let of_blocks = blocks.iter().map(|block| (block.inside, Position::Block));
    let texts = of_blocks.chain([(text, Position::Inside)]);
    let starts = texts.flat_map(|(text, place)| {
        text.match_indices(opens).filter_map(move |(at, _)| {
            Some(Start {
                text: text.get(at..)?,
                place,
            })
        })
    });
    // Empty brackets among words say nothing.
    let is_said = |(healed, _): &(Healed, usize)| healed.json.len() > 2;
    let mut valid = starts.clone().take(MAX_STARTS);
    let valid = valid.find_map(|start| start.read().filter(is_said));
    let repairs = (MAX_REPAIR_BYTES / text.len().max(1)).clamp(1, MAX_REPAIRS);
    let (healed, _) = valid.or_else(|| starts.take(repairs).find_map(|start| start.mend()))?;
    Some(healed)
}

impl Start<'_> {
    /// Returns the valid value that stands there, and where it ends.
    fn read(self) -> Option<(Healed, usize)> {
        if !self.text.starts_with(['{', '[']) {
            return None;
        }
        let value = Walker::over(self.text).skip().ok()?;
        // Where nothing else is said, there were brackets too many.
        let strategy = self
            .extraction(value.len())
            .unwrap_or(HealingStrategy::SyntaxFix);
        let json = value.to_owned();
        let healed = Healed {
            json,
            strategy,
            lacks_comma: false,
        };
        Some((healed, value.len()))
    }

    /// Returns the repaired value that stands there, if it says anything, and where it ends.
    fn mend(self) -> Option<(Healed, usize)> {
        let repaired = repair(self.text).filter(|repaired| repaired.json.len() > 2)?;
        let strategies = [
            self.extraction(repaired.end),
            repaired.is_fixed.then_some(HealingStrategy::SyntaxFix),
            repaired
                .is_cut
                .then_some(HealingStrategy::TruncationCompletion),
        ];
        let mut strategies = strategies.into_iter().flatten();
        let strategy = match (strategies.next(), strategies.next()) {
            (Some(only), None) => only,
            (None, _) => HealingStrategy::SyntaxFix,
            _ => HealingStrategy::CombinedStrategies,
        };
        let healed = Healed {
            json: repaired.json,
            strategy,
            lacks_comma: repaired.lacks_comma,
        };
        Some((healed, repaired.end))
    }

    /// Returns how a value that ends here was taken out of its text; `None`: it is the text.
    fn extraction(self, end: usize) -> Option<HealingStrategy> {
        match self.place {
            Position::Block => Some(HealingStrategy::MarkdownExtraction),
            Position::Text if !says_more(self.text, end) => None,
            _ => Some(HealingStrategy::MixedContentExtraction),
        }
    }
}

/// Returns whether anything but marks and white space stands behind a value.
fn says_more(text: &str, end: usize) -> bool {
    let behind = text.get(end..).unwrap_or_default();
    behind.contains(char::is_alphanumeric)
}
