#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use filters::accounts::{AuthError, KeyText, Mode, Plan, admit};
use filters::audit::PROGRAM;
use http::{HeaderMap, HeaderName, HeaderValue};
use tempfile::TempDir;

use super::*;
use crate::accounts;

#[path = "../../tests/support/postgres.rs"]
#[expect(unreachable_pub, reason = "the suite under tests/ uses it too")]
mod postgres;

pub(super) const KEY_HEADER: HeaderName = HeaderName::from_static("x-weirgate-key");
const NOW_MS: i64 = 1_800_000_000_000;

/// A new store and its folder.
struct Fixture {
    store: Store,
    settings: StoreSettings,
    _folder: TempDir,
}

impl Fixture {
    async fn open(settings: StoreSettings, folder: TempDir) -> Self {
        let store = Store::open(&settings).await.unwrap().store;
        Self {
            store,
            settings,
            _folder: folder,
        }
    }
}

async fn on_sqlite() -> Fixture {
    let folder = TempDir::new().unwrap();
    Fixture::open(sqlite_settings(folder.path()), folder).await
}

async fn on_postgres() -> Fixture {
    let folder = TempDir::new().unwrap();
    Fixture::open(postgres_settings(folder.path()).await, folder).await
}

/// Makes an empty database.
async fn postgres_settings(folder: &Path) -> StoreSettings {
    let database = postgres::database();
    sqlx::any::install_default_drivers();
    let admin = sqlx::AnyPool::connect(&database.server_url).await.unwrap();
    let create = sqlx::AssertSqlSafe(database.create);
    sqlx::query(create).execute(&admin).await.unwrap();
    admin.close().await;
    StoreSettings {
        url: StoreUrl::parse(&database.url).unwrap(),
        state_dir: folder.to_owned(),
        secret: Some(vec![7; 32]),
    }
}

fn sqlite_settings(folder: &Path) -> StoreSettings {
    let file = folder.join("deep/er/weirgate.db");
    StoreSettings {
        url: StoreUrl::parse(&format!("sqlite:{}", file.display())).unwrap(),
        state_dir: folder.join("state"),
        secret: None,
    }
}

/// Runs the same tests on both databases.
macro_rules! on_both {
    ($($claim:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $claim() {
                super::$claim(crate::store::tests::on_sqlite().await).await;
            })+
        }
        mod postgresql {
            $(#[tokio::test]
            async fn $claim() {
                super::$claim(crate::store::tests::on_postgres().await).await;
            })+
        }
    };
}

mod account_pages;
mod apply;
mod audit;
mod budgets;
mod bulk;
mod calls;
mod changes;
mod credit;
mod feed;
mod files;
mod large_past;
mod ledger;
mod lifecycle;
mod limits;
mod locks;
mod money;
mod oauth;
mod prompts;
mod recovery;
mod responses;
mod sessions;
mod snapshots;
mod spending;
mod spent;
mod sums;
mod transfer;
mod upgrade;
mod usage_hours;
mod variations;
mod video_jobs;

impl Store {
    /// Writes an amount that is none into the balance of an organization.
    pub(crate) async fn damage_balance(&self, organization_id: &str) {
        let sql = "INSERT INTO balances (organization_id, version, settled, shortfall) \
                   VALUES ($1, 1, 'much', '0') \
                   ON CONFLICT (organization_id) DO UPDATE SET settled = excluded.settled";
        let query = sqlx::query(sql).bind(organization_id.to_owned());
        query.execute(self.pool.unlimited()).await.unwrap();
    }
}

impl Fixture {
    /// A session of PostgreSQL without our options.
    async fn raw(&self) -> sqlx::AnyConnection {
        let StoreUrl::Postgres(url) = &self.settings.url else {
            panic!("not PostgreSQL");
        };
        <sqlx::AnyConnection as sqlx::Connection>::connect(url)
            .await
            .unwrap()
    }

    async fn organization(&self, name: &str) {
        let made = self
            .store
            .by(&PROGRAM)
            .create_organization(name, Plan::Pro, NOW_MS)
            .await;
        made.unwrap();
    }

    async fn key(&self, organization: &str) -> (KeyText, IssuedKey) {
        let new = NewKey {
            organization,
            project: DEFAULT_PROJECT,
            label: "ci",
            expires_at_ms: None,
            ..NewKey::default()
        };
        self.store
            .by(&PROGRAM)
            .create_key(&new, NOW_MS)
            .await
            .unwrap()
    }

    async fn admit(&self, key: &KeyText) -> Result<Arc<filters::accounts::Caller>, AuthError> {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", HeaderValue::from_str(key.reveal()).unwrap());
        let accounts = self.store.accounts().await.unwrap();
        admit(
            &headers,
            &KEY_HEADER,
            &accounts,
            self.store.pepper(),
            NOW_MS,
        )
    }
}
