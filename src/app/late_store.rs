//! A store that does not respond at the start. The process serves requests that need no store, and takes the store in
//! once it responds.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::accounts::AccountsHandle;
use crate::config::StoreConfig;
use crate::ledger::recovery::recover_journals;
use crate::ledger::{Ledger, LedgerError};
use crate::periodic::Ticks;
use crate::store::{Store, StoreSettings};

/// The interval between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The time after which an attempt has lost its store.
const TRY_TIMEOUT: Duration = Duration::from_secs(600);

/// The store, and the services that use it.
pub(super) struct LateStore {
    pub(super) settings: StoreSettings,
    pub(super) config: StoreConfig,
    pub(super) store: Store,
    pub(super) accounts: AccountsHandle,
    pub(super) ledger: Arc<Ledger>,
    pub(super) is_ready: bool,
}

impl LateStore {
    /// Waits for the store unless it is ready, and then follows its accounts until `stop`.
    pub(super) async fn follow(self, stop: watch::Receiver<bool>) {
        let mut ticks = Ticks::new(RETRY_INTERVAL, stop.clone());
        let mut last = String::new();
        while !self.is_ready && ticks.next().await {
            let taken = tokio::time::timeout(TRY_TIMEOUT, self.take_in()).await;
            let reason = match taken {
                Ok(Ok(())) => {
                    log::info!("the store answers");
                    break;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it does not answer".to_owned(),
            };
            if reason != last {
                log::warn!("the store is not in use yet: {reason}");
            }
            last = reason;
        }
        self.accounts.run_refresh(self.store, stop).await;
    }

    async fn take_in(&self) -> Result<(), LedgerError> {
        self.store.make_ready(&self.settings).await?;
        self.accounts.read_again(&self.store).await?;
        let recovered = recover_journals(&self.config.state_dir)?;
        // The process serves meanwhile, so no bar shows this.
        let attached = self.ledger.attach(&self.config, recovered, |_, _| {});
        attached.await
    }
}
