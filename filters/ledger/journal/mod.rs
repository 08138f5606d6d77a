//! The journal's bytes: records that survive a crash, and the entries that recovery makes of them.
//!
//! [`frame`] encodes records as bytes and finds them again, [`lane`] tells damage from bytes that were never forced to the
//! disk, and [`replay`] turns records into entries of the ledger. This module does not know where the bytes are stored.

mod frame;
mod lane;
mod record;
mod replay;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;

pub use frame::{
    FRAME_HEAD_BYTES, HEADER_BYTES, SegmentId, SegmentRead, Watermark, decode_record, encode_frame,
    frame_length, header, read_segment, seal_frame, watermark_frame,
};
pub use lane::{FoundSegment, Mismatch, check_lane};
pub use record::{Record, RecordRef};
pub use replay::Replay;
