//! Responses: requests on every wire, and answers of every wire in this front's events.

use filters::models::dialects::compaction;
use filters::models::front::{ClientHead, Front, Received};
use filters::models::fronts::responses::Responses;
use filters::models::request::ModelRequest;
use filters::models::stored_responses::expand::{History, expand};
use filters::models::stored_responses::items::{ItemIndex, ItemPage, StoredTurn, write_page};
use filters::models::wires::WireKind;
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::grammars::messages::events;
use crate::grammars::responses::fold;
use crate::run::run;
use crate::streams::{keep_the_grammar, pass, requests, whole_replies};
use crate::{damage, grammar};

pub fn request_grammar() -> Value {
    let breakpoint = json!({"mode": "explicit"});
    let text = json!({"type": {"$one": ["input_text", "output_text"]}, "text": {"$one": ["Hi", "$text"]}, "annotations?": "$any", "prompt_cache_breakpoint?": breakpoint});
    let part = json!({"$one": [text, text,
        {"type": "refusal", "refusal": "$text"},
        {"type": "input_image", "detail?": {"$one": ["low", "auto", "$text"]}, "image_url": {"$one": ["data:image/png;base64,AAE=", "https://a.example/x.png", "$text"]}},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_file", "filename?": "$text", "file_data": {"$one": ["data:application/pdf;base64,aGk=", "$text"]}},
        {"type": "input_file", "file_url": "$text"}, {"type": "input_file", "file_id": "$text"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": {"$one": ["wav", "mp3", "$text"]}}},
        {"type": "$text"}, "$any"]});
    let content = json!({"$one": ["Hi", "$text", {"$many": part}, [text, part]]});
    let id = json!({"$one": ["c1", "c2", "$text"]});
    let state = json!({"$one": ["gAAA", "", "$text", Value::Null]});
    let summary = compaction::seal("The user likes pears.");
    let function = json!({"type": "function", "name": {"$one": ["f", "$text"]}, "description?": "$text", "parameters?": {"$one": [{"type": "object", "properties?": "$any"}, Value::Null]}, "strict?": true, "defer_loading?": true});
    let custom = json!({"type": "custom", "name": {"$one": ["patch", "$text"]}, "description?": "$text", "format?": {"$one": [{"type": "text"}, {"type": "grammar", "syntax": "lark", "definition": "$text"}]}});
    let tool = json!({"$one": [function, function, custom,
        {"type": "namespace", "name": {"$one": ["files", "$text"]}, "description?": "$text", "tools": {"$many": {"$one": [function, custom]}}},
        {"type": "tool_search", "execution?": {"$one": ["client", "server"]}, "description?": "$text", "parameters?": {"type": "object"}},
        {"type": {"$one": ["web_search", "web_search_2025_08_26"]}, "filters?": {"allowed_domains": ["a.example"]}, "search_context_size?": "low", "user_location?": {"type": "approximate", "country": "DE"}},
        {"type": {"$one": ["code_interpreter", "mcp", "image_generation", "$text"]}}, "$any"]});
    let tools = json!({"$many": tool});
    let item = json!({"$one": [
        {"type?": "message", "role": {"$one": ["user", "user", "assistant", "developer", "system", "$text"]}, "content": content, "phase?": "commentary", "id?": "$text"},
        {"type": "reasoning", "id?": {"$one": ["rs_1", "rs_wg_1_0"]}, "summary": {"$one": [[], [{"type": "summary_text", "text": "hm"}], "$any"]}, "content?": Value::Null, "encrypted_content?": state},
        {"type": "function_call", "call_id": id, "name": "f", "namespace?": "files", "arguments": {"$one": ["{}", "{\"a\":1}", "$text"]}, "id?": {"$one": ["fc_1", "fc_wg_1_0"]}},
        {"type": "function_call_output", "call_id": id, "output": content},
        {"type": "custom_tool_call", "call_id": id, "name": "patch", "input": "$text"},
        {"type": "custom_tool_call_output", "call_id": id, "output": content},
        {"type": "tool_search_call", "call_id": id, "execution": "client", "arguments": {"$one": [{}, "$any"]}},
        {"type": "tool_search_output", "call_id": id, "tools": tools},
        {"type": "additional_tools", "role": "developer", "tools": tools},
        {"type": "web_search_call", "id": "ws_wg_1_0", "action": "$any"},
        {"type": "image_generation_call", "id": "ig_1", "result?": {"$one": ["AAE=", "$text"]}},
        {"type": "compaction", "encrypted_content": {"$one": ["gAAA", summary, "$text"]}},
        {"type": {"$one": ["local_shell_call", "mcp_call", "item_reference", "$text"]}, "id?": "$text"}, "$any"]});
    json!({
        "model": {"$one": ["m", "$text"]},
        "input": {"$one": ["Hi", [item], [item, item, item], {"$many": item}, [item, {"type": "compaction_trigger"}]]},
        "instructions?": {"$one": ["Be brief.", "$text"]},
        "stream?": true, "temperature?": "$number", "top_p?": 0.5, "max_output_tokens?": {"$one": [16, 1024, "$int"]}, "max_tool_calls?": "$int",
        "tools?": tools, "tool_choice?": {"$one": ["auto", "none", "required", {"type": "function", "name": "f"}, {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}, {"type": "web_search"}, "$any"]},
        "parallel_tool_calls?": false, "reasoning?": {"effort?": {"$one": ["low", "high", "$text"]}, "summary?": "auto", "context?": "$text"},
        "text?": {"verbosity?": "low", "format?": {"$one": [{"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict?": true}, "$any"]}},
        "include?": {"$one": [["reasoning.encrypted_content"], ["$text"]]}, "store?": {"$one": [false, false, true]}, "previous_response_id?": {"$one": [null, null, null, "$text"]}, "truncation?": "auto", "service_tier?": {"$one": ["auto", "fast", "$text"]},
        "metadata?": {"a": "$text"}, "user?": "$text", "prompt_cache_key?": "$text", "safety_identifier?": "$text", "client_metadata?": "$any", "unknown?": "$any",
    })
}

#[test]
fn an_accepted_request_is_json_on_every_wire() {
    let grammar = request_grammar();
    requests("responses: requests", &Responses, &grammar, |_, _, _| {});
}

/// Requests that need kept responses.
pub fn kept_grammar() -> Value {
    let mut grammar = request_grammar();
    let id = json!({"$one": ["item_wg_0102030405060708090a0b0c0d0e0f10_0", "rs_1", "$text"]});
    let reference = json!({"type": "item_reference", "id": id});
    let item = grammar["input"]["$one"][1][0].clone();
    grammar["input"] = json!({"$one": ["Hi", {"$many": {"$one": [item, item, reference]}}]});
    grammar["store?"] = true.into();
    grammar
}

/// A request goes on with any response that is kept, whatever either says, and then says all by itself.
#[test]
fn a_request_goes_on_with_any_kept_response() {
    const ID: &str = "0102030405060708090a0b0c0d0e0f10";
    let grammar = kept_grammar();
    let item = request_grammar()["input"]["$one"][1][0].clone();
    let kept = json!({"input": {"$many": item}, "output": {"$many": item}});
    let counted = std::cell::Cell::new((0_u32, 0_u32));
    run("responses: kept responses", |choices| {
        let kept = grammar::compose(choices, &kept);
        let kept = if choices.once_in(3) {
            damage::tree(choices, kept)
        } else {
            kept
        };
        let input = kept["input"].to_string();
        let response = json!({"output": kept["output"]}).to_string();
        let turns = [StoredTurn {
            id: ID,
            input: &input,
            response: &response,
        }];
        let body = grammar::compose(choices, &grammar);
        let body = grammar::write(choices, &body);
        let Ok(Received::Stateful(request)) = Responses.read(&ClientHead::silent(), body.into())
        else {
            return;
        };
        let mut index = ItemIndex::new(request.references.iter().map(|it| &*it.id));
        index.add(&turns[0]).unwrap();
        let history = History {
            turns: &turns,
            has_previous: request.previous.is_some(),
            index: &index,
        };
        let max_bytes = if choices.once_in(4) { 200 } else { 1 << 20 };
        let (all, good) = counted.get();
        match expand(&request, history, max_bytes) {
            Ok(expanded) => {
                counted.set((all + 1, good + 1));
                assert!(expanded.body.len() <= max_bytes);
                let shown = String::from_utf8_lossy(&expanded.body);
                let read: Value = serde_json::from_slice(&expanded.body)
                    .unwrap_or_else(|error| panic!("{error}: {shown}"));
                let again: Value = serde_json::from_slice(&expanded.body[expanded.input]).unwrap();
                assert_eq!(read["input"], again);
                let read = Responses.read(&ClientHead::silent(), read.to_string().into());
                assert!(!matches!(read, Ok(Received::Stateful(_))), "{again}");
            }
            Err(fault) => {
                counted.set((all + 1, good));
                assert!(matches!(fault.status(), 400 | 413), "{fault:?}");
            }
        }
        let page = ItemPage {
            after: choices.once_in(2).then(|| "rs_1".into()),
            limit: 3,
            is_ascending: choices.once_in(2),
        };
        if let Some(page) = write_page(&turns[0], &page).unwrap() {
            let page: Value = serde_json::from_slice(&page).unwrap();
            assert!(page["data"].as_array().unwrap().len() <= 3);
        }
    });
    let (all, good) = counted.get();
    assert!(good * 10 > all, "{good} of {all} go on");
}

fn request(choices: &mut Choices<'_>, is_stream: bool) -> ModelRequest {
    let mut body = json!({"model": "m", "stream": is_stream, "input": "Hi"});
    if choices.once_in(2) {
        body["tools"] =
            json!([{"type": "custom", "name": "f"}, {"type": "function", "name": "get_weather"}]);
    }
    Responses.parse(body.to_string().into()).unwrap()
}

fn keeps_the_grammar(name: &str, wire: WireKind) {
    keep_the_grammar(name, wire, request, |stream, is_whole| {
        let response = events(stream).and_then(|events| fold(events.into_iter()))?;
        match (response["status"] == "failed") != is_whole {
            true => Ok(()),
            false => Err("another end than that of the reply".to_owned()),
        }
    });
}

#[test]
fn streams_of_the_openai_wire_keep_the_grammar() {
    keeps_the_grammar("responses: openai, events", WireKind::Compatible);
}

#[test]
fn streams_of_the_anthropic_wire_keep_the_grammar() {
    keeps_the_grammar("responses: anthropic, events", WireKind::Messages);
}

#[test]
fn streams_of_the_google_wire_keep_the_grammar() {
    keeps_the_grammar("responses: google, events", WireKind::Contents);
}

#[test]
fn streams_of_the_own_dialect_pass_however_they_are_cut() {
    pass("responses: own events", WireKind::Responses, request);
}

#[test]
fn a_whole_answer_of_any_wire_is_a_response_or_a_failure() {
    let name = "responses: whole replies";
    whole_replies(
        name,
        WireKind::Responses,
        request,
        |response, is_foreign| {
            let holds = response["output"].is_array() && response["usage"]["input_tokens"].is_u64();
            !is_foreign || holds
        },
    );
}
