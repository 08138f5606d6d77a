//! Random choices, read from bytes: fewer and smaller bytes are simpler inputs, so what shrinks the bytes shrinks the
//! input.

/// Choices that are left. After the last byte every choice is the first one.
pub struct Choices<'b>(&'b [u8]);

impl<'b> Choices<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    /// Returns a number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        let number = match end {
            0..=256 => usize::from(self.byte()),
            257..=65_536 => usize::from(self.byte()) << 8 | usize::from(self.byte()),
            _ => (0..4).fold(0, |number, _| number << 8 | usize::from(self.byte())),
        };
        number % end.max(1)
    }

    /// Returns true once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    pub fn number(&mut self) -> u64 {
        let number = (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()));
        number >> (self.byte() % 64)
    }

    /// Returns up to `most` raw bytes.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let count = self.below(most + 1);
        (0..count).map(|_| self.byte()).collect()
    }

    /// Returns a text of words, odd characters and numbers.
    pub fn text(&mut self) -> String {
        const PARTS: [&str; 28] = [
            "a",
            "de",
            "on",
            "1",
            "0",
            "2.5",
            "-1",
            ".",
            " ",
            "x-1",
            "DE",
            "é",
            "\u{1f600}",
            "\"",
            "\\",
            "\n",
            "\r\n",
            "\t",
            "\u{0}",
            "\u{7f}",
            "\u{2028}",
            "/",
            "%2f",
            "data:",
            "{}",
            "null",
            "1e999",
            "long text that goes on and on beyond one block of 32 bytes",
        ];
        let count = self.below(6);
        (0..count).map(|_| *self.pick(&PARTS)).collect()
    }

    /// Cuts bytes into pieces.
    pub fn cut<'t>(&mut self, bytes: &'t [u8]) -> Vec<&'t [u8]> {
        if self.once_in(8) {
            return bytes.chunks(1).collect();
        }
        let count = 1 + self.below(4);
        let mut cuts: Vec<usize> = (0..count).map(|_| self.below(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for to in cuts.into_iter().chain([bytes.len()]) {
            pieces.push(&bytes[from..to]);
            from = to;
        }
        pieces
    }
}
