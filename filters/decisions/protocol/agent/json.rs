//! The agent's JSON, which is that of Go. Source: docs/facts/decision-engine.md D.

/// Escapes the characters that could be read as markup, and ends the line.
///
/// In JSON these characters only occur in strings, so the text need not be parsed.
pub(super) fn escape(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() + 1);
    let mut rest = json;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        match (first, tail) {
            (b'<' | b'>' | b'&', _) => {
                out.extend_from_slice(format!("\\u{first:04x}").as_bytes());
            }
            (0xe2, [0x80, last @ (0xa8 | 0xa9), after @ ..]) => {
                let low = if *last == 0xa8 { '8' } else { '9' };
                out.extend_from_slice(format!("\\u202{low}").as_bytes());
                rest = after;
            }
            _ => out.push(first),
        }
    }
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decisions::encode;

    #[test]
    fn markup_is_escaped_and_the_line_ends() {
        let json = encode::text("a<\u{2028}b\"é&>\u{2027}");
        assert_eq!(
            String::from_utf8_lossy(&escape(json.as_bytes())),
            "\"a\\u003c\\u2028b\\\"é\\u0026\\u003e\u{2027}\"\n"
        );
    }
}
