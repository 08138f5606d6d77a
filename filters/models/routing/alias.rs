//! Aliases with `*`, for names that clients make up or have built in, such as `claude-*-haiku-*`.

/// Maximum bytes of a name that patterns are asked about. Longer ones are no model's.
const MAX_NAME_BYTES: usize = 256;

/// Returns whether an alias is a pattern.
pub(super) fn is_pattern(alias: &str) -> bool {
    alias.contains('*')
}

/// Patterns and what they stand for. A name that several match is that of the one with the most other characters than `*`, and
/// of the first among equals.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// Those with the most characters first.
    all: Vec<(Box<str>, usize)>,
}

impl Patterns {
    /// Adds a pattern that stands for this number.
    pub(super) fn add(&mut self, pattern: Box<str>, number: usize) {
        let at = self
            .all
            .partition_point(|(other, _)| characters(other) >= characters(&pattern));
        self.all.insert(at, (pattern, number));
    }

    /// Returns whether a pattern is there.
    pub(super) fn contains(&self, pattern: &str) -> bool {
        self.all.iter().any(|(other, _)| **other == *pattern)
    }

    /// Returns what a name stands for. Cost: one pass over the name a pattern, for names of up to 256 bytes.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        if name.len() > MAX_NAME_BYTES {
            return None;
        }
        let mut all = self.all.iter();
        let found = all.find(|(pattern, _)| matches(pattern, name))?;
        Some(found.1)
    }
}

/// Returns the number of bytes other than `*`.
fn characters(pattern: &str) -> usize {
    pattern.bytes().filter(|byte| *byte != b'*').count()
}

/// Returns whether a pattern, in which `*` stands for any text, matches a name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        // The first place leaves the most for what follows.
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let cases = [
            ("claude-*-haiku-*", "claude-3-5-haiku-20241022", true),
            ("claude-*haiku*", "claude-haiku-4-5", true),
            ("claude-*-haiku-*", "claude-haiku-4-5", false),
            ("claude-*", "claude-", true),
            ("claude-*", "my-claude-x", false),
            ("*-mini", "gpt-5-mini", true),
            ("*-mini", "gpt-5-mini-2", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*b", "axb", false),
            ("a*b*b", "abxb", true),
            ("*", "", true),
            ("ä*ö", "äxxö", true),
        ];
        for (pattern, name, is_match) in cases {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn the_pattern_with_the_most_characters_counts_then_the_first() {
        let mut patterns = Patterns::default();
        for (number, pattern) in [
            "claude-*",
            "claude-*haiku*",
            "*-haiku-4-5-xx",
            "claude-h*aiku*",
        ]
        .into_iter()
        .enumerate()
        {
            patterns.add(pattern.into(), number);
        }
        assert_eq!(patterns.find("claude-opus-4"), Some(0));
        assert_eq!(patterns.find("claude-haiku-4-5"), Some(1));
        assert_eq!(patterns.find("claude-haiku-4-5-xx"), Some(2));
        assert_eq!(patterns.find("gpt"), None);
        assert_eq!(patterns.find(&format!("claude-{}", "x".repeat(300))), None);
    }
}
