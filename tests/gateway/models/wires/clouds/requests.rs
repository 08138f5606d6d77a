//! What hosts of clouds get, which are as strict as their vendors.

use serde_json::{Value, json};

use super::{SaidByModel, ask_model, fronts};
use crate::models::fronts::promises::Api;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::ask;
use crate::support::clouds::{
    CLOUDS, CloudHosts, CloudWire, Dialect, SignIn, Vendor, cloud, model_of, strict,
};
use crate::support::scripted::{Asked, Said, Turn};

/// Clients that send a user's name in JSON, as one does.
const USER: &str = "{\"device\":\"a\",\"session\":\"b\"}";

/// A model that calls a tool, and tells its result.
fn calls_and_tells(_: &CloudWire, asked: &Asked) -> Said {
    match asked.has_result {
        true => Turn::text(format!("The tool said: {}", asked.results.join(", "))).into(),
        false => Turn::text("I look.")
            .and_call("get_weather", json!({"city": "Paris"}))
            .into(),
    }
}

/// A request with many members; `has_result`: behind the call.
fn rich(api: &Api, cloud: &CloudWire, (is_stream, has_result): (bool, bool)) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let result = "twenty degrees";
    let mut body = match api.path {
        "/v1/messages" => {
            let call = json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}});
            let answered =
                json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": result});
            json!({"max_tokens": 1000, "system": [{"type": "text", "text": "Be short."}], "temperature": 0.5,
                "stop_sequences": ["END"], "metadata": {"user_id": USER},
                "tools": [{"name": "get_weather", "description": "Tells the weather", "input_schema": schema, "strict": true}],
                "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [call]},
                    {"role": "user", "content": [answered]}]})
        }
        "/v1/responses" => {
            let call = json!({"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{\"city\":\"Paris\"}"});
            let answered =
                json!({"type": "function_call_output", "call_id": "call_1", "output": result});
            json!({"instructions": "Be short.", "temperature": 0.5, "max_output_tokens": 1000, "user": USER, "store": false,
                "tools": [{"type": "function", "name": "get_weather", "parameters": schema}],
                "input": [{"role": "user", "content": "Hi"}, call, answered]})
        }
        _ => {
            let call = json!({"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\":\"Paris\"}"}});
            json!({"temperature": 0.5, "stop": ["END"], "max_tokens": 1000, "user": USER, "seed": 1, "tool_choice": "auto",
                "parallel_tool_calls": true, "stream_options": {"include_usage": true},
                "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": schema}}],
                "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": null, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "call_1", "content": result}]})
        }
    };
    body["stream"] = is_stream.into();
    if cloud.dialect == Dialect::Items && api.path == "/v1/chat/completions" {
        // Responses have no stop sequences, which a chat is told.
        body.as_object_mut().unwrap().remove("stop");
    }
    if !has_result {
        let history = if api.path == "/v1/responses" {
            "input"
        } else {
            "messages"
        };
        let turns = body[history].as_array_mut().unwrap();
        turns.truncate(turns.len() - 2);
    }
    if !is_stream {
        body.as_object_mut().unwrap().remove("stream_options");
    }
    body
}

#[test]
fn no_cloud_refuses_what_any_front_sends_it() {
    let hosts = CloudHosts::start(calls_and_tells);
    let gateway = hosts.gateway("", "");
    for cloud in &CLOUDS {
        for (api, is_stream) in fronts().iter().flat_map(|api| [(api, false), (api, true)]) {
            let said = [false, true].map(|has_result| {
                let body = rich(api, cloud, (is_stream, has_result));
                let answer = ask_model(&gateway, api, cloud.id, body);
                let (id, path, refused) = (cloud.id, api.path, hosts.refusals());
                assert!(refused.is_empty(), "{path}: {refused:?}");
                assert_eq!(answer.status(), 200, "{id} {path}: {}", answer.text());
                SaidByModel::read(&answer)
            });
            let [called, told] = said;
            let input: Value = serde_json::from_str(&called.input).unwrap();
            assert_eq!(input["city"], "Paris", "{} {}", cloud.id, api.path);
            assert_eq!(called.text, "I look.");
            assert_eq!(told.text, "The tool said: twenty degrees");
        }
        let host = hosts.host(cloud.id);
        let paths: Vec<String> = host.requests().into_iter().map(|it| it.path).collect();
        for path in cloud.paths {
            assert!(paths.iter().any(|it| it == path), "{path} was not asked");
        }
    }
}

/// A check that cannot fail would prove nothing.
#[test]
fn the_hosts_refuse_what_their_vendors_refuse() {
    let hosts = CloudHosts::start(calls_and_tells);
    let gateway = hosts.gateway("", "");
    let api = &fronts()[0];
    for cloud in &CLOUDS {
        let answer = ask_model(&gateway, api, cloud.id, rich(api, cloud, (false, false)));
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let good = hosts.host(cloud.id).request(0);
        assert!(strict::check(cloud, &good).is_ok());
        let change = |key: &str, value: &str| {
            let mut body = good.json();
            body[key] = value.into();
            strict::check_body(cloud, &good.path, &body)
        };
        assert!(change("inference_geo", "eu").is_err(), "{}", cloud.id);
        assert!(change("model", "another").is_err(), "{}", cloud.id);
        let mut other = good.clone();
        other.path.push('x');
        assert!(strict::check(cloud, &other).is_err(), "{}", cloud.id);
        let mut other = good.clone();
        other.headers.push(("x-goog-api-key".into(), "k".into()));
        assert!(strict::check(cloud, &other).is_err(), "{}", cloud.id);
        let mut other = good;
        other.body.push(b' ');
        let is_signed = cloud.sign_in == SignIn::Signature;
        assert_eq!(
            strict::check(cloud, &other).is_err(),
            is_signed,
            "{}",
            cloud.id
        );
    }
}

/// A client of the dialect says `stream: false` at times, its betas, and what the vendor added last.
#[test]
fn claude_on_a_cloud_gets_what_its_clients_say_and_it_takes() {
    let hosts = CloudHosts::start(calls_and_tells);
    let gateway = hosts.gateway("", "");
    let format = json!({"type": "json_schema", "schema": {"type": "object"}});
    let body = |model: &str| {
        json!({"model": model, "max_tokens": 16, "messages": [{"role": "user", "content": "Hi"}], "stream": false,
            "metadata": {"user_id": USER}, "output_config": {"effort": "low", "format": format},
            "thinking": {"type": "adaptive"}, "tools": [{"name": "f", "input_schema": {"type": "object"}, "strict": true}]})
    };
    let clouds = [
        "azure-messages",
        "bedrock-messages",
        "claude-on-aws",
        "vertex-messages",
    ];
    for id in clouds {
        let asked = Ask::post("/v1/messages?beta=true", body(id).to_string()).key(&gateway.key);
        let asked = asked.header("anthropic-beta", "context-management-2025-06-27");
        let answer = ask(gateway.address(), &asked);
        assert_eq!(answer.status(), 200, "{id}: {}", answer.text());
        assert!(hosts.refusals().is_empty());
        let request = hosts.host(id).request(0);
        let beta = request.header("anthropic-beta");
        assert_eq!(beta, Some("context-management-2025-06-27"), "{id}");
        let sent = request.json();
        assert_eq!(sent["thinking"], json!({"type": "adaptive"}), "{id}");
        let is_bedrock = cloud(id).vendor == Vendor::Bedrock;
        assert_eq!(
            sent["output_config"].get("format").is_none(),
            is_bedrock,
            "{id}"
        );
        assert_eq!(sent["output_config"]["effort"], "low", "{id}");
        assert_eq!(sent["metadata"]["user_id"] == USER, !is_bedrock, "{id}");
    }
    users_are_told_apart_on_bedrock(&hosts, &gateway);
}

/// Vertex knows no tier in a body, whoever asks for one.
#[test]
fn a_tier_on_vertex_is_named_in_a_header() {
    let hosts = CloudHosts::start(calls_and_tells);
    let models = model_of("tiered", &["vertex-gemini"]);
    let gateway = hosts.gateway("", &format!("{models}service_tiers = [\"flex\"]\n"));
    let chat = json!({"model": "tiered", "service_tier": "flex", "messages": [{"role": "user", "content": "Hi"}]});
    let asked = gateway.chat_ask(chat.to_string());
    let contents =
        json!({"serviceTier": "flex", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]});
    let own = Ask::post(
        "/v1beta/models/tiered:generateContent",
        contents.to_string(),
    );
    for asked in [asked, own.key(&gateway.key)] {
        let answer = ask(gateway.address(), &asked);
        let refused = hosts.refusals();
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }
    let plain = json!({"model": "tiered", "messages": [{"role": "user", "content": "Hi"}]});
    assert_eq!(gateway.chat(plain.to_string()).status(), 200);
    let requests = hosts.host("vertex-gemini").requests();
    let header = "x-vertex-ai-llm-shared-request-type";
    let tiers = requests.iter().map(|it| it.header(header));
    let tiers: Vec<Option<&str>> = tiers.collect();
    assert_eq!(tiers, [Some("flex"), Some("flex"), None]);
}

fn users_are_told_apart_on_bedrock(hosts: &CloudHosts, gateway: &Gateway) {
    let plain = json!({"model": "bedrock-messages", "messages": [{"role": "user", "content": "Hi"}], "user": USER});
    assert_eq!(gateway.chat(plain.to_string()).status(), 200);
    let requests = hosts.host("bedrock-messages").requests();
    let users = requests
        .iter()
        .map(|it| it.json()["metadata"]["user_id"].clone());
    let users: Vec<Value> = users.collect();
    assert_eq!(users[0], users[1]);
    assert_eq!(users[0].as_str().unwrap().len(), 32);
    // A form of answers is a call that is forced there.
    let asked = json!({"model": "bedrock-messages", "messages": [{"role": "user", "content": "Hi"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}});
    let _ = gateway.chat(asked.to_string());
    let refused = hosts.refusals();
    assert!(refused.is_empty(), "{refused:?}");
    let requests = hosts.host("bedrock-messages").requests();
    let forced = requests.last().unwrap().json();
    assert_eq!(forced["tool_choice"]["type"], "tool", "{forced}");
    assert_eq!(forced["tools"][0]["name"], forced["tool_choice"]["name"]);
}
