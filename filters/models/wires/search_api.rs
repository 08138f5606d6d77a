//! The wire of providers that search the web and do nothing else, each in words of its own.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

use super::decoder::{Decoder, ReplyHead, no_decoder, not_offered};
use super::error_body;
use super::failure::Failure;
use super::found_pages::{self, ReadPage, SearchWords};
use super::quirks::Quirks;
use super::wire::{Target, Wire, WireHead, convention_credential, credential};
use crate::fault::Fault;
use crate::json::Object;
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::parameters::Parameters;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::search::SearchFacts;

/// The API of such providers. They tell no limits in the heads of their replies.
pub(super) struct SearchApi {
    pub(super) words: SearchWords,
    /// The header of their keys; `None`: that of the convention.
    pub(super) key_header: Option<&'static str>,
    /// Adds what is asked for to a request, beside the query.
    pub(super) write: fn(&mut Object<'_>, &SearchFacts, &Target<'_>),
    pub(super) read_page: ReadPage,
    /// Statuses that say that the key has no credit left.
    pub(super) exhausted: &'static [u16],
}

impl Wire for SearchApi {
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

    fn credential(
        &self,
        secret: &str,
        quirks: &Quirks,
    ) -> Result<(HeaderName, HeaderValue), Fault> {
        match self.key_header {
            Some(header) => credential(HeaderName::from_static(header), secret),
            None => convention_credential(secret, quirks),
        }
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<Bytes>, Fault> {
        let Payload::Search(facts) = &request.payload else {
            return Err(not_offered());
        };
        found_pages::encode(request, facts, target, &self.words, |body| {
            (self.write)(body, facts, target);
        })
    }

    fn decoder(&self, request: &ModelRequest, _: &Target<'_>, _: &ReplyHead) -> Box<dyn Decoder> {
        match &request.payload {
            Payload::Search(facts) => found_pages::decoder(facts, self.read_page),
            _ => no_decoder(),
        }
    }

    fn classify(&self, status: u16, body: &[u8]) -> Failure {
        let status = match self.exhausted.contains(&status) {
            true => 402,
            false => status,
        };
        error_body::classify(status, body)
    }
}
