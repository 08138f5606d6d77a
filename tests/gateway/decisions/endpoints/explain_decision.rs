//! `POST /v1/decide/explain`: each rule of a flag, with the bucket of the user; nothing is sent, nothing is saved.

use filters::decisions::bucket;
use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::flags::{agent, gateway, post, refused};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

const PATH: &str = "/v1/decide/explain";

fn user(id: &str, country: &str) -> Value {
    json!({"userId": id, "userAttributes": {"version": "2.1", "country": country}})
}

#[test]
fn each_rule_tells_audience_bucket_and_what_the_bucket_gives() {
    let gateway = gateway("");
    let ada = user("ada", "DE");
    let all = post(&gateway, &format!("{PATH}?keys=checkout"), &ada).json();
    assert_eq!(all.as_array().unwrap().len(), 1);
    let number = bucket("ada", "401");
    let variation = if number < 5000 { "classic" } else { "one_page" };
    let checkout = json!({
        "type": "experiment", "key": "checkout_test", "id": "401", "has_decided": true, "is_running": true,
        "audience": true, "bucket": number,
        "ranges": [{"variation": "classic", "from": 0, "until": 5000}, {"variation": "one_page", "from": 5000, "until": 10000}],
        "bucketed": variation,
    });
    let default = json!({
        "type": "rollout", "key": "default-901", "id": "911", "has_decided": false, "is_running": true,
        "audience": true, "bucket": bucket("ada", "911"),
        "ranges": [{"variation": "off", "from": 0, "until": 10000}],
        "bucketed": "off",
    });
    assert_eq!(all[0]["rules"], json!([checkout, default]));
    assert_eq!(all[0]["variationKey"], variation);
    assert!(!all[0]["reasons"].as_array().unwrap().is_empty());
    // But for rules and reasons it is the decision.
    let mut decided = all[0].clone();
    decided.as_object_mut().unwrap().remove("rules");
    decided["reasons"] = json!([]);
    let plain = post(&gateway, "/v1/decide?keys=checkout", &ada).json();
    assert_eq!(decided, plain);
    // Another user, another audience.
    let outside = post(
        &gateway,
        &format!("{PATH}?keys=checkout"),
        &user("bob", "FR"),
    )
    .json();
    let told = |at: usize| outside[0]["rules"][at].clone();
    assert_eq!(
        (
            &told(0)["audience"],
            &told(0)["has_decided"],
            &told(0)["bucket"]
        ),
        (&json!(false), &json!(false), &json!(bucket("bob", "401")))
    );
    assert_eq!(told(1)["has_decided"], true);
}

#[test]
fn all_flags_are_explained_without_a_key_and_unknown_ones_have_no_rules() {
    let gateway = gateway("");
    let ada = user("ada", "FR");
    let all = post(&gateway, PATH, &ada).json();
    let keys = all.as_array().unwrap().iter().map(|one| &one["flagKey"]);
    assert_eq!(keys.collect::<Vec<_>>(), ["checkout", "dark_mode"]);
    let none = post(&gateway, &format!("{PATH}?keys=nothing"), &ada).json();
    assert_eq!(
        (&none[0]["flagKey"], &none[0]["rules"]),
        (&json!("nothing"), &json!([]))
    );
}

#[test]
fn what_counts_before_the_bucket_is_told() {
    let gateway = gateway("");
    let body =
        json!({"userId": "ada", "experimentKey": "checkout_test", "variationKey": "one_page"});
    post(&gateway, "/v1/override", &body);
    let ada = post(
        &gateway,
        &format!("{PATH}?keys=checkout"),
        &user("ada", "FR"),
    )
    .json();
    assert_eq!(
        (
            &ada[0]["rules"][0]["override"],
            &ada[0]["rules"][0]["has_decided"]
        ),
        (&json!("one_page"), &json!(true))
    );
    let tester = post(
        &gateway,
        &format!("{PATH}?keys=checkout"),
        &user("tester", "FR"),
    )
    .json();
    assert_eq!(tester[0]["rules"][0]["whitelisted"], "one_page");
    let bucketing =
        json!({"userId": "ada", "userAttributes": {"$opt_bucketing_id": "eve", "country": "DE"}});
    let as_eve = post(&gateway, &format!("{PATH}?keys=checkout"), &bucketing).json();
    assert_eq!(as_eve[0]["rules"][0]["bucket"], bucket("eve", "401"));
}

#[test]
fn nothing_is_sent_and_nothing_is_saved() {
    let backend = Upstream::always(Reply::whole(204, &[], ""));
    let events = format!(
        "event_url = \"{}/events\"\nevent_flush_interval_s = 1\nevent_batch = 1\nuser_profiles = \"memory\"",
        backend.url()
    );
    let gateway = gateway(&events);
    let ada = user("ada", "DE");
    let profile = || post(&gateway, "/v1/lookup", &json!({"userId": "ada"})).json();
    let empty = profile();
    let explained = post(&gateway, &format!("{PATH}?keys=checkout"), &ada).json();
    assert_eq!(explained[0]["ruleKey"], "checkout_test");
    assert_eq!(profile(), empty);
    // A decision is sent and saved, and is the first event that comes.
    post(&gateway, "/v1/decide?keys=checkout", &user("bob", "DE"));
    let sent = backend.wait_requests(1)[0].json();
    assert_eq!(sent["visitors"][0]["visitor_id"], "bob");
    assert_eq!(sent["visitors"].as_array().unwrap().len(), 1);
    post(&gateway, "/v1/decide?keys=checkout", &ada);
    assert_ne!(profile(), empty);
    let saved = post(
        &gateway,
        &format!("{PATH}?keys=checkout"),
        &user("ada", "FR"),
    )
    .json();
    let rule = &saved[0]["rules"][0];
    assert_eq!(rule["profile"], saved[0]["variationKey"]);
    assert_eq!(
        (&rule["audience"], &rule["has_decided"]),
        (&json!(false), &json!(true))
    );
}

#[test]
fn what_decide_refuses_is_refused() {
    let gateway = gateway("");
    let (status, _) = refused(&post(&gateway, PATH, &json!({})));
    assert_eq!(status, 400);
    let bare = Ask::post(PATH, user("ada", "FR").to_string());
    let status = ask(gateway.address(), &bare).status();
    assert!(matches!(status, 400 | 401), "{status}");
    let wrong = bare.header("X-Platform-SDK-Key", "other");
    assert_eq!(ask(gateway.address(), &wrong).status(), 401);
    let got = Ask::get(PATH).header("X-Platform-SDK-Key", "sandbox");
    assert_eq!(ask(gateway.address(), &got).status(), 405);
    let agent = agent("");
    let request =
        Ask::post(PATH, user("ada", "DE").to_string()).header("X-Optimizely-SDK-Key", "sandbox");
    let request = request.header("Content-Type", "application/json");
    assert_eq!(
        ask(agent.address(), &request).json()[0]["rules"][0]["bucket"],
        bucket("ada", "401")
    );
}
