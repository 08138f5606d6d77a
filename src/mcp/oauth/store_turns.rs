//! The store, as far as OAuth may take it. Anybody may ask for tokens, and money must not wait for that.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::ledger::Ledger;
use crate::store::{Store, StoreError};

/// How many requests work with the store at once: half of its connections.
const TURNS: usize = 2;
/// How long a request waits for its turn.
const WAIT: Duration = Duration::from_secs(5);

/// Gives requests their turns at the store.
pub struct StoreTurns {
    ledger: Arc<Ledger>,
    turns: Semaphore,
}

impl StoreTurns {
    /// Makes the turns at the ledger's store.
    pub fn new(ledger: Arc<Ledger>) -> Self {
        let turns = Semaphore::new(TURNS);
        Self { ledger, turns }
    }

    /// Works with the store, on its runtime, as soon as it is this request's turn.
    ///
    /// Errors: 503 while the store does not answer, or if too many wait.
    pub(super) async fn with_store<T, F>(
        &self,
        work: impl FnOnce(Store, String) -> F,
    ) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let Ok(Ok(_turn)) = timeout(WAIT, self.turns.acquire()).await else {
            let message = "more ask for tokens at once than the gateway serves: try again";
            return Err(Fault::new(FaultKind::Unavailable, message).with_retry_after_s(2));
        };
        self.ledger.with_store(work).await
    }
}
