//! The chain of hashes, and the walk that finds where it breaks.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::AuditEntry;

/// What the form of an entry begins with. Another form gets another mark.
const MARK: &str = "weirgate audit 1";

/// The hash of an entry: SHA-256 of its form and of the hash before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EntryHash([u8; 32]);

impl EntryHash {
    /// What the first entry has before it: zeros.
    pub const START: Self = Self([0; 32]);
}

impl fmt::Display for EntryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for EntryHash {
    type Err = ();

    /// Reads 64 hexadecimal digits, small ones.
    fn from_str(text: &str) -> Result<Self, ()> {
        let digit = |byte: &u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(()),
        };
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return Err(());
        };
        let bytes = pairs
            .iter()
            .map(|[high, low]| Ok(digit(high)? << 4 | digit(low)?));
        let bytes: Vec<u8> = bytes.collect::<Result<_, ()>>()?;
        bytes.try_into().map(Self).map_err(|_| ())
    }
}

impl AuditEntry {
    /// Returns the hash of the entry behind the one with the hash `previous`. Cost: the size of the entry.
    ///
    /// Shape: SHA-256 of the JSON array `["weirgate audit 1",PREVIOUS,NUMBER,AT,ACTOR,ORIGIN,ACTION,KIND,ID,NAME,
    /// ORGANIZATION_ID,ORGANIZATION,BEFORE,AFTER]` without spaces, in UTF-8. Source: docs/audit.md, The chain.
    pub fn hash(&self, previous: &EntryHash) -> EntryHash {
        let form = (
            MARK,
            previous.to_string(),
            self.number,
            self.at_ms,
            &self.actor,
            &self.origin,
            &self.action,
            &self.kind,
            &self.subject_id,
            &self.name,
            &self.organization_id,
            &self.organization,
            &self.before,
            &self.after,
        );
        // Numbers and texts always become JSON.
        let form = serde_json::to_vec(&form).unwrap_or_default();
        EntryHash(Sha256::digest(&form).into())
    }
}

/// The last entry of a log, by which the whole log is known. Shape: `NUMBER:HASH`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AuditHead {
    /// 0: the log is empty.
    pub number: i64,
    pub hash: EntryHash,
}

impl AuditHead {
    /// The head of an empty log.
    pub const EMPTY: Self = Self {
        number: 0,
        hash: EntryHash::START,
    };
}

impl fmt::Display for AuditHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.number, self.hash)
    }
}

impl FromStr for AuditHead {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.trim().split_once(':').and_then(|(number, hash)| {
            let number = number.parse().ok().filter(|number| *number >= 0)?;
            let hash = hash.parse().ok()?;
            Some(Self { number, hash })
        });
        parsed.ok_or_else(|| {
            "accepted is the number of an entry, a colon and the 64 digits of its hash, as `weirgate audit --verify` \
             prints them"
                .to_owned()
        })
    }
}

/// Where a log breaks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BrokenChain {
    /// The first entry that is not as it was written, or is missing.
    pub number: i64,
    pub how: ChainBreak,
}

/// How a log breaks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ChainBreak {
    /// The next entry that is there has this number.
    Missing(i64),
    /// The entry, its hash, or one before was changed.
    Changed,
    /// The entry cannot be read.
    Unreadable,
    /// The entry has another hash than the one that was kept elsewhere: the log was written anew.
    Other(EntryHash),
    /// The log ends before the entry that was kept elsewhere.
    Cut {
        /// The last entry that is there.
        last: i64,
    },
}

impl fmt::Display for BrokenChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        match &self.how {
            ChainBreak::Missing(next) => {
                write!(
                    f,
                    "entry {number} is missing: entry {next} comes in its place"
                )
            }
            ChainBreak::Changed => write!(
                f,
                "entry {number} has not the hash that follows from it and the entry before: it was changed, or put in"
            ),
            ChainBreak::Unreadable => write!(
                f,
                "entry {number} cannot be read: a column has a value that no version writes"
            ),
            ChainBreak::Other(found) => write!(
                f,
                "entry {number} has the hash {found}, and another one was expected: the log was written anew"
            ),
            ChainBreak::Cut { last } => write!(
                f,
                "entry {number} is missing: the log ends with entry {last}, so its end was cut off"
            ),
        }
    }
}

/// A walk along a log, from its first entry.
#[derive(Clone, Debug)]
pub struct ChainWalk {
    head: AuditHead,
    expected: Option<AuditHead>,
}

impl ChainWalk {
    /// Begins a walk before the first entry. `expected` was the head at some time.
    pub fn new(expected: Option<AuditHead>) -> Self {
        Self {
            head: AuditHead::EMPTY,
            expected,
        }
    }

    /// Returns the last entry so far.
    pub fn head(&self) -> AuditHead {
        self.head
    }

    /// Takes the next entry with the hash that the log has of it.
    ///
    /// Errors: it is not the next one, was changed, or is not what was expected.
    pub fn step(&mut self, entry: &AuditEntry, stored: &str) -> Result<(), BrokenChain> {
        let number = self.head.number + 1;
        let broken = |how| Err(BrokenChain { number, how });
        if entry.number != number {
            return broken(ChainBreak::Missing(entry.number));
        }
        let hash = entry.hash(&self.head.hash);
        if stored.parse() != Ok(hash) {
            return broken(ChainBreak::Changed);
        }
        self.head = AuditHead { number, hash };
        match self.expected {
            Some(expected) if expected.number == number && expected.hash != hash => {
                broken(ChainBreak::Other(hash))
            }
            _ => Ok(()),
        }
    }

    /// Returns the error of an entry that cannot be read in the place of the next one.
    pub fn unreadable(&self) -> BrokenChain {
        BrokenChain {
            number: self.head.number + 1,
            how: ChainBreak::Unreadable,
        }
    }

    /// Ends behind the last entry, and returns it.
    ///
    /// Errors: the log ends before what was expected.
    pub fn finish(self) -> Result<AuditHead, BrokenChain> {
        let last = self.head.number;
        match self.expected {
            Some(expected) if expected.number > last => Err(BrokenChain {
                number: last + 1,
                how: ChainBreak::Cut { last },
            }),
            Some(expected) if expected.number == 0 && expected.hash != EntryHash::START => {
                Err(BrokenChain {
                    number: 0,
                    how: ChainBreak::Other(EntryHash::START),
                })
            }
            _ => Ok(self.head),
        }
    }
}
