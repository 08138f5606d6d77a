//! Requests of chats and the bodies that each wire makes of them, pinned in `golden/`.
//!
//! `cases.txt` has the requests: `# NAME`, then the members of the body as JSON, whose state names its maker in the place of a
//! seal. The file of a wire has for each what goes
//! out to the targets of [`targets`]: the body, `= NAME` where it is that of another target, or `! PARAM: MESSAGE` where the
//! wire cannot say the request. After a wanted change: `WRITE_GOLDEN=1 cargo test -p filters --test requests`, and read the
//! difference.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

#[path = "../seals/mod.rs"]
mod seals;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use filters::models::chat::inlined::{InlinedImage, InlinedImages};
use filters::models::front::Front;
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::request::ModelRequest;
use filters::models::routing::parameters::Parameters;
use filters::models::routing::thinking::{Thinking, ThinkingControl, WrittenThinking};
use filters::models::wires::quirks::ReasoningReplay;
use filters::models::wires::{BodySlice, Quirks, Target, Wire, WireKind};
use serde_json::{Value, json};

const WIRES: [(&str, WireKind); 4] = [
    ("openai", WireKind::Compatible),
    ("anthropic", WireKind::Messages),
    ("google", WireKind::Contents),
    ("responses", WireKind::Responses),
];

/// What the targets of a wire borrow.
struct Settings {
    plain: Quirks,
    strict: Quirks,
    replaying: Quirks,
    parameters: Parameters,
    levels: Thinking,
    budgets: Thinking,
    inlined: InlinedImages,
}

impl Settings {
    fn of(wire: &Wire) -> Self {
        let thinking = |control| {
            let written = WrittenThinking {
                control: Some(control),
                budget_min: Some(1024),
                budget_max: Some(32_000),
                reasons: Some(true),
                ..WrittenThinking::default()
            };
            Thinking::new(&written, &wire.defaults().thinking).unwrap()
        };
        let mut inlined = InlinedImages::default();
        let image = InlinedImage::read(b"GIF89a\x01\x00").unwrap();
        inlined.add("https://a.test/seen.gif", Arc::new(image));
        Self {
            plain: Quirks::default(),
            strict: Quirks {
                strict_messages: true,
                drop_unknown_fields: true,
                tool_call_ids_of_nine: true,
                null_content_is_empty: true,
                strict_schema: true,
                developer_is_system: true,
                inline_images: true,
                ..Quirks::default()
            },
            replaying: Quirks {
                reasoning_replay: ReasoningReplay::ReasoningDetails,
                ..Quirks::default()
            },
            parameters: wire.defaults().parameters,
            levels: thinking(ThinkingControl::Levels),
            budgets: thinking(ThinkingControl::Budget),
            inlined,
        }
    }
}

/// The targets of a wire: nothing is known of the first; the second has the wire's own table, thinks by budgets, draws, and is
/// told what to cache; the third takes little, and no state; the fourth thinks by levels and takes reasoning back.
fn targets(own: &Settings) -> [(&'static str, Target<'_>); 4] {
    let plain = Target {
        inlined: &own.inlined,
        key_id: Some("key_1"),
        ..Target::plain("here", "upstream-model", &own.plain)
    };
    let known = Target {
        parameters: &own.parameters,
        thinking: &own.budgets,
        image_output: Some(true),
        max_output: Some(64_000),
        unasked_output: Some(9000),
        auto_cache: Some(10),
        region: Some("us"),
        ..plain
    };
    let strict = Target {
        parameters: &own.parameters,
        lower_tool_choice: true,
        refuses_state: true,
        quirks: &own.strict,
        ..plain
    };
    let replaying = Target {
        parameters: &own.parameters,
        thinking: &own.levels,
        quirks: &own.replaying,
        ..plain
    };
    [
        ("plain", plain),
        ("known", known),
        ("strict", strict),
        ("replaying", replaying),
    ]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests")
}

/// A conversation of thirty turns with a call and its result in each.
fn long_history() -> Value {
    let mut messages = vec![json!({"role": "system", "content": "Be brief."})];
    for at in 0..30 {
        let id = format!("call_{at}");
        let call = json!({"id": id, "type": "function", "function": {"name": "f", "arguments": format!("{{\"n\":{at}}}")}});
        messages.extend([
            json!({"role": "user", "content": format!("Question {at}")}),
            json!({"role": "assistant", "content": format!("Let me see {at}."), "tool_calls": [call], "reasoning": "hm",
                "reasoning_details": [{"type": "reasoning.text", "format": "anthropic-claude-v1", "model": "here/upstream-model", "index": 0, "text": "hm", "signature": format!("sig{at}")}]}),
            json!({"role": "tool", "tool_call_id": id, "content": format!("Result {at}")}),
            json!({"role": "assistant", "content": format!("It is {at}.")}),
        ]);
    }
    messages.push(json!({"role": "user", "content": "Go on"}));
    json!({ "messages": messages })
}

fn cases() -> Vec<(String, ModelRequest)> {
    let file = std::fs::read_to_string(folder().join("cases.txt")).unwrap();
    let mut cases = Vec::new();
    for case in file.split("\n# ").skip(1) {
        let (name, members) = case.split_once('\n').unwrap();
        let members = members.trim();
        let long = long_history().to_string();
        let members = if members == "LONG" { &long } else { members };
        let mut rest = members.strip_prefix('{').unwrap().to_owned();
        if !members.contains("\"messages\"") {
            rest = format!(r#""messages":[{{"role":"user","content":"Hi"}}],{rest}"#);
        }
        let mut body = format!(r#"{{"model":"m",{rest}"#);
        if ["reasoning_details", "vendor_native_blocks"]
            .iter()
            .any(|key| body.contains(key))
        {
            let mut history: Value = serde_json::from_str(&body).unwrap();
            seals::seal(&mut history["messages"]);
            body = history.to_string();
        }
        let request = ChatCompletions.parse(body.into());
        let request = request.unwrap_or_else(|fault| panic!("{name}: {}", fault.message));
        cases.push((name.to_owned(), request));
    }
    cases
}

fn said(wire: &Wire, request: &ModelRequest, target: &Target<'_>) -> String {
    let codec = wire.codec(request.payload.operation()).unwrap();
    match codec.encode(request, target) {
        Ok(slices) => {
            let body = slices.into_iter().flat_map(|slice| match slice {
                BodySlice::Bytes(bytes) => bytes,
                BodySlice::Upload(range) => panic!("{range:?} is not in memory"),
            });
            let body = String::from_utf8(body.collect()).unwrap();
            serde_json::from_str::<Value>(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
            body.replace('\n', "⏎")
        }
        Err(fault) => format!(
            "! {}: {}",
            fault.param.as_deref().unwrap_or_default(),
            fault.message
        ),
    }
}

fn shown(kind: WireKind) -> String {
    let wire = kind.wire();
    let settings = Settings::of(wire);
    let mut out = String::new();
    for (name, request) in cases() {
        writeln!(out, "# {name}").unwrap();
        let mut before: Vec<(&str, String)> = Vec::new();
        for (target, value) in targets(&settings) {
            let said = said(wire, &request, &value);
            match before.iter().find(|(_, other)| *other == said) {
                Some((same, _)) => writeln!(out, "{target} = {same}").unwrap(),
                None => writeln!(out, "{target} {said}").unwrap(),
            }
            before.push((target, said));
        }
        out.push('\n');
    }
    out
}

#[test]
fn golden_requests_of_every_wire_are_said_in_the_same_bytes() {
    for (name, kind) in WIRES {
        let path = folder().join(format!("golden/{name}.txt"));
        let shown = shown(kind);
        if std::env::var_os("WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &shown).unwrap();
            continue;
        }
        let file = std::fs::read_to_string(&path).unwrap();
        for (is, was) in shown.lines().zip(file.lines()) {
            assert_eq!(is, was, "{name}");
        }
        assert_eq!(shown.len(), file.len(), "{name}");
    }
}
