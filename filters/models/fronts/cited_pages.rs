//! The pages that a citation names, whichever provider has said it.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::Str;
use crate::models::chat::piece::Citation;
use crate::models::chat::text::Text;

/// A page, and the characters of the text that rest on it; both are 0 where the whole answer does.
pub(super) struct CitedPage<'a> {
    pub(super) url: Str<'a>,
    pub(super) title: Option<Str<'a>>,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// An annotation of the chat convention.
#[derive(Deserialize)]
struct Annotation<'a> {
    #[serde(borrow)]
    url_citation: SaidPage<'a>,
}

/// A page as an annotation says it.
#[derive(Deserialize)]
struct SaidPage<'a> {
    #[serde(borrow)]
    url: Text<'a>,
    #[serde(borrow, default)]
    title: Option<Text<'a>>,
    #[serde(default)]
    start_index: Option<u64>,
    #[serde(default)]
    end_index: Option<u64>,
}

/// Hands out the pages of a citation. Annotations of another type than pages name none.
pub(super) fn each_page(citation: &Citation<'_>, mut page: impl FnMut(CitedPage<'_>)) {
    let items = match *citation {
        Citation::Page {
            url,
            title,
            start,
            end,
        } => {
            return page(CitedPage {
                url,
                title,
                start,
                end,
            });
        }
        Citation::Said(items) => format!("[{items}]"),
    };
    let items: Vec<&RawValue> = serde_json::from_str(&items).unwrap_or_default();
    for item in items {
        if let Ok(said) = serde_json::from_str::<Annotation<'_>>(item.get()) {
            let said = said.url_citation;
            let (start, end) = said.start_index.zip(said.end_index).unwrap_or_default();
            page(CitedPage {
                url: Str::Plain(&said.url),
                title: said.title.as_deref().map(Str::Plain),
                start,
                end,
            });
        }
    }
}
