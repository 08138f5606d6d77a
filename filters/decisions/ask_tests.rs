#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use super::*;

fn user_id(body: &str, compat: Compat) -> Option<String> {
    let mut body = DecisionBody::parse(body.as_bytes(), compat).unwrap();
    body.user().ok().map(|user| user.id.into_owned())
}

#[test]
fn the_last_user_counts_and_null_takes_none_away_from_the_agent_of_old() {
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
        assert_eq!(user_id(body, Compat::Agent).as_deref(), agent, "{body}");
        assert_eq!(
            user_id(body, Compat::Document).as_deref(),
            document,
            "{body}"
        );
    }
}

#[test]
fn of_one_attribute_the_last_value_counts_in_the_place_of_the_first_to_both() {
    let body = br#"{"userId":"u","userAttributes":{"b":1,"a":2,"B":3,"b":null}}"#;
    for compat in [Compat::Agent, Compat::Document] {
        let user = DecisionBody::parse(body, compat).unwrap().user().unwrap();
        let names: Vec<&str> = user.attributes.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "a", "B"]);
        assert!(user.attributes.get("b").unwrap().is_null());
    }
}

#[test]
fn an_identifier_that_is_null_is_an_empty_text_to_the_agent_of_old_alone() {
    let body = br#"{"action":"a","identifiers":{"vuid":null}}"#;
    let event = |compat| DecisionBody::parse(body, compat).unwrap().segment_event();
    let written = event(Compat::Agent).unwrap().written("id", Compat::Agent);
    assert_eq!(written["identifiers"], serde_json::json!({"vuid": ""}));
    assert_eq!(event(Compat::Document).unwrap_err().status(), 400);
}
