//! Rules that a schema cannot express: how keys depend on each other and on the environment. They produce the checked
//! values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::catalog::CatalogDigest;
use super::checked::{Config, Routing, StoreConfig};
use super::document::SourceSpan;
use super::file::{self, File, SecretRef};
use super::problem::Problem;
use super::secret::{self, Secret, SecretBytes};
use super::walk::{Finding, Walk};

mod cloud;
mod decisions;
mod graph;
mod listen;
mod log_export;
mod mcp;
mod models;
mod places;
mod plans;
mod provider_urls;
mod providers;
mod quirks;
mod shared;
mod telemetry;

/// Minimum length of a pepper.
const MIN_PEPPER_BYTES: usize = 32;

/// The inputs of the rules other than the file, and their findings.
pub(super) struct Rules<'a> {
    pub walk: &'a mut Walk,
    pub warnings: Vec<Finding>,
    pub catalog_warnings: Vec<Problem>,
    pub catalog_digest: CatalogDigest,
    pub env: &'a BTreeMap<String, String>,
}

impl Rules<'_> {
    /// Checks `file` and makes the checked configuration, which is valid only if no problem was found.
    pub(super) fn apply(&mut self, file: &File) -> Config {
        let decisions = decisions::check(self, file);
        let graph = graph::check(self, file);
        let found = providers::check(self, file);
        let log_export = log_export::check(self, file);
        shared::warn_of_leases(self, file);
        self.check_routing(&file.routing);
        let listen = listen::check(self, file);
        Config {
            mcp: mcp::check(self, &file.mcp, listen.address),
            listen,
            admin: listen::check_admin(self, file),
            console: file.console,
            server: file.server.clone(),
            store: self.check_store(&file.store),
            shared: shared::check(self, &file.shared),
            limits: file.limits.clone(),
            routing: file.routing.clone(),
            media: file.media.clone(),
            videos: file.videos.clone(),
            responses: file.responses.clone(),
            reply_cache_bytes: file.cache.max_bytes,
            models: models::check(self, file, found.names()),
            plans: plans::check(self, file),
            prompts_enabled: file.prompts.enabled,
            judge_model: Some(&*file.claude_code.judge_model)
                .filter(|model| !model.is_empty())
                .map(Arc::from),
            providers: found.on,
            off_providers: found.off,
            byok_only_providers: found.byok_only,
            decisions,
            graph,
            telemetry: telemetry::check(self, &file.telemetry),
            log: file.log,
            log_export,
        }
    }

    /// Records a problem at `key`, unless that key has a problem already.
    fn refuse(&mut self, key: &str, message: impl Into<String>, cure: impl Into<String>) {
        let known = |finding: &Finding| !finding.key.is_empty() && finding.key == key;
        if !self.walk.findings.iter().any(known) {
            let at = self.find_span(key);
            self.walk.refuse(key, &at, message.into(), cure.into());
        }
    }

    /// Records a problem of the name `key` in a table with free names.
    fn refuse_name(&mut self, key: &str, message: String, cure: String) {
        let at = self.walk.places.get(&format!("{key}=")).cloned();
        let at = at.unwrap_or_else(|| self.find_span(key));
        self.walk.refuse(key, &at, message, cure);
    }

    /// Hides the value at `key` wherever its line is shown, because it may be a secret.
    fn hide(&mut self, key: &str) {
        if let SourceSpan::Bytes(bytes) = self.find_span(key) {
            self.walk.hidden.push(bytes);
        }
    }

    fn warn(&mut self, key: &str, message: impl Into<String>, cure: impl Into<String>) {
        let (at, message, cure) = (self.find_span(key), message.into(), cure.into());
        self.warnings.push(Finding {
            key: key.to_owned(),
            at,
            message,
            cure,
        });
    }

    fn is_set(&self, key: &str) -> bool {
        self.walk.places.contains_key(key)
    }

    fn find_span(&self, key: &str) -> SourceSpan {
        self.walk.find_span(key)
    }

    /// Finds a secret. A configured secret must exist.
    fn find_secret(&mut self, key: &str, reference: Option<&SecretRef>) -> Option<Secret> {
        let reference = reference?;
        if self.refuse_literal(key, reference) {
            return None;
        }
        match secret::find_text(reference, self.env) {
            Ok(found) => Some(found),
            Err(absent) => {
                self.refuse(key, absent.to_string(), "provide it, or take the key out");
                None
            }
        }
    }

    /// Refuses a literal in place of a reference. Returns whether there was a literal.
    fn refuse_literal(&mut self, key: &str, reference: &SecretRef) -> bool {
        let is_literal = matches!(reference, SecretRef::Literal(_));
        if is_literal {
            self.refuse(
                key,
                "a secret must not stand in the configuration itself",
                "write { env = \"NAME\" } or { file = \"PATH\" }, and change the secret: it was written down",
            );
        }
        is_literal
    }

    fn check_store(&mut self, store: &file::StoreConfig) -> StoreConfig {
        let is_sqlite = store.url.starts_with("sqlite:");
        if !is_sqlite && store.secret.is_none() {
            self.refuse(
                "store.secret",
                "is required with PostgreSQL, because several processes must share it",
                "write secret = { file = \"PATH\" } in [store]",
            );
        }
        let in_file = matches!(self.find_span("store.url"), SourceSpan::Bytes(_));
        if in_file && super::origin::without_password(&store.url) != store.url {
            self.warn(
                "store.url",
                "the password stands in the file",
                "use a password file (~/.pgpass), or set WEIRGATE_STORE__URL",
            );
        }
        StoreConfig {
            url: store.url.clone(),
            state_dir: self.state_dir(store),
            durability: store.durability,
            journal_bytes: store.journal_bytes,
            usage_retention: (store.usage_retention_days > 0)
                .then(|| Duration::from_secs(store.usage_retention_days * 86_400)),
            secret: self.find_pepper(store.secret.as_ref()),
        }
    }

    /// Finds the secret that replaces `secret.key`. It consists of bytes, so a copy of that file works.
    fn find_pepper(&mut self, reference: Option<&SecretRef>) -> Option<SecretBytes> {
        const KEY: &str = "store.secret";
        let reference = reference?;
        if self.refuse_literal(KEY, reference) {
            return None;
        }
        match secret::find_bytes(reference, self.env) {
            Ok(found) if found.expose().len() >= MIN_PEPPER_BYTES => return Some(found),
            Ok(_) => self.refuse(
                KEY,
                "has fewer than 32 bytes",
                "make one: head -c 32 /dev/urandom > PATH",
            ),
            Err(absent) => {
                self.refuse(KEY, absent.to_string(), "provide it, or take the key out");
            }
        }
        None
    }

    fn state_dir(&self, store: &file::StoreConfig) -> PathBuf {
        let given = store.state_dir.as_ref().map(PathBuf::from);
        let from_env = || {
            let folders = self.env.get("STATE_DIRECTORY")?;
            folders
                .split(':')
                .next()
                .filter(|folder| !folder.is_empty())
                .map(PathBuf::from)
        };
        given
            .or_else(|| sqlite_folder(&store.url))
            .or_else(from_env)
            .unwrap_or_else(|| PathBuf::from("var"))
    }

    fn check_routing(&mut self, routing: &Routing) {
        let (deadline, first_event) = (routing.deadline, routing.first_event_timeout);
        for (key, value) in [
            ("routing.total_timeout_s", routing.total_timeout),
            (
                "routing.stream_total_timeout_s",
                routing.stream_total_timeout,
            ),
            ("routing.first_event_timeout_s", first_event),
        ] {
            if value > deadline {
                let message = format!(
                    "{} s can never pass: routing.deadline_s ends all attempts after {} s",
                    value.as_secs(),
                    deadline.as_secs()
                );
                self.warn(key, message, "raise routing.deadline_s, or lower this");
            }
        }
        if let Some(hedge_after) = routing.hedge_after.filter(|after| *after >= first_event) {
            let key = "routing.hedge_after_ms";
            let message = format!(
                "{} ms can never pass without an event: routing.first_event_timeout_s ends such attempts after {} s",
                hedge_after.as_millis(),
                first_event.as_secs()
            );
            self.warn(
                key,
                message,
                "lower this, or raise routing.first_event_timeout_s",
            );
        }
    }
}

/// Returns the cure for a file that exists and cannot be read.
pub(super) fn cure_of_unreadable(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::InvalidData => "save the file as UTF-8 text",
        _ => "let the user that the server runs as read it, or correct the path",
    }
}

fn seconds(value: u64) -> Duration {
    Duration::from_secs(value)
}

/// Returns the folder of an SQLite file, or `None` for a database in memory or on a server.
fn sqlite_folder(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    let path = path.split('?').next().filter(|path| *path != ":memory:")?;
    let folder = Path::new(path).parent()?;
    Some(if folder.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        folder.to_owned()
    })
}
