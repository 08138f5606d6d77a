//! Encodes records as bytes and decodes them.
//!
//! Layout of a file: [`HEADER_BYTES`] bytes that name the format and the process that owns the file, then records. A
//! record is its length (u32, little-endian), the CRC-32 of those four bytes, the payload, the CRC-32 of the payload,
//! and a closing byte. After the last record the file has zeros or ends.
//!
//! A process writes a file front to back. If it dies while writing a record, the end of that record is missing or zero.
//! No caller got a confirmation for such a record, so it counts as not written. Any other mismatch is damage, and the
//! error names its offset.

use super::{Record, RecordRef};

/// Bytes before the first record.
pub const HEADER_BYTES: usize = 8 + 16 + 4;
const MAGIC: [u8; 8] = *b"WGLEDG01";
/// The last byte of a record. A record that was not written to its end lacks it.
const CLOSING_BYTE: u8 = 0xa5;
/// Bytes before a payload: the length and its checksum.
const LEAD_BYTES: usize = 8;
/// Bytes after a payload: its checksum and the closing byte.
const TAIL_BYTES: usize = 5;
/// The longest valid record. A greater length is damage.
const MAX_RECORD_BYTES: usize = 1 << 20;

/// Damage in a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Damage {
    /// The offset of the damaged record.
    pub offset: usize,
    /// What is wrong with the record.
    pub reason: &'static str,
}

/// The next item of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FrameRead {
    /// A record.
    Record(Box<Record>),
    /// The end of the records.
    End {
        /// The offset at which the records end.
        offset: usize,
        /// Whether an unfinished record starts at that offset.
        is_cut: bool,
    },
}

/// Returns the first bytes of a file that this process owns.
pub fn header(owner: &[u8; 16]) -> [u8; HEADER_BYTES] {
    let mut out = [0; HEADER_BYTES];
    let checksum = crc32fast::hash(owner).to_le_bytes();
    let bytes = MAGIC.iter().chain(owner).chain(&checksum);
    out.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    out
}

/// Returns the process that owns a file, or `None` if the file has no header yet (empty, cut or zero).
///
/// Errors: damage at offset 0, or a format of another version.
pub fn read_owner(file: &[u8]) -> Result<Option<[u8; 16]>, Damage> {
    let is_begun = file
        .get(HEADER_BYTES - 1)
        .is_some_and(|_| file.iter().take(HEADER_BYTES).any(|byte| *byte != 0));
    if !is_begun {
        return Ok(None);
    }
    let part = |range| file.get::<std::ops::Range<usize>>(range);
    let damage = |reason| Damage { offset: 0, reason };
    if part(0..8) != Some(&MAGIC) {
        return Err(damage("this is no journal of this version"));
    }
    let owner: Option<[u8; 16]> = part(8..24).and_then(|bytes| bytes.try_into().ok());
    owner
        .filter(|owner| part(24..HEADER_BYTES) == Some(&crc32fast::hash(owner).to_le_bytes()))
        .map(Some)
        .ok_or_else(|| damage("the file's head does not match its checksum"))
}

/// Appends a record. Cost: one encoding into `out`.
pub fn write_record<'a>(record: impl Into<RecordRef<'a>>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; LEAD_BYTES]);
    let fallback = out.len();
    // Encoding into memory cannot fail for these types. If it did, no partial record may remain.
    if postcard::to_io(&record.into(), &mut *out).is_err() {
        out.truncate(fallback - LEAD_BYTES);
        return;
    }
    let payload = out.get(start + LEAD_BYTES..).unwrap_or_default();
    let checksum = crc32fast::hash(payload).to_le_bytes();
    let length = u32::try_from(payload.len())
        .unwrap_or(u32::MAX)
        .to_le_bytes();
    let lead = length
        .into_iter()
        .chain(crc32fast::hash(&length).to_le_bytes());
    for (to, from) in out.iter_mut().skip(start).zip(lead) {
        *to = from;
    }
    out.extend_from_slice(&checksum);
    out.push(CLOSING_BYTE);
}

/// Reads the records of a file in order.
#[derive(Clone, Debug)]
pub struct FrameReader<'a> {
    file: &'a [u8],
    offset: usize,
}

impl<'a> FrameReader<'a> {
    /// Starts after the file's header.
    pub fn new(file: &'a [u8]) -> Self {
        Self {
            file,
            offset: HEADER_BYTES,
        }
    }

    /// Starts at the first byte: `records` has no header.
    pub fn from_records(records: &'a [u8]) -> Self {
        Self {
            file: records,
            offset: 0,
        }
    }

    /// Returns the next item.
    ///
    /// Errors: damage. The reader cannot find the records after it.
    pub fn read(&mut self) -> Result<FrameRead, Damage> {
        let offset = self.offset;
        let rest = self.file.get(offset..).unwrap_or_default();
        if rest.iter().all(|byte| *byte == 0) {
            let is_cut = false;
            return Ok(FrameRead::End { offset, is_cut });
        }
        let damage = |reason| Damage { offset, reason };
        let cut = Ok(FrameRead::End {
            offset,
            is_cut: true,
        });
        let Some((length, lead)) = read_lead(rest) else {
            return cut;
        };
        if lead != crc32fast::hash(&length) {
            // An unfinished lead ends in zeros, and only zeros follow it.
            let is_unfinished = rest.iter().skip(LEAD_BYTES - 1).all(|byte| *byte == 0);
            return if is_unfinished {
                cut
            } else {
                Err(damage("the length of a record does not match its checksum"))
            };
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_RECORD_BYTES {
            return Err(damage("a record is longer than any can be"));
        }
        let Some(record) = rest.get(LEAD_BYTES..LEAD_BYTES + length + TAIL_BYTES) else {
            return cut;
        };
        let follows = rest.iter().skip(LEAD_BYTES + length + TAIL_BYTES);
        let (payload, tail) = record.split_at(length);
        let closing = tail.last().copied();
        if closing == Some(0) && follows.clone().all(|byte| *byte == 0) {
            return cut;
        }
        if closing != Some(CLOSING_BYTE)
            || !tail.starts_with(&crc32fast::hash(payload).to_le_bytes())
        {
            return Err(damage("a record does not match its checksum"));
        }
        let record = postcard::from_bytes(payload)
            .map_err(|_| damage("a record is none of this version"))?;
        self.offset = offset + LEAD_BYTES + length + TAIL_BYTES;
        Ok(FrameRead::Record(Box::new(record)))
    }
}

/// Returns the length and its checksum, or `None` if the file ends before them.
fn read_lead(rest: &[u8]) -> Option<([u8; 4], u32)> {
    let length = rest.get(..4)?.try_into().ok()?;
    let checksum: [u8; 4] = rest.get(4..LEAD_BYTES)?.try_into().ok()?;
    Some((length, u32::from_le_bytes(checksum)))
}
