//! `compat = "agent"`: refusals, to the byte and with their types; and document mode beside it.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::flags::{agent, call, gateway, gateway_with_env, json_of, plain, post, said};
use crate::support::issuer;
use crate::support::script::Reply;
use crate::support::upstream::{ClosedPort, Upstream};

const STREAM: &str = "/v1/notifications/event-stream";

fn listen(gateway: &Gateway) -> Answer {
    let asked = Ask::get(STREAM).header("X-Optimizely-SDK-Key", "sandbox");
    ask(gateway.address(), &asked)
}

/// Contract: decision-agent 7 403
#[test]
fn what_is_switched_off_is_refused_in_plain_text() {
    let off = "overrides = false\nnotifications = false";
    let body = json!({"userId": "u", "experimentKey": "e"});
    let old = agent(off);
    assert_eq!(
        said(&post(&old, "/v1/override", &body)),
        plain(403, "Overrides not enabled\n")
    );
    assert_eq!(
        said(&listen(&old)),
        plain(403, "Notification stream not enabled\n")
    );
    let document = gateway(off);
    assert_eq!(
        said(&post(&document, "/v1/override", &body)),
        json_of(403, r#"{"error":"Overrides not enabled"}"#)
    );
    assert_eq!(
        said(&listen(&document)),
        json_of(403, r#"{"error":"Notification stream not enabled"}"#)
    );
}

/// A gateway that fetches datafiles from there.
fn fetching(compat: &str, url: &str) -> (Gateway, tempfile::TempDir) {
    let state = tempfile::tempdir().unwrap();
    let more = format!("compat = \"{compat}\"\ndatafile_url = \"{url}/%s.json\"");
    let folder = state.path().display().to_string();
    let gateway = gateway_with_env(&more, &[("WEIRGATE_STORE__STATE_DIR", &folder)]);
    (gateway, state)
}

fn config(gateway: &Gateway, key: &str) -> Answer {
    let asked = Ask::get("/v1/config").header("X-Optimizely-SDK-Key", key);
    ask(gateway.address(), &asked)
}

#[test]
fn a_key_that_the_source_refuses_is_reported_with_the_status_also_while_that_is_cached() {
    for (status, told) in [
        (401, "401 Unauthorized"),
        (403, "403 Forbidden"),
        (404, "404 Not Found"),
    ] {
        let source = Upstream::always(Reply::whole(status, &[], ""));
        let (old, _state) = fetching("agent", &source.url());
        let body = format!(
            "{{\"error\":\"unable to fetch fresh datafile (consider rechecking SDK key), status code: {told}\"}}\n"
        );
        for _ in 0..3 {
            assert_eq!(said(&config(&old, "nobody")), json_of(403, &body));
        }
        assert_eq!(source.requests().len(), 1);
    }
    let source = Upstream::always(Reply::whole(403, &[], ""));
    let (document, _state) = fetching("document", &source.url());
    for _ in 0..2 {
        assert_eq!(
            said(&config(&document, "nobody")),
            json_of(401, r#"{"error":"the SDK key is not known here"}"#)
        );
    }
}

#[test]
fn a_key_that_no_project_names_has_words_of_its_own() {
    assert_eq!(
        said(&config(&agent(""), "nobody")),
        json_of(403, "{\"error\":\"the SDK key is not known here\"}\n")
    );
}

#[test]
fn a_datafile_that_cannot_be_had_or_used_is_reported_with_the_name_of_its_key() {
    let expected = "{\"error\":\"failed to instantiate Optimizely for SDK Key: k\"}\n";
    let closed = ClosedPort::take();
    let (old, _state) = fetching("agent", &closed.url());
    for _ in 0..2 {
        assert_eq!(said(&config(&old, "k:token")), json_of(500, expected));
    }
    for reply in [Reply::whole(500, &[], ""), Reply::json(200, "{}")] {
        let source = Upstream::always(reply);
        let (old, _state) = fetching("agent", &source.url());
        assert_eq!(said(&config(&old, "k")), json_of(500, expected));
    }
}

#[test]
fn a_call_without_a_key_or_with_a_malformed_one_is_a_bad_request() {
    let old = agent("");
    assert_eq!(
        said(&ask(old.address(), &Ask::get("/v1/config"))),
        json_of(
            400,
            "{\"error\":\"missing required X-Optimizely-SDK-Key header\"}\n"
        )
    );
    assert_eq!(
        said(&config(&old, "a b")),
        json_of(400, "{\"error\":\"sdkKey failed validation\"}\n")
    );
}

#[test]
fn an_invalid_body_gets_the_words_of_the_legacy_agent() {
    let old = agent("user_profiles = \"memory\"");
    let no_user = r#"missing \"userId\" in request payload"#;
    let unreadable = "error parsing request body";
    for (path, body, error) in [
        ("/v1/decide", json!({}), no_user),
        ("/v1/decide", json!([]), unreadable),
        ("/v1/decide", json!({"userId": 1}), unreadable),
        ("/v1/activate", Value::Null, no_user),
        (
            "/v1/activate?type=all",
            json!({"userId": "u"}),
            r#"type \"all\" not supported"#,
        ),
        ("/v1/lookup", json!({"userId": ""}), no_user),
        ("/v1/save", json!({}), no_user),
        (
            "/v1/track",
            json!({}),
            "missing required path parameter: eventKey",
        ),
        ("/v1/track", json!({"eventTags": 1}), unreadable),
        ("/v1/override", json!({}), "userId cannot be empty"),
        (
            "/v1/override",
            json!({"userId": "u"}),
            "experimentKey cannot be empty",
        ),
        (
            "/v1/send-odp-event",
            json!({}),
            r#"missing \"action\" in request payload"#,
        ),
        (
            "/v1/send-odp-event",
            json!({"action": "a", "identifiers": {}}),
            r#"missing or empty \"identifiers\" in request payload"#,
        ),
        (
            "/v1/send-odp-event",
            json!({"identifiers": {"vuid": 1}}),
            unreadable,
        ),
    ] {
        let expected = format!("{{\"error\":\"{error}\"}}\n");
        let answer = post(&old, path, &body);
        assert_eq!(said(&answer), json_of(400, &expected), "{path} {body}");
    }
}

#[test]
fn what_does_not_exist_is_reported_before_the_body_is_read() {
    let old = agent("");
    let none = "{\"error\":\"no user profile service found\"}\n";
    for path in ["/v1/lookup", "/v1/save"] {
        assert_eq!(said(&post(&old, path, &json!([]))), json_of(500, none));
    }
    let event = json!({"action": "a", "identifiers": {"vuid": "x"}, "data": {"x": []}});
    assert_eq!(
        said(&post(&old, "/v1/send-odp-event", &event)),
        json_of(500, "{\"error\":\"ODP is not integrated\"}\n")
    );
}

#[test]
fn a_body_of_another_media_type_is_refused_without_a_word_and_a_get_has_none() {
    let old = agent("");
    let typed = |method: &str, path: &str, body: &str| {
        let asked = Ask::new(method, path).header("X-Optimizely-SDK-Key", "sandbox");
        ask(
            old.address(),
            &asked.header("Content-Type", "text/plain").body(body),
        )
    };
    let refused = typed("POST", "/v1/decide", "{}");
    assert_eq!(said(&refused), (415, None, None, ""));
    assert_eq!(typed("POST", "/v1/track?eventKey=no", "").status(), 200);
    assert_eq!(typed("GET", "/v1/datafile", "{}").status(), 200);
}

#[test]
fn every_response_has_the_bytes_of_the_legacy_agent() {
    let old = agent("user_profiles = \"memory\"");
    let set = |experiment: &str, variation: &str| json!({"userId": "<u>", "experimentKey": experiment, "variationKey": variation});
    let told = |variation: &str, before: &str, messages: &str| {
        format!(
            "{{\"userId\":\"\\u003cu\\u003e\",\"experimentKey\":\"checkout_test\",\"variationKey\":\"{variation}\",\
             \"prevVariationKey\":\"{before}\",\"messages\":{messages}}}\n"
        )
    };
    for (variation, before, messages) in [
        ("one_page", "", "null"),
        (
            "none",
            "one_page",
            r#"["variationKey not found in configuration","updating previous override"]"#,
        ),
        ("", "none", r#"["removing previous override"]"#),
        ("", "", r#"["no pre-existing override"]"#),
    ] {
        let answer = post(&old, "/v1/override", &set("checkout_test", variation));
        assert_eq!(
            said(&answer),
            json_of(200, &told(variation, before, messages))
        );
    }
    let unknown = post(&old, "/v1/override", &set("none", "a"));
    let messages = &unknown.json()["messages"];
    assert_eq!(
        messages,
        &json!(["experimentKey not found in configuration"])
    );
    for (path, body, expected) in [
        (
            "/v1/track?eventKey=no",
            json!({"userId": "u"}),
            "{\"userId\":\"u\",\"eventKey\":\"no\",\"error\":\"event with key \\\"no\\\" not found\"}\n",
        ),
        (
            "/v1/track?eventKey=purchase",
            json!({}),
            "{\"userId\":\"\",\"eventKey\":\"purchase\"}\n",
        ),
        (
            "/v1/lookup",
            json!({"userId": "u"}),
            "{\"userId\":\"u\",\"experimentBucketMap\":{}}\n",
        ),
    ] {
        assert_eq!(said(&post(&old, path, &body)), json_of(200, expected));
    }
    let saved = post(&old, "/v1/save", &json!({"userId": "u"}));
    assert_eq!(said(&saved), (200, None, None, ""));
}

#[test]
fn a_token_that_cannot_be_read_is_refused_in_plain_text_and_one_that_does_not_suffice_as_json() {
    let published = Upstream::always(Reply::json(200, issuer::key_set(issuer::KEY_ID)));
    let old = agent(&format!("jwks_url = \"{}/keys\"", published.url()));
    let of = |claims: Value| issuer::token(issuer::KEY_ID, &claims);
    let asked = |token: &str| {
        let asked = call("/v1/decide?keys=dark_mode", &json!({"userId": "u"}));
        ask(old.address(), &asked.key(token))
    };
    let never = issuer::NEVER;
    for (token, reason) in [
        (String::new(), "empty token"),
        ("a.b.c".to_owned(), "signature is invalid"),
        (
            of(json!({"sdk_keys": ["sandbox"], "exp": 1})),
            "Token is expired",
        ),
        (
            of(json!({"sdk_keys": ["sandbox"], "exp": never, "nbf": never - 1})),
            "Token is not valid yet",
        ),
    ] {
        let expected = format!("{{\"error\": \"unauthorized\", \"reason\": \"{reason}\"}}\n");
        assert_eq!(said(&asked(&token)), plain(401, &expected));
    }
    for (claims, error) in [
        (json!({"sdk_keys": ["sandbox"]}), "token expired"),
        (
            json!({"exp": never}),
            "invalid claims: sdk_keys not found, or have the wrong type",
        ),
        (
            json!({"sdk_keys": ["other"], "exp": never}),
            "SDK key given in X-Optimizely-Sdk-Key header was not found in the SDK keys in this token's claims",
        ),
    ] {
        let expected = format!("{{\"error\":\"{error}\"}}\n");
        assert_eq!(said(&asked(&of(claims))), json_of(401, &expected));
    }
    // A call with its token in a header of its own.
    let good = of(json!({"sdk_keys": ["sandbox"], "exp": never}));
    let asked = call("/v1/decide?keys=dark_mode", &json!({"userId": "u"}));
    assert_eq!(
        ask(old.address(), &asked.header("Jwt", &good)).status(),
        200
    );
}

#[test]
fn a_token_request_of_another_media_type_learns_which_is_accepted() {
    let text = Ask::new("POST", "/oauth/token").header("Content-Type", "text/plain");
    let text = text.body("x");
    assert_eq!(
        said(&ask(agent("").address(), &text)),
        json_of(
            415,
            "{\"error\":\"invalid_request\",\"error_description\":\"Content-Type header value must be application/x-www-form-urlencoded\"}\n"
        )
    );
    assert_eq!(
        said(&ask(gateway("").address(), &text)),
        json_of(
            415,
            "{\"error\":\"`Content-Type` is neither application/json nor application/x-www-form-urlencoded\"}"
        )
    );
}

#[test]
fn an_announcement_names_its_project_by_a_number() {
    let hook = "[[decisions.webhooks]]\nproject_id = 77\nsecret = { env = \"HOOK\" }\nsdk_keys = [\"k\"]\n";
    let gateway = |compat: &str| {
        let more = format!("compat = \"{compat}\"\n{hook}");
        gateway_with_env(&more, &[("HOOK", "secret")])
    };
    let (old, document) = (gateway("agent"), gateway("document"));
    let announce =
        |to: &Gateway, body: &str| ask(to.address(), &Ask::post("/webhooks/optimizely", body));
    let unsigned = "{\"error\":\"Computed signature does not match signature in request. Ignoring message.\"}\n";
    let unread = "{\"error\":\"Unable to parse webhook message.\"}\n";
    assert_eq!(
        said(&announce(&old, "{\"project_id\":77}")),
        json_of(400, unsigned)
    );
    for body in ["{\"project_id\":\"77\"}", "[]", "no"] {
        assert_eq!(said(&announce(&old, body)), json_of(400, unread));
    }
    for body in ["{}", "null", "{\"project_id\":78}"] {
        assert_eq!(said(&announce(&old, body)), (204, None, None, ""));
    }
    assert_eq!(announce(&document, "{}").status(), 400);
}
