//! The fields of the contract, each as a request with it and one without.

use filters::models::dialects::Dialect;
use filters::models::dialects::state::{Maker, States};
use serde_json::{Value, json};

use crate::tools::tools;

/// A field, and how to see what becomes of it.
pub(crate) struct Field {
    /// Its name on the page.
    pub(crate) name: &'static str,
    /// Where its value stands in a request, as a JSON pointer.
    pub(crate) pointer: &'static str,
    /// A request with it.
    pub(crate) with: Value,
    /// The same without it.
    pub(crate) without: Value,
}

/// A title, and the fields below it.
pub(crate) type Section = (&'static str, fn() -> Vec<Field>);

/// The sections of the page.
pub(crate) const SECTIONS: [Section; 5] = [
    ("The request", request),
    ("Fields of the convention beyond the contract", convention),
    ("Messages", messages),
    ("Content parts", parts),
    ("Tools", tools),
];

/// Who made what goes back to it.
const MAKER: Maker<'static> = Maker {
    states: States::NONE,
    family: "p",
    model: "up",
    own_key: None,
};

const SMALL_IMAGE: &str = "data:image/png;base64,AAAA";

pub(crate) fn base() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
}

pub(crate) fn function() -> Value {
    json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}})
}

/// A request with these members.
pub(crate) fn with(mut body: Value, members: &Value) -> Value {
    let members = members.as_object().cloned().unwrap_or_default();
    if let Some(body) = body.as_object_mut() {
        body.extend(members);
    }
    body
}

/// A member of the request; `beside` are members that it needs.
fn member(name: &'static str, pointer: &'static str, members: Value, beside: Value) -> Field {
    let without = with(base(), &beside);
    Field {
        name,
        pointer,
        with: with(without.clone(), &members),
        without,
    }
}

pub(crate) fn plain(name: &'static str, pointer: &'static str, members: Value) -> Field {
    member(name, pointer, members, json!({}))
}

fn request() -> Vec<Field> {
    [sampling(), calls_and_reasoning(), routing(), drawing()]
        .into_iter()
        .flatten()
        .collect()
}

fn sampling() -> Vec<Field> {
    let schema = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "properties": {}}}});
    vec![
        plain("temperature", "/temperature", json!({"temperature": 0.5})),
        plain("max_tokens", "/max_tokens", json!({"max_tokens": 77})),
        plain("top_p", "/top_p", json!({"top_p": 0.5})),
        plain(
            "frequency_penalty",
            "/frequency_penalty",
            json!({"frequency_penalty": 0.5}),
        ),
        plain(
            "presence_penalty",
            "/presence_penalty",
            json!({"presence_penalty": 0.5}),
        ),
        plain(
            "response_format: json_object",
            "/response_format",
            json!({"response_format": {"type": "json_object"}}),
        ),
        plain(
            "response_format: json_schema",
            "/response_format",
            json!({"response_format": schema}),
        ),
        plain("stream", "/stream", json!({"stream": true})),
        plain("n", "/n", json!({"n": 2})),
        plain("prompt", "/prompt", json!({"prompt": {"id": "p"}})),
        plain(
            "prompt_cache_key",
            "/prompt_cache_key",
            json!({"prompt_cache_key": "k"}),
        ),
        plain(
            "prompt_cache_retention",
            "/prompt_cache_retention",
            json!({"prompt_cache_retention": "24h"}),
        ),
        plain(
            "prompt_cache_options",
            "/prompt_cache_options",
            json!({"prompt_cache_options": {"mode": "explicit"}}),
        ),
        plain("user", "/user", json!({"user": "ann"})),
    ]
}

fn calls_and_reasoning() -> Vec<Field> {
    let tools = json!({"tools": [function()]});
    let named = json!({"type": "function", "function": {"name": "f"}});
    vec![
        plain("tools", "/tools", tools.clone()),
        member(
            "tool_choice: none",
            "/tool_choice",
            json!({"tool_choice": "none"}),
            tools.clone(),
        ),
        member(
            "tool_choice: required",
            "/tool_choice",
            json!({"tool_choice": "required"}),
            tools.clone(),
        ),
        member(
            "tool_choice: function",
            "/tool_choice",
            json!({"tool_choice": named}),
            tools.clone(),
        ),
        member(
            "tool_choice: web_search",
            "/tool_choice",
            json!({"tool_choice": {"type": "web_search"}}),
            json!({"tools": [{"type": "web_search"}]}),
        ),
        member(
            "tools beside a web search",
            "/tools/0",
            tools.clone(),
            json!({"web_search": true}),
        ),
        member(
            "tool_choice: required, with reasoning_effort",
            "/tool_choice",
            json!({"tool_choice": "required"}),
            json!({"tools": [function()], "reasoning_effort": "high"}),
        ),
        member(
            "parallel_tool_calls",
            "/parallel_tool_calls",
            json!({"parallel_tool_calls": false}),
            tools,
        ),
        plain(
            "reasoning_effort",
            "/reasoning_effort",
            json!({"reasoning_effort": "high"}),
        ),
        plain(
            "reasoning_effort: none",
            "/reasoning_effort",
            json!({"reasoning_effort": "none"}),
        ),
        plain(
            "reasoning.effort",
            "/reasoning",
            json!({"reasoning": {"effort": "high"}}),
        ),
        plain(
            "reasoning.max_tokens",
            "/reasoning",
            json!({"reasoning": {"max_tokens": 2000}}),
        ),
        plain(
            "reasoning.context",
            "/reasoning",
            json!({"reasoning": {"context": "all_turns"}}),
        ),
        plain(
            "reasoning.mode",
            "/reasoning",
            json!({"reasoning": {"mode": "pro"}}),
        ),
    ]
}

fn routing() -> Vec<Field> {
    vec![
        plain("effort", "/effort", json!({"effort": "low"})),
        plain("verbosity", "/verbosity", json!({"verbosity": "low"})),
        plain(
            "service_tier",
            "/service_tier",
            json!({"service_tier": "flex"}),
        ),
        plain(
            "vendor_safeguards",
            "/vendor_safeguards",
            json!({"vendor_safeguards": {"safeguards": [{"type": "dangerous_tool_use"}], "betas": ["dangerous-tool-use-2026-09-03"]}}),
        ),
        plain("routing", "/routing", json!({"routing": "price"})),
        plain(
            "free_models_only",
            "/free_models_only",
            json!({"free_models_only": true}),
        ),
        plain("onboarding", "/onboarding", json!({"onboarding": true})),
        plain(
            "no_reasoning",
            "/no_reasoning",
            json!({"no_reasoning": true}),
        ),
        plain(
            "sensitive_word_check",
            "/sensitive_word_check",
            json!({"sensitive_word_check": {"status": "ENABLE"}}),
        ),
        plain("web_search", "/web_search", json!({"web_search": true})),
        member(
            "plugins",
            "/plugins",
            json!({"plugins": [{"id": "response-healing"}], "response_format": {"type": "json_object"}}),
            json!({"response_format": {"type": "json_object"}}),
        ),
    ]
}

/// Members of `image_config`, beside one that says nothing.
fn drawing() -> Vec<Field> {
    let member = |name, pointer, members: Value| Field {
        name,
        pointer,
        with: with(base(), &json!({"image_config": members})),
        without: with(base(), &json!({"image_config": {"n": 1}})),
    };
    vec![
        member(
            "image_config.aspect_ratio",
            "/image_config/aspect_ratio",
            json!({"aspect_ratio": "3:2"}),
        ),
        member(
            "image_config.image_size",
            "/image_config/image_size",
            json!({"image_size": "1536x1024"}),
        ),
        member(
            "image_config.image_quality",
            "/image_config/image_quality",
            json!({"image_quality": "high"}),
        ),
        member(
            "image_config.moderation",
            "/image_config/moderation",
            json!({"moderation": "low"}),
        ),
        member("image_config.n", "/image_config/n", json!({"n": 2})),
        member(
            "image_config.seed",
            "/image_config/seed",
            json!({"seed": 7}),
        ),
    ]
}

fn convention() -> Vec<Field> {
    let logprobs = json!({"logprobs": true});
    vec![
        plain("stop", "/stop", json!({"stop": ["x"]})),
        plain("stop, blank", "/stop", json!({"stop": ["\n\n"]})),
        plain(
            "stop, more than five",
            "/stop",
            json!({"stop": ["1", "2", "3", "4", "5", "6"]}),
        ),
        plain("seed", "/seed", json!({"seed": 7})),
        plain(
            "logit_bias",
            "/logit_bias",
            json!({"logit_bias": {"50256": -100}}),
        ),
        plain("logprobs", "/logprobs", logprobs),
        plain("top_logprobs", "/top_logprobs", json!({"top_logprobs": 3})),
        plain(
            "safety_identifier",
            "/safety_identifier",
            json!({"safety_identifier": "s"}),
        ),
        plain("store", "/store", json!({"store": true})),
        plain("metadata", "/metadata", json!({"metadata": {"a": "b"}})),
        plain(
            "prediction",
            "/prediction",
            json!({"prediction": {"type": "content", "content": "a"}}),
        ),
        plain(
            "modalities: image",
            "/modalities",
            json!({"modalities": ["text", "image"]}),
        ),
        plain(
            "modalities: audio",
            "/modalities",
            json!({"modalities": ["text", "audio"]}),
        ),
        plain(
            "audio",
            "/audio",
            json!({"audio": {"format": "wav", "voice": "a"}}),
        ),
        plain(
            "functions",
            "/functions",
            json!({"functions": [{"name": "f"}]}),
        ),
        plain(
            "function_call",
            "/function_call",
            json!({"function_call": "auto"}),
        ),
    ]
}

/// A conversation of which one message has these members too.
fn in_message(name: &'static str, pointer: &'static str, at: usize, members: Value) -> Field {
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let without = json!({"model": "m", "tools": [function()], "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Well.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a"},
        {"role": "user", "content": "Go on"}]});
    let mut changed = without.clone();
    if let Some(message) = changed["messages"].get_mut(at) {
        *message = with(message.clone(), &members);
    }
    Field {
        name,
        pointer,
        with: changed,
        without,
    }
}

fn messages() -> Vec<Field> {
    let details = |format: &str| json!({"reasoning_details": [{"type": "reasoning.text", "format": format, "text": "t", "signature": MAKER.seal(Dialect::Messages, "s")}]});
    let signed = json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "s"}}});
    let picture = json!([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": SMALL_IMAGE}}]);
    let items = json!([{"text": "a", "phase": "commentary", "preceding_tool_calls": 0}]);
    vec![
        in_message(
            "messages[].role: developer",
            "/messages/0/role",
            0,
            json!({"role": "developer"}),
        ),
        in_message(
            "messages[].content",
            "/messages/1/content",
            1,
            json!({"content": "Hello"}),
        ),
        in_message(
            "messages[].name",
            "/messages/1/name",
            1,
            json!({"name": "ann"}),
        ),
        in_message(
            "messages[].tool_calls[].extra_content",
            "/messages/2/tool_calls",
            2,
            json!({"tool_calls": [signed]}),
        ),
        in_message(
            "messages[].reasoning",
            "/messages/2/reasoning",
            2,
            json!({"reasoning": "r"}),
        ),
        in_message(
            "messages[].reasoning_content",
            "/messages/2/reasoning_content",
            2,
            json!({"reasoning_content": "r"}),
        ),
        in_message(
            "messages[].reasoning_details, of this provider",
            "/messages/2/reasoning_details",
            2,
            details("anthropic-claude-v1"),
        ),
        in_message(
            "messages[].reasoning_details, of another",
            "/messages/2/reasoning_details",
            2,
            details("other"),
        ),
        in_message(
            "messages[].images",
            "/messages/2/images",
            2,
            json!({"images": [{"type": "image_url", "image_url": {"url": SMALL_IMAGE}}]}),
        ),
        in_message(
            "messages[].phase",
            "/messages/2/phase",
            2,
            json!({"phase": "commentary"}),
        ),
        in_message(
            "messages[].content_before_tool_calls",
            "/messages/2/content_before_tool_calls",
            2,
            json!({"content_before_tool_calls": true}),
        ),
        in_message(
            "messages[].message_items",
            "/messages/2/message_items",
            2,
            json!({"message_items": items}),
        ),
        in_message(
            "messages[].vendor_native_blocks, of this provider",
            "/messages/2/vendor_native_blocks",
            2,
            json!({"vendor_native_blocks": [native(Dialect::Messages), native(Dialect::Contents)]}),
        ),
        in_message(
            "messages[].vendor_native_blocks, of no named one",
            "/messages/2/vendor_native_blocks",
            2,
            json!({"vendor_native_blocks": [{"type": "web_search_tool_result", "tool_use_id": "s", "toolCall": {"id": "s"}}]}),
        ),
        in_message(
            "messages[].vendor_native_blocks, of another",
            "/messages/2/vendor_native_blocks",
            2,
            json!({"vendor_native_blocks": [{"type": "web_search_tool_result", "tool_use_id": "s", "toolCall": {"id": "s"}, "origin": Maker { family: "q", ..MAKER }.any_model().seal(Dialect::Messages, "")}]}),
        ),
        in_message(
            "messages[].tool_result_cache_control",
            "/messages/3/tool_result_cache_control",
            3,
            json!({"tool_result_cache_control": {"type": "ephemeral"}}),
        ),
        in_message(
            "messages[].content[].image_url, in the result of a tool",
            "/messages/3/content",
            3,
            json!({"content": picture}),
        ),
    ]
}

/// A user's message with one part more than without it.
fn part(name: &'static str, part: Value) -> Field {
    let text = json!({"type": "text", "text": "Hi"});
    let message =
        |parts: Value| json!({"model": "m", "messages": [{"role": "user", "content": parts}]});
    Field {
        name,
        pointer: "/messages/0/content/1",
        with: message(json!([text, part])),
        without: message(json!([text])),
    }
}

/// A user's message with one part, which has these members more than without them.
fn in_part(name: &'static str, pointer: &'static str, plain: &Value, members: Value) -> Field {
    let message =
        |part: Value| json!({"model": "m", "messages": [{"role": "user", "content": [part]}]});
    Field {
        name,
        pointer,
        with: message(with(plain.clone(), &members)),
        without: message(plain.clone()),
    }
}

fn parts() -> Vec<Field> {
    let text = json!({"type": "text", "text": "Hi"});
    let image = json!({"type": "image_url", "image_url": {"url": SMALL_IMAGE}});
    let detailed = json!({"image_url": {"url": SMALL_IMAGE, "detail": "low"}});
    let mark = json!({"prompt_cache_breakpoint": {"mode": "explicit"}});
    let signed = json!({"extra_content": {"google": {"thought_signature": "s"}}});
    let url = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let file = |file: Value| json!({"type": "file", "file": file});
    vec![
        part("text", json!({"type": "text", "text": "more"})),
        in_part(
            "text: extra_content",
            "/messages/0/content/0",
            &text,
            signed,
        ),
        in_part(
            "text: cache_control",
            "/messages/0/content/0",
            &text,
            json!({"cache_control": {"type": "ephemeral", "ttl": "1h"}}),
        ),
        in_part(
            "text: prompt_cache_breakpoint",
            "/messages/0/content/0",
            &text,
            mark.clone(),
        ),
        part("image_url: data URL", image.clone()),
        part("image_url: https", url("https://a.test/b.png")),
        in_part(
            "messages[].content[].image_url.detail",
            "/messages/0/content/0",
            &image,
            detailed,
        ),
        in_part(
            "image_url: prompt_cache_breakpoint",
            "/messages/0/content/0",
            &image,
            mark,
        ),
        part(
            "input_audio",
            json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
        ),
        part(
            "file: file_data, PDF",
            file(json!({"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"})),
        ),
        part(
            "input_audio: mpga",
            json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mpga"}}),
        ),
        part(
            "input_audio: m4a",
            json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "m4a"}}),
        ),
        part(
            "file: file_data, without a name",
            file(json!({"file_data": "data:application/pdf;base64,AAAA"})),
        ),
        part(
            "file: file_data, other",
            file(json!({"filename": "a.csv", "file_data": "data:text/csv;base64,YSxi"})),
        ),
        part(
            "file: file_id, of the named provider",
            file(json!({"file_id": "files/f"})),
        ),
    ]
}

/// A block of a tool that a provider ran, as clients get it.
fn native(dialect: Dialect) -> Value {
    json!({"type": "web_search_tool_result", "tool_use_id": "s", "toolCall": {"id": "s"}, "format": dialect.state_format(),
        "origin": MAKER.any_model().seal(dialect, "")})
}
