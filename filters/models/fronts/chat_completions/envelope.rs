//! What all chunks of one answer, or the whole reply, have in common.

use crate::json::{Str, write_number};

/// Identity of one answer.
#[derive(Clone, Debug)]
pub struct ReplyIdentity {
    /// The upstream's id where its wire is ours, else the one passed in.
    pub id: Box<str>,
    /// Unix seconds.
    pub created: u64,
    /// `provider/model`, with `:region` where one was used. Source: docs/decisions.md 3.
    pub model: Box<str>,
}

impl ReplyIdentity {
    /// Takes the provider's identity where it gives one.
    pub fn identify(&mut self, id: Option<&str>, created: Option<u64>) {
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            self.id = id.into();
        }
        if let Some(created) = created.filter(|&created| created > 0) {
            self.created = created;
        }
    }

    /// Writes `{"id":…,"object":…,"created":…,"model":…`, without a closing brace.
    pub fn write_head(&self, object: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":");
        Str::Plain(&self.id).write(out);
        out.extend_from_slice(b",\"object\":");
        Str::Plain(object).write(out);
        out.extend_from_slice(b",\"created\":");
        write_number(self.created, out);
        out.extend_from_slice(b",\"model\":");
        Str::Plain(&self.model).write(out);
    }
}
