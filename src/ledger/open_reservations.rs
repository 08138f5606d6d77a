//! The calls that run: what the journal has to say of them again when it begins a new file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use filters::ledger::journal::{Delivered, RecordRef, Reserve, put};
use filters::ledger::{EntryId, UsageRecord};

/// So many locks, so that requests rarely meet.
const SHARDS: usize = 16;

/// A call that runs.
pub struct OpenReservation {
    /// What was reserved for it.
    pub reserve: Reserve,
    taken: Mutex<Option<UsageRecord>>,
}

impl OpenReservation {
    /// Remembers what has gone out so far.
    pub fn delivered(&self, taken: UsageRecord) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
    }
}

/// All calls that run.
#[derive(Default)]
pub struct OpenReservations {
    shards: [Mutex<HashMap<EntryId, Arc<OpenReservation>>>; SHARDS],
}

impl OpenReservations {
    /// A call begins.
    pub fn begin(&self, reserve: Reserve) -> Arc<OpenReservation> {
        let id = reserve.id;
        let running = Arc::new(OpenReservation {
            reserve,
            taken: Mutex::default(),
        });
        self.shard(&id).insert(id, Arc::clone(&running));
        running
    }

    /// It has ended.
    pub fn end(&self, id: &EntryId) {
        self.shard(id).remove(id);
    }

    /// How many run.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends all of them as records.
    pub fn write(&self, out: &mut Vec<u8>) {
        for shard in &self.shards {
            let running: Vec<_> = lock(shard).values().cloned().collect();
            for call in running {
                put(RecordRef::Reserve(&call.reserve), out);
                let taken = call.taken.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(taken) = taken.clone() {
                    let id = call.reserve.id;
                    put(RecordRef::Delivered(&Delivered { id, taken }), out);
                }
            }
        }
    }

    fn shard(&self, id: &EntryId) -> MutexGuard<'_, HashMap<EntryId, Arc<OpenReservation>>> {
        // The last byte of an id is random.
        let at = usize::from(id.0.last().copied().unwrap_or_default()) % SHARDS;
        #[expect(clippy::indexing_slicing, reason = "a remainder of their number")]
        lock(&self.shards[at])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
