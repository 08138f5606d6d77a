//! Every enum, type, bound, required member and forbidden combination of docs/model-gateway.md 2.1 to 2.4, sent with what
//! they do not accept: status, `code`, `param` and message.

mod fields;

use serde_json::{Value, json};

use self::fields::{REQUIRED, TYPES, WORDS};
use crate::models::fronts::chat_completions::reply;
use crate::support::boot::Gateway;
use crate::support::upstream::Upstream;

/// A plain request in which the value stands at a path, beside what the path needs.
fn request(path: &str, value: &Value) -> Value {
    let mut request = json!({"model": "chat", "messages": [{"role": "user", "content": "Hi"}]});
    let (root, inside) = path.split_once('.').unwrap_or((path, ""));
    let search = json!({"type": "web_search"});
    let finder = json!({"type": "tool_search", "tool_search_type": "tool_search_tool_regex"});
    let function = json!({"type": "function", "function": {"name": "f"}});
    match root {
        // A member of the request.
        _ if !root.contains('[') => request[root] = frame(root),
        // A message of its own, with the calls and parts that its paths name.
        "messages[0]" => request["messages"] = json!([message(inside)]),
        "tools[0]" if inside.starts_with("tool_search") || inside == "name" => {
            request["tools"] = json!([finder])
        }
        "tools[0]"
            if inside.starts_with("function")
                || inside.contains("cache")
                || inside == "defer_loading"
                || inside == "allowed_callers" =>
        {
            request["tools"] = json!([function]);
        }
        "tools[0]" => request["tools"] = json!([search]),
        _ => request["plugins"] = frame("plugins"),
    }
    set(&mut request, path, value);
    request
}

/// What a member of the request holds beside the value in question.
fn frame(root: &str) -> Value {
    match root {
        "response_format" => {
            json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {}}})
        }
        "vendor_safeguards" => {
            json!({"safeguards": [{"type": "dangerous_tool_use"}], "betas": ["dangerous-tool-use-2026-01-01"]})
        }
        "prompt" => json!({"id": "p"}),
        "tool_choice" => json!({"type": "function", "function": {"name": "f"}}),
        "plugins" => json!([{"id": "response-healing"}]),
        _ => json!({}),
    }
}

fn message(inside: &str) -> Value {
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let part = match inside {
        _ if inside.contains("image_url") => {
            json!({"type": "image_url", "image_url": {"url": "https://a.example/x.png"}})
        }
        _ if inside.contains("input_audio") => {
            json!({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}})
        }
        _ if inside.contains("file") => {
            json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}})
        }
        _ => json!({"type": "text", "text": "a"}),
    };
    match inside.split(['[', '.']).next().unwrap_or_default() {
        "tool_calls" => json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        "reasoning_details" => {
            json!({"role": "assistant", "content": "a", "reasoning_details": [{"type": "x", "text": "a"}]})
        }
        "message_items" => {
            json!({"role": "assistant", "content": "a", "message_items": [{"text": "a", "phase": "commentary", "preceding_tool_calls": 0}]})
        }
        "vendor_native_blocks" => {
            json!({"role": "assistant", "content": "a", "vendor_native_blocks": [{"type": "x"}]})
        }
        "tool_result_cache_control" => {
            json!({"role": "tool", "tool_call_id": "call_1", "content": "a", "tool_result_cache_control": {"type": "ephemeral"}})
        }
        "content" if inside.contains('[') => json!({"role": "user", "content": [part]}),
        _ => json!({"role": "user", "content": "Hi"}),
    }
}

/// Sets the value at a path such as `messages[0].content[0].file.filename`.
fn set(tree: &mut Value, path: &str, value: &Value) {
    let mut at = tree;
    let steps: Vec<String> = path
        .replace('[', ".#")
        .replace(']', "")
        .split('.')
        .map(str::to_owned)
        .collect();
    let (last, before) = steps.split_last().unwrap();
    for step in before {
        at = match step.strip_prefix('#') {
            Some(index) => &mut at[index.parse::<usize>().unwrap()],
            None => {
                if at[step].is_null() {
                    at[step] = json!({});
                }
                &mut at[step]
            }
        };
    }
    match last.strip_prefix('#') {
        Some(index) => at[index.parse::<usize>().unwrap()] = value.clone(),
        None => at[last] = value.clone(),
    }
}

fn remove(tree: &mut Value, path: &str) {
    let (parent, member) = path.rsplit_once('.').unwrap();
    let pointer = format!(
        "/{}",
        parent.replace('[', "/").replace(']', "").replace('.', "/")
    );
    let object = tree.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
    assert!(object.remove(member).is_some(), "{path}");
}

/// Sends a request and checks what its error says.
#[track_caller]
fn refused(gateway: &Gateway, body: &Value, param: &str, code: Option<&str>, words: &[&str]) {
    let answer = gateway.chat(body.to_string());
    let error = answer.json()["error"].clone();
    assert_eq!(answer.status(), 400, "{body}: {error}");
    assert_eq!(error["param"], param, "{body}: {error}");
    assert_eq!(error["code"].as_str(), code, "{body}: {error}");
    assert_eq!(error["type"], "invalid_request_error", "{body}: {error}");
    let message = error["message"].as_str().unwrap();
    for word in words.iter().chain([&param]) {
        assert!(
            message.contains(word),
            "{word:?} is not in {message:?}, for {body}"
        );
    }
}

const INVALID: Option<&str> = Some("invalid_parameters");

/// Contract: model-gateway 2.1 prompt_cache_retention
/// Contract: model-gateway 2.1 prompt_cache_options
/// Contract: model-gateway 2.1 reasoning_effort
/// Contract: model-gateway 2.1 reasoning
/// Contract: model-gateway 2.1 effort
/// Contract: model-gateway 2.1 service_tier
/// Contract: model-gateway 2.1 routing
/// Contract: model-gateway 2.1 sensitive_word_check
/// Contract: model-gateway 2.1 image_config
/// Contract: model-gateway 2.2 role
/// Contract: model-gateway 2.2 phase
/// Contract: model-gateway 2.2 tool_result_cache_control
/// Contract: model-gateway 2.3 image_url
/// Contract: model-gateway 2.3 input_audio
/// Contract: model-gateway 8 6
#[test]
fn a_field_of_words_tells_all_that_it_takes() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for (path, accepted, is_nullable) in WORDS {
        for wrong in [
            json!("bogus"),
            json!(""),
            json!(5),
            json!([]),
            json!(true),
            Value::Null,
        ] {
            if wrong.is_null() && *is_nullable {
                continue;
            }
            refused(&gateway, &request(path, &wrong), path, INVALID, accepted);
        }
        // A letter of another case is another word.
        let shouted = if accepted[0] == "DISABLE" {
            "disable".to_owned()
        } else {
            accepted[0].to_uppercase()
        };
        if shouted != accepted[0] {
            refused(
                &gateway,
                &request(path, &json!(shouted)),
                path,
                INVALID,
                accepted,
            );
        }
    }
    assert!(first.requests().is_empty());
}

/// Contract: model-gateway 2.1 messages
/// Contract: model-gateway 2.1 temperature
/// Contract: model-gateway 2.1 stream
/// Contract: model-gateway 2.1 tools
/// Contract: model-gateway 2.1 parallel_tool_calls
/// Contract: model-gateway 2.1 free_models_only
/// Contract: model-gateway 2.1 no_reasoning
/// Contract: model-gateway 2.1 onboarding
/// Contract: model-gateway 2.1 prompt
/// Contract: model-gateway 2.2 content
/// Contract: model-gateway 2.2 name
/// Contract: model-gateway 2.2 reasoning
/// Contract: model-gateway 2.2 reasoning_details
/// Contract: model-gateway 2.2 content_before_tool_calls
/// Contract: model-gateway 9 5
#[test]
fn a_field_of_a_type_tells_what_came_and_what_it_takes() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let several = [
        (
            "prompt.variables.a",
            vec![json!([]), json!({}), Value::Null],
            "a string, a number or a boolean",
        ),
        (
            "tool_choice",
            vec![json!(5), json!([]), json!(true)],
            "auto",
        ),
        (
            "messages[0].content",
            vec![json!(5), json!({}), json!(true)],
            "a string, an array of parts, or null",
        ),
    ];
    let of_one = TYPES.iter().flat_map(|(kind, accepted, paths)| {
        paths.iter().map(|path| (*path, kind.wrong(), *accepted))
    });
    for (path, wrong, accepted) in of_one.chain(several) {
        for value in wrong {
            let mut body = match path.strip_suffix("[0]") {
                Some(list) => request(list, &json!([null])),
                None => request(path, &Value::Null),
            };
            set(&mut body, path, &value);
            let came = match &value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            refused(
                &gateway,
                &body,
                path,
                INVALID,
                &["accepted is", accepted, came],
            );
        }
    }
    assert!(first.requests().is_empty());
}

/// Contract: model-gateway 2.1 response_format
/// Contract: model-gateway 2.1 vendor_safeguards
/// Contract: model-gateway 2.1 plugins
/// Contract: model-gateway 2.2 tool_calls
/// Contract: model-gateway 2.2 vendor_native_blocks
/// Contract: model-gateway 2.3 text
/// Contract: model-gateway 2.4 function
#[test]
fn a_missing_member_is_named() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for path in REQUIRED {
        let mut body = request(path, &json!("kept"));
        // The frame that the path needs holds good values; only the member itself is taken away.
        remove(&mut body, path);
        refused(&gateway, &body, path, INVALID, &["missing"]);
    }
    let mut body = request("user", &json!("a"));
    body.as_object_mut().unwrap().remove("messages");
    refused(&gateway, &body, "messages", INVALID, &["missing"]);
    refused(
        &gateway,
        &request("sensitive_word_check", &json!({})),
        "sensitive_word_check.status",
        INVALID,
        &["DISABLE", "ENABLE"],
    );
    assert!(first.requests().is_empty());
}

/// Contract: model-gateway 2.1 max_tokens
/// Contract: model-gateway 2.1 n
/// Contract: model-gateway 2.2 message_items
/// Contract: model-gateway 8 6
#[test]
fn a_bound_is_told_on_either_side_of_it() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for (path, outside, bounds) in [
        (
            "n",
            vec![json!(0), json!(129), json!(-1), json!(1.5)],
            "from 1 to 128",
        ),
        (
            "reasoning.max_tokens",
            vec![json!(0), json!(-5), json!(0.5)],
            "from 1 to",
        ),
        (
            "prompt.version",
            vec![json!(0), json!(-1), json!(1.5)],
            "at least 1",
        ),
        (
            "messages[0].message_items[0].preceding_tool_calls",
            vec![json!(-1), json!(0.5)],
            "at least 0",
        ),
    ] {
        for value in outside {
            refused(&gateway, &request(path, &value), path, INVALID, &[bounds]);
        }
    }
    for (path, empty) in [
        ("messages", json!([])),
        ("vendor_safeguards.safeguards", json!([])),
        ("vendor_safeguards.betas", json!([])),
    ] {
        refused(
            &gateway,
            &request(path, &empty),
            path,
            INVALID,
            &["at least one"],
        );
    }
    assert!(first.requests().is_empty());
}

/// Members of a request, the parameter and code of its error, and words of the message.
type Refusal = (Value, &'static str, Option<&'static str>, Vec<&'static str>);

/// What no model takes.
fn contradictions() -> Vec<Refusal> {
    let function = json!({"type": "function", "function": {"name": "f"}});
    let marked = json!({"type": "function", "function": {"name": "f"}, "cache_control": {"type": "ephemeral"}});
    vec![
        (
            json!({"reasoning_effort": "low", "reasoning": {"effort": "low"}}),
            "reasoning_effort",
            Some("invalid_request"),
            vec!["reasoning.effort"],
        ),
        (
            json!({"n": 2, "stream": true, "tools": [function]}),
            "n",
            Some("unsupported_parameter_combination"),
            vec!["stream", "tools"],
        ),
        (
            json!({"tool_choice": "required"}),
            "tool_choice",
            INVALID,
            vec!["tools"],
        ),
        (
            json!({"tool_choice": {"type": "function", "function": {"name": "g"}}, "tools": [function]}),
            "tool_choice.function.name",
            INVALID,
            vec!["g"],
        ),
        (
            json!({"tool_choice": {"type": "web_search"}}),
            "tool_choice",
            INVALID,
            vec!["web_search"],
        ),
        (
            json!({"tool_choice": {"type": "web_search"}, "tools": [function]}),
            "tool_choice",
            INVALID,
            vec!["web_search"],
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f"}, "defer_loading": true}]}),
            "tools[0].defer_loading",
            INVALID,
            vec!["tool_search"],
        ),
        (
            json!({"tools": [marked, marked, marked, marked, marked]}),
            "tools",
            INVALID,
            vec!["4", "5"],
        ),
        (
            json!({"tools": [{"type": "tool_search", "tool_search_type": "regex"}]}),
            "tools[0].tool_search_type",
            INVALID,
            vec!["tool_search_tool"],
        ),
        (
            json!({"model": "first/chat", "routing": "price"}),
            "routing",
            None,
            vec!["model"],
        ),
        (
            json!({"model": "first/chat", "routing": "auto"}),
            "routing",
            None,
            vec!["model"],
        ),
        (
            json!({"image_config": {"n": 2}, "tools": [function]}),
            "image_config.n",
            Some("unsupported_parameter_combination"),
            vec!["function tools"],
        ),
        (
            json!({"service_tier": "flex"}),
            "service_tier",
            Some("unsupported_service_tier"),
            vec!["flex"],
        ),
        (
            json!({"service_tier": "priority"}),
            "service_tier",
            Some("unsupported_service_tier"),
            vec!["priority"],
        ),
    ]
}

/// What the model at hand does not take.
fn unserved() -> Vec<Refusal> {
    let function = json!({"type": "function", "function": {"name": "f"}});
    vec![
        (
            json!({"model": "only-first", "verbosity": "low"}),
            "verbosity",
            None,
            vec!["first"],
        ),
        (
            json!({"model": "chat", "reasoning": {"mode": "pro"}}),
            "reasoning.mode",
            None,
            vec!["pro"],
        ),
        (
            json!({"model": "only-first", "n": 2}),
            "n",
            None,
            vec!["one choice"],
        ),
        (
            json!({"model": "only-first", "web_search": true}),
            "web_search",
            None,
            vec!["first"],
        ),
        (
            json!({"model": "only-first", "image_config": {"n": 1}}),
            "image_config",
            None,
            vec!["first"],
        ),
        (
            json!({"model": "only-first", "tools": [function]}),
            "tools",
            None,
            vec!["first"],
        ),
        (
            json!({"model": "only-first", "effort": "low"}),
            "effort",
            None,
            vec!["first"],
        ),
        (
            json!({"model": "only-first", "vendor_safeguards": {"safeguards": [{"type": "dangerous_tool_use"}], "betas": ["dangerous-tool-use-2026-01-01"]}}),
            "vendor_safeguards",
            None,
            vec!["first"],
        ),
    ]
}

/// Contract: model-gateway 2.1 tool_choice
/// Contract: model-gateway 2.1 reasoning
/// Contract: model-gateway 2.1 verbosity
/// Contract: model-gateway 2.1 n 1
/// Contract: model-gateway 2.1 n 3
/// Contract: model-gateway 2.1 routing 2
/// Contract: model-gateway 2.1 service_tier 2
/// Contract: model-gateway 2.1 reasoning_effort 5
/// Contract: model-gateway 2.2 tool_call_id
/// Contract: model-gateway 2.4 function
/// Contract: model-gateway 2.4 tool_search
/// Contract: model-gateway 7 400
/// Contract: model-gateway 8 6
#[test]
fn what_excludes_each_other_is_told_with_its_code() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    for (members, param, code, words) in contradictions().into_iter().chain(unserved()) {
        let mut body = request("user", &json!("a"));
        for (key, value) in members.as_object().unwrap() {
            body[key] = value.clone();
        }
        refused(&gateway, &body, param, code, &words);
    }
    assert!(first.requests().is_empty());
}
