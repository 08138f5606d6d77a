//! What an answer waits for before its last byte goes out.

use std::time::Duration;

use tokio::sync::oneshot;

/// How long an answer waits for its record before it is given up.
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Tells when a record is where nothing can lose it.
#[derive(Debug)]
pub struct Receipt(Option<oneshot::Receiver<()>>);

impl Receipt {
    /// A ticket, and what tells that its record is safe.
    pub fn new() -> (oneshot::Sender<()>, Self) {
        let (done, ticket) = oneshot::channel();
        (done, Self(Some(ticket)))
    }

    /// A ticket of what nobody has to wait for.
    pub fn ready() -> Self {
        Self(None)
    }

    /// Returns whether the response has to wait for nothing.
    pub fn is_ready(&self) -> bool {
        self.0.is_none()
    }

    /// Waits; answers whether the record is safe.
    pub async fn is_safe(self) -> bool {
        match self.0 {
            None => true,
            Some(done) => tokio::time::timeout(RECEIPT_TIMEOUT, done)
                .await
                .is_ok_and(|done| done.is_ok()),
        }
    }
}
