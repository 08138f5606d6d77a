//! Typed decisions: the 400 rules of their requests, and the answers. Source: docs/model-gateway.md 2.15.

use super::item_list::{ItemWriter, ListEnd};
use super::plain_front::PlainFront;
use crate::json::{Object, Str};
use crate::models::check::describe::describe;
use crate::models::front::FrontRow;
use crate::models::operation::Operation;

mod check;
mod questions;
#[cfg(test)]
mod tests;

/// The front of `POST /v1/systemone`.
pub static SYSTEM_ONE: PlainFront = PlainFront {
    row: FrontRow::new(
        ("systemone", "/v1/systemone"),
        Operation::TypedDecisions,
        || describe(include_str!("description.json"), &[&check::FIELDS]),
    ),
    check: check::check,
    writer: |_, identity| {
        let mut begin = b"{\"model\":".to_vec();
        Str::Plain(&identity.model).write(&mut begin);
        begin.extend_from_slice(b",\"answers\":{");
        Box::new(ItemWriter::new(identity, begin, write_end))
    },
};

/// Writes `usage`. Tokens of answers are told, and not billed.
fn write_end(end: &ListEnd<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"},\"usage\":");
    let told = &end.settlement.usage;
    let mut usage = Object::open(out);
    usage.number("input_tokens", told.prompt);
    usage.raw("output_tokens", end.member("output_tokens").unwrap_or("0"));
    if told.estimated {
        usage.text("info", "estimated");
    }
    usage.close();
    out.push(b'}');
}
