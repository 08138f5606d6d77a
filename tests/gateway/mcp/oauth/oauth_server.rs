//! `GET /.well-known/oauth-authorization-server`: where clients find the OAuth server.

use serde_json::json;

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;
use crate::support::described;

const PATH: &str = "/.well-known/oauth-authorization-server";

/// Contract: model-gateway 5 4
/// Source: model-gateway 1
/// Contract: model-gateway 1 /mcp is a
#[test]
fn it_is_where_the_client_has_asked_on_this_machine() {
    let gateway = Gateway::start("", MODELS);
    for host in [
        "localhost",
        "localhost:8080",
        "127.0.0.1:8080",
        "[::1]:8080",
    ] {
        let request = Ask::get(PATH).without("Host").header("Host", host);
        let answer = ask(gateway.address(), &request);
        assert_eq!(answer.status(), 200, "{host}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let document = answer.json();
        let issuer = format!("http://{host}");
        assert_eq!(document["issuer"], issuer);
        assert_eq!(
            document["token_endpoint"],
            format!("{issuer}/mcp/oauth/token")
        );
        assert_eq!(
            document["code_challenge_methods_supported"],
            json!(["S256"])
        );
        assert_eq!(
            document["authorization_response_iss_parameter_supported"],
            true
        );
    }
}

/// Source: model-gateway 1
#[test]
fn elsewhere_there_is_none_until_the_operator_says_where_it_is() {
    let hosts = ["gw.example", "192.0.2.7", "localhost.evil.example"];
    let at = |gateway: &Gateway, host: &str| {
        let request = Ask::get(PATH).without("Host").header("Host", host);
        ask(gateway.address(), &request)
    };
    let gateway = Gateway::start("", MODELS);
    for host in hosts {
        let answer = at(&gateway, host);
        assert_eq!(
            (answer.status(), &answer.json()["error"]),
            (404, &json!("invalid_request"))
        );
    }
    let gateway = Gateway::start("[mcp]\npublic_url = \"https://GW.example/\"\n", MODELS);
    for host in hosts.into_iter().chain(["localhost"]) {
        assert_eq!(at(&gateway, host).json()["issuer"], "https://gw.example");
    }
    // Secrets do not travel in the clear.
    let gateway = Gateway::start("[mcp]\npublic_url = \"http://gw.example\"\n", MODELS);
    assert_eq!(at(&gateway, "gw.example").status(), 404);
    assert_eq!(at(&gateway, "localhost").status(), 404);
}

#[test]
fn without_the_server_there_is_nothing() {
    let gateway = Gateway::start("[mcp]\nenabled = false\n", MODELS);
    described::leave_out(gateway.address());
    assert_eq!(ask(gateway.address(), &Ask::get(PATH)).status(), 404);
    assert_eq!(
        ask(gateway.address(), &Ask::get("/mcp/oauth/authorize")).status(),
        404
    );
}
