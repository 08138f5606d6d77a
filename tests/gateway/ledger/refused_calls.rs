//! Calls that the store refuses: they are set aside, and those behind them are stored.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use filters::audit::PROGRAM;
use sqlx::{Connection, SqliteConnection};
use weirgate::store::NewKey;

use crate::ledger::money::{Place, rows};
use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::CENT;
use crate::support::client;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::Upstream;

/// Another key of the organization, and its id.
fn another_key(place: &Place) -> (String, String) {
    place.store(async |store| {
        let new = NewKey {
            organization: "acme",
            project: "default",
            ..NewKey::default()
        };
        let (key, issued) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
        (key.reveal().to_owned(), issued.id)
    })
}

/// Runs a statement on the server's database.
fn execute(folder: &Path, sql: String) {
    let url = format!("sqlite:{}", folder.join("weirgate.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let mut database = SqliteConnection::connect(&url).await.unwrap();
        let query = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
        query.execute(&mut database).await.unwrap();
    });
}

#[test]
fn calls_that_the_store_refuses_are_set_aside_and_the_others_are_stored() {
    let upstream = Upstream::always(reply());
    let place = Place::new("", &upstream, CENT);
    let key = place.fund("1");
    let (refused, refused_id) = another_key(&place);
    let server = Server::start(place.path());
    execute(
        place.path(),
        format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON spent WHEN NEW.key_id = '{refused_id}' \
             BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        ),
    );
    for n in 0..10 {
        let key = if n % 4 == 2 { &refused } else { &key };
        let ask = Ask::post("/v1/chat/completions", PLAIN)
            .key(key)
            .header("x-request-id", &format!("call-{n}"));
        assert_eq!(client::ask(server.address, &ask).status(), 200);
    }
    // Calls 2 and 6 are refused.
    place.used("0.08");
    let file = place.path().join("refused_calls.jsonl");
    let lines = || std::fs::read_to_string(&file).unwrap_or_default();
    until("both are set aside", || lines().lines().count() == 2);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let lines_of = |id: &str| {
        let texts = lines();
        let lines = texts.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(line["error"].as_str().unwrap().contains("not this one"));
            line["call"]["owner"]["request_id"] == id
        });
        lines.filter(|is_its| *is_its).count()
    };
    assert_eq!((lines_of("call-2"), lines_of("call-6")), (1, 1));
    let metrics = client::ask(server.admin, &Ask::get("/metrics"));
    let said = "weirgate_ledger_calls_refused_total 2\n";
    assert!(metrics.text().contains(said), "{}", metrics.text());
    // The journal may bring them once more after a kill, and they are not set aside twice.
    server.kill();
    Server::start(place.path()).stop();
    assert_eq!(lines().lines().count(), 2);
    assert_eq!(rows(&place).len(), 8);
    assert_eq!(place.credit().reserved.to_string(), "0");
    place.used("0.08");
}
