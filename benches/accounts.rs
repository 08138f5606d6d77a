//! How long a process takes to know 100,000 keys, and what they weigh: the snapshot that the request path reads.
//!
//! `cargo bench --bench accounts`. It fails over 1 s or 100 MB, on SQLite, with a tenth of the keys bounded.
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
/// Machines are noisy: the best round counts.
const ROUNDS: usize = 5;
const MOST_TIME: Duration = Duration::from_secs(1);
const MOST_BYTES: u64 = 100_000_000;

/// A key per number: labels of their own, every tenth with terms, every tenth of those with terms that no other has.
const FILL: &str = "WITH RECURSIVE numbers(n) AS \
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
        place: StoreUrl::parse(&url).unwrap(),
        state_dir: folder.path().to_owned(),
        secret: None,
    };
    let store = Store::open(&settings).await.unwrap().store;
    store
        .create_organization("acme", Plan::Pro, 0)
        .await
        .unwrap();
    let pool = AnyPool::connect(&url).await.unwrap();
    sqlx::query(FILL).execute(&pool).await.unwrap();
    pool.close().await;
    let before = resident_bytes();
    let (mut best, accounts) = load(&store).await;
    let weighs = resident_bytes().saturating_sub(before);
    assert_eq!(accounts.len(), KEYS);
    for _ in 1..ROUNDS {
        best = best.min(load(&store).await.0);
    }
    println!(
        "{KEYS} keys: loaded in {best:?}, {:.1} MB more",
        weighs as f64 / 1e6
    );
    assert!(best < MOST_TIME, "more than {MOST_TIME:?}");
    assert!(weighs < MOST_BYTES, "more than {MOST_BYTES} bytes");
}

async fn load(store: &Store) -> (Duration, AccountsSnapshot) {
    let begun = Instant::now();
    let accounts = store.accounts().await.unwrap();
    (begun.elapsed(), accounts)
}

/// What of this process is in memory.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}
