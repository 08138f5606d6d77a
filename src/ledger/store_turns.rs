//! Turns at the store for requests without a key, and for long ones: money must not wait for them.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Ledger;
use crate::store::{Store, StoreError};

/// How many requests of one kind work with the store at once: half of its connections.
const TURNS: usize = 2;

/// Gives requests of one kind their turns at the store. Clones share them.
#[derive(Clone)]
pub struct StoreTurns {
    ledger: Arc<Ledger>,
    turns: Arc<Semaphore>,
    wait: Duration,
    busy: &'static str,
}

impl StoreTurns {
    /// Makes the turns at the ledger's store. A request waits at most `wait` for its turn; then it is refused in the words of
    /// `busy`.
    pub fn new(ledger: Arc<Ledger>, wait: Duration, busy: &'static str) -> Self {
        Self {
            ledger,
            turns: Arc::new(Semaphore::new(TURNS)),
            wait,
            busy,
        }
    }

    /// Works with the store, on its runtime, as soon as it is this request's turn.
    ///
    /// Errors: 503 while the store does not answer, or if too many wait.
    pub async fn with_store<T, F>(&self, work: impl FnOnce(Store) -> F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let turn = timeout(self.wait, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            return Err(Fault::new(FaultKind::Unavailable, self.busy).with_retry_after_s(2));
        };
        let worked = self.ledger.with_store(|store, _| {
            let work = work(store);
            async move {
                let _turn = turn;
                work.await
            }
        });
        worked.await
    }
}
