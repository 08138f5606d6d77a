//! The journal's bytes: records that survive a crash, and the entries that recovery makes of them.
//!
//! [`frame`] encodes records as bytes and detects damage; [`replay`] turns records into entries of the ledger. This
//! module does not know where the bytes are stored.

mod frame;
mod record;
mod replay;

#[cfg(test)]
mod tests;

pub use frame::{Damage, FrameRead, FrameReader, HEADER_BYTES, header, read_owner, write_record};
pub use record::{Delivered, Record, RecordRef, Reserve};
pub use replay::Replay;
