//! Embeddings: the 400 rules of its requests, and the list that answers them. Source: docs/model-gateway.md 2.6.

use self::writer::ListWriter;
use super::plain_front::PlainFront;
use crate::models::check::describe::describe;
use crate::models::front::FrontRow;
use crate::models::operation::Operation;

mod check;
#[cfg(test)]
mod tests;
mod writer;

/// The front of `POST /v1/embeddings`.
pub static EMBEDDINGS: PlainFront = PlainFront {
    row: FrontRow::new(
        ("embeddings", "/v1/embeddings"),
        Operation::Embeddings,
        || describe(include_str!("description.json"), &[&check::FIELDS]),
    ),
    check: check::check,
    writer: |_, identity| Box::new(ListWriter::new(&identity.model)),
};
