//! Code as tokens, and the names that a file defines.

/// A word, `::`, or one other character, with its byte offset.
pub type Token<'a> = (usize, &'a str);

/// An item that a file defines.
#[derive(Debug)]
pub struct Definition {
    /// The offset of the keyword.
    pub at: usize,
    /// `struct`, `enum`, `trait`, `type`, `union`, `fn`, `const`, `static` or `mod`.
    pub kind: String,
    /// The name of the item.
    pub name: String,
    /// Whether it is `pub` or `pub(crate)`.
    pub is_public: bool,
    /// Whether no brace encloses it.
    pub is_at_top: bool,
}

const KINDS: &[&str] = &[
    "struct", "enum", "trait", "type", "union", "fn", "const", "static", "mod",
];
const TYPES: &[&str] = &["struct", "enum", "trait", "type", "union"];

impl Definition {
    /// Whether other files may name it as a type.
    pub fn is_public_type(&self) -> bool {
        self.is_public && self.is_at_top && TYPES.contains(&self.kind.as_str())
    }
}

/// Takes code without comments and literals apart.
pub fn tokens(code: &str) -> Vec<Token<'_>> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let bytes = code.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest[0] {
            byte if byte.is_ascii_whitespace() => 0,
            byte if is_word(byte) => rest.iter().take_while(|byte| is_word(**byte)).count(),
            b':' if rest.get(1) == Some(&b':') => 2,
            _ => 1,
        };
        if length > 0 {
            found.push((at, &code[at..at + length]));
        }
        at += length.max(1);
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The visibility that ends before the token at `index`: `pub`, `pub(crate)`, `pub(super)`, or nothing.
fn visibility(tokens: &[Token], index: usize) -> Option<String> {
    let word = |back: usize| index.checked_sub(back).map_or("", |at| tokens[at].1);
    if word(1) == "pub" {
        return Some("pub".to_owned());
    }
    if word(1) != ")" {
        return None;
    }
    let inside: Vec<&str> = (2..9).map(word).take_while(|word| *word != "(").collect();
    (word(inside.len() + 3) == "pub").then(|| inside.into_iter().rev().collect())
}

/// The items of a file, nested ones too.
pub fn definitions(tokens: &[Token]) -> Vec<Definition> {
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    for (index, (at, word)) in tokens.iter().enumerate() {
        match *word {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            kind if KINDS.contains(&kind) => {
                let name = tokens.get(index + 1).map_or("", |token| token.1);
                // `const fn` is a function, and `union` is also an ordinary name.
                // `&'static T` and `<const N: usize>` define nothing.
                let before = index.checked_sub(1).map_or("", |before| tokens[before].1);
                let is_item = is_name(name) && name != "fn" && !matches!(before, "'" | "<");
                if is_item && !matches!(name, "mut" | "unsafe" | "async" | "for") {
                    let visible = visibility(tokens, index);
                    found.push(Definition {
                        at: *at,
                        kind: kind.to_owned(),
                        name: name.to_owned(),
                        is_public: visible.is_some_and(|it| it == "pub" || it == "crate"),
                        is_at_top: depth == 0,
                    });
                }
            }
            _ => {}
        }
    }
    found
}
