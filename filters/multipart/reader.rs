//! Reads a form as it arrives: texts stay in memory, and the bytes of files are passed on, so that only their ranges
//! stay.

use std::ops::Range;

use memchr::memmem::Finder;

use super::{FormError, MAX_HEAD_BYTES, MAX_PARTS, PartHead};

/// The maximum bytes of all texts of a form. Four voice references fit in.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// The bytes of each file that stay in memory, to recognise its type.
const FILE_HEAD_BYTES: usize = 8 << 10;
/// The maximum number of blanks after a boundary.
const MAX_BLANKS: usize = 64;

/// A form that has arrived completely.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Form {
    /// The texts of the form, in order.
    pub fields: Vec<FormField>,
    /// The files of the form, in order.
    pub files: Vec<FormFile>,
    /// The boundary with which the form is written again. It is random, so that no part can contain it.
    pub boundary: Box<str>,
}

/// A text of a form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FormField {
    pub name: Box<str>,
    /// The bytes of the text.
    pub content: Vec<u8>,
}

/// A file of a form.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FormFile {
    /// The name of the file's field.
    pub name: Box<str>,
    pub file_name: Box<str>,
    pub media_type: Option<Box<str>>,
    /// The range of the file in the bytes of all files.
    pub range: Range<u64>,
    /// The first bytes of the file.
    pub head: Vec<u8>,
}

/// Reads a form in pieces of any size.
#[derive(Debug)]
pub struct FormReader {
    /// A line end, two hyphens and the boundary. No line end precedes the first boundary of a form, so one is assumed
    /// there.
    delimiter: Finder<'static>,
    /// The bytes that have arrived but are not parsed yet.
    rest: Vec<u8>,
    state: State,
    form: Form,
    parts: usize,
    text_bytes: usize,
    file_bytes: u64,
}

/// The part of the form that comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Text before the first boundary, which is not a part.
    Preamble,
    /// The end of the line of a boundary.
    Boundary,
    /// The head of a part.
    Head,
    /// The content of the last field.
    Text,
    /// The content of the last file.
    File,
    /// The end. Text after the last boundary is not a part.
    Ended,
}

impl FormReader {
    /// Starts a form whose parts are separated by `boundary`.
    ///
    /// Errors: the boundary is empty.
    pub fn new(boundary: &str) -> Result<Self, FormError> {
        if boundary.is_empty() {
            return Err(FormError::NoBoundary);
        }
        let delimiter = format!("\r\n--{boundary}");
        Ok(Self {
            delimiter: Finder::new(delimiter.as_bytes()).into_owned(),
            rest: b"\r\n".to_vec(),
            state: State::Preamble,
            form: Form::default(),
            parts: 0,
            text_bytes: 0,
            file_bytes: 0,
        })
    }

    /// Reads a piece, and adds the bytes of files in it to `files`.
    ///
    /// Cost: two copies of the piece. Errors: the bytes are not a form, or exceed its limits.
    pub fn feed(&mut self, piece: &[u8], files: &mut Vec<u8>) -> Result<(), FormError> {
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(piece);
        let mut at = 0;
        while let Some(read) = self.step(rest.get(at..).unwrap_or_default(), files)? {
            at += read;
        }
        if self.state == State::Ended {
            at = rest.len();
        } else if matches!(self.state, State::Preamble | State::Text | State::File) {
            // The last bytes may be the beginning of a boundary.
            let kept = (rest.len() - at).min(self.delimiter.needle().len() - 1);
            let content = rest.get(at..rest.len() - kept).unwrap_or_default();
            self.append_content(content, files)?;
            at = rest.len() - kept;
        }
        rest.drain(..at);
        self.rest = rest;
        Ok(())
    }

    /// Returns the bytes of texts so far, which are in memory.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Returns the form.
    ///
    /// Errors: the last boundary has not arrived.
    pub fn finish(self) -> Result<Form, FormError> {
        match self.state {
            State::Ended => Ok(self.form),
            _ => Err(FormError::NoBoundary),
        }
    }

    /// Reads the next part and returns its length. Returns `None` if more bytes have to arrive first.
    fn step(&mut self, rest: &[u8], files: &mut Vec<u8>) -> Result<Option<usize>, FormError> {
        match self.state {
            State::Preamble | State::Text | State::File => {
                let Some(end) = self.delimiter.find(rest) else {
                    return Ok(None);
                };
                self.append_content(rest.get(..end).unwrap_or_default(), files)?;
                self.state = State::Boundary;
                Ok(Some(end + self.delimiter.needle().len()))
            }
            State::Boundary => self.end_boundary(rest),
            State::Head => self.begin_part(rest),
            State::Ended => Ok(None),
        }
    }

    fn end_boundary(&mut self, rest: &[u8]) -> Result<Option<usize>, FormError> {
        let is_blank = |b: &&u8| matches!(b, b' ' | b'\t');
        let blanks = rest.iter().take_while(is_blank).count();
        let line = rest.get(blanks..).unwrap_or_default();
        match line {
            _ if blanks > MAX_BLANKS => Err(FormError::NoBoundary),
            [] => Ok(None),
            [b'-'] if blanks == 0 => Ok(None),
            [b'-', b'-', ..] if blanks == 0 => {
                self.state = State::Ended;
                Ok(None)
            }
            [b'\r'] => Ok(None),
            [b'\r', b'\n', ..] if self.parts >= MAX_PARTS => Err(FormError::TooMany),
            [b'\r', b'\n', ..] => {
                self.state = State::Head;
                self.parts += 1;
                Ok(Some(blanks + 2))
            }
            _ => Err(FormError::NoBoundary),
        }
    }

    fn begin_part(&mut self, rest: &[u8]) -> Result<Option<usize>, FormError> {
        let searched = rest.get(..MAX_HEAD_BYTES).unwrap_or(rest);
        let Some(end) = memchr::memmem::find(searched, b"\r\n\r\n") else {
            return match rest.len() {
                ..MAX_HEAD_BYTES => Ok(None),
                _ => Err(FormError::Head),
            };
        };
        let content = end + 4;
        let first = self.delimiter.needle().get(2..).unwrap_or_default();
        let behind = rest.get(content..).unwrap_or_default();
        // Some readers take the line end of the head for that of a boundary, and would read another form.
        if behind.len() < first.len() && first.starts_with(behind) {
            return Ok(None);
        }
        let head = rest.get(..end).unwrap_or_default();
        if behind.starts_with(first) || self.delimiter.find(head).is_some() {
            return Err(FormError::Head);
        }
        let head = PartHead::read(head)?;
        let name = head.name.into();
        self.state = match head.file_name {
            None => {
                self.form.fields.push(FormField {
                    name,
                    content: Vec::new(),
                });
                State::Text
            }
            Some(file_name) => {
                self.form.files.push(FormFile {
                    name,
                    file_name: file_name.into(),
                    media_type: head.media_type.map(Into::into),
                    range: self.file_bytes..self.file_bytes,
                    head: Vec::new(),
                });
                State::File
            }
        };
        Ok(Some(content))
    }

    /// Adds to the content of the current part.
    fn append_content(&mut self, content: &[u8], files: &mut Vec<u8>) -> Result<(), FormError> {
        match self.state {
            State::Text => {
                self.text_bytes += content.len();
                if self.text_bytes > MAX_TEXT_BYTES {
                    return Err(FormError::TooLong);
                }
                if let Some(field) = self.form.fields.last_mut() {
                    field.content.extend_from_slice(content);
                }
            }
            State::File => {
                files.extend_from_slice(content);
                self.file_bytes += content.len() as u64;
                if let Some(file) = self.form.files.last_mut() {
                    file.range.end = self.file_bytes;
                    let free = FILE_HEAD_BYTES - file.head.len();
                    let begin = content.get(..free).unwrap_or(content);
                    file.head.extend_from_slice(begin);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use proptest::prelude::*;

    use super::super::parts;
    use super::*;

    const FORM: &[u8] = b"before\r\n--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nA cat\r\n--b \r\n\
        content-disposition: form-data; filename=\"a.wav\"; name=\"file\"\r\nContent-Type: audio/wav\r\n\r\n\
        \r\n--\r\n\r\n--a\r\n--b\r\nContent-Disposition: form-data; name=\"x[]\"\r\n\r\n\r\n--b--\r\nafter";

    fn read(pieces: &[&[u8]]) -> Result<(Form, Vec<u8>), FormError> {
        let mut reader = FormReader::new("b")?;
        let mut files = Vec::new();
        for piece in pieces {
            reader.feed(piece, &mut files)?;
        }
        Ok((reader.finish()?, files))
    }

    #[test]
    fn a_form_is_the_same_wherever_it_is_cut() {
        let whole = read(&[FORM]).unwrap();
        let (form, files) = &whole;
        let file = &form.files[0];
        assert_eq!((&*file.name, &*file.file_name), ("file", "a.wav"));
        assert_eq!(file.media_type.as_deref(), Some("audio/wav"));
        assert_eq!(
            (files.as_slice(), file.range.clone()),
            (&b"\r\n--\r\n\r\n--a"[..], 0..11)
        );
        assert_eq!(file.head, *files);
        let fields: Vec<(&str, &[u8])> = form
            .fields
            .iter()
            .map(|field| (&*field.name, &*field.content))
            .collect();
        assert_eq!(fields, [("prompt", &b"A cat"[..]), ("x[]", b"")]);
        for at in 0..=FORM.len() {
            let (one, two) = FORM.split_at(at);
            assert_eq!(read(&[one, two]).as_ref(), Ok(&whole), "{at}");
        }
        let bytes: Vec<&[u8]> = FORM.chunks(1).collect();
        assert_eq!(read(&bytes), Ok(whole));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        let head = "content-disposition: form-data; name=\"a\"\r\n\r\n";
        let part = format!("--b\r\n{head}x\r\n");
        for (body, error) in [
            (String::new(), FormError::NoBoundary),
            ("--x\r\n".to_owned(), FormError::NoBoundary),
            (format!("--b\r\n{head}cut"), FormError::NoBoundary),
            (format!("--bc\r\n{head}x\r\n--b--"), FormError::NoBoundary),
            (format!("--b{}\r\n", " ".repeat(65)), FormError::NoBoundary),
            ("--b\r\nx\r\n\r\nx\r\n--b--".to_owned(), FormError::Head),
            (format!("--b\r\nx: {}", "a".repeat(9000)), FormError::Head),
            // A form inside a head or right behind it.
            (
                format!("--b\r\nx: y\r\n--b\r\n{head}x\r\n--b--"),
                FormError::Head,
            ),
            (
                format!("--b\r\n{head}--b\r\n{head}x\r\n--b--"),
                FormError::Head,
            ),
            (part.repeat(129) + "--b--", FormError::TooMany),
            (
                format!("--b\r\n{head}{}", "x".repeat(MAX_TEXT_BYTES + 100)),
                FormError::TooLong,
            ),
        ] {
            let shown: String = body.chars().take(80).collect();
            assert_eq!(read(&[body.as_bytes()]).unwrap_err(), error, "{shown}");
            let pieces: Vec<&[u8]> = body.as_bytes().chunks(7).collect();
            assert_eq!(read(&pieces).unwrap_err(), error, "{shown}");
        }
        assert!(FormReader::new("").is_err());
    }

    #[test]
    fn of_a_long_file_only_the_beginning_stays() {
        let mut reader = FormReader::new("b").unwrap();
        let head = b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n";
        let mut files = Vec::new();
        reader.feed(head, &mut files).unwrap();
        for _ in 0..64 {
            reader.feed(&[7; 65536], &mut files).unwrap();
            assert!(reader.rest.len() < 16 && files.len() <= 65536 + 16);
            files.clear();
        }
        reader.feed(b"\r\n--b--", &mut files).unwrap();
        let form = reader.finish().unwrap();
        assert_eq!(form.files[0].range, 0..64 * 65536);
        assert_eq!(form.files[0].head.len(), FILE_HEAD_BYTES);
    }

    proptest! {
        #[test]
        fn both_ways_read_the_same(
            contents in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), any::<bool>()), 0..5),
            cuts in prop::collection::vec(1..60_usize, 1..30), damage in prop::option::of((0..300_usize, any::<u8>())),
        ) {
            let mut body = Vec::new();
            for (content, is_file) in &contents {
                let file = if *is_file { "; filename=\"f\"" } else { "" };
                body.extend_from_slice(format!("--b\r\nContent-Disposition: form-data; name=\"x\"{file}\r\n\r\n").as_bytes());
                body.extend_from_slice(content);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"--b--\r\n");
            if let Some((at, byte)) = damage {
                let at = at % body.len();
                body[at] = byte;
            }
            let mut pieces = Vec::new();
            let mut rest = body.as_slice();
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = behind;
            }
            pieces.push(rest);
            let cut = read(&pieces);
            prop_assert_eq!(&cut, &read(&[&body]));
            // The reader is the stricter of both.
            if let Ok((form, files)) = cut {
                let whole = parts(&body, "b").unwrap();
                prop_assert_eq!(form.fields.len() + form.files.len(), whole.len());
                let (in_files, in_texts): (Vec<_>, Vec<_>) = whole.iter().partition(|part| part.is_file);
                let in_files: Vec<u8> = in_files.iter().flat_map(|part| part.content.to_vec()).collect();
                prop_assert_eq!(files, in_files);
                for (field, part) in form.fields.iter().zip(in_texts) {
                    prop_assert_eq!(&field.content, part.content);
                }
            }
        }
    }
}
