//! A large past: 1,000 organizations with 10,000 keys, which have called in each hour of a month. What people look at comes within a
//! part of a second. `cargo test --lib large_past -- --nocapture` prints the times.

use std::time::{Duration, Instant};

use filters::ledger::usage_query::{Granularity, UsageHours};
use filters::money::Usd;

use super::super::ledger::{SpendBy, SpendQuery};
use super::account_pages::plans;
use super::*;

on_both!(a_large_past_is_looked_at_within_its_time);

const HOUR_MS: i64 = 3_600_000;
const NOW_HOUR: i64 = NOW_MS / HOUR_MS;
/// The hours of the past.
const HOURS: i64 = 720;
const ORGANIZATIONS: i64 = 1_000;
/// How long a look at some rows may take. The machine may do other work beside it, and the library is built without optimizations.
const LIMIT: Duration = Duration::from_secs(2);
/// The same for all hours of all organizations, which are kept for a while then.
const MONTH_LIMIT: Duration = Duration::from_secs(20);

/// The SQL that makes it. Of each organization another key calls each hour, for 0.001 USD and a part that is its own.
const ROWS: [&str; 7] = [
    "INSERT INTO organizations (id, name, plan, status, created_at, plan_since) \
     SELECT 'org_' || n, 'organization ' || n, 'pro', 'active', 0, 0 FROM numbers WHERE n < 1000",
    "INSERT INTO projects (id, organization_id, name, mode, status, created_at) \
     SELECT 'proj_' || n, 'org_' || n, 'default', 'platform', 'active', 0 FROM numbers WHERE n < 1000",
    "INSERT INTO members (id, organization_id, name, budget, created_at) \
     SELECT 'mem_' || n, 'org_' || n, 'member ' || n, '1000', 0 FROM numbers WHERE n < 1000",
    "INSERT INTO api_keys (id, project_id, label, hash, last_four, created_at, terms, member_id) \
     SELECT 'key_' || n, 'proj_' || (n % 1000), 'key ' || n, CAST('hash ' || n AS {bytes}), '0000', n, \
     '{\"limit\":\"1000\",\"limit_per\":{\"month\":\"50\"}}', 'mem_' || (n % 1000) FROM numbers",
    "INSERT INTO limit_counters (organization_id, scope, sums) \
     SELECT 'org_' || (n % 1000), 'key/key_' || n, CAST(n % 997 AS TEXT) || ' 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0' FROM numbers",
    "INSERT INTO balances (organization_id, version, settled, shortfall, granted) \
     SELECT 'org_' || n, 1, '5', '0', '100' FROM numbers WHERE n < 1000",
    "INSERT INTO usage_hours SELECT 'org_' || (n % 1000), {now} - n / 1000, 'key_' || (n % 1000 + n / 1000 % 10 * 1000), \
     'model-' || (n % 12), 'provider-' || (n % 4), 'answered', 2, 100, 40, 0, 50, 0, 0, 1000000 + n % 1000, 7 \
     FROM (SELECT a.n * 1000 + b.n AS n FROM numbers a CROSS JOIN numbers b WHERE a.n < 720 AND b.n < 1000) AS hours",
];

impl Fixture {
    async fn with_large_past(&self) {
        let is_postgres = matches!(self.settings.url, StoreUrl::Postgres(_));
        let bytes = if is_postgres { "BYTEA" } else { "BLOB" };
        let began = Instant::now();
        let mut connection = self.store.pool.unlimited().acquire().await.unwrap();
        for sql in ROWS {
            let (table, rest) = sql.split_once("SELECT").unwrap();
            let sql = format!(
                "{table} WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9999) SELECT{rest}"
            );
            let sql = sql.replace("{now}", &NOW_HOUR.to_string());
            let sql = sql.replace("{bytes}", bytes);
            let query = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
            query.execute(&mut *connection).await.unwrap();
        }
        if is_postgres {
            // As autovacuum does it after so many rows.
            let query = sqlx::raw_sql("ANALYZE");
            query.execute(&mut *connection).await.unwrap();
        }
        println!("{}: made in {:?}", self.database(), began.elapsed());
    }

    fn database(&self) -> &'static str {
        match self.settings.url {
            StoreUrl::Postgres(_) => "PostgreSQL",
            _ => "SQLite",
        }
    }

    /// Runs a look at the past, prints how long it took and returns what it found.
    async fn look<T>(
        &self,
        what: &str,
        limit: Duration,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> T {
        let began = Instant::now();
        let read = read.await.unwrap();
        let took = began.elapsed();
        println!("{}: {what}: {took:?}", self.database());
        assert!(took < limit, "{what} took {took:?}");
        read
    }

    async fn look_at_spending(&self, hours: i64, organization: Option<&str>, limit: Duration) {
        for by in SpendBy::ALL {
            let asked = SpendQuery {
                organization_id: organization.map(Into::into),
                hours: UsageHours {
                    from: NOW_HOUR + 1 - hours,
                    until: NOW_HOUR + 1,
                },
                granularity: if hours > 48 {
                    Granularity::Day
                } else {
                    Granularity::Hour
                },
                by,
            };
            let whose = organization.unwrap_or("all");
            let what = format!("{hours} hours of {whose} by {}", by.as_str());
            let spending = self.look(&what, limit, self.store.spending(&asked)).await;
            let organizations = if organization.is_some() {
                1
            } else {
                ORGANIZATIONS
            };
            assert_eq!(spending.total.requests, 2 * hours * organizations);
            let costs = spending.periods.iter().flat_map(|it| &it.costs);
            let sum = costs.fold(Usd::ZERO, |sum, cost| sum.plus(*cost));
            assert_eq!(sum, spending.total.cost);
        }
    }
}

async fn a_large_past_is_looked_at_within_its_time(fixture: Fixture) {
    fixture.with_large_past().await;
    fixture.look_at_spending(2, None, LIMIT).await;
    fixture.look_at_spending(24, None, LIMIT).await;
    fixture.look_at_spending(HOURS, None, MONTH_LIMIT).await;
    fixture.look_at_spending(HOURS, Some("org_7"), LIMIT).await;
    let (store, plans) = (&fixture.store, plans());
    let asked = PageQuery {
        limit: 50,
        after: Some("organization 5"),
        ..PageQuery::default()
    };
    let read = store.organizations_page(asked, &plans, NOW_MS);
    let page = fixture.look("50 organizations", LIMIT, read).await;
    assert_eq!(page.rows.len(), 50);
    let asked = PageQuery {
        search: "organization 999",
        after: None,
        ..asked
    };
    let read = store.organizations_page(asked, &plans, NOW_MS);
    let page = fixture
        .look("an organization by its name", LIMIT, read)
        .await;
    assert_eq!(page.rows.len(), 1);
    let asked = PageQuery {
        search: "",
        ..asked
    };
    let name = "organization 7";
    let read = store.keys_page(name, KeyFilter::default(), asked, NOW_MS);
    let keys = fixture.look("keys of an organization", LIMIT, read).await;
    assert_eq!(keys.rows.len(), 10);
    let asked = PageQuery {
        search: "key 9007",
        ..asked
    };
    let read = store.keys_page(name, KeyFilter::default(), asked, NOW_MS);
    let keys = fixture.look("a key by its label", LIMIT, read).await;
    assert_eq!(keys.rows.len(), 1);
    let read = store.members_page(
        name,
        PageQuery {
            search: "",
            ..asked
        },
        NOW_MS,
    );
    let members = fixture
        .look("members of an organization", LIMIT, read)
        .await;
    assert_eq!(members.rows.len(), 1);
    let read = store.nearest_limits(&plans, NOW_MS, 20);
    let nearest = fixture.look("the nearest limits", LIMIT, read).await;
    assert_eq!(nearest.len(), 20);
    assert!(nearest[0].limit.share() > 0.99, "{:?}", nearest[0]);
}
