//! `POST /v1/lookup`: the variations that decisions saved in the profile.

use serde_json::json;

use crate::support::flags::{gateway, post, refused};

#[test]
fn a_decision_is_remembered_and_holds_when_the_attributes_change() {
    let gateway = gateway("user_profiles = \"memory\"");
    let decide = |country: &str| {
        let body = json!({"userId": "ada", "userAttributes": {"country": country}});
        post(&gateway, "/v1/decide?keys=checkout", &body).json()["ruleKey"].clone()
    };
    assert_eq!(decide("FR"), "default-901");
    assert_eq!(decide("DE"), "checkout_test");
    let profile = post(&gateway, "/v1/lookup", &json!({"userId": "ada"})).json();
    assert!(
        profile["experimentBucketMap"]["401"]["variation_id"].is_string(),
        "{profile}"
    );
    assert_eq!(decide("FR"), "checkout_test");
}

#[test]
fn without_profiles_there_is_nothing_to_look_up() {
    let answer = post(&gateway(""), "/v1/lookup", &json!({"userId": "ada"}));
    assert_eq!(
        refused(&answer),
        (403, "no user profile service found".to_owned())
    );
}
