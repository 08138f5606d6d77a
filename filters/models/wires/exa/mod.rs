//! Exa's wire: searches of the web. A mapping's model is the type of its searches. The text of each result costs on top,
//! so results are billed as documents beside the search.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use crate::fault::Fault;
use crate::json::{Error, Str, Type};
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::capable::WireLimits;
use crate::models::routing::parameters::Parameters;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::search::{FoundPage, SearchFacts};
use crate::models::wires::decoder::{Decoder, ReplyHead, no_decoder, not_offered};
use crate::models::wires::error_body;
use crate::models::wires::failure::Failure;
use crate::models::wires::found_pages::{self, SearchWords, read_members, text, write_list};
use crate::models::wires::quirks::Quirks;
use crate::models::wires::wire::{Target, Wire, WireHead, credential};

/// It finds more pages, at another price.
const WORDS: SearchWords = SearchWords {
    max_results: 25,
    country: true,
    recencies: &[],
};

/// The characters of the text of a result.
const TEXT_CHARS: u64 = 2000;

/// The wire. Its providers tell no limits in the heads of their replies.
#[derive(Debug)]
pub struct Exa;

impl Wire for Exa {
    fn limits(&self, operation: Operation) -> Option<WireLimits> {
        (operation == Operation::Search).then_some(WireLimits::WIDEST)
    }

    fn defaults(&self) -> ProviderDefaults {
        ProviderDefaults {
            parameters: Parameters::of_another_convention(),
            ..ProviderDefaults::plain()
        }
    }

    fn head(&self, operation: Operation, _: bool, _: &str, _: &Quirks) -> Option<WireHead> {
        (operation == Operation::Search).then(|| WireHead::at("/search"))
    }

    fn list_head(&self) -> Option<WireHead> {
        None
    }

    fn credential(&self, secret: &str, _: &Quirks) -> Result<(HeaderName, HeaderValue), Fault> {
        credential(HeaderName::from_static("x-api-key"), secret)
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<Bytes>, Fault> {
        match &request.payload {
            Payload::Search(facts) => encode(request, facts, target),
            _ => Err(not_offered()),
        }
    }

    fn decoder(&self, request: &ModelRequest, _: &Target<'_>, _: &ReplyHead) -> Box<dyn Decoder> {
        match &request.payload {
            Payload::Search(facts) => found_pages::decoder(facts, read_page),
            _ => no_decoder(),
        }
    }

    fn classify(&self, status: u16, body: &[u8]) -> Failure {
        error_body::classify(status, body)
    }
}

fn encode(
    request: &ModelRequest,
    facts: &SearchFacts,
    target: &Target<'_>,
) -> Result<Vec<Bytes>, Fault> {
    found_pages::encode(request, facts, target, &WORDS, |body| {
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
    })
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
