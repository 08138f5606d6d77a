//! What holds for every operation.

use std::time::Duration;

use super::{VIDEOS, get, there};
use crate::ledger::used;
use crate::support::client::Client;
use crate::support::upstream::Upstream;

#[test]
fn a_failed_provider_is_followed_by_the_next() {
    VIDEOS.falls_back();
}

#[test]
fn what_is_priced_costs() {
    VIDEOS.costs();
}

#[test]
fn credit_and_limits_of_keys_hold() {
    VIDEOS.is_paid_for();
}

#[test]
fn videos_have_a_quota_of_their_own() {
    VIDEOS.has_a_quota("video");
}

#[test]
fn the_job_of_a_client_that_leaves_is_in_its_list_and_is_paid() {
    let first = Upstream::answering(|request| match &*request.method {
        "POST" => there().before(Duration::from_millis(300)),
        _ => there(),
    });
    let gateway = VIDEOS.gateway([&first, &first], "", "1");
    let mut client = Client::connect(gateway.address());
    client.send(&VIDEOS.request(&gateway));
    first.request(0);
    drop(client);
    used(&gateway, "0.4");
    let listed = get(&gateway, "/v1/videos").json();
    assert_eq!(listed["data"][0]["status"], "completed", "{listed}");
}

/// Contract: model-gateway 2.17 model
/// Contract: model-gateway 2.17 prompt
/// Contract: model-gateway 2.17 seconds
/// Contract: model-gateway 2.17 size
/// Contract: model-gateway 2.17 image
#[test]
fn a_bad_request_is_named_and_reaches_no_provider() {
    VIDEOS.refuses(&[
        ("{", None),
        (r#"{"prompt":"a","seconds":4}"#, Some("model")),
        (r#"{"model":"film","seconds":4}"#, Some("prompt")),
        (
            r#"{"model":"film","prompt":"","seconds":4}"#,
            Some("prompt"),
        ),
        (r#"{"model":"film","prompt":"a"}"#, Some("seconds")),
        (
            r#"{"model":"first/film","prompt":"a","seconds":5}"#,
            Some("seconds"),
        ),
        (
            r#"{"model":"first/film","prompt":"a","seconds":4,"size":"640x480"}"#,
            Some("size"),
        ),
        (
            r#"{"model":"film","prompt":"a","seconds":4,"size":"wide"}"#,
            Some("size"),
        ),
        (
            r#"{"model":"film","prompt":"a","seconds":4,"image":"file:///etc/passwd"}"#,
            Some("image"),
        ),
        (
            r#"{"model":"film","prompt":"a","seconds":4,"image":"https://10.0.0.1/a.png"}"#,
            Some("image"),
        ),
        (
            r#"{"model":"auto","prompt":"a","seconds":4}"#,
            Some("model"),
        ),
        (
            r#"{"model":"chat","prompt":"a","seconds":4}"#,
            Some("model"),
        ),
    ]);
}
