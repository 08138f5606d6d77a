//! Reads and writes JSON text without building trees.
//!
//! [`Walker`] is a pull parser that borrows: strings and numbers are slices of the text, unused values are skipped at
//! the speed of a scan, and only keys or strings with escapes allocate. It refuses what the product refuses everywhere
//! (docs/decisions.md 17): more than [`MAX_DEPTH`] levels, also in skipped values, and lone surrogates. Translation
//! between conventions uses `serde_json` on the same bytes. [`Object`] writes the product's own objects.

mod error;
pub mod members;
mod path;
mod scan;
mod text;
mod values;
mod walk;
mod write;

#[cfg(test)]
mod tests;

pub use error::{Error, ErrorKind, Type};
pub use path::{offset_of, path_at};
pub use text::{Str, split_plain_string, write_escaped};
pub use values::count_values;
pub use walk::Walker;
pub use write::{Object, quoted, write_number};

/// Maximum number of nested arrays and objects in a text. Source: docs/decisions.md 17.
pub const MAX_DEPTH: u32 = 128;
