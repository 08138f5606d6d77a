//! `GET /mcp/oauth/authorize`: a person is asked.

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;
use crate::support::oauth::{ISSUER, authorization, brought, client};

#[test]
fn the_page_says_who_asks_for_what_and_where_the_answer_goes() {
    let gateway = Gateway::start("", MODELS);
    let client = client(gateway.address());
    let request = authorization(&client, "models account:read", &[]);
    let answer = ask(gateway.address(), &request);
    assert_eq!(answer.status(), 200);
    let html = answer.text();
    for shown in ["An editor", "127.0.0.1:7777", "models", "account:read"] {
        assert!(html.contains(shown), "{shown}: {html}");
    }
    assert!(!html.contains("limits:read") && !html.contains("<script"));
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(answer.header(name), Some(value));
    }
    let policy = answer.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "http://127.0.0.1:7777",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    let cookie = answer.header("set-cookie").unwrap();
    for part in [
        "HttpOnly",
        "SameSite=Strict",
        "Path=/mcp/oauth",
        "Max-Age=600",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(
        !cookie.contains("Secure"),
        "this machine without TLS: {cookie}"
    );
    let public = Gateway::start("[mcp]\npublic_url = \"https://gw.example\"\n", MODELS);
    let client = crate::support::oauth::client(public.address());
    let resource = [("resource", "https://gw.example/mcp")];
    let answer = ask(
        public.address(),
        &authorization(&client, "models", &resource),
    );
    assert!(answer.header("set-cookie").unwrap().ends_with("; Secure"));
}

#[test]
fn nobody_is_sent_to_an_address_that_is_not_the_clients() {
    let gateway = Gateway::start("", MODELS);
    let client = client(gateway.address());
    for (name, value) in [
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "http://127.0.0.1:7777/callback/"),
        ("redirect_uri", "http://127.0.0.1:7777/callback?a=b"),
        (
            "redirect_uri",
            "http://127.0.0.1:7777@evil.example/callback",
        ),
        ("redirect_uri", "http://localhost:7777/callback"),
        ("redirect_uri", "https://127.0.0.1:7777/callback"),
        ("redirect_uri", "javascript:alert(1)"),
        ("redirect_uri", ""),
        ("client_id", "client_0"),
        ("client_id", "https://evil.example/client"),
        ("client_id", ""),
    ] {
        let request = authorization(&client, "models", &[(name, value), ("response_type", "no")]);
        let answer = ask(gateway.address(), &request);
        assert_eq!(answer.status(), 400, "{name} {value}");
        assert_eq!(answer.header("location"), None);
        assert!(answer.text().contains("This link cannot be used"));
        assert!(!answer.text().contains("evil.example") && !answer.text().contains("alert"));
    }
    let request = authorization(&client, "models", &[]);
    let (_, target) = request.target();
    let twice = Ask::get(&format!(
        "{target}&redirect_uri=https%3A%2F%2Fevil.example%2F"
    ));
    let answer = ask(gateway.address(), &twice);
    assert_eq!((answer.status(), answer.header("location")), (400, None));
}

#[test]
fn what_else_is_wrong_is_told_to_the_client() {
    let gateway = Gateway::start("", MODELS);
    let client = client(gateway.address());
    for (name, value, expected) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("scope", "everything", "invalid_scope"),
        ("resource", "https://other.example/mcp", "invalid_target"),
    ] {
        let answer = ask(
            gateway.address(),
            &authorization(&client, "models", &[(name, value)]),
        );
        assert_eq!(answer.status(), 302, "{name} {value}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        let brought = brought(&answer);
        let of = |name: &str| {
            let found = brought.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(of("error"), Some(expected));
        assert_eq!((of("state"), of("iss")), (Some("the state"), Some(ISSUER)));
        assert_eq!(of("code"), None);
    }
}

#[test]
fn elsewhere_a_person_is_told_that_it_is_off() {
    let gateway = Gateway::start("", MODELS);
    let client = client(gateway.address());
    let elsewhere = authorization(&client, "models", &[]).without("Host");
    let answer = ask(gateway.address(), &elsewhere.header("Host", "gw.example"));
    assert_eq!(answer.status(), 404);
    assert!(
        answer.text().contains("mcp.public_url"),
        "{}",
        answer.text()
    );
}

#[test]
fn a_client_id_at_a_private_address_is_not_asked() {
    let gateway = Gateway::start("", MODELS);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let show = |id: &str| {
        let answer = ask(gateway.address(), &authorization(id, "models", &[]));
        assert_eq!(answer.header("location"), None);
        answer
    };
    for host in ["127.0.0.1", "localhost", "[::1]", "2130706433"] {
        let answer = show(&format!("https://{host}:{port}/client.json"));
        assert_eq!(answer.status(), 400, "{}", answer.text());
        assert!(answer.text().contains("This link cannot be used"));
        assert!(answer.text().contains("from a public address"));
        assert!(!answer.text().contains(host), "{host}");
    }
    // Neither is what is no such URL.
    for id in [
        format!("http://127.0.0.1:{port}/client.json"),
        format!("https://127.0.0.1:{port}"),
        format!("https://127.0.0.1:{port}/a/../client.json"),
        format!("https://user@127.0.0.1:{port}/client.json"),
        format!("https://127.0.0.1:{port}/client.json#a"),
    ] {
        let answer = show(&id);
        assert_eq!(answer.status(), 400, "{id}");
        assert!(answer.text().contains("is not known"), "{}", answer.text());
    }
    assert!(listener.accept().is_err(), "somebody was asked");
    let many = (0..30).map(|number| format!("https://127.0.0.1:{port}/{number}"));
    let statuses: Vec<u16> = many.map(|id| show(&id).status()).collect();
    assert_eq!((statuses[0], statuses[29]), (400, 429));
}
