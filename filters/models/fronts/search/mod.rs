//! Searches of the web: the 400 rules of its requests, and the results that answer them. Source: docs/model-gateway.md
//! 2.14.

use super::item_list::{ItemWriter, ListEnd};
use super::plain_front::PlainFront;
use crate::models::check::describe::describe;
use crate::models::front::FrontRow;
use crate::models::operation::Operation;

mod check;
#[cfg(test)]
mod tests;

/// The front of `POST /v1/search`.
pub static SEARCH: PlainFront = PlainFront {
    row: FrontRow::new(("search", "/v1/search"), Operation::Search, || {
        describe(include_str!("description.json"), &[&check::FIELDS])
    }),
    check: check::check,
    writer: |_, identity| Box::new(ItemWriter::of_results(identity, write_end)),
};

fn write_end(end: &ListEnd<'_>, out: &mut Vec<u8>) {
    out.push(b']');
    if let Some(time) = end.member("server_time") {
        out.extend_from_slice(b",\"server_time\":");
        out.extend_from_slice(time.as_bytes());
    }
    out.push(b'}');
}
