//! What the text of an answer of another dialect rests on, as citations of its blocks of text. Each names a page, and says the part
//! of the text that rests on it. `encrypted_index`, by which the vendor finds a place in a page, is empty: so those of our making are
//! known when they come back, and none reaches the vendor.

use crate::json::{Object, Str};
use crate::models::chat::piece::Citation;
use crate::models::fronts::cited_pages::each_page;
use crate::models::fronts::sequencer::{BlockWriter, Sequencer};

/// Adds a citation to the text.
pub(super) fn cite<W: BlockWriter>(citation: &Citation<'_>, sequencer: &mut Sequencer<W>) {
    each_page(citation, |page| {
        let location = location(page.url, page.title, sequencer.quote(page.start, page.end));
        sequencer.cite(location);
    });
}

/// Returns a citation as JSON.
fn location(url: Str<'_>, title: Option<Str<'_>>, text: &str) -> String {
    let mut out = Vec::with_capacity(160 + text.len());
    let mut citation = Object::open(&mut out);
    citation.text("type", "web_search_result_location");
    citation.value("url", |out| url.write(out));
    citation.value("title", |out| match title {
        Some(title) => title.write(out),
        None => out.extend_from_slice(b"null"),
    });
    citation.text("encrypted_index", "");
    citation.text("cited_text", text);
    citation.close();
    String::from_utf8(out).unwrap_or_default()
}
