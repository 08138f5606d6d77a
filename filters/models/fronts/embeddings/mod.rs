//! Embeddings: the 400 rules of its requests, and the list that answers them. Source: docs/model-gateway.md 2.6.

use std::sync::LazyLock;

use self::writer::ListWriter;
use super::plain_front::PlainFront;
use crate::limits::QuotaGroup;
use crate::models::check::shape::describe;
use crate::models::front::FrontRow;
use crate::models::operation::Operation;

mod check;
#[cfg(test)]
mod tests;
mod writer;

/// The front of `POST /v1/embeddings`.
pub static EMBEDDINGS: PlainFront = PlainFront {
    row: FrontRow {
        name: "embeddings",
        path: "/v1/embeddings",
        operation: Operation::Embeddings,
        quota: QuotaGroup::Embeddings,
        description: LazyLock::new(|| {
            describe(
                include_str!("description.json"),
                "EmbeddingRequest",
                &check::FIELDS,
            )
        }),
    },
    check: check::check,
    writer: |_, identity| Box::new(ListWriter::new(&identity.model)),
};
