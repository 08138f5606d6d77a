//! Opens the store of a gateway, or starts without it if that is allowed.

use std::fs::File;
use std::sync::Arc;

use prometheus::IntCounter;

use super::boot::{BootError, failed};
use super::late_store::LateStore;
use crate::accounts::AccountsHandle;
use crate::accounts::copy::AccountsCopy;
use crate::cli::output::Output;
use crate::config::Config;
use crate::ledger::recovery::recover_journals;
use crate::ledger::{self, Ledger};
use crate::models::store_snapshots::StoreSnapshots;
use crate::store::{self, FirstRun, Store, StoreLock, StoreSettings, StoreUrl};
use crate::telemetry::metrics::Metrics;

/// The store, the key that its first start created, the snapshot of its accounts, and their money.
pub(super) struct ReadyStore {
    pub(super) lock: Option<StoreLock>,
    pub(super) store: Store,
    pub(super) first_run: Option<FirstRun>,
    pub(super) snapshots: StoreSnapshots,
    pub(super) late: LateStore,
}

/// Locks the store, or shares the lock that a predecessor has passed.
///
/// Errors: another server has the store, or its URL is invalid.
pub(super) fn lock(config: &Config, passed: Option<File>) -> Result<Option<StoreLock>, BootError> {
    let locked = StoreUrl::parse(&config.store.url).and_then(|url| match passed {
        Some(file) => StoreLock::share(&url, file),
        None => StoreLock::acquire(&url),
    });
    locked.map_err(|error| store_failed(&ledger::LedgerError::Store(error)))
}

/// Opens the store, which is locked, brings the contents of journals to it, and reads its accounts.
pub(super) async fn open(
    config: &Config,
    (has_sandbox, lock): (bool, Option<StoreLock>),
    metrics: &Arc<Metrics>,
) -> Result<ReadyStore, ledger::LedgerError> {
    let settings = StoreSettings::from_config(&config.store)?;
    // An unreadable journal stops the start before the store is migrated. So the version that wrote the journal can
    // still start, and bring its calls to the store.
    let recovered = recover_journals(&config.store.state_dir)?;
    // SQLite is a file on this disk, so a copy of it would not be any safer.
    let copy = match &settings.url {
        StoreUrl::Sqlite(_) => None,
        url => Some(AccountsCopy::new(&config.store.state_dir, &url.redacted())),
    };
    let preparing = prepare(
        settings.clone(),
        copy,
        has_sandbox,
        metrics.accounts_unreadable.clone(),
    );
    let Prepared {
        store,
        first_run,
        accounts,
        snapshots,
        is_ready,
    } = store::in_background(preparing).await?;
    let ledger = Ledger::detached(&config.store, store.clone(), Arc::clone(metrics))?;
    if is_ready {
        let progress = Output::from_process().progress();
        let on_stored = move |done, total| {
            progress.show(format_args!("storing recovered calls"), done, total);
        };
        ledger.attach(&config.store, recovered, on_stored).await?;
    }
    let late = LateStore {
        settings,
        config: config.store.clone(),
        store: store.clone(),
        accounts,
        ledger,
        is_ready,
    };
    Ok(ReadyStore {
        lock,
        store,
        first_run,
        snapshots,
        late,
    })
}

/// A store and its accounts.
struct Prepared {
    store: Store,
    first_run: Option<FirstRun>,
    accounts: AccountsHandle,
    snapshots: StoreSnapshots,
    is_ready: bool,
}

/// Opens the store and reads its accounts, or those of the copy if the store does not respond and a copy is allowed.
async fn prepare(
    settings: StoreSettings,
    copy: Option<AccountsCopy>,
    has_sandbox: bool,
    unreadable: IntCounter,
) -> Result<Prepared, store::StoreError> {
    let may_be_away = copy.is_some();
    let opened = Store::prepare(&settings).await?;
    let is_ready = match opened.store.make_ready(&settings).await {
        Ok(()) => true,
        Err(error) if may_be_away && error.is_unavailable() => {
            log::warn!("{error}: credit cannot be spent until the store answers");
            false
        }
        Err(error) => return Err(error),
    };
    let snapshots = StoreSnapshots::new(opened.store.pepper().fingerprint());
    let subscriber = snapshots.clone();
    let accounts =
        AccountsHandle::empty(copy, Some(unreadable), move |rows| subscriber.update(rows));
    let mut first_run = None;
    if is_ready {
        let now_ms = jiff::Timestamp::now().as_millisecond();
        first_run = store::first_run(&opened, has_sandbox, now_ms).await?;
        accounts.read_again(&opened.store).await?;
    } else {
        accounts.read_copy(&opened.store);
    }
    Ok(Prepared {
        store: opened.store,
        first_run,
        accounts,
        snapshots,
        is_ready,
    })
}

/// Returns the error of a store that stops the start.
pub(super) fn store_failed(error: &ledger::LedgerError) -> BootError {
    match error {
        ledger::LedgerError::Store(error) => BootError {
            message: format!("store: {error}"),
            is_configuration: error.is_configuration(),
        },
        other => failed("the journal of calls", other),
    }
}
