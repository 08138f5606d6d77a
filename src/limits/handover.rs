//! Windows while another process takes the place of this one.
//!
//! The new process gets the windows, and from then on counts for both: the old one asks it for each request that still comes
//! over an open connection. So no limit is exceeded, and none is reached too early, which would happen if the old one
//! counted alone, or refused.

use std::sync::Arc;
use std::time::Duration;

use filters::limits::{Verdict, WindowKey};
use futures::future::BoxFuture;

use super::counters::WindowCounters;

/// The maximum bytes of windows that pass. Our choice: a million windows of fixed length.
const MAX_BYTES: usize = 48 << 20;
/// How long a request takes from the look at who counts to its count, at most. Windows pass after it.
const SETTLE_TIME: Duration = Duration::from_millis(5);

/// Asks the process that counts. `None`: it has not answered.
pub type AskCounts = dyn Fn(Vec<u8>) -> BoxFuture<'static, Option<Vec<u8>>> + Send + Sync;

impl WindowCounters {
    /// Lets another process count from here on, and returns the windows for it. Windows in Redis stay there. Blocks for some
    /// milliseconds.
    pub fn pass_on(&self, ask: Arc<AskCounts>) -> Vec<u8> {
        if self.is_shared() {
            return Vec::new();
        }
        self.elsewhere.store(Some(Arc::new(ask)));
        std::thread::sleep(SETTLE_TIME);
        self.windows.to_bytes(self.now_ms(), MAX_BYTES)
    }

    /// Counts here again: the other process does not take the place of this one.
    pub fn keep(&self) {
        self.elsewhere.store(None);
    }

    /// Takes in the windows of the process before this one. Those of another length or algorithm begin anew. Returns how many
    /// go on.
    pub fn take_in(&self, bytes: &[u8]) -> usize {
        self.windows.take_in(bytes, self.now_ms()).unwrap_or(0)
    }

    /// Counts a request that the process before this one has received. Returns the answer to its [`AskCounts`].
    pub async fn admit_for_predecessor(&self, request: &[u8]) -> Vec<u8> {
        let Some((key, limit)) = read_request(request) else {
            return Vec::new();
        };
        match self.admit(&key, limit).await {
            Ok(verdict) => verdict.to_bytes(),
            Err(_) => Vec::new(),
        }
    }

    /// Asks the process that counts, if it is another one. `None`: this process counts.
    pub(super) async fn admit_elsewhere(&self, key: &WindowKey, limit: u64) -> Option<Verdict> {
        let ask = self.elsewhere.load_full()?;
        let mut request = limit.to_le_bytes().to_vec();
        key.write(&mut request);
        let answer = ask(request).await?;
        let verdict = Verdict::from_bytes(&answer)?;
        if verdict.is_allowed {
            // If the other process fails yet, this one knows what was counted.
            self.windows.admit(key, u64::MAX, self.now_ms());
        }
        Some(verdict)
    }
}

fn read_request(request: &[u8]) -> Option<(WindowKey, u64)> {
    let (limit, key) = request.split_first_chunk()?;
    let (key, rest) = WindowKey::read(key)?;
    rest.is_empty().then_some((key, u64::from_le_bytes(*limit)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use filters::limits::{Algorithm, RowId, Subject};
    use futures::FutureExt;

    use super::*;

    fn key() -> WindowKey {
        WindowKey {
            subject: Subject::Named("acme".into()),
            row: RowId::from_name("POST /"),
        }
    }

    fn counters() -> Arc<WindowCounters> {
        let window = Duration::from_secs(60);
        Arc::new(WindowCounters::new(Algorithm::Fixed, window))
    }

    fn asking(new: &Arc<WindowCounters>) -> Arc<AskCounts> {
        let new = Arc::clone(new);
        Arc::new(move |request| {
            let new = Arc::clone(&new);
            async move { Some(new.admit_for_predecessor(&request).await) }.boxed()
        })
    }

    #[tokio::test]
    async fn two_processes_admit_a_limit_together_exactly() {
        let (old, new) = (counters(), counters());
        for _ in 0..4 {
            assert!(old.admit(&key(), 10).await.unwrap().is_allowed);
        }
        new.take_in(&old.pass_on(asking(&new)));
        let mut admitted = 4;
        for _ in 0..10 {
            for counters in [&old, &new] {
                let verdict = counters.admit(&key(), 10).await.unwrap();
                admitted += u64::from(verdict.is_allowed);
            }
        }
        assert_eq!(admitted, 10);
        assert_eq!(new.remaining(&key(), 10).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_process_that_stays_knows_what_the_other_has_counted_for_it() {
        let (old, new) = (counters(), counters());
        let bytes = old.pass_on(asking(&new));
        new.take_in(&bytes);
        for _ in 0..3 {
            assert!(old.admit(&key(), 5).await.unwrap().is_allowed);
        }
        old.keep();
        assert_eq!(old.remaining(&key(), 5).await.unwrap(), 2);
        // One that does not answer leaves the counting here.
        old.pass_on(Arc::new(|_| async { None }.boxed()));
        assert!(old.admit(&key(), 5).await.unwrap().is_allowed);
        assert_eq!(old.remaining(&key(), 5).await.unwrap(), 1);
    }
}
