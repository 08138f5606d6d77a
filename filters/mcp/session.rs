//! The ids of sessions. An id contains all facts about its session and a proof of its maker. So processes keep no
//! table of sessions, and each process of a store knows the sessions of all others.
//!
//! An id is base64 (URL alphabet, no padding) of a version, the revision, the end of the session in unix seconds (8
//! bytes), 16 random bytes, and an HMAC-SHA256 of all these and the API key's id. The API key's id is not part of it.
//! Source: docs/decisions.md 62.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use serde_json::Value;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::message::{INVALID_REQUEST, REFUSED, RpcError};
use super::revision::Revision;

/// The header of the id.
pub const SESSION_HEADER: &str = "mcp-session-id";
/// The purpose for which the secret is derived. All processes use the same one, so they know each other's sessions.
pub const SECRET_PURPOSE: &str = "sessions of MCP, version 1";

const VERSION: u8 = 1;
const NONCE_BYTES: usize = 16;
/// Version, revision, end and nonce.
const CLAIM_BYTES: usize = 2 + 8 + NONCE_BYTES;
const PROOF_BYTES: usize = 32;
/// The most ended sessions that are remembered: 4 MB.
const MAX_ENDED: usize = 1 << 16;

/// A session.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Session {
    /// The end of the session, in unix seconds.
    pub ends_s: u64,
    pub nonce: [u8; NONCE_BYTES],
    /// The revision on which its `initialize` agreed.
    pub revision: Revision,
}

/// Makes and reads ids.
pub struct SessionIds(Hmac<Sha256>);

impl SessionIds {
    /// Returns the maker of ids for a secret. `None` never happens, because a key may have any length.
    pub fn new(secret: &[u8; 32]) -> Option<Self> {
        Hmac::new_from_slice(secret).ok().map(Self)
    }

    /// Returns the id of a session of this API key.
    pub fn write(&self, session: &Session, key_id: &str) -> String {
        let mut id = Vec::with_capacity(CLAIM_BYTES + PROOF_BYTES);
        id.extend([VERSION, to_number(session.revision)]);
        id.extend(session.ends_s.to_be_bytes());
        id.extend(session.nonce);
        id.extend(self.proof(&id, key_id));
        URL_SAFE_NO_PAD.encode(id)
    }

    /// Returns the session of an id, or `None` if the id belongs to another API key or secret, or the session has
    /// ended.
    pub fn read(&self, id: &[u8], key_id: &str, now_s: u64) -> Option<Session> {
        let id = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (claim, proof) = id.split_at_checked(CLAIM_BYTES)?;
        let is_ours: bool = self.proof(claim, key_id).ct_eq(proof).into();
        let ([VERSION, number], claim) = claim.split_first_chunk::<2>()? else {
            return None;
        };
        let (ends_s, nonce) = claim.split_first_chunk::<8>()?;
        let session = Session {
            ends_s: u64::from_be_bytes(*ends_s),
            nonce: nonce.try_into().ok()?,
            revision: from_number(*number)?,
        };
        (is_ours && now_s < session.ends_s).then_some(session)
    }

    fn proof(&self, claim: &[u8], key_id: &str) -> [u8; PROOF_BYTES] {
        let mut mac = self.0.clone();
        // The claim has a fixed length, so no other pair of claim and key id gives the same bytes.
        mac.update(claim);
        mac.update(key_id.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

fn to_number(revision: Revision) -> u8 {
    match revision {
        Revision::June2025 => 1,
        Revision::November2025 => 2,
        Revision::July2026 => 3,
    }
}

fn from_number(number: u8) -> Option<Revision> {
    let mut all = Revision::ALL.into_iter();
    all.find(|revision| to_number(*revision) == number)
}

/// Returns the id that the headers name.
///
/// Errors: 400 for more than one.
pub fn session_id(headers: &HeaderMap) -> Result<Option<&[u8]>, RpcError> {
    let mut ids = headers.get_all(SESSION_HEADER).iter();
    let id = ids.next();
    if ids.next().is_some() {
        let message = "`Mcp-Session-Id` came more than once; one is accepted";
        return Err(RpcError::new(INVALID_REQUEST, 400, message));
    }
    Ok(id.map(http::HeaderValue::as_bytes))
}

/// Returns the error of an id without a session: a 404, after which clients begin a new session.
pub fn no_session(id: Option<&Value>) -> RpcError {
    let message = "there is no such session of this API key, or it has ended: begin one with `initialize`, without `Mcp-Session-Id`";
    let error = RpcError::new(REFUSED, 404, message);
    match id {
        Some(id) => error.with_id(id),
        None => error,
    }
}

/// The sessions that were ended early. When the table is full it forgets those that end first, which are then valid
/// again.
#[derive(Debug, Default)]
pub struct EndedSessions(BTreeSet<Session>);

impl EndedSessions {
    /// Remembers a session as ended, until its own end.
    pub fn insert(&mut self, session: Session, now_s: u64) {
        while let Some(first) = self.0.first()
            && (first.ends_s <= now_s || self.0.len() >= MAX_ENDED)
        {
            self.0.pop_first();
        }
        self.0.insert(session);
    }

    /// Returns whether a session was ended.
    pub fn contains(&self, session: &Session) -> bool {
        self.0.contains(session)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn ids() -> SessionIds {
        SessionIds::new(&[7; 32]).unwrap()
    }

    fn session(ends_s: u64, number: u64) -> Session {
        let mut nonce = [0; NONCE_BYTES];
        nonce[..8].copy_from_slice(&number.to_be_bytes());
        Session {
            ends_s,
            nonce,
            revision: Revision::June2025,
        }
    }

    #[test]
    fn an_id_is_of_its_key_its_secret_and_its_time() {
        let session = session(100, 1);
        let id = ids().write(&session, "key_1");
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
        let read = |ids: SessionIds, key, now_s| ids.read(id.as_bytes(), key, now_s);
        assert_eq!(read(ids(), "key_1", 99), Some(session));
        assert_eq!(read(ids(), "key_1", 100), None);
        assert_eq!(read(ids(), "key_2", 99), None);
        let other = SessionIds::new(&[8; 32]).unwrap();
        assert_eq!(read(other, "key_1", 99), None);
    }

    #[test]
    fn ended_sessions_are_remembered_up_to_a_bound() {
        let mut ended = EndedSessions::default();
        let count = u64::try_from(MAX_ENDED).unwrap();
        for number in 0..=count {
            ended.insert(session(100 + number, number), 0);
        }
        assert!(!ended.contains(&session(100, 0)));
        assert!(ended.contains(&session(101, 1)) && ended.contains(&session(100 + count, count)));
        // Those that have ended by themselves take no memory.
        ended.insert(session(u64::MAX, 0), 100 + count);
        assert_eq!(ended.0.len(), 1);
    }
}
