//! Checks the keys of `[mcp]`.

use std::time::Duration;

use filters::mcp::origin::Origins;
use http::Uri;

use super::Rules;
use crate::config::checked::McpConfig;
use crate::config::file;

const DAY: Duration = Duration::from_secs(86_400);

/// Converts the section; `None`: the server is off.
pub(super) fn check(rules: &mut Rules<'_>, mcp: &file::Mcp) -> Option<McpConfig> {
    let public = Some(&mcp.public_url).filter(|url| !url.is_empty());
    let public = public.and_then(|url| check_origin(rules, "mcp.public_url", url));
    let allowed = mcp.allowed_origins.iter().enumerate();
    let allowed = allowed.filter_map(|(number, origin)| {
        let key = format!("mcp.allowed_origins[{number}]");
        check_origin(rules, &key, origin)
    });
    let allowed = allowed.collect();
    mcp.enabled.then_some(McpConfig {
        origins: Origins { allowed, public },
        session_lifetime: super::seconds(mcp.session_hours * 3600),
        streams_per_key: mcp.streams_per_key,
        resume_timeout: super::seconds(mcp.resume_seconds),
        access_token_ttl: Duration::from_secs(mcp.access_token_seconds.into()),
        refresh_token_ttl: DAY * mcp.refresh_token_days,
    })
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
