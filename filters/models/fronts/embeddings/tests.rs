#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::EMBEDDINGS;
use crate::fault::Fault;
use crate::models::embeddings::EmbeddingFacts;
use crate::models::front::Front;
use crate::models::metadata::{AnswerMembers, Metadata, UsedNames};
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Payload};
use crate::models::usage::{Settlement, Usage};

fn checked(body: &Value) -> Result<ModelRequest, Fault> {
    EMBEDDINGS.parse(body.to_string().into())
}

fn with(key: &str, value: Value) -> Result<ModelRequest, Fault> {
    let mut body = json!({"model": "m", "input": "Hi"});
    body[key] = value;
    checked(&body)
}

fn facts(request: &ModelRequest) -> &EmbeddingFacts {
    match &request.payload {
        Payload::Embeddings(facts) => facts,
        other => panic!("{other:?}"),
    }
}

/// Contract: model-gateway 2.6 input
#[test]
fn every_form_of_input_is_taken_and_counted() {
    for (input, inputs, are_tokens, text_bytes, longest) in [
        (json!("12345678"), 1, false, 8, 4),
        (json!(["1234", "12345678123456789"]), 2, false, 21, 9),
        (json!([1, 2, 3]), 1, true, 12, 3),
        (json!([[1], [2, 3]]), 2, true, 12, 2),
    ] {
        let request = with("input", input.clone()).unwrap();
        let found = &facts(&request).inputs;
        assert_eq!(
            (
                found.len(),
                request.needs.token_inputs,
                request.text_bytes,
                found.iter().map(|input| input.tokens).max()
            ),
            (inputs, are_tokens, text_bytes, Some(longest)),
            "{input}"
        );
        assert_eq!(request.payload.operation(), Operation::Embeddings);
        assert!(!request.is_stream);
    }
}

#[test]
fn every_input_is_found_where_it_stands() {
    for (input, expected) in [
        (r#" "a b" "#, vec![r#""a b""#]),
        (r#"[ "a" , "\"]" ]"#, vec![r#""a""#, r#""\"]""#]),
        ("[1, 2 ]", vec!["[1, 2 ]"]),
        ("[ [1] , [2,3]]", vec!["[1]", "[2,3]"]),
    ] {
        let body = format!(r#"{{"model":"m","input":{input},"x":1}}"#);
        let request = EMBEDDINGS.parse(body.clone().into()).unwrap();
        let facts = facts(&request);
        let places = facts.inputs.iter().map(|input| &body[input.place.clone()]);
        assert_eq!(places.collect::<Vec<_>>(), expected);
        let all = facts.place(&(0..expected.len()));
        assert!(body[all.clone()].starts_with(expected[0]) && input.contains(&body[all]));
    }
}

#[test]
fn a_refusal_names_the_field_what_came_and_what_is_accepted() {
    for (key, value, param, came, accepted) in [
        ("input", json!(null), "input", "null", "a string, an array"),
        ("input", json!({}), "input", "object", "a string, an array"),
        ("input", json!(""), "input", "empty", "a text"),
        ("input", json!([]), "input", "empty", "at least one input"),
        ("input", json!(["a", ""]), "input[1]", "empty", "a text"),
        (
            "input",
            json!([[]]),
            "input[0]",
            "empty",
            "at least one token",
        ),
        (
            "input",
            json!(["a", 1]),
            "input[1]",
            "number",
            "same type as the first",
        ),
        (
            "input",
            json!([1, "a"]),
            "input[1]",
            "string",
            "same type as the first",
        ),
        (
            "input",
            json!([1, 2.5]),
            "input[1]",
            "2.5",
            "an integer from 0",
        ),
        (
            "input",
            json!([[1], [-1]]),
            "input[1][0]",
            "-1",
            "an integer from 0",
        ),
        (
            "input",
            json!([true]),
            "input[0]",
            "true",
            "a string, an integer",
        ),
        ("model", json!(7), "model", "7", "a string"),
        ("model", json!(""), "model", "empty", "a model id"),
        (
            "dimensions",
            json!(0),
            "dimensions",
            "0",
            "an integer from 1",
        ),
        (
            "dimensions",
            json!("8"),
            "dimensions",
            "\"8\"",
            "an integer from 1",
        ),
        (
            "encoding_format",
            json!("hex"),
            "encoding_format",
            "hex",
            "float, base64",
        ),
        (
            "encoding_format",
            json!(1),
            "encoding_format",
            "1",
            "float, base64",
        ),
        ("user", json!(1), "user", "1", "a string"),
    ] {
        let fault = with(key, value.clone()).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some(param)),
            "{key} {value}: {fault}"
        );
        for part in [param, came, accepted] {
            assert!(fault.message.contains(part), "{part:?} in {fault}");
        }
    }
    for missing in ["model", "input"] {
        let mut body = json!({"model": "m", "input": "Hi"});
        body.as_object_mut().unwrap().remove(missing);
        let fault = checked(&body).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some(missing));
        assert!(fault.message.contains("is missing"), "{fault}");
    }
}

#[test]
fn more_inputs_than_the_bound_are_refused_and_as_many_are_not() {
    assert!(with("input", json!(vec!["a"; 2048])).is_ok());
    let fault = with("input", json!(vec!["a"; 2049])).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("input[2048]"));
    // Tokens of one input are not inputs.
    assert!(with("input", json!(vec![1; 5000])).is_ok());
}

#[test]
fn keys_that_came_twice_are_refused() {
    let body = r#"{"model":"m","input":"a","\u0069nput":"b"}"#;
    let fault = EMBEDDINGS.parse(body.into()).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("input"));
}

#[test]
fn a_body_cut_anywhere_is_no_json() {
    let body = json!({"model": "m", "input": ["a\u{e9}", "b"], "x": {"y": [1]}}).to_string();
    for end in 0..body.len() {
        let fault = EMBEDDINGS
            .parse(body.as_bytes()[..end].to_vec().into())
            .unwrap_err();
        assert_eq!(fault.status(), 400, "{end}");
    }
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        _ = EMBEDDINGS.parse(bytes.into());
    }
}

fn writer() -> Box<dyn Writer> {
    let request = checked(&json!({"model": "m", "input": ["a", "b"]})).unwrap();
    let identity = ReplyIdentity {
        id: "1".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    request.front.writer(&request, identity)
}

fn complete(writer: &mut dyn Writer, usage: Usage) -> Value {
    let used = UsedNames::new("m", "here", None, "up");
    let metadata = Metadata {
        route: None,
        request_id: "1",
        requested_model: "m",
        managed: None,
        requested_provider: None,
        organization_id: "",
        project_id: "",
        log_id: None,
        answer: AnswerMembers::Fresh {
            used: &used,
            price: Default::default(),
            routing: &[],
        },
    };
    writer.complete(&Settlement { usage, cost: None }, &metadata);
    serde_json::from_slice(&writer.take()).unwrap()
}

#[test]
fn nothing_goes_out_before_the_list_is_whole_and_it_has_the_contracts_members() {
    let mut list = writer();
    list.item(br#"{"index":0}"#);
    list.item(br#"{"index":1}"#);
    assert!(!list.has_content());
    assert!(list.take().is_empty());
    let usage = Usage {
        prompt: 5,
        ..Usage::default()
    };
    let expected = json!({"object": "list", "data": [{"index": 0}, {"index": 1}], "model": "here/m",
        "usage": {"prompt_tokens": 5, "total_tokens": 5}});
    assert_eq!(complete(&mut *list, usage), expected);
}

#[test]
fn an_estimate_says_so() {
    let body = complete(&mut *writer(), Usage::estimate(8, 0, 0));
    let expected = json!({"prompt_tokens": 2, "total_tokens": 2, "info": "estimated"});
    assert_eq!(body["usage"], expected);
}

#[test]
fn items_in_one_slice_make_the_same_list_whoever_has_their_memory() {
    let items = r#"{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}"#;
    let list = |before: &str, is_shared: bool| {
        let body = Bytes::from(format!("{before}{items}]}}"));
        let kept = is_shared.then(|| body.clone());
        let mut writer = writer();
        writer.items(&body, before.len()..before.len() + items.len());
        drop(body);
        let list = complete(&mut *writer, Usage::default());
        drop(kept);
        list
    };
    let room = r#"{"object":"list","model":"m","data":["#;
    let expected = list("[", true);
    assert_eq!(expected["data"][1]["embedding"], json!([2]));
    for (before, is_shared) in [("[", false), (room, true), (room, false)] {
        assert_eq!(list(before, is_shared), expected, "{before} {is_shared}");
    }
}

#[test]
fn a_part_that_is_asked_for_again_leaves_nothing_of_its_first_reply() {
    let item =
        |at: usize| json!({"object": "embedding", "index": at, "embedding": [at]}).to_string();
    let body = Bytes::from(item(0));
    let mut writer = writer();
    writer.items(&body, 0..body.len());
    writer.usage(Usage {
        prompt: 3,
        ..Usage::default()
    });
    writer.end_part();
    assert!(writer.reported().usage.is_none());
    writer.item(item(7).as_bytes());
    writer.usage(Usage {
        prompt: 5,
        ..Usage::default()
    });
    writer.begin_part();
    assert!(writer.reported().usage.is_none());
    writer.item(item(1).as_bytes());
    let list = complete(&mut *writer, Usage::default());
    let indexes: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["index"])
        .collect();
    assert_eq!(indexes, [0, 1]);
}
