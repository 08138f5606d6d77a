//! Tavily's wire: searches of the web. A mapping's model is the depth of its searches.

use bytes::Bytes;

use crate::fault::Fault;
use crate::json::{Error, Str};
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
use crate::models::wires::wire::{Target, Wire, WireHead};

const WORDS: SearchWords = SearchWords {
    max_results: 20,
    country: false,
    recencies: &["day", "week", "month", "year"],
};

/// The wire. Its providers tell no limits in the heads of their replies.
#[derive(Debug)]
pub struct Tavily;

impl Wire for Tavily {
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
        // Beyond a plan's own statuses: its key has no credit left.
        let status = if matches!(status, 432 | 433) {
            402
        } else {
            status
        };
        error_body::classify(status, body)
    }
}

fn encode(
    request: &ModelRequest,
    facts: &SearchFacts,
    target: &Target<'_>,
) -> Result<Vec<Bytes>, Fault> {
    found_pages::encode(request, facts, target, &WORDS, |body| {
        body.text("search_depth", target.model);
        body.number("max_results", facts.max_results);
        write_list(body, "include_domains", &facts.included);
        write_list(body, "exclude_domains", &facts.excluded);
        body.optional_text("time_range", facts.recency);
        for (key, day) in [("start_date", facts.after), ("end_date", facts.before)] {
            body.optional_text(key, day.map(|day| day.to_iso()).as_deref());
        }
    })
}

fn read_page(page: &str, out: &mut Vec<u8>) -> Result<bool, Error> {
    let mut found = FoundPage::default();
    let is_object = read_members(page, |walk, key| {
        match key {
            "title" => found.title = text(walk)?,
            "url" => found.url = text(walk)?,
            "content" => found.snippet = text(walk)?,
            "published_date" => found.date = text(walk)?.filter(|date: &Str<'_>| !date.is_empty()),
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    found.write(out);
    Ok(is_object && found.url.is_some())
}
