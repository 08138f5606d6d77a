//! The body of a checked request, on its way into a conversation.

use std::fmt;

use serde::Deserialize;

use crate::fault::{Fault, FaultKind};
use crate::json::Walker;
use crate::models::request::Source;

/// A checked body, whose members are found without another walk.
pub(super) struct CheckedBody<'a> {
    pub(super) text: &'a str,
    pub(super) source: &'a Source,
}

impl<'a> CheckedBody<'a> {
    /// Parses the value of a member; null counts as absent.
    ///
    /// Errors: an internal fault, because the checks have passed.
    pub(super) fn parsed<T: Deserialize<'a>>(&self, key: &str) -> Result<Option<T>, Fault> {
        let Some(member) = self.source.member(key) else {
            return Ok(None);
        };
        match self.text.get(member.value.clone()).unwrap_or_default() {
            "null" => Ok(None),
            json => serde_json::from_str(json).map(Some).map_err(unparsed),
        }
    }

    /// Returns a walker that stands before the value of a member.
    pub(super) fn walker(&self, key: &str) -> Option<Walker<'a>> {
        let member = self.source.member(key)?;
        Some(Walker::from(self.text, member.value.start))
    }
}

/// Returns the fault of a checked body that does not parse.
pub(super) fn unparsed(error: impl fmt::Display) -> Fault {
    Fault::new(FaultKind::Internal, "the request could not be translated")
        .with_detail(format!("checked request does not parse: {error}"))
}
