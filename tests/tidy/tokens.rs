//! Code as tokens: the names a file defines, the names it imports, and the paths it writes.

use std::collections::HashSet;

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

/// A name that a `use` brings into a module.
#[derive(Debug)]
pub struct Import {
    /// The offset of the last segment.
    pub at: usize,
    /// The path as written.
    pub path: Vec<String>,
    /// The name in this module; `*` for a glob.
    pub name: String,
    /// Whether any `pub` passes it on.
    pub is_reexport: bool,
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

/// Every name that the `use` declarations of a file bring in, groups taken apart.
pub fn imports(tokens: &[Token]) -> Vec<Import> {
    let mut found = Vec::new();
    for range in use_ranges(tokens) {
        let is_reexport = visibility(tokens, range.start).is_some();
        let mut tree = Tree {
            tokens: &tokens[range.start + 1..range.end],
            at: 0,
            is_reexport,
            found: &mut found,
        };
        tree.group(&[]);
    }
    found
}

/// The `use` declarations as ranges of tokens, without the `;`. `use<'a>` in a bound is none.
fn use_ranges(tokens: &[Token]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    for (index, (_, word)) in tokens.iter().enumerate() {
        if *word == "use" && tokens.get(index + 1).is_some_and(|next| next.1 != "<") {
            let length = tokens[index..].iter().position(|token| token.1 == ";");
            found.push(index..length.map_or(tokens.len(), |length| index + length));
        }
    }
    found
}

/// A reader of one `use` tree.
struct Tree<'a, 'f> {
    tokens: &'a [Token<'a>],
    at: usize,
    is_reexport: bool,
    found: &'f mut Vec<Import>,
}

impl Tree<'_, '_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |token| token.1)
    }

    /// Reads paths separated by `,` up to the closing brace or the end.
    fn group(&mut self, prefix: &[String]) {
        while self.at < self.tokens.len() {
            if self.peek() == "}" {
                self.at += 1;
                return;
            }
            if self.peek() == "," {
                self.at += 1;
                continue;
            }
            self.path(prefix.to_vec());
        }
    }

    fn path(&mut self, mut path: Vec<String>) {
        let mut offset = 0;
        while self.at < self.tokens.len() {
            let (at, word) = self.tokens[self.at];
            match word {
                "," | "}" | "as" => break,
                "{" => {
                    self.at += 1;
                    return self.group(&path);
                }
                "::" => {}
                _ => {
                    offset = at;
                    path.push(word.to_owned());
                }
            }
            self.at += 1;
        }
        // `a::{self}` is `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if self.peek() == "as" {
            name = self
                .tokens
                .get(self.at + 1)
                .map_or("", |token| token.1)
                .to_owned();
            self.at += 2;
        }
        if path.last().is_some_and(|last| last == "*") {
            path.pop();
        }
        self.found.push(Import {
            at: offset,
            path,
            name,
            is_reexport: self.is_reexport,
        });
    }
}

/// The paths of two segments or more outside `use` declarations, with their offsets.
pub fn inline_paths(tokens: &[Token]) -> Vec<(usize, Vec<String>)> {
    let in_use: HashSet<usize> = use_ranges(tokens).into_iter().flatten().collect();
    let word = |index: usize| tokens.get(index).map_or("", |token| token.1);
    let mut found = Vec::new();
    for (index, (at, first)) in tokens.iter().enumerate() {
        let begins = is_name(first) && (index == 0 || word(index - 1) != "::");
        if !begins || in_use.contains(&index) {
            continue;
        }
        let mut path = vec![(*first).to_owned()];
        let mut next = index + 1;
        while word(next) == "::" && is_name(word(next + 1)) {
            path.push(word(next + 1).to_owned());
            next += 2;
        }
        if path.len() > 1 {
            found.push((*at, path));
        }
    }
    found
}

/// The words outside `use` declarations, the names of modules in `mod x;` excepted.
pub fn used_words<'a>(tokens: &[Token<'a>]) -> HashSet<&'a str> {
    let in_use: HashSet<usize> = use_ranges(tokens).into_iter().flatten().collect();
    let is_module = |index: usize| index > 0 && tokens[index - 1].1 == "mod";
    let outside = (0..tokens.len()).filter(|index| !in_use.contains(index) && !is_module(*index));
    outside.map(|index| tokens[index].1).collect()
}
