//! Which tool call a piece belongs to, whatever a provider makes of ids and indexes.

use crate::json::Str;

/// The calls of one answer so far. A call's key is its position.
#[derive(Debug, Default)]
pub(super) struct Calls {
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    choice: u32,
    id: Option<Box<str>>,
    index: Option<u64>,
}

impl Calls {
    /// The key of the call that a piece belongs to: by id, else by index, else the one opened last.
    ///
    /// A new id at a known index begins a call only together with a name: some providers repeat the index for
    /// parallel calls, others change the id from piece to piece. Source: docs/facts/wire-formats.md 7.3.
    pub(super) fn key(
        &mut self,
        choice: u32,
        id: Option<Str<'_>>,
        index: Option<u64>,
        has_name: bool,
    ) -> u64 {
        let id = id
            .map(Str::unescaped)
            .filter(|id| !id.is_empty() && id != "null");
        let found = match &id {
            Some(id) => self
                .last(|call| call.choice == choice && call.id.as_deref() == Some(id))
                .or_else(|| self.by_index(choice, index).filter(|_| !has_name)),
            None => self
                .by_index(choice, index)
                .filter(|_| index.is_some() || !has_name)
                .or_else(|| {
                    self.last(|call| call.choice == choice)
                        .filter(|_| !has_name)
                }),
        };
        if let Some(key) = found {
            return key as u64;
        }
        self.known.push(Known {
            choice,
            id: id.map(|id| id.into()),
            index,
        });
        self.known.len() as u64 - 1
    }

    fn by_index(&self, choice: u32, index: Option<u64>) -> Option<usize> {
        let index = index?;
        self.last(|call| call.choice == choice && call.index == Some(index))
    }

    fn last(&self, matches: impl Fn(&Known) -> bool) -> Option<usize> {
        self.known.iter().rposition(matches)
    }
}

/// An id of nine letters and digits, the same for the same id. Source: docs/facts/wire-formats.md 5.3.
pub(super) fn shorten_id(id: &str) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    // FNV-1a: stable across versions, and an id has no adversary but its own client.
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (0..9)
        .filter_map(|_| {
            let digit = ALPHABET.get((hash % 62) as usize).copied();
            hash /= 62;
            digit.map(char::from)
        })
        .collect()
}
