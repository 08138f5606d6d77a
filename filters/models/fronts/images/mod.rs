//! Images: the 400 rules of requests for them, the chat that such a request stands for, and the list or the events that
//! answer it. Source: docs/model-gateway.md 2.7.

use bytes::Bytes;

use self::events::EventWriter;
use self::list::ListWriter;
use crate::fault::{Fault, FaultKind};
use crate::models::chat::conversation::Conversation;
use crate::models::check::describe::describe;
use crate::models::check::form::to_json;
use crate::models::front::{Front, FrontRow, Received};
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::ModelRequest;

mod body;
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

    fn read(&self, body: Bytes) -> Result<Received, Fault> {
        check::check(&body, false, &Self).map(Received::Complete)
    }

    fn read_form(&self, body: &Bytes, boundary: &str) -> Result<Received, Fault> {
        self.read(to_json(
            (body, boundary),
            &check::GENERATIONS,
            &IMAGE_NAMES,
        )?)
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        chat(request)
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

    fn read(&self, body: Bytes) -> Result<Received, Fault> {
        check::check(&body, true, &Self).map(Received::Complete)
    }

    fn read_form(&self, body: &Bytes, boundary: &str) -> Result<Received, Fault> {
        self.read(to_json((body, boundary), &check::EDITS, &IMAGE_NAMES)?)
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        chat(request)
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

/// The fields of the chat that stands for a request, and the fields of the request.
const FIELDS: [(&str, &str); 8] = [
    ("image_config.aspect_ratio", "aspect_ratio"),
    ("image_config.image_size", "size"),
    ("image_config.image_quality", "quality"),
    ("image_config.moderation", "moderation"),
    ("image_config.n", "n"),
    ("image_config", "prompt"),
    ("modalities", "prompt"),
    ("messages", "images"),
];

/// Names the fields of the request in place of those of its chat.
fn explain(mut fault: Fault) -> Fault {
    let Some(param) = fault.param.as_deref() else {
        return fault;
    };
    let mut fields = FIELDS.iter();
    if let Some((chat, own)) = fields.find(|(chat, _)| *chat == param) {
        let message = &fault.message;
        fault.message = message
            .replace(&format!("`{chat}`"), &format!("`{own}`"))
            .into();
        fault.param = Some((*own).to_owned());
    }
    fault
}
