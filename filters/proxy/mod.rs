//! What every request has: a path and a client address.

mod path;

pub use path::{BadPath, normalise};
