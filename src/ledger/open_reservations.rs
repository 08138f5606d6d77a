//! The open reservations, which the journal writes again at the start of each segment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use filters::ledger::journal::{Delivered, RecordRef, Reserve, write_record};
use filters::ledger::{EntryId, UsageRecord};

/// The number of locks. Requests rarely meet at one of so many.
const SHARD_COUNT: usize = 16;

/// The open reservation of a running call.
pub struct OpenReservation {
    /// The reservation as the journal records it.
    pub reserve: Reserve,
    usage: Mutex<Option<UsageRecord>>,
}

impl OpenReservation {
    /// Stores the usage of the part that was delivered so far.
    pub fn record_delivered(&self, usage: UsageRecord) {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = Some(usage);
    }
}

/// All open reservations.
#[derive(Default)]
pub struct OpenReservations {
    shards: [Mutex<HashMap<EntryId, Arc<OpenReservation>>>; SHARD_COUNT],
}

impl OpenReservations {
    /// Adds the reservation of a call that starts.
    pub fn insert(&self, reserve: Reserve) -> Arc<OpenReservation> {
        let id = reserve.id;
        let open = Arc::new(OpenReservation {
            reserve,
            usage: Mutex::default(),
        });
        self.shard(&id).insert(id, Arc::clone(&open));
        open
    }

    /// Removes the reservation of a call that has ended.
    pub fn remove(&self, id: &EntryId) {
        self.shard(id).remove(id);
    }

    /// Returns the number of open reservations.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Returns whether no reservation is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends all open reservations as records.
    pub fn write_records(&self, out: &mut Vec<u8>) {
        for shard in &self.shards {
            let open: Vec<_> = lock(shard).values().cloned().collect();
            for call in open {
                write_record(RecordRef::Reserve(&call.reserve), out);
                let usage = call.usage.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(usage) = usage.clone() {
                    let id = call.reserve.id;
                    write_record(RecordRef::Delivered(&Delivered { id, usage }), out);
                }
            }
        }
    }

    fn shard(&self, id: &EntryId) -> MutexGuard<'_, HashMap<EntryId, Arc<OpenReservation>>> {
        // The last byte of an id is random.
        let index = usize::from(id.0.last().copied().unwrap_or_default()) % SHARD_COUNT;
        #[expect(clippy::indexing_slicing, reason = "a remainder of their number")]
        lock(&self.shards[index])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
