//! The journal's bytes: records that survive a process, and what they come to when it is gone.
//!
//! [`frame`] puts records into bytes and finds damage, [`replay`] makes entries of the ledger out of them.
//! Where the bytes are kept is not known here.

mod frame;
mod record;
mod replay;

#[cfg(test)]
mod tests;

pub use frame::{Damage, FrameRead, FrameReader, HEADER, header, owner, put};
pub use record::{Delivered, Record, RecordRef, Reserve};
pub use replay::Replay;
