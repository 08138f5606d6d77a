//! What people do with Gemini CLI, on models of every wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::machine::Machine;
use super::{ON_ALL, ON_ONE, on_wires};
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::scripted::{Asked, Said, Turn, gateway, saying};
use crate::support::upstream::Upstream;

/// How a person configures it. What it tells its maker is off.
fn settings(servers: &Value) -> String {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false, "disableAutoUpdate": true, "disableUpdateNag": true},
        "mcpServers": servers,
    })
    .to_string()
}

/// What a run has said.
struct Run {
    said: Value,
    shown: String,
}

impl Run {
    fn says(&self, text: &str) {
        let said = self.said["response"].as_str().unwrap_or_default();
        assert!(said.contains(text), "no {text:?} in {}", self.shown);
    }
}

impl Machine {
    /// Asks for something and waits for the end.
    fn asks_gemini(&self, gateway: &Gateway, model: &str, prompt: &str) -> Run {
        self.asks_gemini_with(gateway, model, prompt, &json!({}))
    }

    fn asks_gemini_with(
        &self,
        gateway: &Gateway,
        model: &str,
        prompt: &str,
        servers: &Value,
    ) -> Run {
        self.configure(".gemini/settings.json", &settings(servers));
        let url = format!("http://{}", gateway.address());
        let variables = [
            ("GEMINI_API_KEY", &*gateway.key),
            ("GOOGLE_GEMINI_BASE_URL", &*url),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            ("GEMINI_SANDBOX", "false"),
        ];
        let arguments = [
            "--model",
            model,
            "--approval-mode",
            "yolo",
            "--output-format",
            "json",
            "--prompt",
            prompt,
        ];
        let output = self.run("gemini", gateway.address(), &arguments, &variables);
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let elsewhere = self.asked_elsewhere();
        assert!(elsewhere.is_empty(), "it asks {elsewhere:?}");
        let json = out.find('{').map_or("", |start| &out[start..]);
        Run {
            said: serde_json::from_str(json).unwrap_or_default(),
            shown: format!("{prompt} with {model}: {}\n{out}\n{err}", output.status),
        }
    }
}

/// A model that does what a prompt with this mark asks for.
fn model(
    mark: &'static str,
    script: impl Fn(&Asked) -> Said + Send + Sync + 'static,
) -> (Upstream, Gateway) {
    let provider = saying(move |asked| match asked.holds(mark) {
        true => script(asked),
        false => Turn::text("A title").into(),
    });
    let gateway = gateway(&provider);
    (provider, gateway)
}

fn shell(command: &str) -> (String, Value) {
    (
        "run_shell_command".to_owned(),
        json!({"command": command, "description": "Runs it."}),
    )
}

#[test]
#[ignore = "needs Gemini CLI: make test-agents"]
fn it_says_hello() {
    on_wires("Gemini CLI: a question and its answer", ON_ALL, |id| {
        let (_provider, gateway) = model("HELLO", |_| {
            let reasoning = Some("A greeting.".to_owned());
            let turn = Turn::text("Hello from any model.");
            Turn { reasoning, ..turn }.into()
        });
        let run = Machine::new().asks_gemini(&gateway, id, "HELLO, who are you?");
        run.says("Hello from any model.");
    });
}

#[test]
#[ignore = "needs Gemini CLI: make test-agents"]
fn it_runs_two_commands_at_once() {
    let scenario = "Gemini CLI: two commands at once, with reasoning";
    on_wires(scenario, ON_ALL, |id| {
        let machine = Machine::new();
        machine.write("a.txt", "the first is APPLE\n");
        machine.write("b.txt", "the second is PEAR\n");
        let (_provider, gateway) = model("READ-TWO", |asked| {
            let turn = match asked.results.len() {
                0 => Turn {
                    text: Some("I read both.".to_owned()),
                    calls: vec![shell("cat a.txt"), shell("cat b.txt")],
                    ..Turn::default()
                },
                _ => Turn::text(format!("They say: {}", asked.results.join(" / "))),
            };
            let reasoning = Some("Both files are small.".to_owned());
            Turn { reasoning, ..turn }.into()
        });
        let prompt = "READ-TWO: what do a.txt and b.txt say?";
        let run = machine.asks_gemini(&gateway, id, prompt);
        run.says("APPLE");
        run.says("PEAR");
    });
}

#[test]
#[ignore = "needs Gemini CLI: make test-agents"]
fn it_edits_a_file() {
    on_wires("Gemini CLI: write, then edit", ON_ONE, |id| {
        let machine = Machine::new();
        machine.write("note.txt", "the colour is red\n");
        let path = machine.path("note.txt");
        let (_provider, gateway) = model("PAINT", move |asked| {
            let edit = json!({"file_path": path, "old_string": "red", "new_string": "blue", "instruction": "Paint it."});
            match asked.results.len() {
                0 => Turn::call("read_file", json!({"file_path": path})),
                1 => Turn::call("replace", edit),
                _ => Turn::text("It is painted."),
            }
            .into()
        });
        let run = machine.asks_gemini(&gateway, id, "PAINT note.txt blue");
        run.says("It is painted.");
        assert_eq!(machine.read("note.txt"), "the colour is blue\n");
    });
}

/// It speaks 2025-06-18, and takes a server for lost whose stream has an event without a message.
#[test]
#[ignore = "needs Gemini CLI: make test-agents"]
fn it_calls_a_tool_of_an_mcp_server() {
    on_wires("Gemini CLI: a tool of an MCP server", ON_ONE, |id| {
        let (_provider, gateway) = model("FIND-IT", |asked| {
            let mut tools = asked.tools.iter();
            let tool = tools.find(|name| name.ends_with("list-models"));
            match (asked.results.last(), tool) {
                (Some(said), _) => Turn::text(format!("The server said {said}")),
                (None, Some(tool)) => Turn::call(tool, json!({})),
                (None, None) => Turn::text(format!("no tool among {:?}", asked.tools)),
            }
            .into()
        });
        let authorization = format!("Bearer {}", gateway.key);
        let url = format!("http://{}/mcp", gateway.address());
        let servers =
            json!({"gate": {"httpUrl": url, "headers": {"Authorization": authorization}}});
        let prompt = "FIND-IT: which models are there?";
        let machine = Machine::new();
        let run = machine.asks_gemini_with(&gateway, id, prompt, &servers);
        run.says("blocks");
    });
}

#[test]
#[ignore = "needs Gemini CLI: make test-agents"]
fn a_provider_that_refuses_for_a_while_is_asked_again() {
    let scenario = "Gemini CLI: a provider that refuses for a while";
    on_wires(scenario, ON_ONE, |id| {
        let refused = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&refused);
        let (_provider, gateway) = model("LATER", move |_| {
            match count.fetch_add(1, Ordering::Relaxed) {
                0 => Said::Reply(Reply::whole(
                    429,
                    &[("Retry-After", "1")],
                    r#"{"error":{"message":"slow down"}}"#,
                )),
                _ => Turn::text("At last.").into(),
            }
        });
        Machine::new()
            .asks_gemini(&gateway, id, "LATER")
            .says("At last.");
        assert!(refused.load(Ordering::Relaxed) >= 2);
    });
}

#[test]
#[ignore = "needs Gemini CLI: make test-agents"]
fn a_stream_that_breaks_is_asked_again() {
    on_wires("Gemini CLI: a stream that breaks", ON_ONE, |id| {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let (_provider, gateway) = model("BREAK-ONCE", move |_| {
            // It takes a text that repeats itself for a loop.
            let lines = (0..60).map(|at| format!("Line {at} tells of the number {}. ", at * at));
            let text: String = lines.collect();
            let turn = Turn::text(text + "So it is as long as it has to be.");
            let breaks = count.fetch_add(1, Ordering::Relaxed) == 0;
            Turn { breaks, ..turn }.into()
        });
        let run = Machine::new().asks_gemini(&gateway, id, "BREAK-ONCE");
        run.says("as long as it has to be.");
        assert!(asked.load(Ordering::Relaxed) >= 2);
    });
}

#[test]
#[ignore = "needs Gemini CLI: make test-agents"]
fn a_prompt_that_is_too_long_is_told() {
    on_wires("Gemini CLI: a prompt that is too long", ON_ONE, |id| {
        let said = "This model's maximum context length is 1000 tokens.";
        let (_provider, gateway) = model("TOO-LONG", move |_| {
            let error = json!({"error": {"message": said, "type": "invalid_request_error"}});
            Said::Reply(Reply::json(400, error.to_string()))
        });
        let run = Machine::new().asks_gemini(&gateway, id, "TOO-LONG");
        assert!(run.shown.contains(said), "{}", run.shown);
    });
}
