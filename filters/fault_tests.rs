#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use super::*;

#[test]
fn a_quoted_text_is_cut_between_characters() {
    assert_eq!(quoted("short"), "short");
    assert_eq!(quoted(&"ä".repeat(100)), "ä".repeat(100));
    assert_eq!(quoted(&"ä".repeat(101)), format!("{}…", "ä".repeat(100)));
}

#[test]
fn a_logged_message_quotes_nothing_and_tells_no_number() {
    for (message, logged) in [
        (
            "`n` is -12.5; 1 to 128 are accepted",
            "… is -#.#; # to # are accepted",
        ),
        ("`effort` is `a`b\"c`; `low` is accepted", "… is accepted"),
        (
            "the tool \"secret\" is not there",
            "the tool … is not there",
        ),
        ("the value is 'x'", "the value is …"),
        ("the client's text", "the client…s text"),
        ("nothing came", "nothing came"),
        (
            "the provider refused the request: no secret",
            "the provider refused the request…",
        ),
        ("the field `a: b` is `c`", "the field …"),
        ("", ""),
    ] {
        let fault = Fault::new(FaultKind::Invalid, message.to_owned());
        assert_eq!(fault.logged_message(), logged);
    }
    let fixed = Fault::new(FaultKind::Invalid, "`n` is missing");
    assert_eq!(fixed.logged_message(), "`n` is missing");
}

#[test]
fn the_codes_of_kinds_have_the_statuses_of_their_kinds() {
    for (place, kind) in FaultKind::ALL.iter().enumerate() {
        let at = FaultKind::ALL.iter().position(|it| it == kind);
        assert_eq!(at, Some(place), "{kind:?}");
        let status = kind.row().status;
        if let Some(code) = kind.code() {
            assert_eq!(code.row().status, status, "{kind:?}");
        }
        // docs/errors.md says by the status whether a repeat may help.
        assert_eq!(kind.row().is_retryable, may_help_later(status), "{kind:?}");
    }
}

#[test]
fn compatible_body_has_all_four_members() {
    let fault = Fault::invalid("n", "`n` is 0; 1 to 128 are accepted");
    let body: serde_json::Value = serde_json::from_slice(&fault.compatible_body()).unwrap();
    assert_eq!(body["error"]["param"], "n");
    assert_eq!(body["error"]["type"], "invalid_request_error");
    assert!(body["error"]["code"].is_null());
    assert_eq!(body["error"].as_object().unwrap().len(), 4);
}

#[test]
fn metadata_stands_beside_the_error() {
    let fault = Fault::new(FaultKind::UpstreamFailed, "every provider failed");
    let fault = fault.with_metadata(br#"{"routing":[]}"#.to_vec());
    let body: serde_json::Value = serde_json::from_slice(&fault.compatible_body()).unwrap();
    assert_eq!(body["metadata"], serde_json::json!({"routing": []}));
    assert_eq!(body["error"].as_object().unwrap().len(), 4);
}

/// Contract: model-gateway 7 408
/// Contract: model-gateway 7 500
#[test]
fn what_came_too_late_and_what_failed_here_tell_no_detail() {
    for (kind, status, error_type) in [
        (FaultKind::RequestTimeout, 408, "timeout_error"),
        (FaultKind::Internal, 500, "api_error"),
    ] {
        let fault = Fault::new(kind, "it failed").with_detail("of 10.0.0.7");
        assert_eq!(fault.status(), status);
        let body = fault.compatible_body();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["error"]["type"], error_type);
        assert_eq!(body["error"]["message"], "it failed");
        assert!(!body.to_string().contains("10.0.0.7"), "{body}");
    }
}
