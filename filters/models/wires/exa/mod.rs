//! Exa's wire: searches of the web. A mapping's model is the type of its searches. The highlights of each result cost on top,
//! so results are billed as documents beside the search.

use crate::json::{Error, Object, Str, Type};
use crate::models::operation::Operation;
use crate::models::search::{FoundPage, SearchFacts};
use crate::models::wires::codec::OperationCodec;
use crate::models::wires::found_pages::{self, SearchWords, read_members, text, write_list};
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

fn read_page(page: &str, out: &mut Vec<u8>) -> Result<bool, Error> {
    let mut found = FoundPage::default();
    let mut lines: Vec<u8> = Vec::new();
    let is_object = read_members(page, |walk, key| {
        match (key, walk.peek()?) {
            ("title", _) => found.title = text(walk)?,
            ("url", _) => found.url = text(walk)?,
            ("publishedDate", _) => found.date = text(walk)?,
            ("highlights", Type::Array) => walk.array(|walk, _| {
                if let Some(line) = text(walk)? {
                    if !lines.is_empty() {
                        lines.extend_from_slice(b"\\n");
                    }
                    line.write_contents(&mut lines);
                }
                Ok::<(), Error>(())
            })?,
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    let lines = std::str::from_utf8(&lines).unwrap_or_default();
    found.snippet = Some(Str::Raw(lines));
    found.write(out);
    Ok(is_object && found.url.is_some())
}
