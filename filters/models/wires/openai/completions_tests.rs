#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::fronts::completions::Completions;
use crate::models::metadata::{AnswerMembers, Metadata, UsedNames};
use crate::models::operation::Operation;
use crate::models::reply::ReplyIdentity;
use crate::models::routing::capable;
use crate::models::routing::catalog::Mapping;
use crate::models::routing::parameters::Parameters;
use crate::models::usage::Settlement;
use crate::models::wires::tests::replay::{EVENTS, WHOLE};
use crate::models::wires::{Failure, Progress, Quirks, ReplyHead, WireKind};

fn request(more: &Value) -> ModelRequest {
    let mut body = json!({"model": "m", "prompt": "Once"});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    Completions.parse(body.to_string().into()).unwrap()
}

fn wire() -> &'static crate::models::wires::Wire {
    WireKind::Completions.wire()
}

fn sent(request: &ModelRequest, target: &Target<'_>) -> Value {
    let slices = wire().encode(request, target).unwrap();
    serde_json::from_slice(&slices.concat()).unwrap()
}

#[test]
fn a_body_goes_out_as_it_came_but_for_what_is_the_gateways() {
    let quirks = Quirks::default();
    let target = Target::plain("here", "up", &quirks);
    let all = json!({
        "prompt": ["a", "b"], "suffix": "end", "echo": true, "logprobs": 5, "best_of": 3, "n": 2, "max_tokens": 7,
        "stop": ["x"], "temperature": 0.5, "logit_bias": {"5": -100}, "seed": 1, "user": "u", "top_k": 40,
        "presence_penalty": null, "stream": true, "stream_options": {"include_usage": false},
        "routing": "price", "Routing": 1, "free_models_only": false, "no_reasoning": false, "models": ["other"],
    });
    let sent = sent(&request(&all), &target);
    assert_eq!(
        sent,
        json!({
            "model": "up", "prompt": ["a", "b"], "suffix": "end", "echo": true, "logprobs": 5, "best_of": 3, "n": 2,
            "max_tokens": 7, "stop": ["x"], "temperature": 0.5, "logit_bias": {"5": -100}, "seed": 1, "user": "u", "top_k": 40,
            "stream": true, "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn a_mapping_may_lack_what_completions_alone_have() {
    let quirks = Quirks::default();
    let written = json!({"refuse": ["suffix"], "drop": ["best_of"]});
    let written = serde_json::from_value(written).unwrap();
    let mapping = Mapping {
        parameters: Parameters::plain().with(&written),
        ..Mapping::default()
    };
    let target = Target {
        parameters: &mapping.parameters,
        ..Target::plain("here", "up", &quirks)
    };
    let best = request(&json!({"best_of": 3, "echo": true}));
    assert_eq!(
        sent(&best, &target),
        json!({"model": "up", "prompt": "Once", "echo": true, "max_tokens": 16})
    );
    let limits = wire().codec(Operation::Chat).unwrap().limits();
    let lacks = |more: &Value| {
        let checked = capable::check(&request(more), &mapping, Some(&limits));
        checked.err().map(|lack| lack.param.into_owned())
    };
    assert_eq!(lacks(&json!({"suffix": "end"})), Some("suffix".to_owned()));
    assert_eq!(lacks(&json!({"suffix": "", "echo": false})), None);
}

#[test]
fn a_text_without_a_limit_has_that_of_the_vendor() {
    let quirks = Quirks::default();
    let parameters = serde_json::from_value(
        json!({"rename": {"max_tokens": "n_predict"}, "drop": ["seed"], "bounds": {"temperature": {"max": 1, "outside": "clamp"}}}),
    );
    let parameters = Parameters::plain().with(&parameters.unwrap());
    let target = Target {
        parameters: &parameters,
        ..Target::plain("here", "up", &quirks)
    };
    let codec = wire().codec(Operation::Chat).unwrap();
    for (more, limit) in [
        (json!({}), 16),
        (json!({"max_tokens": null}), 16),
        (json!({"max_tokens": 3}), 3),
    ] {
        let mut more = more;
        more["seed"] = 1.into();
        more["temperature"] = 1.5.into();
        let request = request(&more);
        let expected =
            json!({"model": "up", "prompt": "Once", "n_predict": limit, "temperature": 1});
        assert_eq!(sent(&request, &target), expected);
        assert_eq!(codec.max_output(&request, &target), Some(limit));
    }
}

#[test]
fn only_requests_of_the_dialect_get_there_and_what_is_native_goes_nowhere_else() {
    let limits = |kind: WireKind| kind.wire().codec(Operation::Chat).unwrap().limits();
    let check = |request: &ModelRequest, kind| {
        let checked = capable::check(request, &Mapping::default(), Some(&limits(kind)));
        checked
            .err()
            .map(|lack| (lack.param.into_owned(), lack.reason.into_owned()))
    };
    let lack = |param: &str, reason: &str| Some((param.to_owned(), reason.to_owned()));
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let chat = ChatCompletions.parse(body.to_string().into()).unwrap();
    let refused = lack("model", "completes texts, and answers no chats");
    assert_eq!(check(&chat, WireKind::Completions), refused);
    assert_eq!(check(&chat, WireKind::Compatible), None);
    let chats = [
        WireKind::Compatible,
        WireKind::Responses,
        WireKind::Messages,
        WireKind::Contents,
    ];
    for (more, param, reason) in [
        (json!({"suffix": "x"}), "suffix", "knows no `suffix`"),
        (json!({"echo": true}), "echo", "knows no `echo`"),
        (json!({"logprobs": 1}), "logprobs", "knows no `logprobs`"),
        (json!({"best_of": 2}), "best_of", "knows no `best_of`"),
        (
            json!({"prompt": ["a", "b"]}),
            "prompt",
            "knows no several prompts",
        ),
        (json!({"prompt": [1]}), "prompt", "knows no tokens"),
    ] {
        let request = request(&more);
        assert_eq!(check(&request, WireKind::Completions), None, "{more}");
        for kind in chats {
            assert_eq!(check(&request, kind), lack(param, reason), "{kind:?}");
        }
    }
    // A line end is the usual stop of a text.
    let plain = request(&json!({"stop": ["\n"], "max_tokens": 5}));
    for kind in chats.into_iter().chain([WireKind::Completions]) {
        assert_eq!(check(&plain, kind), None, "{kind:?}");
    }
}

fn read(more: &Value, head: &ReplyHead, pieces: &[&[u8]]) -> Result<String, Failure> {
    let quirks = Quirks::default();
    let target = Target::plain("here", "up", &quirks);
    let request = request(more);
    let mut maker: crate::models::dialects::state::OwnedMaker = "here/m".into();
    maker.dialect = Some(Dialect::Completions);
    let identity = ReplyIdentity {
        id: "made".into(),
        created: 7,
        model: "here/m".into(),
        maker,
    };
    let mut writer = Completions.writer(&request, identity);
    let mut decoder = wire().decoder(&request, &target, head);
    let mut progress = Progress::Open;
    for piece in pieces {
        if progress == Progress::Open {
            progress = decoder.feed(&Bytes::copy_from_slice(piece), &mut *writer)?;
        }
    }
    if progress == Progress::Open {
        decoder.end(&mut *writer)?;
    }
    let usage = writer.reported().usage.unwrap_or_default();
    let used = UsedNames::new("m", "here", None, "up");
    let metadata = Metadata {
        request_id: "1",
        requested_model: "m",
        managed: None,
        requested_provider: None,
        organization_id: "",
        project_id: "",
        log_id: None,
        route: None,
        answer: AnswerMembers::Fresh {
            used: &used,
            price: Default::default(),
            routing: &[],
        },
    };
    writer.complete(&Settlement { usage, cost: None }, &metadata);
    Ok(String::from_utf8(writer.take().to_vec()).unwrap())
}

#[test]
fn a_reply_passes_with_all_that_stands_beside_its_texts() {
    let logprobs = json!({"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": [{"a": -0.5}], "text_offset": [0]});
    let reply = json!({
        "id": "cmpl-up", "object": "text_completion", "created": 5, "model": "up", "system_fingerprint": "fp", "kv_transfer_params": null,
        "choices": [
            {"text": "a \"é\"\n", "index": 0, "logprobs": logprobs, "finish_reason": "length", "stop_reason": null, "prompt_logprobs": [1]},
            {"index": 1, "text": "", "finish_reason": "stop", "logprobs": null},
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "prompt_tokens_details": {"cached_tokens": 1}},
    });
    let body = reply.to_string();
    let whole = read(&json!({"n": 2, "logprobs": 1}), &WHOLE, &[body.as_bytes()]).unwrap();
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(
        whole["choices"],
        json!([
            {"text": "a \"é\"\n", "index": 0, "logprobs": logprobs, "finish_reason": "length", "prompt_logprobs": [1]},
            {"text": "", "index": 1, "logprobs": null, "finish_reason": "stop"},
        ])
    );
    assert_eq!(
        (&whole["id"], &whole["created"], &whole["model"]),
        (&json!("cmpl-up"), &json!(5), &json!("here/m"))
    );
    assert_eq!(whole["system_fingerprint"], "fp");
    assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 1);
}

#[test]
fn events_are_read_however_they_are_cut_and_fold_to_the_whole() {
    let choice = |text: &str, finish: Value| json!({"id": "cmpl-up", "object": "text_completion", "created": 5, "choices": [{"index": 0, "text": text, "logprobs": null, "finish_reason": finish}]});
    let usage = json!({"id": "cmpl-up", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}});
    let events = [
        choice("on", Value::Null),
        choice("ce é", Value::Null),
        choice("", json!("stop")),
        usage,
    ];
    let mut stream: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    stream += "data: [DONE]\n\n";
    let streamed = json!({"stream": true});
    let expected = read(&streamed, &EVENTS, &[stream.as_bytes()]).unwrap();
    assert!(expected.contains("\"text\":\"ce é\""), "{expected}");
    assert!(
        expected.contains("\"total_tokens\":7") && expected.ends_with("data: [DONE]\n\n"),
        "{expected}"
    );
    for at in 0..stream.len() {
        let (one, two) = stream.as_bytes().split_at(at);
        assert_eq!(
            read(&streamed, &EVENTS, &[one, two]).unwrap(),
            expected,
            "{at}"
        );
    }
    let whole: Value =
        serde_json::from_str(&read(&json!({}), &EVENTS, &[stream.as_bytes()]).unwrap()).unwrap();
    assert_eq!(whole["choices"][0]["text"], "once é");
}

#[test]
fn a_reply_without_an_end_or_with_an_error_is_none() {
    let cut = br#"data: {"choices":[{"index":0,"text":"a"}]}"#;
    assert!(read(&json!({"stream": true}), &EVENTS, &[cut, b"\n\n"]).is_err());
    for body in [
        &br#"{"choices":[]}"#[..],
        br#"{"choices":[{"index":0,"text":"a"}]}"#,
        br#"{"error":{"message":"no","code":"context_length_exceeded"}}"#,
        br#"{"choices":[{"index":0,"text":"a","finish_reason":"abort"}]}"#,
        b"<html>",
    ] {
        assert!(
            read(&json!({}), &WHOLE, &[body]).is_err(),
            "{}",
            String::from_utf8_lossy(body)
        );
    }
}
