//! Models of clouds that speak no chat: which wire they are asked over, and forms of answers that a host of Claude refuses.

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

const BEDROCK: &str = "kind = \"bedrock\"\nregion = \"eu-west-1\"\n";
const VERTEX: &str = "kind = \"vertex\"\nproject = \"my-project\"\nregion = \"europe-west1\"\n";
const PROFILE: &str = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/a1";
const INVOKED: &str =
    "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Aapplication-inference-profile%2Fa1/invoke";
const PUBLISHER: &str = "/v1/projects/my-project/locations/europe-west1/publishers/google/models/";

/// A gateway whose model `m` of a type is at one provider; `mapping` are more keys of its mapping.
fn gateway(cloud: &Upstream, provider: &str, kind: &str, name: &str, mapping: &str) -> Gateway {
    let toml = format!(
        "[providers.cloud]\nbase_url = \"{}\"\nkeys = [{{ env = \"CLOUD_KEY\" }}]\n{provider}",
        cloud.url()
    );
    let models = format!(
        "[[models]]\nid = \"m\"\ntype = \"{kind}\"\n[[models.providers]]\nprovider = \"cloud\"\nname = \"{name}\"\n\
         input_price = \"1\"\noutput_price = \"2\"\n{mapping}\n"
    );
    Gateway::start_with_env(&toml, &models, &[("CLOUD_KEY", "cloud-key")])
}

fn post(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    let asked = Ask::post(path, body.to_string()).key(&gateway.key);
    ask(gateway.address(), &asked)
}

/// A vector for each input, in the words of the path and the body that it is asked at.
fn vectors(request: &Received) -> Reply {
    let body = request.json();
    let reply = match body.get("inputText") {
        Some(_) => json!({"embedding": [0.5, 1], "inputTextTokenCount": 3}),
        None if body.get("content").is_some() => {
            json!({"embedding": {"values": [0.5, 1]}, "usageMetadata": {"promptTokenCount": 3}})
        }
        None if body.get("texts").is_some() => json!({"embeddings": {"float": [[0.5, 1], [2, 3]]}}),
        None => {
            let prediction =
                json!({"embeddings": {"values": [0.5, 1], "statistics": {"token_count": 3}}});
            json!({"predictions": [prediction, prediction]})
        }
    };
    let json = ("content-type", "application/json");
    let tokens = ("x-amzn-bedrock-input-token-count", "6");
    Reply::whole(200, &[json, tokens], reply.to_string())
}

#[test]
fn embeddings_of_clouds_are_asked_for_over_the_wire_of_their_model() {
    for (provider, name, mapping, path, count) in [
        (
            BEDROCK,
            PROFILE,
            "base_model = \"amazon.titan-embed-text-v2:0\"",
            INVOKED.to_owned(),
            2,
        ),
        (
            BEDROCK,
            PROFILE,
            "base_model = \"cohere.embed-v4:0\"",
            INVOKED.to_owned(),
            1,
        ),
        (BEDROCK, PROFILE, "wire = \"titan\"", INVOKED.to_owned(), 2),
        (
            VERTEX,
            "text-embedding-005",
            "",
            format!("{PUBLISHER}text-embedding-005:predict"),
            1,
        ),
        (
            VERTEX,
            "gemini-embedding-2",
            "",
            format!("{PUBLISHER}gemini-embedding-2:embedContent"),
            2,
        ),
        (
            VERTEX,
            "tuned",
            "wire = \"predict\"",
            format!("{PUBLISHER}tuned:predict"),
            1,
        ),
    ] {
        let cloud = Upstream::answering(vectors);
        let gateway = gateway(&cloud, provider, "embedding", name, mapping);
        let body = json!({"model": "m", "input": ["a", "b"]});
        let answer = post(&gateway, "/v1/embeddings", &body);
        assert_eq!(answer.status(), 200, "{name} {mapping}: {}", answer.text());
        let answer = answer.json();
        assert_eq!(answer["data"].as_array().unwrap().len(), 2, "{name}");
        assert_eq!(answer["data"][0]["embedding"], json!([0.5, 1]), "{name}");
        assert_eq!(answer["usage"]["prompt_tokens"], 6, "{name} {mapping}");
        let requests = cloud.requests();
        assert_eq!(requests.len(), count, "{name} {mapping}");
        for request in requests {
            assert_eq!(request.path, path);
            assert_eq!(request.header("authorization"), Some("Bearer cloud-key"));
        }
    }
}

#[test]
fn documents_are_ranked_by_models_that_are_invoked() {
    let results =
        json!([{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.25}]);
    let cloud = Upstream::always(Reply::json(200, json!({ "results": results }).to_string()));
    let base = "base_model = \"cohere.rerank-v3-5:0\"";
    let gateway = gateway(&cloud, BEDROCK, "rerank", PROFILE, base);
    let body = json!({"model": "m", "query": "q", "documents": ["a", "b"]});
    let answer = post(&gateway, "/v1/rerank", &body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(answer.json()["results"], results);
    let request = cloud.request(0);
    assert_eq!(request.path, INVOKED);
    let expected = json!({"api_version": 2, "query": "q", "documents": ["a", "b"]});
    assert_eq!(request.json(), expected);
}

#[test]
fn images_are_predictions_and_tiers_are_headers_on_googles_cloud() {
    let image = json!({"bytesBase64Encoded": "aGk=", "mimeType": "image/png"});
    let cloud = Upstream::always(Reply::json(
        200,
        json!({ "predictions": [image] }).to_string(),
    ));
    let tiers = "image_price = \"0.04\"\nservice_tiers = [\"flex\", \"priority\"]";
    let gateway = gateway(&cloud, VERTEX, "image", "imagen-4.0-generate-001", tiers);
    let body = json!({"model": "m", "prompt": "a cat", "service_tier": "priority"});
    let answer = post(&gateway, "/v1/images/generations", &body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(answer.json()["data"], json!([{"b64_json": "aGk="}]));
    let request = cloud.request(0);
    assert_eq!(
        request.path,
        format!("{PUBLISHER}imagen-4.0-generate-001:predict")
    );
    let kind = request.header("x-vertex-ai-llm-request-type");
    let shared = request.header("x-vertex-ai-llm-shared-request-type");
    assert_eq!((kind, shared), (Some("shared"), Some("priority")));
    let edit = json!({"model": "m", "prompt": "a cat", "images": [{"image_url": "data:image/png;base64,iVBORw0KGgo="}]});
    assert_eq!(post(&gateway, "/v1/images/edits", &edit).status(), 400);
}

/// Claude, which is made to call.
fn called(request: &Received) -> Reply {
    let usage = json!({"input_tokens": 5, "output_tokens": 2});
    if request.json()["stream"] != true {
        let call = json!({"type": "tool_use", "id": "toolu_1", "name": "n", "input": {"a": 1}});
        let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use",
            "content": [call], "usage": usage});
        return Reply::json(200, body.to_string());
    }
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage});
    let block = json!({"type": "tool_use", "id": "toolu_1", "name": "n", "input": {}});
    let delta = |json: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": json}});
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        delta("{\"a\""),
        delta(":1}"),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    let send = |reply: Reply, event: &Value| {
        reply.named_event(event["type"].as_str().unwrap(), &event.to_string())
    };
    events.iter().fold(Reply::stream(), send).end()
}

#[test]
fn a_schema_for_claude_on_bedrock_is_a_call_that_is_forced() {
    let cloud = Upstream::answering(called);
    let wire = "wire = \"messages\"";
    let gateway = gateway(&cloud, BEDROCK, "chat", "eu.claude", wire);
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let asked = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}});
    let whole = gateway.chat(asked.to_string());
    assert_eq!(whole.status(), 200, "{}", whole.text());
    let choice = &whole.json()["choices"][0];
    assert_eq!(choice["message"]["content"], "{\"a\":1}");
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["message"].get("tool_calls"), None);
    let sent = cloud.request(0).json();
    assert_eq!(sent["tools"][0]["input_schema"], schema);
    assert_eq!(sent["tool_choice"]["name"], "n");
    assert_eq!(sent.get("output_config"), None);
    let mut streamed = asked.clone();
    streamed["stream"] = true.into();
    let stream = gateway.chat(streamed.to_string()).events();
    assert!(stream.is_done());
    assert_eq!(stream.content(), "{\"a\":1}");
    // Responses say the same.
    let format = json!({"type": "json_schema", "name": "n", "schema": schema});
    let body = json!({"model": "m", "input": "Hi", "text": {"format": format}});
    let answer = post(&gateway, "/v1/responses", &body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let output = &answer.json()["output"][0];
    assert_eq!(output["content"][0]["text"], "{\"a\":1}");
    // Beside functions nothing can be forced.
    let mut with_tools = asked;
    with_tools["tools"] =
        json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
    let refused = gateway.chat(with_tools.to_string());
    assert_eq!(
        (refused.status(), &refused.json()["error"]["param"]),
        (400, &json!("response_format"))
    );
}
