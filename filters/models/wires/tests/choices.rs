//! `n`: who answers several choices, and what becomes of it elsewhere. Source: docs/model-gateway.md 2.1, rules for `n`.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::WireKind;
use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::operation::Operation;
use crate::models::routing::capable;
use crate::models::routing::catalog::{Capability, Mapping};

/// The fault of a request at a mapping of a wire; `None`: it is served.
fn refused(wire: WireKind, lists_n: bool, more: Value) -> Option<Fault> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let members = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    let request = match ChatCompletions.parse(body.to_string().into()) {
        Ok(request) => request,
        Err(fault) => return Some(fault),
    };
    let all = [
        Capability::Streaming,
        Capability::Tools,
        Capability::WebSearch,
        Capability::N,
    ];
    let can = all
        .into_iter()
        .filter(|can| lists_n || *can != Capability::N);
    let mapping = Mapping {
        capabilities: Some(can.collect()),
        ..Mapping::default()
    };
    let limits = wire.wire().limits(Operation::Chat).unwrap();
    let lack = capable::check(&request, &mapping, Some(&limits)).err()?;
    let reason = format!("p {}", lack.reason);
    Some(lack.to_fault(&reason))
}

/// Contract: model-gateway 2.1 n
/// Contract: model-gateway 2.1 n 1
/// Contract: model-gateway 2.1 n 2
/// Contract: model-gateway 2.1 n 3
/// Contract: model-gateway 2.1 n 4
/// Contract: model-gateway 2.1 n 5
#[test]
fn several_choices_are_served_or_refused_by_the_rules() {
    use WireKind::{Compatible, Contents, Messages, Responses};
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    // The wire, whether the mapping lists `n`, the request, and what the message names; "": it is served.
    let cases = [
        (Compatible, true, json!({"n": 2}), ""),
        (Compatible, true, json!({"n": 128}), ""),
        (
            Compatible,
            true,
            json!({"n": 1, "stream": true, "tools": tools}),
            "",
        ),
        (Compatible, true, json!({"n": 2, "tools": tools}), ""),
        // Rule 1: only where the mapping supports it.
        (Compatible, false, json!({"n": 2}), "one choice only"),
        (Messages, true, json!({"n": 2}), "one choice only"),
        (Responses, true, json!({"n": 2}), "one choice only"),
        (Compatible, false, json!({"n": 1}), ""),
        // Rule 2: the first family streams several.
        (Compatible, true, json!({"n": 2, "stream": true}), ""),
        // Rule 3: not beside functions.
        (
            Compatible,
            true,
            json!({"n": 2, "stream": true, "tools": tools}),
            "tools",
        ),
        // Rule 4: the second family streams none.
        (Contents, true, json!({"n": 2, "stream": true}), "stream"),
        (Contents, true, json!({"n": 2}), ""),
        // Rule 5: and answers eight at most.
        (Contents, true, json!({"n": 8}), ""),
        (Contents, true, json!({"n": 9}), "at most 8"),
        (Compatible, true, json!({"n": 129}), "128"),
        (Compatible, true, json!({"n": 0}), "1"),
    ];
    for (wire, lists_n, more, named) in cases {
        let fault = refused(wire, lists_n, more.clone());
        let Some(fault) = fault else {
            assert_eq!(named, "", "{wire:?} serves {more}");
            continue;
        };
        assert!(
            !named.is_empty(),
            "{wire:?} refuses {more}: {}",
            fault.message
        );
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some("n")),
            "{more}"
        );
        assert!(
            fault.message.contains(named),
            "{wire:?} {more}: {}",
            fault.message
        );
        let combination = Some("unsupported_parameter_combination");
        let is_combination = more.get("tools").is_some();
        assert_eq!(fault.code() == combination, is_combination, "{more}");
    }
}

/// Source: interface, `conf/models.toml`: absent capabilities are all that the kind can do.
#[test]
fn a_mapping_without_capabilities_answers_as_many_choices_as_its_wire() {
    let body = json!({"model": "m", "n": 2, "messages": [{"role": "user", "content": "Hi"}]});
    let request = ChatCompletions.parse(body.to_string().into()).unwrap();
    let check = |wire: WireKind| {
        let limits = wire.wire().limits(Operation::Chat).unwrap();
        capable::check(&request, &Mapping::default(), Some(&limits)).is_ok()
    };
    assert!(check(WireKind::Compatible));
    assert!(
        !check(WireKind::Messages),
        "its wire answers one choice only"
    );
}

/// Contract: model-gateway 2.1 n 3
#[test]
fn a_search_is_no_function_beside_which_choices_cannot_stream() {
    let own =
        json!({"web_search": "options", "capabilities": ["streaming", "tools", "web_search", "n"]});
    for search in [
        json!({"web_search": true}),
        json!({"tools": [{"type": "web_search"}]}),
    ] {
        let mut members = json!({"n": 2, "stream": true});
        let search = search.as_object().cloned().unwrap();
        members.as_object_mut().unwrap().extend(search);
        let said = super::search::sent(WireKind::Compatible, &own, &members).unwrap();
        assert_eq!(said["n"], 2, "{members}");
    }
}
