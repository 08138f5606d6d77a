//! Sessions: whose they are, which ids are none, and what every process knows of them.

use serde_json::json;

use super::{code, result, rpc};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS, create_key};
use crate::support::client::ask;
use crate::support::process::Process;
use crate::support::redis::Redis;

pub const SESSION: &str = "Mcp-Session-Id";

/// The request that begins a session of this revision.
pub fn initialize(revision: &str) -> Ask {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params});
    Ask::post("/mcp", body.to_string()).header("Accept", "application/json, text/event-stream")
}

/// Begins a session and returns its id.
pub fn begin(gateway: &Gateway, key: &str) -> String {
    let answer = ask(gateway.address(), &initialize("2025-11-25").key(key));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.header(SESSION).expect("a session").to_owned()
}

fn ping(gateway: &Gateway) -> Ask {
    rpc(gateway, "ping", json!({}))
}

#[test]
fn a_session_is_of_the_key_that_began_it() {
    let gateway = Gateway::start("", MODELS);
    let session = begin(&gateway, &gateway.key);
    assert!(session.bytes().all(|byte| byte.is_ascii_graphic()));
    assert_ne!(session, begin(&gateway, &gateway.key));
    let held = |request: Ask| request.header(SESSION, &session);
    assert_eq!(result(&gateway, &held(ping(&gateway))), json!({}));
    // Its revision need not be said again.
    let bare = held(ping(&gateway)).without("MCP-Protocol-Version");
    assert_eq!(result(&gateway, &bare), json!({}));
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let told = ask(gateway.address(), &held(ping(&gateway)).body(body));
    assert_eq!(told.status(), 202);
    // Clients without sessions go on, and one that names a session begins a new one all the same.
    assert_eq!(result(&gateway, &ping(&gateway)), json!({}));
    let again = initialize("2025-06-18").key(&gateway.key);
    let answer = ask(
        gateway.address(),
        &again.header(SESSION, "of another process"),
    );
    assert_eq!(answer.status(), 200);
    assert!(answer.header(SESSION).is_some_and(|id| id != session));
    let other = gateway.change(create_key);
    let foreign = held(ping(&gateway)).without("Authorization").key(&other);
    let mut altered = session.clone();
    altered.replace_range(20..21, if &session[20..21] == "A" { "B" } else { "A" });
    let altered = ping(&gateway).header(SESSION, &altered);
    for request in [foreign, altered, ping(&gateway).header(SESSION, "x")] {
        let answer = ask(gateway.address(), &request);
        assert_eq!(code(&answer), (404, json!(-32000)), "{}", answer.text());
        assert!(answer.text().contains("initialize"), "{}", answer.text());
        assert_eq!(answer.json()["id"], 7);
    }
    let doubled = held(held(ping(&gateway)));
    let answer = ask(gateway.address(), &doubled);
    assert_eq!(code(&answer), (400, json!(-32600)));
}

#[test]
fn revisions_without_sessions_get_none_and_read_none() {
    let gateway = Gateway::start("", MODELS);
    let refused = rpc(&gateway, "initialize", json!({"capabilities": {}}));
    let answer = ask(gateway.address(), &refused);
    assert_eq!(
        (code(&answer).1, answer.header(SESSION)),
        (json!(-32602), None)
    );
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let request = rpc(&gateway, "tools/list", json!({"_meta": meta}))
        .without("MCP-Protocol-Version")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/list")
        .header(SESSION, "x");
    let answer = ask(gateway.address(), &request);
    assert_eq!((answer.status(), answer.header(SESSION)), (200, None));
}

fn ping_of(session: &str, key: &str) -> Ask {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
    Ask::post("/mcp", body.to_string())
        .key(key)
        .header("Accept", "application/json, text/event-stream")
        .header(SESSION, session)
}

#[test]
fn a_session_outlives_its_process_and_ends_in_all() {
    let redis = Redis::start();
    let mut first = Process::start(&format!("[shared]\nredis = \"{}\"", redis.url()));
    let second = first.another();
    let key = first.key().to_owned();
    let begun = [(); 2].map(|()| {
        let answer = ask(first.address, &initialize("2025-11-25").key(&key));
        answer.header(SESSION).unwrap().to_owned()
    });
    for session in &begun {
        let answer = ask(second.address, &ping_of(session, &key));
        assert_eq!(
            (answer.status(), answer.json()["result"].clone()),
            (200, json!({}))
        );
    }
    let end = Ask::new("DELETE", "/mcp").key(&key);
    let answer = ask(first.address, &end.header(SESSION, &begun[0]));
    assert_eq!(answer.status(), 204, "{}", answer.text());
    assert_eq!(ask(second.address, &ping_of(&begun[0], &key)).status(), 404);
    first.signal("-KILL");
    assert!(first.wait(crate::support::WAIT_TIMEOUT).is_some());
    assert_eq!(ask(second.address, &ping_of(&begun[1], &key)).status(), 200);
    drop(redis);
    // Without Redis a session goes on, and an end that was learned of stays one.
    assert_eq!(ask(second.address, &ping_of(&begun[1], &key)).status(), 200);
    assert_eq!(ask(second.address, &ping_of(&begun[0], &key)).status(), 404);
}

#[test]
fn the_ended_sessions_of_a_key_have_a_bound_and_an_end() {
    let redis = Redis::start();
    let gateway = Process::start(&format!("[shared]\nredis = \"{}\"", redis.url()));
    let key = gateway.key().to_owned();
    let end = || {
        let begun = ask(gateway.address, &initialize("2025-11-25").key(&key));
        let session = begun.header(SESSION).unwrap().to_owned();
        let end = Ask::new("DELETE", "/mcp").key(&key);
        let ended = ask(gateway.address, &end.header(SESSION, &session));
        assert_eq!(ended.status(), 204, "{}", ended.text());
    };
    end();
    let mut connection = redis.connect();
    let names = redis::cmd("KEYS").arg("weirgate:mcp:ended:*").to_owned();
    let names: Vec<String> = names.query(&mut connection).unwrap();
    let [name] = &*names else {
        panic!("one for the key: {names:?}")
    };
    let mut add = redis::cmd("ZADD");
    add.arg(name);
    for number in 0..2_000 {
        add.arg(4_000_000_000_u64).arg(format!("session {number}"));
    }
    add.exec(&mut connection).unwrap();
    end();
    let mut ask = |command: &str| -> i64 {
        let mut asked = redis::cmd(command);
        asked.arg(name).query(&mut connection).unwrap()
    };
    assert_eq!(ask("ZCARD"), 1024);
    assert!(ask("TTL") > 0);
}
