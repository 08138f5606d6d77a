//! A text of a whole response until it is written.

use bytes::Bytes;

use crate::json::Str;

/// The inside of a JSON string or array: a slice of the provider's reply where it came in one piece, else a copy.
#[derive(Debug)]
pub(super) enum KeptText {
    Slice(Bytes),
    Copy(Vec<u8>),
}

impl Default for KeptText {
    fn default() -> Self {
        Self::Slice(Bytes::new())
    }
}

impl KeptText {
    /// Appends a text, which may be a slice of `source`.
    pub(super) fn push(&mut self, text: Str<'_>, source: &Bytes) {
        if text.is_empty() {
            return;
        }
        match self {
            Self::Copy(kept) => text.write_contents(kept),
            Self::Slice(kept) => {
                let whole = slice_of(text, source).filter(|_| kept.is_empty());
                *self = match whole {
                    Some(whole) => Self::Slice(whole),
                    None => {
                        let mut copy = kept.to_vec();
                        text.write_contents(&mut copy);
                        Self::Copy(copy)
                    }
                };
            }
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Slice(kept) => kept,
            Self::Copy(kept) => kept,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }
}

/// Returns the slice of `source` that a raw text is; `None` if it stands elsewhere.
fn slice_of(text: Str<'_>, source: &Bytes) -> Option<Bytes> {
    let Str::Raw(text) = text else { return None };
    let start = (text.as_ptr() as usize).checked_sub(source.as_ptr() as usize)?;
    let end = start.checked_add(text.len())?;
    (end <= source.len()).then(|| source.slice(start..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_one_piece_is_no_copy_and_several_are_joined() {
        let source = Bytes::from_static(b"[\"one\",\"two\"]");
        let piece =
            |range| std::str::from_utf8(source.get(range).unwrap_or_default()).unwrap_or_default();
        let mut kept = KeptText::default();
        kept.push(Str::Raw(piece(2..5)), &source);
        assert_eq!(kept.as_bytes().as_ptr(), piece(2..5).as_ptr());
        kept.push(Str::Raw(""), &source);
        kept.push(Str::Raw(piece(8..11)), &source);
        kept.push(Str::Plain("\n"), &source);
        assert_eq!(kept.as_bytes(), b"onetwo\\n");
        let mut copied = KeptText::default();
        copied.push(Str::Raw("elsewhere"), &source);
        assert_eq!(copied.as_bytes(), b"elsewhere");
    }
}
