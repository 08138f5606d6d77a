//! What the text of an answer rests on, as annotations of its text.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Object, Str};
use crate::models::chat::piece::Citation;
use crate::models::chat::text::Text;

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

/// Returns the annotations of a citation, each a JSON object.
pub(super) fn annotations(citation: &Citation<'_>) -> Vec<String> {
    match *citation {
        Citation::Page {
            url,
            title,
            start,
            end,
        } => vec![annotation(url, title, (start, end))],
        Citation::Said(items) => {
            let items = format!("[{items}]");
            let items: Vec<&RawValue> = serde_json::from_str(&items).unwrap_or_default();
            // Annotations of another type than pages have no form here.
            let pages = items.into_iter().filter_map(|item| {
                let said = serde_json::from_str::<Annotation<'_>>(item.get()).ok()?;
                Some(said.url_citation)
            });
            let annotations = pages.map(|page| {
                let place = page.start_index.zip(page.end_index).unwrap_or_default();
                let title = page.title.as_deref().map(Str::Plain);
                annotation(Str::Plain(&page.url), title, place)
            });
            annotations.collect()
        }
    }
}

fn annotation(url: Str<'_>, title: Option<Str<'_>>, (start, end): (u64, u64)) -> String {
    let mut out = Vec::with_capacity(160);
    let mut citation = Object::open(&mut out);
    citation.text("type", "url_citation");
    citation.value("url", |out| url.write(out));
    citation.value("title", |out| title.unwrap_or(Str::Plain("")).write(out));
    citation.number("start_index", start);
    citation.number("end_index", end);
    citation.close();
    String::from_utf8(out).unwrap_or_default()
}
