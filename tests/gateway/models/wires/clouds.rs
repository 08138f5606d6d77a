//! Clouds: which paths, headers and bodies their hosts get, over each of their wires.

use serde_json::{Value, json};

use crate::models::fronts::chat_completions::{PLAIN, STREAM};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

/// A gateway whose model `chat` is at one provider, over a wire.
fn gateway(cloud: &Upstream, provider: &str, wire: &str, name: &str) -> Gateway {
    let toml = format!(
        "[providers.cloud]\nbase_url = \"{}\"\nkeys = [{{ env = \"CLOUD_KEY\" }}]\n{provider}",
        cloud.url()
    );
    let models = format!(
        "[[models]]\nid = \"chat\"\n[[models.providers]]\nprovider = \"cloud\"\nname = \"{name}\"\n{wire}\n\
         input_price = \"1\"\noutput_price = \"2\"\ncapabilities = [\"streaming\", \"tools\", \"json_object\", \"json_schema\"]\n"
    );
    Gateway::start_with_env(&toml, &models, &[("CLOUD_KEY", "cloud-key")])
}

/// A host that says hello in the words of the path that it is asked at.
fn answer(request: &Received) -> Reply {
    let path = &request.path;
    if path.contains("/converse") {
        let message = json!({"role": "assistant", "content": [{"text": "hello"}]});
        let usage = json!({"inputTokens": 5, "outputTokens": 2, "totalTokens": 7});
        let body =
            json!({"output": {"message": message}, "stopReason": "end_turn", "usage": usage});
        return Reply::json(200, body.to_string());
    }
    if path.contains("/messages") || path.contains("awPredict") {
        let usage = json!({"input_tokens": 5, "output_tokens": 2});
        let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "hello"}], "usage": usage});
        return Reply::json(200, body.to_string());
    }
    if path.contains("/responses") {
        let part = json!({"type": "output_text", "text": "hello", "annotations": []});
        let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]});
        let body = json!({"id": "resp_1", "object": "response", "created_at": 5, "status": "completed", "model": "m", "output": [item],
            "usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}});
        return Reply::json(200, body.to_string());
    }
    if path.contains(":generateContent") {
        let body = json!({"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [{"text": "hello"}]}}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}});
        return Reply::json(200, body.to_string());
    }
    let message = json!({"role": "assistant", "content": "hello"});
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 5, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}});
    Reply::json(200, body.to_string())
}

/// A provider, the wire of its mapping, the upstream's name of the model, and what the host gets: path, header of the key, and the
/// model of the body.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    (&'static str, &'static str),
    Option<&'static str>,
);

const AZURE: &str = "kind = \"azure\"\n";
const DATED: &str = "kind = \"azure\"\napi = \"2024-10-21\"\n";
const BEDROCK: &str = "kind = \"bedrock\"\nregion = \"eu-west-1\"\n";
const AWS_ANTHROPIC: &str =
    "kind = \"aws-anthropic\"\nregion = \"eu-west-1\"\nworkspace = \"wrkspc_1\"\n";
const VERTEX: &str = "kind = \"vertex\"\nproject = \"my-project\"\nregion = \"europe-west1\"\n";
const API_KEY: (&str, &str) = ("api-key", "cloud-key");
const BEARER: (&str, &str) = ("authorization", "Bearer cloud-key");
const PROFILE: &str = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/a1";
const PLACE: &str = "/v1/projects/my-project/locations/europe-west1";

const CASES: [Case; 12] = [
    (
        AZURE,
        "",
        "gpt",
        "/openai/v1/chat/completions",
        API_KEY,
        Some("gpt"),
    ),
    (
        AZURE,
        "wire = \"responses\"",
        "gpt",
        "/openai/v1/responses",
        API_KEY,
        Some("gpt"),
    ),
    (
        AZURE,
        "wire = \"messages\"",
        "claude",
        "/anthropic/v1/messages",
        API_KEY,
        Some("claude"),
    ),
    (
        DATED,
        "",
        "my gpt",
        "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
        API_KEY,
        Some("my gpt"),
    ),
    (
        DATED,
        "wire = \"responses\"",
        "gpt",
        "/openai/v1/responses",
        API_KEY,
        Some("gpt"),
    ),
    (
        BEDROCK,
        "",
        PROFILE,
        "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fa1/converse",
        BEARER,
        None,
    ),
    (
        BEDROCK,
        "wire = \"chat\"",
        "openai.gpt-oss",
        "/openai/v1/chat/completions",
        BEARER,
        Some("openai.gpt-oss"),
    ),
    (
        BEDROCK,
        "wire = \"responses\"",
        "openai.gpt",
        "/openai/v1/responses",
        BEARER,
        Some("openai.gpt"),
    ),
    (
        BEDROCK,
        "wire = \"messages\"",
        "eu.claude",
        "/anthropic/v1/messages",
        BEARER,
        Some("eu.claude"),
    ),
    (
        AWS_ANTHROPIC,
        "",
        "claude",
        "/v1/messages",
        ("x-api-key", "cloud-key"),
        Some("claude"),
    ),
    (
        VERTEX,
        "",
        "gemini",
        "/publishers/google/models/gemini:generateContent",
        BEARER,
        None,
    ),
    (
        VERTEX,
        "wire = \"messages\"",
        "claude@20250929",
        "/publishers/anthropic/models/claude%4020250929:rawPredict",
        BEARER,
        None,
    ),
];

#[test]
fn each_wire_of_a_cloud_has_its_path_its_key_and_its_model() {
    for (provider, wire, name, path, (header, key), model) in CASES {
        let cloud = Upstream::answering(answer);
        let gateway = gateway(&cloud, provider, wire, name);
        let whole = gateway.chat(PLAIN);
        assert_eq!(whole.status(), 200, "{provider}{wire}: {}", whole.text());
        let whole = whole.json();
        assert_eq!(
            whole["choices"][0]["message"]["content"], "hello",
            "{provider}{wire}"
        );
        assert_eq!(whole["usage"]["prompt_tokens"], 5, "{provider}{wire}");
        let request = cloud.request(0);
        let path = match provider {
            VERTEX => [PLACE, path].concat(),
            _ => path.to_owned(),
        };
        assert_eq!(request.path, path);
        assert_eq!(request.header(header), Some(key), "{path}");
        let body = request.json();
        assert_eq!(
            body.get("model").and_then(Value::as_str),
            model,
            "{path}: {body}"
        );
        let version = (provider == VERTEX && !wire.is_empty()).then_some("vertex-2023-10-16");
        assert_eq!(
            body.get("anthropic_version").and_then(Value::as_str),
            version
        );
    }
}

#[test]
fn streams_of_claude_on_vertex_have_a_path_of_their_own() {
    let events = [
        (
            "message_start",
            json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        ),
        (
            "content_block_start",
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}}),
        ),
        (
            "content_block_stop",
            json!({"type": "content_block_stop", "index": 0}),
        ),
        (
            "message_delta",
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        ),
        ("message_stop", json!({"type": "message_stop"})),
    ];
    let send =
        |reply: Reply, (name, event): &(&str, Value)| reply.named_event(name, &event.to_string());
    let reply = events.iter().fold(Reply::stream(), send).end();
    let cloud = Upstream::always(reply);
    let gateway = gateway(&cloud, VERTEX, "wire = \"messages\"", "claude");
    let stream = gateway.chat(STREAM).events();
    assert!(stream.is_done());
    assert_eq!(stream.content(), "hello");
    let path = "/publishers/anthropic/models/claude:streamRawPredict";
    assert_eq!(cloud.request(0).path, [PLACE, path].concat());
    // A client of the dialect gets the same, and says neither the model nor its version.
    let body = json!({"model": "chat", "max_tokens": 16, "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let asked = Ask::post("/v1/messages", body.to_string()).key(&gateway.key);
    assert_eq!(ask(gateway.address(), &asked).status(), 200);
    let sent = cloud.request(1).json();
    assert_eq!(
        (sent.get("model"), &sent["anthropic_version"]),
        (None, &json!("vertex-2023-10-16"))
    );
}

#[test]
fn bedrock_gets_no_members_of_claude_that_it_refuses() {
    let cloud = Upstream::answering(answer);
    let gateway = gateway(&cloud, BEDROCK, "wire = \"messages\"", "eu.claude");
    let user = "{\"device\":\"a\",\"session\":\"b\"}";
    let format = json!({"type": "json_schema", "schema": {"type": "object"}});
    let body = json!({"model": "chat", "max_tokens": 16, "messages": [{"role": "user", "content": "Hi"}],
        "metadata": {"user_id": user}, "output_config": {"effort": "low", "format": format},
        "tools": [{"name": "f", "input_schema": {"type": "object"}, "strict": true}]});
    let asked = Ask::post("/v1/messages", body.to_string()).key(&gateway.key);
    let answer = ask(gateway.address(), &asked);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let sent = cloud.request(0).json();
    assert_eq!(sent["output_config"], json!({"effort": "low"}));
    assert_eq!(
        sent["tools"],
        json!([{"name": "f", "input_schema": {"type": "object"}}])
    );
    let hashed = sent["metadata"]["user_id"].as_str().unwrap();
    assert!(
        hashed.len() == 32 && hashed.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{hashed}"
    );
    let line = gateway.log_line(answer.header("x-request-id").unwrap());
    assert_eq!(line["left_out_format"], true);
    let plain =
        json!({"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "user": user});
    assert_eq!(gateway.chat(plain.to_string()).status(), 200);
    assert_eq!(cloud.request(1).json()["metadata"]["user_id"], hashed);
}
