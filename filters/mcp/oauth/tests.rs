#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use serde_json::{Value, json};

use super::authorization::{self, AuthorizationRefusal, AuthorizationRequest, check_resource};
use super::client::{Client, ClientAuth, ClientMetadata, is_document_id};
use super::error::OAuthErrorCode;
use super::form::OAuthParameters;
use super::redirect::{self, RedirectUri};
use super::refresh::{REPEAT_MS, RefreshTokens, RefreshVerdict, decide};
use super::scope::Scope;
use super::scopes::Scopes;
use super::{metadata, pkce};
use crate::mcp::tools::TOOLS;

const ISSUER: &str = "https://gw.example";
const RESOURCE: &str = "https://gw.example/mcp";

fn read(metadata: &Value) -> Result<ClientMetadata, OAuthErrorCode> {
    let read = ClientMetadata::read(metadata.to_string().as_bytes());
    read.map_err(|error| error.code)
}

#[test]
fn a_client_is_what_it_registers() {
    let metadata = read(&json!({
        "client_name": " An editor ",
        "redirect_uris": ["http://127.0.0.1/callback", "cursor://oauth/callback"],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token", "client_credentials"],
        "response_types": ["code"],
        "logo_uri": "https://editor.example/logo.png",
    }));
    let metadata = metadata.unwrap();
    assert_eq!(metadata.name.as_deref(), Some("An editor"));
    assert_eq!(metadata.auth, ClientAuth::None);
    assert!(metadata.has_refresh_tokens);
    let members = Value::Object(metadata.to_members());
    assert_eq!(
        members["grant_types"],
        json!(["authorization_code", "refresh_token"])
    );
    assert_eq!(read(&members), Ok(metadata));
    let least = read(&json!({"redirect_uris": ["https://a.example/"]})).unwrap();
    assert_eq!((least.name, least.auth), (None, ClientAuth::SecretBasic));
    let once = read(
        &json!({"redirect_uris": ["https://a.example/"], "grant_types": ["authorization_code"]}),
    );
    assert!(!once.unwrap().has_refresh_tokens);
}

#[test]
fn what_a_client_may_not_register_is_refused() {
    let metadata = OAuthErrorCode::InvalidClientMetadata;
    let redirect = OAuthErrorCode::InvalidRedirectUri;
    let with = |member: &str, value: Value| {
        let mut client = json!({"redirect_uris": ["https://a.example/"]});
        client[member] = value;
        read(&client)
    };
    let many: Vec<String> = (0..11).map(|n| format!("https://a.example/{n}")).collect();
    for (member, value, expected) in [
        ("redirect_uris", json!([]), redirect),
        ("redirect_uris", Value::Null, redirect),
        ("redirect_uris", json!(many), redirect),
        ("redirect_uris", json!(["http://a.example/"]), redirect),
        ("redirect_uris", json!([7]), metadata),
        ("redirect_uris", json!("https://a.example/"), metadata),
        ("client_name", json!(7), metadata),
        ("client_name", json!("a".repeat(129)), metadata),
        ("client_name", json!("a\u{202e}b"), metadata),
        ("client_name", json!("a\nb"), metadata),
        (
            "token_endpoint_auth_method",
            json!("private_key_jwt"),
            metadata,
        ),
        ("token_endpoint_auth_method", json!(7), metadata),
        ("grant_types", json!(["client_credentials"]), metadata),
        ("grant_types", json!([]), metadata),
        ("response_types", json!(["token"]), metadata),
    ] {
        assert_eq!(
            with(member, value.clone()),
            Err(expected),
            "{member} {value}"
        );
    }
    for body in ["", "[]", "7", "{"] {
        let refused = ClientMetadata::read(body.as_bytes()).map_err(|error| error.code);
        assert_eq!(refused, Err(metadata), "{body}");
    }
}

#[test]
fn a_document_is_of_its_own_url_and_has_no_secret() {
    let url = "https://editor.example/client.json";
    let document = |id: &str, method: Value| {
        let document = json!({"client_id": id, "client_name": "An editor",
            "redirect_uris": ["http://localhost/cb"], "token_endpoint_auth_method": method});
        ClientMetadata::read_document(url, document.to_string().as_bytes())
    };
    let metadata = document(url, json!("none")).unwrap();
    assert_eq!(metadata.auth, ClientAuth::None);
    let client = Client {
        id: url.to_owned(),
        metadata,
    };
    assert_eq!(client.document_host(), Some("editor.example"));
    assert!(document("https://editor.example/other.json", json!("none")).is_err());
    for method in [
        "client_secret_basic",
        "client_secret_post",
        "private_key_jwt",
    ] {
        assert!(document(url, json!(method)).is_err(), "{method}");
    }
    let without = json!({"client_id": url, "redirect_uris": ["http://localhost/cb"]});
    let without = ClientMetadata::read_document(url, without.to_string().as_bytes());
    assert_eq!(without.unwrap().auth, ClientAuth::None);
    assert!(is_document_id(url));
    for id in [
        "http://editor.example/client.json",
        "https://editor.example",
        "https://editor.example/",
        "https://a@editor.example/client.json",
        "https://editor.example/a/../client.json",
        "https://editor.example/client.json#a",
        "client_1",
    ] {
        assert!(!is_document_id(id), "{id}");
    }
}

#[test]
fn redirect_uris_are_https_or_loopback_or_an_applications() {
    for uri in [
        "https://app.example/callback?a=b",
        "https://app.example:8443/",
        "https://app.example",
        "http://localhost:3000/cb",
        "http://127.0.0.1/cb",
        "http://[::1]:7/cb",
        "cursor://anysphere.cursor-retrieval/oauth/callback",
        "vscode://vscode.github-authentication/did-authenticate",
        "com.example.app:/callback",
    ] {
        assert!(RedirectUri::parse(uri).is_ok(), "{uri}");
    }
    for uri in [
        "",
        "/callback",
        "app.example/callback",
        "http://app.example/callback",
        "http://localhost.app.example/",
        "http://127.0.0.1.app.example/",
        "https:///callback",
        "https:app.example",
        "https://user@app.example/",
        "https://app.example@evil.example/",
        "https://app.example\\@evil.example/",
        "https://app.example;script-src/",
        "https://app.example/#fragment",
        "https://app.example/a b",
        "https://app.example/é",
        "https://app.example:port/",
        "https://app.example:99999/",
        "https://[::1/",
        "HTTPS://app.example/",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "urn:ietf:wg:oauth:2.0:oob",
        "unknown://app/callback",
        "com.example.app:",
        "cursor://",
        "cursor://user@app/",
    ] {
        assert!(RedirectUri::parse(uri).is_err(), "{uri}");
    }
    assert!(RedirectUri::parse(&format!("https://a.example/{}", "a".repeat(2048))).is_err());
}

#[test]
fn a_redirect_uri_is_found_exactly_but_for_the_port_of_loopback() {
    let registered = [
        "https://app.example/cb".to_owned(),
        "http://127.0.0.1:3000/cb".to_owned(),
        "http://localhost/cb".to_owned(),
        "http://[::1]/cb".to_owned(),
    ];
    let is_found = |named: &str| redirect::find(&registered, named).is_some();
    for named in [
        "https://app.example/cb",
        "http://127.0.0.1:3000/cb",
        "http://127.0.0.1:51004/cb",
        "http://127.0.0.1/cb",
        "http://localhost:7/cb",
        "http://[::1]:7/cb",
    ] {
        assert!(is_found(named), "{named}");
    }
    for named in [
        "https://app.example/cb/",
        "https://app.example/CB",
        "https://app.example/cb?",
        "https://app.example:443/cb",
        "https://app.example.evil.example/cb",
        "https://evil.example/cb",
        "http://app.example/cb",
        "http://127.0.0.1:51004/cb2",
        "http://127.0.0.2/cb",
        "https://127.0.0.1:3000/cb",
        "http://localhost:7@evil.example/cb",
    ] {
        assert!(!is_found(named), "{named}");
    }
}

#[test]
fn an_answer_keeps_the_query_of_the_redirect_uri() {
    for (uri, expected) in [
        ("https://a.example/cb", "https://a.example/cb?code=x%26y"),
        ("https://a.example/cb?", "https://a.example/cb?code=x%26y"),
        (
            "https://a.example/cb?a=b",
            "https://a.example/cb?a=b&code=x%26y",
        ),
        ("com.example.app:/cb", "com.example.app:/cb?code=x%26y"),
    ] {
        let uri = RedirectUri::parse(uri).unwrap();
        assert_eq!(uri.with(&[("code", "x&y")]), expected);
    }
    let place = |uri| RedirectUri::parse(uri).unwrap().place();
    assert_eq!(place("https://a.example:81/cb"), "a.example:81");
    assert_eq!(place("com.example.app:/cb"), "com.example.app");
}

/// The pair of RFC 7636, appendix B.
#[test]
fn a_verifier_is_held_against_its_challenge() {
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    assert!(pkce::is_challenge(challenge) && pkce::is_verifier(verifier));
    assert!(pkce::verify(challenge, verifier));
    assert!(!pkce::verify(challenge, challenge));
    assert!(!pkce::verify(verifier, verifier), "the method `plain`");
    for text in ["", "a", &"a".repeat(44), &"=".repeat(43)] {
        assert!(!pkce::is_challenge(text), "{text}");
    }
    for text in ["", &"a".repeat(42), &"a".repeat(129), &"+".repeat(43)] {
        assert!(!pkce::is_verifier(text), "{text}");
    }
}

#[test]
fn scopes_are_a_set_of_names() {
    let scopes = Scopes::parse("limits:read  models models").unwrap();
    assert_eq!(scopes.to_string(), "models limits:read");
    assert_eq!(Scopes::from_bits(scopes.bits()), scopes);
    assert!(Scopes::all().covers(scopes) && !scopes.covers(Scopes::all()));
    assert!(scopes.contains(Scope::Models) && !scopes.contains(Scope::Decisions));
    assert_eq!(Scopes::from_bits(255), Scopes::all());
    for names in ["", " ", "models everything", "Models", "models,decisions"] {
        let refused = Scopes::parse(names).map_err(|error| error.code);
        assert_eq!(refused, Err(OAuthErrorCode::InvalidScope), "{names}");
    }
}

#[test]
fn each_tool_has_the_scope_of_its_product() {
    let of = |scope| {
        let of_scope = TOOLS.iter().filter(move |tool| tool.scope == scope);
        of_scope.map(|tool| tool.route).collect::<Vec<_>>()
    };
    assert!(of(Scope::Models).contains(&"chat_completions"));
    assert!(of(Scope::Decisions).contains(&"decide"));
    assert!(of(Scope::AccountRead).contains(&"credits"));
    assert!(!of(Scope::Models).contains(&"overrides"));
}

fn client() -> Client {
    let metadata = read(
        &json!({"redirect_uris": ["https://app.example/cb", "http://127.0.0.1/cb"],
        "token_endpoint_auth_method": "none"}),
    );
    Client {
        id: "client_1".to_owned(),
        metadata: metadata.unwrap(),
    }
}

const QUERY: &str = "client_id=client_1&redirect_uri=https://app.example/cb&response_type=code&state=s%20t\
    &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256";

fn authorize(query: &str) -> Result<AuthorizationRequest, AuthorizationRefusal> {
    let query = OAuthParameters::read(query);
    AuthorizationRequest::read(&query, &client(), (ISSUER, RESOURCE))
}

#[test]
fn a_request_is_read_and_answered_at_its_redirect_uri() {
    let request = authorize(QUERY).unwrap();
    assert_eq!(request.state.as_deref(), Some("s t"));
    assert_eq!(Scopes::from_bits(request.scopes), Scopes::all());
    assert_eq!(request.resource, RESOURCE);
    let url = request.code_url(ISSUER, "wgc_1").unwrap();
    assert_eq!(
        url,
        "https://app.example/cb?code=wgc_1&state=s+t&iss=https%3A%2F%2Fgw.example"
    );
    let narrow = authorize(&format!("{QUERY}&scope=models&resource={RESOURCE}/")).unwrap();
    assert_eq!(Scopes::from_bits(narrow.scopes).to_vec(), [Scope::Models]);
}

#[test]
fn nobody_is_redirected_to_what_is_not_the_clients() {
    for named in [
        "https://evil.example/cb",
        "https://app.example/cb/",
        "https://app.example/cb%23",
        "https://app.example.evil.example/cb",
        "javascript:alert(1)",
        "",
    ] {
        let query = QUERY.replace("https://app.example/cb", named);
        let refused = authorize(&query).unwrap_err();
        assert!(matches!(refused, AuthorizationRefusal::Page(_)), "{named}");
    }
    for (query, is_named) in [
        ("client_id=a&redirect_uri=b", true),
        ("client_id=a", false),
        ("redirect_uri=b", false),
        ("client_id=&redirect_uri=b", false),
        ("client_id=a&client_id=a&redirect_uri=b", false),
        ("client_id=a&redirect_uri=b&redirect_uri=b", false),
        ("client_id=a&a=b&a=b&redirect_uri=b&redirect_uri=b", false),
    ] {
        let query_read = OAuthParameters::read(query);
        assert_eq!(
            authorization::client_id(&query_read).is_ok(),
            is_named,
            "{query}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_known_clients_request_is_told_to_the_client() {
    let long = format!("state={}", "s".repeat(4097));
    for (from, to, expected) in [
        (
            "response_type=code",
            "response_type=token",
            "unsupported_response_type",
        ),
        ("response_type=code", "a=b", "invalid_request"),
        ("S256", "plain", "invalid_request"),
        ("&code_challenge_method=S256", "", "invalid_request"),
        ("code_challenge=", "code_challenge=a", "invalid_request"),
        ("code_challenge=", "other=", "invalid_request"),
        ("state=", "response_mode=fragment&state=", "invalid_request"),
        ("state=s%20t", &long, "invalid_request"),
        (
            "state=",
            "scope=models&scope=models&state=",
            "invalid_request",
        ),
        ("state=", "state=a&state=", "invalid_request"),
        ("state=", "scope=everything&state=", "invalid_scope"),
        (
            "state=",
            "resource=https://gw.example/&state=",
            "invalid_target",
        ),
        (
            "state=",
            "resource=https://other.example/mcp&state=",
            "invalid_target",
        ),
    ] {
        let query = QUERY.replace(from, to);
        let AuthorizationRefusal::Redirect(url) = authorize(&query).unwrap_err() else {
            panic!("{query}");
        };
        let begin = format!("https://app.example/cb?error={expected}&error_description=");
        assert!(url.starts_with(&begin), "{to}: {url}");
        assert!(url.ends_with("&iss=https%3A%2F%2Fgw.example"), "{url}");
        let keeps_state = !to.contains("sss") && !to.contains("state=a&state");
        assert_eq!(url.contains("&state=s+t&"), keeps_state, "{url}");
    }
}

#[test]
fn a_resource_is_ours_or_left_out() {
    for (query, is_ours) in [
        ("", true),
        ("resource=https://gw.example/mcp", true),
        ("resource=https://gw.example/mcp/", true),
        ("resource=https://gw.example", false),
        ("resource=https://gw.example/mcp/x", false),
        ("resource=http://gw.example/mcp", false),
    ] {
        let checked = check_resource(&OAuthParameters::read(query), RESOURCE);
        assert_eq!(checked.is_ok(), is_ours, "{query}");
    }
}

#[test]
fn a_refresh_token_names_its_grant_and_its_number_and_is_signed() {
    let tokens = RefreshTokens::new(&[1; 32]).unwrap();
    let text = tokens.write("grant", 7);
    assert_eq!(tokens.read(&text), Some(("grant".to_owned(), 7)));
    assert_eq!(tokens.write("grant", 7), text);
    assert_ne!(tokens.write("grant", 8), text);
    let others = RefreshTokens::new(&[2; 32]).unwrap();
    assert_eq!(others.read(&text), None);
    for at in 0..text.len() {
        let mut other = text.clone().into_bytes();
        other[at] = if other[at] == b'A' { b'B' } else { b'A' };
        assert_eq!(
            tokens.read(&String::from_utf8(other).unwrap()),
            None,
            "{at}"
        );
        assert_eq!(tokens.read(&text[..at]), None, "{at}");
    }
}

#[test]
fn only_the_last_refresh_token_is_good_and_the_one_before_it_for_a_moment() {
    assert_eq!(decide(3, 3, 0, 1), RefreshVerdict::Rotate);
    assert_eq!(decide(2, 3, 0, REPEAT_MS), RefreshVerdict::Repeat);
    assert_eq!(decide(2, 3, 0, REPEAT_MS + 1), RefreshVerdict::Reused);
    assert_eq!(decide(1, 3, 0, 1), RefreshVerdict::Reused);
    assert_eq!(decide(4, 3, 0, 1), RefreshVerdict::Unknown);
    assert_eq!(decide(i64::MIN, i64::MAX, 0, 1), RefreshVerdict::Reused);
    assert_eq!(decide(i64::MAX, i64::MIN, 0, 1), RefreshVerdict::Unknown);
}

#[test]
fn the_documents_name_each_other() {
    let server = metadata::server(ISSUER);
    let resource = metadata::resource(ISSUER, RESOURCE);
    assert_eq!(resource["authorization_servers"], json!([server["issuer"]]));
    assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(server["client_id_metadata_document_supported"], true);
    assert_eq!(
        server["token_endpoint"],
        "https://gw.example/mcp/oauth/token"
    );
    assert_eq!(server["scopes_supported"], resource["scopes_supported"]);
}
