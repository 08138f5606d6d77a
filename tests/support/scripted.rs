//! A provider that speaks every wire, and answers on each as `tests/clients/wires_python.py` and `wires_node.mjs` expect.
//!
//! It calls `get_weather` where tools are offered, tells the result of a call, gives JSON where a schema is asked for, says
//! whether it sees an image, reasons "hm" where that is asked for, and repeats the last text otherwise.

use serde_json::{Value, json};

use super::script::Reply;
use super::upstream::{Received, Upstream};

/// What the answer says.
enum Said {
    Text(String),
    Call,
}

const ARGUMENTS: &str = "{\"city\":\"Paris\"}";

/// Starts the provider. Its paths are those of the public providers, below `/v1` and `/v1beta`.
pub fn provider() -> Upstream {
    Upstream::answering(|request| match request.path.as_str() {
        "/v1/chat/completions" => chat(request),
        "/v1/responses" => items(request),
        "/v1/messages" => blocks(request),
        path if path.starts_with("/v1beta/models/") => parts(request),
        _ => Reply::json(404, "{}"),
    })
}

/// Decides what to say to the last message or item of a history.
fn answer(body: &Value, last: &Value, result: Option<String>) -> Said {
    let whole = body.to_string();
    let has_tools = body["tools"]
        .as_array()
        .is_some_and(|tools| !tools.is_empty());
    if let Some(result) = result {
        return Said::Text(format!("The tool said: {result}"));
    }
    if has_tools {
        return Said::Call;
    }
    if ["json_schema", "responseSchema", "responseJsonSchema"]
        .iter()
        .any(|key| whole.contains(key))
    {
        return Said::Text("{\"city\":\"Paris\",\"degrees\":20}".into());
    }
    let shown = last.to_string();
    if ["image_url", "input_image", "\"image\"", "inlineData"]
        .iter()
        .any(|key| shown.contains(key))
    {
        return Said::Text("I see an image".into());
    }
    Said::Text(format!("You said: {}", text(last).unwrap_or_default()))
}

/// Finds the last text inside a value.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => items.iter().rev().find_map(text),
        Value::Object(members) => {
            let own = ["text", "content", "parts", "output", "result"]
                .iter()
                .find_map(|key| members.get(*key));
            own.and_then(text)
        }
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn last(list: &Value) -> Value {
    list.as_array()
        .and_then(|items| items.last())
        .cloned()
        .unwrap_or_default()
}

fn chat(request: &Received) -> Reply {
    let body = request.json();
    let last = last(&body["messages"]);
    let result = (last["role"] == "tool").then(|| text(&last).unwrap_or_default());
    let mut message = json!({"role": "assistant", "content": null});
    let mut finish = "stop";
    match answer(&body, &last, result) {
        Said::Text(text) => message["content"] = text.into(),
        Said::Call => {
            message["tool_calls"] = json!([{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}]);
            finish = "tool_calls";
        }
    }
    if body["reasoning_effort"].is_string() {
        message["reasoning_content"] = "hm".into();
    }
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14});
    let head =
        |object: &str| json!({"id": "chatcmpl-1", "object": object, "created": 5, "model": "up"});
    if body["stream"] != true {
        let mut reply = head("chat.completion");
        reply["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish}]);
        reply["usage"] = usage;
        return Reply::json(200, reply.to_string());
    }
    for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
        call["index"] = 0.into();
    }
    let mut chunks = [
        head("chat.completion.chunk"),
        head("chat.completion.chunk"),
        head("chat.completion.chunk"),
    ];
    chunks[0]["choices"] = json!([{"index": 0, "delta": message, "finish_reason": null}]);
    chunks[1]["choices"] = json!([{"index": 0, "delta": {}, "finish_reason": finish}]);
    chunks[2]["choices"] = json!([]);
    chunks[2]["usage"] = usage;
    let reply = chunks.iter().fold(Reply::stream(), |reply, chunk| {
        reply.event(&chunk.to_string())
    });
    reply.event("[DONE]").end()
}

fn items(request: &Received) -> Reply {
    let body = request.json();
    let last = last(&body["input"]);
    let result = (last["type"] == "function_call_output").then(|| text(&last).unwrap_or_default());
    let mut output = Vec::new();
    if body["reasoning"]["effort"].is_string() {
        output.push(json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"}));
    }
    output.push(match answer(&body, &last, result) {
        Said::Text(text) => json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}),
        Said::Call => json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather", "arguments": ARGUMENTS}),
    });
    let response = json!({"id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "model": "up", "output": output,
        "usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}});
    if body["stream"] != true {
        return Reply::json(200, response.to_string());
    }
    let mut events = vec![json!({"type": "response.created", "response": {"id": "resp_1"}})];
    for (at, item) in output.iter().enumerate() {
        events
            .push(json!({"type": "response.output_item.added", "output_index": at, "item": item}));
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": response}));
    named(&events)
}

fn blocks(request: &Received) -> Reply {
    let body = request.json();
    let last = last(&body["messages"]);
    let answered = last["content"]
        .as_array()
        .and_then(|blocks| blocks.iter().find(|block| block["type"] == "tool_result"));
    let result = answered.map(|block| text(block).unwrap_or_default());
    let mut content = Vec::new();
    if body["thinking"].is_object() && body["thinking"]["type"] != "disabled" {
        content.push(json!({"type": "thinking", "thinking": "hm", "signature": "sig"}));
    }
    let mut stop = "end_turn";
    content.push(match answer(&body, &last, result) {
        Said::Text(text) => json!({"type": "text", "text": text}),
        Said::Call => {
            stop = "tool_use";
            json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}})
        }
    });
    let message = |content: Value, stop: Value| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "up", "content": content,
        "stop_reason": stop, "usage": {"input_tokens": 9, "output_tokens": 5}})
    };
    if body["stream"] != true {
        return Reply::json(200, message(content.into(), stop.into()).to_string());
    }
    let mut events =
        vec![json!({"type": "message_start", "message": message(json!([]), Value::Null)})];
    for (at, block) in content.iter().enumerate() {
        let (begun, pieces) = match block["type"].as_str() {
            Some("thinking") => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    json!({"type": "thinking_delta", "thinking": block["thinking"]}),
                    json!({"type": "signature_delta", "signature": block["signature"]}),
                ],
            ),
            Some("text") => (
                json!({"type": "text", "text": ""}),
                vec![json!({"type": "text_delta", "text": block["text"]})],
            ),
            _ => (
                json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}),
                vec![json!({"type": "input_json_delta", "partial_json": ARGUMENTS})],
            ),
        };
        events.push(json!({"type": "content_block_start", "index": at, "content_block": begun}));
        events.extend(
            pieces
                .into_iter()
                .map(|delta| json!({"type": "content_block_delta", "index": at, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": at}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}));
    events.push(json!({"type": "message_stop"}));
    named(&events)
}

fn parts(request: &Received) -> Reply {
    let body = request.json();
    let last = last(&body["contents"]);
    let answered = last["parts"].as_array().and_then(|parts| {
        parts
            .iter()
            .find(|part| part["functionResponse"].is_object())
    });
    let result =
        answered.map(|part| text(&part["functionResponse"]["response"]).unwrap_or_default());
    let mut parts = Vec::new();
    if body["generationConfig"]["thinkingConfig"]["includeThoughts"] == true {
        parts.push(json!({"text": "hm", "thought": true}));
    }
    parts.push(match answer(&body, &last, result) {
        Said::Text(text) => json!({"text": text}),
        Said::Call => json!({"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}, "thoughtSignature": "c2ln"}),
    });
    let reply = json!({"responseId": "r1", "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts}}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}});
    match request.path.contains(":stream") {
        true => Reply::stream().event(&reply.to_string()).end(),
        false => Reply::json(200, reply.to_string()),
    }
}

fn named(events: &[Value]) -> Reply {
    let send = |reply: Reply, event: &Value| {
        reply.named_event(event["type"].as_str().unwrap(), &event.to_string())
    };
    events.iter().fold(Reply::stream(), send).end()
}
