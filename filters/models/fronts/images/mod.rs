//! Images: the 400 rules of requests for them, the chat that such a request stands for, and the list or the events that
//! answer it. Source: docs/model-gateway.md 2.7.

use bytes::Bytes;

use self::events::EventWriter;
use self::list::ListWriter;
use crate::fault::{Fault, FaultKind};
use crate::models::chat::conversation::Conversation;
use crate::models::check::describe::describe;
use crate::models::check::form::to_json;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::operation::Operation;
use crate::models::parameter::Parameter;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Source};

mod check;
mod conversation;
mod drawn;
mod events;
mod input;
mod list;
#[cfg(test)]
mod tests;
mod usage;

/// The front of `POST /v1/images/generations`.
#[derive(Debug)]
pub struct ImageGenerations;

/// The front of `POST /v1/images/edits`.
#[derive(Debug)]
pub struct ImageEdits;

/// The names that the images of a form have.
const IMAGE_NAMES: [&str; 4] = ["image", "image[]", "images", "images[]"];

impl Front for ImageGenerations {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow = FrontRow::new(
            ("images", "/v1/images/generations"),
            Operation::Images,
            || describe(include_str!("generations.json"), &check::GENERATIONS),
        );
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        check::check(&body, false, &Self).map(Received::Complete)
    }

    fn read_form(&self, body: &Bytes, boundary: &str) -> Result<Received, Fault> {
        let json = to_json((body, boundary), &check::GENERATIONS, &IMAGE_NAMES)?;
        self.read(&ClientHead::silent(), json)
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        chat(request)
    }

    fn name_of(&'static self, member: NamedMember, _source: &Source) -> &'static str {
        name_of(member)
    }

    fn explain(&self, fault: Fault) -> Fault {
        explain(fault)
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        writer(request, &identity, false)
    }
}

impl Front for ImageEdits {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow = FrontRow::new(
            ("image_edits", "/v1/images/edits"),
            Operation::ImageEdits,
            || describe(include_str!("edits.json"), &check::EDITS),
        );
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        check::check(&body, true, &Self).map(Received::Complete)
    }

    fn read_form(&self, body: &Bytes, boundary: &str) -> Result<Received, Fault> {
        let json = to_json((body, boundary), &check::EDITS, &IMAGE_NAMES)?;
        self.read(&ClientHead::silent(), json)
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        chat(request)
    }

    fn name_of(&'static self, member: NamedMember, _source: &Source) -> &'static str {
        name_of(member)
    }

    fn explain(&self, fault: Fault) -> Fault {
        explain(fault)
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        writer(request, &identity, true)
    }
}

/// Returns the chat that a request stands for.
fn chat(request: &ModelRequest) -> Result<Conversation<'_>, Fault> {
    match request.payload.images() {
        Some(images) => Ok(conversation::read(request, images)),
        None => Err(Fault::new(
            FaultKind::Internal,
            "the request is for no images",
        )),
    }
}

fn writer(request: &ModelRequest, identity: &ReplyIdentity, is_edit: bool) -> Box<dyn Writer> {
    if request.is_stream {
        let count = request.image_count().unwrap_or(1);
        Box::new(EventWriter::new(identity.created, is_edit, count))
    } else {
        Box::new(ListWriter::new(identity.created, is_edit))
    }
}

/// What the API calls members that chats have, too.
const NAMES: [(NamedMember, &str); 7] = [
    (
        NamedMember::Parameter(Parameter::ImageAspectRatio),
        "aspect_ratio",
    ),
    (NamedMember::Parameter(Parameter::ImageSize), "size"),
    (NamedMember::Parameter(Parameter::ImageQuality), "quality"),
    (
        NamedMember::Parameter(Parameter::ImageModeration),
        "moderation",
    ),
    (NamedMember::Parameter(Parameter::ImageCount), "n"),
    (NamedMember::ImageOutput, "prompt"),
    (NamedMember::Media, "images"),
];

fn name_of(member: NamedMember) -> &'static str {
    let mut names = NAMES.iter();
    let named = names.find(|(named, _)| *named == member);
    match (named, member) {
        (Some((_, name)), _) => name,
        (None, NamedMember::Turns) => "prompt",
        (None, member) => Dialect::Chat.name_of(member),
    }
}

/// Names the fields of the request in place of those of its chat.
fn explain(mut fault: Fault) -> Fault {
    let Some(param) = fault.param.as_deref() else {
        return fault;
    };
    let mut names = NAMES
        .iter()
        .map(|(member, own)| (Dialect::Chat.name_of(*member), *own));
    if let Some((chat, own)) = names.find(|(chat, own)| [*chat, *own].contains(&param)) {
        let message = &fault.message;
        fault.message = message
            .replace(&format!("`{chat}`"), &format!("`{own}`"))
            .into();
        fault.param = Some(own.to_owned());
    }
    fault
}
