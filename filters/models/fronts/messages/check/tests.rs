#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::*;
use crate::models::fronts::messages::Messages;

fn body(more: &Value) -> Bytes {
    let mut body =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body.to_string().into()
}

fn read(more: &Value) -> ModelRequest {
    Messages.parse(body(more)).unwrap()
}

#[test]
fn what_breaks_a_rule_is_named_in_the_words_of_this_api() {
    let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    let said = |content: Value| json!({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": content}]});
    for (more, param) in [
        (json!({"messages": []}), "messages"),
        (json!({"messages": "Hi"}), "messages"),
        (
            json!({"messages": [{"role": "developer", "content": "Hi"}]}),
            "messages.0.role",
        ),
        (
            json!({"messages": [{"role": "user"}]}),
            "messages.0.content",
        ),
        (user(json!([{"text": "Hi"}])), "messages.0.content.0.type"),
        (user(json!([{"type": "text"}])), "messages.0.content.0.text"),
        (
            user(json!([{"type": "text", "text": 1}])),
            "messages.0.content.0.text",
        ),
        (
            user(json!([{"type": "image", "source": {"type": "base64", "data": "QQ=="}}])),
            "messages.0.content.0.source.media_type",
        ),
        (
            user(
                json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "%"}}]),
            ),
            "messages.0.content.0.source.data",
        ),
        (
            user(json!([{"type": "image", "source": {"type": "ftp"}}])),
            "messages.0.content.0.source.type",
        ),
        (
            user(json!([{"type": "tool_result", "content": "x"}])),
            "messages.0.content.0.tool_use_id",
        ),
        (
            user(
                json!([{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]}]),
            ),
            "messages.0.content.0.content.0.text",
        ),
        (
            said(json!([{"type": "tool_use", "id": "a", "name": "f", "input": "x"}])),
            "messages.1.content.0.input",
        ),
        (
            said(json!([{"type": "thinking", "thinking": "x"}])),
            "messages.1.content.0.signature",
        ),
        (json!({"max_tokens": null}), "max_tokens"),
        (json!({"max_tokens": "9"}), "max_tokens"),
        (json!({"system": 1}), "system"),
        (json!({"stop_sequences": "x"}), "stop_sequences"),
        (
            json!({"thinking": {"type": "enabled"}}),
            "thinking.budget_tokens",
        ),
        (json!({"tools": [{"name": "f"}]}), "tools.0.input_schema"),
        (json!({"tools": [{"input_schema": {}}]}), "tools.0.name"),
        (json!({"tool_choice": {"type": "any"}}), "tool_choice"),
        (
            json!({"tool_choice": {"type": "tool", "name": "g"}, "tools": [{"name": "f", "input_schema": {}}]}),
            "tool_choice.name",
        ),
        (
            json!({"output_config": {"effort": "huge"}}),
            "output_config.effort",
        ),
        (
            json!({"output_config": {"format": {"type": "json_schema"}}}),
            "output_config.format.schema",
        ),
        (json!({"model": "@prompt/x"}), "model"),
    ] {
        let fault = Messages.parse(body(&more)).unwrap_err();
        assert_eq!(
            fault.param.as_deref(),
            Some(param),
            "{more}: {}",
            fault.message
        );
        assert!(
            fault.message.contains(&format!("`{param}`")),
            "{}",
            fault.message
        );
    }
}

#[test]
fn what_the_vendor_adds_passes() {
    let request = read(&json!({
        "context_management": {"edits": []}, "betas": ["x"], "container": "c", "top_k": 3,
        "system": [{"type": "text", "text": "Be kind", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "thinking": {"type": "between_tools", "display": "omitted"},
        "output_config": {"effort": "xhigh", "task_budget": {"type": "tokens", "total": 9}},
        "messages": [{"role": "user", "content": "Hi"}, {"role": "system", "content": "Now", "clear_at": "never"}],
        "tools": [{"name": "f", "input_schema": {}, "input_examples": [{}], "eager_input_streaming": true}],
    }));
    assert!(request.needs.cache_control && request.needs.tools && request.needs.native.is_none());
    assert_eq!(request.needs.effort, Some(Effort::Xhigh));
    assert!(request.needs.adapts);
}

#[test]
fn what_only_the_vendor_knows_is_a_need() {
    for (more, member) in [
        (
            json!({"tools": [{"type": "computer_20250124", "name": "computer", "display_width_px": 9}]}),
            "tools",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}]}),
            "messages",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "https://x"}}]}]}),
            "messages",
        ),
    ] {
        let native = read(&more).needs.native.unwrap();
        assert_eq!(
            (native.dialect, native.member),
            (Dialect::Messages, member),
            "{more}"
        );
    }
    // What the vendor holds is told before all else, because clients can do without.
    let thread = json!({"type": "continue", "previous_message_id": "msg_1"});
    let threaded = read(
        &json!({"tools": [{"type": "computer_20250124", "name": "computer"}], "thread": thread}),
    );
    let native = threaded.needs.native.unwrap();
    assert_eq!(
        (native.member, native.is_vendor_only, native.code),
        (
            "thread",
            true,
            Some(crate::fault_code::FaultCode::ThreadUnsupportedRequest)
        )
    );
    assert!(read(&json!({"thread": null})).needs.native.is_none());
    let plain = json!({"tools": [{"type": "bash_20250124", "name": "bash"}, {"type": "custom", "name": "f", "input_schema": {}}]});
    assert!(read(&plain).needs.native.is_none());
}

#[test]
fn reasoning_is_an_effort() {
    for (more, effort) in [
        (json!({}), None),
        (
            json!({"thinking": {"type": "disabled"}}),
            Some(Effort::None),
        ),
        (json!({"thinking": {"type": "adaptive"}}), None),
        (
            json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
            Some(Effort::High),
        ),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}),
            Some(Effort::Low),
        ),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 8000}}),
            Some(Effort::Medium),
        ),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 31999}}),
            Some(Effort::High),
        ),
    ] {
        assert_eq!(read(&more).needs.effort, effort, "{more}");
    }
}

#[test]
fn a_count_needs_no_limit_and_is_never_zero() {
    use crate::models::fronts::messages::count_tokens;
    let short = r#"{"model":"m","messages":[{"role":"user","content":""}]}"#;
    assert!(count_tokens(short.into()).unwrap().estimate > 0);
    let text = "word ".repeat(4000);
    let long =
        json!({"model": "m", "messages": [{"role": "user", "content": text}], "system": "x"});
    let count = count_tokens(long.to_string().into()).unwrap().estimate;
    // 4,000 words are about as many tokens, and an estimate errs high.
    assert!((4000..9000).contains(&count), "{count}");
    assert!(count_tokens("{}".into()).is_err());
}

/// The members of a block beside its type, and of a message beside its role.
const BLOCKS: [(&str, &str, &str); 9] = [
    (
        "user",
        "text",
        r#""text":"a \"long\" text, which is walked once""#,
    ),
    ("user", "text", r#""text":1"#),
    (
        "user",
        "image",
        r#""source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}"#,
    ),
    (
        "user",
        "image",
        r#""source":{"type":"url","url":"https://a.b/c"}"#,
    ),
    ("user", "image", r#""source":{"type":"ftp"}"#),
    (
        "user",
        "tool_result",
        r#""tool_use_id":"t","content":[{"text":"x","type":"text"}],"is_error":true"#,
    ),
    (
        "user",
        "tool_result",
        r#""content":[{"type":"text","text":"x"},{"type":"text"}],"tool_use_id":"t""#,
    ),
    (
        "user",
        "tool_result",
        r#""content":[{"type":"text"}],"tool_use_id":5"#,
    ),
    ("assistant", "tool_use", r#""input":[],"name":"f","id":5"#),
];

/// Checks a conversation of two messages, of which the second has these members. Returns what counts of it.
fn second(members: &str) -> Result<String, (String, String)> {
    let body = format!(
        r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"Hi"}},{{{members}}}]}}"#
    );
    match Messages.parse(body.into()) {
        Ok(request) => Ok(format!(
            "{} {:?} {:?}",
            request.text_bytes, request.needs, request.payload
        )),
        Err(fault) => Err((fault.param.unwrap_or_default(), fault.message.into_owned())),
    }
}

#[test]
fn a_type_counts_wherever_it_stands() {
    for (role, kind, members) in BLOCKS {
        let first = format!(r#"{{"type":"{kind}",{members}}}"#);
        let last = format!(r#"{{{members},"type":"{kind}"}}"#);
        let role_first = second(&format!(r#""role":"{role}","content":[{first}]"#));
        for block in [first, last] {
            for message in [
                format!(r#""role":"{role}","content":[{block}]"#),
                format!(r#""content":[{block}],"role":"{role}""#),
            ] {
                assert_eq!(second(&message), role_first, "{message}");
            }
        }
    }
}

#[test]
fn a_type_that_comes_twice_or_not_at_all_is_named() {
    for (role, kind, members) in BLOCKS {
        for (block, said) in [
            (
                format!(r#"{{"type":"{kind}",{members},"type":"{kind}"}}"#),
                "came twice",
            ),
            (format!("{{{members}}}"), "is missing"),
        ] {
            let (param, message) =
                second(&format!(r#""role":"{role}","content":[{block}]"#)).unwrap_err();
            assert_eq!(param, "messages.1.content.0.type", "{block}");
            assert!(message.contains(said), "{message}");
        }
    }
}

#[test]
fn of_several_mistakes_the_same_is_told_wherever_they_stand() {
    let bad = r#"{"type":"text"}"#;
    for (members, param) in [
        (
            format!(r#""role":"user","content":[{bad}],"role":"user""#),
            "messages.1.role",
        ),
        (
            format!(r#""role":"user","content":[{bad}],"content":1"#),
            "messages.1.content",
        ),
        (
            r#""role":"user","content":[{"type":"tool_result","content":[{"type":"text"}],"tool_use_id":5}]"#.to_owned(),
            "messages.1.content.0.tool_use_id",
        ),
        (
            r#""role":"user","content":[{"type":"image","source":{"type":"ftp"},"cache_control":5}]"#.to_owned(),
            "messages.1.content.0.cache_control",
        ),
        (
            r#""role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text"},{"type":"text","type":1}]}]"#.to_owned(),
            "messages.1.content.0.content.0.text",
        ),
    ] {
        assert_eq!(second(&members).unwrap_err().0, param, "{members}");
    }
    // A text that is no JSON is told before any rule.
    let broken = format!(r#""role":"user","content":[{bad}, nope]"#);
    let (_, message) = second(&broken).unwrap_err();
    assert!(message.contains("not a valid JSON object"), "{message}");
    let deep = "[".repeat(130) + &"]".repeat(130);
    let deep = format!(r#""role":"user","content":[{bad},{deep}]"#);
    let (_, message) = second(&deep).unwrap_err();
    assert!(message.contains("128 levels"), "{message}");
}
