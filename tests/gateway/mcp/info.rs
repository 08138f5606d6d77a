//! `GET /mcp`: who the server is. Its stream of events is tested in `mcp::listening`.

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;

#[test]
fn anybody_may_know_what_is_there() {
    let gateway = Gateway::start("", MODELS);
    let answer = ask(gateway.address(), &Ask::get("/mcp"));
    let info = answer.json();
    assert_eq!((answer.status(), &info["name"]), (200, &"weirgate".into()));
    assert_eq!(
        (&info["endpoint"], &info["protocolVersion"]),
        (&"/mcp".into(), &"2026-07-28".into())
    );
    assert_eq!(
        ask(gateway.address(), &Ask::new("HEAD", "/mcp")).status(),
        200
    );
    for spelling in ["/mcp/", "/MCP", "//mcp"] {
        assert_eq!(
            ask(gateway.address(), &Ask::get(spelling)).status(),
            200,
            "{spelling}"
        );
    }
}

#[test]
fn pages_of_other_origins_are_refused() {
    let gateway = Gateway::start("", MODELS);
    let from = |origin: &str| Ask::get("/mcp").header("Origin", origin);
    assert_eq!(
        ask(gateway.address(), &from("https://evil.example.com")).status(),
        403
    );
    assert_eq!(
        ask(gateway.address(), &from("http://localhost:1")).status(),
        200
    );
}
