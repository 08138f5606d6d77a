//! Checks the keys of `[decisions]`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use filters::auth::claims::ClaimRules;
use filters::decisions::protocol::{Agent, Document};
use http::HeaderName;

use super::Rules;
use crate::config::checked::{self, Datafile, ProfileStore};
use crate::config::file::decisions::{
    Client, Compat, DecisionsConfig, ProjectConfig, ProjectId, SegmentsCache, UserProfiles, Webhook,
};
use crate::config::file::{File, SecretRef};
use crate::config::secret::{self, Secret, SecretBytes};

/// The default endpoint of predictions. Source: docs/facts/decision-engine.md F.
const DEFAULT_CMAB_ENDPOINT: &str = "https://prediction.cmab.optimizely.com/predict/%s";

/// Minimum length of a key of tokens. Source: RFC 7518 3.2, the size of the hash.
const MIN_TOKEN_KEY_BYTES: usize = 32;
const TOKEN_KEY_CURE: &str = "write 32 random bytes in base64";

/// Checks the section, if there is one.
pub(super) fn check(rules: &mut Rules<'_>, file: &File) -> Option<checked::DecisionsConfig> {
    let decisions = file.decisions.as_ref()?;
    check_projects(rules, decisions);
    check_clients(rules, decisions);
    let token_keys = find_token_keys(rules, decisions);
    check_redis(rules, decisions, &file.shared.redis);
    for (index, webhook) in decisions.webhooks.iter().enumerate() {
        let key = format!("decisions.webhooks[{index}].secret");
        check_optional(
            rules,
            &key,
            webhook.secret.as_ref(),
            "its announcements are refused",
        );
    }
    let webhooks = decisions
        .webhooks
        .iter()
        .map(|webhook| to_webhook(webhook, rules.env));
    let webhooks = webhooks.collect();
    Some(checked::DecisionsConfig {
        webhooks,
        ..to_checked(decisions, token_keys)
    })
}

fn to_webhook(raw: &Webhook, env: &BTreeMap<String, String>) -> checked::Webhook {
    let secret = raw.secret.as_ref();
    checked::Webhook {
        project_id: match &raw.project_id {
            ProjectId::Number(number) => number.to_string().into(),
            ProjectId::Text(text) => text.as_str().into(),
        },
        secret: secret.and_then(|reference| secret::find_text(reference, env).ok()),
        sdk_keys: raw.sdk_keys.clone(),
    }
}

fn to_checked(
    decisions: &DecisionsConfig,
    token_keys: Vec<SecretBytes>,
) -> checked::DecisionsConfig {
    let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let headers = decisions.sdk_key_headers.iter();
    checked::DecisionsConfig {
        sdk_key_headers: headers
            .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
            .collect(),
        protocol: match decisions.compat {
            Compat::Document => &Document,
            Compat::Agent => &Agent,
        },
        projects: decisions.projects.iter().map(to_project).collect(),
        datafile_url: Some(decisions.datafile_url.clone()).filter(|url| !url.is_empty()),
        unknown_key_ttl: Duration::from_secs(decisions.unknown_key_ttl_s),
        poll_interval: Duration::from_secs(decisions.poll_interval_s),
        datafile_max_bytes: decisions.datafile_max_bytes,
        event_url: Some(decisions.event_url.clone()).filter(|url| !url.is_empty()),
        event_batch: count(decisions.event_batch),
        event_flush: Duration::from_secs(decisions.event_flush_interval_s),
        event_queue: count(decisions.event_queue),
        batch_max_operations: count(decisions.batch_max_operations),
        batch_concurrency: count(decisions.batch_concurrency),
        overrides: decisions.overrides,
        profiles: match decisions.user_profiles {
            UserProfiles::None => None,
            UserProfiles::Memory => Some(ProfileStore::Memory),
            UserProfiles::Redis => Some(ProfileStore::Redis),
        },
        profile_ttl: Some(decisions.user_profile_ttl_s)
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs),
        max_profiles: decisions.user_profiles_max,
        agent_redis: Some(decisions.agent_redis.as_str())
            .filter(|url| !url.is_empty() && decisions.compat == Compat::Agent)
            .map(Secret::new),
        notifications: decisions.notifications,
        event_streams: decisions.event_streams,
        jwks_url: Some(decisions.jwks_url.clone()).filter(|url| !url.is_empty()),
        odp_host: Some(decisions.odp.host.clone()).filter(|host| !host.is_empty()),
        odp_hosts: decisions.odp.hosts.clone(),
        own_odp_hosts: decisions.odp.written_hosts().cloned().collect(),
        shares_segments: decisions.odp.segments_cache == SegmentsCache::Redis,
        is_cmab_written: !decisions.cmab.endpoint.is_empty(),
        cmab_endpoint: match decisions.cmab.endpoint.as_str() {
            "" => DEFAULT_CMAB_ENDPOINT.to_owned(),
            endpoint => endpoint.to_owned(),
        },
        token_ttl_s: decisions.token_ttl_s,
        claim_rules: ClaimRules {
            issuer: set_text(&decisions.token_issuer),
            audience: set_text(&decisions.token_audience),
        },
        token_keys,
        clients: decisions.clients.iter().map(to_client).collect(),
        webhooks: Vec::new(),
    }
}

fn to_project(project: &ProjectConfig) -> (Box<str>, Datafile) {
    let datafile = match project.datafile.as_str() {
        "sandbox" => Datafile::Sandbox,
        path => Datafile::File(path.into()),
    };
    (project.sdk_key.as_str().into(), datafile)
}

fn set_text(text: &str) -> Option<Box<str>> {
    (!text.is_empty()).then(|| text.into())
}

fn to_client(raw: &Client) -> checked::Client {
    checked::Client {
        id: raw.id.as_str().into(),
        secret_hash: raw.secret_hash.as_str().into(),
        sdk_keys: raw.sdk_keys.clone(),
    }
}

fn check_projects(rules: &mut Rules<'_>, decisions: &DecisionsConfig) {
    let mut seen = BTreeSet::new();
    for (index, project) in decisions.projects.iter().enumerate() {
        let key = format!("decisions.projects[{index}]");
        if !seen.insert(&project.sdk_key) {
            let message = format!("a second project has the SDK key {:?}", project.sdk_key);
            rules.refuse(&format!("{key}.sdk_key"), message, "take one of them out");
        }
        if project.datafile != "sandbox"
            && let Err(error) = std::fs::File::open(&project.datafile)
        {
            let (message, cure) = match error.kind() {
                ErrorKind::NotFound => (
                    format!("the file {:?} does not exist", project.datafile),
                    "correct the path",
                ),
                _ => (
                    format!("the file {:?} cannot be read: {error}", project.datafile),
                    super::cure_of_unreadable(&error),
                ),
            };
            rules.warn(&format!("{key}.datafile"), message, cure);
        }
    }
}

fn check_clients(rules: &mut Rules<'_>, decisions: &DecisionsConfig) {
    let mut seen = BTreeSet::new();
    for (index, client) in decisions.clients.iter().enumerate() {
        let key = format!("decisions.clients[{index}]");
        if !seen.insert(&client.id) {
            let message = format!("a second client has the id {:?}", client.id);
            rules.refuse(&format!("{key}.id"), message, "take one of them out");
        }
        if !is_hash(client) {
            let message = "does not look like a hash, so nobody could sign in with it";
            let cure = "write what `weirgate decisions client-secret` prints";
            rules.warn(&format!("{key}.secret_hash"), message, cure);
        }
    }
}

/// Returns whether the secret is hashed: an argon2id PHC string, or the base64 of a bcrypt hash, which has 60 bytes.
fn is_hash(client: &Client) -> bool {
    let hash = &client.secret_hash;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    hash.starts_with("$argon2id$") || (hash.len() == 80 && hash.bytes().all(is_base64))
}

/// Decodes the keys. A key that is not base64 or too short is refused.
fn find_token_keys(rules: &mut Rules<'_>, decisions: &DecisionsConfig) -> Vec<SecretBytes> {
    let mut keys = Vec::new();
    let has_clients = !decisions.clients.is_empty();
    let are_used = has_clients || !decisions.jwks_url.is_empty();
    if has_clients && decisions.token_keys.is_empty() {
        let message = "is missing: clients are configured, and their tokens must be signed";
        let cure = "add token_keys = [{ env = \"NAME\" }]";
        rules.refuse("decisions.token_keys", message, cure);
    }
    for (index, reference) in decisions.token_keys.iter().enumerate() {
        let key = format!("decisions.token_keys[{index}]");
        if !are_used {
            check_optional(rules, &key, Some(reference), "no client needs it");
            continue;
        }
        let Some(found) = rules.find_secret(&key, Some(reference)) else {
            continue;
        };
        match BASE64.decode(found.expose().trim()) {
            Ok(bytes) if bytes.len() >= MIN_TOKEN_KEY_BYTES => keys.push(SecretBytes::new(bytes)),
            Ok(bytes) => {
                let message = format!(
                    "has only {} bytes, and whoever guesses it makes tokens",
                    bytes.len()
                );
                rules.refuse(&key, message, TOKEN_KEY_CURE);
            }
            Err(_) => rules.refuse(&key, "is no base64", TOKEN_KEY_CURE),
        }
    }
    keys
}

/// Checks that a Redis is configured if something is stored in Redis.
///
/// In agent mode users choose keys, as with the original agent. So these keys get their own database, in which no
/// user can choose a key of ours.
fn check_redis(rules: &mut Rules<'_>, decisions: &DecisionsConfig, shared: &str) {
    const AGENT: &str = "decisions.agent_redis";
    super::shared::warn_of_password(rules, AGENT, &decisions.agent_redis);
    let (url, needed) = match decisions.compat {
        Compat::Document => (shared, "shared.redis"),
        Compat::Agent => (decisions.agent_redis.as_str(), AGENT),
    };
    if decisions.compat == Compat::Document && !decisions.agent_redis.is_empty() {
        let message = "is used in agent mode only";
        rules.warn(AGENT, message, "take it out, or set compat = \"agent\"");
    }
    if decisions.compat == Compat::Agent && super::shared::is_same_database(url, shared) {
        let message = "is the database of shared.redis: user ids are keys there, and could name those of limits";
        let cure = "give it another number, such as redis://host:6379/1, or another server";
        rules.refuse(AGENT, message, cure);
    }
    let is_in_redis = [
        (
            "decisions.user_profiles",
            decisions.user_profiles == UserProfiles::Redis,
        ),
        (
            "decisions.odp.segments_cache",
            decisions.odp.segments_cache == SegmentsCache::Redis,
        ),
    ];
    for (key, _) in is_in_redis.iter().filter(|(_, is_in_redis)| *is_in_redis) {
        if url.is_empty() {
            let message = format!("needs {needed}, which is empty");
            rules.refuse(key, message, format!("set {needed}, or use \"memory\""));
        }
    }
}

/// Warns if a secret is missing that the process can run without; `without` says what happens then.
pub(super) fn check_optional(
    rules: &mut Rules<'_>,
    key: &str,
    reference: Option<&SecretRef>,
    without: &str,
) {
    let Some(reference) = reference else { return };
    if rules.refuse_literal(key, reference) {
        return;
    }
    if let Err(absent) = secret::find_text(reference, rules.env) {
        rules.warn(
            key,
            format!("{absent}: {without}"),
            "provide it, or take the key out",
        );
    }
}
