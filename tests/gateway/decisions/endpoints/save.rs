//! `POST /v1/save`.

use serde_json::json;

use crate::support::flags::{gateway, post, refused};

#[test]
fn a_saved_profile_decides_and_replaces_the_one_before() {
    let gateway = gateway("user_profiles = \"memory\"");
    let save = |map: serde_json::Value| {
        post(
            &gateway,
            "/v1/save",
            &json!({"userId": "u", "experimentBucketMap": map}),
        )
    };
    let saved = save(json!({"401": {"variation_id": "602"}}));
    assert_eq!((saved.status(), saved.text()), (200, ""));
    let decided = post(
        &gateway,
        "/v1/decide?keys=checkout",
        &json!({"userId": "u"}),
    )
    .json();
    assert_eq!(decided["variationKey"], "one_page");
    save(json!({}));
    let profile = post(&gateway, "/v1/lookup", &json!({"userId": "u"})).json();
    assert_eq!(profile, json!({"userId": "u", "experimentBucketMap": {}}));
    assert_eq!(refused(&save(json!({"401": 5}))).0, 400);
}
