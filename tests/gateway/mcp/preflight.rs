//! `OPTIONS /mcp`: what a page may send.

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;

#[test]
fn a_page_of_an_allowed_origin_may_send_its_request() {
    let gateway = Gateway::start("", MODELS);
    let from = |origin: &str| {
        Ask::new("OPTIONS", "/mcp")
            .header("Origin", origin)
            .header("Access-Control-Request-Method", "POST")
            .header(
                "Access-Control-Request-Headers",
                "authorization, mcp-protocol-version",
            )
    };
    let answer = ask(gateway.address(), &from("http://localhost:6274"));
    assert_eq!((answer.status(), answer.text()), (204, ""));
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("http://localhost:6274")
    );
    let headers = answer.header("access-control-allow-headers").unwrap();
    for name in [
        "authorization",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "content-type",
    ] {
        assert!(headers.contains(name), "{headers}");
    }
    assert_eq!(
        answer.header("access-control-allow-methods"),
        Some("GET, POST, DELETE")
    );
    let answer = ask(gateway.address(), &from("https://evil.example.com"));
    assert_eq!(answer.status(), 403);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}
