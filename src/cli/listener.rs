//! Where clients reach the server.

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

/// Where clients reach the server, as far as the configuration tells.
pub(super) enum ClientAddress {
    /// `mcp.public_url`.
    Public(String),
    Listener(Listener),
}

impl ClientAddress {
    /// Errors: the address is not known before a start. The message names the settings.
    pub(super) fn from_config(config: &Config) -> Result<Self, &'static str> {
        let origins = config.mcp.as_ref().map(|mcp| &mcp.origins);
        if let Some(public) = origins.and_then(|origins| origins.public.as_ref()) {
            return Ok(Self::Public(public.clone()));
        }
        let listener = Listener::from_config(config).map_err(
            |_| "listen.address has port 0, so each start has another port: set mcp.public_url",
        )?;
        Ok(Self::Listener(listener))
    }

    /// Returns scheme, host and port.
    pub(super) fn url(&self) -> &str {
        match self {
            Self::Public(url) => url,
            Self::Listener(listener) => &listener.url,
        }
    }

    /// Returns a note for people, where only clients of this machine reach the server so.
    pub(super) fn note(&self) -> Option<&'static str> {
        match self {
            Self::Listener(listener) if listener.is_everywhere => {
                Some("This address is for clients on this machine: for others, set mcp.public_url.")
            }
            _ => None,
        }
    }
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
