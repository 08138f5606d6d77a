#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fault::FaultKind;
use crate::json::Str;
use crate::models::chat::conversation::{BlockKind, Role};
use crate::models::chat::piece::{Finish, Piece};
use crate::models::fronts::tests::end;
use crate::models::parameter::Parameter;
use crate::models::usage::Usage;

fn parsed(more: &Value) -> Result<ModelRequest, Fault> {
    let mut body = json!({"model": "m", "prompt": "Once"});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    Completions.parse(body.to_string().into())
}

fn request(more: &Value) -> ModelRequest {
    parsed(more).unwrap()
}

fn identity() -> ReplyIdentity {
    ReplyIdentity {
        id: "0123".into(),
        created: 7,
        model: "here/m".into(),
        maker: "here/m".into(),
    }
}

fn written(request: &ModelRequest, said: &[(u32, Vec<Piece<'_>>)]) -> String {
    let mut writer = Completions.writer(request, identity());
    for (choice, pieces) in said {
        writer.pieces(*choice, pieces);
    }
    let usage = Usage {
        prompt: 3,
        completion: 2,
        ..Usage::default()
    };
    end(&mut *writer, usage);
    String::from_utf8(writer.take().to_vec()).unwrap()
}

fn events(stream: &str) -> Vec<Value> {
    let events = stream.split("\n\n").filter(|event| !event.is_empty());
    let mut data: Vec<&str> = events
        .map(|event| event.strip_prefix("data: ").unwrap())
        .collect();
    assert_eq!(data.pop(), Some("[DONE]"));
    let read = |data: &&str| serde_json::from_str(data).unwrap();
    data.iter().map(read).collect()
}

/// Folds a stream into the response that it is.
fn fold(stream: &str) -> Value {
    let events = events(stream);
    let mut whole = events.last().unwrap().clone();
    let mut choices: BTreeMap<u64, Value> = BTreeMap::new();
    for event in &events {
        for key in ["id", "object", "created", "model"] {
            assert_eq!(event[key], whole[key]);
        }
        if event.get("usage").is_some() {
            continue;
        }
        for choice in event["choices"].as_array().unwrap() {
            let index = choice["index"].as_u64().unwrap();
            let Some(kept) = choices.get_mut(&index) else {
                choices.insert(index, choice.clone());
                continue;
            };
            assert_eq!(kept["finish_reason"], Value::Null, "nothing follows an end");
            let text = [
                kept["text"].as_str().unwrap(),
                choice["text"].as_str().unwrap(),
            ];
            kept["text"] = text.concat().into();
            kept["finish_reason"] = choice["finish_reason"].clone();
        }
    }
    whole["choices"] = choices.into_values().collect();
    whole
}

#[test]
fn a_body_is_checked_and_told_what_is_accepted() {
    for (more, said) in [
        (
            json!({"model": null}),
            "`model` is null; accepted is a string",
        ),
        (
            json!({"prompt": null}),
            "`prompt` is null; accepted is a string, an array of strings, an array of integers, or an array of arrays of integers",
        ),
        (
            json!({"prompt": {}}),
            "`prompt` is an object; accepted is a string, an array of strings, an array of integers, or an array of arrays of integers",
        ),
        (
            json!({"prompt": []}),
            "`prompt` is empty; accepted is at least one prompt",
        ),
        (
            json!({"prompt": ["a", 1]}),
            "`prompt[1]` is a number (1); accepted is an item of the same type as the first",
        ),
        (
            json!({"prompt": [[1], [-1]]}),
            "`prompt[1][0]` is -1; accepted is an integer from 0 to 4294967295",
        ),
        (
            json!({"prompt": [true]}),
            "`prompt[0]` is the boolean true; accepted is a string, an integer or an array of integers",
        ),
        (
            json!({"suffix": 1}),
            "`suffix` is a number (1); accepted is a string",
        ),
        (
            json!({"logprobs": true}),
            "`logprobs` is the boolean true; accepted is an integer from 0 to 4294967295",
        ),
        (
            json!({"echo": "yes"}),
            "`echo` is a string (\"yes\"); accepted is a boolean",
        ),
        (
            json!({"n": 0}),
            "`n` is 0; accepted is an integer from 1 to 128",
        ),
        (
            json!({"n": 3, "best_of": 2}),
            "`best_of` is 2; accepted is at least `n`, which is 3",
        ),
        (
            json!({"stop": 1}),
            "`stop` is a number (1); accepted is a string or an array of strings",
        ),
        (
            json!({"stop": vec!["a"; 65]}),
            "`stop` holds 65 sequences; accepted are at most 64",
        ),
        (
            json!({"logit_bias": {"50": "x"}}),
            "`logit_bias.50` is a string (\"x\"); accepted is a number",
        ),
        (
            json!({"routing": "luck"}),
            "`routing` is \"luck\"; accepted is one of auto, price, throughput, latency",
        ),
        (
            json!({"model": "@prompt/p"}),
            "`model` names a prompt, which only chats take; accepted is a model id",
        ),
        (
            json!({"stream_options": {"include_usage": 1}}),
            "`stream_options.include_usage` is a number (1); accepted is a boolean",
        ),
    ] {
        let fault = parsed(&more).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Invalid, "{more}");
        let start = fault.message.get(..said.len());
        assert_eq!(start, Some(said), "{more}: {}", fault.message);
    }
    let missing = Completions.parse("{\"model\":\"m\"}".into()).unwrap_err();
    assert_eq!(missing.param.as_deref(), Some("prompt"));
}

#[test]
fn what_only_hosts_of_the_dialect_know_is_a_need() {
    for (more, member) in [
        (json!({}), None),
        (json!({"prompt": ["one"]}), None),
        (
            json!({"suffix": "", "echo": false, "logprobs": null, "best_of": 2, "n": 2}),
            None,
        ),
        (json!({"prompt": ["one", "two"]}), Some("prompt")),
        (json!({"prompt": [1, 2]}), Some("prompt")),
        (json!({"prompt": [[1], [2]]}), Some("prompt")),
        (json!({"prompt": ""}), Some("prompt")),
        (json!({"suffix": "end"}), Some("suffix")),
        (json!({"echo": true}), Some("echo")),
        (json!({"logprobs": 0}), Some("logprobs")),
        (json!({"best_of": 2}), Some("best_of")),
    ] {
        let native = request(&more).needs.native;
        assert!(native.iter().all(|it| it.dialect == Dialect::Completions));
        assert_eq!(native.map(|it| it.member), member, "{more}");
    }
    let counted = request(&json!({"prompt": ["one", "two"], "n": 2, "best_of": 5}));
    assert_eq!(
        (counted.needs.choices, counted.cost_inputs.choices),
        (2, 10)
    );
    assert_eq!(counted.text_bytes, 6);
    assert_eq!(request(&json!({"prompt": [1, 2, 3]})).text_bytes, 12);
}

#[test]
fn the_prompt_is_what_the_user_says() {
    let request = request(
        &json!({"prompt": ["Say \"é\"\n"], "stop": "\n", "temperature": 0.5, "seed": 3, "logit_bias": {"5": 1}, "user": "u", "top_p": null}),
    );
    let chat = Completions.conversation(&request).unwrap();
    assert_eq!(chat.turns.len(), 1);
    assert_eq!(chat.turns[0].role, Role::User);
    let BlockKind::Text(text) = &chat.turns[0].blocks[0].kind else {
        unreachable!("a text");
    };
    assert_eq!(&**text, "Say \"é\"\n");
    assert_eq!(chat.path(chat.turns[0].blocks[0].at, None), "prompt[0]");
    assert_eq!(
        chat.stop.iter().map(|stop| &**stop).collect::<Vec<_>>(),
        ["\n"]
    );
    for (parameter, value) in [
        (Parameter::Temperature, Some("0.5")),
        (Parameter::Seed, Some("3")),
        (Parameter::LogitBias, Some("{\"5\":1}")),
        (Parameter::User, Some("\"u\"")),
        (Parameter::TopP, None),
    ] {
        assert_eq!(
            chat.option(parameter).map(|raw| raw.get()),
            value,
            "{parameter:?}"
        );
    }
    assert_eq!(request.session.as_deref(), Some("u"));
}

#[test]
fn a_response_is_a_text_with_usage_and_metadata() {
    let said = [
        (0, vec![Piece::Reasoning(Str::Plain("hm"))]),
        (0, vec![Piece::Text(Str::Plain("a \"b\""))]),
        (
            0,
            vec![
                Piece::Text(Str::Plain("\nc")),
                Piece::Finish(Finish::Length),
            ],
        ),
        (0, vec![Piece::Text(Str::Plain("behind the end"))]),
    ];
    let whole: Value = serde_json::from_str(&written(&request(&json!({})), &said)).unwrap();
    let choice =
        json!({"text": "a \"b\"\nc", "index": 0, "logprobs": null, "finish_reason": "length"});
    assert_eq!(whole["choices"], json!([choice]));
    assert_eq!(
        (&whole["id"], &whole["object"]),
        (&json!("cmpl-0123"), &json!("text_completion"))
    );
    assert_eq!(whole["usage"]["total_tokens"], 5);
    assert_eq!(whole["metadata"]["request_id"], "1");
    for includes in [false, true] {
        let more = json!({"stream": true, "stream_options": {"include_usage": includes}});
        let stream = written(&request(&more), &said);
        assert_eq!(fold(&stream)["choices"], whole["choices"]);
        let events = events(&stream);
        let (last, earlier) = events.split_last().unwrap();
        assert!(earlier.iter().all(|event| event.get("usage").is_none()));
        assert_eq!(last["usage"], whole["usage"]);
        let count = last["choices"].as_array().unwrap().len();
        assert_eq!(count, usize::from(!includes));
    }
}

#[test]
fn what_the_dialect_has_beside_a_text_passes() {
    let said = [
        (
            1,
            vec![
                Piece::Text(Str::Plain("b")),
                Piece::Logprobs("{\"tokens\":\n[\"b\"]}"),
            ],
        ),
        (
            0,
            vec![
                Piece::Text(Str::Plain("a")),
                Piece::Other {
                    key: "stop_reason",
                    json: "5",
                },
            ],
        ),
        (
            1,
            vec![
                Piece::Logprobs("{\"tokens\":[\"c\"]}"),
                Piece::Finish(Finish::Stop),
            ],
        ),
    ];
    let whole = written(&request(&json!({"logprobs": 1, "n": 2})), &said);
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let choices = whole["choices"].as_array().unwrap();
    assert_eq!(choices[0]["stop_reason"], 5);
    assert_eq!(choices[0]["finish_reason"], "stop");
    assert_eq!(choices[1]["logprobs"]["tokens"], json!(["b", "c"]));
    let stream = written(
        &request(&json!({"logprobs": 1, "n": 2, "stream": true})),
        &said,
    );
    let events = events(&stream);
    assert_eq!(events[0]["choices"][0]["logprobs"]["tokens"], json!(["b"]));
    assert_eq!(events[1]["choices"][0]["stop_reason"], 5);
    // Nobody has asked for them.
    let unasked = written(&request(&json!({"n": 2})), &said);
    assert!(!unasked.contains("tokens\":["), "{unasked}");
}

#[test]
fn a_text_ends_at_its_stop_sequence_but_not_in_an_echoed_prompt() {
    let said = [
        (0, vec![Piece::Text(Str::Plain("one E"))]),
        (0, vec![Piece::Text(Str::Plain("ND two"))]),
        (0, vec![Piece::Finish(Finish::Length)]),
    ];
    let text = |more: &Value| {
        let whole: Value = serde_json::from_str(&written(&request(more), &said)).unwrap();
        let choice = &whole["choices"][0];
        [&choice["text"], &choice["finish_reason"]].map(|it| it.as_str().unwrap().to_owned())
    };
    assert_eq!(text(&json!({"stop": ["END"]})), ["one ", "stop"]);
    assert_eq!(text(&json!({"stop": "ENX"})), ["one END two", "length"]);
    assert_eq!(
        text(&json!({"stop": "END", "echo": true})),
        ["one END two", "length"]
    );
}

#[test]
fn a_broken_stream_ends_in_an_error_behind_all_that_was_said() {
    let request = request(&json!({"stream": true, "stop": "END"}));
    let mut writer = Completions.writer(&request, identity());
    writer.pieces(0, &[]);
    assert!(!writer.has_content(), "a beginning commits nothing");
    writer.pieces(0, &[Piece::Text(Str::Plain("said E"))]);
    assert!(writer.has_content());
    writer.fail(&Fault::new(FaultKind::Internal, "it broke"), None);
    let out = String::from_utf8(writer.take().to_vec()).unwrap();
    let (said, error) = out.split_once("event: error").unwrap();
    assert!(
        said.contains("\"text\":\"said \"") && said.contains("\"text\":\"E\""),
        "{out}"
    );
    assert!(
        error.contains("it broke") && !out.contains("[DONE]"),
        "{out}"
    );
}

proptest! {
    #[test]
    fn a_stream_makes_the_whole_response(
        said in prop::collection::vec((0..3_u32, "[abE\"\\n]{0,4}", prop::option::weighted(0.1, prop::bool::ANY)), 0..12)
    ) {
        let pieces: Vec<(u32, Vec<Piece<'_>>)> = said.iter().map(|(choice, text, end)| {
            let mut pieces = vec![Piece::Text(Str::Plain(text))];
            let finish = |is_long| if is_long { Finish::Length } else { Finish::Stop };
            pieces.extend(end.map(|is_long| Piece::Finish(finish(is_long))));
            (*choice, pieces)
        }).collect();
        let more = json!({"n": 3, "stop": ["EE", "ab"], "stream_options": {"include_usage": true}});
        let mut streamed = more.clone();
        streamed["stream"] = true.into();
        let whole: Value = serde_json::from_str(&written(&request(&more), &pieces)).unwrap();
        prop_assert_eq!(fold(&written(&request(&streamed), &pieces)), whole);
    }
}
