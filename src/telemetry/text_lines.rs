//! The log as text for people: the thread that writes the log turns each JSON line into a line of text.

use std::io::Write;

use filters::json::{Error, Walker};

/// Writes JSON lines as text: time and level, then `key=value` for the other members.
///
/// Values with spaces, quotation marks or `=` stay JSON strings, and objects and arrays stay JSON. Control characters
/// and those that change the direction of writing are escaped, so that no request moves the reader's cursor.
pub struct TextLines<W> {
    out: W,
    /// The beginning of a line whose end has not arrived.
    rest: Vec<u8>,
    text: String,
}

impl<W: Write> TextLines<W> {
    /// Creates a writer in front of `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            rest: Vec::new(),
            text: String::new(),
        }
    }
}

impl<W: Write> Write for TextLines<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let whole = memchr::memrchr(b'\n', &self.rest).map_or(0, |end| end + 1);
        self.text.clear();
        for line in self
            .rest
            .drain(..whole)
            .as_slice()
            .split(|byte| *byte == b'\n')
        {
            write_line(line, &mut self.text);
        }
        self.out.write_all(self.text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

fn write_line(line: &[u8], out: &mut String) {
    if line.is_empty() {
        return;
    }
    let start = out.len();
    if write_members(line, out).is_err() {
        // The line is not one of ours.
        out.truncate(start);
        write_safe(&String::from_utf8_lossy(line), out);
    }
    out.push('\n');
}

/// Errors: the line is not a JSON object.
fn write_members(line: &[u8], out: &mut String) -> Result<(), Error> {
    let mut walk = Walker::new(line)?;
    let mut is_first = true;
    walk.object(|walk, key| {
        if !std::mem::take(&mut is_first) {
            out.push(' ');
        }
        if !matches!(&*key, "time" | "level") {
            out.push_str(&key);
            out.push('=');
        }
        let value = walk.skip()?;
        write_safe(bare(value).unwrap_or(value), out);
        Ok::<(), Error>(())
    })?;
    walk.end()
}

/// Returns a string without its quotation marks, if it is a plain word.
fn bare(value: &str) -> Option<&str> {
    let inside = value.strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'=');
    (!inside.is_empty() && inside.bytes().all(is_plain)).then_some(inside)
}

fn write_safe(text: &str, out: &mut String) {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    for c in text.chars() {
        if c.is_control() || turns(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn text_of(pieces: &[&str]) -> String {
        let mut out = Vec::new();
        let mut lines = TextLines::new(&mut out);
        for piece in pieces {
            lines.write_all(piece.as_bytes()).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_becomes_time_level_and_members() {
        let line = r#"{"time":"2026-01-02T03:04:05.000006Z","level":"info","path":"/v1/x","status":200,"user_agent":"a b","empty":"","attempts":[{"provider":"p"}],"cost":null}"#;
        let text = "2026-01-02T03:04:05.000006Z info path=/v1/x status=200 user_agent=\"a b\" empty=\"\" attempts=[{\"provider\":\"p\"}] cost=null\n";
        assert_eq!(text_of(&[line, "\n"]), text);
    }

    #[test]
    fn lines_are_whole_however_they_are_cut() {
        let lines = "{\"time\":\"1\",\"a\":\"b\"}\n{\"time\":\"2\"}\n";
        let pieces: Vec<String> = lines.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(text_of(&pieces), "1 a=b\n2\n");
    }

    #[test]
    fn nothing_moves_the_cursor() {
        let line = "{\"a\":\"\u{9b}2J\",\"b\":\"\u{7f}\",\"c\":\"\u{202e}x\",\"d\":\"\\u001b\"}\n\u{1b}[2J\n";
        let text = text_of(&[line]);
        assert!(
            !text.replace('\n', "").chars().any(char::is_control),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains('\u{202e}'));
    }
}
