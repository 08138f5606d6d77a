//! What has to hold of every front of chats: its requests on every wire, and the answers of every wire in its own words.

use std::cell::Cell;

use filters::models::front::Front;
use filters::models::request::ModelRequest;
use filters::models::wires::{Quirks, WireKind};
use filters::sse::{EventReader, SseEvent, TooLong};
use serde_json::Value;

use crate::choices::Choices;
use crate::models::{WIRES, encodes, quirks};
use crate::run::run;
use crate::wires::{EVENTS, WHOLE, answer, events_head, grammars, stream};
use crate::{damage, grammar};

/// Composes the request of a front that wants a stream, or a whole answer.
pub type Request = fn(&mut Choices<'_>, bool) -> ModelRequest;

/// An accepted request is JSON on every wire, and other bodies are a 400. `also` checks each body, and what was read of it.
pub fn requests(
    name: &str,
    front: &dyn Front,
    grammar: &Value,
    also: impl Fn(&[u8], Option<&ModelRequest>, &Quirks),
) {
    let counted = Cell::new((0_u32, 0_u32));
    run(name, |choices| {
        let body = grammar::compose(choices, grammar);
        let is_damaged = !choices.once_in(4);
        let body = match is_damaged {
            true => damage::tree(choices, body),
            false => body,
        };
        let body = grammar::write(choices, &body);
        let body = match is_damaged && choices.once_in(2) {
            true => damage::bytes(choices, body),
            false => body,
        };
        let (all, good) = counted.get();
        counted.set((all + 1, good));
        let read = front.parse(body.clone().into());
        let quirks = quirks(choices);
        also(&body, read.as_ref().ok(), &quirks);
        match read {
            Ok(request) => {
                counted.set((all + 1, good + 1));
                encodes(&request, &quirks);
            }
            Err(fault) => assert_eq!(fault.status(), 400, "{fault:?}"),
        }
    });
    let (all, good) = counted.get();
    assert!(good * 20 > all, "{good} of {all} are accepted");
}

/// A stream that a front makes of the replies of a wire of another dialect keeps its grammar, however they are cut and wherever they
/// end. `check` gets the stream, and whether the reply has come to its end.
pub fn keep_the_grammar(
    name: &str,
    wire: WireKind,
    request: Request,
    check: impl Fn(&str, bool) -> Result<(), String>,
) {
    let (events, replies) = grammars(wire);
    let done = Cell::new((0_u32, 0_u32));
    run(name, |choices| {
        // Some hosts answer whole, although a stream was asked for.
        let (said, head) = match choices.once_in(8) {
            true => (
                grammar::compose(choices, &replies).to_string().into_bytes(),
                &WHOLE,
            ),
            false => (stream(choices, wire, &events), events_head(wire)),
        };
        let said = match choices.once_in(2) {
            true => damage::bytes(choices, said),
            false => said,
        };
        let (request, quirks) = (request(choices, true), Quirks::default());
        let (out, ended) = answer(wire, &request, &quirks, head, &[&said]);
        let text = std::str::from_utf8(&out).unwrap();
        let shown = || format!("{}\nmade {text}", String::from_utf8_lossy(&said));
        if let Err(why) = check(text, ended.is_ok()) {
            panic!("{why}\nfrom {}", shown());
        }
        let pieces = choices.cut(&said);
        let (again, ended_again) = answer(wire, &request, &quirks, head, &pieces);
        assert_eq!(text, String::from_utf8_lossy(&again), "{}", shown());
        assert_eq!(ended, ended_again);
        let (all, good) = done.get();
        done.set((all + 1, good + u32::from(ended.is_ok())));
    });
    let (all, good) = done.get();
    assert!(
        good * 20 > all,
        "the grammar makes what is refused: {good} of {all}"
    );
}

/// Events of the own dialect pass as they came, and are events however they are cut.
pub fn pass(name: &str, wire: WireKind, request: Request) {
    let (events_grammar, _) = grammars(wire);
    run(name, |choices| {
        let said = stream(choices, wire, &events_grammar);
        let said = damage::bytes(choices, said);
        let (request, quirks) = (request(choices, true), Quirks::default());
        let (out, ended) = answer(wire, &request, &quirks, &EVENTS, &[&said]);
        let mut reader = EventReader::default();
        let mut check = |event: SseEvent<'_>| {
            let read = serde_json::from_slice::<Value>(event.data);
            assert!(read.is_ok(), "{}", String::from_utf8_lossy(&out));
            Ok::<(), TooLong>(())
        };
        reader.feed(&out, &mut check).unwrap();
        reader.finish(check).unwrap();
        let pieces = choices.cut(&said);
        let again = answer(wire, &request, &quirks, &EVENTS, &pieces);
        assert_eq!((out, ended), again, "{}", String::from_utf8_lossy(&said));
    });
}

/// A whole reply of any wire is an answer or a failure. `check` gets the answer, and whether it was said in another dialect than
/// that of `own`.
pub fn whole_replies(name: &str, own: WireKind, request: Request, check: fn(&Value, bool) -> bool) {
    run(name, |choices| {
        let wire = *choices.pick(&WIRES);
        let (_, grammar) = grammars(wire);
        let body = grammar::compose(choices, &grammar);
        let body = damage::tree(choices, body);
        let body = grammar::write(choices, &body);
        let (request, quirks) = (request(choices, false), Quirks::default());
        let (out, ended) = answer(wire, &request, &quirks, &WHOLE, &[&body]);
        if ended.is_ok() {
            let answer: Value = serde_json::from_slice(&out).unwrap();
            assert!(check(&answer, wire != own), "{answer}");
            assert!(answer["weirgate"]["metadata"].is_object(), "{answer}");
        }
    });
}
