//! Answers in the chat completions shape: chunks of a stream, or one whole reply.

pub mod envelope;
pub mod fold;
mod members;
pub mod stream;
mod tools;
