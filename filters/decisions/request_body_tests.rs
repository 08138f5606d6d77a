#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use crate::decisions::protocol::{Agent, Document, Protocol};

fn user_id(body: &str, protocol: &dyn Protocol) -> Option<String> {
    let mut body = protocol.read(body.as_bytes()).unwrap();
    body.user().ok().map(|user| user.id.into_owned())
}

#[test]
fn the_last_user_counts_and_null_takes_none_away_from_the_original_agent() {
    for (body, agent, document) in [
        (
            r#"{"userId":"a","USERID":"b","userId":"c"}"#,
            Some("c"),
            Some("b"),
        ),
        (r#"{"userId":"a","userId":null}"#, Some("a"), None),
        (r#"{"userId":"a","userId":"b"}"#, Some("b"), Some("b")),
        (r#"{"userId":null}"#, None, None),
    ] {
        assert_eq!(user_id(body, &Agent).as_deref(), agent, "{body}");
        assert_eq!(user_id(body, &Document).as_deref(), document, "{body}");
    }
}

#[test]
fn of_one_attribute_the_last_value_counts_in_the_place_of_the_first_to_both() {
    let body = br#"{"userId":"u","userAttributes":{"b":1,"a":2,"B":3,"b":null}}"#;
    for protocol in [&Agent as &dyn Protocol, &Document] {
        let user = protocol.read(body).unwrap().user().unwrap();
        let names: Vec<&str> = user.attributes.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "a", "B"]);
        assert!(user.attributes.get("b").unwrap().is_null());
    }
}

#[test]
fn an_identifier_that_is_null_is_an_empty_text_to_the_original_agent_alone() {
    let body = br#"{"action":"a","identifiers":{"vuid":null}}"#;
    let event = |protocol: &dyn Protocol| protocol.read(body).unwrap().into_odp_event();
    let json = event(&Agent).unwrap().to_json("id", "go-sdk");
    assert_eq!(json["identifiers"], serde_json::json!({"vuid": ""}));
    assert_eq!(event(&Document).unwrap_err().status(), 400);
}

/// Contract: decision-agent 2.2 forced decision
#[test]
fn a_forced_decision_names_flag_and_variation_but_to_the_original_agent() {
    for forced in [
        r#"{"variationKey":"v"}"#,
        r#"{"flagKey":"f"}"#,
        r#"{"flagKey":null,"variationKey":"v"}"#,
    ] {
        let body = format!(r#"{{"userId":"u","forcedDecisions":[{forced}]}}"#);
        let decide =
            |protocol: &dyn Protocol| protocol.read(body.as_bytes()).unwrap().into_decide();
        assert!(decide(&Agent).is_ok(), "{body}");
        let fault = decide(&Document).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some("forcedDecisions"), "{body}");
    }
}
