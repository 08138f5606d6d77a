//! Checks the keys of `[listen]` and `[admin]`.

use std::net::SocketAddr;

use filters::models::fronts::FRONTS;
use http::HeaderName;

use super::{Rules, seconds};
use crate::config::certificate::CertificateFiles;
use crate::config::checked::{AdminConfig, Listen};
use crate::config::file::{self, File};
use crate::config::secret;

/// Checks the public listener.
pub(super) fn check(rules: &mut Rules<'_>, file: &File) -> Listen {
    let listen = &file.listen;
    let decisions = file.decisions.as_ref();
    let sdk_key_headers = decisions.map_or(&[][..], |it| &it.sdk_key_headers);
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
        key_header: check_key_header(rules, listen, sdk_key_headers),
        trusted_proxies: listen
            .trusted_proxies
            .iter()
            .flat_map(|block| block.parse())
            .collect(),
    }
}

/// The usual name.
const KEY_HEADER: HeaderName = HeaderName::from_static("x-weirgate-key");
/// Headers of requests that mean something else to the gateway or on the way to it.
const TAKEN: [&str; 31] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "host",
    "accept",
    "content-length",
    "content-type",
    "content-encoding",
    "connection",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "traceparent",
    "x-request-id",
    "x-no-cache",
    "x-no-fallback",
    "x-weirgate-debug",
    "x-session-id",
    "x-session-affinity",
    "session_id",
    "session-id",
    "thread-id",
    "x-claude-code-session-id",
    "x-claude-code-agent-id",
    "x-claude-code-parent-agent-id",
    "x-codex-parent-thread-id",
    "x-graph-authorization",
    "x-weirgate-cache",
];

/// Checks the header that only holds API keys. It may not be one that is read for something else, or that goes to providers.
fn check_key_header(
    rules: &mut Rules<'_>,
    listen: &file::Listen,
    sdk_key_headers: &[String],
) -> HeaderName {
    let name = listen.key_header.to_ascii_lowercase();
    let passes = |name: &str| {
        let mut starts = FRONTS.iter().map(|front| front.row().own_headers);
        starts.any(|start| !start.is_empty() && name.starts_with(start))
    };
    let problem = if TAKEN.contains(&&*name) {
        Some("is a header that means something else")
    } else if passes(&name) {
        Some("begins as headers that go to providers")
    } else if sdk_key_headers
        .iter()
        .any(|it| it.eq_ignore_ascii_case(&name))
    {
        Some("is the same header as one of decisions.sdk_key_headers")
    } else if name == listen.client_ip_header.to_ascii_lowercase() {
        Some("is the same header as listen.client_ip_header")
    } else {
        None
    };
    if let Some(problem) = problem {
        let message = format!("{:?} {problem}", listen.key_header);
        rules.refuse(
            "listen.key_header",
            message,
            "name a header that only holds API keys, such as x-weirgate-key",
        );
    }
    HeaderName::from_bytes(name.as_bytes()).unwrap_or(KEY_HEADER)
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
