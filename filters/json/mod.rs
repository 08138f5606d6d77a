//! One pass over a JSON text: is it well formed and within limits, and where does each member stand.
//!
//! [`Walker`] is a pull parser that borrows: strings and numbers come back as slices of the text, values that
//! nobody acts on are skipped at the speed of a scan, and nothing is allocated but for keys or strings that
//! hold escapes. It refuses what the product refuses everywhere (docs/decisions.md 17): more than [`MAX_DEPTH`] levels,
//! also in values that are skipped, and halves of surrogate pairs. It does not build trees; translation between
//! conventions uses `serde_json` on the same bytes. [`Object`] writes what we have to say ourselves.

mod error;
mod scan;
mod text;
mod walk;
mod write;

#[cfg(test)]
mod tests;

pub use error::{Error, Type, What};
pub use text::{Str, write_escaped};
pub use walk::Walker;
pub use write::{Object, write_number};

/// How many levels of arrays and objects a text may have. Source: docs/decisions.md 17.
pub const MAX_DEPTH: u32 = 128;
