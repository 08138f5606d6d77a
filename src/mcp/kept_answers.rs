//! The answers to which clients can return: those of running calls, and of calls that ended within a minute.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use filters::accounts::Caller;
use tokio::runtime::Handle;

use crate::proxy::buffered::kept_stream::KeptStream;

/// The maximum bytes of ended answers, per organization and in total. The oldest answers of an organization make
/// room.
const MAX_BYTES_OF_ORGANIZATION: usize = 16 << 20;
const MAX_BYTES: usize = 64 << 20;
/// The maximum size of an answer without its own bytes.
const ENTRY_BYTES: usize = 1024;

/// All answers, by the ids of their streams.
pub(super) struct KeptAnswers {
    kept_for: Duration,
    answers: SharedAnswers,
}

/// The answers of all configurations.
pub(super) type SharedAnswers = Arc<Mutex<AnswerTable>>;

/// See the module.
#[derive(Default)]
pub(super) struct AnswerTable {
    streams: HashMap<String, OwnedStream>,
    /// The ended answers, by organization.
    ended: HashMap<Arc<str>, EndedAnswers>,
    bytes: usize,
}

struct OwnedStream {
    key_id: Arc<str>,
    stream: Arc<KeptStream>,
}

#[derive(Default)]
struct EndedAnswers {
    bytes: usize,
    /// Ids and bytes.
    oldest_first: VecDeque<(String, usize)>,
}

/// The answer of a running call, until it is dropped.
pub(super) struct KeptAnswer {
    answers: Arc<KeptAnswers>,
    organization: Arc<str>,
    pub(super) stream: Arc<KeptStream>,
}

impl KeptAnswers {
    /// Adds to these answers. `kept_for` is how long a call runs without a client, and how long its answer is kept.
    pub(super) fn new(kept_for: Duration, answers: &SharedAnswers) -> Self {
        Self {
            kept_for,
            answers: Arc::clone(answers),
        }
    }

    /// Begins the answer of a call. Returns `None` if answers are not kept, or there are no random bytes for an id.
    pub(super) fn begin(self: &Arc<Self>, caller: &Caller) -> Option<KeptAnswer> {
        if self.kept_for.is_zero() {
            return None;
        }
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).ok()?;
        let id = format!("{:032x}", u128::from_be_bytes(nonce));
        let stream = Arc::new(KeptStream::new(id.clone(), self.kept_for));
        let owned = OwnedStream {
            key_id: Arc::clone(&caller.key_id),
            stream: Arc::clone(&stream),
        };
        self.lock().streams.insert(id, owned);
        Some(KeptAnswer {
            answers: Arc::clone(self),
            organization: Arc::clone(&caller.organization_id),
            stream,
        })
    }

    /// Returns the stream of an answer for this API key.
    pub(super) fn find(&self, id: &str, key_id: &str) -> Option<Arc<KeptStream>> {
        let answers = self.lock();
        let owned = answers.streams.get(id)?;
        (*owned.key_id == *key_id).then(|| Arc::clone(&owned.stream))
    }

    fn lock(&self) -> MutexGuard<'_, AnswerTable> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswerTable {
    /// Stores an ended answer. Returns false if there is no room for it.
    fn store_ended(&mut self, organization: &Arc<str>, id: &str, bytes: usize) -> bool {
        let ended = self.ended.entry(Arc::clone(organization)).or_default();
        while ended.bytes + bytes > MAX_BYTES_OF_ORGANIZATION || self.bytes + bytes > MAX_BYTES {
            let Some((oldest, freed)) = ended.oldest_first.pop_front() else {
                self.streams.remove(id);
                self.forget_empty(organization);
                return false;
            };
            self.streams.remove(&oldest);
            ended.bytes -= freed;
            self.bytes -= freed;
        }
        ended.oldest_first.push_back((id.to_owned(), bytes));
        ended.bytes += bytes;
        self.bytes += bytes;
        true
    }

    /// Drops an expired answer.
    fn expire(&mut self, organization: &Arc<str>, id: &str) {
        self.streams.remove(id);
        if let Some(ended) = self.ended.get_mut(organization) {
            let at = ended.oldest_first.iter().position(|(other, _)| other == id);
            let removed = at.and_then(|at| ended.oldest_first.remove(at));
            let freed = removed.map_or(0, |(_, bytes)| bytes);
            ended.bytes -= freed;
            self.bytes -= freed;
        }
        self.forget_empty(organization);
    }

    fn forget_empty(&mut self, organization: &Arc<str>) {
        let ended = self.ended.get(organization);
        if ended.is_some_and(|ended| ended.oldest_first.is_empty()) {
            self.ended.remove(organization);
        }
    }
}

impl Drop for KeptAnswer {
    fn drop(&mut self) {
        let id = self.stream.id();
        let answered = self.stream.end();
        // Without a runtime the answer would never be dropped.
        let (Some(bytes), Ok(runtime)) = (answered, Handle::try_current()) else {
            self.answers.lock().streams.remove(id);
            return;
        };
        let is_kept = self
            .answers
            .lock()
            .store_ended(&self.organization, id, bytes + ENTRY_BYTES);
        if is_kept {
            let answers = Arc::clone(&self.answers);
            let (organization, id) = (Arc::clone(&self.organization), id.to_owned());
            runtime.spawn(async move {
                tokio::time::sleep(answers.kept_for).await;
                answers.lock().expire(&organization, &id);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use filters::accounts::{Mode, Plan};

    use super::*;

    const MEGABYTE: usize = 1 << 20;

    fn caller() -> Caller {
        Caller {
            organization_id: "org_1".into(),
            organization: "".into(),
            project_id: "".into(),
            project: "".into(),
            key_id: "key_1".into(),
            key_label: "".into(),
            mode: Mode::Platform,
            plan: Plan::None,
            plan_since_ms: 0,
            member: None,
            terms: None,
            cache_ttl_s: None,
            experiments: None,
            expires_at_ms: None,
            is_debug: false,
            regions: [None, None],
            exports_content: false,
            keep_bodies_until_ms: None,
        }
    }

    fn held(answers: &AnswerTable) -> (usize, usize) {
        let bytes = answers.ended.values().map(|ended| ended.bytes).sum();
        (answers.bytes, bytes)
    }

    #[test]
    fn answers_that_have_ended_have_a_bound_for_each_organization_and_in_all() {
        let mut answers = AnswerTable::default();
        let organizations: Vec<Arc<str>> = (0..6).map(|it| format!("org_{it}").into()).collect();
        for number in 0..20 {
            assert!(answers.store_ended(&organizations[0], &format!("a{number}"), MEGABYTE));
        }
        assert_eq!(held(&answers), (16 * MEGABYTE, 16 * MEGABYTE));
        // The newest are there.
        let kept = &answers.ended[&organizations[0]].oldest_first;
        assert_eq!(kept.front().map(|(id, _)| &**id), Some("a4"));
        assert!(!answers.store_ended(&organizations[0], "large", 17 * MEGABYTE));
        assert_eq!(held(&answers), (0, 0));
        for organization in &organizations {
            for number in 0..16 {
                answers.store_ended(organization, &format!("{organization}-{number}"), MEGABYTE);
            }
        }
        assert_eq!(held(&answers), (64 * MEGABYTE, 64 * MEGABYTE));
        // Other organizations do not have to make room.
        assert_eq!(answers.ended.len(), 4);
    }

    #[test]
    fn an_answer_is_found_under_another_configuration() {
        let memory = SharedAnswers::default();
        let of = |seconds| Arc::new(KeptAnswers::new(Duration::from_secs(seconds), &memory));
        let (old, new, off) = (of(60), of(1), of(0));
        let caller = caller();
        let running = old.begin(&caller).unwrap();
        let id = running.stream.id();
        let found = [&old, &new, &off].map(|it| it.find(id, &caller.key_id).is_some());
        assert_eq!(found, [true; 3]);
        assert!(off.begin(&caller).is_none());
        drop(running);
    }

    #[test]
    fn an_answer_whose_time_is_over_is_forgotten() {
        let mut answers = AnswerTable::default();
        let organization = Arc::from("org_1");
        assert!(
            answers.store_ended(&organization, "one", 7)
                && answers.store_ended(&organization, "two", 5)
        );
        answers.expire(&organization, "one");
        assert_eq!(held(&answers), (5, 5));
        answers.expire(&organization, "one");
        answers.expire(&organization, "two");
        assert_eq!((held(&answers), answers.ended.len()), ((0, 0), 0));
    }
}
