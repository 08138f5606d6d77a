//! What models know of their providers and sessions, as it passes to the process that takes the place of this one.

use std::collections::HashMap;

use filters::models::reply_cache::key::digest_candidates;
use filters::models::routing::health::{Measurements, PeerState};

use super::Models;

/// The bytes of a candidate's id: of the SHA-256 of model, provider, upstream model and region.
const ID_BYTES: usize = 16;

impl Models {
    /// Returns the measurements of all candidates, as bytes. Shape: for each candidate its id, the length of its measurements
    /// (u16, little-endian), and these as processes tell each other.
    pub fn health_to_bytes(&self) -> Vec<u8> {
        let (health, now_ms) = (self.planner.health(), self.clock.now_ms());
        let mut out = Vec::new();
        for (candidate, id) in self.candidate_ids().into_iter().enumerate() {
            health.mark_changed(candidate);
            let measured = health.changed(candidate, now_ms);
            let Some(measured) = measured.filter(|measured| !measured.is_empty()) else {
                continue;
            };
            // Other processes that share measurements are told of it once more.
            health.mark_changed(candidate);
            let bytes = measured.to_bytes();
            out.extend(id);
            out.extend(u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes());
            out.extend(bytes);
        }
        out
    }

    /// Takes in what another process has measured. Returns how many candidates were known.
    pub fn take_in_health(&self, mut bytes: &[u8]) -> usize {
        let (health, now_ms) = (self.planner.health(), self.clock.now_ms());
        let ids = self.candidate_ids().into_iter().enumerate();
        let candidates: HashMap<_, _> = ids.map(|(candidate, id)| (id, candidate)).collect();
        let process = uuid::Uuid::now_v7().as_u128();
        let mut taken = 0;
        while let Some((id, measured, rest)) = split_first(bytes) {
            bytes = rest;
            let measured = Measurements::from_bytes(measured);
            let (Some(&candidate), Some(measured)) = (candidates.get(&id), measured) else {
                continue;
            };
            let told = PeerState {
                process,
                version: 1,
                at_ms: i64::try_from(now_ms).unwrap_or(i64::MAX),
                measured,
            };
            health.take_in(candidate, told, now_ms);
            taken += 1;
        }
        taken
    }

    /// Returns the bindings of sessions, as bytes.
    pub fn sessions_to_bytes(&self) -> Vec<u8> {
        self.sessions.to_bytes(self.clock.now_ms())
    }

    /// Takes in bindings of sessions. Returns how many.
    pub fn take_in_sessions(&self, bytes: &[u8]) -> usize {
        self.sessions.take_in(bytes, self.clock.now_ms())
    }

    fn candidate_ids(&self) -> Vec<[u8; ID_BYTES]> {
        let candidates = self.planner.catalog().candidates().iter();
        let digests =
            candidates.map(|candidate| digest_candidates(std::slice::from_ref(candidate)));
        let ids = digests.map(|digest| digest.first_chunk().copied().unwrap_or_default());
        ids.collect()
    }
}

/// Returns the first candidate's id and measurements, and the bytes behind them.
fn split_first(bytes: &[u8]) -> Option<([u8; ID_BYTES], &[u8], &[u8])> {
    let (id, bytes) = bytes.split_first_chunk::<ID_BYTES>()?;
    let (length, bytes) = bytes.split_first_chunk()?;
    let (measured, rest) = bytes.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((*id, measured, rest))
}
