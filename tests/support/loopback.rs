//! Loopback addresses that only one test uses.
//!
//! A test process claims one of the networks 127.1.0.0/16 to 127.254.0.0/16 and hands out each of its addresses once.
//! A server that cannot be given a bound socket listens there on a fixed port. After it stops, its port refuses
//! connections, and it finds the port free when it starts again.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// A process owns a network while it has this UDP port bound on the network's first address. The kernel never chooses
/// this port by itself, because it is below the range of ephemeral ports.
const CLAIM_PORT: u16 = 20_099;
/// How many networks there are: all of 127.0.0.0/8 but the first and the last.
const NETWORKS: u32 = 254;

/// The network of this process.
struct Network {
    number: u8,
    /// The number of the last address that was handed out.
    last: AtomicU16,
    /// Stays bound as long as the process runs.
    _claim: UdpSocket,
}

impl Network {
    fn claim() -> Network {
        // Each process begins elsewhere, because the servers of a process that has just ended may still be ending.
        let begin = std::process::id();
        let mut numbers = (0..NETWORKS).map(|n| (begin.wrapping_add(n) % NETWORKS + 1) as u8);
        let claimed = numbers.find_map(|number| {
            let claim = UdpSocket::bind((Ipv4Addr::new(127, number, 0, 1), CLAIM_PORT)).ok()?;
            Some(Network {
                number,
                last: AtomicU16::new(1),
                _claim: claim,
            })
        });
        claimed.expect("a network of the loopback device that no other test process has")
    }
}

/// An address that was never handed out before.
pub fn own_address() -> Ipv4Addr {
    static NETWORK: OnceLock<Network> = OnceLock::new();
    let network = NETWORK.get_or_init(Network::claim);
    let before = network.last.fetch_add(1, Ordering::Relaxed);
    let number = before
        .checked_add(1)
        .expect("a network has enough addresses");
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, network.number, high, low)
}
