//! Limits for one client address: its open connections, its refused API keys, and the OAuth clients that it
//! registers. Addresses of this machine and of `listen.trusted_proxies` stand for many clients, so they are not
//! counted.
//!
//! Sketches count, so the memory does not grow with the number of addresses. With very many active addresses, a
//! sketch may count one a little too high, never too low; such a wrong refusal is rare and harmless. An IPv6 address
//! counts together with its /64.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use filters::cidr::Cidr;
use filters::fault::{ExceededLimit, Fault};
use filters::limits::Address;
use pingora_limits::estimator::Estimator;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The shape of a sketch: with these many slots, tens of thousands of active addresses count exactly.
const HASHES: usize = 4;
const SLOTS: usize = 65_536;
/// The refused API keys of an address in a window that are answered at once.
const MAX_REFUSED_KEYS: isize = 60;
/// The delay of each further refusal.
const REFUSAL_DELAY: Duration = Duration::from_secs(1);
/// The maximum number of delayed refusals at once, over all addresses.
const MAX_DELAYED: usize = 256;
/// The maximum number of OAuth clients that an address registers in a window.
const MAX_REGISTRATIONS: isize = 30;
/// The length of these windows in seconds.
const WINDOW_S: u64 = 60;

/// The counters of all addresses.
pub struct AddressLimits {
    /// The open connections, once `listen.max_connections_per_ip` was on.
    connections: ArcSwapOption<Estimator>,
    settings: ArcSwap<Settings>,
    refused_keys: WindowSketch,
    registrations: WindowSketch,
    /// The slots of delayed refusals.
    delayed: Semaphore,
    started: Instant,
}

/// Counts events of addresses in a window.
struct WindowSketch {
    counts: Estimator,
    /// The current window: the number of windows since the start.
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

    /// Counts an event at `elapsed_s` seconds after the start.
    ///
    /// Errors: the address has reached the maximum. The error is the seconds until the window ends.
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

/// The settings of `listen`, which a reload may change.
struct Settings {
    /// The connections of one address, or `None` if they are not counted.
    max_connections: Option<isize>,
    trusted_proxies: Vec<Cidr>,
}

/// One open connection of an address, until it is dropped.
pub struct AddressConnection {
    counts: Arc<Estimator>,
    address: Address,
}

impl AddressLimits {
    /// Creates the counters. With `max_connections` of 0, connections are not counted.
    pub fn new(max_connections: usize, trusted_proxies: &[Cidr]) -> Self {
        let limits = Self {
            connections: ArcSwapOption::empty(),
            settings: ArcSwap::from_pointee(Settings {
                max_connections: None,
                trusted_proxies: Vec::new(),
            }),
            refused_keys: WindowSketch::new(MAX_REFUSED_KEYS),
            registrations: WindowSketch::new(MAX_REGISTRATIONS),
            delayed: Semaphore::new(MAX_DELAYED),
            started: Instant::now(),
        };
        limits.set(max_connections, trusted_proxies);
        limits
    }

    /// Sets the maximum of connections, and the addresses that stand for many clients. Open connections count on.
    pub fn set(&self, max_connections: usize, trusted_proxies: &[Cidr]) {
        if max_connections > 0 && self.connections.load().is_none() {
            let counts = Arc::new(Estimator::new(HASHES, SLOTS));
            self.connections.store(Some(counts));
        }
        let max = isize::try_from(max_connections).unwrap_or(isize::MAX);
        self.settings.store(Arc::new(Settings {
            max_connections: (max_connections > 0).then_some(max),
            trusted_proxies: trusted_proxies.to_vec(),
        }));
    }

    /// Counts a connection of an address, unless the address stands for many clients.
    ///
    /// Errors: the address has the maximum of connections.
    pub fn open(&self, address: IpAddr) -> Result<Option<AddressConnection>, TooManyConnections> {
        let settings = self.settings.load();
        let counts = self.connections.load();
        let Some((max, counts)) = settings.max_connections.zip(counts.as_ref()) else {
            return Ok(None);
        };
        let mut trusted = settings.trusted_proxies.iter();
        let is_loopback = address.to_canonical().is_loopback();
        if is_loopback || trusted.any(|block| block.contains(address)) {
            return Ok(None);
        }
        let address = Address::from(address);
        let count = counts.incr(address, 1);
        // The guard also subtracts a refused connection.
        let connection = AddressConnection {
            counts: Arc::clone(counts),
            address,
        };
        if count > max {
            return Err(TooManyConnections);
        }
        Ok(Some(connection))
    }

    /// Counts a refused API key of an address. An address that guesses keys waits here for its refusal.
    ///
    /// Errors: too many refusals are waiting. This one is sent at once and closes its connection.
    pub async fn delay_refused_key(
        &self,
        address: IpAddr,
        now: Instant,
    ) -> Result<(), TooManyDelayed> {
        if self
            .refused_keys
            .count(address, self.elapsed_s(now))
            .is_ok()
        {
            return Ok(());
        }
        let _place = self.delayed.try_acquire().map_err(|_| TooManyDelayed)?;
        tokio::time::sleep(REFUSAL_DELAY).await;
        Ok(())
    }

    /// Counts an OAuth client that an address registers.
    ///
    /// Errors: 429 if the address has registered too many in this minute.
    pub fn count_registration(&self, address: IpAddr, now: Instant) -> Result<(), Fault> {
        let counted = self.registrations.count(address, self.elapsed_s(now));
        counted.map_err(|wait_s| {
            let message = format!(
                "your address has registered more than {MAX_REGISTRATIONS} clients within a minute: try again in {wait_s} s"
            );
            let exceeded = ExceededLimit {
                limit: MAX_REGISTRATIONS.unsigned_abs() as u64,
                window_ms: WINDOW_S * 1_000,
                reset_ms: u64::from(wait_s) * 1_000,
            };
            Fault::over_limit(exceeded, message)
        })
    }

    fn elapsed_s(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_secs()
    }
}

/// Too many refusals of API keys are waiting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooManyDelayed;

/// An address has the maximum of connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooManyConnections;

impl Drop for AddressConnection {
    fn drop(&mut self) {
        self.counts.decr(self.address, 1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn connections_count_by_address_until_they_end() {
        let limits = AddressLimits::new(2, &[]);
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
        assert!(AddressLimits::new(0, &[]).open(one).unwrap().is_none());
    }

    #[test]
    fn connections_of_this_machine_and_of_trusted_proxies_are_not_counted() {
        let limits = AddressLimits::new(1, &["192.0.2.0/24".parse().unwrap()]);
        for address in [
            "127.0.0.1",
            "127.8.9.1",
            "::1",
            "::ffff:127.0.0.1",
            "192.0.2.7",
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert!(limits.open(address).unwrap().is_none(), "{address}");
        }
        let other: IpAddr = "198.51.100.1".parse().unwrap();
        let _held = limits.open(other).unwrap().unwrap();
        assert_eq!(limits.open(other).err(), Some(TooManyConnections));
    }

    #[test]
    fn open_connections_count_under_new_settings() {
        let limits = AddressLimits::new(3, &[]);
        let one: IpAddr = [192, 0, 2, 1].into();
        let mut held = vec![limits.open(one).unwrap(), limits.open(one).unwrap()];
        limits.set(2, &[]);
        assert_eq!(limits.open(one).err(), Some(TooManyConnections));
        limits.set(0, &[]);
        assert!(limits.open(one).unwrap().is_none(), "it is off");
        limits.set(2, &[]);
        held.pop();
        held.push(limits.open(one).unwrap());
        assert_eq!(limits.open(one).err(), Some(TooManyConnections));
        limits.set(2, &["192.0.2.0/24".parse().unwrap()]);
        assert!(limits.open(one).unwrap().is_none(), "it is trusted");
    }

    #[tokio::test(start_paused = true)]
    async fn refused_keys_count_by_address_and_minute() {
        let limits = AddressLimits::new(0, &[]);
        let (one, other) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let now = limits.started + Duration::from_secs(10);
        let delay = async |address, now| {
            let asked = Instant::now();
            limits.delay_refused_key(address, now).await.unwrap();
            asked.elapsed()
        };
        for _ in 0..MAX_REFUSED_KEYS {
            assert_eq!(delay(one, now).await, Duration::ZERO);
        }
        assert_eq!(delay(one, now).await, REFUSAL_DELAY);
        assert_eq!(delay(other, now).await, Duration::ZERO);
        let next = limits.started + Duration::from_secs(WINDOW_S);
        assert_eq!(delay(one, next).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_answers_wait_and_no_more() {
        let limits = AddressLimits::new(0, &[]);
        let (one, now) = ([192, 0, 2, 1].into(), limits.started);
        for _ in 0..MAX_REFUSED_KEYS {
            limits.delay_refused_key(one, now).await.unwrap();
        }
        let many = (0..MAX_DELAYED + 9).map(|_| limits.delay_refused_key(one, now));
        let ended = futures::future::join_all(many).await;
        let refused = ended.iter().filter(|it| **it == Err(TooManyDelayed));
        assert_eq!(refused.count(), 9);
        limits.delay_refused_key(one, now).await.unwrap();
    }

    #[test]
    fn registrations_have_a_limit_of_their_own() {
        let limits = AddressLimits::new(0, &[]);
        let (one, now) = ([192, 0, 2, 1].into(), limits.started);
        for _ in 0..MAX_REGISTRATIONS {
            limits.count_registration(one, now).unwrap();
        }
        let fault = limits.count_registration(one, now).unwrap_err();
        assert_eq!((fault.status(), fault.retry_after_s), (429, Some(60)));
        assert_eq!(fault.exceeded().unwrap().limit, 30);
    }
}
