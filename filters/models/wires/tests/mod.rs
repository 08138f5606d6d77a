//! Tests of what several wires do alike, by operation, and what tests of wires share: requests and targets ([`item`], [`search`]),
//! and whole answers of replies ([`replay`]), and the codec of a request's operation ([`wire_methods`]). Tests of one wire are in its folder.

use super::*;

mod choices;
mod clouds;
mod decided;
mod embedding_parts;
mod embeddings;
mod found_pages;
mod item;
mod media;
mod moderation;
mod ocr;
mod predictions;
mod ranking;
pub(super) mod replay;
mod search;
mod search_reply;
mod speech;
mod tier;
mod transcription;
mod video;
mod wire_methods;
