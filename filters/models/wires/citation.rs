//! Citations of pages, as the convention has them: items of `annotations`.
//!
//! Shape: `{"type": "url_citation", "url_citation": {"url", "title", "start_index", "end_index"}}`. The places count the
//! characters of the answer's text; both are 0 where a page is cited for the answer as a whole.

use crate::json::{Object, Str};

/// A page, and the part of the text that rests on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Citation<'a> {
    pub(super) url: Str<'a>,
    pub(super) title: Option<Str<'a>>,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Citation<'_> {
    /// Adds it to a list, which is the inside of a JSON array.
    pub(super) fn write(&self, list: &mut Vec<u8>) {
        if !list.is_empty() {
            list.push(b',');
        }
        let mut annotation = Object::open(list);
        annotation.text("type", "url_citation");
        annotation.object("url_citation", |written| {
            written.value("url", |out| self.url.write(out));
            let title = self.title.unwrap_or(Str::Plain(""));
            written.value("title", |out| title.write(out));
            written.number("start_index", self.start);
            written.number("end_index", self.end);
        });
        annotation.close();
    }
}
