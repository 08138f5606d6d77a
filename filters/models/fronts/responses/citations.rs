//! What the text of an answer rests on, as annotations of its text.

use crate::json::{Object, Str};
use crate::models::chat::piece::Citation;
use crate::models::fronts::cited_pages::{CitedPage, each_page};

/// Returns the annotations of a citation, each a JSON object.
pub(super) fn annotations(citation: &Citation<'_>) -> Vec<String> {
    let mut annotations = Vec::new();
    each_page(citation, |page| annotations.push(annotation(&page)));
    annotations
}

fn annotation(page: &CitedPage<'_>) -> String {
    let mut out = Vec::with_capacity(160);
    let mut citation = Object::open(&mut out);
    citation.text("type", "url_citation");
    citation.value("url", |out| page.url.write(out));
    citation.value("title", |out| {
        page.title.unwrap_or(Str::Plain("")).write(out)
    });
    citation.number("start_index", page.start);
    citation.number("end_index", page.end);
    citation.close();
    String::from_utf8(out).unwrap_or_default()
}
