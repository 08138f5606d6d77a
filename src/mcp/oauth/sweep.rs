//! Deletes expired clients, codes and grants.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::ledger::Ledger;
use crate::periodic::Ticks;

/// The interval.
const INTERVAL: Duration = Duration::from_secs(3_600);

/// Runs until `stop`. Each process does this, at no cost for the others. If the store does not respond, the next time
/// is early enough.
pub async fn run(ledger: Arc<Ledger>, stop: watch::Receiver<bool>) {
    let mut ticks = Ticks::new(INTERVAL, stop);
    while ticks.next().await {
        let now_ms = ledger.now_ms();
        let swept =
            ledger.with_store(|store, _| async move { store.delete_old_oauth(now_ms).await });
        if let Err(fault) = swept.await {
            log::warn!("expired grants of OAuth stay for an hour: {}", fault.detail);
        }
    }
}
