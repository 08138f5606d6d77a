//! Limits how many password hashes run at once. Each takes a core for a quarter of a second, for any client. One
//! address gets at most a third of the slots, so that others get some.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use filters::fault::{Fault, FaultKind};
use filters::limits::Address;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The maximum number of waiting hashes for each running one.
const MAX_WAITING_PER_HASH: usize = 8;
/// One address may have one part in this many of all slots.
const SHARE_OF_ADDRESS: usize = 3;
/// The seconds after which a refused client may try again.
const RETRY_AFTER_S: u32 = 2;

/// Limits concurrent password hashes.
pub struct HashLimiter {
    admitted: Semaphore,
    /// The slots of each address that has any.
    by_address: Mutex<HashMap<Option<Address>, usize>>,
    max_of_address: usize,
    running: Semaphore,
}

/// The permission to hash. Dropping it frees it.
pub struct HashPermit<'a> {
    _running: SemaphorePermit<'a>,
    _place: HashSlot<'a>,
}

/// A slot of a running or waiting hash. Dropping it frees it.
struct HashSlot<'a> {
    limiter: &'a HashLimiter,
    address: Option<Address>,
    _admitted: SemaphorePermit<'a>,
}

impl Drop for HashSlot<'_> {
    fn drop(&mut self) {
        let mut places = self.limiter.places();
        if let Some(own) = places.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                places.remove(&self.address);
            }
        }
    }
}

impl Default for HashLimiter {
    /// Allows hashes on half of the cores, so that the others serve requests.
    fn default() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self::new((cores / 2).max(1))
    }
}

impl HashLimiter {
    fn new(max_running: usize) -> Self {
        let places = max_running * (1 + MAX_WAITING_PER_HASH);
        Self {
            admitted: Semaphore::new(places),
            by_address: Mutex::default(),
            max_of_address: places.div_ceil(SHARE_OF_ADDRESS),
            running: Semaphore::new(max_running),
        }
    }

    /// Waits until a hash may run for a client at this address.
    ///
    /// Errors: 503 if too many hashes wait, in total or for this address.
    pub async fn acquire(&self, address: Option<IpAddr>) -> Result<HashPermit<'_>, Fault> {
        let place = self
            .take_slot(address.map(Address::from))
            .ok_or_else(busy)?;
        let running = self.running.acquire().await.map_err(|_| busy())?;
        Ok(HashPermit {
            _running: running,
            _place: place,
        })
    }

    fn take_slot(&self, address: Option<Address>) -> Option<HashSlot<'_>> {
        let mut places = self.places();
        if places
            .get(&address)
            .is_some_and(|own| *own >= self.max_of_address)
        {
            return None;
        }
        let admitted = self.admitted.try_acquire().ok()?;
        *places.entry(address).or_default() += 1;
        Some(HashSlot {
            limiter: self,
            address,
            _admitted: admitted,
        })
    }

    fn places(&self) -> MutexGuard<'_, HashMap<Option<Address>, usize>> {
        let locked = self.by_address.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

fn busy() -> Fault {
    let message = "more tokens are asked for than can be issued: try again in two seconds";
    Fault::new(FaultKind::Unavailable, message).with_retry_after_s(RETRY_AFTER_S)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures::FutureExt;

    use super::*;

    #[test]
    fn one_hashes_some_wait_and_the_others_are_sent_away() {
        let limiter = HashLimiter::new(1);
        let ask = |of: usize| limiter.acquire(Some([192, 0, 2, of as u8].into()));
        let permit = ask(0).now_or_never().unwrap().ok().unwrap();
        let mut waiting: Vec<_> = (1..=MAX_WAITING_PER_HASH)
            .map(|of| Box::pin(ask(of)))
            .collect();
        for one in &mut waiting {
            assert!(one.now_or_never().is_none());
        }
        let refused = ask(9).now_or_never().unwrap().err().unwrap();
        assert_eq!((refused.status(), refused.retry_after_s), (503, Some(2)));
        drop(permit);
        let mut next = waiting.remove(0);
        assert!((&mut next).now_or_never().unwrap().is_ok());
        drop((next, waiting));
        assert!(limiter.places().is_empty());
    }

    #[test]
    fn one_address_has_a_third_of_the_places_and_others_get_theirs() {
        let limiter = HashLimiter::new(1);
        let ask = |of: u8| Box::pin(limiter.acquire(Some([192, 0, 2, of].into())));
        let permit = ask(1).now_or_never().unwrap().ok().unwrap();
        let mut waiting = [ask(1), ask(1)];
        for one in &mut waiting {
            assert!(one.now_or_never().is_none());
        }
        let refused = ask(1).now_or_never().unwrap().err().unwrap();
        assert_eq!(refused.status(), 503);
        assert!(ask(2).now_or_never().is_none(), "it waits");
        drop((waiting, permit));
        assert!(ask(2).now_or_never().unwrap().is_ok());
    }
}
