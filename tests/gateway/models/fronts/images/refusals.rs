//! Requests for images that are refused, and the bounds that refuse them.

use super::*;

/// Contract: model-gateway 2.7 prompt
/// Contract: model-gateway 2.7 n
/// Contract: model-gateway 2.7 response_format
/// Contract: model-gateway 2.7 background
/// Contract: model-gateway 8 6
#[test]
fn a_bad_request_is_named_reaches_no_provider_and_costs_nothing() {
    let first = Upstream::always(drawn(1));
    let gateway = gateway(&first, &first);
    for (body, param) in [
        (r#"{"model":"pair"}"#, Some("prompt")),
        (r#"{"model":"pair","prompt":""}"#, Some("prompt")),
        (r#"{"model":"pair","prompt":"a","n":0}"#, Some("n")),
        (r#"{"model":"pair","prompt":"a","n":11}"#, Some("n")),
        (
            r#"{"model":"pair","prompt":"a","response_format":"url"}"#,
            Some("response_format"),
        ),
        (
            r#"{"model":"pair","prompt":"a","output_compression":101}"#,
            Some("output_compression"),
        ),
        (
            r#"{"model":"pair","prompt":"a","output_compression":50}"#,
            Some("output_compression"),
        ),
        (
            r#"{"model":"pair","prompt":"a","images":[]}"#,
            Some("images"),
        ),
        ("{", None),
    ] {
        let answer = gateway.draw(body);
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status(), error["param"].as_str()),
            (400, param),
            "{body}: {error}"
        );
    }
    let text = gateway.draw_ask(plain("pair")).without("content-type");
    let text = text.header("content-type", "text/plain");
    assert_eq!(ask(gateway.address(), &text).status(), 415);
    let get = Ask::get("/v1/images/generations").key(&gateway.key);
    assert_eq!(ask(gateway.address(), &get).status(), 405);
    let keyless = Ask::post("/v1/images/generations", plain("pair"));
    assert_eq!(ask(gateway.address(), &keyless).status(), 401);
    assert_eq!(gateway.draw(plain("nope")).status(), 404);
    assert!(first.requests().is_empty());
    used(&gateway, "0");
}

#[test]
fn a_body_may_be_larger_than_that_of_a_chat_and_has_a_bound() {
    let first = Upstream::always(drawn(1));
    let more = "[limits.body_bytes]\nchat = 2000\nimages = 4000";
    let gateway = gateway_with(&first, &first, more, "1");
    let body = |bytes: usize| json!({"model": "pair", "prompt": "a".repeat(bytes)}).to_string();
    assert_eq!(gateway.draw(body(3000)).status(), 200);
    assert_eq!(gateway.draw(body(5000)).status(), 413);
}

#[test]
fn without_credit_no_provider_is_asked_and_a_key_has_its_limit() {
    let first = Upstream::always(drawn(1));
    let poor = gateway_with(&first, &first, "", "0");
    let answer = poor.draw(plain("pair"));
    assert_eq!(answer.status(), 402);
    assert_eq!(answer.json()["error"]["code"], "insufficient_credits");
    assert!(first.requests().is_empty());
    // Ten images may cost a thousand tokens each: 0.3 USD at 30 USD per million.
    let short = gateway_with(&first, &first, "", "0.2");
    let ten = json!({"model": "first/pair", "prompt": "A cat", "n": 10});
    assert_eq!(short.draw(ten.to_string()).status(), 402);
    assert_eq!(short.draw(plain("first/pair")).status(), 200);
}

#[test]
fn images_have_a_quota_of_their_own() {
    let first = Upstream::always(drawn(1));
    let more = "[limits]\nrequests_per_minute = { images = 2, chat = 1 }";
    let gateway = gateway_with(&first, &first, more, "1");
    let answers = [&plain("pair"), "{", &plain("pair")].map(|body| gateway.draw(body));
    assert_eq!(answers.each_ref().map(Answer::status), [200, 400, 429]);
    assert_eq!(answers[2].header("ratelimit-limit"), Some("2"));
    assert_ne!(gateway.chat("{").status(), 429);
}

/// Source: model-gateway 8.1
#[test]
fn edits_count_apart_and_have_the_limit_of_images_where_they_have_none() {
    let first = Upstream::always(drawn(1));
    for (limits, edited) in [("images = 1", 1), ("images = 1, image_edits = 2", 2)] {
        let more = format!("[limits]\nrequests_per_minute = {{ {limits} }}");
        let gateway = gateway_with(&first, &first, &more, "1");
        let drawn = [0, 1].map(|_| gateway.draw("{").status());
        assert_eq!(drawn, [400, 429], "{limits}");
        let edit = Ask::post("/v1/images/edits", "{").key(&gateway.key);
        let edits = [0, 1, 2].map(|_| ask(gateway.address(), &edit).status());
        let admitted = edits.iter().filter(|status| **status == 400).count();
        assert_eq!((admitted, edits[2]), (edited, 429), "{limits}");
    }
}

#[test]
fn the_listing_says_that_the_model_makes_images() {
    let first = Upstream::always(drawn(1));
    let gateway = gateway(&first, &first);
    let models = ask(gateway.address(), &Ask::get("/v1/models").key(&gateway.key)).json();
    let entry = |id: &str| {
        let data = models["data"].as_array().unwrap();
        data.iter().find(|entry| entry["id"] == id).unwrap().clone()
    };
    let pair = entry("pair");
    assert_eq!(pair["architecture"]["output_modalities"], json!(["image"]));
    let expected = json!([
        "n",
        "size",
        "aspect_ratio",
        "quality",
        "moderation",
        "background",
        "input_fidelity",
        "output_format",
        "output_compression"
    ]);
    assert_eq!(pair["supported_parameters"], expected);
    let gemini = entry("gemini");
    assert_eq!(
        gemini["architecture"]["output_modalities"],
        json!(["image", "text"])
    );
}

/// Contract: model-gateway 2.7 stream
#[test]
fn a_stream_that_breaks_off_ends_with_an_error() {
    let partial = json!({"type": "image_generation.partial_image", "b64_json": "YQ==", "partial_image_index": 0});
    let broken = Reply::stream().event(&partial.to_string()).and_close();
    let first = Upstream::always(broken);
    let gateway = gateway(&first, &first);
    let body = json!({"model": "pair", "prompt": "A cat", "stream": true, "partial_images": 1});
    let answer = gateway.draw(body.to_string());
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let events = answer.events().json();
    assert_eq!(events[0]["type"], "image_generation.partial_image");
    let last = events.last().unwrap();
    assert!(last["error"]["message"].is_string(), "{}", answer.text());
    assert!(answer.text().contains("event: error"), "{}", answer.text());
    assert!(!answer.text().contains("completed"), "{}", answer.text());
}
