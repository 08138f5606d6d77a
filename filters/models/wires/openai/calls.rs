//! Which tool call a piece belongs to, whatever a provider makes of ids and indexes.

use std::collections::BTreeMap;

use crate::json::Str;

/// The calls of one answer so far. A call's key is its position.
#[derive(Debug, Default)]
pub(super) struct Calls {
    count: u64,
    choices: BTreeMap<u32, ChoiceCalls>,
}

/// The calls of one choice: of those that share an id or an index, the last.
#[derive(Debug, Default)]
struct ChoiceCalls {
    by_id: BTreeMap<Box<str>, u64>,
    by_index: BTreeMap<u64, u64>,
    last: Option<u64>,
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
        let calls = self.choices.entry(choice).or_default();
        let id = id
            .map(Str::unescaped)
            .filter(|id| !id.is_empty() && id != "null");
        let of_index = index.and_then(|index| calls.by_index.get(&index)).copied();
        let found = match &id {
            Some(id) => {
                let of_id = calls.by_id.get(&**id).copied();
                of_id.or(of_index.filter(|_| !has_name))
            }
            None => of_index.or(calls.last.filter(|_| !has_name)),
        };
        if let Some(key) = found {
            return key;
        }
        let key = self.count;
        self.count += 1;
        if let Some(id) = id {
            calls.by_id.insert((*id).into(), key);
        }
        if let Some(index) = index {
            calls.by_index.insert(index, key);
        }
        calls.last = Some(key);
        key
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
