//! Checks the keys of `[shared]`.

use redis::{ConnectionAddr, IntoConnectionInfo};

use super::Rules;
use crate::config::checked::SharedConfig;
use crate::config::document::SourceSpan;
use crate::config::file;
use crate::config::origin::without_password;
use crate::config::secret::Secret;

/// Converts the section.
pub(super) fn check(rules: &mut Rules<'_>, shared: &file::SharedConfig) -> SharedConfig {
    warn_of_password(rules, "shared.redis", &shared.redis);
    let url = Some(shared.redis.as_str()).filter(|url| !url.is_empty());
    SharedConfig {
        redis: url.map(Secret::new),
        on_outage: shared.on_outage,
    }
}

/// Warns if leases of windows are configured but no window is shared.
pub(super) fn warn_of_leases(rules: &mut Rules<'_>, file: &file::File) {
    if !file.limits.shared_exact && file.shared.redis.is_empty() {
        let cure = "set shared.redis, or take it out";
        let message = "has no effect without shared.redis";
        rules.warn("limits.shared_exact", message, cure);
    }
}

/// Warns if the file contains the password of a Redis.
pub(super) fn warn_of_password(rules: &mut Rules<'_>, key: &str, url: &str) {
    let in_file = matches!(rules.find_span(key), SourceSpan::Bytes(_));
    if in_file && without_password(url) != url {
        let variable = key.replace('.', "__").to_uppercase();
        let cure = format!("set WEIRGATE_{variable}");
        rules.warn(key, "the password stands in the file", cure);
    }
}

/// Returns whether two URLs name one database of one server. All names of loopback are one host.
pub(super) fn is_same_database(url: &str, other: &str) -> bool {
    let place = |url: &str| {
        let info = url.into_connection_info().ok()?;
        let (host, port) = match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host.trim_end_matches('.').to_ascii_lowercase(), *port)
            }
            _ => return None,
        };
        let is_loopback = host == "localhost" || host == "::1";
        let host = if is_loopback {
            "127.0.0.1".to_owned()
        } else {
            host
        };
        Some((host, port, info.redis_settings().db()))
    };
    place(url).is_some_and(|here| place(other) == Some(here))
}

#[cfg(test)]
mod tests {
    use super::is_same_database;

    #[test]
    fn a_database_is_a_server_and_a_number() {
        for (url, is_same) in [
            ("redis://h", true),
            ("redis://H:6379", true),
            ("rediss://:word@h.:6379/0", true),
            ("redis://h/1", false),
            ("redis://h:6380/0", false),
            ("redis://other/0", false),
            ("", false),
        ] {
            assert_eq!(is_same_database(url, "redis://h/0"), is_same, "{url}");
        }
        assert!(is_same_database("redis://localhost", "redis://127.0.0.1"));
    }
}
