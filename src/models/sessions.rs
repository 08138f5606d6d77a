//! Sessions and their last provider, in this process and, if processes share one, in Redis.
//!
//! Redis key: `weirgate:session:` and the session's key in hex. Value: a proof of 32 bytes that a process with our
//! secret wrote it for this session, the cached tokens as eight bytes, then provider, upstream model and model,
//! separated by zero bytes. A value with a wrong proof, or with names outside our catalogue, is ignored.

use std::sync::Arc;
use std::time::Duration;

use filters::accounts::holds_api_key;
use filters::ledger::SessionNames;
use filters::models::request::ModelRequest;
use filters::models::routing::affinity::{
    Binding, SessionAffinity, SessionKey, SessionKeys, session_scope,
};
use filters::models::routing::catalog::Catalog;
use filters::models::routing::resolve::AUTO;
use http::{HeaderMap, HeaderName};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::oneshot;

use super::deployment::Deployment;
use crate::redis::Redis;
use crate::shared_wait;

/// The headers that name a session; the first one counts. Source: docs/facts/model-gateway.md 3.8.
const SESSION_HEADERS: [HeaderName; 7] = [
    HeaderName::from_static("x-session-id"),
    HeaderName::from_static("x-session-affinity"),
    HeaderName::from_static("session_id"),
    HeaderName::from_static("session-id"),
    HeaderName::from_static("x-claude-code-session-id"),
    THREAD,
    MCP_SESSION,
];
/// The headers in which Codex names the thread that asks, and the thread that has started that one. The first thread of a session has
/// the session's id.
const THREAD: HeaderName = HeaderName::from_static("thread-id");
const PARENT_THREAD: HeaderName = HeaderName::from_static("x-codex-parent-thread-id");
/// The headers in which Claude Code names the agent of a session that asks, and the agent that has asked that one.
const AGENT: HeaderName = HeaderName::from_static("x-claude-code-agent-id");
const PARENT_AGENT: HeaderName = HeaderName::from_static("x-claude-code-parent-agent-id");
/// The header in which other clients name their agent.
const OTHER_AGENT: HeaderName = HeaderName::from_static("x-agent-id");
/// The header of the session of an MCP client, for calls of models that its tools make.
const MCP_SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The most bytes of an id in the log line and in the usage. Longer ones are named by their hash.
const MAX_ID_BYTES: usize = 128;
/// How long a request of an unknown session, and the end of its response, wait for Redis. The time is short, because
/// calls can be planned without a session.
const REDIS_TIMEOUT: Duration = Duration::from_millis(20);
/// The maximum bytes of a value, which has three names.
const MAX_VALUE_BYTES: usize = 2048;
const PROOF_BYTES: usize = 32;

/// The purpose of the secret for keys and proofs. Processes with other secrets do not find each other's sessions.
pub const SECRET_PURPOSE: &str = "sessions of models, version 1";

/// The bindings of sessions.
pub struct Sessions {
    keys: SessionKeys,
    affinity: SessionAffinity,
    redis: Option<Redis>,
    ttl: Duration,
}

/// The session of a request.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    pub key: SessionKey,
    pub binding: Option<Binding>,
}

/// Returns the session with this id, and the agents that headers name, for the log line, the usage and the budgets; `None`: neither
/// a session nor an agent.
///
/// Cost without any: no allocation.
pub fn session_names(headers: &HeaderMap, session: Option<&[u8]>) -> Option<Arc<SessionNames>> {
    let session = session.and_then(session_name);
    let named = |name| {
        headers
            .get(name)
            .and_then(|value| session_name(value.as_bytes()))
    };
    let (agent, parent) = match named(AGENT).or_else(|| named(OTHER_AGENT)) {
        Some(agent) => (Some(agent), named(PARENT_AGENT)),
        None => {
            // The first thread of a session is no agent.
            let other = |name| named(name).filter(|thread| Some(thread) != session.as_ref());
            let thread = other(THREAD);
            let parent = thread.is_some().then(|| other(PARENT_THREAD)).flatten();
            (thread, parent)
        }
    };
    (session.is_some() || agent.is_some()).then(|| {
        Arc::new(SessionNames {
            session: session.unwrap_or_default(),
            agent: agent.unwrap_or_default(),
            parent: parent.unwrap_or_default(),
        })
    })
}

/// Returns an id of a client as it is named; `None`: it is empty. One that is long, no printable ASCII, or has an API key, is named by
/// its hash.
pub fn session_name(id: &[u8]) -> Option<Box<str>> {
    if id.is_empty() {
        return None;
    }
    let is_name = id.len() <= MAX_ID_BYTES
        && id.iter().all(|byte| (b' '..=b'~').contains(byte))
        && id.trim_ascii().len() == id.len()
        && !holds_api_key(id);
    let text = std::str::from_utf8(id).ok().filter(|_| is_name);
    Some(text.map_or_else(|| hash_name(id), Box::from))
}

fn hash_name(id: &[u8]) -> Box<str> {
    let digest: [u8; 32] = Sha256::digest(id).into();
    let (half, _) = digest.split_at(16);
    let digits: String = half.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}").into()
}

/// Returns the id of a request's session, from its headers or else from its body.
pub fn session_id<'r>(headers: &'r HeaderMap, request: &'r ModelRequest) -> Option<&'r [u8]> {
    let of_body = || request.session.as_deref().map(str::as_bytes);
    session_of_head(headers).or_else(of_body)
}

/// Returns the id of the session that the headers name.
pub fn session_of_head(headers: &HeaderMap) -> Option<&[u8]> {
    let mut named = SESSION_HEADERS
        .into_iter()
        .filter_map(|name| headers.get(name));
    let id = named.find(|id| !id.is_empty())?;
    Some(id.as_bytes())
}

impl Sessions {
    /// Creates the table, or goes on with the bindings of a previous one. Sessions are forgotten this long after their last
    /// response.
    pub fn new(
        secret: &[u8; 32],
        ttl: Duration,
        redis: Option<&Redis>,
        previous: Option<&Self>,
    ) -> Self {
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        Self {
            keys: SessionKeys::new(secret),
            affinity: match previous {
                Some(previous) => previous.affinity.with_ttl(ttl_ms),
                None => SessionAffinity::new(ttl_ms),
            },
            redis: redis.cloned(),
            ttl,
        }
    }

    /// Returns the bindings as bytes, for another process with the same secret.
    pub(super) fn to_bytes(&self, now_ms: u64) -> Vec<u8> {
        self.affinity.to_bytes(now_ms)
    }

    /// Takes in bindings of another process. Returns how many.
    pub(super) fn take_in(&self, bytes: &[u8], now_ms: u64) -> usize {
        self.affinity.take_in(bytes, now_ms)
    }

    /// Finds the session of an organization with this id.
    ///
    /// Only unknown sessions are looked up in Redis, for at most 20 ms, and only if there are several providers to
    /// choose from. Cost: a hash, and one look-up in memory.
    pub async fn find(
        &self,
        organization: &str,
        model: &str,
        id: &[u8],
        (catalog, now_ms): (&Catalog, u64),
    ) -> Session {
        let scope = session_scope(model, catalog);
        let key = self.keys.key(organization, &scope, id);
        let binding = match (self.affinity.find(key, now_ms), &self.redis) {
            (None, Some(redis)) if has_choice(&scope, catalog) => {
                self.find_shared(redis, key, catalog, now_ms).await
            }
            (binding, _) => binding,
        };
        Session { key, binding }
    }

    async fn find_shared(
        &self,
        redis: &Redis,
        key: SessionKey,
        catalog: &Catalog,
        now_ms: u64,
    ) -> Option<Binding> {
        let name = name(key);
        let value = redis.get_start(&name, MAX_VALUE_BYTES, REDIS_TIMEOUT).await;
        let binding = read(&self.keys, key, &value.ok()?, catalog)?;
        self.affinity.bind(key, binding, now_ms);
        Some(binding)
    }

    /// Binds a session to the deployment that responds, before the client has the end of the response.
    pub fn hold(&self, key: SessionKey, deployment: &Deployment, now_ms: u64) {
        if let Some(mapping) = mapping_to_bind(deployment) {
            self.affinity.hold(key, mapping, now_ms);
        }
    }

    /// Binds a session to the deployment that has responded. In the background, other processes are told of a change.
    /// The returned value waits for that.
    pub fn bind(
        &self,
        key: SessionKey,
        deployment: &Deployment,
        cached_tokens: u64,
        now_ms: u64,
    ) -> Option<PendingBinding> {
        let binding = Binding {
            mapping: mapping_to_bind(deployment)?,
            cached_tokens,
        };
        let is_news = self.affinity.bind(key, binding, now_ms);
        let redis = self.redis.as_ref().filter(|_| is_news)?;
        let mapping = &deployment.mapping;
        let names = [&mapping.provider, &mapping.name, &deployment.model.id];
        let value = write(&self.keys, key, names.map(|name| &**name), cached_tokens);
        let (link, ttl) = (redis.clone(), self.ttl);
        let (ended, telling) = oneshot::channel();
        redis.spawn(async move {
            // If this fails, another process chooses anew.
            _ = link.set(&name(key), &value, Some(ttl)).await;
            _ = ended.send(());
        });
        Some(PendingBinding(telling))
    }
}

/// The binding of a session is being sent to other processes.
pub struct PendingBinding(oneshot::Receiver<()>);

impl PendingBinding {
    /// Waits until they can know the binding: at most 20 ms, and not longer than the request may still wait for
    /// Redis. `waited` is the time that it has already waited.
    pub async fn end(self, waited: Duration) {
        let left = shared_wait::BUDGET.saturating_sub(waited);
        _ = tokio::time::timeout(left.min(REDIS_TIMEOUT), self.0).await;
    }
}

/// Returns the id of the mapping to bind, or `None` outside the catalogue, where there is no choice.
fn mapping_to_bind(deployment: &Deployment) -> Option<u64> {
    let mapping = &deployment.mapping;
    (mapping.index != usize::MAX).then_some(mapping.id)
}

/// Returns whether a model has several mappings. A pinned provider leaves no choice.
fn has_choice(scope: &str, catalog: &Catalog) -> bool {
    scope == AUTO || catalog.find(scope).is_some_and(|it| it.mappings.len() > 1)
}

fn name(key: SessionKey) -> Vec<u8> {
    let number = u128::from_be_bytes(key.0);
    format!("weirgate:session:{number:032x}").into_bytes()
}

fn write(keys: &SessionKeys, key: SessionKey, names: [&str; 3], cached_tokens: u64) -> Vec<u8> {
    let mut text = cached_tokens.to_le_bytes().to_vec();
    text.extend_from_slice(names.join("\0").as_bytes());
    let mut value = keys.prove(key, &text).to_vec();
    value.append(&mut text);
    value
}

fn read(keys: &SessionKeys, key: SessionKey, value: &[u8], catalog: &Catalog) -> Option<Binding> {
    let (proof, text) = value.split_first_chunk::<PROOF_BYTES>()?;
    if !bool::from(keys.prove(key, text).ct_eq(proof)) {
        return None;
    }
    let (cached_tokens, names) = text.split_first_chunk()?;
    let mut names = std::str::from_utf8(names).ok()?.split('\0');
    let (provider, upstream) = (names.next()?, names.next()?);
    let model = catalog.find(names.next()?)?;
    let mut mappings = model.mappings.iter();
    let mapping = mappings.find(|it| &*it.provider == provider && &*it.name == upstream)?;
    Some(Binding {
        mapping: mapping.id,
        cached_tokens: u64::from_le_bytes(*cached_tokens),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use filters::models::front::Front;
    use filters::models::fronts::chat_completions::ChatCompletions;
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    fn catalog() -> Catalog {
        let mapping =
            |provider: &str| json!({"provider": provider, "name": format!("{provider}-up")});
        let file = json!({"models": [
            {"id": "m", "aliases": ["nick"], "providers": [mapping("a"), mapping("b")]},
            {"id": "alone", "providers": [mapping("a")]}]});
        let names = ["a", "b"].into_iter().collect();
        Catalog::check(serde_json::from_value(file).unwrap(), names).unwrap()
    }

    #[test]
    fn an_alias_is_the_same_session_and_a_pinned_provider_another() {
        let catalog = catalog();
        let scope = |model| session_scope(model, &catalog).into_owned();
        for (model, expected) in [
            ("m", "m"),
            ("nick", "m"),
            ("a/m", "a/m"),
            ("a/nick", "a/m"),
            ("b/m", "b/m"),
            ("a/m:eu", "a/m:eu"),
            ("auto", "auto"),
            ("unknown", "unknown"),
        ] {
            assert_eq!(scope(model), expected);
        }
        let choices = ["m", "auto", "alone", "a/m", "unknown"].map(|it| has_choice(it, &catalog));
        assert_eq!(choices, [true, true, false, false, false]);
    }

    #[test]
    fn a_shared_session_is_read_as_it_was_written_and_nothing_else_is() {
        let (catalog, keys) = (catalog(), SessionKeys::new(&[1; 32]));
        let own = SessionKey([7; 16]);
        let value = write(&keys, own, ["b", "b-up", "m"], 900);
        let binding = read(&keys, own, &value, &catalog).unwrap();
        let second = catalog.candidates()[1].mapping.id;
        assert_eq!((binding.mapping, binding.cached_tokens), (second, 900));
        assert_eq!(read(&keys, SessionKey([8; 16]), &value, &catalog), None);
        let others = SessionKeys::new(&[2; 32]);
        assert_eq!(read(&others, own, &value, &catalog), None);
        for index in 0..value.len() {
            let mut changed = value.clone();
            changed[index] ^= 1;
            assert_eq!(read(&keys, own, &changed, &catalog), None, "{index}");
            assert_eq!(read(&keys, own, &value[..index], &catalog), None);
        }
        for names in [["c", "b-up", "m"], ["b", "x", "m"], ["b", "b-up", "x"]] {
            let value = write(&keys, own, names, 0);
            assert_eq!(read(&keys, own, &value, &catalog), None, "{names:?}");
        }
        assert_eq!(read(&keys, own, b"garbage", &catalog), None);
        assert_eq!(
            name(own),
            format!("weirgate:session:{}", "07".repeat(16)).as_bytes()
        );
    }

    #[test]
    fn a_session_and_its_agents_have_their_ids_and_others_are_named_by_their_hash() {
        let names = |pairs: &[(&'static str, &[u8])]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, HeaderValue::from_bytes(value).unwrap());
            }
            let names = session_names(&headers, session_of_head(&headers))?;
            Some([&names.session, &names.agent, &names.parent].map(ToString::to_string))
        };
        let (session, agent) = ("x-claude-code-session-id", "x-claude-code-agent-id");
        let parent = "x-claude-code-parent-agent-id";
        let of = |names: [&str; 3]| Some(names.map(str::to_owned));
        let all = names(&[(session, b"s"), (agent, b"a"), (parent, b"p")]);
        assert_eq!(all, of(["s", "a", "p"]));
        let other = names(&[("session_id", b"t"), (session, b"s")]);
        assert_eq!(other, of(["t", "", ""]));
        assert_eq!(names(&[(agent, b"a")]), of(["", "a", ""]));
        assert_eq!(names(&[(parent, b"p")]), None);
        let (own, thread) = ("session-id", "thread-id");
        let started = "x-codex-parent-thread-id";
        assert_eq!(names(&[(own, b"s"), (thread, b"s")]), of(["s", "", ""]));
        assert_eq!(names(&[(thread, b"s")]), of(["s", "", ""]));
        let first = names(&[(own, b"s"), (thread, b"t"), (started, b"s")]);
        assert_eq!(first, of(["s", "t", ""]));
        let second = names(&[(own, b"s"), (thread, b"u"), (started, b"t")]);
        assert_eq!(second, of(["s", "u", "t"]));
        let longest = [b'x'; MAX_ID_BYTES];
        let long = [b'x'; MAX_ID_BYTES + 1];
        assert_eq!(
            names(&[(session, &longest)]).unwrap()[0].len(),
            MAX_ID_BYTES
        );
        let key = format!("wg_{}", "B".repeat(43));
        let hostile: [&[u8]; 5] = [
            &long,
            b"\xff",
            "s\u{e9}".as_bytes(),
            b"a\tb",
            key.as_bytes(),
        ];
        for id in hostile {
            let [session, agent, parent] =
                names(&[(session, id), (agent, id), (parent, id)]).unwrap();
            assert!(
                session.starts_with("sha256:") && session.len() == 39,
                "{session}"
            );
            assert_eq!((&agent, &parent), (&session, &session));
        }
        assert_eq!(names(&[(session, b"")]), None);
        let other = names(&[(session, b"s"), ("x-agent-id", b"b"), (parent, b"p")]);
        assert_eq!(other, of(["s", "b", "p"]));
        let both = names(&[(session, b"s"), ("x-agent-id", b"b"), (agent, b"a")]);
        assert_eq!(both, of(["s", "a", ""]));
        assert_eq!(names(&[("mcp-session-id", b"m")]), of(["m", "", ""]));
    }

    #[test]
    fn the_first_id_that_says_something_names_the_session() {
        let ids = [
            "x-session-id",
            "x-session-affinity",
            "session_id",
            "session-id",
        ];
        let request = |members: &str| {
            let body = format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":"Hi"}}]{members}}}"#
            );
            ChatCompletions.parse(body.into()).unwrap()
        };
        let both = request(r#","prompt_cache_key":"k","user":"u""#);
        let mut headers = HeaderMap::new();
        assert_eq!(session_id(&headers, &both), Some(&b"k"[..]));
        let user = request(r#","prompt_cache_key":"","user":"u""#);
        assert_eq!(session_id(&headers, &user), Some(&b"u"[..]));
        assert_eq!(session_id(&headers, &request("")), None);
        for id in ids.iter().rev() {
            headers.insert(*id, id.parse().unwrap());
            assert_eq!(session_id(&headers, &both), Some(id.as_bytes()));
        }
        headers.insert(ids[0], "".parse().unwrap());
        assert_eq!(session_id(&headers, &both), Some(ids[1].as_bytes()));
    }
}
