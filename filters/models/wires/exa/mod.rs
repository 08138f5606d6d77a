//! Exa's wire: searches of the web. A mapping's model is the type of its searches. The highlights of each result cost on top,
//! so results are billed as documents beside the search.

use crate::json::{Object, Str};
use crate::models::operation::Operation;
use crate::models::search::{FoundPage, SearchFacts};
use crate::models::wires::codec::OperationCodec;
use crate::models::wires::found_pages::{self, SearchWords, write_list};
use crate::models::wires::scan::{inside_string, items, object, string};
use crate::models::wires::wire::{Target, Wire};

/// The characters of the highlights of a result.
const TEXT_CHARS: u64 = 2000;

/// The wire.
pub(super) static EXA: Wire = Wire {
    codecs: &[(Operation::Search, &CODEC)],
    ..Wire::OF_ITS_OWN
};

const WORDS: SearchWords = SearchWords {
    // It finds more pages, at another price.
    max_results: 25,
    country: true,
    recencies: &[],
};

static CODEC: OperationCodec<SearchFacts> = OperationCodec::new(
    "/search",
    |request, facts, target| {
        found_pages::encode(request, facts, target, &WORDS, |body| {
            write(body, facts, target)
        })
    },
    |_, facts, _, _| found_pages::decoder(facts, read_page),
);

fn write(body: &mut Object<'_>, facts: &SearchFacts, target: &Target<'_>) {
    body.text("type", target.model);
    body.number("numResults", facts.max_results);
    body.optional_text("userLocation", facts.country.as_deref());
    write_list(body, "includeDomains", &facts.included);
    write_list(body, "excludeDomains", &facts.excluded);
    let first = facts.after.map(|day| day.to_iso() + "T00:00:00.000Z");
    let last = facts.before.map(|day| day.to_iso() + "T23:59:59.999Z");
    body.optional_text("startPublishedDate", first.as_deref());
    body.optional_text("endPublishedDate", last.as_deref());
    body.object("contents", |contents| {
        contents.object("highlights", |text| {
            text.number("maxCharacters", TEXT_CHARS)
        });
    });
}

fn read_page(page: &str, out: &mut Vec<u8>) -> bool {
    let members = object(page, ["title", "url", "publishedDate", "highlights"]);
    let [title, url, date, highlights] = members.unwrap_or_default();
    let lines = items(highlights).unwrap_or_default().into_iter();
    let lines: Vec<&str> = lines.filter_map(inside_string).collect();
    let lines = lines.join("\\n");
    let found = FoundPage {
        title: string(title),
        url: string(url),
        snippet: Some(Str::Raw(&lines)),
        date: string(date),
    };
    found.write(out);
    found.url.is_some()
}
