//! The running tool calls of this process, by owner. A client cancels one by its id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::proxy::buffered::interim::Cancellation;

/// The party that may cancel a call.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum CallOwner {
    Session([u8; 16]),
    Key(Arc<str>),
}

/// The owner of a call and its id, as JSON.
type CallKey = (CallOwner, String);

/// All running calls.
#[derive(Default)]
pub(super) struct RunningCalls(Mutex<HashMap<CallKey, Vec<Arc<Cancellation>>>>);

/// A running call, until it is dropped.
pub(super) struct RunningToolCall {
    calls: Arc<RunningCalls>,
    key: CallKey,
    pub(super) cancellation: Arc<Cancellation>,
}

impl RunningCalls {
    /// Begins a call. Returns `None` if the session already runs a call with this id. Calls without a session may
    /// come from several clients that use the same ids.
    pub(super) fn begin(self: &Arc<Self>, owner: CallOwner, id: &Value) -> Option<RunningToolCall> {
        let is_session = matches!(owner, CallOwner::Session(_));
        let key = (owner, id.to_string());
        let cancellation = Arc::<Cancellation>::default();
        let mut running = self.running();
        let same = running.entry(key.clone()).or_default();
        if is_session && !same.is_empty() {
            return None;
        }
        same.push(Arc::clone(&cancellation));
        Some(RunningToolCall {
            calls: Arc::clone(self),
            key,
            cancellation,
        })
    }

    /// Cancels the call with this id and frees the id. If several calls have it, the intended one is unknown, and all
    /// continue.
    pub(super) fn cancel(&self, owner: CallOwner, id: &Value) {
        let mut running = self.running();
        let key = (owner, id.to_string());
        if let Some([only]) = running.get(&key).map(Vec::as_slice) {
            only.cancel();
            // The reply may still be read, only to learn its cost.
            running.remove(&key);
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<CallKey, Vec<Arc<Cancellation>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningToolCall {
    fn drop(&mut self) {
        let mut running = self.calls.running();
        if let Some(same) = running.get_mut(&self.key) {
            same.retain(|other| !Arc::ptr_eq(other, &self.cancellation));
            if same.is_empty() {
                running.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn runs(calls: &RunningCalls) -> usize {
        calls.running().len()
    }

    #[test]
    fn an_id_runs_once_in_a_session_and_is_forgotten_at_its_end() {
        let calls = Arc::new(RunningCalls::default());
        let (one, other) = (CallOwner::Session([1; 16]), CallOwner::Session([2; 16]));
        let first = calls.begin(one.clone(), &1.into()).unwrap();
        assert!(calls.begin(one.clone(), &1.into()).is_none());
        // A number is no text, and another session no matter.
        let others = [(one.clone(), Value::from("1")), (other, 1.into())];
        let others = others.map(|(owner, id)| calls.begin(owner, &id).unwrap());
        drop(first);
        drop(calls.begin(one, &1.into()).unwrap());
        drop(others);
        assert_eq!(runs(&calls), 0);
        let key = CallOwner::Key("key_1".into());
        let same = [(); 2].map(|()| calls.begin(key.clone(), &1.into()).unwrap());
        assert_eq!(runs(&calls), 1);
        drop(same);
        assert_eq!(runs(&calls), 0);
    }
}
