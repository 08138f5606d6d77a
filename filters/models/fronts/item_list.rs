//! A response that is a list of items with little around it, written item by item.

use bytes::Bytes;

use crate::fault::Fault;
use crate::json::Str;
use crate::models::metadata::Metadata;
use crate::models::reply::{ReplyIdentity, Reported, Sink, Writer};
use crate::models::usage::{Settlement, Usage};

/// Writes the list. Nothing of it goes out before it is whole, so any provider may still fail.
#[derive(Debug)]
pub(super) struct ItemWriter {
    identity: ReplyIdentity,
    write_end: WriteEnd,
    out: Vec<u8>,
    has_items: bool,
    is_complete: bool,
    usage: Option<Usage>,
    members: Vec<(Box<str>, Box<str>)>,
}

/// Writes what follows the items, from the bracket that closes them.
pub(super) type WriteEnd = fn(&ListEnd<'_>, &mut Vec<u8>);

/// What is known at the end of a list.
pub(super) struct ListEnd<'a> {
    pub(super) identity: &'a ReplyIdentity,
    pub(super) settlement: &'a Settlement,
    members: &'a [(Box<str>, Box<str>)],
}

impl ListEnd<'_> {
    /// Returns a member that the reply has beside its items, as JSON.
    pub(super) fn member(&self, key: &str) -> Option<&str> {
        let mut members = self.members.iter().rev();
        let found = members.find(|(known, _)| **known == *key);
        found.map(|(_, value)| &**value)
    }
}

impl ItemWriter {
    /// Begins a list with `begin`, up to the bracket that opens it.
    pub(super) fn new(identity: ReplyIdentity, begin: Vec<u8>, write_end: WriteEnd) -> Self {
        Self {
            identity,
            write_end,
            out: begin,
            has_items: false,
            is_complete: false,
            usage: None,
            members: Vec::new(),
        }
    }

    /// Begins the list `results` behind the id and the model.
    pub(super) fn of_results(identity: ReplyIdentity, write_end: WriteEnd) -> Self {
        let mut begin = b"{\"id\":".to_vec();
        Str::Plain(&identity.id).write(&mut begin);
        begin.extend_from_slice(b",\"model\":");
        Str::Plain(&identity.model).write(&mut begin);
        begin.extend_from_slice(b",\"results\":[");
        Self::new(identity, begin, write_end)
    }
}

impl Sink for ItemWriter {
    fn item(&mut self, item: &[u8]) {
        if std::mem::replace(&mut self.has_items, true) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(item);
    }

    fn member(&mut self, key: &str, value: &str) {
        self.members.push((key.into(), value.into()));
    }

    fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }
}

impl Writer for ItemWriter {
    fn has_content(&self) -> bool {
        self.is_complete
    }

    fn take(&mut self) -> Bytes {
        if self.is_complete {
            std::mem::take(&mut self.out).into()
        } else {
            Bytes::new()
        }
    }

    fn reported(&self) -> Reported {
        Reported {
            usage: self.usage,
            ..Reported::default()
        }
    }

    fn complete(&mut self, settlement: &Settlement, _: &Metadata<'_>) {
        let end = ListEnd {
            identity: &self.identity,
            settlement,
            members: &self.members,
        };
        (self.write_end)(&end, &mut self.out);
        self.is_complete = true;
    }

    fn fail(&mut self, _: &Fault, _: Option<&Settlement>) {}
}
