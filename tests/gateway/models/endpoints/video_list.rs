//! `GET /v1/videos`: the jobs of a key, page by page.

use serde_json::{Value, json};

use crate::models::fronts::videos::{VIDEOS, get, order, studio, there};
use crate::support::script::Reply;
use crate::support::until;

fn ids(page: &Value) -> Vec<&str> {
    let data = page["data"].as_array().unwrap();
    data.iter().map(|job| job["id"].as_str().unwrap()).collect()
}

/// Contract: model-gateway 4 GET /v1/videos
#[test]
fn jobs_are_listed_from_the_newest_on_in_pages() {
    let studio = studio(|_| there(), |_| Reply::json(404, "{}"));
    let gateway = VIDEOS.gateway([&studio, &studio], "", "10");
    let empty = get(&gateway, "/v1/videos").json();
    let expected =
        json!({"object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false});
    assert_eq!(empty, expected);
    let ordered: Vec<String> = (0..3)
        .map(|_| {
            let ordered = order(&gateway)["id"].as_str().unwrap().to_owned();
            // Ids are in the order of milliseconds.
            let at = std::time::Instant::now();
            until("a millisecond passes", || at.elapsed().as_millis() > 1);
            ordered
        })
        .collect();
    let all = get(&gateway, "/v1/videos").json();
    assert_eq!(ids(&all), [&*ordered[2], &*ordered[1], &*ordered[0]]);
    let first = get(&gateway, "/v1/videos?limit=2").json();
    assert_eq!((ids(&first).len(), &first["has_more"]), (2, &json!(true)));
    let rest = format!(
        "/v1/videos?limit=2&after={}",
        first["last_id"].as_str().unwrap()
    );
    let rest = get(&gateway, &rest).json();
    assert_eq!(
        (ids(&rest), &rest["has_more"]),
        (vec![&*ordered[0]], &json!(false))
    );
    let oldest = get(&gateway, "/v1/videos?order=asc&limit=1").json();
    assert_eq!(ids(&oldest), [&*ordered[0]]);
}

/// Contract: model-gateway 4 GET /v1/videos
#[test]
fn a_bad_parameter_is_named() {
    let studio = studio(|_| there(), |_| Reply::json(404, "{}"));
    let gateway = VIDEOS.gateway([&studio, &studio], "", "10");
    for (query, param) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=a", "limit"),
        ("after=up_1", "after"),
        ("order=up", "order"),
    ] {
        let answer = get(&gateway, &format!("/v1/videos?{query}"));
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status(), &error["param"]),
            (400, &json!(param)),
            "{query}"
        );
    }
}
