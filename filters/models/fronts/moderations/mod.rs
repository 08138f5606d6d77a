//! Moderations: the 400 rules of its requests, and the results that answer them. Source: docs/model-gateway.md 2.11.

use std::sync::LazyLock;

use super::item_list::{ItemWriter, ListEnd};
use super::plain_front::PlainFront;
use crate::json::Str;
use crate::limits::QuotaGroup;
use crate::models::check::shape::describe;
use crate::models::front::FrontRow;
use crate::models::operation::Operation;

mod check;
#[cfg(test)]
mod tests;

/// The front of `POST /v1/moderations`.
pub static MODERATIONS: PlainFront = PlainFront {
    row: FrontRow {
        name: "moderations",
        path: "/v1/moderations",
        operation: Operation::Moderations,
        quota: QuotaGroup::Moderation,
        description: LazyLock::new(|| {
            describe(
                include_str!("description.json"),
                "ModerationRequest",
                &check::FIELDS,
            )
        }),
    },
    check: check::check,
    writer: |_, identity| {
        let begin = b"{\"results\":[".to_vec();
        Box::new(ItemWriter::new(identity, begin, write_end))
    },
};

fn write_end(end: &ListEnd<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"],\"id\":\"modr-");
    Str::Plain(&end.identity.id).write_contents(out);
    out.extend_from_slice(b"\",\"model\":");
    Str::Plain(&end.identity.model).write(out);
    out.push(b'}');
}
