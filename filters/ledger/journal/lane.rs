//! Judges the segments of one lane: what is damage, and what was only never forced to the disk.

use super::frame::SegmentRead;

/// One segment of a lane, as it was found.
#[derive(Clone, Debug)]
pub struct FoundSegment {
    /// Its number, from its file's name.
    pub number: u32,
    pub read: SegmentRead,
}

/// Bytes that are not intact.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Mismatch {
    pub segment: u32,
    /// The offset of the first byte that is not intact.
    pub offset: u32,
    pub reason: &'static str,
}

/// Returns the ends of segments that were never forced to the disk and are not intact. Their records count as not
/// written. `segments` are all that exist of one lane, in order.
///
/// Errors: damage, which is a mismatch in bytes that the disk had confirmed.
pub fn check_lane(segments: &[FoundSegment]) -> Result<Vec<Mismatch>, Mismatch> {
    let forced = segments.iter().map(|segment| segment.read.forced).max();
    // The place up to which the disk had confirmed this segment and those before it.
    let mut forced = forced.unwrap_or_default();
    let mut found = Vec::new();
    for segment in segments.iter().rev() {
        let read = &segment.read;
        let mut is_damaged = false;
        if segment.number == forced.segment {
            is_damaged = read.intact_end < forced.offset;
            forced = read.before.unwrap_or_default();
        }
        let reason = match read.mismatch {
            Some(reason) => reason,
            None if is_damaged => "records are missing",
            None => continue,
        };
        let mismatch = Mismatch {
            segment: segment.number,
            offset: read.intact_end,
            reason,
        };
        found.push((mismatch, is_damaged));
    }
    found.reverse();
    match found.iter().find(|(_, is_damaged)| *is_damaged) {
        Some((damage, _)) => Err(*damage),
        None => Ok(found.into_iter().map(|(mismatch, _)| mismatch).collect()),
    }
}
