//! Exchanges the measurements of candidates with other processes over Redis, in the background. Requests do not wait
//! for this, and without Redis each process only knows its own measurements.
//!
//! Redis keys: `weirgate:{health}:states`, a hash of states by name, and `weirgate:{health}:changes`, a sorted set of
//! the names by the time of their last change, by the clock of Redis. A name is 16 random bytes of the process's
//! start, and 16 bytes of the SHA-256 of model, provider, upstream model and region. A state is `filters`'
//! `Measurements`. It replaces the previous one, so nothing counts twice if messages are lost, late or repeated.
//! States expire an hour after their last change. There are at most [`MAX_STATES`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use filters::models::reply_cache::key::digest_candidates;
use filters::models::routing::health::{MAX_BYTES, Measurements, PeerState};
use tokio::sync::watch;

use super::Models;
use crate::periodic::Ticks;
use crate::redis::{Redis, Script, ScriptCall, Unavailable};

/// The interval between two exchanges. All processes know a measurement after two of them.
const PERIOD: Duration = Duration::from_millis(800);
/// The maximum number of intervals that an exchange waits after failures.
const MAX_PAUSE: u32 = 32;
/// The time limit for a reply of Redis.
const CALL_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a state counts after its last change.
const STATE_TTL: Duration = Duration::from_secs(3600);
/// The maximum number of states in Redis, of all processes: 20 MB at most.
const MAX_STATES: usize = 20_000;
/// The number of states that one call writes and reads. Longer calls would block the connection, which limits use
/// too.
const PAGE: usize = 200;
/// The maximum number of calls in one exchange.
const MAX_CALLS: usize = 8;
/// How far the clock of Redis may be ahead after it was set back.
const MAX_AHEAD_US: u64 = 60_000_000;

const KEYS: [&str; 2] = ["weirgate:{health}:states", "weirgate:{health}:changes"];

/// The model, provider and region of a state.
type CandidateId = [u8; 16];

/// Exchanges measurements with other processes.
pub struct HealthSharing {
    redis: Redis,
    models: Arc<Models>,
    script: Script,
    ids: Vec<CandidateId>,
    candidates: HashMap<CandidateId, usize>,
    /// The time of the last change that was read, in microseconds of Redis's clock.
    seen: u64,
    /// The time at which the states in Redis began. If it changes, they were lost, and all processes send everything
    /// again.
    began: Option<u64>,
    failures: u32,
}

/// The reply to one call.
#[derive(Debug, Default, Eq, PartialEq)]
struct Page {
    now_us: u64,
    began: u64,
    states: Vec<SharedState>,
}

#[derive(Debug, Eq, PartialEq)]
struct SharedState {
    name: Vec<u8>,
    changed_us: u64,
    bytes: Vec<u8>,
}

impl HealthSharing {
    /// Creates the exchange of the measurements of `models`.
    pub fn new(redis: &Redis, models: &Arc<Models>) -> Self {
        let candidates = models.planner.catalog().candidates();
        let digests = candidates
            .iter()
            .map(|candidate| digest_candidates(std::slice::from_ref(candidate)));
        let ids: Vec<CandidateId> = digests
            .map(|digest| digest.first_chunk().copied().unwrap_or_default())
            .collect();
        let numbered = ids.iter().copied().enumerate();
        Self {
            redis: redis.clone(),
            models: Arc::clone(models),
            script: Script::new(include_str!("share_health.lua")),
            candidates: numbered.map(|(candidate, id)| (id, candidate)).collect(),
            ids,
            seen: 0,
            began: None,
            failures: 0,
        }
    }

    /// Exchanges states until `stop`.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        let mut ticks = Ticks::new(PERIOD, stop);
        let mut pause = 0_u32;
        while ticks.next().await {
            if pause > 0 || self.redis.is_unavailable() {
                pause = pause.saturating_sub(1);
                continue;
            }
            match self.exchange().await {
                Ok(()) if self.failures > 0 => {
                    log::warn!("shared.redis: measurements of providers are shared again");
                    self.failures = 0;
                }
                Ok(()) => {}
                Err(Unavailable) => pause = self.count_failure(),
            }
        }
    }

    /// Returns how many intervals the next exchange waits.
    fn count_failure(&mut self) -> u32 {
        if self.failures == 0 {
            log::warn!("shared.redis: measurements of providers are not shared at the moment");
        }
        self.count("failed", 1);
        let pause = 1_u32.checked_shl(self.failures).unwrap_or(MAX_PAUSE);
        self.failures = self.failures.saturating_add(1);
        pause.min(MAX_PAUSE)
    }

    /// Sends the changes of this process, and reads those of others.
    async fn exchange(&mut self) -> Result<(), Unavailable> {
        for _ in 0..MAX_CALLS {
            let changed = self.changed();
            let page = self.call(&changed).await;
            if page.is_err() {
                // The state may have been written all the same. The next state replaces it.
                let health = self.models.planner.health();
                changed.iter().for_each(|(it, _)| health.mark_changed(*it));
            }
            let page = page?;
            self.count("published", changed.len());
            let is_last = changed.len() < PAGE && page.states.len() < PAGE;
            self.take_in(page);
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// Returns the measurements that changed since they were last sent.
    fn changed(&self) -> Vec<(usize, Measurements)> {
        let (health, now_ms) = (self.models.planner.health(), self.models.clock.now_ms());
        let changed = |candidate| Some((candidate, health.changed(candidate, now_ms)?));
        let changed = health.candidates().filter_map(changed);
        changed.take(PAGE).collect()
    }

    async fn call(&self, changed: &[(usize, Measurements)]) -> Result<Page, Unavailable> {
        let ttl_us = u64::try_from(STATE_TTL.as_micros()).unwrap_or(u64::MAX);
        let bounds = [PAGE as u64, ttl_us, MAX_STATES as u64, MAX_BYTES as u64];
        let numbers = [self.seen].into_iter().chain(bounds);
        let mut args: Vec<Vec<u8>> = numbers.map(|it| it.to_string().into_bytes()).collect();
        for (candidate, measured) in changed {
            let id = self.ids.get(*candidate).copied().unwrap_or_default();
            args.push([self.models.process.to_be_bytes(), id].concat());
            args.push(measured.to_bytes());
        }
        let call = ScriptCall {
            script: self.script.clone(),
            keys: KEYS.map(|key| key.as_bytes().to_vec()).into(),
            args,
        };
        let reply = self.redis.eval_in_background(call, CALL_TIMEOUT).await?;
        read(reply).ok_or(Unavailable)
    }

    fn take_in(&mut self, page: Page) {
        let now_ms = self.models.clock.now_ms();
        let health = self.models.planner.health();
        let (mut taken, mut unusable) = (0, 0);
        for state in &page.states {
            self.seen = self.seen.max(state.changed_us);
            match self.to_told(state, page.now_us, now_ms) {
                Ok(Some((candidate, told))) => {
                    health.take_in(candidate, told, now_ms);
                    taken += 1;
                }
                Ok(None) => {}
                Err(Unusable) => unusable += 1,
            }
        }
        self.count("taken_in", taken);
        self.count("unusable", unusable);
        let was_lost = self.began.is_some_and(|began| began != page.began);
        if was_lost {
            health.candidates().for_each(|it| health.mark_changed(it));
        }
        if was_lost || self.seen > page.now_us.saturating_add(MAX_AHEAD_US) {
            self.seen = 0;
        }
        self.began = Some(page.began);
    }

    /// Returns the measurement of another process, or `None` if it is our own, or outside of our catalogue.
    /// Errors: no process of this version can have written the state.
    fn to_told(
        &self,
        state: &SharedState,
        now_us: u64,
        now_ms: u64,
    ) -> Result<Option<(usize, PeerState)>, Unusable> {
        let (process, id) = state.name.split_first_chunk().ok_or(Unusable)?;
        let process = u128::from_be_bytes(*process);
        let id = CandidateId::try_from(id).map_err(|_| Unusable)?;
        let Some(candidate) = self.candidates.get(&id) else {
            return Ok(None);
        };
        if process == self.models.process {
            return Ok(None);
        }
        let measured = Measurements::from_bytes(&state.bytes).ok_or(Unusable)?;
        let age_ms = now_us.saturating_sub(state.changed_us) / 1000;
        let at_ms = i128::from(now_ms) - i128::from(age_ms);
        let told = PeerState {
            process,
            version: state.changed_us,
            at_ms: i64::try_from(at_ms).unwrap_or(i64::MIN),
            measured,
        };
        Ok(Some((*candidate, told)))
    }

    fn count(&self, outcome: &str, states: usize) {
        let counter = &self.models.metrics.shared_measurements;
        counter.with_label_values(&[outcome]).inc_by(states as u64);
    }
}

/// Bytes that are not a state.
struct Unusable;

/// Reads the reply of the script. Returns `None` for any other shape.
fn read(reply: Vec<Vec<u8>>) -> Option<Page> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
    let (head, rest) = reply.split_first_chunk::<2>()?;
    let [now, began] = head;
    let (states, left) = rest.as_chunks::<3>();
    let states = states.iter().map(|[name, changed, bytes]| {
        Some(SharedState {
            name: name.clone(),
            changed_us: number(changed)?,
            bytes: bytes.clone(),
        })
    });
    let page = Page {
        now_us: number(now)?,
        // Any other value means that states were lost.
        began: number(began).unwrap_or_default(),
        states: states.collect::<Option<_>>()?,
    };
    left.is_empty().then_some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[&str]) -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn what_the_script_returns_is_read_and_nothing_else_is() {
        let read = |words: &[&str]| read(texts(words));
        let page = Page {
            now_us: 20,
            began: 5,
            states: vec![SharedState {
                name: b"name".to_vec(),
                changed_us: 7,
                bytes: b"state".to_vec(),
            }],
        };
        assert_eq!(read(&["20", "5", "name", "7", "state"]), Some(page));
        assert_eq!(read(&["20", "5"]).map(|page| page.states), Some(Vec::new()));
        assert_eq!(read(&["20", "x"]).map(|page| page.began), Some(0));
        for garbage in [
            &[][..],
            &["20"],
            &["x", "5"],
            &["-1", "5"],
            &["20", "5", "name"],
            &["20", "5", "name", "1e99", "state"],
        ] {
            assert_eq!(read(garbage), None, "{garbage:?}");
        }
    }
}
