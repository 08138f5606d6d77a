//! `DELETE /v1/videos/{id}`.

use serde_json::json;

use crate::ledger::used;
use crate::models::fronts::videos::{VIDEOS, get, order, studio, there, wait_for};
use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::until;

/// Contract: model-gateway 4 GET /v1/videos/{id}
#[test]
fn a_video_that_has_ended_is_forgotten_here_and_by_its_provider() {
    let studio = studio(|_| there(), |_| Reply::json(404, "{}"));
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    let job = wait_for(&gateway, &order(&gateway), "completed");
    let path = format!("/v1/videos/{}", job["id"].as_str().unwrap());
    let delete = Ask::new("DELETE", &path).key(&gateway.key);
    let answer = ask(gateway.address(), &delete);
    let expected = json!({"id": job["id"], "object": "video.deleted", "deleted": true});
    assert_eq!((answer.status(), answer.json()), (200, expected));
    assert_eq!(get(&gateway, &path).status(), 404);
    assert_eq!(ask(gateway.address(), &delete).status(), 404);
    until("the provider is told", || {
        studio
            .requests()
            .iter()
            .any(|request| request.method == "DELETE")
    });
    // What was made stays paid.
    used(&gateway, "0.4");
}

#[test]
fn a_video_that_is_being_made_is_not_deleted() {
    let studio = studio(|_| Reply::json(500, "{}"), |_| Reply::json(404, "{}"));
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    let path = format!("/v1/videos/{}", order(&gateway)["id"].as_str().unwrap());
    let delete = Ask::new("DELETE", &path).key(&gateway.key);
    let answer = ask(gateway.address(), &delete);
    assert_eq!(
        (answer.status(), &answer.json()["error"]["code"]),
        (400, &"video_not_finished".into())
    );
    assert_eq!(get(&gateway, &path).status(), 200);
}
