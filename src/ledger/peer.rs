//! Two processes on a store that one process has: while one takes the place of the other.
//!
//! A process that is alone on its store leases all credit that is free. So the two ask each other for what the other does not
//! need, as processes on PostgreSQL do over the store, and the one that leaves keeps nothing that it does not use.

use std::sync::Arc;
use std::time::Duration;

use super::Ledger;
use crate::store::StoreError;

/// The interval at which a process that leaves gives back what it does not use. Our choice: the other process asks when it
/// needs something, so this is for what it does not know to ask for.
const RETURN_INTERVAL: Duration = Duration::from_millis(500);
/// The interval between two looks whether a command waits for credit.
const COMMAND_INTERVAL: Duration = Duration::from_millis(500);

/// The way to the other process.
pub struct StorePeer {
    tell: Box<dyn Fn(String) + Send + Sync>,
}

impl Ledger {
    /// Begins to share the store with another process, to which `tell` passes texts for its [`Self::hear_peer`].
    pub fn begin_sharing(&self, tell: impl Fn(String) + Send + Sync + 'static) {
        let tell = Box::new(tell);
        self.peer.store(Some(Arc::new(StorePeer { tell })));
    }

    /// Ends that: the other process has ended.
    pub fn end_sharing(&self) {
        self.peer.store(None);
    }

    /// Does what the other process asks for, in the background.
    pub fn hear_peer(self: &Arc<Self>, text: &str) {
        self.hear(text);
    }

    /// Gives back what this process has leased and does not use, again and again, until the future is dropped. What it needs
    /// it leases anew.
    pub async fn return_unused(self: Arc<Self>) {
        loop {
            // While the store fails, leases stay here and serve calls without it.
            if !self.is_failing() {
                self.return_idle_leases(Duration::ZERO).await;
            }
            tokio::time::sleep(RETURN_INTERVAL).await;
        }
    }

    /// Gives back what commands ask for, where the store cannot tell this process so. Runs until it is dropped.
    pub(super) async fn hear_commands(self: Arc<Self>) {
        loop {
            tokio::time::sleep(COMMAND_INTERVAL).await;
            // While the store fails, leases stay here and serve calls without it.
            if self.is_failing() {
                continue;
            }
            match self.store.return_requests().await {
                Ok(requests) => requests.iter().for_each(|request| self.hear(request)),
                Err(error) => log::debug!("commands cannot be heard: {error}"),
            }
        }
    }

    /// Returns whether other processes may use the store.
    pub(super) fn is_shared(&self) -> bool {
        self.has_fleet || self.peer.load().is_some()
    }

    /// Requests other processes to return amounts that they do not need.
    pub(super) async fn request_return(
        &self,
        organization_id: &str,
        scope: Option<&str>,
    ) -> Result<(), StoreError> {
        let owner = &self.owner;
        let text = match scope {
            None => format!("{owner} {organization_id}"),
            Some(scope) => format!("{owner} {organization_id} {scope}"),
        };
        if self.has_fleet {
            return self.store.request_return(&text).await;
        }
        if let Some(peer) = &*self.peer.load() {
            (peer.tell)(text);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
