//! `POST /v1/override`.

use serde_json::json;

use crate::support::boot::Gateway;
use crate::support::flags::{gateway, post, refused};

/// Contract: decision-agent 2.2 override
/// Contract: decision-agent 2.3 override
/// Contract: decision-agent 4 POST /v1/override
#[test]
fn an_override_counts_until_it_is_removed() {
    let gateway = gateway("");
    let set = |variation: &str| {
        let body =
            json!({"userId": "u", "experimentKey": "checkout_test", "variationKey": variation});
        post(&gateway, "/v1/override", &body).json()
    };
    let decided = || {
        post(
            &gateway,
            "/v1/decide?keys=checkout",
            &json!({"userId": "u"}),
        )
        .json()["variationKey"]
            .clone()
    };
    assert_eq!(decided(), "off");
    assert_eq!(
        set("one_page"),
        json!([{"userId": "u", "experimentKey": "checkout_test", "variationKey": "one_page", "prevVariationKey": "", "messages": []}])
    );
    assert_eq!(decided(), "one_page");
    let again = set("classic");
    assert_eq!(
        (&again[0]["prevVariationKey"], &again[0]["messages"][0]),
        (&"one_page".into(), &"updating previous override".into())
    );
    assert_eq!(set("")[0]["messages"][0], "removing previous override");
    assert_eq!(decided(), "off");
    assert_eq!(set("")[0]["messages"][0], "no pre-existing override");
}

/// Contract: decision-agent 2.2 override
/// Contract: decision-agent 7 400
#[test]
fn overrides_can_be_switched_off_and_name_what_is_missing() {
    let off = gateway("overrides = false");
    assert_eq!(
        post(
            &off,
            "/v1/override",
            &json!({"userId": "u", "experimentKey": "e"})
        )
        .status(),
        403
    );
    let on = gateway("");
    for (body, said) in [
        (json!({"experimentKey": "e"}), "userId cannot be empty"),
        (json!({"userId": "u"}), "experimentKey cannot be empty"),
    ] {
        assert_eq!(
            refused(&post(&on, "/v1/override", &body)),
            (400, said.to_owned())
        );
    }
}

/// Contract: decision-agent 4 3
#[test]
fn an_override_ends_with_its_process() {
    let gateway = gateway("");
    let user = json!({"userId": "u", "experimentKey": "checkout_test", "variationKey": "one_page"});
    let decided = |gateway: &Gateway| {
        let decided = post(gateway, "/v1/decide?keys=checkout", &json!({"userId": "u"})).json();
        decided["variationKey"].clone()
    };
    assert_eq!(post(&gateway, "/v1/override", &user).status(), 200);
    assert_eq!(decided(&gateway), "one_page");
    let gateway = gateway.restart();
    assert_eq!(decided(&gateway), "off");
}
