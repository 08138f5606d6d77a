//! Segments of users: one fetch for all who ask at once, and in Redis for all processes, in agent mode as the original
//! agent keeps them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::decisions::endpoints::send_odp_event::{datafile, told};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::flags::gateway_with_env;
use crate::support::redis::Redis;
use crate::support::upstream::Upstream;

/// A gateway with a project that names the platform.
struct Segmented {
    gateway: Gateway,
    _file: tempfile::NamedTempFile,
}

impl Segmented {
    fn start(platform: &Upstream, compat: &str, redis: Option<&Redis>) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), datafile(&platform.url()).to_string()).unwrap();
        let cache = redis.map_or("memory", |_| "redis");
        let more = format!(
            "compat = {compat:?}\nodp = {{ hosts = [{:?}], segments_cache = {cache:?} }}\n[[decisions.projects]]\nsdk_key = \"shop\"\ndatafile = {:?}\n",
            platform.url(),
            file.path()
        );
        let (shared, agent) = redis.map(urls).unwrap_or_default();
        let mut env = vec![("WEIRGATE_SHARED__REDIS", &*shared)];
        if compat == "agent" {
            env.push(("WEIRGATE_DECISIONS__AGENT_REDIS", &*agent));
        }
        Self {
            gateway: gateway_with_env(&more, &env),
            _file: file,
        }
    }

    fn is_in(&self, user: &str, options: &[&str]) -> bool {
        let body = json!({"userId": user, "fetchSegments": true, "fetchSegmentsOptions": options});
        let call = Ask::post("/v1/decide?keys=lounge", body.to_string());
        let answer = ask(
            self.gateway.address(),
            &call.header("X-Platform-SDK-Key", "shop"),
        );
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer.json()["enabled"].as_bool().unwrap()
    }
}

/// The database that processes share, and the agent's.
fn urls(redis: &Redis) -> (String, String) {
    let shared = redis.url();
    let agent = format!("{}/1", shared.strip_suffix("/0").unwrap());
    (shared, agent)
}

fn connect(url: String) -> redis::Connection {
    redis::Client::open(url).unwrap().get_connection().unwrap()
}

fn keys(connection: &mut redis::Connection, pattern: &str) -> Vec<String> {
    redis::cmd("KEYS").arg(pattern).query(connection).unwrap()
}

/// A value, and the seconds that it lives.
fn kept(connection: &mut redis::Connection, key: &str) -> (Value, i64) {
    let text: String = redis::cmd("GET").arg(key).query(connection).unwrap();
    let ttl = redis::cmd("TTL").arg(key).query(connection).unwrap();
    (serde_json::from_str(&text).unwrap(), ttl)
}

#[test]
fn ten_callers_at_once_cause_one_fetch() {
    let redis = Redis::start();
    for redis in [None, Some(&redis)] {
        let platform = Upstream::always(told(&["vip"]).before(Duration::from_millis(500)));
        let segmented = Segmented::start(&platform, "document", redis);
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..10)
                .map(|_| scope.spawn(|| segmented.is_in("ada", &[])))
                .collect();
            assert!(all.into_iter().all(|one| one.join().unwrap()));
        });
        assert_eq!(platform.requests().len(), 1);
        // An empty list goes to all who wait, and to nobody later.
        let platform = Upstream::always(told(&[]).before(Duration::from_millis(500)));
        let segmented = Segmented::start(&platform, "document", redis);
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| assert!(!segmented.is_in("bob", &[])));
            }
        });
        assert_eq!(platform.requests().len(), 1);
        assert!(!segmented.is_in("bob", &[]));
        assert_eq!(platform.requests().len(), 2);
    }
}

/// The original agent wrote the segments of one user, and reads those of the other.
#[test]
fn in_agent_mode_the_keys_and_values_are_the_agents() {
    let redis = Redis::start();
    let (shared, agent) = urls(&redis);
    let (mut shared, mut agent) = (connect(shared), connect(agent));
    let mut set = redis::cmd("SET");
    set.arg("fs_user_id-$-ada").arg(r#"["vip"]"#);
    set.exec(&mut agent).unwrap();
    let platform = Upstream::always(told(&["vip"]));
    let segmented = Segmented::start(&platform, "agent", Some(&redis));
    assert!(segmented.is_in("ada", &[]));
    assert_eq!(platform.requests().len(), 0);
    assert!(segmented.is_in("bob", &[]));
    let (value, ttl) = kept(&mut agent, "fs_user_id-$-bob");
    assert_eq!(value, json!(["vip"]));
    assert!((1..=600).contains(&ttl), "{ttl}");
    assert_eq!(keys(&mut shared, "*fs_user*"), Vec::<String>::new());
    assert_eq!(keys(&mut shared, "*segments*"), Vec::<String>::new());
    // A reset takes this user's key away alone.
    assert!(segmented.is_in("ada", &["RESET_CACHE", "IGNORE_CACHE"]));
    assert_eq!(keys(&mut agent, "fs_user_id*"), ["fs_user_id-$-bob"]);
    assert_eq!(platform.requests().len(), 2);
}

#[test]
fn in_document_mode_all_processes_share_them_and_the_key_names_nobody() {
    let redis = Redis::start();
    let platform = Upstream::always(told(&["vip"]));
    let one = Segmented::start(&platform, "document", Some(&redis));
    let other = Segmented::start(&platform, "document", Some(&redis));
    assert!(one.is_in("ada", &[]) && other.is_in("ada", &[]));
    assert_eq!(platform.requests().len(), 1);
    let (shared, agent) = urls(&redis);
    let found = keys(&mut connect(shared), "*segments*");
    // SHA-256 of `shop`, a NUL and `ada`.
    let key = "weirgate:segments:add6045959f1da63c49aebec42dc36813190731907d08b3b98341ebe27252145";
    assert_eq!(found, [key]);
    assert_eq!(keys(&mut connect(agent), "*"), Vec::<String>::new());
}
