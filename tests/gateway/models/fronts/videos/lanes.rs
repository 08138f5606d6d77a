//! What one organization has waiting holds up no other.

use std::time::Duration;

use serde_json::json;

use super::{VIDEOS, job, order, studio, there, wait_for};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, create_organization};
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::Upstream;

/// Orders a video whose end is told to `hook`.
fn order_told(gateway: &Gateway, key: &str, hook: &Upstream) {
    let body = json!({"model": "film", "prompt": "a cat", "seconds": 4, "callback_secret": "s",
                      "callback_url": format!("{}/hook", hook.url())});
    let request = Ask::post("/v1/videos", body.to_string()).key(key);
    let answer = ask(gateway.address(), &request);
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

#[test]
fn callbacks_that_hang_hold_up_no_other_organization_and_no_poll() {
    let quick = studio(|_| there(), |_| Reply::json(404, "{}"));
    let hanging = Upstream::always(Reply::json(204, "").before(Duration::from_secs(3600)));
    let hook = Upstream::always(Reply::json(204, ""));
    let more = format!(
        "[videos]\ncallback_origins = [\"{}\", \"{}\"]",
        hanging.url(),
        hook.url()
    );
    let gateway = VIDEOS.gateway([&quick, &quick], &more, "100");
    let other = gateway.change(async |store| create_organization("other", store).await);
    for _ in 0..24 {
        order_told(&gateway, &gateway.key, &hanging);
    }
    hanging.wait_connections(16);
    order_told(&gateway, &other, &hook);
    hook.wait_requests(1);
    assert_eq!(hanging.connections(), 16, "of one organization at once");
    // Its own jobs go on, too.
    wait_for(&gateway, &order(&gateway), "completed");
}

#[test]
fn polls_that_hang_hold_up_no_other_organization() {
    let slow = Upstream::answering(|request| match &*request.method {
        "POST" => job("queued", json!({})),
        _ => there().before(Duration::from_secs(3600)),
    });
    let quick = studio(|_| there(), |_| Reply::json(404, "{}"));
    let gateway = VIDEOS.gateway([&slow, &quick], "", "100");
    let other = gateway.change(async |store| create_organization("other", store).await);
    for _ in 0..24 {
        order(&gateway);
    }
    let polls = || {
        slow.requests()
            .iter()
            .filter(|it| it.method == "GET")
            .count()
    };
    until("the room of one organization is taken", || polls() == 16);
    let body = r#"{"model":"second/film","prompt":"a cat","seconds":4}"#;
    let request = Ask::post("/v1/videos", body).key(&other);
    let answer = ask(gateway.address(), &request);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    quick.wait_requests(2);
    assert_eq!(polls(), 16, "of one organization at once");
}
