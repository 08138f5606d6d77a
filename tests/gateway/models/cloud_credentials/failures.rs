//! Sources that give nothing: the call goes on at the next provider, and operators learn why.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::{answering, gateway, machine, readiness, token};
use crate::ledger::money::Place;
use crate::models::fronts::chat_completions::PLAIN;
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::Upstream;

const ENTRA: &str = "credentials = \"entra\"";

/// Checks that a call goes on at the second provider, and that operators read this.
pub(super) fn assert_unavailable(gateway: &Gateway, first: &Upstream, expected: &str) {
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let body = answer.json();
    let routing = &body["metadata"]["routing"];
    let attempt = &routing[0];
    assert_eq!(
        (&attempt["provider"], &attempt["status_code"]),
        (&"first".into(), &0.into())
    );
    assert_eq!(attempt["error_type"], "credential_unavailable");
    assert_eq!(routing[1]["provider"], "second");
    assert!(first.requests().is_empty());
    let shown = readiness(gateway);
    let expected = format!("credentials of provider first: unavailable: {expected}");
    assert!(shown.contains(&expected), "{shown}");
    assert!(!answer.text().contains("AZURE"), "{}", answer.text());
    let counted = "weirgate_credential_fetches_total{outcome=\"failed\",provider=\"first\"}";
    assert!(gateway.metrics().contains(counted), "{}", gateway.metrics());
    let attempts = "weirgate_upstream_attempts_total{model=\"chat\",outcome=\"credential_unavailable\",provider=\"first\"} 1";
    assert!(
        gateway.metrics().contains(attempts),
        "{}",
        gateway.metrics()
    );
}

#[test]
fn a_metadata_server_that_hangs_costs_two_seconds_once() {
    let server = Upstream::always(Reply::hang());
    let [first, second] = [answering(), answering()];
    let gateway = gateway([&first, &second], ENTRA, &machine(&server));
    let begun = Instant::now();
    let expected = "AZURE_POD_IDENTITY_AUTHORITY_HOST: it did not answer within 2 s; ";
    assert_unavailable(&gateway, &first, expected);
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    let begun = Instant::now();
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_redirect_a_page_and_a_token_that_has_ended_are_no_credentials() {
    let elsewhere = Upstream::always(token("t", 3600));
    let location = elsewhere.url();
    let page = Reply::whole(
        200,
        &[("content-type", "text/html")],
        "<!doctype html><p>Sign in",
    );
    for (reply, expected) in [
        (
            Reply::whole(302, &[("location", &location)], ""),
            "AZURE_POD_IDENTITY_AUTHORITY_HOST: it answered with a redirect (302), which is not followed; ",
        ),
        (
            page,
            "AZURE_POD_IDENTITY_AUTHORITY_HOST: it answered with a page of HTML; ",
        ),
        (
            token("t", 0),
            "credentials: what the source gives has ended already; ",
        ),
        (
            Reply::json(200, "a".repeat(300 << 10)),
            "AZURE_POD_IDENTITY_AUTHORITY_HOST: it has more than 262144 bytes; ",
        ),
    ] {
        let server = Upstream::always(reply);
        let [first, second] = [answering(), answering()];
        let gateway = gateway([&first, &second], ENTRA, &machine(&server));
        assert_unavailable(&gateway, &first, expected);
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn an_expired_federated_file_is_named_before_anything_is_asked() {
    let server = Upstream::always(token("t", 3600));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let claims = BASE64_URL_SAFE_NO_PAD.encode(r#"{"exp":1767323045}"#);
    std::fs::write(&path, format!("e30.{claims}.c2ln\n")).unwrap();
    let env = [
        ("AZURE_FEDERATED_TOKEN_FILE", path.display().to_string()),
        ("AZURE_CLIENT_ID", "c".to_owned()),
        ("AZURE_TENANT_ID", "t".to_owned()),
        ("AZURE_AUTHORITY_HOST", server.url()),
    ];
    let [first, second] = [answering(), answering()];
    let gateway = gateway([&first, &second], ENTRA, &env);
    let expected = "AZURE_FEDERATED_TOKEN_FILE: the token in the file has expired ";
    assert_unavailable(&gateway, &first, expected);
    assert_eq!(server.connections(), 0);
}

/// The header `date` of a server whose clock is ten minutes ahead.
fn later() -> String {
    let now = jiff::Timestamp::now().as_second();
    let date = jiff::Timestamp::from_second(now + 600).unwrap();
    date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[test]
fn a_provider_that_refuses_signatures_of_another_time_is_in_the_log_with_the_clock() {
    let cloud = Upstream::always(Reply::whole(
        403,
        &[
            ("date", &later()),
            ("x-amzn-errortype", "InvalidSignatureException"),
        ],
        r#"{"message":"Signature expired"}"#,
    ));
    let mut place = Place::new("", &cloud, MODELS);
    let key = place.fund("5");
    let signing = "credentials = \"aws\"\nregion = \"eu-west-1\"\nsigning_service = \"bedrock\"\n[providers.second]";
    place.set("keys = []\n[providers.second]", signing);
    let log = place.path().join("log");
    let env = [
        ("AWS_ACCESS_KEY_ID", "AKIA1"),
        ("AWS_SECRET_ACCESS_KEY", "s3cr3t"),
    ];
    let server = Server::start_logging(place.path(), &env, &log);
    let asked = Ask::post("/v1/chat/completions", PLAIN).key(&key);
    ask(server.address, &asked);
    let expected = "provider first refuses its credentials: the clock of this machine is 10 minutes behind that of the server; \
                    set the clock of this machine";
    let said = || std::fs::read_to_string(&log).unwrap();
    until("the log names the clock", || said().contains(expected));
    assert!(!said().contains("s3cr3t"));
}

#[test]
fn a_clock_that_is_ten_minutes_off_is_said() {
    let date = later();
    let body = r#"{"error":"invalid_client","error_codes":[700024],"error_description":"secret"}"#;
    let server = Upstream::always(Reply::whole(401, &[("date", &date)], body));
    let env = [
        ("AZURE_CLIENT_SECRET", "s3cr3t".to_owned()),
        ("AZURE_CLIENT_ID", "c".to_owned()),
        ("AZURE_TENANT_ID", "t".to_owned()),
        ("AZURE_AUTHORITY_HOST", server.url()),
    ];
    let [first, second] = [answering(), answering()];
    let gateway = gateway([&first, &second], ENTRA, &env);
    let expected = "AZURE_AUTHORITY_HOST: it answered 401, invalid_client (AADSTS700024), and the clock of this \
                    machine is 10 minutes behind that of the server; set the clock of this machine\n";
    assert_unavailable(&gateway, &first, expected);
    assert!(!readiness(&gateway).contains("s3cr3t"));
}

#[test]
fn a_source_that_is_back_serves_again() {
    let server = Upstream::sequence([Reply::json(503, "{}"), token("t", 3600)]);
    let [first, second] = [answering(), answering()];
    let gateway = gateway([&first, &second], ENTRA, &machine(&server));
    assert_unavailable(
        &gateway,
        &first,
        "AZURE_POD_IDENTITY_AUTHORITY_HOST: it answered 503; ",
    );
    // The source rests for ten seconds.
    until("the source serves again", || {
        readiness(&gateway).contains("usable\n")
    });
    assert_eq!(
        gateway.chat(PLAIN).json()["metadata"]["routing"][0]["provider"],
        "first"
    );
}
