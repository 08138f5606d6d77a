//! Voyage's wire: embeddings, rerank. Its replies have the shapes of OpenAI's convention, its requests have words of their own.

mod embeddings;

use super::error_body;
use super::ranking::Words;
use super::vector_api::VectorApi;

/// The wire. Of rankings `top_k` results stand in `data`.
pub(super) static VOYAGE: VectorApi = VectorApi {
    embeddings: embeddings::CODEC,
    rerank_path: "/rerank",
    rerank_words: Words {
        top_n: "top_k",
        bounds: &[],
        repeats_documents: false,
    },
    rerank_passes: "truncation",
    list_path: None,
    classify: error_body::classify,
};
