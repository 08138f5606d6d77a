//! The public listener's address for clients of this machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::config::Config;

/// The address of the public listener.
pub(super) struct Listener {
    /// Scheme, host and port.
    pub(super) url: String,
    /// Whether the listener accepts connections at every address of the machine. The URL then has the loopback
    /// address.
    pub(super) is_everywhere: bool,
    /// Whether only clients of this machine reach the listener at the URL.
    pub(super) is_loopback: bool,
}

impl Listener {
    /// Errors: the port is not known before a start. The message names the setting.
    pub(super) fn from_config(config: &Config) -> Result<Self, &'static str> {
        let address = config.listen.address;
        if address.port() == 0 {
            return Err("listen.address has port 0, so each start has another port");
        }
        let scheme = match config.listen.tls {
            Some(_) => "https",
            None => "http",
        };
        let is_everywhere = address.ip().is_unspecified();
        let ip = match is_everywhere {
            true => IpAddr::from(Ipv4Addr::LOCALHOST),
            false => address.ip(),
        };
        Ok(Self {
            url: format!("{scheme}://{}", SocketAddr::from((ip, address.port()))),
            is_everywhere,
            is_loopback: ip.is_loopback(),
        })
    }
}
