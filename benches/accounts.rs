//! Measures loading the snapshot of a million keys from SQLite, its memory, and what one change costs that the snapshot
//! follows. A tenth of the keys have limits. Then the memory of accounts of the ledger, which idle ones leave.
//!
//! `cargo bench --bench accounts` fails above 15 s, 500 bytes a key, 10 ms a change, or 2,000 bytes an account.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot run has to stop"
)]

use std::time::{Duration, Instant};

use filters::accounts::Plan;
use filters::audit::PROGRAM;
use filters::ledger::Funding;
use filters::money::Usd;
use sqlx::AnyPool;
use weirgate::accounts::AccountsHandle;
use weirgate::ledger::account::{Hold, OrganizationAccount, Spent};
use weirgate::store::{Store, StoreSettings, StoreUrl};

const KEYS: usize = 1_000_000;
/// Machines are noisy, so the best change counts.
const CHANGES: usize = 20;
const MAX_DURATION: Duration = Duration::from_secs(15);
const MAX_KEY_BYTES: u64 = 500;
const MAX_CHANGE: Duration = Duration::from_millis(10);
const ACCOUNTS: u64 = 100_000;
const MAX_ACCOUNT_BYTES: u64 = 2_000;

/// One key per number, each with its own label. Every tenth has terms, and every hundredth has terms that no other key
/// has.
const FILL_SQL: &str = "WITH RECURSIVE numbers(n) AS \
    (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000000) \
    INSERT INTO api_keys (id, project_id, label, hash, last_four, created_at, terms) \
    SELECT printf('key_%032d', n), (SELECT id FROM projects), 'label ' || n, randomblob(32), \
    'abcd', n, CASE WHEN n % 100 = 0 THEN '{\"limit\":\"' || n || '\"}' \
    WHEN n % 10 = 0 THEN '{\"limit_per\":{\"day\":\"5\"},\"deny_models\":[\"a\"]}' END FROM numbers";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("weirgate.db").display());
    let settings = StoreSettings {
        url: StoreUrl::parse(&url).unwrap(),
        state_dir: folder.path().to_owned(),
        secret: None,
    };
    let store = Store::open(&settings).await.unwrap().store;
    store
        .by(&PROGRAM)
        .create_organization("acme", Plan::Pro, 0)
        .await
        .unwrap();
    let pool = AnyPool::connect(&url).await.unwrap();
    sqlx::query(FILL_SQL).execute(&pool).await.unwrap();
    pool.close().await;
    let before = resident_bytes();
    let started = Instant::now();
    let accounts = AccountsHandle::load(&store, |_| {}).await.unwrap();
    let loaded = started.elapsed();
    let key_bytes = resident_bytes().saturating_sub(before) / KEYS as u64;
    assert_eq!(accounts.current().len(), KEYS);
    let change = change(&store, &accounts).await;
    let account_bytes = account_bytes();
    println!(
        "{KEYS} keys: loaded in {loaded:?}, {key_bytes} bytes each; a change: {change:?}; \
         an account: {account_bytes} bytes"
    );
    assert!(loaded < MAX_DURATION, "more than {MAX_DURATION:?}");
    assert!(key_bytes < MAX_KEY_BYTES, "more than {MAX_KEY_BYTES} bytes");
    assert!(change < MAX_CHANGE, "more than {MAX_CHANGE:?}");
    assert!(
        account_bytes < MAX_ACCOUNT_BYTES,
        "more than {MAX_ACCOUNT_BYTES} bytes"
    );
}

/// Revokes keys one by one. Returns the shortest time until the snapshot has a revocation.
async fn change(store: &Store, accounts: &AccountsHandle) -> Duration {
    let mut best = Duration::MAX;
    for n in 1..=CHANGES {
        let key = format!("key_{:032}", n * 1000);
        store.by(&PROGRAM).revoke_key(&key, 1).await.unwrap();
        let started = Instant::now();
        assert!(accounts.refresh(store).await.unwrap());
        best = best.min(started.elapsed());
    }
    best
}

/// Returns the memory of an account with one key that has spent, each of another organization.
fn account_bytes() -> u64 {
    let before = resident_bytes();
    let accounts: Vec<OrganizationAccount> = (0..ACCOUNTS)
        .map(|n| {
            let account = OrganizationAccount::new(&format!("org_{n:032}"));
            let hold = Hold {
                key_id: &format!("key_{n:032}").into(),
                member_id: None,
                funding: Funding::Byok,
                amount: Usd::ZERO,
                is_premium: false,
                budgets: &[],
            };
            let spent = Spent {
                cost: Usd::from_units(1),
                funding: Funding::Byok,
                is_premium: false,
                is_stored: true,
            };
            account.settle(&hold, &spent, |_| ());
            account
        })
        .collect();
    let added = resident_bytes().saturating_sub(before);
    added / accounts.len() as u64
}

/// Returns the resident memory of this process.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}
