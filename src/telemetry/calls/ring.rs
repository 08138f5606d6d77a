//! The lines of the last calls, each at the place of its number. A place has a lock of its own, so that calls that end at the same
//! time do not wait for each other, and a reader holds up none but one whose place it copies.

use std::cmp::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A place whose line was longer than this gives the memory back with the next line.
const KEPT_SLOT_BYTES: usize = 4 << 10;

/// The lines of the last calls.
pub(super) struct Ring {
    /// Never empty.
    slots: Box<[Mutex<Slot>]>,
}

/// The place of a line.
#[derive(Default)]
struct Slot {
    /// The number of the call; 0: there was none yet.
    number: u64,
    line: Vec<u8>,
}

impl Slot {
    fn state(&self, number: u64) -> ReadSlot {
        match self.number.cmp(&number) {
            Ordering::Less => ReadSlot::Pending,
            Ordering::Greater => ReadSlot::Overwritten,
            Ordering::Equal => ReadSlot::Copied,
        }
    }
}

/// What became of reading a place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ReadSlot {
    Copied,
    /// The call has its number, but its line is not there yet.
    Pending,
    /// A later call has the place.
    Overwritten,
}

impl Ring {
    /// Returns a ring of this many places, or `None` if there are none.
    pub(super) fn new(places: usize) -> Option<Self> {
        let slots: Box<[_]> = (0..places).map(|_| Mutex::default()).collect();
        (!slots.is_empty()).then_some(Self { slots })
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Writes the line of a call, unless a later one has its place.
    pub(super) fn write(&self, number: u64, line: &[u8]) {
        let Some(mut slot) = self.slot(number).filter(|slot| slot.number < number) else {
            return;
        };
        slot.number = number;
        slot.line.clear();
        if slot.line.capacity() > line.len().max(KEPT_SLOT_BYTES) {
            slot.line = Vec::new();
        }
        slot.line.reserve_exact(line.len());
        slot.line.extend_from_slice(line);
    }

    /// Copies the line of a call to `line`, in place of what it has.
    pub(super) fn read(&self, number: u64, line: &mut Vec<u8>) -> ReadSlot {
        let Some(slot) = self.slot(number) else {
            return ReadSlot::Overwritten;
        };
        let state = slot.state(number);
        if state == ReadSlot::Copied {
            line.clear();
            line.extend_from_slice(&slot.line);
        }
        state
    }

    /// Returns what reading a place would come to.
    pub(super) fn look(&self, number: u64) -> ReadSlot {
        let slot = self.slot(number);
        slot.map_or(ReadSlot::Overwritten, |slot| slot.state(number))
    }

    /// Copies the newest lines of another ring, whose last call has this number.
    pub(super) fn copy_newest(&self, other: &Self, last: u64) {
        let both = self.len().min(other.len()) as u64;
        let mut line = Vec::new();
        for number in last.saturating_sub(both) + 1..=last {
            if other.read(number, &mut line) == ReadSlot::Copied {
                self.write(number, &line);
            }
        }
    }

    fn slot(&self, number: u64) -> Option<MutexGuard<'_, Slot>> {
        let at = usize::try_from(number % self.slots.len() as u64).ok()?;
        let slot = self.slots.get(at)?;
        Some(slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the bytes that the lines take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let lock = |slot: &Mutex<Slot>| slot.lock().unwrap().line.capacity();
        self.slots.iter().map(lock).sum()
    }
}
