//! `OPTIONS /.well-known/…`: pages of all origins may read the documents.

use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::ask;

#[test]
fn a_page_may_name_the_revision_that_it_speaks() {
    let gateway = Gateway::start("", MODELS);
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let request = Ask::new("OPTIONS", path).header("Origin", "https://app.example");
        let answer = ask(gateway.address(), &request);
        assert_eq!((answer.status(), answer.body.len()), (204, 0));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let headers = answer.header("access-control-allow-headers").unwrap();
        assert!(headers.contains("mcp-protocol-version"), "{headers}");
    }
}
