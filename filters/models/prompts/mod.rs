//! Managed prompts: messages, a model and parameters under a name, in numbered versions that never change.
//!
//! A [`tree`] is a file with the place of each value, [`prompt`] compiles it once, [`template`] renders its messages,
//! [`mod@reference`] is how a request names a prompt, and [`library`] finds it. [`origin`] remembers what
//! it has written, and [`shown`] tells callers. What a chat request is made of is not known
//! here: [`super::managed`] puts a prompt into one, and the front of chat completions checks a file's messages.

pub mod library;
pub mod origin;
pub mod prompt;
mod read;
pub mod reference;
pub mod shown;
pub mod template;
pub mod tree;

#[cfg(test)]
mod tests;

/// The maximum size of a prompt: of its file, and of its text in the store. Our choice: a prompt stays in the memory of
/// every process.
pub const MAX_PROMPT_BYTES: usize = 256 << 10;
