//! The journal's bytes: records that survive a process, and what they come to when it is gone.
//!
//! [`frame`] puts records into bytes and finds damage, [`replay`] makes entries of the ledger out of them.
//! Where the bytes are kept is not known here.

mod frame;
mod record;
mod replay;

#[cfg(test)]
mod tests;

pub use frame::{Damage, HEADER, Read, Reader, header, owner, put};
pub use record::{Delivered, Record, Reserve, Written};
pub use replay::Replay;
