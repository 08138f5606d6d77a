//! Replies of each wire and the bytes that clients get of them, pinned in `golden/`.
//!
//! A case begins with `# NAME` and, where its request needs more members, their JSON. Its reply follows: `< EVENT` for each
//! event of a stream, `<= BODY` whole. Behind it stands what the client gets: `>` of the stream, `>+` of the stream as one
//! body, `>=` of the whole reply, `>~` of the whole reply as a stream. A `…` stands for the members that repeat in all
//! chunks, and for the metadata. After a wanted change: `WRITE_GOLDEN=1 cargo test -p filters --test replies golden`, and
//! read the difference.

use std::fmt::Write;
use std::path::Path;

use filters::fault::{Fault, FaultKind};
use filters::models::wires::quirks::ReasoningReplay;
use filters::models::wires::{Quirks, WireKind};

use crate::families::Case;
use crate::{complete, read, settlement, stream_of};

/// Reads the cases of a file.
fn cases(wire: WireKind, file: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in file.lines() {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        match mark {
            "#" => cases.push(case(wire, rest)),
            "<" => cases.last_mut().unwrap().events.push(rest.to_owned()),
            "<=" => cases.last_mut().unwrap().whole = Some(rest.to_owned()),
            _ => {}
        }
    }
    cases
}

fn case(wire: WireKind, head: &str) -> Case {
    let (name, members) = head.split_once(" {").unwrap_or((head, "}"));
    let members = serde_json::from_str(&format!("{{{members}")).unwrap();
    let mut quirks = Quirks::default();
    if name.contains("details go back") {
        quirks.reasoning_replay = ReasoningReplay::ReasoningDetails;
    }
    Case {
        name: name.to_owned(),
        wire,
        quirks,
        members,
        events: Vec::new(),
        whole: None,
    }
}

/// What the client gets of a reply in these pieces, and what was reported.
fn answered<'p>(
    case: &Case,
    is_stream: bool,
    is_event_stream: bool,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (Vec<u8>, String) {
    let mut read = read(case, is_stream, is_event_stream, pieces);
    let writer = &mut *read.writer;
    let reported = writer.reported();
    let mut report = format!(
        "content {}, ended {}, {} bytes, {} images, {} searches, reasons {}",
        writer.has_content(),
        reported.has_finished,
        reported.output_bytes,
        reported.images,
        reported.searches,
        reported.tells_reasoning,
    );
    let settlement = settlement(writer);
    match read.failure {
        None => {
            complete(writer, &settlement);
            let events = read.recorder.into_events();
            _ = write!(report, ", stored {}", events.is_some());
        }
        Some(failure) => {
            _ = write!(report, ", {:?}: {}", failure.kind, failure.message);
            let fault = Fault::new(FaultKind::StreamTruncated, "broken");
            writer.fail(&fault, Some(&settlement));
        }
    }
    (writer.take().into(), report)
}

/// Writes an answer with its mark.
fn show(mark: &str, (answer, report): (Vec<u8>, String), out: &mut String) {
    let text = String::from_utf8(answer).unwrap();
    let mut head = None;
    for event in text.split_terminator("\n\n") {
        let mut event = event.replace('\n', "⏎");
        if let Some(at) = event.find(",\"metadata\":") {
            event.replace_range(at.., ",…}");
        }
        let own = event
            .split_once(",\"choices\"")
            .map(|(own, _)| own.to_owned());
        match (&head, own) {
            (None, own) => head = own,
            (Some(head), Some(own)) if *head == own => event.replace_range(..own.len(), "…"),
            _ => {}
        }
        writeln!(out, "{mark} {event}").unwrap();
    }
    writeln!(out, "{mark}: {report}").unwrap();
}

fn render(case: &Case, out: &mut String) {
    if !case.events.is_empty() {
        let stream = stream_of(case);
        let streamed = answered(case, true, true, [&*stream]);
        for length in [1, 3, 7, 50] {
            let cut = answered(case, true, true, stream.chunks(length));
            assert_eq!(cut, streamed, "{} in pieces of {length}", case.name);
        }
        show(">", streamed, out);
        show(">+", answered(case, false, true, [&*stream]), out);
    }
    if let Some(whole) = &case.whole {
        show(">=", answered(case, false, false, [whole.as_bytes()]), out);
        show(">~", answered(case, true, false, [whole.as_bytes()]), out);
    }
}

#[test]
fn golden_replies_of_every_wire_are_told_in_the_same_bytes() {
    for (name, wire) in [
        ("openai", WireKind::Compatible),
        ("anthropic", WireKind::Messages),
        ("google", WireKind::Contents),
        ("responses", WireKind::Responses),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replies/golden");
        let path = folder.join(format!("{name}.txt"));
        let file = std::fs::read_to_string(&path).unwrap();
        let inputs = file.lines().filter(|line| line.starts_with(['#', '<']));
        let mut inputs = inputs.peekable();
        let mut shown = String::new();
        for case in cases(wire, &file) {
            while let Some(line) = inputs.next() {
                writeln!(shown, "{line}").unwrap();
                if inputs.peek().is_none_or(|next| next.starts_with('#')) {
                    break;
                }
            }
            render(&case, &mut shown);
            shown.push('\n');
        }
        if std::env::var_os("WRITE_GOLDEN").is_some() {
            std::fs::write(&path, &shown).unwrap();
            continue;
        }
        for (is, was) in shown.lines().zip(file.lines()) {
            assert_eq!(is, was, "{name}");
        }
        assert_eq!(shown.len(), file.len(), "{name}");
    }
}
