#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::parameter::Parameter;
use crate::models::request::{ModelRequest, SearchNeeds};

fn checked(members: &Value) -> Result<ModelRequest, crate::fault::Fault> {
    let mut request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let members = members.as_object().cloned().unwrap();
    request.as_object_mut().unwrap().extend(members);
    ChatCompletions.parse(request.to_string().into())
}

fn searches(members: Value) -> Option<SearchNeeds> {
    checked(&members).unwrap().needs.web_search
}

fn function(members: Value) -> Value {
    let mut tool = json!({"type": "function", "function": {"name": "f"}});
    tool.as_object_mut()
        .unwrap()
        .extend(members.as_object().cloned().unwrap());
    tool
}

/// Contract: model-gateway 2.1 web_search
#[test]
fn flag_tool_and_choice_say_together_what_is_searched() {
    let by_flag = SearchNeeds::default();
    let by_tool = SearchNeeds {
        is_tool: true,
        ..by_flag
    };
    let tool = json!([{"type": "web_search"}]);
    let none = json!({"web_search": true, "tools": tool, "tool_choice": "none"});
    for (members, expected) in [
        (json!({}), None),
        (json!({"web_search": false}), None),
        (json!({"web_search": true}), Some(by_flag)),
        (json!({"tools": tool}), Some(by_tool)),
        (json!({"tools": tool, "web_search": false}), Some(by_tool)),
        (
            json!({"tools": tool, "web_search": true, "tool_choice": "auto"}),
            Some(by_tool),
        ),
        (
            json!({"tools": [{"type": "web_search", "max_uses": 3.0}]}),
            Some(SearchNeeds {
                max_uses: Some(3),
                ..by_tool
            }),
        ),
        (
            json!({"tools": tool, "tool_choice": {"type": "web_search"}}),
            Some(SearchNeeds {
                is_demanded: true,
                ..by_tool
            }),
        ),
        // Who calls no tool does not search.
        (none, None),
        // A function of the client may have any name.
        (
            json!({"tools": [{"type": "function", "function": {"name": "web_search"}}]}),
            None,
        ),
    ] {
        assert_eq!(searches(members.clone()), expected, "{members}");
    }
}

#[test]
fn the_options_of_a_search_are_asked_for_and_an_empty_list_asks_for_nothing() {
    let options = json!({"type": "web_search", "max_uses": 1, "search_context_size": "low", "user_location": {"city": "Ulm"},
        "allowed_domains": ["a.example"], "blocked_domains": []});
    let asked = checked(&json!({"tools": [options]})).unwrap().asked.set;
    for parameter in [
        Parameter::WebSearch,
        Parameter::SearchMaxUses,
        Parameter::SearchContextSize,
        Parameter::SearchLocation,
        Parameter::AllowedDomains,
    ] {
        assert!(asked.contains(parameter), "{parameter:?}");
    }
    assert_eq!(asked.len(), 5);
    let unasked = checked(&json!({"tools": [options], "tool_choice": "none"})).unwrap();
    assert!(unasked.asked.set.is_empty());
}

/// Contract: model-gateway 2.4 web_search
/// Contract: model-gateway 2.4 tool_search
#[test]
fn what_no_tool_may_hold_names_the_field() {
    let search = |key: &str, value: Value| json!({"tools": [{"type": "web_search", key: value}]});
    let found = json!({"type": "tool_search", "tool_search_type": "tool_search_tool_regex"});
    let pair = |safeguards: Value, betas: Value| json!({"vendor_safeguards": {"safeguards": safeguards, "betas": betas}});
    let good = json!([{"type": "dangerous_tool_use"}]);
    for (members, param) in [
        (json!({"web_search": "yes"}), "web_search"),
        (search("max_uses", json!("3")), "tools[0].max_uses"),
        (
            search("search_context_size", json!("huge")),
            "tools[0].search_context_size",
        ),
        (
            search("user_location", json!({"city": 5})),
            "tools[0].user_location.city",
        ),
        (
            search("allowed_domains", json!("a")),
            "tools[0].allowed_domains",
        ),
        (
            search("blocked_domains", json!([5])),
            "tools[0].blocked_domains[0]",
        ),
        (
            search("defer_loading", json!(true)),
            "tools[0].defer_loading",
        ),
        (
            json!({"tools": [{"type": "web_search"}, {"type": "web_search"}]}),
            "tools[1].type",
        ),
        (
            json!({"tool_choice": {"type": "web_search"}, "web_search": true}),
            "tool_choice",
        ),
        (
            json!({"tools": [{"type": "tool_search"}]}),
            "tools[0].tool_search_type",
        ),
        (
            json!({"tools": [{"type": "tool_search", "tool_search_type": "regex"}]}),
            "tools[0].tool_search_type",
        ),
        (
            json!({"tools": [function(json!({})), function(json!({"defer_loading": true}))]}),
            "tools[1].defer_loading",
        ),
        (
            json!({"tools": [found, function(json!({"defer_loading": true, "cache_control": {"type": "ephemeral"}}))]}),
            "tools[1].defer_loading",
        ),
        (
            json!({"tools": [function(json!({"allowed_callers": "direct"}))]}),
            "tools[0].allowed_callers",
        ),
        (
            pair(json!([]), json!(["dangerous-tool-use-2026-09-03"])),
            "vendor_safeguards.safeguards",
        ),
        (
            pair(json!([{}]), json!(["dangerous-tool-use-2026-09-03"])),
            "vendor_safeguards.safeguards[0].type",
        ),
        (pair(good.clone(), json!([])), "vendor_safeguards.betas"),
        (
            json!({"vendor_safeguards": {"safeguards": good}}),
            "vendor_safeguards.betas",
        ),
    ] {
        let fault = checked(&members).unwrap_err();
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some(param)),
            "{fault}"
        );
        assert!(
            fault.message.contains(param) && fault.message.contains("accepted"),
            "{fault}"
        );
    }
}

/// Source: model-gateway 2.1, 2.4
#[test]
fn a_limit_is_any_number_and_one_that_counts_nothing_is_kept_as_it_was_written() {
    for (written, count) in [
        ("5", 5),
        ("5.0", 5),
        ("1e3", 1000),
        ("4294967295", 4_294_967_295),
    ] {
        let raw: Value = serde_json::from_str(written).unwrap();
        let tools = json!([{"type": "web_search", "max_uses": raw}]);
        let needs = checked(&json!({"max_tokens": raw, "tools": tools}))
            .unwrap()
            .needs;
        assert_eq!(
            (needs.max_tokens, needs.odd_max_tokens),
            (Some(count), None)
        );
        assert_eq!(needs.web_search.unwrap().max_uses, Some(count));
    }
    for (written, is_huge) in [("-1", false), ("0", false), ("2.5", false), ("5e9", true)] {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user"}}],"max_completion_tokens":{written},"tools":[{{"type":"web_search","max_uses":{written}}}]}}"#
        );
        let needs = ChatCompletions.parse(body.into()).unwrap().needs;
        assert_eq!(needs.max_tokens, Some(u64::MAX));
        assert_eq!(needs.odd_max_tokens.as_deref(), Some(written));
        assert_eq!(needs.web_search.unwrap().max_uses, Some(u64::MAX));
        let odd = (!is_huge).then_some(written);
        assert_eq!(
            needs.odd_max_uses.as_deref(),
            odd,
            "what is huge is bounded"
        );
    }
    for nonsense in ["\"5\"", "true", "[]", "1e400"] {
        let body =
            format!(r#"{{"model":"m","messages":[{{"role":"user"}}],"max_tokens":{nonsense}}}"#);
        let fault = ChatCompletions.parse(body.into()).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some("max_tokens"), "{nonsense}");
        assert!(fault.message.contains("number"), "{fault}");
    }
}

/// Source: model-gateway 2.1
#[test]
fn betas_are_any_names_that_a_header_can_hold_at_a_known_price() {
    let with = |betas: Value| {
        let safeguards = json!([{"type": "dangerous_tool_use"}]);
        checked(&json!({"vendor_safeguards": {"safeguards": safeguards, "betas": betas}}))
    };
    for beta in [
        "auto-mode-classifier-2026-01-01",
        "a-family-of-tomorrow",
        "Z_9:x",
    ] {
        assert!(with(json!([beta])).is_ok(), "{beta}");
    }
    for (at, betas) in [
        (0, json!(["context-1m-2025-08-07"])),
        (0, json!(["auto-mode-classifier-2026-01-01\r\nx: y"])),
        (0, json!(["ä"])),
        (0, json!([""])),
        (1, json!(["a", "b,c"])),
        (1, json!(["a".repeat(4000), "b".repeat(100)])),
    ] {
        let fault = with(betas).unwrap_err();
        let param = format!("vendor_safeguards.betas[{at}]");
        assert_eq!(
            (fault.status(), fault.param.as_deref()),
            (400, Some(&*param))
        );
        assert!(fault.message.contains("accepted"), "{fault}");
    }
}

#[test]
fn strict_functions_are_counted() {
    let strict = json!({"type": "function", "function": {"name": "f", "strict": true}});
    let request = checked(&json!({"tools": [strict, function(json!({})), strict]})).unwrap();
    assert_eq!(request.asked.number(Parameter::StrictTools), Some(2.0));
}
