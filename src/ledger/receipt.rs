//! The confirmation that a response waits for before its last byte goes out.

use std::time::Duration;

use tokio::sync::oneshot;

/// How long a response waits for its record to be durable.
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Resolves when a record is durable.
#[derive(Debug)]
pub struct Receipt(Option<oneshot::Receiver<()>>);

impl Receipt {
    /// Returns a receipt and the sender that confirms it.
    pub fn channel() -> (oneshot::Sender<()>, Self) {
        let (done, receipt) = oneshot::channel();
        (done, Self(Some(receipt)))
    }

    /// Returns a receipt that needs no wait.
    pub fn ready() -> Self {
        Self(None)
    }

    /// Returns whether the response has to wait for nothing.
    pub fn is_ready(&self) -> bool {
        self.0.is_none()
    }

    /// Waits for the confirmation. Returns whether the record is durable.
    pub async fn is_durable(self) -> bool {
        match self.0 {
            None => true,
            Some(done) => tokio::time::timeout(RECEIPT_TIMEOUT, done)
                .await
                .is_ok_and(|done| done.is_ok()),
        }
    }
}
