//! The seam between a public API and the operations: a front parses requests and writes responses.

use std::fmt::Debug;
use std::sync::LazyLock;

use bytes::Bytes;
use http::HeaderMap;

use super::chat::conversation::Conversation;
use super::dialects::{Dialect, NamedMember};
use super::judge_words::JudgeWords;
use super::managed::ManagedRequest;
use super::operation::Operation;
use super::reply::{ReplyIdentity, Writer};
use super::request::{ModelRequest, Source};
use super::search_words::SearchWords;
use super::stateful::StatefulRequest;
use crate::fault::{Fault, FaultKind};
use crate::fault_code::FaultCode;
use crate::multipart::Form;
use crate::spooled_json::SpooledJson;
use crate::sse::KEEPALIVE;

/// What a front is beside its code: of this its row of the route table is made.
#[derive(Debug)]
pub struct FrontRow {
    /// The name of its route.
    pub name: &'static str,
    pub path: &'static str,
    /// Another path where it answers; empty: none.
    pub other_path: &'static str,
    pub operation: Operation,
    /// The dialect of its chats.
    pub dialect: Option<Dialect>,
    /// The beginning of the names of headers that pass to hosts of its dialect; empty: none do.
    pub own_headers: &'static str,
    /// What keeps the connection of a silent stream alive.
    pub keepalive: &'static str,
    /// What callers are told of the API beyond the row: a JSON text.
    pub description: LazyLock<String>,
}

impl FrontRow {
    /// Creates the row of a front with this name and path, whose description `describe` makes once.
    pub(super) const fn new(
        (name, path): (&'static str, &'static str),
        operation: Operation,
        describe: fn() -> String,
    ) -> Self {
        Self {
            name,
            path,
            other_path: "",
            operation,
            dialect: None,
            own_headers: "",
            keepalive: KEEPALIVE,
            description: LazyLock::new(describe),
        }
    }

    /// The same of a front whose chats are of this dialect.
    pub(super) const fn speaking(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// The same of a front that answers at another path, too.
    pub(super) const fn also_at(mut self, path: &'static str) -> Self {
        self.other_path = path;
        self
    }

    /// The same of a front whose silent streams say this.
    pub(super) const fn kept_alive_by(mut self, keepalive: &'static str) -> Self {
        self.keepalive = keepalive;
        self
    }

    /// The same of a front of which headers whose names begin so pass to hosts of its dialect.
    pub(super) const fn passing(mut self, prefix: &'static str) -> Self {
        self.own_headers = prefix;
        self
    }
}

/// The head of a request, in which some APIs say a part of what they ask for.
#[derive(Clone, Copy, Debug)]
pub struct ClientHead<'a> {
    /// The path as received; empty: the body says all.
    pub path: &'a str,
    /// The query, which may be empty.
    pub query: &'a str,
    pub headers: &'a HeaderMap,
}

impl ClientHead<'static> {
    /// Returns a head that says nothing.
    pub fn silent() -> Self {
        static HEADERS: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
        Self {
            path: "",
            query: "",
            headers: &HEADERS,
        }
    }
}

/// One public API. A front knows no wire.
pub trait Front: Debug + Send + Sync {
    /// Returns its row.
    fn row(&'static self) -> &'static FrontRow;

    /// Checks a request, whose body may name a managed prompt or a flag.
    ///
    /// Errors: 400 naming the field, what came and what is accepted.
    fn read(&self, head: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault>;

    /// Checks a body that is a form with files, whose parts are divided by `boundary`.
    ///
    /// Errors: those of [`Self::read`], and 415 if the API takes JSON alone.
    fn read_form(&self, _body: &Bytes, _boundary: &str) -> Result<Received, Fault> {
        let message = "`Content-Type` is a form; `application/json` is accepted";
        Err(Fault::new(FaultKind::MediaType, message))
    }

    /// Checks a form whose files are not in memory.
    ///
    /// Errors: those of [`Self::read`], and 415 if the API takes no such forms.
    fn read_upload(&self, _form: Form) -> Result<ModelRequest, Fault> {
        let message = "`Content-Type` is a form with files; `application/json` is accepted";
        Err(Fault::new(FaultKind::MediaType, message))
    }

    /// Checks a body of which the long data of data URLs is not in memory.
    ///
    /// Errors: those of [`Self::read`], and a fault of ours if the API reads all data.
    fn read_spooled(&self, _json: SpooledJson) -> Result<ModelRequest, Fault> {
        let message = "the data of the body is not in memory";
        Err(Fault::new(FaultKind::Internal, message))
    }

    /// Checks a body that is complete by itself.
    ///
    /// Errors: those of [`Self::read`], and 400 if it names a managed prompt or a flag, or needs kept responses.
    fn parse(&self, body: Bytes) -> Result<ModelRequest, Fault> {
        match self.read(&ClientHead::silent(), body)? {
            Received::Complete(request) => Ok(request),
            Received::Managed(_) => {
                let message = "`model` names a prompt or a flag; accepted is a model id";
                Err(Fault::invalid("model", message).with_code(FaultCode::InvalidParameters))
            }
            Received::Stateful(request) => Err(request.refusal),
        }
    }

    /// Returns the chat that a checked request is, for wires of another dialect.
    ///
    /// Errors: a fault of ours if it is none.
    fn conversation<'a>(&self, _request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        Err(Fault::new(FaultKind::Internal, "the request is no chat"))
    }

    /// Returns what it calls a member of a request with this body.
    ///
    /// Our choice: an API that is not a chat names members as chat completions do, but for its prompt.
    fn name_of(&'static self, member: NamedMember, _source: &Source) -> &'static str {
        match member {
            NamedMember::Turns | NamedMember::Media => self.row().operation.row().prompt_member,
            member => Dialect::Chat.name_of(member),
        }
    }

    /// Returns a fault of a checked request with the names that its fields have in this API.
    fn explain(&self, fault: Fault) -> Fault {
        fault
    }

    /// Returns how it says a search of the web that the gateway runs; `None`: its requests ask for none.
    fn search_words(&self) -> Option<&'static dyn SearchWords> {
        None
    }

    /// Returns how it asks for verdicts on the calls of answers; `None`: its requests ask for none.
    fn judge_words(&self) -> Option<&'static dyn JudgeWords> {
        None
    }

    /// Returns the response to a request that is answered in the background, before it has begun, as JSON; `None`: the API has none.
    /// `created_s` is unix seconds.
    fn queued(&self, _request: &ModelRequest, _created_s: u64) -> Option<Vec<u8>> {
        None
    }

    /// Returns such a response that has failed; `None`: it is none.
    fn failed(&self, _queued: &str, _fault: &Fault) -> Option<Vec<u8>> {
        None
    }

    /// Returns what keeps the connection of a silent stream alive; `None`: the stream has no place for it.
    fn keepalive(&'static self, _request: &ModelRequest) -> Option<&'static str> {
        Some(self.row().keepalive)
    }

    /// Returns the writer of one response.
    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer>;
}

/// A checked body.
#[derive(Clone, Debug)]
pub enum Received {
    Complete(ModelRequest),
    /// It names a managed prompt or a flag, which completes it.
    Managed(Box<ManagedRequest>),
    /// It needs kept responses, which complete it.
    Stateful(Box<StatefulRequest>),
}
