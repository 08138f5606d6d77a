//! The operator's listener with metrics, probes and the console. They are never served on the public listener.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use filters::proxy::is_loopback;
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::cloud_credentials::CredentialSource;
use crate::config::Secret;
use crate::console::Console;
use crate::proxy::state::{CurrentState, STALLED};

mod connections;
mod server;

pub use self::connections::AdminListener;

const PLAIN_TEXT: &str = "text/plain";

/// The operator's endpoints.
pub struct Admin {
    current: CurrentState,
    view: AdminView,
    console: Arc<Console>,
}

/// What the configuration says about the endpoints. A reload replaces it. Clones share it.
#[derive(Clone)]
pub struct AdminView(Arc<ArcSwap<AdminSettings>>);

/// The settings of the endpoints.
pub struct AdminSettings {
    /// The hash of the token that all endpoints but the probes require. `None` means that requests need no token, but
    /// have to name this machine.
    token_hash: Option<[u8; 32]>,
    /// The sources of clouds' credentials, which `/readyz?verbose` shows.
    sources: Vec<Arc<CredentialSource>>,
}

impl AdminSettings {
    /// Returns the settings. With a token, all endpoints but the probes require it.
    pub fn new(token: Option<&Secret>, sources: Vec<Arc<CredentialSource>>) -> Self {
        Self {
            token_hash: token.map(token_hash),
            sources,
        }
    }
}

/// Returns the hash by which `admin.token` is known.
pub fn token_hash(token: &Secret) -> [u8; 32] {
    Sha256::digest(token.expose()).into()
}

impl AdminView {
    /// Starts with these settings.
    pub fn new(settings: AdminSettings) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(settings)))
    }

    /// Replaces the settings.
    pub fn replace(&self, settings: AdminSettings) {
        self.0.store(Arc::new(settings));
    }
}

impl Admin {
    /// Creates the endpoints, which show the current state.
    pub fn new(current: &CurrentState, view: &AdminView, console: Arc<Console>) -> Self {
        Self {
            current: current.clone(),
            view: view.clone(),
            console,
        }
    }

    fn answer(
        &self,
        (path, is_verbose): (&str, bool),
        headers: &HeaderMap,
        address: Option<IpAddr>,
    ) -> (u16, &'static str, Vec<u8>) {
        let settings = self.view.0.load();
        match path {
            "/livez" => self.liveness(),
            "/readyz" if !is_verbose => self.readiness(),
            _ if settings.token_hash.is_none() && !names_address(headers, address) => (
                403,
                PLAIN_TEXT,
                b"without admin.token, Host has to be localhost or the address of this listener\n"
                    .to_vec(),
            ),
            _ if !settings.is_authorized(headers) => (
                401,
                PLAIN_TEXT,
                b"the token of admin.token is required: Authorization: Bearer TOKEN\n".to_vec(),
            ),
            "/readyz" => {
                let (status, media_type, mut body) = self.readiness();
                let reloads = &self.current.get().metrics.reloads;
                body.extend(reloads.status().to_string().into_bytes());
                let sources = settings.sources.iter();
                body.extend(sources.flat_map(|it| source_line(it).into_bytes()));
                (status, media_type, body)
            }
            "/metrics" => {
                let state = self.current.get();
                let age = state.accounts.age().as_secs_f64();
                state.metrics.accounts_age.set(age);
                (200, "text/plain; version=0.0.4", state.metrics.render())
            }
            _ => (
                404,
                PLAIN_TEXT,
                b"/console, /metrics, /livez and /readyz are answered here\n".to_vec(),
            ),
        }
    }

    fn liveness(&self) -> (u16, &'static str, Vec<u8>) {
        match self.current.get().progress.is_stalled() {
            false => (200, PLAIN_TEXT, b"ok\n".to_vec()),
            true => (503, PLAIN_TEXT, format!("{STALLED}\n").into_bytes()),
        }
    }

    fn readiness(&self) -> (u16, &'static str, Vec<u8>) {
        match self.current.get().check_ready() {
            Ok(()) => (200, PLAIN_TEXT, b"ok\n".to_vec()),
            Err(why) => (503, PLAIN_TEXT, format!("not ready: {why}\n").into_bytes()),
        }
    }
}

impl AdminSettings {
    /// Returns whether the request has the token. The comparison of hashes takes constant time.
    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let Some(expected) = &self.token_hash else {
            return true;
        };
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return false;
        };
        let Some((scheme, token)) = split_scheme(value.as_bytes()) else {
            return false;
        };
        let presented: [u8; 32] = Sha256::digest(token).into();
        scheme.eq_ignore_ascii_case(b"bearer") && bool::from(presented.ct_eq(expected))
    }
}

/// Returns the state of a source in words.
fn source_line(source: &CredentialSource) -> String {
    let status = source.status();
    let state = if status.is_usable {
        "usable"
    } else {
        "unavailable"
    };
    let error = status.error.map(|error| format!(": {error}"));
    let error = error.unwrap_or_default();
    format!(
        "credentials of provider {}: {state}{error}\n",
        source.provider
    )
}

/// Returns whether a request names this machine: by a loopback name, or by the address at which its connection
/// arrived. A web page whose own name was pointed at this machine sends that name instead.
fn names_address(headers: &HeaderMap, address: Option<IpAddr>) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    is_loopback(host) || host_address(host).is_some_and(|host| Some(host) == address)
}

/// Returns the address in an authority, which may have a port.
fn host_address(authority: &str) -> Option<IpAddr> {
    let socket = authority.parse::<SocketAddr>().map(|it| it.ip());
    let bare = authority.trim_start_matches('[').trim_end_matches(']');
    let address = socket.or_else(|_| bare.parse()).ok();
    address.map(|address: IpAddr| address.to_canonical())
}

/// Splits a credential at its first space.
fn split_scheme(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = value.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = value.split_at(space);
    Some((scheme, rest.trim_ascii()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_request_names_loopback_or_the_address_that_it_reached() {
        let address = Some(IpAddr::from([192, 0, 2, 7]));
        let named = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            names_address(&headers, address)
        };
        for host in ["localhost:8081", "LocalHost", "127.0.0.1:1", "[::1]:8081"] {
            assert!(named(host), "{host}");
        }
        for host in ["192.0.2.7", "192.0.2.7:8081", "[::ffff:192.0.2.7]:1"] {
            assert!(named(host), "{host}");
        }
        for host in ["192.0.2.8", "rebound.example", "localhost.evil.example", ""] {
            assert!(!named(host), "{host}");
        }
        assert!(!names_address(&HeaderMap::new(), address));
        let mut twice = HeaderMap::new();
        twice.append(header::HOST, HeaderValue::from_static("localhost"));
        twice.append(header::HOST, HeaderValue::from_static("evil.example"));
        assert!(!names_address(&twice, address));
    }
}
