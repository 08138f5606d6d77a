//! The members that all chunks of one answer, or the whole reply, begin with, in chat completions and completions alike.

use crate::json::{Str, write_number};
use crate::models::reply::ReplyIdentity;

/// Writes `{"id":…,"object":…,"created":…,"model":…`, without a closing brace.
pub(super) fn write_head(identity: &ReplyIdentity, object: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    Str::Plain(&identity.id).write(out);
    out.extend_from_slice(b",\"object\":");
    Str::Plain(object).write(out);
    out.extend_from_slice(b",\"created\":");
    write_number(identity.created, out);
    out.extend_from_slice(b",\"model\":");
    Str::Plain(&identity.model).write(out);
}
