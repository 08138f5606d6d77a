//! `POST /v1/responses/compact`: a history for its summary, by which the conversation goes on with any model.

use bytes::Bytes;

use super::{Responses, check};
use crate::fault::Fault;
use crate::fault_code::FaultCode;
use crate::models::chat::conversation::Conversation;
use crate::models::dialects::compaction::Compaction;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Source};

/// The front of `POST /v1/responses/compact`.
#[derive(Debug)]
pub struct Compact;

impl Front for Compact {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow = FrontRow::new(
            ("compact", "/v1/responses/compact"),
            Operation::Chat,
            || include_str!("compact.json").to_owned(),
        )
        .speaking(Dialect::Responses);
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        let received = check::check(body, &Compact, Compaction::Path)?;
        match &received {
            Received::Complete(request) if request.is_stream => {
                let said =
                    "`stream` is true; accepted is false, because a summary comes as a whole";
                Err(Fault::invalid("stream", said).with_code(FaultCode::UnsupportedValue))
            }
            Received::Stateful(request) if request.is_kept() || request.is_background => {
                let key = if request.is_background {
                    "background"
                } else {
                    "store"
                };
                let said = format!(
                    "`{key}` is true; accepted is false, because a summary is the client's to keep"
                );
                Err(Fault::invalid(key, said).with_code(FaultCode::UnsupportedValue))
            }
            _ => Ok(received),
        }
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        Responses.conversation(request)
    }

    fn name_of(&'static self, member: NamedMember, source: &Source) -> &'static str {
        Responses.name_of(member, source)
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        Responses.writer(request, identity)
    }
}
