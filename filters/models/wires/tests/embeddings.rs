//! Embeddings on all wires: requests and replies as golden texts, and what hostile replies become.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::anthropic::ANTHROPIC;
use super::cohere::COHERE;
use super::google::GOOGLE;
use super::openai::OPENAI;
use super::voyage::VOYAGE;
use super::{Failure, FailureKind, Progress, Quirks, ReplyHead, Target, Wire, decode_reply};
use crate::models::front::Front;
use crate::models::fronts::embeddings::EMBEDDINGS;
use crate::models::metadata::{AnswerMembers, Metadata, UsedNames};
use crate::models::operation::Operation;
use crate::models::parameter::Parameter;
use crate::models::reply::ReplyIdentity;
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::Parameters;
use crate::models::usage::Settlement;

pub(super) const HEAD: ReplyHead = ReplyHead {
    is_by_quota: false,
    status: 200,
    events: None,
    file: None,
    prompt_tokens: None,
};

pub(super) fn target(quirks: &Quirks) -> Target<'_> {
    Target {
        key_id: Some("key_1"),
        ..Target::plain("here", "up x", quirks)
    }
}

pub(super) fn request(more: &Value) -> ModelRequest {
    let mut body = json!({"model": "m", "input": ["a", "b"]});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    EMBEDDINGS.parse(body.to_string().into()).unwrap()
}

/// Path and body of the upstream request.
fn encoded(wire: &Wire, request: &ModelRequest, quirks: &Quirks) -> (String, Value) {
    let target = target(quirks);
    let body = wire.encode(request, &target).unwrap().concat();
    let head = wire.head(Operation::Embeddings, false, target.model, quirks);
    (head.unwrap().path, serde_json::from_slice(&body).unwrap())
}

/// The client's response to a reply that comes in pieces.
fn response<'p>(
    wire: &Wire,
    request: &ModelRequest,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> Result<Value, Failure> {
    let identity = ReplyIdentity {
        id: "1".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    let mut writer = request.front.writer(request, identity);
    let quirks = Quirks::default();
    let mut decoder = wire.decoder(request, &target(&quirks), &HEAD);
    for piece in pieces {
        assert_eq!(
            decoder.feed(&Bytes::copy_from_slice(piece), &mut *writer)?,
            Progress::Open
        );
    }
    assert_eq!(decoder.end(&mut *writer)?, Progress::Complete);
    let usage = writer.reported().to_usage(request.text_bytes, true);
    let used = UsedNames::new("m", "here", None, "up x");
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
    Ok(serde_json::from_slice(&writer.take()).unwrap())
}

fn whole(wire: &Wire, request: &ModelRequest, reply: &Value) -> Result<Value, Failure> {
    response(wire, request, [reply.to_string().as_bytes()])
}

pub(super) fn openai_item(index: usize, embedding: Value) -> Value {
    json!({"object": "embedding", "index": index, "embedding": embedding})
}

pub(super) fn openai_reply(data: Value) -> Value {
    json!({"object": "list", "data": data, "model": "up x",
        "usage": {"prompt_tokens": 6, "total_tokens": 6}})
}

fn google_reply() -> Value {
    json!({"embeddings": [{"values": [3.0, 4.0]}, {"values": [0.5, -0.25]}]})
}

#[test]
fn our_own_wire_gets_the_members_as_they_came_and_an_opaque_user() {
    let more = json!({"user": "ann@example.com", "dimensions": 8, "encoding_format": "base64", "input_type": "query"});
    let (path, body) = encoded(&OPENAI, &request(&more), &Quirks::default());
    let user = body["user"].as_str().unwrap().to_owned();
    let expected = json!({"model": "up x", "input": ["a", "b"], "dimensions": 8,
        "encoding_format": "base64", "input_type": "query", "user": user});
    assert_eq!((path.as_str(), body), ("/embeddings", expected));
    assert_eq!(user.len(), 32);
    assert!(user.bytes().all(|b| b.is_ascii_hexdigit()));
}

#[test]
fn what_a_provider_does_not_take_is_left_out() {
    let quirks = Quirks {
        drop_unknown_fields: true,
        chat_path: "/openai/v1/chat/completions?v=1".to_owned(),
        ..Quirks::default()
    };
    let more = request(&json!({"dimensions": 8, "input_type": "query"}));
    let target = Target {
        parameters: &Parameters::plain().without(&[Parameter::User], &[]),
        ..target(&quirks)
    };
    let body = OPENAI.encode(&more, &target).unwrap().concat();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let expected = json!({"model": "up x", "input": ["a", "b"], "dimensions": 8});
    assert_eq!(body, expected);
    let head = OPENAI.head(Operation::Embeddings, false, target.model, &quirks);
    assert_eq!(head.unwrap().path, "/openai/v1/embeddings?v=1");
}

#[test]
fn google_gets_one_content_per_input() {
    let content =
        |text: &str| json!({"model": "models/up x", "content": {"parts": [{"text": text}]}});
    let (path, body) = encoded(&GOOGLE, &request(&json!({})), &Quirks::default());
    let expected = json!({"requests": [content("a"), content("b")]});
    assert_eq!(
        (path.as_str(), body),
        ("/v1beta/models/up%20x:batchEmbedContents", expected)
    );
    let one = request(&json!({"input": "\u{e9}\"\n", "dimensions": 8, "user": "ann"}));
    let mut expected = content("\u{e9}\"\n");
    expected["outputDimensionality"] = 8.into();
    let (_, body) = encoded(&GOOGLE, &one, &Quirks::default());
    assert_eq!(body, json!({"requests": [expected]}));
}

#[test]
fn cohere_gets_texts_and_is_told_to_cut_none_off() {
    let (path, body) = encoded(
        &COHERE,
        &request(&json!({"user": "ann"})),
        &Quirks::default(),
    );
    let expected = json!({"model": "up x", "texts": ["a", "b"], "input_type": "search_document",
        "embedding_types": ["float"], "truncate": "NONE"});
    assert_eq!((path.as_str(), body), ("/v2/embed", expected));
    let one = json!({"input": "\u{e9}\"\n", "dimensions": 8, "input_type": "query", "encoding_format": "base64"});
    let (_, body) = encoded(&COHERE, &request(&one), &Quirks::default());
    let expected = json!({"model": "up x", "texts": ["\u{e9}\"\n"], "input_type": "search_query",
        "embedding_types": ["float"], "truncate": "NONE", "output_dimension": 8});
    assert_eq!(body, expected);
}

#[test]
fn voyage_gets_its_own_words() {
    let (path, body) = encoded(
        &VOYAGE,
        &request(&json!({"user": "ann"})),
        &Quirks::default(),
    );
    let expected = json!({"model": "up x", "input": ["a", "b"], "truncation": false});
    assert_eq!((path.as_str(), body), ("/embeddings", expected));
    let one = json!({"input": "a", "dimensions": 8, "input_type": "search_query", "encoding_format": "base64"});
    let (_, body) = encoded(&VOYAGE, &request(&one), &Quirks::default());
    let expected = json!({"model": "up x", "input": ["a"], "truncation": false, "input_type": "query",
        "output_dimension": 8, "encoding_format": "base64"});
    assert_eq!(body, expected);
}

/// Contract: model-gateway 2.6 input_type
#[test]
fn a_use_of_the_vectors_is_said_in_the_words_of_each_wire() {
    let quirks = Quirks::default();
    let asked = |word: &str| request(&json!({"input_type": word}));
    let word = |wire: &Wire, word: &str| {
        let body = wire.encode(&asked(word), &target(&quirks));
        let body: Value = serde_json::from_slice(&body?.concat()).unwrap();
        let places = ["/input_type", "/requests/0/taskType"];
        let found = places.iter().find_map(|place| body.pointer(place));
        Ok::<_, crate::fault::Fault>(found.unwrap().as_str().unwrap().to_owned())
    };
    for (given, cohere, voyage, google) in [
        ("query", "search_query", Some("query"), "RETRIEVAL_QUERY"),
        (
            "search_document",
            "search_document",
            Some("document"),
            "RETRIEVAL_DOCUMENT",
        ),
        ("classification", "classification", None, "CLASSIFICATION"),
        ("clustering", "clustering", None, "CLUSTERING"),
    ] {
        assert_eq!(word(&COHERE, given).unwrap(), cohere);
        assert_eq!(word(&VOYAGE, given).ok().as_deref(), voyage);
        assert_eq!(word(&GOOGLE, given).unwrap(), google);
    }
    for wire in [&COHERE, &VOYAGE, &GOOGLE] {
        let fault = wire.encode(&asked("poem"), &target(&quirks)).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some("input_type"))
        );
    }
}

#[test]
fn coheres_vectors_become_items_and_its_billed_tokens_the_usage() {
    let mut reply = json!({"id": "1", "texts": ["a", "b"], "embeddings": {"float": [[0.5, -1e-3], [2, 4]]},
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 5.0}}});
    let body = whole(&COHERE, &request(&json!({})), &reply).unwrap();
    let data = json!([
        openai_item(0, json!([0.5, -1e-3])),
        openai_item(1, json!([2, 4]))
    ]);
    let expected = json!({"object": "list", "data": data, "model": "here/m",
        "usage": {"prompt_tokens": 5, "total_tokens": 5}});
    assert_eq!(body, expected);
    let packed = request(&json!({"encoding_format": "base64"}));
    let body = whole(&COHERE, &packed, &reply).unwrap();
    assert_eq!(body["data"][1]["embedding"], "AAAAQAAAgEA=");
    for bad in [
        json!([[1]]),
        json!([[1], ["a"]]),
        json!([[1], 2]),
        json!({}),
    ] {
        reply["embeddings"]["float"] = bad.clone();
        let failure = whole(&COHERE, &request(&json!({})), &reply).unwrap_err();
        assert_eq!(
            (failure.kind, failure.is_retryable),
            (FailureKind::Malformed, true),
            "{bad}"
        );
    }
}

#[test]
fn voyages_total_is_the_prompt() {
    let mut reply = openai_reply(json!([
        openai_item(0, json!([1])),
        openai_item(1, json!([2]))
    ]));
    reply["usage"] = json!({"total_tokens": 7});
    let body = whole(&VOYAGE, &request(&json!({})), &reply).unwrap();
    assert_eq!(
        (&body["data"], &body["usage"]["prompt_tokens"]),
        (&reply["data"], &7.into())
    );
}

#[test]
fn long_vectors_pass_as_they_came_unless_they_hold_more_than_numbers() {
    let one = request(&json!({"input": "a"}));
    let numbers: Vec<f64> = (0..400).map(|at| f64::from(at) / -7.0).collect();
    let reply = openai_reply(json!([openai_item(0, json!(numbers))]));
    let body = whole(&OPENAI, &one, &reply).unwrap();
    assert_eq!(body["data"], reply["data"]);
    for bad in ["null", "\"a\"", "{}", "[1]", "x"] {
        let text = reply.to_string().replacen("[-0.0", &format!("[{bad}"), 1);
        let text = text.replacen("[0.0", &format!("[{bad}"), 1);
        assert!(text.contains(bad));
        let failure = response(&OPENAI, &one, [text.as_bytes()]).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed, "{bad}");
    }
}

#[test]
fn the_limits_of_a_wire_say_what_it_offers() {
    assert!(ANTHROPIC.limits(Operation::Embeddings).is_none());
    assert!(!GOOGLE.limits(Operation::Embeddings).unwrap().token_inputs);
    assert!(OPENAI.limits(Operation::Embeddings).unwrap().token_inputs);
    let request = request(&json!({}));
    let quirks = Quirks::default();
    assert!(ANTHROPIC.encode(&request, &target(&quirks)).is_err());
    assert!(decode_reply(&ANTHROPIC, &request, &target(&quirks), &HEAD).is_none());
    for wire in [&COHERE, &VOYAGE] {
        assert!(!wire.limits(Operation::Embeddings).unwrap().token_inputs);
    }
    assert!(VOYAGE.limits(Operation::Chat).is_none());
    for wire in [&OPENAI, &GOOGLE, &COHERE, &VOYAGE] {
        assert_eq!(
            wire.codec_of(&request)
                .max_output(&request, &target(&quirks)),
            Some(0)
        );
    }
}

#[test]
fn a_provider_has_its_own_name_for_the_length_of_vectors() {
    let written = json!({"rename": {"dimensions": "output_dimension"}, "refuse": ["token_inputs"]});
    let parameters = Parameters::plain().with(&serde_json::from_value(written).unwrap());
    let quirks = Quirks::default();
    let target = Target {
        parameters: &parameters,
        ..target(&quirks)
    };
    let request = request(&json!({"dimensions": 8}));
    let body = OPENAI.encode(&request, &target).unwrap().concat();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&body["output_dimension"], body.get("dimensions")),
        (&8.into(), None)
    );
    assert!(parameters.check(&request.asked, false).is_ok());
    let tokens = self::request(&json!({"input": [1, 2]}));
    let (parameter, reason) = parameters.check(&tokens.asked, false).unwrap_err();
    assert_eq!(
        (parameter, &*reason),
        (Parameter::TokenInputs, "takes texts, not tokens")
    );
}

#[test]
fn items_of_our_own_wire_pass_as_they_came() {
    let mut first = openai_item(0, json!([0.1, -0.2]));
    first["own"] = json!({"kept": true});
    let data = json!([first, openai_item(1, json!([1e-9, 2]))]);
    let body = whole(&OPENAI, &request(&json!({})), &openai_reply(data.clone())).unwrap();
    let expected = json!({"object": "list", "data": data, "model": "here/m",
        "usage": {"prompt_tokens": 6, "total_tokens": 6}});
    assert_eq!(body, expected);
}

#[test]
fn items_stand_in_the_order_of_the_inputs_and_are_named() {
    let data = json!([openai_item(1, json!([2])), openai_item(0, json!([1]))]);
    let body = whole(&OPENAI, &request(&json!({})), &openai_reply(data)).unwrap();
    let expected = json!([openai_item(0, json!([1])), openai_item(1, json!([2]))]);
    assert_eq!(body["data"], expected);
    let bare = json!([{"embedding": [1]}, {"embedding": [2]}]);
    let body = whole(&OPENAI, &request(&json!({})), &openai_reply(bare)).unwrap();
    assert_eq!(body["data"], expected);
}

#[test]
fn a_vector_comes_in_the_encoding_that_was_asked_for() {
    let floats = json!([1.0, -0.5]);
    let packed = json!("AACAPwAAAL8=");
    for (asked, given, expected) in [
        ("float", &floats, &floats),
        ("float", &packed, &json!([1, -0.5])),
        ("base64", &packed, &packed),
        ("base64", &floats, &packed),
    ] {
        let request = request(&json!({"encoding_format": asked, "input": "a"}));
        let data = json!([openai_item(0, given.clone())]);
        let body = whole(&OPENAI, &request, &openai_reply(data)).unwrap();
        assert_eq!(&body["data"][0]["embedding"], expected, "{asked} {given}");
    }
    let request = request(&json!({"encoding_format": "base64", "input": "a"}));
    let reply = json!({"embeddings": [{"values": [1.0, -0.5]}]});
    let body = whole(&GOOGLE, &request, &reply).unwrap();
    assert_eq!(body["data"], json!([openai_item(0, packed)]));
}

#[test]
fn googles_vectors_become_items_and_usage_is_estimated_where_it_does_not_come() {
    let body = whole(&GOOGLE, &request(&json!({})), &google_reply()).unwrap();
    let data = json!([
        openai_item(0, json!([3.0, 4.0])),
        openai_item(1, json!([0.5, -0.25]))
    ]);
    let expected = json!({"object": "list", "data": data, "model": "here/m",
        "usage": {"prompt_tokens": 1, "total_tokens": 1, "info": "estimated"}});
    assert_eq!(body, expected);
    let mut reply = google_reply();
    reply["usageMetadata"] = json!({"promptTokenCount": 9});
    let body = whole(&GOOGLE, &request(&json!({})), &reply).unwrap();
    assert_eq!(
        body["usage"],
        json!({"prompt_tokens": 9, "total_tokens": 9})
    );
}

#[test]
fn a_vector_that_google_shortened_gets_the_length_one() {
    let request = request(&json!({"dimensions": 2}));
    let body = whole(&GOOGLE, &request, &google_reply()).unwrap();
    assert_eq!(body["data"][0]["embedding"], json!([0.6, 0.8]));
}

#[test]
fn usage_that_is_only_a_total_counts_as_the_prompt() {
    let mut reply = openai_reply(json!([openai_item(0, json!([1]))]));
    reply["usage"] = json!({"total_tokens": 4});
    let body = whole(&OPENAI, &request(&json!({"input": "a"})), &reply).unwrap();
    assert_eq!(
        body["usage"],
        json!({"prompt_tokens": 4, "total_tokens": 4})
    );
}

#[test]
fn a_reply_without_one_vector_per_input_is_malformed() {
    let one = openai_item(0, json!([1]));
    for data in [
        json!([]),
        json!([one]),
        json!([one, one]),
        json!([one, openai_item(2, json!([1]))]),
        json!([one, openai_item(1, json!([1])), openai_item(2, json!([1]))]),
        json!([one, 7]),
        json!([one, openai_item(1, json!({}))]),
        json!([one, openai_item(1, json!("not base64!"))]),
        json!({}),
    ] {
        let failure =
            whole(&OPENAI, &request(&json!({})), &openai_reply(data.clone())).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed, "{data}");
        assert!(failure.is_retryable);
    }
    for reply in [
        json!({}),
        json!([]),
        json!({"embeddings": [{"values": [1]}]}),
        json!({"embeddings": [{"values": [1]}, {}]}),
        json!({"embeddings": [{"values": [1]}, {"values": ["a"]}]}),
        json!({"embeddings": [{"values": [1]}, 7]}),
    ] {
        let request = request(&json!({"encoding_format": "base64"}));
        let failure = whole(&GOOGLE, &request, &reply).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed, "{reply}");
    }
}

#[test]
fn an_error_inside_a_200_may_be_mended_by_the_next_provider() {
    let error = json!({"error": {"message": "too many", "code": 429}});
    for (wire, reply) in [
        (&OPENAI, error.clone()),
        (&GOOGLE, error.clone()),
        (&GOOGLE, json!([error])),
    ] {
        let failure = whole(wire, &request(&json!({})), &reply).unwrap_err();
        assert_eq!(
            (failure.kind, failure.is_retryable),
            (FailureKind::Status(429), true)
        );
    }
}

#[test]
fn a_reply_cut_at_every_byte_says_the_same_and_one_that_ends_there_fails() {
    let ours = openai_reply(json!([
        openai_item(0, json!([0.25, "\u{e9}".len()])),
        openai_item(1, json!("AACAPw=="))
    ]));
    for (wire, reply) in [(&OPENAI, ours), (&GOOGLE, google_reply())] {
        let request = request(&json!({}));
        let expected = whole(wire, &request, &reply).unwrap();
        let text = reply.to_string();
        for at in 0..text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            assert_eq!(response(wire, &request, [head, tail]).unwrap(), expected);
            assert!(response(wire, &request, [head]).is_err(), "{at}");
        }
    }
}

#[test]
fn a_reply_without_end_is_given_up() {
    let request = request(&json!({}));
    let piece = vec![b' '; 1 << 20];
    let pieces = (0..65).map(|_| piece.as_slice());
    let failure = response(&OPENAI, &request, pieces).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Malformed);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("(index|embedding|values|object)", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn replies_of_any_shape_never_panic(
        key in "(data|embeddings|usage|usageMetadata|error)", value in any_json(), rest in any_json()
    ) {
        let reply = json!({key: value, "data": rest});
        for wire in [&OPENAI, &GOOGLE] {
            _ = whole(wire, &request(&json!({})), &reply);
        }
    }

    #[test]
    fn items_in_any_order_make_the_same_list(
        order in Just((0..6_usize).collect::<Vec<_>>()).prop_shuffle()
    ) {
        let request = request(&json!({"input": ["a", "b", "c", "d", "e", "f"]}));
        let items: Vec<Value> = order.iter().map(|at| openai_item(*at, json!([*at]))).collect();
        let body = whole(&OPENAI, &request, &openai_reply(items.into())).unwrap();
        let sorted: Vec<Value> = (0..6).map(|at| openai_item(at, json!([at]))).collect();
        prop_assert_eq!(&body["data"], &Value::from(sorted));
    }
}
