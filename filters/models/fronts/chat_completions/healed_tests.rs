//! What is held back, and what passes.

use serde_json::{Value, json};

use super::ChatCompletions;
use crate::fault::{Fault, FaultKind};
use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::front::Front;
use crate::models::healing::{HealingStrategy, Outcome};
use crate::models::metadata::{AnswerMembers, Metadata, UsedNames};
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::usage::{Settlement, Usage};

fn writer(is_stream: bool) -> Box<dyn Writer> {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": is_stream,
        "response_format": {"type": "json_object"}, "plugins": [{"id": "response-healing"}]});
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let identity = ReplyIdentity {
        id: "1".into(),
        created: 1,
        model: "p/m".into(),
        maker: "p/m".into(),
    };
    ChatCompletions.writer(&request, identity)
}

fn said(text: &str) -> Piece<'_> {
    Piece::Text(Str::Plain(text))
}

fn written(writer: &mut dyn Writer) -> String {
    String::from_utf8(writer.take().into()).unwrap()
}

#[test]
fn a_held_text_is_no_content_and_counts_as_it_came_once_it_is_out() {
    let mut writer = writer(true);
    writer.pieces(0, &[said("Here it is: {\"a\": 1,")]);
    writer.text(0, Str::Plain("}"));
    assert!(writer.holds_text() && !writer.has_content());
    assert_eq!(writer.reported().output_bytes, 0);
    assert!(writer.structured().is_none());
    writer.pieces(0, &[Piece::Finish(Finish::Stop)]);
    assert!(writer.has_content() && !writer.holds_text());
    assert_eq!(writer.reported().output_bytes, 21);
    let out = written(&mut *writer);
    assert!(out.contains(r#""content":"{\"a\":1}""#), "{out}");
    let answer = writer.structured().unwrap();
    let strategy = HealingStrategy::CombinedStrategies;
    assert_eq!(
        (answer.text, answer.outcome),
        ("{\"a\":1}", Outcome::Healed(strategy))
    );
}

#[test]
fn what_is_no_text_of_the_answer_passes_as_it_comes() {
    let mut writer = writer(true);
    writer.pieces(0, &[said("{a: "), Piece::Reasoning(Str::Plain("Hm."))]);
    assert!(writer.has_content());
    let out = written(&mut *writer);
    assert!(out.contains("Hm.") && !out.contains("{a"), "{out}");
    writer.pieces(0, &[Piece::Refusal(Str::Plain("No."))]);
    assert!(written(&mut *writer).contains("\"refusal\":\"No.\""));
    // Another choice than the first was not asked for, and is none of its business.
    writer.text(1, Str::Plain("{b: "));
    assert!(written(&mut *writer).contains("{b: "));
}

#[test]
fn a_call_lets_the_text_before_it_go() {
    let mut writer = writer(true);
    writer.pieces(0, &[said("I call f({x: 1}).")]);
    let call = Piece::Call {
        key: 0,
        id: None,
        name: Some(Str::Plain("f")),
    };
    writer.pieces(0, &[call]);
    let out = written(&mut *writer);
    let (text, call) = (out.find("f({x: 1})"), out.find("tool_calls"));
    assert!(text.is_some() && text < call, "{out}");
    writer.pieces(0, &[said(" Then {y: 2}.")]);
    assert!(written(&mut *writer).contains("{y: 2}"));
    writer.pieces(0, &[Piece::Finish(Finish::ToolCalls)]);
    assert!(writer.structured().is_none());
}

#[test]
fn an_answer_without_text_stays_without() {
    for is_stream in [true, false] {
        let mut writer = writer(is_stream);
        writer.pieces(0, &[Piece::Finish(Finish::Stop)]);
        writer.end_text(true);
        assert!(writer.structured().is_none());
        assert_eq!(writer.reported().output_bytes, 0);
    }
}

#[test]
fn an_end_without_a_reason_is_an_end() {
    let mut writer = writer(true);
    writer.pieces(0, &[said("{a: 1")]);
    writer.end_text(true);
    assert!(written(&mut *writer).contains(r#"{\"a\":1}"#));
}

#[test]
fn what_broke_off_goes_out_unrepaired_before_the_error() {
    let mut writer = writer(true);
    writer.pieces(0, &[said("{a: 1")]);
    writer.end_text(false);
    let settlement = Settlement {
        usage: Usage::estimate(0, 5, 0),
        cost: None,
    };
    let fault = Fault::new(FaultKind::UpstreamFailed, "broken");
    writer.fail(&fault, Some(&settlement));
    let out = written(&mut *writer);
    let (text, error) = (out.find("{a: 1\""), out.find("event: error"));
    assert!(text.is_some() && text < error, "{out}");
    assert_eq!(writer.reported().output_bytes, 5);
}

#[test]
fn a_text_that_never_ends_is_let_go() {
    let mut writer = writer(true);
    let piece = "a".repeat(1 << 20);
    for _ in 0..9 {
        assert!(!writer.has_content());
        writer.text(0, Str::Plain(&piece));
    }
    assert!(writer.has_content());
    writer.text(0, Str::Plain("b"));
    assert_eq!(writer.reported().output_bytes, (9 << 20) + 1);
    writer.pieces(0, &[Piece::Finish(Finish::Stop)]);
    assert!(writer.structured().is_none());
}

#[test]
fn a_whole_answer_is_repaired_with_all_its_members() {
    let mut writer = writer(false);
    let pieces = [
        Piece::Text(Str::Raw("{\\\"a\\\": [1, \\u0032")),
        Piece::Reasoning(Str::Raw("Hm.")),
        Piece::Logprobs("{\"content\":[]}"),
        Piece::Finish(Finish::Length),
    ];
    writer.pieces(0, &pieces);
    let settlement = Settlement {
        usage: Usage::estimate(0, 5, 0),
        cost: None,
    };
    let metadata = Metadata {
        route: None,
        request_id: "r",
        requested_model: "m",
        requested_provider: None,
        organization_id: "o",
        project_id: "p",
        log_id: None,
        managed: None,
        answer: AnswerMembers::Fresh {
            used: &UsedNames::new("m", "p", None, "up"),
            price: Default::default(),
            routing: &[],
        },
    };
    writer.complete(&settlement, &metadata);
    let body: Value = serde_json::from_slice(&writer.take()).unwrap();
    let choice = &body["choices"][0];
    assert_eq!(choice["message"]["content"], "{\"a\":[1,2]}");
    assert_eq!(choice["message"]["reasoning"], "Hm.");
    assert_eq!(
        (&choice["finish_reason"], &choice["logprobs"]["content"]),
        (&"length".into(), &json!([]))
    );
}
