//! The text of an answer so far, of which citations quote parts by the numbers of their characters.

use std::ops::Range;

/// How many characters stand between two marks.
const STEP: usize = 256;
/// The most bytes of a quote. A provider may cite the same text as often as it likes.
const MAX_QUOTE_BYTES: usize = 1024;

/// A text, and where some of its characters are, so that a place is found without a walk from the beginning.
#[derive(Debug, Default)]
pub(super) struct SaidText {
    text: String,
    chars: usize,
    /// The offset of each character whose number is a multiple of [`STEP`].
    marks: Vec<usize>,
}

impl SaidText {
    /// Adds to it.
    pub(super) fn push(&mut self, more: &str) {
        let start = self.text.len();
        for (at, _) in more.char_indices() {
            if self.chars.is_multiple_of(STEP) {
                self.marks.push(start + at);
            }
            self.chars += 1;
        }
        self.text.push_str(more);
    }

    /// Returns the text from one character to another, or its beginning; empty: there is no such text.
    pub(super) fn quote(&self, start: u64, end: u64) -> &str {
        let range = self.place(start).zip(self.place(end));
        let quote = range.and_then(|(start, end)| self.text.get(start..end));
        let quote = quote.unwrap_or_default();
        quote
            .get(..quote.floor_char_boundary(MAX_QUOTE_BYTES))
            .unwrap_or_default()
    }

    /// Returns where the bytes from one character to another stand; `None`: there are no such characters.
    pub(super) fn bytes(&self, start: u64, end: u64) -> Option<Range<usize>> {
        let (start, end) = self.place(start).zip(self.place(end))?;
        (start < end).then_some(start..end)
    }

    /// Returns the offset of a character, or of the end.
    fn place(&self, number: u64) -> Option<usize> {
        let number = usize::try_from(number).ok()?;
        if number == self.chars {
            return Some(self.text.len());
        }
        let mark = *self.marks.get(number / STEP)?;
        let mut after = self.text.get(mark..)?.char_indices();
        after.nth(number % STEP).map(|(at, _)| mark + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_by_its_characters_wherever_it_stands() {
        let whole: String = (0..2000)
            .map(|at| if at % 3 == 0 { 'é' } else { 'x' })
            .collect();
        let mut said = SaidText::default();
        let mut rest = &*whole;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(7));
            said.push(piece);
            rest = after;
        }
        for start in [0, 1, 255, 256, 257, 511, 512, 1999, 2000] {
            for length in [0, 1, 255, 300] {
                let end = (start + length).min(2000);
                let expected: String = whole.chars().skip(start).take(end - start).collect();
                assert_eq!(
                    said.quote(start as u64, end as u64),
                    expected,
                    "{start}, {end}"
                );
            }
        }
        for (start, end) in [(0, 2001), (5, 4), (u64::MAX, u64::MAX)] {
            assert_eq!(said.quote(start, end), "");
        }
    }

    #[test]
    fn a_quote_is_bounded() {
        let mut said = SaidText::default();
        said.push(&"é".repeat(5000));
        assert_eq!(said.quote(0, 5000).len(), MAX_QUOTE_BYTES);
        assert_eq!(SaidText::default().quote(0, 0), "");
    }
}
