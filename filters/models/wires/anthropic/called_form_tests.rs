#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use bytes::Bytes;
use serde_json::{Value, json};

use super::ANTHROPIC;
use crate::fault::Fault;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Piece};
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::fronts::messages::Messages;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;
use crate::models::wires::tests::replay::{self, EVENTS, WHOLE};
use crate::models::wires::{BodyForm, Failure, Progress, Quirks, ReplyHead, Target};

const REFUSING: BodyForm = BodyForm {
    refuses_forms: true,
    ..BodyForm::OF_WIRE
};

fn request(form: &Value) -> ModelRequest {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": true,
        "response_format": {"type": "json_schema", "json_schema": form}});
    ChatCompletions.parse(body.to_string().into()).unwrap()
}

fn form() -> Value {
    json!({"name": "city", "description": "A city.", "strict": true,
        "schema": {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}, "required": ["name"]}})
}

fn with_target<T>(body: BodyForm, run: impl FnOnce(&Target<'_>) -> T) -> T {
    let told = replay::told(&ANTHROPIC, None, &[]);
    let quirks = Quirks::default();
    run(&Target {
        parameters: &told.parameters,
        body,
        ..Target::plain("p", "claude", &quirks)
    })
}

fn sent(body: BodyForm, request: &ModelRequest) -> Result<Value, Fault> {
    let sent = with_target(body, |target| ANTHROPIC.encode(request, target))?;
    Ok(serde_json::from_slice(&sent.concat()).unwrap())
}

#[test]
fn a_form_that_a_host_refuses_becomes_a_call_that_is_forced() {
    let body = sent(REFUSING, &request(&form())).unwrap();
    let form = form();
    let tool = json!({"name": "city", "description": "A city.", "input_schema": form["schema"]});
    assert_eq!(body["tools"], json!([tool]));
    let choice = json!({"type": "tool", "name": "city", "disable_parallel_tool_use": true});
    assert_eq!(body["tool_choice"], choice);
    assert_eq!(body.get("output_config"), None);
    let own = sent(BodyForm::OF_WIRE, &request(&form)).unwrap();
    assert_eq!(own["output_config"]["format"]["type"], "json_schema");
    assert_eq!((own.get("tools"), own.get("tool_choice")), (None, None));
}

#[test]
fn a_schema_that_is_not_of_an_object_is_named() {
    for schema in [
        json!({"type": "array", "items": {}}),
        json!({"anyOf": [{"type": "object"}]}),
        json!({"type": ["object", "null"]}),
        json!({}),
    ] {
        let fault = sent(REFUSING, &request(&json!({"name": "a", "schema": schema}))).unwrap_err();
        assert_eq!(fault.status(), 400);
        let param = fault.param.unwrap();
        assert!(param.starts_with("response_format"), "{param}");
    }
}

/// What a client gets: text, how it ends, and whether there were calls.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    text: String,
    finish: String,
    calls: usize,
    usage: Option<Usage>,
}

impl Sink for Answer {
    fn text(&mut self, _: u32, text: Str<'_>) {
        self.text.push_str(&text.unescaped());
    }

    fn pieces(&mut self, _: u32, pieces: &[Piece<'_>]) {
        for piece in pieces {
            match piece {
                Piece::Finish(Finish::Stop) => self.finish.push_str("stop"),
                Piece::Finish(finish) => self.finish = format!("{finish:?}"),
                Piece::Call { .. } | Piece::Arguments { .. } | Piece::CallEnd { .. } => {
                    self.calls += 1;
                }
                _ => {}
            }
        }
    }

    fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }
}

fn read(
    body: BodyForm,
    request: &ModelRequest,
    head: &ReplyHead,
    pieces: impl IntoIterator<Item = Bytes>,
) -> Result<Answer, Failure> {
    let mut answer = Answer::default();
    let mut decoder = with_target(body, |target| ANTHROPIC.decoder(request, target, head));
    for piece in pieces {
        if decoder.feed(&piece, &mut answer)? == Progress::Complete {
            return Ok(answer);
        }
    }
    decoder.end(&mut answer)?;
    Ok(answer)
}

fn whole(content: &Value, stop_reason: &str) -> Answer {
    let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": stop_reason, "content": content,
        "usage": {"input_tokens": 5, "output_tokens": 7}});
    let body = [Bytes::from(body.to_string())];
    read(REFUSING, &request(&form()), &WHOLE, body).unwrap()
}

fn events(deltas: &[&str], stop_reason: &str) -> String {
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "city", "input": {}}}),
    ];
    events.extend(deltas.iter().map(|piece| {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}})
    }));
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]);
    let lines = events.iter().map(|event| format!("data: {event}\n\n"));
    lines.collect()
}

#[test]
fn the_input_of_the_call_is_the_answer_whole_and_in_pieces() {
    let input = r#"{"name":"Köln \"am\" Rhein"}"#;
    let value: Value = serde_json::from_str(input).unwrap();
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "city", "input": value});
    let answer = whole(&json!([call]), "tool_use");
    assert_eq!(
        (&*answer.text, &*answer.finish, answer.calls),
        (input, "stop", 0)
    );
    let usage = answer.usage.unwrap();
    assert_eq!((usage.prompt, usage.completion), (5, 7));
    let (start, end) = input.split_at(9);
    let stream = events(&["", start, end], "tool_use");
    for piece in 1..stream.len() {
        let pieces = stream.as_bytes().chunks(piece).map(Bytes::copy_from_slice);
        let streamed = read(REFUSING, &request(&form()), &EVENTS, pieces).unwrap();
        assert_eq!(streamed, answer, "{piece}");
    }
}

#[test]
fn odd_answers_stay_answers() {
    let call =
        |input: Value| json!({"type": "tool_use", "id": "t", "name": "city", "input": input});
    // Nothing but the first call is the answer.
    let twice = whole(
        &json!([call(json!({"a": 1})), call(json!({"b": 2}))]),
        "tool_use",
    );
    assert_eq!((&*twice.text, twice.calls), ("{\"a\":1}", 0));
    for empty in [json!({}), Value::Null] {
        let answer = whole(&json!([call(empty)]), "tool_use");
        assert_eq!((&*answer.text, &*answer.finish), ("{}", "stop"));
    }
    let stream = read(
        REFUSING,
        &request(&form()),
        &EVENTS,
        [events(&[], "tool_use").into()],
    );
    assert_eq!(stream.unwrap().text, "{}");
    let cut = read(
        REFUSING,
        &request(&form()),
        &EVENTS,
        [events(&["{\"na"], "max_tokens").into()],
    );
    let cut = cut.unwrap();
    assert_eq!((&*cut.text, &*cut.finish), ("{\"na", "Length"));
    // A host that does not call answers in words.
    let text = whole(&json!([{"type": "text", "text": "{\"a\":1}"}]), "end_turn");
    assert_eq!((&*text.text, &*text.finish), ("{\"a\":1}", "stop"));
    let refused = whole(&json!([]), "refusal");
    assert_eq!((&*refused.text, &*refused.finish), ("", "Filtered"));
    let truncated = events(&["{}"], "tool_use");
    let truncated = truncated.split_at(truncated.len() - 40).0.to_owned();
    assert!(read(REFUSING, &request(&form()), &EVENTS, [truncated.into()]).is_err());
}

#[test]
fn calls_of_other_requests_and_hosts_stay_calls() {
    let stream = || [Bytes::from(events(&["{}"], "tool_use"))];
    let answer = read(BodyForm::OF_WIRE, &request(&form()), &EVENTS, stream()).unwrap();
    assert!(answer.calls > 0 && answer.text.is_empty());
    let plain = replay::request();
    let answer = read(REFUSING, &plain, &EVENTS, stream()).unwrap();
    assert!(answer.calls > 0 && answer.text.is_empty());
    // Clients of the same dialect get what comes, and their form does not go out.
    let body = json!({"model": "m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "Hi"}],
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}});
    let own = Messages.parse(body.to_string().into()).unwrap();
    let body = sent(REFUSING, &own).unwrap();
    assert_eq!((body.get("tools"), body.get("output_config")), (None, None));
    let answer = read(REFUSING, &own, &EVENTS, stream()).unwrap();
    assert!(answer.text.is_empty());
}
