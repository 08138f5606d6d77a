//! Measures loading the snapshot of 100,000 keys from SQLite, and its memory. A tenth of the keys have limits.
//!
//! `cargo bench --bench accounts` fails above 1 s or 100 MB.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot run has to stop"
)]

use std::time::{Duration, Instant};

use filters::accounts::{AccountsSnapshot, Plan};
use sqlx::AnyPool;
use weirgate::store::{Store, StoreSettings, StoreUrl};

const KEYS: usize = 100_000;
/// Machines are noisy, so the best round counts.
const ROUNDS: usize = 5;
const MAX_DURATION: Duration = Duration::from_secs(1);
const MAX_BYTES: u64 = 100_000_000;

/// One key per number, each with its own label. Every tenth has terms, and every hundredth has terms that no other key
/// has.
const FILL_SQL: &str = "WITH RECURSIVE numbers(n) AS \
    (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000) \
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
        .create_organization("acme", Plan::Pro, 0)
        .await
        .unwrap();
    let pool = AnyPool::connect(&url).await.unwrap();
    sqlx::query(FILL_SQL).execute(&pool).await.unwrap();
    pool.close().await;
    let before = resident_bytes();
    let (mut best, accounts) = load(&store).await;
    let added_bytes = resident_bytes().saturating_sub(before);
    assert_eq!(accounts.len(), KEYS);
    for _ in 1..ROUNDS {
        best = best.min(load(&store).await.0);
    }
    println!(
        "{KEYS} keys: loaded in {best:?}, {:.1} MB more",
        added_bytes as f64 / 1e6
    );
    assert!(best < MAX_DURATION, "more than {MAX_DURATION:?}");
    assert!(added_bytes < MAX_BYTES, "more than {MAX_BYTES} bytes");
}

async fn load(store: &Store) -> (Duration, AccountsSnapshot) {
    let started = Instant::now();
    let accounts = store.accounts().await.unwrap();
    (started.elapsed(), accounts)
}

/// Returns the resident memory of this process.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}
