//! The URL of the store.

use std::path::{Path, PathBuf};

use super::StoreError;

/// The location of the store.
#[derive(Clone, Eq, PartialEq)]
pub enum StoreUrl {
    Sqlite(PathBuf),
    /// A PostgreSQL server. The URL may hold a password, so there is no `Debug`.
    Postgres(String),
}

impl StoreUrl {
    /// Parses `sqlite:PATH`, `postgres://…` or `postgresql://…`.
    ///
    /// A relative path starts at the working directory. Errors: any other form. The error does not repeat the URL,
    /// which may hold a password.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        if let Some(rest) = url.strip_prefix("sqlite:") {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            return sqlite(path);
        }
        let is_postgres = ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| url.starts_with(scheme));
        if is_postgres {
            return Ok(Self::Postgres(url.to_owned()));
        }
        Err(invalid("is neither `sqlite:PATH` nor `postgres://…`"))
    }

    /// Returns the location without credentials, for people.
    pub fn redacted(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite:{}", path.display()),
            Self::Postgres(url) => format!("postgres://{}", without_credentials(url)),
        }
    }
}

fn sqlite(path: &str) -> Result<StoreUrl, StoreError> {
    if path.contains(":memory:") {
        return Err(invalid(
            "names no file: a store in memory would forget every key",
        ));
    }
    // Drivers commonly require this option, and it is the behaviour here anyway.
    let path = path.strip_suffix("?mode=rwc").unwrap_or(path);
    if path.contains('?') {
        return Err(invalid(
            "has options after `?`: only the path of the file is accepted",
        ));
    }
    if path.is_empty() || path.ends_with('/') || path.contains('\0') {
        return Err(invalid("names no file"));
    }
    Ok(StoreUrl::Sqlite(PathBuf::from(path)))
}

fn invalid(problem: &str) -> StoreError {
    StoreError::Configuration(format!("store.url {problem}"))
}

/// Returns host, port and database.
fn without_credentials(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split_once(['?', '#']).map_or(rest, |(rest, _)| rest);
    rest.rsplit_once('@').map_or(rest, |(_, host)| host)
}

/// Returns the URL by which the driver opens an existing SQLite file.
///
/// The path is absolute, and each byte that a URL could interpret is percent-encoded.
pub(super) fn sqlite_url(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let path: String = bytes.iter().map(|byte| percent_encoded(*byte)).collect();
    format!("sqlite://{path}?mode=rw")
}

fn percent_encoded(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;

    fn path(url: &str) -> PathBuf {
        match StoreUrl::parse(url).ok().unwrap() {
            StoreUrl::Sqlite(path) => path,
            StoreUrl::Postgres(_) => panic!("not a file"),
        }
    }

    #[test]
    fn sqlite_with_and_without_slashes_names_the_same_path() {
        assert_eq!(
            path("sqlite:var/weirgate.db"),
            PathBuf::from("var/weirgate.db")
        );
        assert_eq!(
            path("sqlite://var/weirgate.db"),
            PathBuf::from("var/weirgate.db")
        );
        assert_eq!(path("sqlite:///srv/w.db"), PathBuf::from("/srv/w.db"));
        assert_eq!(path("sqlite:w.db?mode=rwc"), PathBuf::from("w.db"));
    }

    #[test]
    fn a_url_that_names_no_store_is_refused() {
        let urls = [
            "",
            "mysql://h/d",
            "var/w.db",
            "sqlite:",
            "sqlite::memory:",
            "sqlite:var/",
            "sqlite:a?mode=ro",
        ];
        for url in urls {
            assert!(StoreUrl::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let url = StoreUrl::parse("postgres://me:p@ss@db:5432/w?password=other")
            .ok()
            .unwrap();
        assert_eq!(url.redacted(), "postgres://db:5432/w");
        let refused = StoreUrl::parse("postgre://me:hunter2@db/w").err().unwrap();
        assert!(!refused.to_string().contains("hunter2"));
    }

    #[test]
    fn odd_paths_survive_the_driver_s_url() {
        assert_eq!(
            sqlite_url(Path::new("/a b/c%?#é")),
            "sqlite:///a%20b/c%25%3F%23%C3%A9?mode=rw"
        );
    }
}
