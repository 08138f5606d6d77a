//! What the text of an answer of another dialect rests on, as citations of its blocks of text. Each names a page, and says the part
//! of the text that rests on it. `encrypted_index`, by which the vendor finds a place in a page, is empty: so those of our making are
//! known when they come back, and none reaches the vendor.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Object, Str};
use crate::models::chat::piece::Citation;
use crate::models::chat::text::Text;
use crate::models::fronts::sequencer::{BlockWriter, Sequencer};

/// An annotation of the chat convention.
#[derive(Deserialize)]
struct Annotation<'a> {
    #[serde(borrow)]
    url_citation: Page<'a>,
}

/// A page, and the characters of the text that rest on it.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    url: Text<'a>,
    #[serde(borrow, default)]
    title: Option<Text<'a>>,
    #[serde(default)]
    start_index: Option<u64>,
    #[serde(default)]
    end_index: Option<u64>,
}

/// Adds a citation to the text.
pub(super) fn cite<W: BlockWriter>(citation: &Citation<'_>, sequencer: &mut Sequencer<W>) {
    match *citation {
        Citation::Page {
            url,
            title,
            start,
            end,
        } => {
            let location = location(url, title, sequencer.quote(start, end));
            sequencer.cite(location);
        }
        Citation::Said(items) => {
            let items = format!("[{items}]");
            let items: Vec<&RawValue> = serde_json::from_str(&items).unwrap_or_default();
            // Annotations of another type than pages have no form here.
            for item in items {
                if let Ok(said) = serde_json::from_str::<Annotation<'_>>(item.get()) {
                    let page = said.url_citation;
                    let title = page.title.as_deref().map(Str::Plain);
                    let place = page.start_index.zip(page.end_index);
                    let (start, end) = place.unwrap_or_default();
                    let text = sequencer.quote(start, end);
                    let location = location(Str::Plain(&page.url), title, text);
                    sequencer.cite(location);
                }
            }
        }
    }
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
