//! Checks the keys of `[listen]` and `[admin]`.

use std::net::SocketAddr;

use http::HeaderName;

use super::{Rules, seconds};
use crate::config::certificate::CertificateFiles;
use crate::config::checked::{AdminConfig, Listen};
use crate::config::file::{self, File};
use crate::config::secret;

/// Checks the public listener.
pub(super) fn check(rules: &mut Rules<'_>, listen: &file::Listen) -> Listen {
    let header = Some(&listen.client_ip_header).filter(|name| !name.is_empty());
    if header.is_some() && listen.trusted_proxies.is_empty() {
        rules.warn(
            "listen.client_ip_header",
            "nobody is trusted to send this header",
            "list the proxy's addresses in listen.trusted_proxies",
        );
    }
    Listen {
        address: parse_address(&listen.address),
        tls: listen.tls.as_ref().map(|tls| check_tls(rules, tls)),
        header_timeout: seconds(listen.header_timeout_s),
        header_bytes: listen.header_bytes,
        max_connections: listen.max_connections,
        max_connections_per_ip: listen.max_connections_per_ip,
        http2: listen.http2,
        client_ip_header: header.and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok()),
        trusted_proxies: listen
            .trusted_proxies
            .iter()
            .flat_map(|block| block.parse())
            .collect(),
    }
}

/// Finds the files of the certificate, which have to be usable.
fn check_tls(rules: &mut Rules<'_>, tls: &file::Tls) -> CertificateFiles {
    let files = CertificateFiles {
        cert: secret::find_file(&tls.cert, rules.env),
        key: secret::find_file(&tls.key, rules.env),
    };
    if let Err(error) = files.read() {
        rules.refuse(
            &format!("listen.tls.{}", error.key),
            error.to_string(),
            "name the PEM files of a certificate chain and of its private key, which the service's user can read",
        );
    }
    files
}

/// Checks the operator's listener.
pub(super) fn check_admin(rules: &mut Rules<'_>, file: &File) -> AdminConfig {
    let address = parse_address(&file.admin.address);
    if address == parse_address(&file.listen.address) && address.port() != 0 {
        rules.refuse(
            "admin.address",
            "is the address of the public listener",
            "give the admin listener a port of its own",
        );
    }
    if !address.ip().is_loopback() && file.admin.token.is_none() {
        rules.warn(
            "admin.address",
            "metrics and console can be reached from other machines",
            "set admin.token, listen on 127.0.0.1, or let a firewall decide who may connect",
        );
    }
    AdminConfig {
        address,
        token: rules.find_secret("admin.token", file.admin.token.as_ref()),
        write: file.admin.write,
    }
}

/// Parses a checked text. Checking replaces refused texts by a default, which is valid.
fn parse_address(text: &str) -> SocketAddr {
    text.parse()
        .unwrap_or_else(|_| SocketAddr::from(([127, 0, 0, 1], 0)))
}
