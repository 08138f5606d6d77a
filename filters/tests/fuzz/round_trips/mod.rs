//! Chats keep their meaning on every wire: what a front has read, a wire says, and a front of the wire's dialect reads again. The only
//! exceptions are the cells of [`lost::CELLS`].

mod answers;
mod cohere;
mod converse;
mod lost;
mod meaning;
mod said;
mod talk;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use filters::models::dialects::Dialect;
use filters::models::request::ModelRequest;
use filters::models::routing::capable;
use filters::models::routing::catalog::Mapping;
use filters::models::wires::{Quirks, Target, WireKind};
use serde_json::Value;

use self::lost::CELLS;
use self::meaning::{Meaning, joined};
use self::said::{FRONTS, Saying, WIRES};
use self::talk::Talk;
use crate::models::{in_memory, target};
use crate::run::run;

/// What a wire sends of a request; `None`: the planner leaves such a mapping out.
fn sent(kind: WireKind, request: &ModelRequest) -> Option<Value> {
    let (wire, quirks) = (kind.wire(), Quirks::default());
    let mapping = Mapping {
        parameters: wire.defaults().parameters,
        ..Mapping::default()
    };
    let codec = wire.codec(request.payload.operation())?;
    capable::check(request, &mapping, Some(&codec.limits())).ok()?;
    let target = Target {
        parameters: &mapping.parameters,
        ..target(&quirks)
    };
    let slices = codec.encode(request, &target).unwrap();
    Some(serde_json::from_slice(&in_memory(slices)).unwrap())
}

/// What a body says to a host of the dialect.
fn read(body: &Value, dialect: Dialect) -> Meaning {
    match dialect {
        // No front speaks these.
        Dialect::Converse => return converse::read(body),
        Dialect::ChatV2 => return cohere::read(body),
        _ => {}
    }
    let saying = FRONTS.iter().find(|it| it.dialect == dialect).unwrap();
    let mut body = body.clone();
    if dialect == Dialect::Contents {
        // The path says it.
        body["model"] = "m".into();
    }
    let request = saying.front.parse(body.to_string().into());
    let request = request.unwrap_or_else(|fault| panic!("{fault:?}\n{body}"));
    let chat = saying.front.conversation(&request).unwrap();
    Meaning::of_conversation(&chat, request.needs.max_tokens)
}

fn keeps_its_meaning(saying: &Saying, kind: WireKind, dialect: Dialect) {
    let name = format!("round trips: {} on {kind:?}", saying.name);
    let counted = Cell::new((0_u32, 0_u32));
    let lost = RefCell::new(HashSet::new());
    run(&name, |choices| {
        let talk = Talk::compose(choices, saying.words);
        let body = (saying.say)(&talk);
        let request = saying.front.parse(body.to_string().into());
        let request = request.unwrap_or_else(|fault| panic!("{fault:?}\n{body}"));
        let (all, good) = counted.get();
        counted.set((all + 1, good));
        let Some(sent) = sent(kind, &request) else {
            return;
        };
        counted.set((all + 1, good + 1));
        let mut expected = Meaning::of_talk(&talk, saying.dialect);
        for cell in CELLS.iter().filter(|it| it.holds(saying.dialect, dialect)) {
            let before = expected.clone();
            (cell.change)(&mut expected, dialect);
            if expected != before {
                lost.borrow_mut().insert(cell.what);
            }
        }
        expected.said = joined(expected.said);
        if saying.dialect == dialect {
            for key in [
                "tools",
                "tool_choice",
                "text",
                "output_config",
                "system",
                "systemInstruction",
                "toolConfig",
                "prompt",
            ] {
                assert_eq!(sent.get(key), body.get(key), "{name}: {key}");
            }
        }
        let read = read(&sent, dialect);
        if let Some(difference) = read.difference(&expected) {
            panic!("{name}: {difference}\nof {body}\nsent {sent}");
        }
    });
    let (all, good) = counted.get();
    assert!(good * 3 > all, "{name}: {good} of {all} are sent");
    let holding = CELLS.iter().filter(|it| it.holds(saying.dialect, dialect));
    for cell in holding {
        let is_met = lost.borrow().contains(cell.what);
        assert!(is_met, "{name}: nothing is lost of this: {}", cell.what);
    }
}

fn on_all_wires(front: &str) {
    let saying = FRONTS.iter().find(|saying| saying.name == front).unwrap();
    for (kind, dialect) in WIRES {
        // Base models complete texts alone.
        let is_apart = dialect == Dialect::Completions;
        if is_apart && saying.dialect != dialect {
            continue;
        }
        keeps_its_meaning(saying, kind, dialect);
    }
}

#[test]
fn chat_completions_keep_their_meaning() {
    on_all_wires("chat_completions");
}

#[test]
fn messages_keep_their_meaning() {
    on_all_wires("messages");
}

#[test]
fn responses_keep_their_meaning() {
    on_all_wires("responses");
}

#[test]
fn contents_keep_their_meaning() {
    on_all_wires("contents");
}

#[test]
fn completions_keep_their_meaning() {
    on_all_wires("completions");
}
