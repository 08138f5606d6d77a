//! Texts that are nearly JSON, and answers that are repaired in streams.

use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::healing::{heal, is_valid};
use filters::models::request::ModelRequest;
use filters::models::wires::{Quirks, WireKind};
use filters::sse::{EventReader, SseEvent, TooLong};
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::run::run;
use crate::wires::{EVENTS, WHOLE, answer};
use crate::{damage, grammar};

/// What models put in place of JSON's own marks, and around it.
const SWAPS: [(&str, &str); 12] = [
    ("\"", "'"),
    ("\"", "\u{201c}"),
    ("\":", ":"),
    ("{\"", "{"),
    (",", ", // so\n"),
    (",", ",,"),
    (",", " "),
    ("}", ",}"),
    ("]", ",]"),
    ("true", "True"),
    ("null", "None"),
    (":", " = "),
];

pub fn nearly_json(choices: &mut Choices<'_>) -> String {
    let value = grammar::any(choices, 5);
    let written = grammar::write(choices, &value);
    let mut text = String::from_utf8_lossy(&written).into_owned();
    for _ in 0..choices.below(4) {
        let (from, to) = choices.pick(&SWAPS);
        text = text.replacen(from, to, 1 + choices.below(4));
    }
    let around = *choices.pick(&[
        ("", ""),
        ("", ""),
        ("```json\n", "\n```"),
        ("So:\n\n```", "```\nDone."),
        ("The answer is [1] ", "."),
    ]);
    text = format!("{}{text}{}", around.0, around.1);
    let damaged = damage::bytes(choices, text.into_bytes());
    String::from_utf8_lossy(&damaged).into_owned()
}

#[test]
fn a_repaired_text_is_valid_and_a_valid_one_is_left_alone() {
    let done = std::cell::Cell::new((0, 0));
    run("healing: texts", |choices| {
        let text = nearly_json(choices);
        let wants_object = choices.once_in(2);
        let healed = heal(&text, wants_object);
        let (all, repaired) = done.get();
        done.set((all + 1, repaired + u32::from(healed.is_some())));
        let Some(healed) = healed else { return };
        assert!(!is_valid(&text), "{text:?}");
        // A number may be larger than a `Value` holds.
        assert!(is_valid(&healed.json), "{text:?}");
        let first = healed.json.trim_start().chars().next();
        assert!(matches!(first, Some('{' | '[')), "{text:?}");
        assert_eq!(heal(&healed.json, wants_object), None, "{text:?}");
    });
    let (all, repaired) = done.get();
    assert!(repaired * 10 > all, "{repaired} of {all} were repaired");
}

fn request(is_stream: bool) -> ModelRequest {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": is_stream,
        "response_format": {"type": "json_object"}, "plugins": [{"id": "response-healing"}]});
    ChatCompletions.parse(request.to_string().into()).unwrap()
}

/// A stream that says a text in these pieces.
fn stream(pieces: &[&str]) -> Vec<u8> {
    let event = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "c", "choices": [choice]}))
    };
    let mut stream: String = pieces
        .iter()
        .map(|piece| event(json!({ "content": piece }), Value::Null))
        .collect();
    stream.push_str(&event(json!({}), "stop".into()));
    stream.push_str("data: [DONE]\n\n");
    stream.into_bytes()
}

/// The text that a client reads of a stream.
fn text(out: &[u8]) -> String {
    let mut text = String::new();
    let mut read = |event: SseEvent<'_>| {
        if let Ok(chunk) = serde_json::from_slice::<Value>(event.data) {
            let content = &chunk["choices"][0]["delta"]["content"];
            text.push_str(content.as_str().unwrap_or_default());
        }
        Ok::<(), TooLong>(())
    };
    EventReader::default().feed(out, &mut read).unwrap();
    text
}

#[test]
fn a_stream_says_what_the_whole_answer_says_wherever_it_is_cut() {
    let (quirks, wire) = (Quirks::default(), WireKind::Compatible);
    let requests = [request(false), request(true)];
    run("healing: streams", |choices| {
        let said = nearly_json(choices);
        let ends: Vec<usize> = (0..choices.below(8))
            .map(|_| choices.below(said.len() + 1))
            .filter(|end| said.is_char_boundary(*end))
            .collect();
        let mut ends = ends;
        ends.sort_unstable();
        let mut pieces: Vec<&str> = Vec::new();
        let mut start = 0;
        for end in ends.into_iter().chain([said.len()]) {
            pieces.push(&said[start..end]);
            start = end;
        }
        let sent = stream(&pieces);
        let (out, ended) = answer(wire, &requests[1], &quirks, &EVENTS, &choices.cut(&sent));
        ended.unwrap();
        let choice = json!({"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"});
        let whole = json!({"id": "c", "choices": [choice]}).to_string();
        let (whole, ended) = answer(wire, &requests[0], &quirks, &WHOLE, &[whole.as_bytes()]);
        ended.unwrap();
        let whole: Value = serde_json::from_slice(&whole).unwrap();
        let healed = heal(&said, true).map_or(said.clone(), |healed| healed.json);
        assert_eq!(text(&out), healed, "{said:?}");
        assert_eq!(
            whole["choices"][0]["message"]["content"], healed,
            "{said:?}"
        );
    });
}

#[test]
fn valid_json_comes_byte_for_byte_out_of_a_stream_cut_at_every_byte() {
    let said =
        "\n{\"a\": \"\u{e9} ```json\\n{b}\\n``` \\ud83d\\ude00 \\/\", \"b\" : [1.50, -0, 1E5]}\n";
    let pieces: Vec<&str> = said.split_inclusive(' ').collect();
    let sent = stream(&pieces);
    let (quirks, request) = (Quirks::default(), request(true));
    for cut in 0..sent.len() {
        let (before, behind) = sent.split_at(cut);
        let pieces = [before, behind];
        let (out, ended) = answer(WireKind::Compatible, &request, &quirks, &EVENTS, &pieces);
        ended.unwrap();
        assert_eq!(text(&out), said, "{cut}");
    }
}
