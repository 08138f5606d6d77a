//! Two versions on one store. The tables of the version before and the statements of its processes stand beside this file;
//! they were taken from a running process, and stay as they are until that version is no longer upgraded from.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use filters::accounts::TermsFile;
use filters::audit::PROGRAM;
use filters::money::Usd;
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use weirgate::store::KeyChange;

use self::old_process::{OldProcess, Spender};
use crate::ledger::money::Place;
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::CENT;
use crate::support::client;
use crate::support::own_postgres::Postgres;
use crate::support::server::Server;
use crate::support::upstream::Upstream;

mod old_process;

/// What the version before keeps in a store of one kind.
struct Version {
    schema: &'static str,
    statements: &'static str,
}

const POSTGRES: Version = Version {
    schema: include_str!("postgres/schema.sql"),
    statements: include_str!("postgres/statements.sql"),
};

const SQLITE: Version = Version {
    schema: include_str!("sqlite/schema.sql"),
    statements: include_str!("sqlite/statements.sql"),
};

impl Version {
    /// Makes the tables of the version before in an empty database.
    async fn create(&self, url: &str) {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(url).await.unwrap();
        let schema = sqlx::raw_sql(AssertSqlSafe(self.schema));
        schema.execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// The statements by name.
    fn statements(&self) -> HashMap<String, String> {
        let parts = self.statements.split("-- ").skip(1);
        let named = parts.map(|part| part.split_once('\n').unwrap());
        named
            .map(|(name, sql)| (name.to_owned(), sql.trim().to_owned()))
            .collect()
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

fn cent() -> Usd {
    Usd::parse("0.01").unwrap()
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

/// Migrates the store, makes a funded key with a limit of a dollar, and returns it with its text.
fn fund(place: &Place, limit: &str) -> (Spender, String) {
    let key = place.fund("100");
    let terms = TermsFile {
        limit: Some(limit.to_owned()),
        ..TermsFile::default()
    };
    let spender = place.store(async |store| {
        let key_id = store.keys("acme").await.unwrap().remove(0).id;
        let change = KeyChange {
            terms: Some(terms),
            ..KeyChange::default()
        };
        store
            .by(&PROGRAM)
            .update_key(&key_id, &change)
            .await
            .unwrap();
        let organization_id = store.organizations().await.unwrap().remove(0).id;
        Spender {
            organization_id,
            key_id,
        }
    });
    (spender, key)
}

#[test]
fn a_process_of_the_version_before_and_a_new_one_share_credit_and_a_limit() {
    const LIMIT: i128 = 10;
    let postgres = Postgres::start();
    block_on(POSTGRES.create(&postgres.url()));
    let upstream = Upstream::always(reply());
    let place = Place::new(&postgres.url(), &upstream, CENT);
    let (spender, key) = fund(&place, "0.10");
    let server = Server::start(place.path());
    let ask = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    let (mut of_new, mut of_old) = (0, 0);
    block_on(async {
        let mut old = OldProcess::start(&POSTGRES, &postgres.url(), &spender).await;
        assert!(old.heartbeat().await);
        assert!(old.lease_credit(Usd::parse("1").unwrap()).await);
        let limit = Usd::from_units(cent().units() * LIMIT);
        let mut since = Instant::now();
        while since.elapsed() < Duration::from_millis(1500) {
            assert!(old.heartbeat().await);
            if old.lease_limit(limit, cent()).await {
                old.post(cent(), now_ms()).await;
                (of_old, since) = (of_old + 1, Instant::now());
            }
            let status = client::ask(server.address, &ask).status();
            if status == 200 {
                (of_new, since) = (of_new + 1, Instant::now());
            } else {
                assert_eq!(status, 402);
            }
        }
        old.clean(0).await;
        let spent = of_old + of_new;
        assert!(
            (LIMIT..=LIMIT + 2).contains(&spent),
            "{spent} of a limit of {LIMIT}"
        );
        assert!(
            of_old > 1 && of_new > 1,
            "both spend: {of_old} and {of_new}"
        );
        // Each knows what the other has spent.
        assert_eq!(old.spent().await.units(), spent * cent().units());
        old.stop().await;
    });
    let spent = Usd::from_units(cent().units() * (of_old + of_new));
    place.used(&spent.to_string());
}

#[test]
fn a_file_of_the_version_before_is_upgraded_and_takes_its_statements_still() {
    let upstream = Upstream::always(reply());
    let place = Place::new("", &upstream, CENT);
    let url = format!(
        "sqlite:{}?mode=rwc",
        place.path().join("weirgate.db").display()
    );
    block_on(SQLITE.create(&url));
    let (spender, key) = fund(&place, "0.05");
    block_on(async {
        let mut old = OldProcess::start(&SQLITE, &url, &spender).await;
        assert!(old.lease_credit(Usd::parse("1").unwrap()).await);
        for _ in 0..3 {
            assert!(old.lease_limit(Usd::parse("0.05").unwrap(), cent()).await);
            old.post(cent(), now_ms()).await;
        }
        old.clean(0).await;
        old.stop().await;
    });
    // What it spent counts: two cents are left.
    let server = Server::start(place.path());
    let ask = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    let statuses = [0; 3].map(|_| client::ask(server.address, &ask).status());
    assert_eq!(statuses, [200, 200, 402]);
    place.used("0.05");
}
