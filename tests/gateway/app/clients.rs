//! Real client libraries against the gateway; see `tests/clients`.

use crate::models::endpoints::prompt::greeting;
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::scripted;
use crate::support::sdk::{self, Script, Settings};
use crate::support::upstream::Upstream;

const MODELS: &str = r#"
[[models]]
id = "sandbox-chat"
family = "sandbox"
[[models.providers]]
provider = "sandbox"
name = "sandbox-chat"
input_price = "0.1"
output_price = "0.4"
capabilities = ["streaming", "tools", "parallel_tools", "forced_tools", "vision", "json_object", "json_schema", "reasoning", "n"]
[[models]]
id = "sandbox-image"
[[models.providers]]
provider = "sandbox"
name = "sandbox-image"
input_price = "0.1"
output_price = "0.4"
max_output = 4096
capabilities = ["streaming", "vision", "image_output"]
[[models]]
id = "sandbox-cut"
family = "sandbox"
[[models.providers]]
provider = "sandbox"
name = "sandbox-cut"
[[models]]
id = "sandbox-embedding"
type = "embedding"
[[models.providers]]
provider = "sandbox"
name = "sandbox-embedding"
max_inputs = 2
[[models]]
id = "sandbox-moderation"
type = "moderation"
[[models.providers]]
provider = "sandbox"
name = "sandbox-moderation"
[[models]]
id = "flaky"
family = "test"
[[models.providers]]
provider = "flaky"
name = "flaky"
[[models]]
id = "vectors"
type = "embedding"
[[models.providers]]
provider = "vectors"
name = "vectors"
[[models]]
id = "base"
[[models.providers]]
provider = "texts"
name = "base"
wire = "completions"
[[models]]
id = "speech"
type = "speech"
[[models.providers]]
provider = "sandbox"
name = "sandbox-speech"
[[models]]
id = "transcription"
type = "transcription"
operations = ["transcriptions", "translations"]
[[models.providers]]
provider = "sandbox"
name = "sandbox-transcription"
[[models]]
id = "sandbox-video"
type = "video"
[[models.providers]]
provider = "sandbox"
name = "sandbox-video"
output_second_price = "0.1"
"#;

fn accept(script: Script) {
    let flaky = Upstream::sequence([
        Reply::json(503, "{}"),
        crate::models::fronts::chat_completions::reply(),
    ]);
    let vectors = Upstream::always(crate::models::fronts::embeddings::vectors());
    let texts = Upstream::answering(crate::models::fronts::completions::said);
    let provider = |name: &str, upstream: &Upstream| {
        let url = upstream.url();
        format!(
            "[providers.{name}]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\n"
        )
    };
    let toml = [
        "[providers.sandbox]\nkind = \"sandbox\"\n".to_owned(),
        provider("flaky", &flaky),
        provider("vectors", &vectors),
        provider("texts", &texts),
    ]
    .concat();
    let gateway = Gateway::start(&toml, MODELS);
    let base_url = format!("http://{}/v1", gateway.address());
    let settings = Settings {
        base_url: &base_url,
        api_key: &gateway.key,
        model: "sandbox-chat",
        cut_model: "sandbox/sandbox-cut",
        flaky_model: "flaky",
        base_model: "base",
        embedding_model: "vectors",
        speech_model: "speech",
        transcription_model: "transcription",
    };
    sdk::run(script, &settings.variables(), &[]);
}

/// Contract: model-gateway 1 It accepts chat
/// Contract: model-gateway 1 Requests and responses
#[test]
fn the_openai_python_client_sees_no_difference() {
    accept(Script::OpenaiPython);
}

/// Contract: model-gateway 1 Requests and responses
#[test]
fn the_openai_node_client_sees_no_difference() {
    accept(Script::OpenaiNode);
}

const ITEMS: &str = r#"
[[models]]
id = "sandbox-rerank"
type = "rerank"
[[models.providers]]
provider = "sandbox"
name = "sandbox-rerank"
[[models]]
id = "sandbox-ocr"
type = "ocr"
[[models.providers]]
provider = "sandbox"
name = "sandbox-ocr"
[[models]]
id = "sandbox-search"
type = "search"
[[models.providers]]
provider = "sandbox"
name = "sandbox-search"
"#;

/// Contract: model-gateway 1 It accepts chat
#[test]
fn the_clients_of_other_apis_see_no_difference() {
    let gateway = Gateway::start("[providers.sandbox]\nkind = \"sandbox\"\n", ITEMS);
    let url = format!("http://{}", gateway.address());
    let variables = [("SERVER_URL", &*url), ("API_KEY", &gateway.key)];
    sdk::run(Script::ItemsPython, &variables, &[]);
}

/// Contract: graph-limits 8.1 5
#[test]
fn the_urql_client_sees_no_difference() {
    let toml = "[graph]\nupstream = \"sandbox\"\nwindow_s = 2\n\
                [[graph.tenants]]\nid = \"wide\"\nsingle_keys = [\"wide\"]\n\
                [[graph.tenants]]\nid = \"narrow\"\nsingle_keys = [\"narrow\"]\n\
                limits = { \"POST /content/v2\" = 1 }\n";
    let gateway = Gateway::start(toml, "");
    let url = format!("http://{}/content/v2", gateway.address());
    sdk::run(Script::UrqlNode, &[("GRAPH_URL", &url)], &[]);
}

/// The same provider on each wire.
fn accept_on_every_wire(script: Script) {
    accept_with(script, "", &[]);
}

/// Runs a script with more settings of the gateway and more variables.
fn accept_with(script: Script, settings: &str, more: &[(&str, &str)]) {
    let provider = scripted::provider();
    let gateway = scripted::gateway_with(&provider, settings, "", "1000");
    let base_url = format!("http://{}/v1", gateway.address());
    let models = scripted::MODELS.join(",");
    let own = [
        ("BASE_URL", &*base_url),
        ("API_KEY", &gateway.key),
        ("MODELS", &models),
    ];
    sdk::run(script, &[&own, more].concat(), &[]);
}

#[test]
fn openai_and_langchain_in_python_see_no_difference_between_wires() {
    accept_on_every_wire(Script::WiresPython);
}

#[test]
fn openai_and_the_ai_sdk_in_node_see_no_difference_between_wires() {
    accept_on_every_wire(Script::WiresNode);
}

#[test]
fn anthropic_in_python_sees_no_difference_between_wires() {
    accept_on_every_wire(Script::MessagesPython);
}

#[test]
fn anthropic_and_the_ai_sdk_in_node_see_no_difference_between_wires() {
    accept_on_every_wire(Script::MessagesNode);
}

#[test]
fn openai_in_python_sees_no_difference_between_wires_behind_responses() {
    accept_on_every_wire(Script::ResponsesPython);
}

#[test]
fn openai_and_the_ai_sdk_in_node_see_no_difference_between_wires_behind_responses() {
    accept_on_every_wire(Script::ResponsesNode);
}

#[test]
fn langchain_sees_no_difference_between_wires_behind_responses() {
    accept_on_every_wire(Script::LangchainPython);
}

#[test]
fn openai_in_python_goes_on_with_kept_responses_of_any_wire() {
    let keeps = "[responses]\nstore = true\n";
    accept_with(Script::ResponsesPython, keeps, &[("STORES", "true")]);
}

#[test]
fn google_genai_in_python_sees_no_difference_between_wires() {
    accept_on_every_wire(Script::ContentsPython);
}

#[test]
fn google_genai_in_node_sees_no_difference_between_wires() {
    accept_on_every_wire(Script::ContentsNode);
}

/// Runs a client of the Model Context Protocol.
fn accept_mcp(script: Script) {
    let models = MODELS.split("[[models]]").nth(1).unwrap();
    let toml = "[providers.sandbox]\nkind = \"sandbox\"\n\
                [[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"sandbox\"\n\
                [graph]\nupstream = \"sandbox\"\n[[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\n";
    let slow = models.replace("\"sandbox-chat\"", "\"sandbox-slow\"");
    let gateway = Gateway::start(toml, &format!("[[models]]{models}[[models]]{slow}"));
    gateway.put("support/hi", &[], &greeting());
    let url = format!("http://{}/mcp", gateway.address());
    let variables = [("MCP_URL", &*url), ("API_KEY", &gateway.key)];
    sdk::run(script, &variables, &[]);
}

#[test]
fn the_python_client_of_the_model_context_protocol_is_at_home() {
    accept_mcp(Script::McpPython);
}

#[test]
fn the_typescript_client_of_the_model_context_protocol_is_at_home() {
    accept_mcp(Script::McpNode);
}

#[test]
fn the_conformance_suite_of_the_model_context_protocol_finds_nothing() {
    accept_mcp(Script::McpConformance);
}

#[test]
fn the_python_client_of_the_model_context_protocol_signs_in() {
    accept_mcp(Script::McpOauthPython);
}

#[test]
fn the_typescript_client_of_the_model_context_protocol_signs_in() {
    accept_mcp(Script::McpOauthNode);
}
