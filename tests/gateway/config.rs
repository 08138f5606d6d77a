//! `GET /v1/config`.

use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::flags::gateway;

/// Contract: decision-agent 4 GET /v1/config
#[test]
fn the_configuration_is_shown_to_the_holder_of_a_key() {
    let gateway = gateway("");
    let request = Ask::get("/v1/config").header("X-Optimizely-SDK-Key", "sandbox");
    let answer = ask(gateway.address(), &request);
    let body = answer.json();
    assert_eq!((answer.status(), &body["revision"]), (200, &"1".into()));
    assert_eq!(
        body["featuresMap"]["checkout"]["experimentRules"][0]["audiences"],
        "\"Germany\""
    );
    assert_eq!(
        ask(gateway.address(), &Ask::get("/v1/config")).status(),
        401
    );
}
