//! The organizations and keys of the fleet: made at once by SQL, because the store makes them one by one.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use filters::accounts::{KeyText, Pepper};
use filters::money::Usd;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use weirgate::config;
use weirgate::store::{Store, StoreSettings};

/// The pepper of all processes.
pub const SECRET: [u8; 32] = [7; 32];
/// What each organization was granted.
const GRANT: &str = "1000";
/// Rows of one statement.
const ROWS: usize = 1000;
/// What each key may spend. No call of the bench reaches it, so every refusal is a failure.
const TERMS: &str = r#"{"limit_per":{"day":"500","month":"5000"}}"#;
/// The budget of the member who holds all keys of an organization.
const BUDGET: &str = "900";
/// The days on which each key has spent before the bench begins.
const PAST_DAYS: usize = 32;
const HOUR_MS: i64 = 3_600_000;

pub struct Accounts {
    organizations: usize,
    keys_per_organization: usize,
}

impl Accounts {
    pub fn new(organizations: usize, keys_per_organization: usize) -> Self {
        Self {
            organizations,
            keys_per_organization,
        }
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> usize {
        self.organizations * self.keys_per_organization
    }

    /// Fills an empty store.
    pub async fn fill(&self, store_toml: &str, url: &str) {
        let settings = settings(store_toml);
        let opened = Store::open(&settings).await.unwrap();
        opened.store.close().await;
        let mut connection = PgConnection::connect(url).await.unwrap();
        let organizations = self.organizations;
        let fixed = [
            format!(
                "INSERT INTO organizations (id, name, plan, status, created_at) \
                 SELECT 'org_' || n, 'o' || n, 'none', 'active', 0 FROM generate_series(0, {}) n",
                organizations - 1
            ),
            "INSERT INTO projects (id, organization_id, name, mode, status, created_at) \
             SELECT 'proj_' || substr(id, 5), id, 'default', 'platform', 'active', 0 FROM organizations"
                .to_owned(),
            format!(
                "INSERT INTO credit_grants (id, organization_id, amount, created_at) \
                 SELECT 'grant_' || substr(id, 5), id, '{GRANT}', 0 FROM organizations"
            ),
            format!(
                "INSERT INTO members (id, organization_id, name, budget, created_at) \
                 SELECT 'member_' || substr(id, 5), id, 'all', '{BUDGET}', 0 FROM organizations"
            ),
        ];
        for sql in fixed {
            execute(&mut connection, sql).await;
        }
        let pepper = Pepper::parse(&SECRET).ok().unwrap();
        let numbers: Vec<usize> = (0..self.keys()).collect();
        for numbers in numbers.chunks(ROWS) {
            let mut sql = String::from(
                "INSERT INTO api_keys (id, project_id, label, hash, last_four, created_at, terms, member_id) VALUES ",
            );
            for number in numbers {
                let hash = pepper.hash(text(*number).to_api_key());
                let hash: String = hash.as_bytes().iter().fold(String::new(), |mut hex, byte| {
                    write!(hex, "{byte:02x}").unwrap();
                    hex
                });
                let organization = number / self.keys_per_organization;
                write!(
                    sql,
                    "('key_{number}','proj_{organization}','k{number}','\\x{hash}','abcd',0,'{TERMS}','member_{organization}'),"
                )
                .unwrap();
            }
            sql.pop();
            execute(&mut connection, sql).await;
        }
        self.fill_past(&mut connection).await;
    }

    /// Adds what each key has spent on its own credit in an hour of each of the last days. It is in no balance, and counts
    /// for the limits of the key and of its member.
    async fn fill_past(&self, connection: &mut PgConnection) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let this_hour = now.as_millis() as i64 / HOUR_MS;
        for day in 1..=PAST_DAYS {
            let first = this_hour - 24 * day as i64;
            let keys = self.keys();
            let per_organization = self.keys_per_organization;
            let sql = format!(
                "INSERT INTO spent (organization_id, key_id, hour, funding, is_premium, member_id, first_at, last_at, \
                 cost_nano, cost_rest, counted_nano, counted_rest) \
                 SELECT 'org_' || n / {per_organization}, 'key_' || n, {first} + n % 24, 'byok', 0, \
                 'member_' || n / {per_organization}, ({first} + n % 24) * CAST({HOUR_MS} AS BIGINT), \
                 ({first} + n % 24) * CAST({HOUR_MS} AS BIGINT) + 1, 1000000, 0, 1000000, 0 \
                 FROM generate_series(0, {}) n",
                keys - 1
            );
            execute(connection, sql).await;
        }
        self.fill_counters(connection).await;
    }

    /// Adds the counters of what keys and members have spent in the last days. Of a period only today's calls count.
    async fn fill_counters(&self, connection: &mut PgConnection) {
        let (keys, per_organization) = (self.keys(), self.keys_per_organization);
        let sums =
            |days: usize| format!("{}.{:03}{}", days / 1000, days % 1000, " 0 0 0 0".repeat(4));
        let (of_key, of_member) = (sums(PAST_DAYS), sums(PAST_DAYS * per_organization));
        let sql = format!(
            "INSERT INTO limit_counters (organization_id, scope, sums) \
             SELECT 'org_' || n / {per_organization}, 'key/key_' || n, '{of_key}' FROM generate_series(0, {last}) n \
             UNION ALL SELECT 'org_' || n, 'member/member_' || n, '{of_member}' \
             FROM generate_series(0, {last} / {per_organization}) n",
            last = keys - 1
        );
        execute(connection, sql).await;
    }
}

/// Returns the text of a key.
pub fn text(number: usize) -> KeyText {
    let mut entropy = [3; 32];
    entropy[..8].copy_from_slice(&(number as u64).to_be_bytes());
    // The last bytes decide about most digits.
    entropy[24..].copy_from_slice(&(number as u64).to_be_bytes());
    KeyText::from_entropy(&entropy)
}

async fn execute(connection: &mut PgConnection, sql: String) {
    sqlx::query(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .unwrap();
}

fn settings(store_toml: &str) -> StoreSettings {
    let loaded = config::from_str(store_toml, []).unwrap_or_else(|bad| panic!("{}", bad[0]));
    StoreSettings::from_config(&loaded.config.store).unwrap()
}

/// What the store has of all organizations.
pub struct Stored {
    pub calls: u64,
    pub cost: Usd,
    /// What was taken out of balances.
    pub used: Usd,
}

/// Adds up what the store has.
pub async fn stored(store_toml: &str) -> Stored {
    let opened = Store::open(&settings(store_toml)).await.unwrap();
    let store = &opened.store;
    let mut stored = Stored {
        calls: 0,
        cost: Usd::ZERO,
        used: Usd::ZERO,
    };
    for name in active(store_toml).await {
        for usage in store.usage(&name, 0, None).await.unwrap() {
            stored.calls += usage.requests as u64;
            stored.cost = stored.cost.plus(usage.cost);
        }
        stored.used = stored.used.plus(store.credit(&name).await.unwrap().used);
    }
    stored
}

/// Returns the names of the organizations that the ledger knows.
async fn active(store_toml: &str) -> Vec<String> {
    let url = store_toml.split('"').nth(1).unwrap();
    let mut connection = PgConnection::connect(url).await.unwrap();
    let sql = "SELECT name FROM organizations WHERE id IN \
               (SELECT organization_id FROM usage_hours UNION SELECT organization_id FROM balances)";
    let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}
