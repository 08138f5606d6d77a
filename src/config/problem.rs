//! What is wrong with a configuration, where, and what cures it.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// Something wrong with the configuration, or worth a warning.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// The key, dotted: `routing.attempts`; empty where no key is meant.
    pub key: String,
    /// Where it stands.
    #[serde(flatten)]
    pub place: Location,
    /// What is wrong: names what came and what is accepted.
    pub message: String,
    /// What to do about it.
    pub cure: String,
}

/// Where a problem stands.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Location {
    /// In a file.
    File(Spot),
    /// In a variable of the environment.
    Variable {
        /// The variable's name.
        variable: String,
    },
    /// Nowhere: what is missing has no place.
    Nowhere {},
}

/// A spot in a file.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Spot {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The line's text.
    pub snippet: String,
    /// How many characters of the line are meant, at least 1.
    pub width: usize,
}

impl Spot {
    /// The spot of the bytes `start..end` of `text`.
    pub fn of(file: &str, text: &str, start: usize, end: usize) -> Self {
        let start = floor(text, start);
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = text.get(line_start..).unwrap_or_default();
        let snippet = rest.lines().next().unwrap_or_default();
        let column = chars(text, line_start, start);
        let line_end = line_start + snippet.len();
        let meant = chars(text, start, floor(text, end.min(line_end)));
        Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: column + 1,
            snippet: snippet.to_owned(),
            width: meant.max(1),
        }
    }

    /// The spot with the bytes `hidden` of `text` starred out, as far as they stand in its line.
    pub(super) fn without(mut self, text: &str, hidden: &Range<usize>) -> Self {
        let mut line_start = 0;
        for line in text.split_inclusive('\n').take(self.line - 1) {
            line_start += line.len();
        }
        let star = |(at, shown): (usize, char)| {
            if hidden.contains(&(line_start + at)) {
                '*'
            } else {
                shown
            }
        };
        self.snippet = self.snippet.char_indices().map(star).collect();
        self
    }
}

fn chars(text: &str, from: usize, to: usize) -> usize {
    text.get(from..to).map_or(0, |part| part.chars().count())
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl Spot {
    /// Place, line and caret; of an endless line only what stands around the caret.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (gutter, before) = (self.line.to_string(), self.column - 1);
        let blank = " ".repeat(gutter.len());
        let skipped = before.saturating_sub(SHOWN_BEFORE);
        let shown: String = self.snippet.chars().skip(skipped).take(SHOWN).collect();
        // A tab stays a tab, or the caret would stand in the wrong column.
        let lead: String = shown.chars().take(before - skipped).map(lead).collect();
        let carets = self
            .width
            .min(shown.chars().count().saturating_sub(before - skipped))
            .max(1);
        writeln!(f, "{blank}--> {}:{}:{}", self.file, self.line, self.column)?;
        writeln!(f, "{gutter} | {shown}")?;
        writeln!(f, "{blank} | {lead}{}", "^".repeat(carets))
    }
}

/// The most characters of a line that are shown, and how many of them before the caret.
const SHOWN: usize = 200;
const SHOWN_BEFORE: usize = 120;

impl fmt::Display for Problem {
    /// Several lines: the message, the place, the line with a caret, the cure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            writeln!(f, "{}", self.message)?;
        } else {
            writeln!(f, "{}: {}", self.key, self.message)?;
        }
        match &self.place {
            Location::File(spot) => spot.show(f)?,
            Location::Variable { variable } => writeln!(f, " --> the variable {variable}")?,
            Location::Nowhere {} => {}
        }
        if self.cure.is_empty() {
            Ok(())
        } else {
            writeln!(f, "  = cure: {}", self.cure)
        }
    }
}

fn lead(shown: char) -> char {
    if shown == '\t' { '\t' } else { ' ' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spot_counts_lines_and_columns_from_one() {
        let spot = Spot::of("f", "a = 1\nbé = xyz\n", 11, 14);
        assert_eq!((spot.line, spot.column, spot.width), (2, 5, 3));
        assert_eq!(spot.snippet, "bé = xyz");
    }

    #[test]
    fn a_spot_behind_the_end_is_the_last_line() {
        let spot = Spot::of("f", "a = ", 99, 99);
        assert_eq!((spot.line, spot.column, spot.width), (1, 5, 1));
    }

    #[test]
    fn of_an_endless_line_only_the_part_around_the_caret_is_shown() {
        let text = format!("a = \"{}\" # {}", "x".repeat(5000), "y".repeat(5000));
        let place = Location::File(Spot::of("f", &text, 4900, 9000));
        let problem = Problem {
            key: String::new(),
            place,
            message: String::new(),
            cure: String::new(),
        };
        let shown = problem.to_string();
        assert!(
            shown.lines().all(|line| line.chars().count() < 220),
            "{shown}"
        );
        assert!(shown.contains('^'));
    }

    #[test]
    fn the_caret_stands_under_the_value() {
        let place = Location::File(Spot::of("f.toml", "\ta = \"x\"", 5, 8));
        let problem = Problem {
            key: "a".into(),
            place,
            message: "wrong".into(),
            cure: "right".into(),
        };
        let shown = problem.to_string();
        assert!(
            shown.contains("--> f.toml:1:6\n1 | \ta = \"x\"\n  | \t    ^^^\n"),
            "{shown}"
        );
        assert!(shown.ends_with("= cure: right\n"), "{shown}");
    }
}
