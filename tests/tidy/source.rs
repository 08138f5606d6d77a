//! The source tree as text: which files there are, and their code without comments, literals and tests.

use std::fs;
use std::ops::Range;
use std::path::Path;

/// One file of Rust.
#[derive(Debug)]
pub struct Source {
    /// Its path from the root of the repository, with `/`.
    pub path: String,
    /// As written.
    pub text: String,
    /// Comments and the insides of strings and characters blanked, newlines kept.
    pub code: String,
    /// `code` without `#[cfg(test)]` items; empty for a file of tests.
    pub shipped: String,
    /// `shipped` with the insides of strings and characters.
    pub shipped_strings: String,
}

impl Source {
    /// Takes a text apart.
    pub fn new(path: &str, text: &str) -> Source {
        let code = blank(text, true);
        let (mut shipped, mut shipped_strings) = (String::new(), String::new());
        if !is_test_file(path) {
            let tests = test_ranges(&code);
            shipped = without(&code, &tests);
            shipped_strings = without(&blank(text, false), &tests);
        }
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
            shipped,
            shipped_strings,
        }
    }

    /// The module path below `filters/` or `src/`: folders and file name without `.rs` and `mod`.
    pub fn modules(&self) -> Vec<&str> {
        let inner = self.path.trim_end_matches(".rs").split('/').skip(1);
        inner.filter(|name| *name != "mod").collect()
    }

    /// Whether the file lies under this folder.
    pub fn is_under(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// `path:line: message` for the byte offset.
    pub fn finding(&self, offset: usize, message: &str) -> String {
        format!("{}:{}: {message}", self.path, line_of(&self.text, offset))
    }
}

/// The line, from 1, of a byte offset. Blanking keeps offsets, so it holds for every view of a file.
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

/// Every Rust file under these folders of the repository, by path.
pub fn sources(folders: &[&str]) -> Vec<Source> {
    let mut paths: Vec<String> = folders.iter().flat_map(|folder| files(folder)).collect();
    paths.retain(|path| path.ends_with(".rs"));
    paths.sort();
    let sources: Vec<Source> = paths
        .iter()
        .map(|path| Source::new(path, &read(path)))
        .collect();
    assert!(!sources.is_empty(), "no Rust files under {folders:?}");
    sources
}

/// Every file under a folder of the repository. Fails if the folder does not exist, because every rule holds over no
/// files.
pub fn files(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// A file of the repository as text.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
        || path.starts_with("tests/")
        || path.starts_with("benches/")
        || path.contains("/tests/")
}

/// Blanks comments, and literals' insides too when asked; keeps every newline and every offset.
fn blank(text: &str, literals: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (end, is_comment) = token_end(bytes, at);
        if end - at > 1 && (is_comment || literals) {
            // A string keeps its quotes, so that `.expect("` can still be told from `.expect(x`.
            let edge = usize::from(!is_comment);
            let inside = &mut out[at + edge..end - edge];
            inside
                .iter_mut()
                .filter(|byte| **byte != b'\n')
                .for_each(|byte| *byte = b' ');
        }
        at = end;
    }
    String::from_utf8(out).unwrap_or_else(|e| panic!("blanking broke a character: {e}"))
}

/// Where the comment or literal that begins here ends, and whether it is a comment; one byte on when
/// nothing begins here.
fn token_end(bytes: &[u8], at: usize) -> (usize, bool) {
    let rest = &bytes[at..];
    // `r` opens a raw string alone or after the `b` of bytes, not as the last letter of a name.
    let before = &bytes[..at];
    let before = before.strip_suffix(b"b").unwrap_or(before);
    let follows_word = before
        .last()
        .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    if rest.starts_with(b"//") {
        let length = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len());
        return (at + length, true);
    }
    if rest.starts_with(b"/*") {
        return (at + block_comment(rest), true);
    }
    let hashes = rest
        .iter()
        .skip(1)
        .take_while(|byte| **byte == b'#')
        .count();
    if rest[0] == b'r' && !follows_word && rest.get(1 + hashes) == Some(&b'"') {
        let close = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
        let body = 2 + hashes;
        let found = rest[body..]
            .windows(close.len())
            .position(|window| window == close);
        return (
            at + found.map_or(rest.len(), |found| body + found + close.len()),
            false,
        );
    }
    match rest[0] {
        b'"' => (at + quoted(rest, b'"'), false),
        b'\'' if is_character(rest) => (at + quoted(rest, b'\''), false),
        _ => (at + 1, false),
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let step = match &rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at.min(rest.len())
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// A quote opens a character and not a lifetime when it is closed after one character or an escape.
fn is_character(rest: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&rest[1..rest.len().min(6)]).into_owned();
    let mut chars = text.chars();
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

/// Every item under `#[cfg(test)]`.
fn test_ranges(code: &str) -> Vec<Range<usize>> {
    let attribute = "#[cfg(test)]";
    let found = code.match_indices(attribute);
    found
        .map(|(start, _)| start..item_end(code, start + attribute.len()))
        .collect()
}

/// The text with these ranges blanked; ranges begin and end at ASCII, so it stays UTF-8.
fn without(text: &str, ranges: &[Range<usize>]) -> String {
    let mut out = text.as_bytes().to_vec();
    for byte in ranges.iter().flat_map(|range| range.clone()) {
        if out[byte] != b'\n' {
            out[byte] = b' ';
        }
    }
    String::from_utf8(out).unwrap_or_else(|e| panic!("blanking broke a character: {e}"))
}

/// The offset after the item or statement that begins here: past its `;` or closing brace, or at the brace that
/// closes the block it ends.
pub fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0_i32;
    for (offset, byte) in code.as_bytes()[start..].iter().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'}' => {
                depth -= 1;
                if depth <= 0 {
                    return start + offset + usize::from(depth == 0);
                }
            }
            b';' if depth == 0 => return start + offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// The offsets where `word` stands with no word character on either side.
pub fn word_offsets(code: &str, word: &str) -> Vec<usize> {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = code.as_bytes();
    let found = code.match_indices(word).map(|(offset, _)| offset);
    found
        .filter(|at| *at == 0 || !is_word(bytes.get(at - 1)))
        .filter(|at| !is_word(bytes.get(at + word.len())))
        .collect()
}
