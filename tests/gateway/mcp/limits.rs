//! The tool that tells a tenant's limits.

use serde_json::json;

use super::{failure, given, result, rpc, tool};
use crate::graph::limits::{before, of, service};
use crate::support::boot::Gateway;

#[test]
fn a_tenant_is_that_of_the_credential_in_the_argument_or_the_header() {
    let service = service();
    let gateway = before(&service, "");
    let arguments = json!({"authorization": "epi-single k1", "operation": "POST /content/v2"});
    let told = given(&gateway, "graph-limits", arguments);
    let entry = json!({"operation": "POST /content/v2", "limit": 5, "remaining": 5});
    assert_eq!(
        told,
        json!({"tenant": "t1", "window_s": 3600, "data": [entry]})
    );
    let bare = tool(&gateway, "graph-limits", json!({}));
    let by_header = bare
        .clone()
        .header("X-Graph-Authorization", "Basic YXBwOmMyVmpjbVYw");
    let told = result(&gateway, &by_header);
    assert!(of(&told["structuredContent"], "POST /api/content/v3/types").is_some());
    // The key of the gateway is of no tenant.
    let (message, error) = failure(&gateway, &bare);
    assert_eq!(error["status"], 401, "{message}");
    for arguments in [
        json!({"authorization": "epi-single other"}),
        json!({"authorization": format!("Bearer {}", gateway.key)}),
    ] {
        let (_, error) = failure(&gateway, &tool(&gateway, "graph-limits", arguments));
        assert_eq!(error["status"], 401);
    }
    let (_, error) = failure(
        &gateway,
        &tool(&gateway, "graph-limits", json!({"authorization": "a\nb"})),
    );
    assert_eq!(
        (&error["status"], &error["param"]),
        (&json!(400), &json!("authorization"))
    );
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn without_a_graph_service_there_is_no_such_tool() {
    let gateway = Gateway::start("", "");
    let listed = result(&gateway, &rpc(&gateway, "tools/list", json!({})));
    let mut tools = listed["tools"].as_array().unwrap().iter();
    assert!(!tools.any(|tool| tool["name"] == "graph-limits"));
}
