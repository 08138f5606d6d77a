//! Requests to AWS are signed over the bytes that are sent.

use filters::accounts::Mode;
use filters::models::cloud_credentials::secret_text::SecretText;
use filters::models::cloud_credentials::sigv4::{
    AwsKeys, BodyHash, SignedParts, SigningScope, sign,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::{answering, gateway};
use crate::models::fronts::chat_completions::PLAIN;
use crate::support::boot::Gateway;
use crate::support::clouds::signature::{self, SignedBy};
use crate::support::sdk::{self, Script};
use crate::support::upstream::Received;

/// Returns the signature of a request as our signer makes it.
fn signature(
    (method, target): (&str, &str),
    headers: &[(&str, &str)],
    body: &[u8],
    (keys, scope, now_s): (&AwsKeys, &SigningScope, u64),
) -> String {
    let headers = headers.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    let mut headers: HeaderMap = headers.collect();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts = SignedParts {
        method,
        path,
        query: Some(query),
        body_hash: &BodyHash::from_slices([body]),
    };
    sign(&mut headers, parts, (keys, scope), now_s).unwrap();
    headers["authorization"].to_str().unwrap().to_owned()
}

#[test]
fn five_hundred_random_requests_are_signed_as_botocore_signs_them() {
    let seed = std::process::id().to_string();
    let lines = sdk::output(Script::Sigv4Python, &[("SEED", &seed)], &[]);
    for line in lines.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| request[name].as_str().unwrap();
        let keys = AwsKeys {
            access_key_id: text("access_key_id").into(),
            secret_access_key: SecretText::new(text("secret_access_key")),
            session_token: request["session_token"].as_str().map(SecretText::new),
        };
        let scope = SigningScope {
            region: text("region").into(),
            service: text("service").into(),
        };
        let headers = request["headers"].as_object().unwrap();
        let headers = headers
            .iter()
            .map(|(name, value)| (&**name, value.as_str().unwrap()));
        let headers: Vec<_> = headers.chain([("host", text("host"))]).collect();
        let now_s = request["now_s"].as_u64().unwrap();
        let ours = signature(
            (text("method"), text("target")),
            &headers,
            text("body").as_bytes(),
            (&keys, &scope, now_s),
        );
        assert_eq!(ours, text("authorization"), "seed {seed}: {line}");
    }
    assert_eq!(lines.lines().count(), 500);
}

/// Checks the signature of a request that a provider has received.
pub(super) fn assert_signed(request: &Received, id: &str, secret: &str, region: &str) {
    let by = SignedBy {
        id,
        secret,
        session: request.header("x-amz-security-token"),
        region,
        service: "bedrock",
    };
    assert_eq!(signature::check(request, by), Ok(()), "{request:?}");
}

#[test]
fn a_request_is_signed_for_the_region_over_the_body_that_is_sent() {
    let env = [
        ("AWS_ACCESS_KEY_ID", "AKIAOPERATOR".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "operators".to_owned()),
        ("AWS_SESSION_TOKEN", "session".to_owned()),
    ];
    let [first, second] = [answering(), answering()];
    let table = "credentials = \"aws\"\nregion = \"eu-west-1\"";
    let gateway = gateway([&first, &second], table, &env);
    let long = PLAIN.replacen("{", &format!("{{\"user\":\"{}\",", "ü".repeat(100)), 1);
    for body in [PLAIN, &long] {
        let answer = gateway.chat(body);
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }
    for request in first.requests() {
        assert_eq!(request.header("x-amz-security-token"), Some("session"));
        assert_signed(&request, "AKIAOPERATOR", "operators", "eu-west-1");
    }
    assert_eq!(first.requests().len(), 2);
}

#[test]
fn an_organization_brings_its_own_pair_or_a_static_key() {
    let env = [
        ("AWS_ACCESS_KEY_ID", "AKIAOPERATOR".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "operators".to_owned()),
    ];
    let [first, second] = [answering(), answering()];
    let table = "credentials = \"aws\"\nregion = \"eu-west-1\"";
    let gateway = gateway([&first, &second], table, &env);
    gateway.set_mode(Mode::Byok);
    gateway.own(
        "first",
        r#"{"access_key_id":"AKIAOWN","secret_access_key":"own"}"#,
    );
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    assert_signed(&first.request(0), "AKIAOWN", "own", "eu-west-1");
    gateway.own("second", "sk-static");
    assert_eq!(second.requests().len(), 0);
}

/// Source: docs/providers.md: the JSON of a cloud is taken where the platform signs in otherwise, or not at all.
#[test]
fn an_organization_brings_its_pair_where_the_platform_has_a_key_or_nothing() {
    let models = "[[models]]\nid = \"chat\"\n[[models.providers]]\nprovider = \"cloud\"\nname = \"m\"\nwire = \"chat\"\n\
                  input_price = \"1\"\noutput_price = \"2\"\n";
    for env in [&[("CLOUD_KEY", "platform-key")][..], &[]] {
        let cloud = answering();
        let toml = format!(
            "[providers.cloud]\nkind = \"bedrock\"\nregion = \"eu-west-1\"\nbase_url = \"{}\"\nkeys = [{{ env = \"CLOUD_KEY\" }}]\n",
            cloud.url()
        );
        let gateway = Gateway::start_with_env(&toml, models, env);
        gateway.set_mode(Mode::Byok);
        gateway.own(
            "cloud",
            r#"{"access_key_id":"AKIAOWN","secret_access_key":"own","session_token":"temporary"}"#,
        );
        let answer = gateway.chat(PLAIN);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let request = cloud.request(0);
        assert_eq!(request.header("x-amz-security-token"), Some("temporary"));
        assert_signed(&request, "AKIAOWN", "own", "eu-west-1");
    }
}

#[test]
fn a_static_key_of_an_organization_goes_as_it_is() {
    let env = [
        ("AWS_ACCESS_KEY_ID", "AKIAOPERATOR".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "operators".to_owned()),
    ];
    let [first, second] = [answering(), answering()];
    let table = "credentials = \"aws\"\nregion = \"eu-west-1\"";
    let gateway = gateway([&first, &second], table, &env);
    gateway.set_mode(Mode::Byok);
    gateway.own("first", "bedrock-api-key");
    assert_eq!(gateway.chat(PLAIN).status(), 200);
    let request = first.request(0);
    assert_eq!(
        request.header("authorization"),
        Some("Bearer bedrock-api-key")
    );
    assert_eq!(request.header("x-amz-date"), None);
}
