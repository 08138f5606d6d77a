//! Limits of one client address: its open connections, its refused API keys, and the OAuth clients that it registers.
//!
//! Sketches count, so that the memory is the same under any number of addresses. A sketch may count an address a little
//! too high when very many are active, never too low; a wrong refusal of that kind is rare and harmless. An IPv6 address
//! counts with the other addresses of its /64.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use filters::fault::{Fault, FaultKind};
use filters::limits::Address;
use pingora_limits::estimator::Estimator;
use tokio::time::Instant;

/// The shape of a sketch: with these many slots, tens of thousands of active addresses count exactly.
const HASHES: usize = 4;
const SLOTS: usize = 65_536;
/// The refused API keys that an address may present in a window.
const MAX_REFUSED_KEYS: isize = 60;
/// The OAuth clients that an address may register in a window.
const MAX_REGISTRATIONS: isize = 30;
/// The length of these windows in seconds.
const WINDOW_S: u64 = 60;

/// The counters of all addresses.
pub struct AddressLimits {
    /// The open connections; `None`: `listen.max_connections_per_ip` is off.
    connections: Option<Arc<ConnectionSketch>>,
    refused_keys: WindowSketch,
    registrations: WindowSketch,
    started: Instant,
}

/// Counts what addresses do in a window.
struct WindowSketch {
    counts: Estimator,
    /// The window that is counted: the number of windows since the start.
    window: AtomicU64,
    max: isize,
}

impl WindowSketch {
    fn new(max: isize) -> Self {
        Self {
            counts: Estimator::new(HASHES, SLOTS),
            window: AtomicU64::new(0),
            max,
        }
    }

    /// Counts one more, so long after the start.
    ///
    /// Errors: it is one too many, with the seconds until the window ends.
    fn count(&self, address: IpAddr, elapsed_s: u64) -> Result<(), u32> {
        let window = elapsed_s / WINDOW_S;
        let before = self.window.fetch_max(window, Ordering::Relaxed);
        if before < window {
            self.counts.reset();
        }
        if self.counts.incr(Address::from(address), 1) <= self.max {
            return Ok(());
        }
        Err(u32::try_from(WINDOW_S - elapsed_s % WINDOW_S).unwrap_or(1))
    }
}

/// Counts open connections.
struct ConnectionSketch {
    counts: Estimator,
    max: isize,
}

/// One open connection of an address, until it is dropped.
pub struct AddressConnection {
    sketch: Arc<ConnectionSketch>,
    address: Address,
}

impl AddressLimits {
    /// Creates the counters. With `max_connections` of 0, connections are not counted.
    pub fn new(max_connections: usize) -> Self {
        let connections = (max_connections > 0).then(|| {
            Arc::new(ConnectionSketch {
                counts: Estimator::new(HASHES, SLOTS),
                max: isize::try_from(max_connections).unwrap_or(isize::MAX),
            })
        });
        Self {
            connections,
            refused_keys: WindowSketch::new(MAX_REFUSED_KEYS),
            registrations: WindowSketch::new(MAX_REGISTRATIONS),
            started: Instant::now(),
        }
    }

    /// Counts a connection of an address.
    ///
    /// Errors: the address has the maximum of connections.
    pub fn open(&self, address: IpAddr) -> Result<Option<AddressConnection>, TooManyConnections> {
        let Some(sketch) = &self.connections else {
            return Ok(None);
        };
        let address = Address::from(address);
        let count = sketch.counts.incr(address, 1);
        // The guard gives a refused connection back too.
        let connection = AddressConnection {
            sketch: Arc::clone(sketch),
            address,
        };
        if count > sketch.max {
            return Err(TooManyConnections);
        }
        Ok(Some(connection))
    }

    /// Counts a refused API key of an address.
    ///
    /// Errors: 429 if it has presented too many in this minute.
    pub fn count_refused_key(&self, address: IpAddr, now: Instant) -> Result<(), Fault> {
        let counted = self.refused_keys.count(address, self.elapsed_s(now));
        counted.map_err(|wait_s| {
            let message = format!(
                "more than {MAX_REFUSED_KEYS} API keys of your address were refused within a minute: use a valid key, or try again in {wait_s} s"
            );
            Fault::new(FaultKind::RateLimited, message).with_retry_after_s(wait_s)
        })
    }

    /// Counts an OAuth client that an address registers.
    ///
    /// Errors: 429 if it has registered too many in this minute.
    pub fn count_registration(&self, address: IpAddr, now: Instant) -> Result<(), Fault> {
        let counted = self.registrations.count(address, self.elapsed_s(now));
        counted.map_err(|wait_s| {
            let message = format!(
                "your address has registered more than {MAX_REGISTRATIONS} clients within a minute: try again in {wait_s} s"
            );
            Fault::new(FaultKind::RateLimited, message).with_retry_after_s(wait_s)
        })
    }

    fn elapsed_s(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_secs()
    }
}

/// An address has the maximum of connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooManyConnections;

impl Drop for AddressConnection {
    fn drop(&mut self) {
        self.sketch.counts.decr(self.address, 1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::time::Duration;

    use super::*;

    #[test]
    fn connections_count_by_address_until_they_end() {
        let limits = AddressLimits::new(2);
        let (one, other) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let held = [limits.open(one).unwrap(), limits.open(one).unwrap()];
        assert_eq!(limits.open(one).err(), Some(TooManyConnections));
        assert_eq!(limits.open(one).err(), Some(TooManyConnections));
        assert!(limits.open(other).unwrap().is_some());
        drop(held);
        assert!(limits.open(one).unwrap().is_some());
        let subnet: [IpAddr; 3] =
            ["2001:db8::1", "2001:db8::2", "2001:db8::3"].map(|a| a.parse().unwrap());
        let _held = [
            limits.open(subnet[0]).unwrap(),
            limits.open(subnet[1]).unwrap(),
        ];
        assert!(limits.open(subnet[2]).is_err());
        assert!(AddressLimits::new(0).open(one).unwrap().is_none());
    }

    #[test]
    fn refused_keys_count_by_address_and_minute() {
        let limits = AddressLimits::new(0);
        let (one, other) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let now = limits.started + Duration::from_secs(10);
        for _ in 0..MAX_REFUSED_KEYS {
            limits.count_refused_key(one, now).unwrap();
        }
        let fault = limits.count_refused_key(one, now).unwrap_err();
        assert_eq!((fault.status(), fault.retry_after_s), (429, Some(50)));
        limits.count_refused_key(other, now).unwrap();
        let next = limits.started + Duration::from_secs(WINDOW_S);
        limits.count_refused_key(one, next).unwrap();
    }

    #[test]
    fn registrations_have_a_limit_of_their_own() {
        let limits = AddressLimits::new(0);
        let (one, now) = ([192, 0, 2, 1].into(), limits.started);
        for _ in 0..MAX_REGISTRATIONS {
            limits.count_registration(one, now).unwrap();
        }
        let fault = limits.count_registration(one, now).unwrap_err();
        assert_eq!((fault.status(), fault.retry_after_s), (429, Some(60)));
        limits.count_refused_key(one, now).unwrap();
    }
}
