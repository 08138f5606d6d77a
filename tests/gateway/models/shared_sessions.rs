//! Sessions in Redis: what begins in one process goes on in the other, and nothing needs Redis.

use std::fs;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::loopback::own_address;
use crate::support::process::weirgate;
use crate::support::redis::Redis;
use crate::support::script::Reply;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::Upstream;

const MODELS: &str = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
input_price = "1"
output_price = "1"
[[models.providers]]
provider = "second"
name = "chat-at-second"
input_price = "2"
output_price = "2"
"#;

/// Two processes of one store with one Redis. The first provider, the cheaper one, fails when it is told to.
struct Fleet {
    processes: [Server; 2],
    key: String,
    _folders: [TempDir; 2],
    _providers: [Upstream; 2],
}

impl Fleet {
    fn start(redis: &Redis) -> Fleet {
        let first = Upstream::answering(|request| {
            let body = String::from_utf8_lossy(&request.body);
            match body.contains("without-first") {
                true => Reply::json(500, "{}"),
                false => reply(),
            }
        });
        let second = Upstream::always(reply());
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        for folder in &folders {
            let listener = format!("{}:0", own_address());
            let toml = format!(
                "[listen]\naddress = \"{listener}\"\n[admin]\naddress = \"{listener}\"\n[models]\nfile = \"models.toml\"\n\
                 [routing]\nexploration = 0.0\n[shared]\nredis = \"{}\"\n\
                 [providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n\
                 [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
                redis.url(),
                first.url(),
                second.url()
            );
            fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
            fs::write(folder.path().join("models.toml"), MODELS).unwrap();
        }
        let own = folders[0].path();
        let run = |words: &[&str]| {
            let done = weirgate(own, words);
            assert!(done.status.success(), "{words:?}: {done:?}");
            String::from_utf8(done.stdout).unwrap()
        };
        run(&["org", "create", "acme"]);
        run(&["credit", "add", "--org", "acme", "1000"]);
        let key = run(&["key", "create", "--org", "acme"]);
        let other = folders[1].path().join("var");
        fs::create_dir(&other).unwrap();
        fs::copy(own.join("var/secret.key"), other.join("secret.key")).unwrap();
        run(&["backup", other.join("weirgate.db").to_str().unwrap()]);
        let fleet = Fleet {
            processes: [0, 1].map(|at: usize| Server::start(folders[at].path())),
            key: key.lines().last().unwrap().to_owned(),
            _folders: folders,
            _providers: [first, second],
        };
        // One failure among so many answers does not make the first provider a bad one.
        for process in [0, 1] {
            (0..30).for_each(|at| {
                assert_eq!(
                    fleet.provider(process, &format!("warm {at}"), "Hi"),
                    "first"
                )
            });
        }
        fleet
    }

    /// The provider that answers a request of a session, and asserts that it is answered.
    fn provider(&self, process: usize, session: &str, content: &str) -> String {
        let body =
            format!(r#"{{"model":"chat","messages":[{{"role":"user","content":"{content}"}}]}}"#);
        let request = Ask::post("/v1/chat/completions", body);
        let request = request.key(&self.key).header("x-session-id", session);
        let answer = ask(self.processes[process].address, &request);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let provider = answer.json()["metadata"]["used_provider"].clone();
        provider.as_str().unwrap().to_owned()
    }

    /// Moves a session to the second provider.
    fn move_session(&self, process: usize, session: &str) {
        assert_eq!(self.provider(process, session, "without-first"), "second");
    }
}

/// The keys of sessions, once there is another one than these.
fn new_key(redis: &Redis, known: &[String]) -> String {
    let mut connection = redis.connect();
    let mut found = None;
    until("a shared session", || {
        let mut keys = redis::cmd("KEYS");
        let names: Vec<String> = keys
            .arg("weirgate:session:*")
            .query(&mut connection)
            .unwrap();
        found = names.into_iter().find(|name| !known.contains(name));
        found.is_some()
    });
    found.unwrap()
}

fn keys(redis: &Redis) -> Vec<String> {
    let mut keys = redis::cmd("KEYS");
    let keys = keys.arg("weirgate:session:*");
    keys.query(&mut redis.connect()).unwrap()
}

#[test]
fn a_session_begun_in_one_process_goes_on_in_the_other() {
    let redis = Redis::start();
    let fleet = Fleet::start(&redis);
    // On a busy machine Redis may take longer than a request waits.
    let is_shared = (0..20).any(|at| {
        let (session, known) = (format!("shared {at}"), keys(&redis));
        fleet.move_session(0, &session);
        let name = new_key(&redis, &known);
        let ttl: i64 = redis::cmd("TTL")
            .arg(&name)
            .query(&mut redis.connect())
            .unwrap();
        assert!((3500..=3600).contains(&ttl), "{ttl}");
        fleet.provider(1, &session, "Hi") == "second"
    });
    assert!(is_shared);
    assert_eq!(fleet.provider(1, "another", "Hi"), "first");
}

/// Source: docs/decisions.md 36.
#[test]
fn a_turn_that_is_sent_to_another_process_at_once_finds_its_session() {
    let redis = Redis::start();
    let fleet = Fleet::start(&redis);
    let found = (0..100).filter(|at| {
        let session = format!("at once {at}");
        fleet.move_session(0, &session);
        fleet.provider(1, &session, "Hi") == "second"
    });
    // On a busy machine Redis may take longer than a request waits.
    let found = found.count();
    assert!(found >= 95, "{found} of 100");
}

#[test]
fn garbage_in_redis_binds_no_session() {
    let redis = Redis::start();
    let fleet = Fleet::start(&redis);
    let known = keys(&redis);
    fleet.move_session(0, "own");
    let own = new_key(&redis, &known);
    let mut connection = redis.connect();
    let value: Vec<u8> = redis::cmd("GET").arg(&own).query(&mut connection).unwrap();
    let mut flipped = value.clone();
    flipped[3] ^= 1;
    for (at, garbage) in [b"garbage".to_vec(), value, flipped, vec![0; 1 << 20]]
        .into_iter()
        .enumerate()
    {
        let (session, known) = (format!("other {at}"), keys(&redis));
        fleet.move_session(0, &session);
        let name = new_key(&redis, &known);
        redis::cmd("SET")
            .arg(&name)
            .arg(&garbage)
            .exec(&mut connection)
            .unwrap();
        assert_eq!(fleet.provider(1, &session, "Hi"), "first", "{at}");
    }
}

#[test]
fn without_redis_sessions_go_on_and_nothing_is_slower_than_fifty_milliseconds() {
    let mut redis = Redis::start();
    let fleet = Fleet::start(&redis);
    let times = |what: &str| -> Vec<Duration> {
        let mut times: Vec<Duration> = (0..15)
            .map(|at| {
                let started = Instant::now();
                fleet.provider(0, &format!("{what} {at}"), "Hi");
                started.elapsed()
            })
            .collect();
        times.sort_unstable();
        times
    };
    let usual = times("usual");
    let most = usual[7] + Duration::from_millis(50);
    redis.pause();
    let hanging = times("hanging");
    assert!(hanging[7] <= most, "{hanging:?} {usual:?}");
    redis.resume();
    redis.kill();
    let killed = times("killed");
    assert!(killed[7] <= most, "{killed:?} {usual:?}");
    fleet.move_session(0, "alone");
    assert_eq!(fleet.provider(0, "alone", "Hi"), "second");
}
