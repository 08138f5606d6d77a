//! The confirmation that a response waits for before its last byte goes out.

use std::time::Duration;

use tokio::sync::oneshot;

/// How long a response waits for its record to be durable.
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Resolves when a record is durable.
#[derive(Debug)]
pub struct Receipt {
    done: Option<oneshot::Receiver<()>>,
    /// How long it is waited for; `None`: until it is known whether the record is durable.
    timeout: Option<Duration>,
}

impl Receipt {
    /// Returns a receipt and the sender that confirms it.
    pub fn channel() -> (oneshot::Sender<()>, Self) {
        let (done, receipt) = oneshot::channel();
        let receipt = Self {
            done: Some(receipt),
            timeout: Some(RECEIPT_TIMEOUT),
        };
        (done, receipt)
    }

    /// Returns a receipt that is waited for until the sender confirms it or is dropped, and the sender.
    pub fn decided_channel() -> (oneshot::Sender<()>, Self) {
        let (done, receipt) = Self::channel();
        let timeout = None;
        (done, Self { timeout, ..receipt })
    }

    /// Returns a receipt that needs no wait.
    pub fn ready() -> Self {
        Self {
            done: None,
            timeout: None,
        }
    }

    /// Returns whether the response has to wait for nothing.
    pub fn is_ready(&self) -> bool {
        self.done.is_none()
    }

    /// Waits for the confirmation. Returns whether the record is durable.
    pub async fn is_durable(self) -> bool {
        match (self.done, self.timeout) {
            (None, _) => true,
            (Some(done), None) => done.await.is_ok(),
            (Some(done), Some(timeout)) => tokio::time::timeout(timeout, done)
                .await
                .is_ok_and(|done| done.is_ok()),
        }
    }
}
