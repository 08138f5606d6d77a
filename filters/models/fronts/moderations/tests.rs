#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::MODERATIONS;
use crate::fault::Fault;
use crate::models::check::samples::{NO_PICTURES, PIXEL};
use crate::models::front::Front;
use crate::models::fronts::tests::complete;
use crate::models::reply::ReplyIdentity;
use crate::models::request::{ModelRequest, Payload};
use crate::models::usage::Usage;

fn checked(body: &Value) -> Result<ModelRequest, Fault> {
    MODERATIONS.parse(body.to_string().into())
}

fn with_input(input: &Value) -> Result<ModelRequest, Fault> {
    checked(&json!({"model": "m", "input": input}))
}

fn image(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Contract: model-gateway 2.11 input
#[test]
fn every_form_of_input_is_taken_and_counted() {
    for (input, results, is_text_parts, images, text_bytes) in [
        (json!("1234"), 1, false, 0, 4),
        (json!(["1234", "12"]), 2, false, 0, 6),
        (json!([text("1234"), text("12")]), 1, true, 0, 6),
        (json!([text("1234"), image(PIXEL)]), 1, false, 1, 4),
        (
            json!([image("https://a.test/b"), image("http://a.test/b")]),
            1,
            false,
            2,
            0,
        ),
    ] {
        let request = with_input(&input).unwrap();
        let Payload::Moderations(facts) = request.payload else {
            unreachable!("a front makes its own payload")
        };
        let found = (facts.results, facts.is_text_parts);
        assert_eq!(found, (results, is_text_parts), "{input}");
        assert_eq!(request.cost_inputs.images, images);
        assert_eq!(request.needs.vision, images > 0);
        assert_eq!(request.text_bytes, text_bytes);
        assert!(request.cost_inputs.bytes >= text_bytes);
    }
}

/// Contract: model-gateway 2.11 model
#[test]
fn a_request_without_a_model_has_the_usual_one() {
    for body in [json!({"input": "a"}), json!({"input": "a", "model": null})] {
        assert_eq!(&*checked(&body).unwrap().model, "omni-moderation-latest");
    }
}

/// Contract: model-gateway 2.11 input
#[test]
fn a_refusal_names_the_field_what_came_and_what_is_accepted() {
    let url = "input[0].image_url.url";
    for (input, param, came, accepted) in [
        (json!(null), "input", "null", "an array of strings"),
        (json!(7), "input", "7", "an array of strings"),
        (json!(""), "input", "empty", "a text"),
        (json!([]), "input", "empty", "at least one"),
        (json!([1]), "input[0]", "1", "a string, or an object"),
        (json!(["a", ""]), "input[1]", "empty", "a text"),
        (json!(["a", text("b")]), "input[1]", "object", "same type"),
        (json!([text("b"), "a"]), "input[1]", "\"a\"", "same type"),
        (json!([{}]), "input[0].type", "missing", "`text`"),
        (
            json!([{"type": "audio"}]),
            "input[0].type",
            "audio",
            "text, image_url",
        ),
        (
            json!([{"type": "text"}]),
            "input[0].text",
            "missing",
            "a string",
        ),
        (json!([text("")]), "input[0].text", "empty", "a text"),
        (
            json!([{"type": "image_url"}]),
            "input[0].image_url",
            "missing",
            "`url`",
        ),
        (
            json!([{"type": "image_url", "image_url": {}}]),
            url,
            "missing",
            "https",
        ),
        (json!([image("")]), url, "is none", "https"),
        (
            json!([image("file:///etc/passwd")]),
            url,
            "is none",
            "https",
        ),
        (
            json!([image("data:text/html;base64,aGk=")]),
            url,
            "no image",
            "PNG",
        ),
        (
            json!([image("data:image/png,aGk=")]),
            url,
            "is none",
            "base64",
        ),
    ] {
        let fault = with_input(&input).unwrap_err();
        let named = (fault.status(), fault.param.as_deref());
        assert_eq!(named, (400, Some(param)), "{input}: {fault}");
        for part in [param, came, accepted] {
            assert!(fault.message.contains(part), "{part:?} in {fault}");
        }
    }
    let fault = checked(&json!({"model": "m"})).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("input"));
    let fault = checked(&json!({"model": 1, "input": "a"})).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("model"));
    assert!(with_input(&json!(vec!["a"; 1024])).is_ok());
    let fault = with_input(&json!(vec!["a"; 1025])).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("input[1024]"));
}

/// Contract: model-gateway 2.11 input
#[test]
fn a_picture_is_judged_as_by_other_operations() {
    for (url, why) in NO_PICTURES {
        let fault = with_input(&json!([image(url)])).unwrap_err();
        let named = (fault.status(), fault.param.as_deref());
        assert_eq!(named, (400, Some("input[0].image_url.url")), "{url}");
        assert!(fault.message.contains(why), "{url}: {fault}");
        let is_address = url.starts_with("https");
        let is_prohibited = fault.code() == Some("destination_ip_prohibited");
        assert_eq!(is_prohibited, is_address, "{url}");
    }
    // Its bytes are an image, whatever it says.
    let named_otherwise = PIXEL.replace("image/png", "image/jpeg");
    assert!(with_input(&json!([image(&named_otherwise)])).is_ok());
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        _ = MODERATIONS.parse(bytes.into());
    }
}

#[test]
fn the_results_have_the_conventions_members() {
    let request = with_input(&json!("a")).unwrap();
    let identity = ReplyIdentity {
        id: "1".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    let mut writer = request.front.writer(&request, identity);
    writer.item(br#"{"flagged":false}"#);
    assert!(!writer.has_content());
    let body = complete(&mut *writer, Usage::default());
    let expected = json!({"id": "modr-1", "model": "here/m", "results": [{"flagged": false}]});
    assert_eq!(body, expected);
}
