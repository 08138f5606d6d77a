#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::*;
use crate::models::fronts::responses::Responses;
use crate::models::request::Effort;
use crate::money::ServiceTier;

fn body(more: &Value) -> Bytes {
    let mut body = json!({"model": "m", "input": "Hi"});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body.to_string().into()
}

fn read(more: &Value) -> ModelRequest {
    Responses.parse(body(more)).unwrap()
}

/// Checks that each request is refused, naming the field.
fn refused(cases: &[(Value, &str)]) {
    for (more, param) in cases {
        let fault = Responses.parse(body(more)).unwrap_err();
        let said = &fault.message;
        assert_eq!(fault.param.as_deref(), Some(*param), "{more}: {said}");
        assert!(said.contains(&format!("`{param}`")), "{said}");
    }
}

#[test]
fn an_item_that_breaks_a_rule_is_named_by_its_path() {
    let items = |item: Value| json!({"input": [{"role": "user", "content": "Hi"}, item]});
    refused(&[
        (json!({"input": ""}), "input"),
        (json!({"input": []}), "input"),
        (json!({"input": 5}), "input"),
        (json!({"input": null}), "input"),
        (items(json!({})), "input[1].type"),
        (
            items(json!({"role": "tool", "content": "x"})),
            "input[1].role",
        ),
        (items(json!({"role": "user"})), "input[1].content"),
        (
            items(json!({"role": "user", "content": 5})),
            "input[1].content",
        ),
        (
            items(json!({"type": "message", "content": "x"})),
            "input[1].role",
        ),
        (
            items(json!({"type": "function_call", "name": "f", "arguments": "{}"})),
            "input[1].call_id",
        ),
        (
            items(json!({"type": "function_call", "call_id": "c", "name": "", "arguments": "{}"})),
            "input[1].name",
        ),
        (
            items(json!({"type": "function_call", "call_id": "c", "name": "f"})),
            "input[1].arguments",
        ),
        (
            items(json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": {}})),
            "input[1].arguments",
        ),
        (
            items(json!({"type": "function_call_output", "call_id": "c"})),
            "input[1].output",
        ),
        (
            items(json!({"type": "function_call_output", "output": "x"})),
            "input[1].call_id",
        ),
        (
            items(
                json!({"output": [{"type": "input_text"}], "call_id": "c", "type": "function_call_output"}),
            ),
            "input[1].output[0].text",
        ),
        (
            items(json!({"type": "custom_tool_call", "call_id": "c", "name": "f"})),
            "input[1].input",
        ),
        (
            items(json!({"type": "tool_search_call", "call_id": "c", "arguments": "x"})),
            "input[1].arguments",
        ),
        (
            items(json!({"type": "additional_tools", "tools": [{"name": "f"}]})),
            "input[1].tools[0].type",
        ),
        (
            items(json!({"type": "reasoning", "summary": "x"})),
            "input[1].summary",
        ),
        (
            items(json!({"type": "reasoning", "summary": [], "encrypted_content": 1})),
            "input[1].encrypted_content",
        ),
        (
            items(json!({"type": "compaction"})),
            "input[1].encrypted_content",
        ),
        (
            items(json!({"type": "item_reference", "id": "msg_1"})),
            "input[1].type",
        ),
        (items(json!({"type": ""})), "input[1].type"),
    ]);
}

#[test]
fn a_part_that_breaks_a_rule_is_named_by_its_path() {
    let part = |part: Value| json!({"input": [{"role": "user", "content": "Hi"}, {"role": "user", "content": [part]}]});
    refused(&[
        (part(json!({})), "input[1].content[0].type"),
        (
            part(json!({"type": "input_text"})),
            "input[1].content[0].text",
        ),
        (
            part(json!({"type": "input_text", "text": 1})),
            "input[1].content[0].text",
        ),
        (
            part(json!({"type": "input_image"})),
            "input[1].content[0].image_url",
        ),
        (
            part(json!({"type": "input_image", "image_url": "data:image/png;base64,%"})),
            "input[1].content[0].image_url",
        ),
        (
            part(
                json!({"type": "input_image", "image_url": "https://a.example/x", "detail": "tiny"}),
            ),
            "input[1].content[0].detail",
        ),
        (
            part(json!({"type": "input_file", "filename": "a.pdf"})),
            "input[1].content[0].file_data",
        ),
        (
            part(json!({"type": "input_file", "file_data": "aGk="})),
            "input[1].content[0].file_data",
        ),
        (
            part(json!({"type": "input_audio", "input_audio": {"data": "aGk="}})),
            "input[1].content[0].input_audio.format",
        ),
    ]);
}

#[test]
fn a_member_or_a_tool_that_breaks_a_rule_is_named_by_its_path() {
    let tool = |tool: Value| json!({ "tools": [tool] });
    refused(&[
        (json!({"instructions": 5}), "instructions"),
        (json!({"max_output_tokens": "9"}), "max_output_tokens"),
        (tool(json!({"name": "f"})), "tools[0].type"),
        (tool(json!({"type": "function"})), "tools[0].name"),
        (
            tool(json!({"type": "function", "name": "f", "parameters": "x"})),
            "tools[0].parameters",
        ),
        (
            tool(json!({"type": "namespace", "name": "n"})),
            "tools[0].tools",
        ),
        (
            tool(json!({"type": "namespace", "name": "n", "tools": [{"type": "function"}]})),
            "tools[0].tools[0].name",
        ),
        (
            json!({"tools": [{"type": "web_search"}, {"type": "web_search"}]}),
            "tools[1].type",
        ),
        (json!({"tool_choice": "any"}), "tool_choice"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (
            json!({"tool_choice": {"type": "web_search"}}),
            "tool_choice",
        ),
        (
            json!({"tool_choice": {"type": "function", "name": "g"}, "tools": [{"type": "function", "name": "f"}]}),
            "tool_choice.name",
        ),
        (
            json!({"tool_choice": {"type": "allowed_tools", "tools": []}}),
            "tool_choice.mode",
        ),
        (
            json!({"text": {"format": {"type": "json_schema", "schema": {}}}}),
            "text.format.name",
        ),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "n"}}}),
            "text.format.schema",
        ),
        (json!({"text": {"verbosity": "huge"}}), "text.verbosity"),
        (json!({"reasoning": {"effort": "huge"}}), "reasoning.effort"),
        (json!({"include": "x"}), "include"),
        (json!({"service_tier": "first"}), "service_tier"),
        (json!({"metadata": []}), "metadata"),
        (json!({"conversation": "conv_1"}), "conversation"),
        (json!({"previous_response_id": 5}), "previous_response_id"),
        (json!({"store": true}), "store"),
        (json!({"background": true}), "background"),
        (
            json!({"previous_response_id": "resp_1"}),
            "previous_response_id",
        ),
        (json!({"model": "@prompt/x"}), "model"),
    ]);
}

#[test]
fn the_order_of_members_changes_nothing() {
    for item in [
        json!({"content": [{"text": "Hi", "type": "input_text"}], "role": "user", "type": "message"}),
        json!({"output": [{"text": "Hi", "type": "input_text"}], "call_id": "c", "type": "function_call_output"}),
        json!({"tools": [{"type": "function", "name": "f"}], "type": "additional_tools"}),
    ] {
        let mut turned = serde_json::Map::new();
        for (key, value) in item.as_object().unwrap().iter().rev() {
            turned.insert(key.clone(), value.clone());
        }
        let [one, other] =
            [item.clone(), turned.into()].map(|item| read(&json!({"input": [item]})));
        assert_eq!(one.text_bytes, other.text_bytes, "{item}");
        assert_eq!(one.needs, other.needs, "{item}");
    }
}

#[test]
fn what_the_planner_and_the_bill_need_is_found() {
    let request = read(&json!({
        "input": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "Look"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}, {"type": "input_image", "image_url": "https://a.example/x.png", "detail": "low"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}, {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}]}],
        "tools": [{"type": "function", "name": "f", "strict": true, "parameters": {"type": "object"}}, {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}],
        "tool_choice": "required", "parallel_tool_calls": false, "max_tool_calls": 3, "max_output_tokens": 100, "temperature": 0.5,
        "reasoning": {"effort": "high", "context": "all_turns"}, "text": {"format": {"type": "json_schema", "name": "n", "schema": {"a": 1}}, "verbosity": "low"},
        "service_tier": "fast", "prompt_cache_key": "k", "user": "u", "stream": true,
    }));
    let needs = &request.needs;
    assert!(
        needs.vision && needs.documents && needs.tools && needs.forced_tools && needs.json_schema
    );
    assert!(needs.adapts && !needs.verbosity && !needs.assistant_first);
    assert_eq!(&*needs.audio, ["wav".into()]);
    assert_eq!(
        (needs.max_tokens, needs.effort),
        (Some(100), Some(Effort::High))
    );
    assert_eq!(needs.reasoning_context.as_deref(), Some("all_turns"));
    assert_eq!(needs.service_tier, ServiceTier::Priority);
    let search = needs.web_search.unwrap();
    assert_eq!(
        (search.is_tool, search.is_demanded, search.max_uses),
        (true, false, Some(3))
    );
    for parameter in [
        Parameter::Temperature,
        Parameter::MaxTokens,
        Parameter::StrictTools,
        Parameter::Tools,
        Parameter::ToolChoice,
        Parameter::ParallelToolCalls,
        Parameter::ResponseFormat,
        Parameter::WebSearch,
        Parameter::AllowedDomains,
        Parameter::SearchMaxUses,
        Parameter::ImageDetail,
        Parameter::PromptCacheKey,
        Parameter::User,
    ] {
        assert!(request.asked.set.contains(parameter), "{parameter:?}");
    }
    assert!(!request.asked.set.contains(Parameter::Verbosity));
    assert_eq!(request.session.as_deref(), Some("k"));
    assert!(request.is_stream);
    assert_eq!(request.answer_schema(), Some(r#"{"a":1}"#));
    let costs = &request.cost_inputs;
    assert_eq!((costs.images, costs.audio, costs.files), (2, 1, 1));
    let [remote] = request.payload.remote_images() else {
        unreachable!("one image is an address");
    };
    assert_eq!(&*remote.param, "input[1].content[2].image_url");
}

#[test]
fn a_search_that_nothing_may_call_asks_for_nothing() {
    let more = json!({"tools": [{"type": "web_search", "search_context_size": "low"}], "tool_choice": "none", "max_tool_calls": 2});
    let request = read(&more);
    assert_eq!(request.needs.web_search, None);
    assert!(request.asked.set.is_empty(), "{:?}", request.asked);
}

#[test]
fn what_only_hosts_of_the_dialect_know_is_a_need_and_what_they_ran_is_none() {
    let need = |more: Value| read(&more).needs.native.map(|need| need.member);
    for (more, member) in [
        (
            json!({"tools": [{"type": "mcp", "server_label": "x"}]}),
            "tools",
        ),
        (
            json!({"input": [{"type": "computer_call", "call_id": "c"}]}),
            "input",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_video"}]}]}),
            "input",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}),
            "input",
        ),
        (
            json!({"input": [{"type": "compaction", "encrypted_content": "gA"}]}),
            "input",
        ),
        (json!({"top_logprobs": 3}), "top_logprobs"),
        (
            json!({"include": ["message.output_text.logprobs"]}),
            "include",
        ),
        (
            json!({"tool_choice": {"type": "file_search"}}),
            "tool_choice",
        ),
    ] {
        assert_eq!(need(more.clone()), Some(member), "{more}");
    }
    for kind in [
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "mcp_call",
        "mcp_list_tools",
    ] {
        let more = json!({"input": [{"type": kind, "id": "x", "status": "completed"}, {"role": "user", "content": "Hi"}]});
        assert_eq!(need(more), None, "{kind}");
    }
}

#[test]
fn items_with_state_or_an_id_of_the_gateway_are_noted() {
    let request = read(&json!({"input": [
        {"role": "user", "content": "Hi"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA"},
        {"type": "message", "id": "msg_wg_1_0", "role": "assistant", "content": "a"},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": "b"}]}));
    let Payload::Chat(chat) = &request.payload else {
        unreachable!("it is a chat");
    };
    let noted = chat.special_messages.iter().map(|range| {
        let item: Value = serde_json::from_slice(&request.source.body[range.clone()]).unwrap();
        item["id"].as_str().unwrap().to_owned()
    });
    assert_eq!(noted.collect::<Vec<_>>(), ["rs_1", "msg_wg_1_0"]);
}

#[test]
fn the_numbers_of_items_and_tools_are_bounded() {
    let many = |count: usize, item: &str| vec![item; count].join(",");
    let items = many(100_001, r#"{"role":"user","content":""}"#);
    let body = format!(r#"{{"model":"m","input":[{items}]}}"#);
    let fault = Responses.parse(body.into()).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("input[100000]"));
    let tools = many(4_097, r#"{"type":"mcp"}"#);
    let body = format!(r#"{{"model":"m","input":"Hi","tools":[{tools}]}}"#);
    let fault = Responses.parse(body.into()).unwrap_err();
    assert_eq!(fault.param.as_deref(), Some("tools[4096]"));
}
