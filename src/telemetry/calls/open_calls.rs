//! The calls that run. Each thread adds to a list of its own, and so do few others, so that calls do not wait for each other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use filters::accounts::Caller;
use http::HeaderValue;
use slab::Slab;

use crate::thread_number::thread_number;

/// The number of lists. With more threads, some share a list.
const LISTS: usize = 16;

/// The calls that run. As many are listed as `limits.in_flight` admits.
#[derive(Default)]
pub(super) struct OpenCalls {
    lists: [OpenList; LISTS],
}

/// One of the lists. The alignment keeps the lists of two workers in different cache lines.
#[derive(Default)]
#[repr(align(128))]
struct OpenList(Mutex<Slab<OpenCallFacts>>);

/// What is known of a call that runs.
#[derive(Clone, Debug)]
pub struct OpenCallFacts {
    pub request_id: HeaderValue,
    pub route: &'static str,
    pub caller: Option<Arc<Caller>>,
    /// When it began: microseconds since 1970.
    pub started_unix_us: u64,
    /// The model of the attempt that runs; `None`: none has begun.
    pub model: Option<Arc<str>>,
    /// The provider of that attempt.
    pub provider: Option<Arc<str>>,
    /// How many attempts have begun.
    pub attempts: u32,
    /// Whether the client gets content already.
    pub has_content: bool,
}

/// A place among the calls that run, until it is dropped.
pub struct OpenCall {
    calls: Arc<OpenCalls>,
    list: usize,
    key: usize,
}

impl OpenCalls {
    pub(super) fn add(self: &Arc<Self>, facts: OpenCallFacts) -> OpenCall {
        let list = thread_number() % LISTS;
        OpenCall {
            calls: Arc::clone(self),
            list,
            key: self.lock(list).map_or(0, |mut calls| calls.insert(facts)),
        }
    }

    /// Returns all calls, oldest first.
    pub(super) fn all(&self) -> Vec<OpenCallFacts> {
        let mut all = Vec::new();
        for list in 0..LISTS {
            let list = self.lock(list);
            all.extend(
                list.iter()
                    .flat_map(|calls| calls.iter())
                    .map(|(_, call)| call.clone()),
            );
        }
        all.sort_by_key(|call| call.started_unix_us);
        all
    }

    fn lock(&self, list: usize) -> Option<MutexGuard<'_, Slab<OpenCallFacts>>> {
        let list = self.lists.get(list)?;
        Some(list.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl OpenCall {
    /// Says that an attempt begins. Cost: one lock that is held for moments.
    pub fn attempt(&self, model: &Arc<str>, provider: &Arc<str>) {
        self.change(|call| {
            call.model = Some(Arc::clone(model));
            call.provider = Some(Arc::clone(provider));
            call.attempts = call.attempts.saturating_add(1);
        });
    }

    /// Says that the client gets content.
    pub fn content(&self) {
        self.change(|call| call.has_content = true);
    }

    fn change(&self, change: impl FnOnce(&mut OpenCallFacts)) {
        let mut list = self.calls.lock(self.list);
        let call = list.as_mut().and_then(|calls| calls.get_mut(self.key));
        if let Some(call) = call {
            change(call);
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(mut calls) = self.calls.lock(self.list) {
            calls.try_remove(self.key);
        }
    }
}
