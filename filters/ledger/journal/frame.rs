//! Records in bytes.
//!
//! Layout of a file: [`HEADER`] bytes that name the format and the process it belongs to, then records: length (u32,
//! little-endian), CRC-32 of those four bytes, payload, CRC-32 of the payload, one closing byte. Behind the last
//! record come zeros or nothing. A file is written front to back, so a process that ends in the middle of a record
//! leaves one whose end is missing or zero: that record was never confirmed to anybody and counts as not written.
//! Everything else that does not add up is damage, and is named with its place.

use super::{Record, RecordRef};

/// Bytes in front of the first record.
pub const HEADER: usize = 8 + 16 + 4;
const MAGIC: [u8; 8] = *b"WGLEDG01";
/// The last byte of a record: what was not written to its end does not have it.
const CLOSING: u8 = 0xa5;
/// What stands around a payload.
const LEAD: usize = 8;
const TAIL: usize = 5;
/// No record is longer: a length beyond it is damage.
const MAX_RECORD_BYTES: usize = 1 << 20;

/// Where a file does not add up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Damage {
    /// The offset of the record.
    pub offset: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// What comes next in a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FrameRead {
    /// A record.
    Record(Box<Record>),
    /// Nothing more.
    End {
        /// Where the records end.
        offset: usize,
        /// Whether a record was begun there that was never finished.
        is_cut: bool,
    },
}

/// The first bytes of a file that belongs to this process.
pub fn header(owner: &[u8; 16]) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    let checksum = crc32fast::hash(owner).to_le_bytes();
    let bytes = MAGIC.iter().chain(owner).chain(&checksum);
    out.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    out
}

/// Whose file it is; `None`: it was never begun (empty, cut or zero).
///
/// Errors: damage at offset 0, or a format of another version.
pub fn owner(file: &[u8]) -> Result<Option<[u8; 16]>, Damage> {
    let is_begun = file
        .get(HEADER - 1)
        .is_some_and(|_| file.iter().take(HEADER).any(|byte| *byte != 0));
    if !is_begun {
        return Ok(None);
    }
    let part = |range| file.get::<std::ops::Range<usize>>(range);
    let damage = |what| Damage { offset: 0, what };
    if part(0..8) != Some(&MAGIC) {
        return Err(damage("this is no journal of this version"));
    }
    let owner: Option<[u8; 16]> = part(8..24).and_then(|bytes| bytes.try_into().ok());
    owner
        .filter(|owner| part(24..HEADER) == Some(&crc32fast::hash(owner).to_le_bytes()))
        .map(Some)
        .ok_or_else(|| damage("the file's head does not match its checksum"))
}

/// Appends a record. Cost: one encoding into `out`.
pub fn put<'a>(record: impl Into<RecordRef<'a>>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; LEAD]);
    let fallback = out.len();
    // Encoding into memory cannot fail for these types; if it did, no half record may stay.
    if postcard::to_io(&record.into(), &mut *out).is_err() {
        out.truncate(fallback - LEAD);
        return;
    }
    let payload = out.get(start + LEAD..).unwrap_or_default();
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
    out.push(CLOSING);
}

/// Reads a file's records one after the other.
#[derive(Clone, Debug)]
pub struct FrameReader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> FrameReader<'a> {
    /// Begins behind the file's head.
    pub fn new(file: &'a [u8]) -> Self {
        Self { file, at: HEADER }
    }

    /// Begins at once: these are records without a head.
    pub fn of_records(records: &'a [u8]) -> Self {
        Self {
            file: records,
            at: 0,
        }
    }

    /// What comes next.
    ///
    /// Errors: damage; nothing behind it can be told from it.
    pub fn read(&mut self) -> Result<FrameRead, Damage> {
        let offset = self.at;
        let rest = self.file.get(offset..).unwrap_or_default();
        if rest.iter().all(|byte| *byte == 0) {
            let is_cut = false;
            return Ok(FrameRead::End { offset, is_cut });
        }
        let damage = |what| Damage { offset, what };
        let cut = Ok(FrameRead::End {
            offset,
            is_cut: true,
        });
        let Some((length, lead)) = lead(rest) else {
            return cut;
        };
        if lead != crc32fast::hash(&length) {
            // A lead that was not finished ends in zeros, and nothing follows it.
            let is_unfinished = rest.iter().skip(LEAD - 1).all(|byte| *byte == 0);
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
        let Some(record) = rest.get(LEAD..LEAD + length + TAIL) else {
            return cut;
        };
        let follows = rest.iter().skip(LEAD + length + TAIL);
        let (payload, tail) = record.split_at(length);
        let closing = tail.last().copied();
        if closing == Some(0) && follows.clone().all(|byte| *byte == 0) {
            return cut;
        }
        if closing != Some(CLOSING) || !tail.starts_with(&crc32fast::hash(payload).to_le_bytes()) {
            return Err(damage("a record does not match its checksum"));
        }
        let record = postcard::from_bytes(payload)
            .map_err(|_| damage("a record is none of this version"))?;
        self.at = offset + LEAD + length + TAIL;
        Ok(FrameRead::Record(Box::new(record)))
    }
}

/// Length and its checksum; `None`: the file ends before them.
fn lead(rest: &[u8]) -> Option<([u8; 4], u32)> {
    let length = rest.get(..4)?.try_into().ok()?;
    let checksum: [u8; 4] = rest.get(4..LEAD)?.try_into().ok()?;
    Some((length, u32::from_le_bytes(checksum)))
}
