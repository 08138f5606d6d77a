//! The key of a cached reply: what has to be equal for two requests to share one.
//!
//! Of a request's head those headers are in it that reach a provider, but for `traceparent`
//! (`tests/gateway/models/fronts/chat_completions.rs: nothing_of_the_clients_head_reaches_the_provider`).

use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::canonical::{write_framed, write_value};
use crate::accounts::Mode;
use crate::json::Walker;
use crate::models::dialects::chat::UNCOUNTED;
use crate::models::request::ModelRequest;
use crate::models::routing::resolve::Candidate;

/// The key of a cached reply, uniform bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ReplyKey(pub [u8; 32]);

/// Whose request it is, and who may answer it.
#[derive(Clone, Copy, Debug)]
pub struct KeyScope<'a> {
    pub organization_id: &'a str,
    pub project_id: &'a str,
    /// Whose credentials serve it.
    pub mode: Mode,
    /// The [`digest_candidates`] of those that the caller may use.
    pub candidates: [u8; 32],
}

/// Makes keys: HMAC-SHA256 under a secret of the server, equal in all processes that share the secret.
///
/// Two tenants never have one key: their ids are in the message, each with its length, and no two messages with one
/// hash are known to anybody. Whoever does not know the secret cannot even try to find some.
#[derive(Clone)]
pub struct ReplyKeys(Hmac<Sha256>);

impl ReplyKeys {
    /// Prepares the secret.
    pub fn new(secret: &[u8; 32]) -> Option<Self> {
        Hmac::new_from_slice(secret).ok().map(Self)
    }

    /// Returns the key of a request; `None`: its body is not a JSON object, which a checked body is.
    ///
    /// Cost: one pass over the body, and one hash of it. What is not in memory of it was hashed when it came.
    pub fn key(&self, scope: &KeyScope<'_>, request: &ModelRequest) -> Option<ReplyKey> {
        let mut message = Vec::with_capacity(2048);
        let words = [
            scope.organization_id,
            scope.project_id,
            scope.mode.as_str(),
            request.front.row().name,
        ];
        for word in words {
            write_framed(b's', word.as_bytes(), &mut message);
        }
        message.extend_from_slice(&scope.candidates);
        for (name, value) in &request.own_headers {
            write_framed(b'h', name.as_str().as_bytes(), &mut message);
            write_framed(b'h', value.as_bytes(), &mut message);
        }
        let source = &request.source;
        let is_counted = |key: &str| !UNCOUNTED.contains(&key);
        let members = source.members.iter();
        let mut members: Vec<_> = members.filter(|member| is_counted(&member.key)).collect();
        members.sort_by(|one, other| one.key.cmp(&other.key));
        for member in members {
            write_framed(b'k', member.key.as_bytes(), &mut message);
            let mut walk = Walker::new(source.value(member)).ok()?;
            write_value(&mut walk, &mut message).ok()?;
        }
        for data in &source.spooled {
            let place = (data.at as u64).to_le_bytes();
            write_framed(b'd', &place, &mut message);
            write_framed(b'd', &data.digest, &mut message);
        }
        let mut mac = self.0.clone();
        mac.update(&message);
        Some(ReplyKey(mac.finalize().into_bytes().into()))
    }
}

/// Returns the digest of the candidates that may serve a request, in the catalogue's order.
///
/// So an alias shares replies with its model, a pinned provider or region does not share with others, and a key whose
/// rules forbid a provider never gets a reply of that provider.
pub fn digest_candidates(candidates: &[Arc<Candidate>]) -> [u8; 32] {
    let mut names = Vec::with_capacity(64 * candidates.len());
    for candidate in candidates {
        let mapping = &candidate.mapping;
        let region = candidate.region.as_deref();
        for name in [&candidate.model.id, &mapping.provider, &mapping.name] {
            write_framed(b's', name.as_bytes(), &mut names);
        }
        names.push(u8::from(region.is_some()));
        write_framed(b's', region.unwrap_or_default().as_bytes(), &mut names);
    }
    Sha256::digest(&names).into()
}
