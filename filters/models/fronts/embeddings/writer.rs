//! A list of embeddings, written item by item.

use crate::fault::Fault;
use crate::json::{Object, Str};
use crate::models::metadata::Metadata;
use crate::models::reply::{Reported, Sink, Writer};
use crate::models::usage::{Settlement, Usage};

/// Writes the list. Nothing of it goes out before it is whole, so any provider may still fail.
///
/// The contract gives this response neither `metadata` nor `cost`. Source: docs/model-gateway.md 2.6. Only why the
/// providers were chosen stands in `metadata`, if the request asks for it.
#[derive(Debug)]
pub(super) struct ListWriter {
    model: Box<str>,
    out: Vec<u8>,
    has_items: bool,
    is_complete: bool,
    usage: Option<Usage>,
}

impl ListWriter {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            out: b"{\"object\":\"list\",\"data\":[".to_vec(),
            has_items: false,
            is_complete: false,
            usage: None,
        }
    }
}

impl Sink for ListWriter {
    fn item(&mut self, item: &[u8]) {
        if std::mem::replace(&mut self.has_items, true) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(item);
    }

    fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }
}

impl Writer for ListWriter {
    fn has_content(&self) -> bool {
        self.is_complete
    }

    fn take(&mut self) -> Vec<u8> {
        if self.is_complete {
            std::mem::take(&mut self.out)
        } else {
            Vec::new()
        }
    }

    fn reported(&self) -> Reported {
        Reported {
            usage: self.usage,
            ..Reported::default()
        }
    }

    fn complete(&mut self, settlement: &Settlement, metadata: &Metadata<'_>) {
        let usage = &settlement.usage;
        self.out.extend_from_slice(b"],\"model\":");
        Str::Plain(&self.model).write(&mut self.out);
        self.out.extend_from_slice(b",\"usage\":");
        let mut object = Object::open(&mut self.out);
        object.number("prompt_tokens", usage.prompt);
        object.number("total_tokens", usage.total());
        if usage.estimated {
            object.text("info", "estimated");
        }
        object.close();
        if metadata.route.is_some() {
            self.out.extend_from_slice(b",\"metadata\":");
            let mut object = Object::open(&mut self.out);
            metadata.write_route(&mut object);
            object.close();
        }
        self.out.push(b'}');
        self.is_complete = true;
    }

    fn fail(&mut self, _: &Fault, _: Option<&Settlement>) {}
}
