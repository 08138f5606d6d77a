//! Encodes records as bytes and finds them again, also in a file that a power cut or a bad disk has damaged.
//!
//! Layout of a segment: a header of [`HEADER_BYTES`] bytes, then frames, then zeros. The header is a format name, the id
//! of the process, the numbers of the lane and of the segment, the place up to which earlier segments count, and a
//! CRC-32. A frame is a head of [`FRAME_HEAD_BYTES`] bytes and a record. The head is a marker, the length of the record,
//! its CRC-32, the lane's watermark, and a CRC-32 of the head. All numbers are little-endian and have 32 bits.
//!
//! The watermark is the place up to which all bytes of the lane had been forced to the disk when the frame was written.
//! Bytes before it were confirmed by the disk, so a mismatch there is damage. Bytes behind it may be missing in any
//! order after a power cut, and count as not written.
//!
//! The CRC of a frame's head starts from the CRC of the segment's identity, which includes the random id of the process.
//! So bytes of another segment are no frame here, nor is a text that a client has sent.

use super::{Record, RecordRef};

/// Bytes before the first frame.
pub const HEADER_BYTES: usize = 8 + 16 + 5 * 4;
/// Bytes of a frame before its record.
pub const FRAME_HEAD_BYTES: usize = 6 * 4;
const MAGIC: [u8; 8] = *b"WGLEDG02";
/// The first bytes of a frame.
const MARKER: [u8; 4] = [0xa5, b'W', b'G', 0x02];
/// Most records are shorter than this.
const USUAL_RECORD_BYTES: usize = 1024;
/// The longest valid record.
const MAX_RECORD_BYTES: usize = 1 << 20;

/// The identity of a segment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SegmentId {
    /// The id of the process that writes it.
    pub owner: [u8; 16],
    /// The lane, in which segments follow one another.
    pub lane: u32,
    /// The segment's number in its lane, from 1.
    pub number: u32,
}

impl SegmentId {
    fn bytes(&self) -> [u8; 32] {
        // Copied as slices of known lengths: a call's record needs these bytes, and a loop over bytes takes longer.
        let mut out = [0; 32];
        let (magic, rest) = out.split_at_mut(MAGIC.len());
        let (owner, rest) = rest.split_at_mut(self.owner.len());
        let (lane, number) = rest.split_at_mut(4);
        magic.copy_from_slice(&MAGIC);
        owner.copy_from_slice(&self.owner);
        lane.copy_from_slice(&self.lane.to_le_bytes());
        number.copy_from_slice(&self.number.to_le_bytes());
        out
    }

    /// Returns the checksum from which the checksums of its frames start.
    fn salt(&self) -> u32 {
        crc32fast::hash(&self.bytes())
    }
}

/// A place in a lane: all bytes before it.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Watermark {
    pub segment: u32,
    pub offset: u32,
}

/// Returns the first bytes of a segment. `before`: the place up to which earlier segments must be intact once this one
/// is on the disk. It is the end of the previous segment, unless the disk refused that end.
pub fn header(id: &SegmentId, before: Watermark) -> [u8; HEADER_BYTES] {
    let mut out = [0; HEADER_BYTES];
    let place = [before.segment, before.offset].map(u32::to_le_bytes);
    let place = place.as_flattened();
    let mut checksum = crc32fast::Hasher::new_with_initial(id.salt());
    checksum.update(place);
    let checksum = checksum.finalize().to_le_bytes();
    let identity = id.bytes();
    let bytes = identity.iter().chain(place).chain(&checksum);
    out.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    out
}

/// Encodes a record behind space for its frame's head, which [`seal_frame`] fills in.
pub fn encode_frame<'a>(record: impl Into<RecordRef<'a>>, out: &mut Vec<u8>) {
    let record = record.into();
    out.clear();
    out.resize(FRAME_HEAD_BYTES + USUAL_RECORD_BYTES, 0);
    // Into a slice, an encoder writes without asking for room at each number.
    let place = out.get_mut(FRAME_HEAD_BYTES..).unwrap_or_default();
    let encoded = postcard::to_slice(&record, place).map(|record| record.len());
    out.truncate(FRAME_HEAD_BYTES + *encoded.as_ref().unwrap_or(&0));
    // Encoding into a vector cannot fail for these types. If it did, no partial record may remain.
    if encoded.is_err() && postcard::to_io(&record, &mut *out).is_err() {
        out.truncate(FRAME_HEAD_BYTES);
    }
    let record = out.get(FRAME_HEAD_BYTES..).unwrap_or_default();
    let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
    let words = [length, crc32fast::hash(record)].map(u32::to_le_bytes);
    if let Some(place) = out.get_mut(4..12) {
        place.copy_from_slice(words.as_flattened());
    }
}

/// Returns the length in bytes of the first of several encoded frames; `None` without frames.
pub fn frame_length(frames: &[u8]) -> Option<usize> {
    let [_, length, ..] = words(frames.first_chunk()?);
    Some(FRAME_HEAD_BYTES + length as usize)
}

/// Decodes a record that [`encode_frame`] has encoded.
///
/// Errors: another version encoded it.
pub fn decode_record(record: &[u8]) -> Result<Record, &'static str> {
    postcard::from_bytes(record).map_err(|_| "a record is none of this version")
}

/// Fills in the head of a frame that goes into this segment now.
pub fn seal_frame(frame: &mut [u8], id: &SegmentId, forced: Watermark) {
    let Some((head, _)) = frame.split_first_chunk_mut::<FRAME_HEAD_BYTES>() else {
        return;
    };
    // The encoder has left these two here.
    let [_, length, record_checksum, ..] = words(head);
    let mut out = [
        u32::from_le_bytes(MARKER),
        length,
        record_checksum,
        forced.segment,
        forced.offset,
        0,
    ];
    out[5] = head_checksum(&out, id.salt());
    head.copy_from_slice(out.map(u32::to_le_bytes).as_flattened());
}

/// Returns a frame that only states the watermark.
pub fn watermark_frame(id: &SegmentId, forced: Watermark) -> [u8; FRAME_HEAD_BYTES] {
    let mut frame = [0; FRAME_HEAD_BYTES];
    seal_frame(&mut frame, id, forced);
    frame
}

fn words(head: &[u8; FRAME_HEAD_BYTES]) -> [u32; 6] {
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(head.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

fn head_checksum(words: &[u32; 6], salt: u32) -> u32 {
    let bytes = words.map(u32::to_le_bytes);
    let mut checksum = crc32fast::Hasher::new_with_initial(salt);
    checksum.update(bytes.as_flattened().split_at(FRAME_HEAD_BYTES - 4).0);
    checksum.finalize()
}

/// What a segment's bytes hold.
#[derive(Clone, Debug, Default)]
pub struct SegmentRead {
    /// All intact records, in order.
    pub records: Vec<Record>,
    /// The highest watermark of an intact frame.
    pub forced: Watermark,
    /// The place up to which earlier segments must be intact, if the header is.
    pub before: Option<Watermark>,
    /// The first place at which there is no intact frame: the end of the records, or of their intact part.
    pub intact_end: u32,
    /// Why the first frame behind `intact_end` is not intact; `None` if there are only zeros.
    pub mismatch: Option<&'static str>,
}

/// Reads a segment. It skips what is not intact and goes on behind it.
pub fn read_segment(file: &[u8], id: &SegmentId) -> SegmentRead {
    let mut read = SegmentRead::default();
    let salt = id.salt();
    match read_header(file, id) {
        Ok(before) => {
            read.before = Some(before);
            read.intact_end = HEADER_BYTES as u32;
        }
        Err(mismatch) => read.mismatch = mismatch,
    }
    let mut is_intact = read.before.is_some();
    let mut offset = HEADER_BYTES.min(file.len());
    loop {
        match read_frame(file.get(offset..).unwrap_or_default(), salt) {
            Ok(frame) => {
                read.records.extend(frame.record);
                read.forced = read.forced.max(frame.forced);
                offset += frame.bytes;
                if is_intact {
                    read.intact_end = u32::try_from(offset).unwrap_or(u32::MAX);
                }
            }
            Err(mismatch) => {
                if std::mem::take(&mut is_intact) {
                    read.mismatch = mismatch;
                }
                let behind = file.get(offset + 1..).unwrap_or_default();
                match memchr::memmem::find(behind, &MARKER) {
                    Some(at) => offset += 1 + at,
                    None => return read,
                }
            }
        }
    }
}

/// Returns the place up to which earlier segments must be intact.
///
/// Errors: why the header is not intact; `None` if it is zero or missing.
fn read_header(file: &[u8], id: &SegmentId) -> Result<Watermark, Option<&'static str>> {
    let Some(bytes) = file.first_chunk::<HEADER_BYTES>() else {
        let is_begun = file.iter().any(|byte| *byte != 0);
        return Err(is_begun.then_some("the header is cut"));
    };
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        u32::from_le_bytes(bytes.unwrap_or_default())
    };
    let before = Watermark {
        segment: word(32),
        offset: word(36),
    };
    if *bytes == header(id, before) {
        Ok(before)
    } else {
        let is_begun = bytes.iter().any(|byte| *byte != 0);
        Err(is_begun.then_some("the header does not match its checksum"))
    }
}

struct Frame {
    record: Option<Record>,
    forced: Watermark,
    bytes: usize,
}

/// Reads the frame at the start of `rest`.
///
/// Errors: why the bytes are no frame; `None` if only zeros follow.
fn read_frame(rest: &[u8], salt: u32) -> Result<Frame, Option<&'static str>> {
    let Some((head, behind)) = rest.split_first_chunk::<FRAME_HEAD_BYTES>() else {
        let is_begun = rest.iter().any(|byte| *byte != 0);
        return Err(is_begun.then_some("the head of a record is cut"));
    };
    let words = words(head);
    let [marker, length, record_checksum, segment, offset, checksum] = words;
    if marker != u32::from_le_bytes(MARKER) || checksum != head_checksum(&words, salt) {
        let is_begun = rest.iter().any(|byte| *byte != 0);
        return Err(is_begun.then_some("the head of a record does not match its checksum"));
    }
    let forced = Watermark { segment, offset };
    let length = length as usize;
    if length > MAX_RECORD_BYTES {
        return Err(Some("a record is longer than any can be"));
    }
    let Some(record) = behind.get(..length) else {
        return Err(Some("a record is cut"));
    };
    if crc32fast::hash(record) != record_checksum && length > 0 {
        return Err(Some("a record does not match its checksum"));
    }
    let record = if length == 0 {
        None
    } else {
        Some(decode_record(record)?)
    };
    Ok(Frame {
        record,
        forced,
        bytes: FRAME_HEAD_BYTES + length,
    })
}
