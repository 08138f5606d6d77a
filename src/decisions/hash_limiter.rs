//! Limits how many password hashes run at once: each takes a core for a quarter of a second, for any client.

use std::thread::available_parallelism;

use filters::fault::{Fault, FaultKind};
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many hashes wait for each one that runs.
const MAX_WAITING_PER_HASH: usize = 8;
/// After how many seconds a refused client may try again.
const RETRY_AFTER_S: u32 = 2;

/// See the module.
pub struct HashLimiter {
    admitted: Semaphore,
    running: Semaphore,
}

/// Permission to hash until it is dropped.
pub struct HashPermit<'a> {
    _running: SemaphorePermit<'a>,
    _admitted: SemaphorePermit<'a>,
}

impl Default for HashLimiter {
    /// Hashes on half of the cores, so that the others answer requests.
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self::new((cores / 2).max(1))
    }
}

impl HashLimiter {
    fn new(max_running: usize) -> Self {
        Self {
            admitted: Semaphore::new(max_running * (1 + MAX_WAITING_PER_HASH)),
            running: Semaphore::new(max_running),
        }
    }

    /// Waits until a hash may run.
    ///
    /// Errors: 503 if too many wait.
    pub async fn acquire(&self) -> Result<HashPermit<'_>, Fault> {
        let busy = || {
            let message = "more tokens are asked for than can be issued: try again in two seconds";
            Fault::new(FaultKind::Unavailable, message).with_retry_after_s(RETRY_AFTER_S)
        };
        let admitted = self.admitted.try_acquire().map_err(|_| busy())?;
        let running = self.running.acquire().await.map_err(|_| busy())?;
        Ok(HashPermit {
            _running: running,
            _admitted: admitted,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures::FutureExt;

    use super::*;

    #[test]
    fn one_hashes_some_wait_and_the_others_are_sent_away() {
        let limiter = HashLimiter::new(1);
        let permit = limiter.acquire().now_or_never().unwrap().ok().unwrap();
        let mut waiting: Vec<_> = (0..MAX_WAITING_PER_HASH)
            .map(|_| Box::pin(limiter.acquire()))
            .collect();
        for one in &mut waiting {
            assert!(one.now_or_never().is_none());
        }
        let refused = limiter.acquire().now_or_never().unwrap().err().unwrap();
        assert_eq!((refused.status(), refused.retry_after_s), (503, Some(2)));
        drop(permit);
        let mut next = waiting.remove(0);
        assert!((&mut next).now_or_never().unwrap().is_ok());
    }
}
