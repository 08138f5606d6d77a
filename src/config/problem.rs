//! Problems of a configuration: the message, the place and the cure.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use unicode_width::UnicodeWidthChar;

/// An error in the configuration, or a warning.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// The dotted key, such as `routing.attempts`, or an empty text if the problem has none.
    pub key: String,
    #[serde(flatten)]
    pub place: Location,
    /// The message, with the received value and the accepted ones.
    pub message: String,
    pub cure: String,
}

/// The place of a problem.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Location {
    File(Spot),
    /// In a variable of the environment.
    Variable {
        variable: String,
    },
    /// No place, for example of a missing key.
    Nowhere {},
}

/// A spot in a file.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Spot {
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The line's text.
    pub snippet: String,
    /// The number of marked characters of the line, at least 1.
    pub width: usize,
}

impl Spot {
    /// Returns the spot of the bytes `start..end` of `text`.
    pub fn from_bytes(file: &str, text: &str, start: usize, end: usize) -> Self {
        let start = floor_boundary(text, start);
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = text.get(line_start..).unwrap_or_default();
        let snippet = rest.lines().next().unwrap_or_default();
        let column = count_chars(text, line_start, start);
        let line_end = line_start + snippet.len();
        let width = count_chars(text, start, floor_boundary(text, end.min(line_end)));
        Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: column + 1,
            snippet: snippet.to_owned(),
            width: width.max(1),
        }
    }

    /// Replaces the bytes `hidden` of `text` by stars, if they are in the spot's line.
    pub(super) fn mask(mut self, text: &str, hidden: &Range<usize>) -> Self {
        let mut line_start = 0;
        for line in text.split_inclusive('\n').take(self.line - 1) {
            line_start += line.len();
        }
        let mask_char = |(at, shown): (usize, char)| {
            if hidden.contains(&(line_start + at)) {
                '*'
            } else {
                shown
            }
        };
        self.snippet = self.snippet.char_indices().map(mask_char).collect();
        self
    }
}

fn count_chars(text: &str, from: usize, to: usize) -> usize {
    text.get(from..to).map_or(0, |part| part.chars().count())
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl Spot {
    /// Writes place, line and caret. A long line is cut to the part around the caret.
    fn write_to(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (gutter, before) = (self.line.to_string(), self.column - 1);
        let blank = " ".repeat(gutter.len());
        let skipped = before.saturating_sub(MAX_CHARS_BEFORE);
        let shown: String = self
            .snippet
            .chars()
            .skip(skipped)
            .take(MAX_SHOWN_CHARS)
            .collect();
        // Tabs stay tabs, and wide characters take two columns, so that the caret is in the right column.
        let lead: String = shown.chars().take(before - skipped).map(to_lead).collect();
        let marked = shown.chars().skip(before - skipped).take(self.width);
        let carets = marked.map(columns).sum::<usize>().max(1);
        writeln!(f, "{blank}--> {}:{}:{}", self.file, self.line, self.column)?;
        writeln!(f, "{gutter} | {shown}")?;
        writeln!(f, "{blank} | {lead}{}", "^".repeat(carets))
    }
}

/// The maximum number of shown characters of a line. The second number is the part before the caret.
const MAX_SHOWN_CHARS: usize = 200;
const MAX_CHARS_BEFORE: usize = 120;

impl fmt::Display for Problem {
    /// Writes several lines: the message, the place, the line with a caret, the cure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            writeln!(f, "{}", self.message)?;
        } else {
            writeln!(f, "{}: {}", self.key, self.message)?;
        }
        match &self.place {
            Location::File(spot) => spot.write_to(f)?,
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

fn to_lead(shown: char) -> &'static str {
    match (shown, columns(shown)) {
        ('\t', _) => "\t",
        (_, 0) => "",
        (_, 1) => " ",
        _ => "  ",
    }
}

/// Returns the number of terminal columns that a character takes. A control character takes one.
fn columns(shown: char) -> usize {
    shown.width().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spot_counts_lines_and_columns_from_one() {
        let spot = Spot::from_bytes("f", "a = 1\nbé = xyz\n", 11, 14);
        assert_eq!((spot.line, spot.column, spot.width), (2, 5, 3));
        assert_eq!(spot.snippet, "bé = xyz");
    }

    #[test]
    fn a_spot_behind_the_end_is_the_last_line() {
        let spot = Spot::from_bytes("f", "a = ", 99, 99);
        assert_eq!((spot.line, spot.column, spot.width), (1, 5, 1));
    }

    #[test]
    fn of_an_endless_line_only_the_part_around_the_caret_is_shown() {
        let text = format!("a = \"{}\" # {}", "x".repeat(5000), "y".repeat(5000));
        let place = Location::File(Spot::from_bytes("f", &text, 4900, 9000));
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
        let place = Location::File(Spot::from_bytes("f.toml", "\ta = \"x\"", 5, 8));
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

    #[test]
    fn under_wide_characters_the_caret_stands_in_their_columns() {
        // Two wide characters, then a letter with a combining accent.
        for (text, start, end, lead, carets) in [
            ("名前 = \"x\"", 9, 12, "       ", "^^^"),
            ("a = \"名前\"", 4, 12, "    ", "^^^^^^"),
            ("e\u{301} = 1", 6, 7, "    ", "^"),
        ] {
            let problem = Problem {
                key: String::new(),
                place: Location::File(Spot::from_bytes("f", text, start, end)),
                message: String::new(),
                cure: String::new(),
            };
            let shown = problem.to_string();
            let expected = format!("1 | {text}\n  | {lead}{carets}\n");
            assert!(shown.contains(&expected), "{shown}");
        }
    }
}
