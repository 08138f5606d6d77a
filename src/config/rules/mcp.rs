//! Checks the keys of `[mcp]`.

use std::net::SocketAddr;
use std::time::Duration;

use filters::mcp::origin::Origins;
use filters::proxy::OwnOrigin;
use http::Uri;

use super::Rules;
use crate::config::checked::McpConfig;
use crate::config::file;

const DAY: Duration = Duration::from_secs(86_400);

/// Converts the section, or returns `None` if the server is off.
pub(super) fn check(
    rules: &mut Rules<'_>,
    mcp: &file::Mcp,
    listener: SocketAddr,
) -> Option<McpConfig> {
    let public = Some(&mcp.public_url).filter(|url| !url.is_empty());
    let public = public.and_then(|url| check_origin(rules, "mcp.public_url", url));
    let allowed = mcp.allowed_origins.iter().enumerate();
    let allowed = allowed.filter_map(|(number, origin)| {
        let key = format!("mcp.allowed_origins[{number}]");
        check_origin(rules, &key, origin)
    });
    let allowed = allowed.collect();
    if mcp.enabled {
        warn_of_unpublished_metadata(rules, public.as_deref(), listener);
    }
    mcp.enabled.then_some(McpConfig {
        origins: Origins { allowed, public },
        session_lifetime: super::seconds(mcp.session_hours * 3600),
        streams_per_key: mcp.streams_per_key,
        resume_timeout: super::seconds(mcp.resume_seconds),
        access_token_ttl: Duration::from_secs(mcp.access_token_seconds.into()),
        refresh_token_ttl: DAY * mcp.refresh_token_days,
    })
}

/// Warns if clients cannot find the metadata of OAuth, and so cannot send a person to sign in. Source:
/// docs/model-gateway.md 1.
fn warn_of_unpublished_metadata(rules: &mut Rules<'_>, public: Option<&str>, listener: SocketAddr) {
    let own = OwnOrigin {
        public: public.map(str::to_owned),
        is_encrypted: false,
    };
    let is_published = own.for_host(None, None).is_some();
    let message = match public {
        Some(_) if !is_published => "is not https: the metadata of OAuth is published to nobody",
        None if !listener.ip().is_loopback() => {
            "is empty: the metadata of OAuth is published to clients on this machine alone"
        }
        _ => return,
    };
    let cure = "write the https URL of the listener, such as https://gateway.example.com; API keys work without it";
    rules.warn("mcp.public_url", message, cure);
}

/// Returns an origin in lower case.
fn check_origin(rules: &mut Rules<'_>, key: &str, url: &str) -> Option<String> {
    let parsed = url.parse::<Uri>().ok().filter(|uri| {
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        let authority = uri.authority().map_or("", http::uri::Authority::as_str);
        is_web && !authority.contains('@') && uri.path() == "/" && uri.query().is_none()
    });
    if parsed.is_none() {
        let cure = "write scheme and host, such as https://gateway.example.com";
        rules.refuse(key, "is not an origin of the web", cure);
    }
    parsed.map(|_| url.trim_end_matches('/').to_ascii_lowercase())
}
