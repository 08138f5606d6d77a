//! AWS's sources of keys.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;

use super::{SignedIn, Variables, bad_replies, form, serving};
use crate::models::cloud_credentials::signatures::assert_signed;
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::{Received, Upstream};

const TABLE: &str = "credentials = \"aws\"\nregion = \"eu-west-1\"";
const ROLE: &str = "arn:aws:iam::1:role/gateway";

/// A moment so many seconds from now.
fn time(lives_s: i64) -> String {
    let now = jiff::Timestamp::now().as_second();
    let end = jiff::Timestamp::from_second(now + lives_s).unwrap();
    end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The keys of a container or a machine, which live so long.
fn keys(id: &str, lives_s: i64) -> Reply {
    let body = json!({"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": id, "SecretAccessKey": format!("secret of {id}"),
        "Token": format!("session of {id}"), "Expiration": time(lives_s), "LastUpdated": time(0)});
    Reply::json(200, body.to_string())
}

fn assert_signed_by(request: &Received, id: &str) {
    let session = format!("session of {id}");
    assert_eq!(request.header("x-amz-security-token"), Some(&*session));
    assert_signed(request, id, &format!("secret of {id}"), "eu-west-1");
}

fn written(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_container_gives_keys_for_its_token_which_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let token_file = written(&folder, "token", "first-token\n");
    let count = AtomicUsize::new(0);
    let server = serving(move |request| {
        let is_asked = request.method == "GET" && request.path == "/v1/credentials?a=b";
        let number = count.fetch_add(1, Ordering::Relaxed);
        let token = ["first-token", "second-token"].get(number)?;
        let is_known = request.header("authorization") == Some(token);
        (is_asked && is_known).then(|| keys(&format!("AKIA{number}"), 8))
    });
    let url = format!("{}/v1/credentials?a=b", server.url());
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token_file),
    ];
    let signed_in = SignedIn::start(TABLE, &variables);
    assert_signed_by(&signed_in.request(), "AKIA0");
    written(&folder, "token", "second-token");
    server.wait_requests(2);
    until("the newer keys sign", || {
        let request = signed_in.request();
        let is_newer = request.header("authorization").unwrap().contains("AKIA1");
        if is_newer {
            assert_signed_by(&request, "AKIA1");
        }
        is_newer
    });
}

/// What STS answers.
fn assumed(id: &str) -> Reply {
    let body = format!(
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult>\
         <SubjectFromWebIdentityToken>s</SubjectFromWebIdentityToken><AssumedRoleUser><Arn>{ROLE}</Arn></AssumedRoleUser>\
         <Credentials><SessionToken>session of {id}</SessionToken><SecretAccessKey>secret of {id}</SecretAccessKey>\
         <Expiration>{}</Expiration><AccessKeyId>{id}</AccessKeyId></Credentials>\
         </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
        time(3600)
    );
    Reply::whole(200, &[("content-type", "text/xml")], body)
}

fn jwt(claims: &str) -> String {
    format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(claims))
}

#[test]
fn a_web_identity_is_traded_without_a_signature() {
    let folder = tempfile::tempdir().unwrap();
    let identity = jwt(r#"{"exp":4102444800}"#);
    let told = identity.clone();
    let server = serving(move |request| {
        let expected = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", "2011-06-15"),
            ("RoleArn", ROLE),
            ("RoleSessionName", "edge"),
            ("WebIdentityToken", &told),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let is_asked = form(request)? == expected && request.header("authorization").is_none();
        is_asked.then(|| assumed("ASIAWEB"))
    });
    let token_file = written(&folder, "token", &identity);
    let config = format!(
        "[profile pod]\nrole_arn = {ROLE}\nweb_identity_token_file = {token_file}\nrole_session_name = edge\nregion = eu-west-1\n"
    );
    let by_variables: Variables = vec![
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token_file),
        ("AWS_ROLE_ARN", ROLE.to_owned()),
        ("AWS_ROLE_SESSION_NAME", "edge".to_owned()),
        ("AWS_ENDPOINT_URL_STS", server.url()),
    ];
    let by_profile: Variables = vec![
        ("AWS_CONFIG_FILE", written(&folder, "config", &config)),
        ("AWS_PROFILE", "pod".to_owned()),
        ("AWS_ENDPOINT_URL_STS", server.url()),
    ];
    for variables in [by_variables, by_profile] {
        let signed_in = SignedIn::start(TABLE, &variables);
        assert_signed_by(&signed_in.request(), "ASIAWEB");
    }
}

/// A machine's metadata, whose session is asked for first.
fn machine(role_keys: impl Fn() -> Reply + Send + Sync + 'static) -> Upstream {
    serving(move |request| {
        let text = [("content-type", "text/plain")];
        let base = "/latest/meta-data/iam/security-credentials/";
        match (&*request.method, &*request.path) {
            ("PUT", "/latest/api/token") => {
                request.header("x-aws-ec2-metadata-token-ttl-seconds")?;
                Some(Reply::whole(200, &text, "session-1"))
            }
            ("GET", path) if request.header("x-aws-ec2-metadata-token") == Some("session-1") => {
                match path.strip_prefix(base)? {
                    "" => Some(Reply::whole(200, &text, "gateway-role\n")),
                    "gateway-role" => Some(role_keys()),
                    _ => None,
                }
            }
            ("GET", _) => Some(Reply::json(401, "{}")),
            _ => None,
        }
    })
}

fn machine_at(server: &Upstream) -> Variables {
    vec![("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url())]
}

#[test]
fn a_machine_gives_the_keys_of_its_role_within_a_session() {
    let server = machine(|| keys("ASIAROLE", 3600));
    let signed_in = SignedIn::start(TABLE, &machine_at(&server));
    assert_signed_by(&signed_in.request(), "ASIAROLE");
    let methods: Vec<String> = server.requests().into_iter().map(|it| it.method).collect();
    assert_eq!(methods, ["PUT", "GET", "GET"]);
}

#[test]
fn a_machine_without_sessions_is_not_asked_the_older_way() {
    for status in [403, 404, 405] {
        let server = Upstream::answering(move |request| match &*request.method {
            "PUT" => Reply::json(status, "{}"),
            _ => keys("ASIAOLD", 3600),
        });
        let signed_in = SignedIn::start(TABLE, &machine_at(&server));
        let expected = format!("AWS_EC2_METADATA_SERVICE_ENDPOINT: it answered {status}");
        signed_in.fails(&expected);
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[test]
fn what_a_machine_answers_amiss_is_no_keys() {
    let setting = "AWS_EC2_METADATA_SERVICE_ENDPOINT: ";
    let failed =
        json!({"Code": "AssumeRoleUnauthorizedAccess", "AccessKeyId": "a", "SecretAccessKey": "b"});
    let bad = bad_replies().map(|(reply, said)| (reply, format!("{setting}{said}")));
    let more = [
        (
            keys("ASIAEND", -1),
            "credentials: what the source gives has ended already; ".to_owned(),
        ),
        (Reply::json(200, failed.to_string()), setting.to_owned()),
        (
            Reply::json(200, r#"{"AccessKeyId":"a"}"#),
            setting.to_owned(),
        ),
    ];
    for (reply, expected) in bad.into_iter().chain(more) {
        let server = machine(move || reply.clone());
        SignedIn::start(TABLE, &machine_at(&server)).fails(&expected);
    }
}

#[test]
fn a_metadata_server_of_aws_that_hangs_costs_two_seconds() {
    let server = Upstream::always(Reply::hang());
    let container = vec![("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url())];
    for (variables, setting) in [
        (machine_at(&server), "AWS_EC2_METADATA_SERVICE_ENDPOINT"),
        (container, "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    ] {
        let signed_in = SignedIn::start(TABLE, &variables);
        let begun = Instant::now();
        signed_in.fails(&format!("{setting}: it did not answer within 2 s; "));
        let taken = begun.elapsed();
        assert!(taken < Duration::from_secs(4), "{taken:?}");
    }
}

#[test]
fn an_expired_or_empty_web_identity_is_named_before_anything_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Upstream::always(assumed("ASIAWEB"));
    let file = "AWS_WEB_IDENTITY_TOKEN_FILE: ";
    let expired = jwt(r#"{"exp":1767323045}"#);
    for (text, expected) in [
        (&*expired, "the token in the file has expired "),
        (" \n", "the file holds no token; "),
    ] {
        let variables = [
            (
                "AWS_WEB_IDENTITY_TOKEN_FILE",
                written(&folder, "token", text),
            ),
            ("AWS_ROLE_ARN", ROLE.to_owned()),
            ("AWS_ENDPOINT_URL_STS", server.url()),
        ];
        SignedIn::start(TABLE, &variables).fails(&format!("{file}{expected}"));
    }
    assert_eq!(server.connections(), 0);
}
