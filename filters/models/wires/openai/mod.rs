//! OpenAI's wire, which has our own shapes: OpenAI and the providers of its convention.
//!
//! A request is never parsed into a tree: the body goes out as slices of what came, with the members that have
//! to change spliced in ([`request`], [`messages`]). Events are scanned, and their strings copied as they are
//! escaped ([`stream`]). The peculiarities of a provider are data ([`Quirks`]).

mod calls;
mod decisions;
mod delta;
mod drawing;
mod embeddings;
mod found;
mod media;
mod messages;
mod moderations;
mod ocr;
mod parts;
mod reply;
mod request;
mod rerank;
mod search;
mod speech;
mod stream;
mod strict;
mod template;
mod tools;
mod transcription_events;
mod transcriptions;
mod usage;
mod videos;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};

use crate::fault::Fault;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::operation::Operation;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::wires::decoder::{Decoder, ReplyHead, not_offered};
use crate::models::wires::error_body;
use crate::models::wires::failure::Failure;
use crate::models::wires::form;
use crate::models::wires::found_pages;
use crate::models::wires::quirks::Quirks;
use crate::models::wires::ranking;
use crate::models::wires::rate_limit::{self, LimitHeaders};
use crate::models::wires::wire::{BodySlice, Target, VideoWire, Wire, WireHead};

/// The wire.
#[derive(Debug)]
pub struct OpenAi;

impl Wire for OpenAi {
    fn limits(&self, operation: Operation) -> Option<WireLimits> {
        match operation {
            Operation::Chat | Operation::Images | Operation::ImageEdits => Some(WireLimits {
                reasoning_modes: false,
                // Only a mapping's dialect has words for it.
                web_search: false,
                ..WireLimits::WIDEST
            }),
            _ => Some(WireLimits::WIDEST),
        }
    }

    fn defaults(&self) -> ProviderDefaults {
        request::defaults()
    }

    fn head(&self, operation: Operation, _: bool, _: &str, quirks: &Quirks) -> Option<WireHead> {
        let path = match operation {
            Operation::Chat | Operation::Images | Operation::ImageEdits => quirks.chat_path.clone(),
            Operation::Embeddings => beside(&quirks.chat_path, "embeddings"),
            Operation::Rerank => beside(&quirks.chat_path, "rerank"),
            Operation::Moderations => beside(&quirks.chat_path, "moderations"),
            Operation::Speech => beside(&quirks.chat_path, "audio/speech"),
            Operation::Ocr => beside(&quirks.chat_path, "ocr"),
            Operation::Search => beside(&quirks.chat_path, "search"),
            Operation::TypedDecisions => beside(&quirks.chat_path, "decisions"),
            Operation::Transcriptions => beside(&quirks.chat_path, "audio/transcriptions"),
            Operation::Translations => beside(&quirks.chat_path, "audio/translations"),
            Operation::Videos => beside(&quirks.chat_path, "videos"),
        };
        let mut head = WireHead::at(path);
        if operation == Operation::Speech {
            let any = HeaderValue::from_static("*/*");
            head.headers.push((header::ACCEPT, any));
        }
        Some(head)
    }

    fn request_headers(&self, request: &ModelRequest) -> Vec<(HeaderName, HeaderValue)> {
        match &request.payload {
            Payload::Transcription(facts) => {
                form::content_type(&facts.boundary).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn encode(&self, request: &ModelRequest, target: &Target<'_>) -> Result<Vec<Bytes>, Fault> {
        match &request.payload {
            Payload::Chat(chat) | Payload::Images(chat, _) => {
                request::encode(request, chat, target)
            }
            Payload::Embeddings(facts) => embeddings::encode(request, facts, target),
            Payload::Rerank(facts) => rerank::encode(request, facts, target),
            Payload::Moderations(facts) => moderations::encode(request, *facts, target),
            Payload::Speech(_) => Ok(speech::encode(request, target)),
            Payload::Search(facts) => found::encode(request, facts, target),
            Payload::TypedDecisions(facts) => Ok(decisions::encode(request, facts, target)),
            // A form with a file, and a document: they go out in pieces.
            Payload::Transcription(_) | Payload::Ocr(_) => Err(not_offered()),
            Payload::Videos(facts) => Ok(videos::encode(request, facts, target)),
        }
    }

    fn encode_pieces(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
    ) -> Result<Vec<BodySlice>, Fault> {
        match &request.payload {
            Payload::Transcription(facts) => Ok(transcriptions::encode(request, facts, target)),
            Payload::Ocr(_) => Ok(ocr::encode(request, target)),
            _ => {
                let body = self.encode(request, target)?;
                Ok(body.into_iter().map(BodySlice::Bytes).collect())
            }
        }
    }

    fn embeddings_at_once(&self) -> BatchLimits {
        embeddings::AT_ONCE
    }

    fn decoder(
        &self,
        request: &ModelRequest,
        target: &Target<'_>,
        head: &ReplyHead,
    ) -> Box<dyn Decoder> {
        match &request.payload {
            Payload::Chat(_) | Payload::Images(..) => reply::decoder(request, target, head),
            Payload::Embeddings(facts) => embeddings::decoder(facts, target),
            Payload::Rerank(facts) => ranking::decoder(request, facts),
            Payload::Moderations(facts) => moderations::decoder(*facts),
            Payload::Speech(facts) => speech::decoder(facts.format, head),
            Payload::Ocr(_) => ocr::decoder(),
            Payload::Search(facts) => found_pages::decoder(facts, found_pages::read_own),
            Payload::TypedDecisions(facts) => decisions::decoder(facts),
            Payload::Transcription(_) => transcriptions::decoder(request, head),
            Payload::Videos(_) => videos::decoder(),
        }
    }

    fn videos(&self) -> Option<&'static dyn VideoWire> {
        Some(&videos::ConventionVideos)
    }

    fn rate_limits(&self) -> &'static [LimitHeaders] {
        &rate_limit::CONVENTION
    }

    fn classify(&self, status: u16, body: &[u8]) -> Failure {
        error_body::classify(status, body)
    }
}

/// Returns the path of another endpoint, which stands beside that of chat.
fn beside(chat_path: &str, endpoint: &str) -> String {
    const CHAT: &str = "chat/completions";
    match chat_path.contains(CHAT) {
        true => chat_path.replacen(CHAT, endpoint, 1),
        false => format!("/{endpoint}"),
    }
}
