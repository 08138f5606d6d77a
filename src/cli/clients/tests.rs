#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::cli::Exit;
use crate::cli::tests::{Answer, Desk};

const MODELS: &str = r#"
[[models]]
id = "small"
type = "chat"
[[models.providers]]
provider = "up"
name = "small-1"
input_price = "1"
output_price = "1"
context_size = 64000
[[models]]
id = "large's"
type = "chat"
[[models.providers]]
provider = "up"
name = "large-1"
input_price = "1"
output_price = "1"
context_size = 400000
[[models]]
id = "claude-haiku-4-5"
type = "chat"
[[models.providers]]
provider = "vendor"
name = "claude-haiku-4-5"
input_price = "1"
output_price = "1"
[[models]]
id = "gpt-5.5"
type = "chat"
[[models.providers]]
provider = "up"
name = "gpt-5.5"
[[models]]
id = "mute"
type = "chat"
[[models.providers]]
provider = "up"
name = "mute-1"
input_price = "1"
output_price = "1"
capabilities = ["streaming"]
"#;

const UP: &str = r#"
[providers.up]
kind = "openai-compatible"
base_url = "http://127.0.0.1:9/v1"
keys = []
[models]
file = "models.toml"
"#;

fn clients(config: &str, words: &[&str]) -> Answer {
    client("claude-code", config, words)
}

fn client(name: &str, config: &str, words: &[&str]) -> Answer {
    let desk = Desk::with_acme();
    let models = desk.folder.path().join("models.toml");
    std::fs::write(&models, MODELS).unwrap();
    let config = config.replace("models.toml", &models.display().to_string());
    std::fs::write(desk.folder.path().join("weirgate.toml"), config).unwrap();
    desk.run(&[&["clients", name], words].concat())
}

fn texts(config: &str, words: &[&str]) -> (String, Value) {
    let answer = clients(config, &[words, &["--format", "json"]].concat());
    assert_eq!(answer.code, ExitCode::SUCCESS, "{}", answer.err);
    let read: Value = serde_json::from_str(&answer.out).unwrap();
    let text = |index: usize| read["clients"][index]["text"].as_str().unwrap();
    let settings = serde_json::from_str(text(1)).unwrap();
    (text(0).to_owned(), settings)
}

#[test]
fn a_shell_and_the_settings_say_the_same() {
    let words = ["--model", "large's", "--small-model", "small"];
    let (shell, settings) = texts(UP, &words);
    assert_eq!(
        shell,
        r"export ANTHROPIC_BASE_URL=http://127.0.0.1:8080
export ANTHROPIC_AUTH_TOKEN=wg_…
export ANTHROPIC_MODEL='large'\''s'
export ANTHROPIC_DEFAULT_OPUS_MODEL='large'\''s'
export ANTHROPIC_DEFAULT_SONNET_MODEL='large'\''s'
export ANTHROPIC_DEFAULT_HAIKU_MODEL=small
export CLAUDE_CODE_MAX_CONTEXT_TOKENS=64000
export CLAUDE_CODE_AUTO_MODE_SERVER=0"
    );
    let environment = json!({
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:8080",
        "ANTHROPIC_MODEL": "large's",
        "ANTHROPIC_DEFAULT_OPUS_MODEL": "large's",
        "ANTHROPIC_DEFAULT_SONNET_MODEL": "large's",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "small",
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "64000",
        "CLAUDE_CODE_AUTO_MODE_SERVER": "0",
    });
    let key_helper = "printenv WEIRGATE_API_KEY";
    assert_eq!(
        settings,
        json!({"apiKeyHelper": key_helper, "env": environment})
    );
    let shown = clients(UP, &words);
    assert!(shown.out.starts_with("Gateway: http://127.0.0.1:8080\n\n"));
    for line in shell.lines() {
        assert!(shown.out.contains(&format!("\n  {line}\n")), "{line}");
    }
    assert_eq!(shown.err, "");
}

#[test]
fn without_a_model_it_is_the_clients_own_and_their_lack_is_said() {
    let (shell, settings) = texts(UP, &[]);
    assert_eq!(shell.lines().count(), 2, "{shell}");
    assert_eq!(settings["env"].as_object().unwrap().len(), 1);
    let lacking = clients(UP, &[]);
    assert!(lacking.err.contains("--model"), "{}", lacking.err);
    let vendor = "[providers.vendor]\nkind = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:9\"\nkeys = []\n";
    let served = clients(&format!("{vendor}{UP}"), &[]);
    assert_eq!(served.err, "");
}

#[test]
fn a_model_is_one_that_would_serve_the_client() {
    for (model, problem) in [("larg", "larg"), ("mute", "tools"), ("", "model")] {
        let refused = clients(UP, &["--model", model]);
        assert_eq!(refused.code, Exit::Failed.into(), "{model}");
        assert_eq!(refused.out, "");
        assert!(refused.err.contains(problem), "{}", refused.err);
        assert!(refused.err.contains("weirgate models list"));
        let words = ["--model", "small", "--small-model", model];
        assert_eq!(clients(UP, &words).code, Exit::Failed.into(), "{model}");
    }
    let large = clients(UP, &["--model", "large's"]);
    assert!(large.out.contains("TOKENS=400000\n"), "{}", large.out);
    let vendor = UP.replace("openai-compatible", "anthropic");
    let own = clients(&vendor, &["--model", "large's"]);
    assert!(!own.out.contains("AUTO_MODE"), "{}", own.out);
    let judged = format!("{UP}[claude_code]\njudge_model = \"small\"\n");
    let judged = clients(&judged, &["--model", "large's"]);
    assert!(!judged.out.contains("AUTO_MODE"), "{}", judged.out);
    let alone = clients(UP, &["--small-model", "small"]);
    assert_eq!(alone.code, Exit::Usage.into());
}

#[test]
fn the_address_is_one_that_clients_can_use() {
    let public = format!("{UP}[mcp]\npublic_url = \"https://gateway.example.com\"\n");
    let (shell, _) = texts(&public, &["--model", "small"]);
    assert!(shell.starts_with("export ANTHROPIC_BASE_URL=https://gateway.example.com\n"));
    let everywhere = format!("{UP}[listen]\naddress = \"0.0.0.0:9000\"\n");
    let shown = clients(&everywhere, &["--model", "large's"]);
    assert!(shown.out.starts_with("Gateway: http://127.0.0.1:9000\n"));
    assert!(shown.err.contains("mcp.public_url"), "{}", shown.err);
    let unknown = format!("{UP}[listen]\naddress = \"127.0.0.1:0\"\n");
    let refused = clients(&unknown, &["--model", "small"]);
    assert_eq!(
        (refused.code, refused.out.as_str()),
        (Exit::Failed.into(), "")
    );
    assert!(refused.err.contains("mcp.public_url"), "{}", refused.err);
}

/// The configuration of Codex and its list of models; null: there is none.
fn codex(words: &[&str]) -> (toml::Table, String, Value) {
    let answer = client("codex", UP, &[words, &["--format", "json"]].concat());
    assert_eq!(answer.code, ExitCode::SUCCESS, "{}", answer.err);
    let read: Value = serde_json::from_str(&answer.out).unwrap();
    let text = |index: usize| read["clients"][index]["text"].as_str();
    let list = text(1).map(|text| serde_json::from_str(text).unwrap());
    let config = text(0).unwrap();
    (
        config.parse().unwrap(),
        config.to_owned(),
        list.unwrap_or_default(),
    )
}

#[test]
fn codex_gets_a_provider_and_the_models_that_it_does_not_know() {
    let (config, text, list) = codex(&["--model", "large's", "--model", "small"]);
    assert_eq!(
        text,
        r#"model = "large's"
model_provider = "weirgate"
model_catalog_json = "weirgate-models.json"

[model_providers.weirgate]
name = "Weirgate"
base_url = "http://127.0.0.1:8080/v1"
env_key = "WEIRGATE_API_KEY"
wire_api = "responses""#
    );
    assert_eq!(config["model"].as_str(), Some("large's"));
    let models = list["models"].as_array().unwrap();
    let told: Vec<_> = models
        .iter()
        .map(|it| (it["slug"].as_str().unwrap(), it["context_window"].as_u64()))
        .collect();
    assert_eq!(told, [("large's", Some(400_000)), ("small", Some(64_000))]);
    let shown = client("codex", UP, &["--model", "small"]);
    assert!(
        shown.out.contains("\n  wire_api = \"responses\"\n"),
        "{}",
        shown.out
    );
}

#[test]
fn models_that_codex_knows_stay_as_it_knows_them() {
    let (config, _, list) = codex(&["--model", "gpt-5.5"]);
    assert_eq!(
        (config["model"].as_str(), &list),
        (Some("gpt-5.5"), &Value::Null)
    );
    assert!(!config.contains_key("model_catalog_json"));
    let (config, _, list) = codex(&[]);
    assert!(!config.contains_key("model") && list.is_null(), "{config}");
    // Beside others it has to be in the list, which is all that Codex knows then.
    let (_, _, list) = codex(&["--model", "gpt-5.5", "--model", "small"]);
    assert_eq!(list["models"].as_array().unwrap().len(), 2);
    let (_, _, list) = codex(&["--model", "auto"]);
    assert_eq!(list["models"][0]["slug"], "auto");
}

#[test]
fn codex_is_told_no_model_that_could_not_serve_it() {
    for (model, problem) in [("larg", "larg"), ("mute", "tools")] {
        let refused = client("codex", UP, &["--model", "small", "--model", model]);
        assert_eq!(
            (refused.code, refused.out.as_str()),
            (Exit::Failed.into(), "")
        );
        assert!(refused.err.contains(problem), "{}", refused.err);
    }
}
