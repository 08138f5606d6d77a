//! `groundingMetadata`: the searches of an answer, and the pages that its text rests on. Source: docs/facts/contents.md 2.

use std::collections::HashMap;

use crate::json::{Object, Str, write_number};
use crate::models::chat::piece::{Citation, Search};
use crate::models::fronts::cited_pages::each_page;
use crate::models::fronts::sequencer::Sequencer;
use crate::models::search_loop::pages::Page;

use super::output::Parts;

/// What an answer rests on.
#[derive(Debug, Default)]
pub(super) struct Grounds {
    queries: Vec<String>,
    /// Addresses and titles.
    pages: Vec<(String, String)>,
    /// Where the page of an address is.
    places: HashMap<String, usize>,
    /// Characters of the text that rest on a page, from one to another.
    supports: Vec<(u64, u64, usize)>,
}

impl Grounds {
    /// Notes a search that the gateway has run.
    pub(super) fn search(&mut self, search: &Search<'_>) {
        if !search.query.is_empty() {
            self.queries.push(search.query.to_owned());
        }
        let pages: Vec<Page> = search
            .found
            .ok()
            .and_then(|found| serde_json::from_str(found).ok())
            .unwrap_or_default();
        for page in pages {
            self.page(page.url, page.title);
        }
    }

    /// Notes a citation.
    pub(super) fn cite(&mut self, citation: &Citation<'_>) {
        each_page(citation, |page| {
            let title = page.title.map(Str::unescaped).unwrap_or_default();
            let at = self.page(page.url.unescaped().into_owned(), title.into_owned());
            if page.start < page.end {
                self.supports.push((page.start, page.end, at));
            }
        });
    }

    /// Returns where a page is, and notes it at its first sight.
    fn page(&mut self, url: String, title: String) -> usize {
        let next = self.pages.len();
        let at = *self.places.entry(url.clone()).or_insert(next);
        if at == next {
            self.pages.push((url, title));
        }
        at
    }

    fn is_empty(&self) -> bool {
        self.queries.is_empty() && self.pages.is_empty()
    }
}

/// Writes the member of a candidate whose parts `said` has written, if it rests on anything.
pub(super) fn write(said: &Sequencer<Parts>, candidate: &mut Object<'_>) {
    let grounds = &said.writer.grounds;
    if grounds.is_empty() {
        return;
    }
    candidate.object("groundingMetadata", |told| {
        if !grounds.queries.is_empty() {
            told.array("webSearchQueries", &grounds.queries, |query, out| {
                Str::Plain(query).write(out);
            });
        }
        told.array("groundingChunks", &grounds.pages, |(url, title), out| {
            let mut chunk = Object::open(out);
            chunk.object("web", |web| {
                web.text("uri", url);
                web.text("title", if title.is_empty() { url } else { title });
            });
            chunk.close();
        });
        let placed = grounds.supports.iter().filter_map(|(start, end, page)| {
            let place = said.bytes_of(*start, *end)?;
            Some((place, said.quote(*start, *end), *page))
        });
        let placed: Vec<_> = placed.collect();
        told.array("groundingSupports", placed, |(place, text, page), out| {
            let mut support = Object::open(out);
            support.object("segment", |segment| {
                segment.number("startIndex", place.start as u64);
                segment.number("endIndex", place.end as u64);
                segment.text("text", text);
            });
            support.array("groundingChunkIndices", [page], |page, out| {
                write_number(page as u64, out);
            });
            support.close();
        });
    });
}
