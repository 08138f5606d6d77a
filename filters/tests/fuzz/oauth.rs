//! OAuth of the MCP server: metadata of clients, redirect URIs and authorization requests.

use filters::mcp::oauth::authorization::{AuthorizationRefusal, AuthorizationRequest};
use filters::mcp::oauth::client::{Client, ClientAuth, ClientMetadata};
use filters::mcp::oauth::form::OAuthParameters;
use filters::mcp::oauth::redirect::{self, RedirectUri};
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::run::run;
use crate::{damage, grammar};

const REDIRECT_URIS: [&str; 8] = [
    "https://app.example/cb",
    "https://app.example:8443/cb?a=b",
    "http://127.0.0.1/cb",
    "http://127.0.0.1:3000/cb",
    "http://localhost:7/",
    "http://[::1]:9/cb",
    "cursor://app/cb",
    "com.example.app:/cb",
];

fn metadata(choices: &mut Choices<'_>) -> Value {
    let composed = json!({"client_name?": "$text", "client_id?": "https://app.example/client",
        "redirect_uris": {"$many": {"$one": REDIRECT_URIS}},
        "token_endpoint_auth_method?": {"$one": ["none", "client_secret_basic", "client_secret_post", "$any"]},
        "grant_types?": {"$one": [["authorization_code"], ["authorization_code", "refresh_token"], "$any"]},
        "response_types?": {"$one": [["code"], "$any"]}});
    let composed = grammar::compose(choices, &composed);
    match choices.once_in(2) {
        true => damage::tree(choices, composed),
        false => composed,
    }
}

#[test]
fn what_a_client_registers_is_bounded_and_read_back() {
    run("oauth: metadata of clients", |choices| {
        let composed = metadata(choices);
        let mut bytes = grammar::write(choices, &composed);
        if choices.once_in(3) {
            bytes = damage::bytes(choices, bytes);
        }
        let read = match choices.once_in(3) {
            true => ClientMetadata::read_document("https://app.example/client", &bytes),
            false => ClientMetadata::read(&bytes),
        };
        let Ok(metadata) = read else { return };
        assert!((1..=10).contains(&metadata.redirect_uris.len()));
        for uri in &metadata.redirect_uris {
            let uri = RedirectUri::parse(uri).unwrap();
            assert!(!uri.place().is_empty());
        }
        let written = Value::Object(metadata.to_members()).to_string();
        assert_eq!(ClientMetadata::read(written.as_bytes()), Ok(metadata));
    });
}

/// The parts of a URI that has to be of loopback: scheme, host and what follows the port, by another reading than that of the
/// server.
fn without_port(uri: &str) -> (String, String) {
    let rest = uri.strip_prefix("http://").unwrap();
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(at);
    let host = authority.trim_end_matches(|c: char| c.is_ascii_digit());
    let host = host.strip_suffix(':').unwrap_or(authority);
    (host.to_owned(), rest.to_owned())
}

#[test]
fn nothing_but_a_registered_redirect_uri_is_found() {
    run("oauth: redirect URIs", |choices| {
        let count = 1 + choices.below(3);
        let registered: Vec<String> = (0..count)
            .map(|_| (*choices.pick(&REDIRECT_URIS)).to_owned())
            .collect();
        let named = choices.pick(&REDIRECT_URIS).as_bytes().to_vec();
        let named = match choices.once_in(4) {
            true => named,
            false => damage::bytes(choices, named),
        };
        let Ok(named) = String::from_utf8(named) else {
            return;
        };
        let Some(found) = redirect::find(&registered, &named) else {
            assert!(!registered.contains(&named), "{named}");
            return;
        };
        let is_registered = registered.contains(&named)
            || registered
                .iter()
                .any(|uri| uri.starts_with("http://") && without_port(uri) == without_port(&named));
        assert!(is_registered, "{named}: {registered:?}");
        let text = choices.text();
        let answered = found.with(&[("code", &text)]);
        assert!(answered.starts_with(&named) && answered.is_ascii());
        assert!(
            !answered.contains(['\r', '\n', '#', ' ', '"', '<']),
            "{answered}"
        );
    });
}

#[test]
fn an_authorization_request_is_answered_at_the_clients_address_or_nowhere() {
    let metadata = ClientMetadata {
        name: None,
        redirect_uris: vec!["https://app.example/cb".to_owned()],
        auth: ClientAuth::None,
        has_refresh_tokens: true,
    };
    let client = Client {
        id: "client_1".to_owned(),
        metadata,
    };
    run("oauth: authorization requests", |choices| {
        let mut query = "client_id=client_1&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&response_type=code&state=s\
            &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256\
            &scope=models+decisions&resource=https://gw.example/mcp"
            .to_owned()
            .into_bytes();
        if !choices.once_in(4) {
            query = damage::bytes(choices, query);
        }
        let query = String::from_utf8_lossy(&query);
        let query = OAuthParameters::read(&query);
        let here = ("https://gw.example", "https://gw.example/mcp");
        match AuthorizationRequest::read(&query, &client, here) {
            Ok(request) => {
                assert_eq!(request.redirect_uri, "https://app.example/cb");
                assert_eq!((request.challenge.len(), &*request.resource), (43, here.1));
            }
            Err(AuthorizationRefusal::Page(_)) => {
                assert_ne!(query.find("redirect_uri"), Some("https://app.example/cb"));
            }
            Err(AuthorizationRefusal::Redirect(url)) => {
                assert!(url.starts_with("https://app.example/cb?error="), "{url}");
                assert!(url.is_ascii() && !url.contains(['\r', '\n']), "{url}");
            }
        }
    });
}
