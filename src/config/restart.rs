//! The keys of the configuration, and what a change of each takes: a reload, or a restart.

/// The ways in which a changed key comes into force.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// A reload puts it in force. The text says for what.
    Reload(&'static str),
    /// Only a new process has it. The text says why.
    Restart(&'static str),
}

const REQUESTS: Effect = Effect::Reload("new requests");
const CONNECTIONS: Effect = Effect::Reload("new connections");
const STORE: Effect = Effect::Restart("the store and its journal are opened once");
const SHARED: Effect =
    Effect::Restart("connections to Redis, and what they share, last as long as the process");
const AGENT: Effect =
    Effect::Restart("connections to the Redis of agent mode last as long as the process");

/// All keys. A name stands for all keys below it.
pub const EFFECTS: &[(&str, Effect)] = &[
    (
        "listen.address",
        Effect::Reload("a new listener; the connections of the old one end with their requests"),
    ),
    (
        "listen.tls",
        Effect::Reload("new connections; changed files are also read without a reload"),
    ),
    ("listen.http2", CONNECTIONS),
    ("listen.max_connections", CONNECTIONS),
    ("listen.max_connections_per_ip", CONNECTIONS),
    ("listen.header_timeout_s", CONNECTIONS),
    ("listen.header_bytes", CONNECTIONS),
    ("listen.client_ip_header", REQUESTS),
    ("listen.key_header", REQUESTS),
    ("listen.trusted_proxies", REQUESTS),
    ("admin.address", Effect::Reload("a new listener")),
    ("admin.token", REQUESTS),
    ("admin.write", REQUESTS),
    (
        "console.keep_calls",
        Effect::Reload("at once; of the calls that are kept, the newest stay"),
    ),
    (
        "server.threads",
        Effect::Restart("threads are made at the start"),
    ),
    ("server.watch", Effect::Reload("at once")),
    ("server.drain_delay_s", Effect::Reload("the next stop")),
    (
        "server.grace_period_s",
        Effect::Reload("the next stop or upgrade"),
    ),
    (
        "server.upgrade_socket",
        Effect::Restart("the next process looks for it where the running one has made it"),
    ),
    ("store.url", STORE),
    ("store.state_dir", STORE),
    (
        "store.secret",
        Effect::Restart("API keys and stored secrets are bound to it"),
    ),
    ("store.durability", STORE),
    ("store.journal_bytes", STORE),
    ("store.usage_retention_days", STORE),
    ("shared.redis", SHARED),
    ("shared.on_outage", SHARED),
    ("limits.in_flight", REQUESTS),
    ("limits.buffered_bytes", REQUESTS),
    ("limits.spooled_bytes", REQUESTS),
    ("limits.body_bytes", REQUESTS),
    ("limits.requests_per_minute", REQUESTS),
    ("limits.shared_exact", SHARED),
    ("routing", REQUESTS),
    ("cache.max_bytes", REQUESTS),
    ("media", REQUESTS),
    ("videos", REQUESTS),
    ("responses", REQUESTS),
    ("models", REQUESTS),
    ("providers", REQUESTS),
    ("decisions.sdk_key_headers", REQUESTS),
    ("decisions.compat", AGENT),
    ("decisions.datafile_url", REQUESTS),
    ("decisions.poll_interval_s", Effect::Reload("at once")),
    ("decisions.event_url", Effect::Reload("new events")),
    ("decisions.event_batch", Effect::Reload("new events")),
    (
        "decisions.event_flush_interval_s",
        Effect::Reload("new events"),
    ),
    ("decisions.event_queue", Effect::Reload("new events")),
    ("decisions.batch_max_operations", REQUESTS),
    ("decisions.batch_concurrency", REQUESTS),
    ("decisions.overrides", REQUESTS),
    ("decisions.user_profiles", REQUESTS),
    ("decisions.user_profile_ttl_s", REQUESTS),
    ("decisions.user_profiles_max", REQUESTS),
    ("decisions.agent_redis", AGENT),
    ("decisions.notifications", REQUESTS),
    ("decisions.event_streams", REQUESTS),
    ("decisions.unknown_key_ttl_s", REQUESTS),
    ("decisions.datafile_max_bytes", REQUESTS),
    ("decisions.jwks_url", REQUESTS),
    ("decisions.token_ttl_s", REQUESTS),
    ("decisions.token_issuer", REQUESTS),
    ("decisions.token_audience", REQUESTS),
    ("decisions.token_keys", REQUESTS),
    ("decisions.odp", REQUESTS),
    ("decisions.cmab", REQUESTS),
    ("decisions.projects", REQUESTS),
    ("decisions.clients", REQUESTS),
    ("decisions.webhooks", REQUESTS),
    ("graph", REQUESTS),
    ("plans", REQUESTS),
    ("prompts", REQUESTS),
    ("claude_code", REQUESTS),
    ("mcp", REQUESTS),
    ("telemetry", REQUESTS),
    ("log.level", Effect::Reload("at once")),
    ("log.access", REQUESTS),
    ("log.format", Effect::Restart("the log is opened once")),
    (
        "log_export",
        Effect::Reload("the next batch, also of lines that wait already"),
    ),
];

/// Returns how a change of this key comes into force, or `None` if no key has this name.
pub(super) fn effect(key: &str) -> Option<Effect> {
    let row = EFFECTS.iter().find(|(name, _)| covers(name, key));
    row.map(|(_, effect)| *effect)
}

/// Returns why a change of this key needs a restart, or `None` if a reload puts it in force.
pub(super) fn reason(key: &str) -> Option<&'static str> {
    match effect(key) {
        Some(Effect::Restart(why)) => Some(why),
        _ => None,
    }
}

/// Returns the keys below `table` whose change needs a restart.
pub(super) fn restart_keys(table: &str) -> impl Iterator<Item = &'static str> {
    let keys = EFFECTS
        .iter()
        .filter(move |(name, _)| *name != table && covers(table, name));
    let keys = keys.filter(|(_, effect)| matches!(effect, Effect::Restart(_)));
    keys.map(|(name, _)| *name)
}

/// Returns whether `key` is `name`, or is below it.
fn covers(name: &str, key: &str) -> bool {
    key.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::config::schema;
    use crate::config::walk::{join_key, member_schema};
    use serde_json::Value as Json;
    use std::path::Path;

    /// All keys of a schema, down to values, free names and lists.
    fn keys(schema: &Json, key: &str, all: &mut Vec<String>) {
        let known = schema.get("properties").and_then(Json::as_object);
        match known {
            Some(known) => {
                for name in known.keys() {
                    keys(member_schema(schema, name), &join_key(key, name), all);
                }
            }
            None => all.push(key.to_owned()),
        }
    }

    #[test]
    fn each_key_reloads_or_needs_a_restart() {
        let mut all = Vec::new();
        keys(&schema(), "", &mut all);
        assert!(all.len() > 90, "{}", all.len());
        for key in &all {
            let rows = EFFECTS.iter().filter(|(name, _)| covers(name, key));
            assert_eq!(rows.count(), 1, "{key}");
        }
        for (name, _) in EFFECTS {
            assert!(all.iter().any(|key| covers(name, key)), "no key is {name}");
        }
    }

    #[test]
    fn entries_of_a_list_have_the_effect_of_the_list() {
        assert!(reason("decisions.token_keys[0]").is_none());
        assert!(reason("store.url").is_some());
        assert!(reason("server.threads_of_another").is_none());
        let found: Vec<_> = restart_keys("decisions").collect();
        assert_eq!(found, ["decisions.compat", "decisions.agent_redis"]);
    }

    /// The rows of the table of the page.
    fn rows() -> String {
        let mut rows: Vec<(Vec<&str>, &str)> = Vec::new();
        for (name, effect) in EFFECTS {
            let Effect::Restart(text) = effect else {
                continue;
            };
            match rows.iter_mut().find(|(_, other)| other == text) {
                Some((names, _)) => names.push(name),
                None => rows.push((vec![name], text)),
            }
        }
        let row = |(names, text): &(Vec<&str>, &str)| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("| {} | {text} |\n", names.join(", "))
        };
        rows.iter().map(row).collect()
    }

    /// Replaces the rows of the table that follows this heading row.
    fn with_rows(page: &str, head: &str, rows: &str) -> String {
        let (before, after) = page.split_once(head).unwrap_or_else(|| panic!("{head}"));
        let end = after.find("\n\n").unwrap();
        format!("{before}{head}\n|---|---|\n{rows}{}", &after[end + 1..])
    }

    #[test]
    fn the_page_lists_each_key_that_needs_a_restart() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reload.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let expected = with_rows(&page, "| key | why it needs a restart |", &rows());
        if std::env::var_os("WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        let page = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            page, expected,
            "WRITE_GOLDEN=1 cargo test --lib the_page_lists_each_key_that_needs_a_restart"
        );
    }
}
