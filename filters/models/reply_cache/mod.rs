//! The response cache of the model gateway, but for its memory: what makes two requests equal ([`key`]), how a reply is
//! recorded while it passes ([`recorder`]), and how it is stored and replayed ([`cached_reply`]).
//!
//! A reply is stored as the pieces that its decoder put into the writer, without ids and times. So one stored reply
//! serves streams and whole responses, through the writers that any reply goes through. Source: docs/response-cache.md.

pub mod cached_reply;
mod canonical;
pub mod key;
pub mod recorder;

#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod recorder_tests;
