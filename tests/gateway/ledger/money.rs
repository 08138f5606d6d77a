//! Money with several processes that are killed or lose their store or their disk: real processes, real signals.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use filters::accounts::{Mode, TermsFile};
use filters::audit::PROGRAM;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use weirgate::config;
use weirgate::store::{Credit, KeyChange, NewKey, NewProject, Store, StoreSettings};

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::CENT;
use crate::support::client::{self, ask_at_once};
use crate::support::loopback::own_address;
use crate::support::own_postgres::Postgres;
use crate::support::server::Server;
use crate::support::upstream::{Received, Upstream};
use crate::support::{POLL, every, until};

/// A model of one provider; a call of 1000 tokens of prompt and 100 of completion costs 0.0035.
pub const TOKENS: &str = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
input_price = "2.5"
output_price = "10"
max_output = 4096
capabilities = ["streaming", "cancellation"]
"#;

/// A folder in which a server can be started.
pub struct Place {
    folder: TempDir,
    toml: String,
}

impl Place {
    pub fn new(store_url: &str, upstream: &Upstream, models: &str) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let url = match store_url {
            "" => format!("sqlite:{}", folder.path().join("weirgate.db").display()),
            url => url.to_owned(),
        };
        let toml = format!(
            "[listen]\naddress = \"{2}:0\"\n[admin]\naddress = \"{2}:0\"\n\
             [models]\nfile = \"models.toml\"\n[server]\nthreads = 2\n\
             [store]\nurl = \"{url}\"\nstate_dir = \"{0}\"\nsecret = {{ file = \"{0}/secret\" }}\n\
             [providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{1}/v1\"\nkeys = []\n\
             [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{1}/v1\"\nkeys = []\n",
            folder.path().display(),
            upstream.url(),
            own_address(),
        );
        std::fs::write(folder.path().join("weirgate.toml"), &toml).unwrap();
        std::fs::write(folder.path().join("models.toml"), models).unwrap();
        std::fs::write(folder.path().join("secret"), [7; 32]).unwrap();
        Place { folder, toml }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces a part of the configuration.
    pub fn set(&mut self, from: &str, to: &str) {
        self.toml = self.toml.replace(from, to);
        std::fs::write(self.path().join("weirgate.toml"), &self.toml).unwrap();
    }

    /// Runs `work` on the store, as the command line would.
    pub fn store<T>(&self, work: impl AsyncFnOnce(&Store) -> T) -> T {
        let toml = self.toml.replace(
            "\"models.toml\"",
            &format!("\"{}/models.toml\"", self.path().display()),
        );
        let loaded = config::from_str(&toml, []).unwrap_or_else(|bad| panic!("{}", bad[0]));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let settings = StoreSettings::from_config(&loaded.config.store).unwrap();
            let store = Store::open(&settings).await.unwrap().store;
            let done = work(&store).await;
            store.close().await;
            done
        })
    }

    /// Creates the organization with this credit; returns its key.
    pub fn fund(&self, credit: &str) -> String {
        let credit = filters::money::Usd::parse(credit).unwrap();
        self.store(async |store| {
            let plan = filters::accounts::Plan::None;
            store
                .by(&PROGRAM)
                .create_organization("acme", plan, 0)
                .await
                .unwrap();
            store
                .by(&PROGRAM)
                .add_credit("acme", credit, 0)
                .await
                .unwrap();
            let new = NewKey {
                organization: "acme",
                project: "default",
                ..NewKey::default()
            };
            let (key, _) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
            key.reveal().to_owned()
        })
    }

    /// A key, with a limit, of a project in mode `byok`.
    pub fn own_key(&self) -> String {
        let terms = TermsFile {
            limit: Some("5".to_owned()),
            ..TermsFile::default()
        };
        self.store(async |store| {
            let project = NewProject {
                name: "own",
                mode: Mode::Byok,
                cache_ttl_s: None,
            };
            store
                .by(&PROGRAM)
                .create_project("acme", &project, 0)
                .await
                .unwrap();
            let added = store
                .by(&PROGRAM)
                .add_provider_key("acme", "first", "team", "sk-own", 0);
            added.await.unwrap();
            let new = NewKey {
                organization: "acme",
                project: "own",
                terms: &terms,
                ..NewKey::default()
            };
            let (key, _) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
            key.reveal().to_owned()
        })
    }

    pub fn credit(&self) -> Credit {
        self.store(async |store| store.credit("acme").await.unwrap())
    }

    /// Waits until this much credit is used, and returns the credit.
    pub fn used(&self, amount: &str) -> Credit {
        let mut seen = every(POLL, Duration::from_secs(10)).map(|_| self.credit());
        let is_used = |credit: &Credit| credit.used.to_string() == amount;
        let found = seen.find(is_used);
        found.unwrap_or_else(|| panic!("{amount} is not used, but {:?}", self.credit()))
    }
}

#[test]
fn three_processes_on_one_credit_serve_exactly_a_hundred_calls_of_a_cent() {
    let postgres = Postgres::start();
    let upstream = Upstream::always(reply());
    let places: Vec<Place> = (0..3)
        .map(|_| Place::new(&postgres.url(), &upstream, CENT))
        .collect();
    let key = places[0].fund("1.00");
    let servers: Vec<Server> = places
        .iter()
        .map(|place| Server::start(place.path()))
        .collect();
    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    let ask = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    assert_eq!(ask_at_once(&addresses, &ask, 1000), (100, 900));
    assert_eq!(upstream.requests().len(), 100);
    assert_eq!(places[0].used("1").balance().to_string(), "0");
}

#[test]
fn what_one_process_does_not_need_another_gets_before_it_refuses() {
    let postgres = Postgres::start();
    let upstream = Upstream::always(reply());
    let places = [0, 1].map(|_| Place::new(&postgres.url(), &upstream, CENT));
    let key = places[0].fund("0.02");
    // Alone, the first takes all there is.
    let first = Server::start(places[0].path());
    let ask = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    assert_eq!(client::ask(first.address, &ask).status(), 200);
    let second = Server::start(places[1].path());
    let began = Instant::now();
    assert_eq!(client::ask(second.address, &ask).status(), 200);
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(client::ask(second.address, &ask).status(), 402);
    places[0].used("0.02");
}

#[test]
fn a_limit_spent_in_one_process_holds_in_another() {
    let postgres = Postgres::start();
    let upstream = Upstream::always(reply());
    let places = [0, 1].map(|_| Place::new(&postgres.url(), &upstream, CENT));
    let key = places[0].fund("1");
    places[0].store(async |store| {
        let terms = TermsFile {
            limit_per: [("month".to_owned(), "0.02".to_owned())].into(),
            ..TermsFile::default()
        };
        let id = store.keys("acme").await.unwrap().remove(0).id;
        let wanted = KeyChange {
            terms: Some(terms),
            ..KeyChange::default()
        };
        store.by(&PROGRAM).update_key(&id, &wanted).await.unwrap();
    });
    let [first, second] = places.each_ref().map(|place| Server::start(place.path()));
    let ask = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    assert_eq!(client::ask(first.address, &ask).status(), 200);
    assert_eq!(client::ask(first.address, &ask).status(), 200);
    places[0].used("0.02");
    let refused = client::ask(second.address, &ask);
    assert_eq!(refused.status(), 402, "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], "key_limit_reached");
    let shown = client::ask(second.address, &Ask::get("/v1/key").key(&key));
    assert_eq!(shown.json()["data"]["usage"], "0.02");
}

#[test]
fn what_is_spent_in_one_process_is_shown_by_another_that_knew_less() {
    let postgres = Postgres::start();
    let upstream = Upstream::always(reply());
    let places = [0, 1].map(|_| Place::new(&postgres.url(), &upstream, CENT));
    let key = places[0].fund("1");
    let [first, second] = places.each_ref().map(|place| Server::start(place.path()));
    let usage = || {
        let shown = client::ask(second.address, &Ask::get("/v1/key").key(&key));
        shown.json()["data"]["usage"].clone()
    };
    assert_eq!(usage(), "0");
    let ask = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    assert_eq!(client::ask(first.address, &ask).status(), 200);
    until("it is read again", || usage() == "0.01");
}

#[test]
fn a_store_that_goes_and_returns_loses_nothing() {
    let mut postgres = Postgres::start();
    let upstream = Upstream::always(reply());
    let place = Place::new(&postgres.url(), &upstream, CENT);
    let key = place.fund("1");
    let own = Ask::post("/v1/chat/completions", PLAIN).key(&place.own_key());
    let server = Server::start(place.path());
    let ask = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    assert_eq!(client::ask(server.address, &ask).status(), 200);
    postgres.kill();
    let gone = Instant::now();
    // The journal absorbs the outage, and no call fails.
    for _ in 0..5 {
        assert_eq!(client::ask(server.address, &ask).status(), 200);
    }
    // There is credit for so many calls.
    let calls = every(Duration::from_millis(250), Duration::from_secs(16));
    let mut answers = calls.map(|_| client::ask(server.address, &ask));
    let refused = answers.find(|answer| answer.status() != 200);
    let refused = refused.expect("credit is spent on and on");
    assert_eq!(refused.status(), 503);
    assert!(refused.header("retry-after").is_some());
    // Calls that the caller's own provider bills still succeed.
    assert_eq!(client::ask(server.address, &own).status(), 200);
    assert!(
        gone.elapsed() > Duration::from_secs(8),
        "{:?}",
        gone.elapsed()
    );
    let health = client::ask(server.address, &Ask::get("/?skip=redis"));
    assert_eq!(health.status(), 503);
    assert_eq!(health.json()["health"]["database"]["connected"], false);
    let skipped = client::ask(server.address, &Ask::get("/?skip=redis,database"));
    assert_eq!(skipped.status(), 200);
    postgres.start_again();
    until("credit is spent again", || {
        client::ask(server.address, &ask).status() == 200
    });
    let is_ours = |it: &&Received| it.header("authorization").is_none();
    let served = upstream.requests().iter().filter(is_ours).count();
    let used = format!("0.{served:02}");
    place.used(used.trim_end_matches('0'));
    // A store that is away has refused no call.
    assert!(!place.path().join("refused_calls.jsonl").exists());
}

/// Times of calls one after the other, for so long; the slowest in a hundred, in milliseconds.
fn slowest_in_a_hundred(server: SocketAddr, ask: &Ask, time: Duration) -> u128 {
    let until = Instant::now() + time;
    let mut times = Vec::new();
    let mut client = client::Client::connect(server);
    while Instant::now() < until {
        let begun = Instant::now();
        assert_eq!(client.ask(ask).status(), 200);
        times.push(begun.elapsed().as_millis());
    }
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

#[test]
fn a_store_that_stalls_for_five_seconds_delays_no_call() {
    const STALL: Duration = Duration::from_secs(5);
    let postgres = Postgres::start();
    let upstream = Upstream::always(reply());
    let place = Place::new(&postgres.url(), &upstream, CENT);
    let key = place.fund("1000");
    let server = Server::start(place.path());
    let ask = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    let before = slowest_in_a_hundred(server.address, &ask, Duration::from_secs(2));
    let (url, (locked, is_locked)) = (postgres.url(), std::sync::mpsc::channel());
    let (over, is_over) = tokio::sync::oneshot::channel();
    let stalling = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let mut connection = PgConnection::connect(&url).await.unwrap();
            let tables = "LOCK TABLE call_batches, usage_hours, balances, leases, spent, api_keys, organizations IN ACCESS EXCLUSIVE MODE";
            let change = loop {
                let mut change = connection.begin().await.unwrap();
                match sqlx::raw_sql(tables).execute(&mut *change).await {
                    Ok(_) => break change,
                    // The server locks the same tables in an order of its own.
                    Err(error) => assert!(error.to_string().contains("deadlock"), "{error}"),
                }
            };
            locked.send(()).unwrap();
            _ = is_over.await;
            change.rollback().await.unwrap();
        });
    });
    is_locked.recv().unwrap();
    let stalled = slowest_in_a_hundred(server.address, &ask, STALL);
    over.send(()).unwrap();
    stalling.join().unwrap();
    assert!(
        stalled <= before * 3 + 25,
        "{stalled} ms, and {before} ms before"
    );
    let used = upstream.requests().len();
    place.used(
        format!("{}.{:02}", used / 100, used % 100)
            .trim_end_matches('0')
            .trim_end_matches('.'),
    );
}

/// The request ids and costs (1e-9 USD) of the ledger's calls.
pub fn rows(place: &Place) -> Vec<(String, i64)> {
    place.store(async |store| {
        let mut rows = Vec::new();
        let read = store.visit_calls(
            (i64::MIN, i64::MAX),
            |_| true,
            |call| {
                let nano = call.usage.total().units() / 1_000_000_000;
                rows.push((call.owner.request_id.to_string(), nano as i64));
            },
        );
        read.await.unwrap();
        rows
    })
}

#[test]
fn a_full_disk_refuses_calls_on_credit_and_loses_nothing() {
    let upstream = Upstream::always(reply());
    let place = Place::new("", &upstream, CENT);
    let key = place.fund("100");
    let server = Server::start(place.path());
    // Some calls still fit into the journal; then neither that nor the store can be written.
    server.limit_files(32 << 10);
    let ask = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    let mut served = Vec::new();
    let refused = loop {
        let id = format!("call-{}", served.len());
        let named = ask.clone().header("x-request-id", &id);
        let answer = client::ask(server.address, &named);
        if answer.status() != 200 {
            break answer;
        }
        served.push(id);
        assert!(served.len() < 1000, "the limit is met");
    };
    assert_eq!(refused.status(), 503);
    // From then on a call is refused before a provider is called.
    let known = client::ask(server.address, &ask);
    assert_eq!(known.status(), 503);
    assert!(known.header("retry-after").is_some());
    server.kill();
    Server::start(place.path()).stop();
    let rows = rows(&place);
    let is_there = |of: &&String| rows.iter().any(|(id, _)| id == *of);
    let missing: Vec<_> = served.iter().filter(|id| !is_there(id)).collect();
    assert!(missing.is_empty(), "{missing:?} of {}", served.len());
    assert!(rows.len() <= served.len() + 1);
    let spent = place.credit().used.units();
    assert_eq!(spent, rows.len() as i128 * 10_i128.pow(16));
}

#[test]
fn a_start_without_its_store_serves_own_keys_and_then_credit() {
    let mut postgres = Postgres::start();
    let upstream = Upstream::always(reply());
    let place = Place::new(&postgres.url(), &upstream, CENT);
    let key = place.fund("1");
    let chat = |key: &str| Ask::post("/v1/chat/completions", PLAIN).key(key);
    let own_key = place.own_key();
    let (credit, own) = (chat(&key), chat(&own_key));
    let revoked = place.store(async |store| {
        let new = NewKey {
            organization: "acme",
            project: "own",
            ..NewKey::default()
        };
        store.by(&PROGRAM).create_key(&new, 0).await.unwrap()
    });
    let server = Server::start(place.path());
    assert_eq!(client::ask(server.address, &credit).status(), 200);
    let late = chat(revoked.0.reveal());
    assert_eq!(client::ask(server.address, &late).status(), 200);
    let id = &revoked.1.id;
    place.store(async |store| store.by(&PROGRAM).revoke_key(id, 0).await.unwrap());
    let is_revoked = |_| client::ask(server.address, &late).status() == 401;
    assert!(every(POLL, Duration::from_secs(5)).any(is_revoked));
    let copy = place.path().join("accounts.jsonl");
    let mode = std::fs::metadata(&copy).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&copy).unwrap();
    for secret in [&key, &own_key, revoked.0.reveal(), "sk-own"] {
        assert!(!text.contains(secret), "{secret}");
    }
    // The last calls are in the journal alone.
    postgres.kill();
    assert_eq!(client::ask(server.address, &credit).status(), 200);
    server.kill();
    let started = Instant::now();
    let server = Server::start(place.path());
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(client::ask(server.address, &own).status(), 200);
    assert_eq!(client::ask(server.address, &late).status(), 401);
    let refused = client::ask(server.address, &credit);
    assert_eq!(refused.status(), 503);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(
        client::ask(server.admin, &Ask::get("/readyz")).status(),
        200
    );
    assert_eq!(client::ask(server.address, &Ask::get("/")).status(), 503);
    // Without a copy no key can be checked.
    let elsewhere = Place::new(&postgres.url(), &upstream, CENT);
    let empty = Server::start(elsewhere.path());
    assert_eq!(client::ask(empty.address, &own).status(), 503);
    assert_eq!(client::ask(empty.admin, &Ask::get("/readyz")).status(), 200);
    postgres.start_again();
    for server in [&server, &empty] {
        until("credit is spent", || {
            client::ask(server.address, &credit).status() == 200
        });
        assert_eq!(client::ask(server.address, &late).status(), 401);
    }
    server.stop();
    empty.stop();
    // Two calls before the start, the second of them from the journal, and one of each server.
    assert_eq!(place.used("0.04").reserved.to_string(), "0");
}
