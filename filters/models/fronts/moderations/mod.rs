//! Moderations: the 400 rules of its requests, and the results that answer them. Source: docs/model-gateway.md 2.11.

use super::item_list::{ItemWriter, ListEnd};
use super::plain_front::PlainFront;
use crate::json::Str;
use crate::models::check::describe::describe;
use crate::models::front::FrontRow;
use crate::models::operation::Operation;

mod check;
#[cfg(test)]
mod tests;

/// The front of `POST /v1/moderations`.
pub static MODERATIONS: PlainFront = PlainFront {
    row: FrontRow::new(
        ("moderations", "/v1/moderations"),
        Operation::Moderations,
        || describe(include_str!("description.json"), &[&check::FIELDS]),
    ),
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
