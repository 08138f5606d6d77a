//! `GET /v1/videos/{id}`: jobs are their key's alone.

use crate::models::fronts::videos::{VIDEOS, get, order, studio, there};
use crate::support::ask::Ask;
use crate::support::boot::{create_key, create_organization};
use crate::support::client::ask;
use crate::support::script::Reply;

/// Contract: model-gateway 4 GET /v1/videos/{id}
#[test]
fn the_job_of_another_key_or_organization_is_unknown() {
    let studio = studio(|_| there(), |_| Reply::json(404, "{}"));
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    let id = order(&gateway)["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/videos/{id}");
    assert_eq!(get(&gateway, &path).status(), 200);
    let others = gateway.change(async |store| {
        let other = create_organization("other", store).await;
        [create_key(store).await, other]
    });
    for key in others {
        for path in [path.clone(), format!("{path}/content")] {
            let answer = ask(gateway.address(), &Ask::get(&path).key(&key));
            let error = &answer.json()["error"];
            assert_eq!(
                (answer.status(), &error["code"]),
                (404, &"video_not_found".into())
            );
        }
        let delete = Ask::new("DELETE", &path).key(&key);
        assert_eq!(ask(gateway.address(), &delete).status(), 404);
    }
    assert_eq!(ask(gateway.address(), &Ask::get(&path)).status(), 401);
}

#[test]
fn what_is_no_id_is_unknown() {
    let studio = studio(|_| there(), |_| Reply::json(404, "{}"));
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    for id in ["v_1", "up_1", "v_00000000000000000000000000000000", "a'b"] {
        let answer = get(&gateway, &format!("/v1/videos/{id}"));
        assert_eq!(answer.status(), 404, "{id}");
    }
}
