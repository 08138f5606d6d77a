//! Reranking: the 400 rules of its requests, and the results that answer them. Source: docs/model-gateway.md 2.10.

use super::item_list::{ItemWriter, ListEnd};
use super::plain_front::PlainFront;
use crate::json::{Object, Str};
use crate::models::check::describe::describe;
use crate::models::front::FrontRow;
use crate::models::operation::Operation;
use crate::money::Unit;

mod check;
#[cfg(test)]
mod tests;

/// The front of `POST /v1/rerank`.
pub static RERANK: PlainFront = PlainFront {
    row: FrontRow::new(("rerank", "/v1/rerank"), Operation::Rerank, || {
        describe(include_str!("description.json"), &[&check::FIELDS])
    }),
    check: check::check,
    writer: |_, identity| Box::new(ItemWriter::of_results(identity, write_end)),
};

/// Writes `meta`: what the provider bills, in the convention's words.
fn write_end(end: &ListEnd<'_>, out: &mut Vec<u8>) {
    let usage = &end.settlement.usage;
    let searches = usage.units.get(Unit::Search);
    out.extend_from_slice(b"],\"meta\":");
    let mut meta = Object::open(out);
    meta.object("api_version", |version| version.text("version", "1"));
    meta.object("billed_units", |units| {
        // A provider bills one of both.
        if usage.prompt > 0 {
            units.number("input_tokens", usage.prompt);
            units.number("total_tokens", usage.total());
        } else {
            units.number("search_units", searches);
        }
    });
    if usage.estimated {
        let warning = ["the billed units are an estimate"];
        meta.array("warnings", warning, |text, out| Str::Plain(text).write(out));
    }
    meta.close();
    out.push(b'}');
}
