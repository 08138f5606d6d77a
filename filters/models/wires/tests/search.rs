//! Searches over every wire: what a provider is asked, and what the client gets of its answer.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;
use crate::models::routing::capable;
use crate::models::routing::catalog::{Catalog, Mapping};
use crate::models::routing::providers::ProviderNames;
use crate::models::wires::{Quirks, Target, WireKind};

/// A mapping of this wire that searches, with more members.
pub(super) fn mapping(kind: WireKind, members: &Value) -> Mapping {
    let mut written = json!({"provider": "p", "name": "up",
        "capabilities": ["streaming", "tools", "forced_tools", "web_search", "reasoning"]});
    let members = members.as_object().cloned().unwrap();
    written.as_object_mut().unwrap().extend(members);
    let catalog = json!({"models": [{"id": "m", "providers": [written]}]});
    let names = ProviderNames::new([("p", kind.wire().defaults())]);
    let catalog = Catalog::check(serde_json::from_value(catalog).unwrap(), names).unwrap();
    Mapping::clone(&catalog.models()[0].mappings[0])
}

pub(super) fn target<'a>(mapping: &'a Mapping, quirks: &'a Quirks) -> Target<'a> {
    Target {
        max_output: Some(4096),
        parameters: &mapping.parameters,
        thinking: &mapping.thinking,
        search: mapping.search,
        ..Target::plain("p", "up", quirks)
    }
}

pub(super) fn request(members: &Value) -> ModelRequest {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let members = members.as_object().cloned().unwrap();
    body.as_object_mut().unwrap().extend(members);
    ChatCompletions.parse(body.to_string().into()).unwrap()
}

/// What a provider gets, or the field that leaves it out.
pub(super) fn sent(kind: WireKind, own: &Value, members: &Value) -> Result<Value, String> {
    let (request, mapping, quirks) = (request(members), mapping(kind, own), Quirks::default());
    let limits = kind.wire().limits(Operation::Chat);
    capable::check(&request, &mapping, limits.as_ref()).map_err(|lack| lack.param.into_owned())?;
    let body = kind.wire().encode(&request, &target(&mapping, &quirks));
    let body = body.map_err(|fault: Fault| fault.param.unwrap_or_default())?;
    Ok(serde_json::from_slice(&body.concat()).unwrap())
}

const CHAT: WireKind = WireKind::Compatible;

fn function(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}})
}

fn place() -> Value {
    json!({"city": "Ulm", "country": "DE", "timezone": "Europe/Berlin"})
}

/// Contract: model-gateway 2.4 web_search
#[test]
fn a_search_is_said_in_the_words_of_each_wire() {
    let flag = json!({"web_search": true});
    let options = json!({"type": "web_search", "user_location": place(), "search_context_size": "high", "max_uses": 3, "allowed_domains": ["a.example"]});
    let mut approximate = place();
    approximate["type"] = "approximate".into();

    let said = sent(WireKind::Messages, &json!({}), &flag).unwrap();
    assert_eq!(
        said["tools"],
        json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}])
    );
    let said = sent(
        WireKind::Messages,
        &json!({"max_searches": 8}),
        &json!({"tools": [options]}),
    )
    .unwrap();
    assert_eq!(
        said["tools"],
        json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["a.example"], "user_location": approximate}])
    );

    let said = sent(WireKind::Responses, &json!({}), &flag).unwrap();
    assert_eq!(
        (&said["tools"], &said["max_tool_calls"]),
        (&json!([{"type": "web_search"}]), &json!(5))
    );
    let said = sent(
        WireKind::Responses,
        &json!({}),
        &json!({"tools": [function("f"), options]}),
    )
    .unwrap();
    assert_eq!(
        said["tools"][1],
        json!({"type": "web_search", "filters": {"allowed_domains": ["a.example"]}, "search_context_size": "high", "user_location": approximate})
    );
    assert_eq!(
        (&said["tools"][0]["name"], &said["max_tool_calls"]),
        (&json!("f"), &json!(3))
    );

    let said = sent(WireKind::Contents, &json!({}), &flag).unwrap();
    assert_eq!(said["tools"], json!([{"googleSearch": {}}]));
    assert_eq!(said.get("toolConfig"), None);
}

#[test]
fn each_dialect_of_the_convention_has_its_words() {
    let dialect = |word: &str| json!({"web_search": word});
    let flag = json!({"web_search": true});
    let options = json!({"tools": [{"type": "web_search", "user_location": place(), "search_context_size": "low", "max_uses": 3}]});
    let demanded =
        json!({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}});
    let plain = sent(CHAT, &json!({"web_search": "options"}), &json!({})).unwrap();
    let more = |own: &Value, members: &Value| {
        let mut said = sent(CHAT, own, members).unwrap();
        let said = said.as_object_mut().unwrap();
        said.retain(|key, _| plain.get(key).is_none());
        Value::Object(said.clone())
    };
    assert_eq!(
        more(&dialect("options"), &flag),
        json!({"web_search_options": {}})
    );
    assert_eq!(
        more(&dialect("options"), &options),
        json!({"web_search_options": {"search_context_size": "low", "user_location": {"type": "approximate", "approximate": place()}}})
    );
    assert_eq!(
        more(&dialect("options"), &demanded),
        json!({"web_search_options": {}})
    );
    assert_eq!(more(&dialect("always"), &flag), json!({}));
    let domains = json!({"tools": [{"type": "web_search", "blocked_domains": ["b.example"], "user_location": place(), "search_context_size": "low"}]});
    assert_eq!(
        more(&dialect("always"), &domains),
        json!({"search_domain_filter": ["-b.example"], "web_search_options": {"search_context_size": "low", "user_location": {"city": "Ulm", "country": "DE"}}})
    );
    assert_eq!(
        more(&dialect("plugin"), &options),
        json!({"plugins": [{"id": "web"}]})
    );
    assert_eq!(
        more(&dialect("enable_search"), &flag),
        json!({"enable_search": true})
    );
    assert_eq!(
        more(&dialect("enable_search"), &demanded),
        json!({"enable_search": true, "search_options": {"forced_search": true}})
    );
    let tool = json!({"type": "web_search", "web_search": {"enable": true, "search_engine": "search-prime", "search_result": true}});
    assert_eq!(more(&dialect("tool"), &flag), json!({"tools": [tool]}));
    assert_eq!(more(&dialect("tool"), &options), json!({"tools": [tool]}));
    let both = json!({"tools": [function("f"), {"type": "web_search"}], "tool_choice": "auto"});
    assert_eq!(
        more(&dialect("tool"), &both),
        json!({"tools": [function("f"), tool], "tool_choice": "auto"})
    );
    assert_eq!(
        more(&dialect("plugin"), &both),
        json!({"tools": [function("f")], "tool_choice": "auto", "plugins": [{"id": "web"}]})
    );
}

/// Contract: model-gateway 2.4 web_search
#[test]
fn who_cannot_say_a_search_is_left_out_with_the_field() {
    let tool = |key: &str, value: Value| json!({"tools": [{"type": "web_search", key: value}]});
    let demanded =
        json!({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}});
    let beside = json!({"tools": [function("f"), {"type": "web_search"}]});
    let domain = json!(["a.example"]);
    let both = json!({"tools": [{"type": "web_search", "allowed_domains": domain, "blocked_domains": domain}]});
    let thinking = json!({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}, "reasoning_effort": "high"});
    let lists = |without: &str| json!({"capabilities": ["streaming", "tools", without]});
    for (kind, own, members, param) in [
        (CHAT, json!({}), json!({"web_search": true}), "web_search"),
        (
            CHAT,
            json!({}),
            json!({"tools": [{"type": "web_search"}]}),
            "tools",
        ),
        (
            CHAT,
            json!({"web_search": "tool"}),
            demanded.clone(),
            "tool_choice",
        ),
        (
            CHAT,
            json!({"web_search": "options"}),
            tool("allowed_domains", domain.clone()),
            "tools[].allowed_domains",
        ),
        (
            WireKind::Responses,
            lists("vision"),
            json!({"web_search": true}),
            "web_search",
        ),
        (
            WireKind::Responses,
            json!({}),
            tool("blocked_domains", domain.clone()),
            "tools[].blocked_domains",
        ),
        (
            WireKind::Messages,
            json!({}),
            both,
            "tools[].blocked_domains",
        ),
        (WireKind::Messages, json!({}), thinking, "tool_choice"),
        (
            WireKind::Messages,
            json!({}),
            json!({"web_search": true, "tools": [function("web_search")]}),
            "tools",
        ),
        (
            WireKind::Contents,
            json!({}),
            demanded.clone(),
            "tool_choice",
        ),
        (WireKind::Contents, json!({}), beside.clone(), "web_search"),
        (
            WireKind::Contents,
            json!({}),
            tool("blocked_domains", domain.clone()),
            "tools[].blocked_domains",
        ),
        (
            WireKind::Contents,
            json!({"parameters": {"refuse": ["web_search"]}}),
            json!({"web_search": true}),
            "web_search",
        ),
    ] {
        assert_eq!(
            sent(kind, &own, &members),
            Err(param.to_owned()),
            "{kind:?} {members}"
        );
    }
    // Models that search beside functions have to be told.
    let own = json!({"parameters": {"pass": ["web_search"]}});
    let said = sent(WireKind::Contents, &own, &beside).unwrap();
    assert_eq!(
        said["toolConfig"],
        json!({"includeServerSideToolInvocations": true})
    );
    assert_eq!(said["tools"][1], json!({"googleSearch": {}}));
    // The client's own function of that name is not a search.
    let own = json!({"tools": [function("web_search")], "tool_choice": {"type": "function", "function": {"name": "web_search"}}});
    for kind in [
        CHAT,
        WireKind::Responses,
        WireKind::Messages,
        WireKind::Contents,
    ] {
        let said = sent(
            kind,
            &json!({"capabilities": ["tools", "forced_tools"]}),
            &own,
        )
        .unwrap()
        .to_string();
        assert!(
            said.contains("web_search") && !said.contains("20250305"),
            "{said}"
        );
    }
}

/// Contract: model-gateway 2.1 tool_choice
#[test]
fn a_demanded_search_is_forced_where_that_can_be_said() {
    let demanded = json!({"tools": [{"type": "web_search"}, function("f")], "tool_choice": {"type": "web_search"}});
    let said = sent(WireKind::Responses, &json!({}), &demanded).unwrap();
    assert_eq!(said["tool_choice"], json!({"type": "web_search"}));
    let said = sent(WireKind::Messages, &json!({}), &demanded).unwrap();
    assert_eq!(
        said["tool_choice"],
        json!({"type": "tool", "name": "web_search"})
    );
    let said = sent(CHAT, &json!({"web_search": "options"}), &demanded).unwrap();
    assert_eq!(said.get("tool_choice"), None);
    // A choice of no tool is a choice of no search.
    let none = json!({"tools": [{"type": "web_search"}, function("f")], "tool_choice": "none"});
    for kind in [WireKind::Responses, WireKind::Messages, WireKind::Contents] {
        let said = sent(kind, &json!({}), &none).unwrap();
        assert!(!said.to_string().contains("earch"), "{said}");
    }
}

/// Contract: model-gateway 2.4 function
/// Contract: model-gateway 2.4 tool_search
#[test]
fn functions_that_wait_for_a_search_go_to_the_one_who_knows_them() {
    let mut waits = function("f");
    waits["defer_loading"] = true.into();
    waits["allowed_callers"] = json!(["direct"]);
    let search =
        json!({"type": "tool_search", "tool_search_type": "tool_search_tool_bm25_20251119"});
    let members = json!({"tools": [waits, search]});
    let said = sent(WireKind::Messages, &json!({}), &members).unwrap();
    assert_eq!(
        said["tools"][0],
        json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"})
    );
    assert_eq!(said["tools"][1]["defer_loading"], true);
    assert_eq!(said["tools"][1]["allowed_callers"], json!(["direct"]));
    // A model that cannot search among them sees all of them at once.
    let own = json!({"parameters": {"drop": ["tool_search", "tools[].allowed_callers"]}});
    for (kind, own) in [
        (WireKind::Messages, own),
        (CHAT, json!({})),
        (WireKind::Responses, json!({})),
        (WireKind::Contents, json!({})),
    ] {
        let said = sent(kind, &own, &members).unwrap()["tools"].to_string();
        assert!(said.contains("\"f\"") && !said.contains("bm25"), "{said}");
        assert!(
            !said.contains("defer_loading") && !said.contains("allowed_callers"),
            "{said}"
        );
    }
}

#[test]
fn more_strict_functions_than_a_provider_takes_leave_it_out() {
    let strict = |count: usize| {
        let tool = |at| json!({"type": "function", "function": {"name": format!("f{at}"), "strict": true}});
        json!({"tools": (0..count).map(tool).collect::<Vec<_>>()})
    };
    assert!(sent(WireKind::Messages, &json!({}), &strict(20)).is_ok());
    assert_eq!(
        sent(WireKind::Messages, &json!({}), &strict(21)),
        Err("tools[].function.strict".to_owned())
    );
    assert!(sent(WireKind::Responses, &json!({}), &strict(21)).is_ok());
}

/// The headers of a request with these members alone.
fn headers(members: &Value) -> Vec<(HeaderName, HeaderValue)> {
    let request = request(members);
    WireKind::Messages.wire().codec_of(&request).headers(
        &request,
        &Target::plain("anthropic", "up", &Quirks::default()),
    )
}

/// Source: model-gateway 2.1
/// Contract: model-gateway 2.1 effort
#[test]
fn an_effort_of_the_answer_goes_to_anthropic_with_its_beta_beside_others() {
    let safeguards = json!({"safeguards": [{"type": "s"}], "betas": ["of-tomorrow", "b"]});
    let members = json!({"effort": "low", "vendor_safeguards": safeguards});
    let said = sent(WireKind::Messages, &json!({}), &members).unwrap();
    assert_eq!(said["output_config"], json!({"effort": "low"}));
    let betas = |members: &Value| -> Vec<String> {
        let headers = headers(members);
        let values = headers.iter().map(|(_, value)| value.to_str().unwrap());
        values.map(str::to_owned).collect()
    };
    assert_eq!(betas(&members), ["of-tomorrow,b,effort-2025-11-24"]);
    assert_eq!(betas(&json!({"effort": "high"})), ["effort-2025-11-24"]);
    assert!(betas(&json!({"effort": null})).is_empty());
    let deaf = json!({"parameters": {"refuse": ["effort"]}});
    let refused = sent(WireKind::Messages, &deaf, &json!({"effort": "low"}));
    assert_eq!(refused, Err("effort".to_owned()));
}

/// Source: model-gateway 2.1, 2.4
#[test]
fn a_limit_that_counts_nothing_goes_as_it_came_and_a_huge_one_of_searches_as_the_reserved() {
    let words = [
        (CHAT, "/max_tokens", None),
        (WireKind::Messages, "/max_tokens", Some("/tools/0/max_uses")),
        (
            WireKind::Responses,
            "/max_output_tokens",
            Some("/max_tool_calls"),
        ),
        (
            WireKind::Contents,
            "/generationConfig/maxOutputTokens",
            None,
        ),
    ];
    for limit in [json!(-1), json!(0), json!(2.5), json!(5_000_000_000_u64)] {
        let tools = json!([{"type": "web_search", "max_uses": limit}]);
        for (kind, tokens, searches) in words {
            let own = match kind {
                CHAT => json!({"web_search": "plugin"}),
                _ => json!({}),
            };
            let said = sent(kind, &own, &json!({"max_tokens": limit, "tools": tools})).unwrap();
            assert_eq!(said.pointer(tokens), Some(&limit), "{said}");
            let bound = match limit.as_f64() {
                Some(huge) if huge > 1e9 => json!(64),
                _ => limit.clone(),
            };
            let uses = searches.and_then(|at| said.pointer(at));
            assert_eq!(uses, searches.map(|_| &bound), "{said}");
        }
    }
}

/// Source: model-gateway 2.1
#[test]
fn a_context_of_reasoning_is_honoured_or_dropped_and_never_refused() {
    let members = json!({"reasoning": {"effort": "high", "context": "all_turns"}});
    let plain = json!({"reasoning": {"effort": "high"}});
    for kind in [CHAT, WireKind::Messages, WireKind::Contents] {
        let said = sent(kind, &json!({}), &members).unwrap();
        assert_eq!(said, sent(kind, &json!({}), &plain).unwrap());
    }
    let said = sent(WireKind::Responses, &json!({}), &members).unwrap();
    assert_eq!(said["reasoning"]["context"], "all_turns");
}

/// Contract: model-gateway 2.1 vendor_safeguards
#[test]
fn safeguards_go_to_the_one_who_runs_them_with_their_beta() {
    let safeguards = json!([{"type": "dangerous_tool_use", "classifier_context": {"v": 1}}]);
    let members = json!({"vendor_safeguards": {"safeguards": safeguards, "betas": ["dangerous-tool-use-2026-09-03"]}});
    let said = sent(WireKind::Messages, &json!({}), &members).unwrap();
    assert_eq!(said["safeguards"], safeguards);
    assert_eq!(said.get("vendor_safeguards"), None);
    let own = headers(&members);
    assert_eq!(
        (own[0].0.as_str(), own[0].1.to_str().unwrap()),
        ("anthropic-beta", "dangerous-tool-use-2026-09-03")
    );
    assert!(headers(&json!({})).is_empty());
    for kind in [CHAT, WireKind::Responses, WireKind::Contents] {
        assert_eq!(
            sent(kind, &json!({}), &members),
            Err("vendor_safeguards".to_owned())
        );
    }
    let own = json!({"parameters": {"refuse": ["vendor_safeguards"]}});
    assert_eq!(
        sent(WireKind::Messages, &own, &members),
        Err("vendor_safeguards".to_owned())
    );
}
