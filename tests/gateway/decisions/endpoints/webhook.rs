//! `POST /webhooks/optimizely`.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::flags::agent;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

fn source(revision: &str) -> Reply {
    Reply::json(
        200,
        json!({"version": "4", "revision": revision}).to_string(),
    )
}

fn signature(secret: &str, body: &str) -> String {
    let mac = Hmac::<sha1::Sha1>::new_from_slice(secret.as_bytes()).unwrap();
    let bytes = mac.chain_update(body.as_bytes()).finalize().into_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha1={hex}")
}

#[test]
fn an_announcement_that_is_signed_brings_the_new_datafile() {
    let upstream = Upstream::sequence([source("1"), source("2")]);
    let toml = format!(
        "[decisions]\ndatafile_url = \"{}/%s.json\"\npoll_interval_s = 3600\n\
         [[decisions.webhooks]]\nproject_id = 77\nsecret = {{ env = \"HOOK\" }}\nsdk_keys = [\"k\"]\n",
        upstream.url()
    );
    let gateway = Gateway::start_with_env(&toml, "", &[("HOOK", "secret")]);
    let revision = || {
        let request = Ask::get("/v1/datafile").header("X-Platform-SDK-Key", "k");
        ask(gateway.address(), &request).json()["revision"].clone()
    };
    assert_eq!(revision(), "1");
    let announce = |body: &str, secret: &str| {
        let request = Ask::post("/webhooks/optimizely", body);
        let request = request.header("X-Hub-Signature", &signature(secret, body));
        ask(gateway.address(), &request).status()
    };
    let body = json!({"project_id": 77, "event": "project.datafile_updated"}).to_string();
    assert_eq!(announce(&body, "wrong"), 400);
    assert_eq!(announce("{\"project_id\": 78}", "secret"), 204);
    assert_eq!(announce("not json", "secret"), 400);
    assert_eq!(revision(), "1");
    assert_eq!(announce(&body, "secret"), 204);
    assert_eq!(revision(), "2");
}

#[test]
fn the_original_agent_takes_no_announcement_with_a_known_member_of_another_type() {
    let old = agent("");
    let announce = |body: &str| {
        let answer = ask(old.address(), &Ask::post("/webhooks/optimizely", body));
        (answer.status(), answer.text().to_owned())
    };
    assert_eq!(
        announce(r#"{"project_id":78,"timestamp":"now"}"#),
        (
            400,
            "{\"error\":\"Unable to parse webhook message.\"}\n".to_owned()
        )
    );
    assert_eq!(
        announce(r#"{"PROJECT_ID":78,"Timestamp":1}"#),
        (204, String::new())
    );
}
