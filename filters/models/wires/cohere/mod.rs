//! Cohere's wire, version 2 of its API: embeddings, rerank.

mod embeddings;
mod failure;

use super::ranking::Words;
use super::vector_api::VectorApi;

/// The wire. Its rankings never repeat documents.
pub(super) static COHERE: VectorApi = VectorApi {
    embeddings: embeddings::CODEC,
    rerank_path: "/v2/rerank",
    rerank_words: Words {
        top_n: "top_n",
        bounds: &["max_tokens_per_doc"],
        repeats_documents: false,
    },
    rerank_passes: "priority",
    list_path: Some("/v1/models?page_size=1000"),
    classify: failure::classify,
};
