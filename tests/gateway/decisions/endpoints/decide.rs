//! `POST /v1/decide`.

use serde_json::{Value, json};

use crate::decisions::endpoints::batch::operation;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::described;
use crate::support::flags::{agent, call, gateway, gateway_with_env, post, refused};
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::Upstream;

fn ada() -> Value {
    json!({"userId": "ada", "userAttributes": {"version": "2.1", "country": "FR"}})
}

/// Contract: decision-agent 1 It answers over
/// Contract: decision-agent 2.2 decide
/// Contract: decision-agent 2.3 decide
/// Contract: decision-agent 4 POST /v1/decide
#[test]
fn one_key_is_an_object_several_and_none_are_lists() {
    let gateway = gateway("");
    let one = post(&gateway, "/v1/decide?keys=dark_mode", &ada()).json();
    assert_eq!(
        one,
        json!({"variationKey": "on", "enabled": true, "ruleKey": "new_versions", "flagKey": "dark_mode",
               "userContext": {"userId": "ada", "attributes": {"version": "2.1", "country": "FR"}},
               "reasons": [], "variables": {}})
    );
    let keys = |answer: Value| -> Vec<String> {
        let items = answer.as_array().unwrap().iter();
        items
            .map(|item| item["flagKey"].as_str().unwrap().to_owned())
            .collect()
    };
    let several = post(
        &gateway,
        "/v1/decide?keys=dark_mode&keys=checkout&keys=dark_mode",
        &ada(),
    );
    assert_eq!(keys(several.json()), ["dark_mode", "checkout"]);
    assert_eq!(
        keys(post(&gateway, "/v1/decide", &ada()).json()),
        ["checkout", "dark_mode"]
    );
}

fn over_the_bound(answer: &Answer) -> bool {
    let (status, error) = refused(answer);
    status == 413
        && error.ends_with(
            "at most 16777216 are answered at once: ask for fewer flags, or with a smaller user",
        )
}

/// `name=0&name=1…`: this many different keys.
fn keys(name: &str, count: usize) -> String {
    let pairs: Vec<String> = (0..count).map(|key| format!("{name}={key}")).collect();
    pairs.join("&")
}

#[test]
fn a_small_request_makes_no_answer_beyond_the_bound() {
    let body = json!({"userId": "u", "userAttributes": {"a": "x".repeat(64_000)}});
    for gateway in [gateway(""), agent("")] {
        let path = |count| format!("/v1/decide?{}", keys("keys", count));
        assert!(over_the_bound(&post(&gateway, &path(300), &body)));
        assert_eq!(post(&gateway, &path(200), &body).status(), 200);
        let long = json!({"userId": "x".repeat(64_000)});
        let path = format!("/v1/activate?{}", keys("featureKey", 300));
        assert!(over_the_bound(&post(&gateway, &path, &long)));
    }
}

/// The reasons name a forced decision with the user's id, also for flags that are not in the response.
#[test]
fn reasons_that_would_fit_no_answer_are_not_held_either() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flags.json");
    let flags: Vec<Value> = (0..100)
        .map(|flag| {
            json!({"id": format!("{flag}"), "key": format!("f{flag}"), "rolloutId": "",
                   "experimentIds": [], "variables": []})
        })
        .collect();
    let datafile = json!({"version": "4", "revision": "1", "featureFlags": flags});
    std::fs::write(&path, datafile.to_string()).unwrap();
    let project = format!("[[decisions.projects]]\nsdk_key = \"many\"\ndatafile = {path:?}");
    let (document, agent) = (gateway(&project), agent(&project));
    let asked = |gateway: &Gateway, id_bytes: usize| {
        let forced: Vec<Value> = (0..100)
            .map(|flag| json!({"flagKey": format!("f{flag}"), "variationKey": "none"}))
            .collect();
        let body = json!({"userId": "u".repeat(id_bytes), "forcedDecisions": forced,
                          "decideOptions": ["INCLUDE_REASONS", "ENABLED_FLAGS_ONLY"]});
        let call = call("/v1/decide", &body).without("X-Platform-SDK-Key");
        ask(
            gateway.address(),
            &call.header("X-Platform-SDK-Key", "many"),
        )
    };
    assert_eq!(asked(&agent, 100_000).json(), json!([]));
    assert!(over_the_bound(&asked(&agent, 200_000)));
    // Only the agent quotes it in full.
    assert_eq!(asked(&document, 200_000).json(), json!([]));
}

#[test]
fn a_call_names_a_thousand_keys_at_most() {
    let gateway = gateway("");
    for (path, name) in [
        ("decide", "keys"),
        ("activate", "featureKey"),
        ("activate", "experimentKey"),
    ] {
        // So many keys are no target of a request, but of an operation of a batch.
        let named = |count| {
            let url = format!("/v1/{path}?{}&{name}=0", keys(name, count));
            let batch = json!({"operations": [operation("0", &url, json!({}))]});
            post(&gateway, "/v1/batch", &batch).json()["response"][0].clone()
        };
        assert_eq!(named(1000)["body"].as_array().unwrap().len(), 1000);
        let message = format!(
            "`{name}` names more than 1000 different keys; at most 1000 are accepted in one call"
        );
        let refused = named(1001);
        assert_eq!(
            (&refused["status"], &refused["body"]["error"]),
            (&json!(400), &json!(message)),
            "{refused}"
        );
    }
}

/// Contract: decision-agent 2.2 decide
/// Contract: decision-agent 2.2 forced decision
/// Contract: decision-agent 2.3 decide
/// Contract: decision-agent 4 1
#[test]
fn options_change_the_result() {
    let gateway = gateway("");
    let with = |option: &str, query: &str| {
        let mut body = ada();
        body["decideOptions"] = json!([option]);
        post(&gateway, &format!("/v1/decide{query}"), &body).json()
    };
    assert_eq!(with("ENABLED_FLAGS_ONLY", "").as_array().unwrap().len(), 1);
    assert_eq!(
        with("ENABLED_FLAGS_ONLY", "?keys=dark_mode")["enabled"],
        true
    );
    assert_eq!(
        with("EXCLUDE_VARIABLES", "?keys=checkout")["variables"],
        json!({})
    );
    assert!(
        !with("INCLUDE_REASONS", "?keys=checkout")["reasons"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let mut forced = ada();
    forced["forcedDecisions"] = json!([{"flagKey": "checkout", "variationKey": "one_page"}]);
    let forced = post(&gateway, "/v1/decide?keys=checkout", &forced).json();
    assert_eq!(
        (&forced["variationKey"], &forced["ruleKey"]),
        (&"one_page".into(), &"".into())
    );
}

/// Contract: decision-agent 4 1
#[test]
fn a_profile_that_is_to_be_ignored_is_neither_read_nor_written() {
    let gateway = gateway("user_profiles = \"memory\"");
    let rule = |user: &str, country: &str, options: Value| {
        let body = json!({"userId": user, "userAttributes": {"country": country}, "decideOptions": options});
        let decided = post(&gateway, "/v1/decide?keys=checkout", &body).json();
        decided["ruleKey"].as_str().unwrap().to_owned()
    };
    let (read, ignored) = (|| json!([]), || json!(["IGNORE_USER_PROFILE_SERVICE"]));
    assert_eq!(rule("ada", "FR", read()), "default-901");
    assert_eq!(rule("ada", "DE", read()), "checkout_test");
    assert_eq!(rule("ada", "FR", read()), "checkout_test", "remembered");
    assert_eq!(rule("ada", "FR", ignored()), "default-901", "not read");
    assert_eq!(rule("bob", "DE", ignored()), "checkout_test");
    assert_eq!(rule("bob", "FR", read()), "default-901", "not written");
}

/// Contract: decision-agent 8 2
#[test]
fn no_rate_limit_holds_for_decisions() {
    let gateway = gateway("[limits]\nrequests_per_minute = { chat = 1 }");
    let mut client = Client::connect(gateway.address());
    for _ in 0..700 {
        let answer = client.ask(&call("/v1/decide?keys=dark_mode", &ada()));
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(answer.header("ratelimit-limit"), None);
    }
}

/// Contract: decision-agent 2.2 decide
/// Contract: decision-agent 7 400
#[test]
fn bad_input_is_named_and_answered_with_400() {
    let gateway = gateway("");
    for (body, said) in [
        (json!({}), "missing \"userId\""),
        (json!({"userId": ""}), "missing \"userId\""),
        (json!({"userId": 1}), "`userId`"),
        (
            json!({"userId": "a", "userAttributes": []}),
            "`userAttributes`",
        ),
        (
            json!({"userId": "a", "decideOptions": ["FOO"]}),
            "invalid option: FOO",
        ),
        (
            json!({"userId": "a", "forcedDecisions": {}}),
            "`forcedDecisions`",
        ),
        (json!([]), "error parsing request body"),
    ] {
        let (status, error) = refused(&post(&gateway, "/v1/decide", &body));
        assert_eq!(status, 400, "{body}: {error}");
        assert!(error.contains(said), "{error}");
    }
    let unknown = post(&gateway, "/v1/decide?keys=none", &ada());
    assert_eq!(unknown.status(), 200);
    assert_eq!(
        unknown.json()["reasons"],
        json!(["No flag was found for key \"none\"."])
    );
}

/// Source: docs/decision-agent.md 4, rule 1: `ENABLED_FLAGS_ONLY returns only enabled flags`.
/// Contract: decision-agent 4 1
#[test]
fn of_one_flag_that_is_off_only_the_original_agent_tells_where_enabled_ones_are_wanted() {
    let mut body = ada();
    body["decideOptions"] = json!(["ENABLED_FLAGS_ONLY"]);
    let path = "/v1/decide?keys=checkout";
    assert_eq!(post(&gateway(""), path, &body).json(), json!([]));
    let told = post(&agent(""), path, &body).json();
    assert_eq!(
        (&told["flagKey"], &told["enabled"]),
        (&json!("checkout"), &json!(false))
    );
}

/// Source: docs/decision-agent.md 5.1: `Either scheme is accepted for every operation`; 5.3: `Invalid credentials yield 401`.
/// Contract: decision-agent 5 1
#[test]
fn a_valid_key_beside_an_unusable_token_suffices() {
    let gateway = gateway("");
    let call = |key: &str, token: &str| {
        let call = Ask::post("/v1/decide?keys=dark_mode", ada().to_string());
        let call = call.header("X-Platform-SDK-Key", key);
        ask(gateway.address(), &call.header("Authorization", token)).status()
    };
    for token in ["Bearer x.y.z", "Bearer", "Basic abc"] {
        assert_eq!(call("sandbox", token), 200, "{token}");
        assert_eq!(call("nobody", token), 401, "{token}");
    }
}

/// Contract: decision-agent 5 3
/// Contract: decision-agent 7 401
#[test]
fn credentials_and_media_types_are_checked() {
    let gateway = gateway("");
    let bare = Ask::post("/v1/decide", ada().to_string());
    for (request, status) in [
        (bare.clone(), 401),
        (bare.clone().header("X-Platform-SDK-Key", "other"), 401),
        (bare.clone().header("X-Platform-SDK-Key", "a b"), 401),
        (
            bare.clone()
                .header("X-Platform-SDK-Key", "sandbox")
                .header("X-Optimizely-SDK-Key", "b"),
            400,
        ),
        (bare.clone().header("Authorization", "Bearer x"), 401),
        (
            bare.clone()
                .without("Content-Type")
                .header("X-Platform-SDK-Key", "sandbox"),
            415,
        ),
        (bare.clone().header("X-Platform-SDK-Key", "sandbox"), 200),
    ] {
        assert_eq!(
            ask(gateway.address(), &request).status(),
            status,
            "{request:?}"
        );
    }
    let mut large = ada();
    large["userAttributes"]["x"] = "x".repeat(300_000).into();
    assert_eq!(post(&gateway, "/v1/decide", &large).status(), 413);
}

#[test]
fn without_the_section_there_is_nothing() {
    let gateway = Gateway::start("", "");
    described::leave_out(gateway.address());
    assert_eq!(post(&gateway, "/v1/decide", &ada()).status(), 404);
}

#[test]
fn the_original_agent_is_answered_in_its_bytes() {
    let gateway = gateway("compat = \"agent\"");
    let answer = post(&gateway, "/v1/decide?keys=dark_mode", &ada());
    assert_eq!(
        answer.text(),
        r#"{"variationKey":"on","enabled":true,"ruleKey":"new_versions","flagKey":"dark_mode","userContext":{"userId":"ada","attributes":{"country":"FR","version":"2.1"}},"reasons":[],"isEveryoneElseVariation":false}
"#
    );
    let (status, error) = refused(&post(&gateway, "/v1/decide", &json!([])));
    assert_eq!((status, &*error), (400, "error parsing request body"));
}

/// Contract: decision-agent 4 1
/// Contract: decision-agent 6 2
#[test]
fn a_decision_is_sent_to_the_backend_unless_it_may_not() {
    let backend = Upstream::always(Reply::whole(204, &[], ""));
    let events = format!(
        "event_url = \"{}/events\"\nevent_flush_interval_s = 1\nevent_batch = 2",
        backend.url()
    );
    let gateway = gateway(&events);
    let mut silent = ada();
    silent["decideOptions"] = json!(["DISABLE_DECISION_EVENT"]);
    post(&gateway, "/v1/decide?keys=dark_mode", &silent);
    post(&gateway, "/v1/decide", &ada());
    let batch = backend.wait_requests(1)[0].json();
    assert_eq!(
        (&batch["project_id"], &batch["client_name"]),
        (&"sandbox".into(), &"weirgate".into())
    );
    let visitors = batch["visitors"].as_array().unwrap();
    assert_eq!(visitors.len(), 2);
    let told = &visitors[1]["snapshots"][0]["decisions"][0];
    assert_eq!(
        (
            &told["metadata"]["flag_key"],
            &told["metadata"]["rule_type"]
        ),
        (&"dark_mode".into(), &"rollout".into())
    );
}

#[test]
fn what_waits_is_sent_when_the_gateway_stops_and_repeated_until_it_is_taken() {
    let backend = Upstream::sequence([Reply::whole(500, &[], ""), Reply::whole(204, &[], "")]);
    let events = format!(
        "event_url = \"{}/events\"\nevent_flush_interval_s = 3600\nevent_batch = 1",
        backend.url()
    );
    let gateway = gateway(&events);
    post(&gateway, "/v1/decide?keys=dark_mode", &ada());
    let tries = backend.wait_requests(2);
    let uuid =
        |at: usize| tries[at].json()["visitors"][0]["snapshots"][0]["events"][0]["uuid"].clone();
    assert_eq!(uuid(0), uuid(1));
    let quiet = Upstream::always(Reply::whole(204, &[], ""));
    let events = format!(
        "event_url = \"{}/events\"\nevent_flush_interval_s = 3600",
        quiet.url()
    );
    let stopped = crate::support::flags::gateway(&events);
    post(&stopped, "/v1/decide?keys=dark_mode", &ada());
    drop(stopped);
    assert_eq!(quiet.wait_requests(1).len(), 1);
}

#[test]
fn what_the_backend_refuses_is_dropped_and_counted_and_what_comes_after_it_is_sent() {
    let replies = [429, 400, 204].map(|status| Reply::whole(status, &[], ""));
    let backend = Upstream::sequence(replies);
    let events = format!("event_url = \"{}/e\"\nevent_batch = 1", backend.url());
    let gateway = gateway(&events);
    let eve = json!({"userId": "eve"});
    post(&gateway, "/v1/decide?keys=dark_mode", &ada());
    post(&gateway, "/v1/decide?keys=dark_mode", &eve);
    let told = backend.wait_requests(3);
    let whose: Vec<String> = told
        .iter()
        .map(|told| {
            told.json()["visitors"][0]["visitor_id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(whose, ["ada", "ada", "eve"]);
    let metrics = gateway.metrics();
    assert!(
        metrics.contains("weirgate_decision_events_total{outcome=\"refused\"} 1"),
        "{metrics}"
    );
}

/// A redirect is not followed, so the same batch would be redirected for ever.
#[test]
fn an_event_backend_that_redirects_gets_each_event_once() {
    let elsewhere = Upstream::always(Reply::whole(204, &[], ""));
    let location = format!("{}/e", elsewhere.url());
    let redirect = |status| Reply::whole(status, &[("location", &location)], "");
    let backend = Upstream::sequence([redirect(302), redirect(308), redirect(302)]);
    let events = format!("event_url = \"{}/e\"\nevent_batch = 1", backend.url());
    let gateway = gateway(&events);
    for _ in 0..3 {
        post(&gateway, "/v1/decide?keys=dark_mode", &ada());
    }
    backend.wait_requests(3);
    let refused = "weirgate_decision_events_total{outcome=\"refused\"} 3";
    until("refused", || gateway.metrics().contains(refused));
    assert!(elsewhere.requests().is_empty());
    assert_eq!(backend.requests().len(), 3);
}

#[test]
fn what_could_not_be_sent_is_spooled_and_sent_by_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().display().to_string();
    let start = |url: String| {
        let events = format!("event_url = \"{url}/e\"\nevent_batch = 1");
        gateway_with_env(&events, &[("WEIRGATE_STORE__STATE_DIR", &state)])
    };
    let broken = Upstream::always(Reply::whole(503, &[], ""));
    let first = start(broken.url());
    post(&first, "/v1/decide?keys=dark_mode", &ada());
    let tried = broken.wait_requests(1)[0].json();
    drop(first);
    let spooled = || {
        std::fs::read_dir(folder.path().join("events"))
            .unwrap()
            .count()
    };
    assert_eq!(spooled(), 1);
    let taking = Upstream::always(Reply::whole(204, &[], ""));
    let second = start(taking.url());
    assert_eq!(taking.wait_requests(1)[0].json(), tried);
    drop(second);
    assert_eq!(spooled(), 0);
}

#[test]
fn a_large_event_takes_several_places_of_the_queue_and_never_more_than_there_are() {
    let broken = Upstream::always(Reply::whole(503, &[], ""));
    for (id_bytes, fit) in [(40_000, 2), (60_000, 1), (600, 4)] {
        let events = format!("event_url = \"{}/e\"\nevent_queue = 4", broken.url());
        let gateway = gateway(&events);
        for first in [true, false, false, false] {
            let id = "u".repeat(if first { id_bytes } else { 1 });
            let body = json!({"userId": id, "userAttributes": {"version": "2.1"}});
            assert_eq!(
                post(&gateway, "/v1/decide?keys=dark_mode", &body).status(),
                200
            );
        }
        let queued = format!("weirgate_decision_events_total{{outcome=\"queued\"}} {fit}");
        assert!(gateway.metrics().contains(&queued), "{id_bytes}");
    }
}

#[test]
fn what_waits_is_on_disk_within_a_second_and_no_more_waits_than_may() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().display().to_string();
    let broken = Upstream::always(Reply::whole(503, &[], ""));
    let events = format!(
        "event_url = \"{}/e\"\nevent_batch = 2\nevent_queue = 3",
        broken.url()
    );
    let gateway = gateway_with_env(&events, &[("WEIRGATE_STORE__STATE_DIR", &state)]);
    for _ in 0..5 {
        post(&gateway, "/v1/decide?keys=dark_mode", &ada());
    }
    let on_disk = || {
        let files = std::fs::read_dir(folder.path().join("events"));
        let texts = files
            .into_iter()
            .flatten()
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        texts
            .map(|text| text.matches("\"visitor_id\":\"ada\"").count())
            .sum::<usize>()
    };
    // A kill does not ask the process to stop.
    until("they are on disk", || on_disk() >= 3);
    let metrics = gateway.metrics();
    assert!(
        metrics.contains("weirgate_decision_events_total{outcome=\"full\"} 2"),
        "{metrics}"
    );
}
