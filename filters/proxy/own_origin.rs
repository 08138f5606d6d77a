//! The origin under which a client reaches the gateway.

use core::net::IpAddr;
use std::borrow::Cow;

/// The facts about how clients reach the gateway.
#[derive(Clone, Debug, Default)]
pub struct OwnOrigin {
    /// The origin that the operator has set, in lower case and without a path.
    pub public: Option<String>,
    /// Whether the listener speaks TLS.
    pub is_encrypted: bool,
}

impl OwnOrigin {
    /// Returns the origin for a request with this `Host` from this peer, if secrets may be sent to that origin. The
    /// origin that the operator has set wins. Without one, a request from this machine gets the origin of this
    /// machine: a remote client may also claim to be `localhost`, so its claim does not count.
    ///
    /// Returns `None` if no origin is set and host or peer is another machine, or if the set origin is not encrypted.
    pub fn for_host(&self, host: Option<&str>, peer: Option<IpAddr>) -> Option<Cow<'_, str>> {
        if let Some(public) = &self.public {
            return is_confidential(public).then_some(Cow::Borrowed(public));
        }
        let is_local = peer.is_some_and(|peer| peer.to_canonical().is_loopback());
        let host = host.filter(|host| is_local && is_loopback(host))?;
        let scheme = if self.is_encrypted { "https" } else { "http" };
        Some(format!("{scheme}://{}", host.to_ascii_lowercase()).into())
    }
}

fn is_confidential(origin: &str) -> bool {
    match origin.split_once("://") {
        Some(("https", _)) => true,
        Some((_, authority)) => is_loopback(authority),
        None => false,
    }
}

/// Returns whether an authority, with or without a port, names this machine.
pub fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(public: Option<&str>, host: Option<&str>) -> Option<String> {
        let own = OwnOrigin {
            public: public.map(str::to_owned),
            is_encrypted: false,
        };
        own.for_host(host, Some(IpAddr::from([127, 0, 0, 1])))
            .map(Cow::into_owned)
    }

    #[test]
    fn what_the_operator_names_counts_whatever_the_host_is() {
        for host in [None, Some("localhost:8080"), Some("elsewhere.example")] {
            let named = origin(Some("https://gw.example"), host);
            assert_eq!(named.as_deref(), Some("https://gw.example"));
            assert_eq!(origin(Some("http://gw.example"), host), None);
            let local = origin(Some("http://127.0.0.1:8080"), host);
            assert_eq!(local.as_deref(), Some("http://127.0.0.1:8080"));
        }
    }

    #[test]
    fn without_it_only_this_machine_has_an_origin() {
        for (host, expected) in [
            ("localhost:8080", "http://localhost:8080"),
            ("LOCALHOST", "http://localhost"),
            ("127.0.0.1:1", "http://127.0.0.1:1"),
            ("[::1]:1", "http://[::1]:1"),
        ] {
            assert_eq!(origin(None, Some(host)).as_deref(), Some(expected));
        }
        for host in [
            "gw.example",
            "192.0.2.1",
            "localhost.example",
            "[2001:db8::1]",
            "",
        ] {
            assert_eq!(origin(None, Some(host)), None, "{host}");
        }
        assert_eq!(origin(None, None), None);
        let encrypted = OwnOrigin {
            public: None,
            is_encrypted: true,
        };
        assert_eq!(
            encrypted
                .for_host(Some("localhost"), "::ffff:127.0.0.1".parse().ok())
                .as_deref(),
            Some("https://localhost")
        );
    }

    #[test]
    fn a_peer_elsewhere_that_names_this_machine_is_told_no_origin() {
        let own = OwnOrigin::default();
        for peer in [None, "192.0.2.1".parse().ok(), "2001:db8::1".parse().ok()] {
            assert_eq!(own.for_host(Some("localhost"), peer), None, "{peer:?}");
        }
        let local = own.for_host(Some("localhost"), "::1".parse().ok());
        assert_eq!(local.as_deref(), Some("http://localhost"));
    }
}
