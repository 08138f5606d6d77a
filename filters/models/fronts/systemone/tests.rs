#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::SYSTEM_ONE;
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::tests::complete;
use crate::models::reply::ReplyIdentity;
use crate::models::request::{ModelRequest, Payload};
use crate::models::typed_decisions::{Answer, AnswerKind, DecisionFacts};
use crate::models::usage::Usage;

fn checked(body: &Value) -> Result<ModelRequest, Fault> {
    SYSTEM_ONE.parse(body.to_string().into())
}

fn noul() -> Value {
    json!({"type": "noul", "instructions": "Is it?"})
}

fn with(key: &str, value: Value) -> Result<ModelRequest, Fault> {
    let mut body = json!({"model": "m", "state": "a", "questions": {"q": noul()}});
    body[key] = value;
    checked(&body)
}

fn with_criteria(kind: &str, criteria: Value) -> Result<ModelRequest, Fault> {
    let question = json!({"type": kind, "instructions": "Which?", "criteria": criteria});
    with("questions", json!({ "q": question }))
}

fn facts(request: &ModelRequest) -> &DecisionFacts {
    match &request.payload {
        Payload::TypedDecisions(facts) => facts,
        _ => unreachable!("a front makes its own payload"),
    }
}

/// Contract: model-gateway 2.15 state
#[test]
fn a_state_is_a_text_or_its_json() {
    for (state, written) in [
        (json!("a \"b\""), json!("a \"b\"")),
        (json!({"a": [1, "é"]}), json!(r#"{"a":[1,"é"]}"#)),
        (json!(["a"]), json!(r#"["a"]"#)),
    ] {
        let request = with("state", state).unwrap();
        let mut out = Vec::new();
        facts(&request).write_state(&request.source.body, &mut out);
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), written);
        assert_eq!(request.cost_inputs.bytes, request.source.body.len() as u64);
    }
}

/// Contract: model-gateway 2.15 questions.*.criteria
#[test]
fn questions_are_read_in_their_order() {
    let body = r#"{"model":"m","state":"a","questions":{
        "z":{"type":"noul","instructions":"Is it?","criteria":null},
        "a":{"type":"choice","instructions":"Which?","criteria":{"x":"ex","b":null}},
        "m":{"type":"score","instructions":"How?","criteria":["low","high"]}}}"#;
    let request = SYSTEM_ONE.parse(body.into()).unwrap();
    let questions = &facts(&request).questions;
    let ids: Vec<&str> = questions.iter().map(|question| &*question.id).collect();
    assert_eq!(ids, ["z", "a", "m"]);
    assert_eq!(&*questions[1].instructions, "Which?");
    assert!(matches!(questions[0].answers, AnswerKind::Noul));
    let AnswerKind::Choice(options) = &questions[1].answers else {
        panic!("{questions:?}")
    };
    let option = |at: usize| (&*options[at].0, options[at].1.as_deref());
    assert_eq!([option(0), option(1)], [("x", Some("ex")), ("b", None)]);
    let AnswerKind::Score(levels) = &questions[2].answers else {
        panic!("{questions:?}")
    };
    assert_eq!(levels.join(" "), "low high");
}

/// Contract: model-gateway 2.15 model
/// Contract: model-gateway 2.15 state
/// Contract: model-gateway 2.15 questions
/// Contract: model-gateway 2.15 questions.*.type
/// Contract: model-gateway 2.15 questions.*.instructions
#[test]
fn a_refusal_names_the_field_what_came_and_what_is_accepted() {
    let question = |question: Value| json!({ "q": question });
    for (key, value, param, came, accepted) in [
        ("model", json!(7), "model", "7", "a string"),
        ("state", json!(null), "state", "null", "a string, an object"),
        ("state", json!(7), "state", "7", "a string, an object"),
        ("state", json!(""), "state", "empty", "an array"),
        ("state", json!(" "), "state", "empty", "an array"),
        ("state", json!("\n\t \u{a0}"), "state", "empty", "an array"),
        ("state", json!({}), "state", "empty", "an array"),
        ("state", json!([]), "state", "empty", "an array"),
        (
            "questions",
            json!([]),
            "questions",
            "array",
            "by their names",
        ),
        ("questions", json!({}), "questions", "empty", "1 to 400"),
        (
            "questions",
            json!({"": noul()}),
            "questions",
            "name is empty",
            "a name",
        ),
        (
            "questions",
            question(json!("a")),
            "questions.q",
            "\"a\"",
            "an object",
        ),
        (
            "questions",
            question(json!({"instructions": "a"})),
            "questions.q.type",
            "missing",
            "`noul`",
        ),
        (
            "questions",
            question(json!({"type": "bool"})),
            "questions.q.type",
            "bool",
            "noul, choice, score",
        ),
        (
            "questions",
            question(json!({"type": "noul"})),
            "questions.q.instructions",
            "missing",
            "a text",
        ),
        (
            "questions",
            question(json!({"type": "noul", "instructions": " "})),
            "questions.q.instructions",
            "empty",
            "a text",
        ),
    ] {
        let fault = with(key, value.clone()).unwrap_err();
        let named = (fault.status(), fault.param.as_deref());
        assert_eq!(named, (400, Some(param)), "{key} {value}: {fault}");
        for part in [came, accepted] {
            assert!(fault.message.contains(part), "{part:?} in {fault}");
        }
    }
    for missing in ["model", "state", "questions"] {
        let mut body = json!({"model": "m", "state": "a", "questions": {"q": noul()}});
        body.as_object_mut().unwrap().remove(missing);
        let fault = checked(&body).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some(missing));
    }
    let twice = r#"{"model":"m","state":"a","questions":{"q":{"type":"noul","instructions":"a"},"q":{"type":"noul","instructions":"b"}}}"#;
    let fault = SYSTEM_ONE.parse(twice.into()).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("questions.q"));
}

/// Contract: model-gateway 2.15 questions
/// Contract: model-gateway 2.15 questions.*.criteria
#[test]
fn criteria_are_those_of_the_type() {
    let many: Vec<String> = (0..256).map(|number| number.to_string()).collect();
    let options = many
        .iter()
        .map(|name| (name.clone(), Value::Null))
        .collect();
    for (kind, criteria, came, accepted) in [
        ("noul", json!({"a": "b", "c": "d"}), "is given", "none"),
        ("choice", json!(null), "missing", "2 to 255 options"),
        ("choice", json!(["a", "b"]), "an array", "2 to 255 options"),
        ("choice", json!({"a": null}), "holds 1", "2 to 255 options"),
        ("choice", json!({"a": 1, "b": 2}), "1", "a string or null"),
        ("choice", Value::Object(options), "more than 255", "members"),
        ("score", json!(null), "missing", "2 to 255 levels"),
        (
            "score",
            json!({"a": null, "b": null}),
            "an object",
            "2 to 255 levels",
        ),
        ("score", json!([]), "holds 0", "2 to 255 levels"),
        ("score", json!(["a", "a"]), "came before", "different"),
        ("score", json!(["a", ""]), "empty", "a text"),
        ("score", json!(["a", 7]), "7", "a string"),
        ("score", json!(many), "more than 255", "levels"),
        ("score", json!("a"), "\"a\"", "an array of levels"),
    ] {
        let fault = with_criteria(kind, criteria).unwrap_err();
        let param = fault.param.as_deref().unwrap();
        assert!(param.starts_with("questions.q.criteria"), "{fault}");
        for part in [came, accepted] {
            assert!(fault.message.contains(part), "{part:?} in {fault}");
        }
    }
    let most: serde_json::Map<String, Value> =
        (0..400).map(|id| (id.to_string(), noul())).collect();
    let mut more = most.clone();
    more.insert("400".to_owned(), noul());
    assert!(with("questions", Value::Object(most)).is_ok());
    let fault = with("questions", Value::Object(more)).unwrap_err();
    assert!(fault.message.contains("more than 400"), "{fault}");
}

proptest! {
    #[test]
    fn bytes_of_any_kind_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        _ = SYSTEM_ONE.parse(bytes.into());
    }
}

#[test]
fn the_response_has_the_conventions_members() {
    let request = with("state", json!("a")).unwrap();
    let identity = || ReplyIdentity {
        id: "1".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    };
    let mut writer = request.front.writer(&request, identity());
    let mut write = |id: &str, answer: Answer<'_>| {
        let mut out = Vec::new();
        answer.write(id, &mut out);
        writer.item(&out);
    };
    write("q\"", Answer::Noul("0.5"));
    write("none", Answer::Refusal);
    let choice = Answer::Choice {
        choice: "a\n".into(),
        probabilities: vec![("a\n".into(), "0.75"), ("b".into(), "2.5e-1")],
        confidence: None,
    };
    write("c", choice);
    let score = Answer::Score {
        score: "0.5",
        legend: vec![("0".into(), "low".into()), ("1".into(), "high".into())],
        probabilities: vec![("low".into(), "0.5"), ("high".into(), "0.5")],
        confidence: Some("0.5"),
    };
    write("s", score);
    writer.member("output_tokens", "3");
    assert!(!writer.has_content());
    let usage = Usage {
        prompt: 9,
        ..Usage::default()
    };
    let expected = json!({"model": "here/m", "usage": {"input_tokens": 9, "output_tokens": 3}, "answers": {
        "q\"": {"type": "noul", "noul": 0.5},
        "none": {"type": "refusal"},
        "c": {"type": "choice", "choice": "a\n", "probabilities": {"a\n": 0.75, "b": 0.25}, "confidence": null},
        "s": {"type": "score", "score": 0.5, "legend": {"0": "low", "1": "high"},
              "probabilities": {"low": 0.5, "high": 0.5}, "confidence": 0.5}}});
    assert_eq!(complete(&mut *writer, usage), expected);
    let mut writer = request.front.writer(&request, identity());
    let body = complete(&mut *writer, Usage::estimate(8, 0, 0));
    let expected = json!({"input_tokens": 2, "output_tokens": 0, "info": "estimated"});
    assert_eq!((&body["usage"], &body["answers"]), (&expected, &json!({})));
}
