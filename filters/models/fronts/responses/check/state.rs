//! What a request says that needs kept responses.

use crate::fault::{Fault, FaultKind};
use crate::models::check::reject::Reject;
use crate::models::request::Source;
use crate::models::stateful::{ItemReference, StatefulRequest};

/// The members that need kept responses.
#[derive(Debug, Default)]
pub(super) struct StateFindings {
    /// `store`, where it is given.
    pub(super) store: Option<bool>,
    pub(super) is_background: bool,
    pub(super) previous: Option<Box<str>>,
    references: Vec<ItemReference>,
    /// What is said of the first of them where no responses are kept.
    first: Option<Reject>,
}

impl StateFindings {
    /// Notes a member that needs kept responses.
    pub(super) fn note(&mut self, refusal: impl FnOnce() -> Reject) {
        self.first.get_or_insert_with(refusal);
    }

    /// Notes an item that stands for another one.
    pub(super) fn refer(&mut self, reference: ItemReference, refusal: impl FnOnce() -> Reject) {
        self.note(refusal);
        self.references.push(reference);
    }

    /// Returns whether the request needs kept responses.
    pub(super) fn is_needed(&self) -> bool {
        self.first.is_some()
    }

    /// Returns the request that needs them.
    pub(super) fn into_request(self, source: Source, is_stream: bool) -> StatefulRequest {
        let refusal = match self.first {
            Some(first) => first.into_fault(),
            None => Fault::new(FaultKind::Internal, "the request needs no kept responses"),
        };
        StatefulRequest {
            source,
            is_stream,
            store: self.store,
            is_background: self.is_background,
            previous: self.previous,
            references: self.references,
            refusal,
        }
    }
}
