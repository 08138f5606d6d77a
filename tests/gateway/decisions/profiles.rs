//! Profiles in Redis: all processes share them, and in agent mode the original agent does too.

use serde_json::{Value, json};

use crate::redis::outage::is_degraded;
use crate::support::boot::Gateway;
use crate::support::flags::{gateway_with_env, post, refused};
use crate::support::redis::Redis;
use crate::support::until;

fn gateway(redis: &Redis, compat: &str) -> Gateway {
    bounded(redis, compat, "")
}

fn bounded(redis: &Redis, compat: &str, more: &str) -> Gateway {
    let more = format!("user_profiles = \"redis\"\ncompat = \"{compat}\"\n{more}");
    let (shared, agent) = (redis.url(), agent_url(redis));
    let mut env = vec![("WEIRGATE_SHARED__REDIS", &*shared)];
    if compat == "agent" {
        env.push(("WEIRGATE_DECISIONS__AGENT_REDIS", &*agent));
    }
    gateway_with_env(&more, &env)
}

/// Another database of the server.
fn agent_url(redis: &Redis) -> String {
    let url = redis.url();
    format!("{}/1", url.strip_suffix("/0").unwrap())
}

fn agent_connection(redis: &Redis) -> redis::Connection {
    let client = redis::Client::open(agent_url(redis)).unwrap();
    client.get_connection().unwrap()
}

fn decide(gateway: &Gateway, user: &str, country: &str) -> Value {
    let body = json!({"userId": user, "userAttributes": {"country": country}});
    let answer = post(gateway, "/v1/decide?keys=checkout", &body);
    assert_eq!(answer.status(), 200);
    answer.json()["ruleKey"].clone()
}

fn kept(connection: &mut redis::Connection, key: &str) -> Value {
    let mut get = redis::cmd("GET");
    let text: Option<String> = get.arg(key).query(connection).unwrap();
    text.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

/// SHA-256 of the SDK key `sandbox` and of the user `ada`.
const KEY: &str = concat!(
    "weirgate:ups:b7ad567477c83756aab9a542b2be04f77dbae25115d85f22070d74d8cc4779dc:",
    "fdee430d40bd57deeac186cd9790033d0f06f909a8806e7ce6e717ab7c7d5029"
);

#[test]
fn what_one_process_decided_holds_in_all() {
    let redis = Redis::start();
    let (one, other) = (gateway(&redis, "document"), gateway(&redis, "document"));
    assert_eq!(decide(&other, "ada", "FR"), "default-901");
    assert_eq!(decide(&one, "ada", "DE"), "checkout_test");
    assert_eq!(decide(&other, "ada", "FR"), "checkout_test");
    let profile = post(&other, "/v1/lookup", &json!({"userId": "ada"})).json();
    let map = &profile["experimentBucketMap"];
    assert!(map["401"]["variation_id"].is_string(), "{profile}");
    assert_eq!(&kept(&mut redis.connect(), KEY), map);
}

#[test]
fn what_is_found_is_added_and_what_is_saved_replaces() {
    let redis = Redis::start();
    let gateway = gateway(&redis, "document");
    let save = |map: Value| {
        let body = json!({"userId": "ada", "experimentBucketMap": map});
        assert_eq!(post(&gateway, "/v1/save", &body).status(), 200);
    };
    save(json!({"777": {"variation_id": "8"}}));
    assert_eq!(decide(&gateway, "ada", "DE"), "checkout_test");
    let map = kept(&mut redis.connect(), KEY);
    assert_eq!(map["777"], json!({"variation_id": "8"}));
    assert!(map["401"]["variation_id"].is_string(), "{map}");
    save(json!({}));
    assert_eq!(kept(&mut redis.connect(), KEY), json!({}));
}

/// The original agent wrote the profile, and reads it afterwards.
#[test]
fn in_agent_mode_the_key_is_the_users_id_alone() {
    let redis = Redis::start();
    let mut set = redis::cmd("SET");
    set.arg("ada").arg(r#"{"401":{"variation_id":"602"}}"#);
    set.exec(&mut agent_connection(&redis)).unwrap();
    let gateway = gateway(&redis, "agent");
    assert_eq!(decide(&gateway, "ada", "FR"), "checkout_test");
    decide(&gateway, "bob", "DE");
    let bob = kept(&mut agent_connection(&redis), "bob");
    assert!(bob["401"]["variation_id"].is_string());
}

/// Users name keys in agent mode, and none of them is one of ours.
#[test]
fn no_user_can_name_a_key_of_ours() {
    for compat in ["agent", "document"] {
        let redis = Redis::start();
        let gateway = gateway(&redis, compat);
        let save = json!({"userId": "weirgate:processes", "experimentBucketMap": {}});
        assert_eq!(post(&gateway, "/v1/save", &save).status(), 200, "{compat}");
        let mut count = redis::cmd("ZCARD");
        let count = count.arg("weirgate:processes");
        let processes: u64 = count.query(&mut redis.connect()).unwrap();
        assert_eq!(processes, 1, "{compat}");
        let mut keys = redis::cmd("KEYS");
        let agent: Vec<String> = keys.arg("*").query(&mut agent_connection(&redis)).unwrap();
        let expected: &[&str] = match compat {
            "agent" => &["weirgate:processes"],
            _ => &[],
        };
        assert_eq!(agent, expected, "{compat}");
    }
}

/// The milliseconds for which a key is kept; -1: for ever.
fn kept_ms(connection: &mut redis::Connection, key: &str) -> i64 {
    redis::cmd("PTTL").arg(key).query(connection).unwrap()
}

#[test]
fn a_profile_is_kept_for_a_time_after_its_last_use() {
    let redis = Redis::start();
    let gateway = bounded(&redis, "document", "user_profile_ttl_s = 1000");
    let mut connection = redis.connect();
    decide(&gateway, "ada", "DE");
    assert!((1..=1_000_000).contains(&kept_ms(&mut connection, KEY)));
    let mut expire = redis::cmd("EXPIRE");
    expire.arg(KEY).arg(400).exec(&mut connection).unwrap();
    // It gets the variation that it has, and nothing is written.
    decide(&gateway, "ada", "FR");
    assert!((400_001..=1_000_000).contains(&kept_ms(&mut connection, KEY)));
    let save = json!({"userId": "ada", "experimentBucketMap": {}});
    expire.exec(&mut connection).unwrap();
    assert_eq!(post(&gateway, "/v1/save", &save).status(), 200);
    assert!((400_001..=1_000_000).contains(&kept_ms(&mut connection, KEY)));
    let forever = bounded(&redis, "document", "user_profile_ttl_s = 0");
    assert_eq!(post(&forever, "/v1/save", &save).status(), 200);
    assert_eq!(kept_ms(&mut connection, KEY), -1);
}

#[test]
fn in_agent_mode_what_the_agent_wrote_stays_and_what_is_written_here_ends() {
    let redis = Redis::start();
    let mut connection = agent_connection(&redis);
    let mut set = redis::cmd("SET");
    set.arg("ada").arg(r#"{"401":{"variation_id":"602"}}"#);
    set.exec(&mut connection).unwrap();
    let gateway = gateway(&redis, "agent");
    assert_eq!(decide(&gateway, "ada", "FR"), "checkout_test");
    assert_eq!(kept_ms(&mut connection, "ada"), -1);
    decide(&gateway, "bob", "DE");
    assert!(kept_ms(&mut connection, "bob") > 0);
}

#[test]
fn no_more_profiles_of_an_sdk_key_are_written_than_may_be() {
    let redis = Redis::start();
    let gateway = bounded(&redis, "document", "user_profiles_max = 3");
    for user in ["a", "b", "c", "d", "e"] {
        assert_eq!(decide(&gateway, user, "DE"), "checkout_test");
    }
    let mut keys = redis::cmd("KEYS");
    let keys: Vec<String> = keys
        .arg("weirgate:ups:*")
        .query(&mut redis.connect())
        .unwrap();
    assert_eq!(keys.len(), 3, "{keys:?}");
    let save = json!({"userId": "f", "experimentBucketMap": {}});
    assert_eq!(refused(&post(&gateway, "/v1/save", &save)).0, 503);
}

#[test]
fn a_profile_does_not_grow_without_bound() {
    let redis = Redis::start();
    let gateway = gateway(&redis, "document");
    let large = json!({"1": {"variation_id": "v".repeat(256 << 10)}}).to_string();
    let mut connection = redis.connect();
    redis::cmd("SET")
        .arg(KEY)
        .arg(&large)
        .exec(&mut connection)
        .unwrap();
    assert_eq!(decide(&gateway, "ada", "DE"), "checkout_test");
    assert_eq!(kept(&mut connection, KEY).to_string(), large);
}

#[test]
fn without_redis_decisions_go_on_and_profiles_say_why_not() {
    let mut redis = Redis::start();
    let (document, agent) = (gateway(&redis, "document"), gateway(&redis, "agent"));
    redis.kill();
    until("degraded", || is_degraded(&document) && is_degraded(&agent));
    for gateway in [&document, &agent] {
        assert_eq!(decide(gateway, "ada", "DE"), "checkout_test");
    }
    let (user, save) = (
        json!({"userId": "ada"}),
        json!({"userId": "ada", "experimentBucketMap": {}}),
    );
    for (path, body) in [("/v1/lookup", &user), ("/v1/save", &save)] {
        let answer = post(&document, path, body);
        assert_eq!(refused(&answer).0, 503, "{path}");
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(post(&agent, path, body).status(), 200, "{path}");
    }
}
