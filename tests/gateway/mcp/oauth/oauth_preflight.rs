//! `OPTIONS /mcp/oauth/…`: pages of all origins may register and ask for tokens; none gets a cookie.

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;

#[test]
fn a_page_may_send_json_and_credentials_of_its_own() {
    let gateway = Gateway::start("", MODELS);
    for path in [
        "/mcp/oauth/register",
        "/mcp/oauth/token",
        "/mcp/oauth/revoke",
    ] {
        let request = Ask::new("OPTIONS", path).header("Origin", "https://app.example");
        let answer = ask(gateway.address(), &request);
        assert_eq!(answer.status(), 204);
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
        let headers = answer.header("access-control-allow-headers").unwrap();
        assert!(headers.contains("authorization") && headers.contains("content-type"));
    }
    assert_eq!(
        ask(gateway.address(), &Ask::get("/mcp/oauth/other")).status(),
        404
    );
    assert_eq!(
        ask(gateway.address(), &Ask::get("/mcp/oauth/token")).status(),
        405
    );
}
