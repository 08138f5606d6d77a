//! What people do with Codex, on models of every wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::machine::Machine;
use super::{ON_ALL, ON_ONE, on_wires};
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::scripted::{Asked, Said, Turn, gateway_with, models_named, saying};
use crate::support::upstream::Upstream;

/// How a person configures it for the gateway, under a name of the provider.
pub fn configuration(gateway: &Gateway, name: &str, more: &str) -> String {
    format!(
        "model_provider = \"weirgate\"\n{more}\n[model_providers.weirgate]\nname = \"{name}\"\nbase_url = \"http://{}/v1\"\n\
         env_key = \"WEIRGATE_KEY\"\nwire_api = \"responses\"\n",
        gateway.address()
    )
}

/// What a run has said: its events, a JSON text each.
pub struct Run {
    events: Vec<Value>,
    pub shown: String,
}

impl Run {
    /// The texts of its answers.
    fn said(&self) -> String {
        let items = self.events.iter().map(|event| &event["item"]);
        let said = items.filter(|item| item["type"] == "agent_message");
        let texts: Vec<&str> = said.filter_map(|item| item["text"].as_str()).collect();
        texts.join("\n")
    }

    pub fn says(&self, text: &str) {
        assert!(self.said().contains(text), "no {text:?} in {}", self.shown);
    }

    pub fn thread(&self) -> &str {
        let started = self
            .events
            .iter()
            .find(|event| event["type"] == "thread.started");
        started
            .and_then(|event| event["thread_id"].as_str())
            .unwrap()
    }
}

impl Machine {
    fn run_codex(&self, gateway: &Gateway, arguments: &[&str]) -> Run {
        self.configure(
            ".codex/config.toml",
            &configuration(gateway, "Weirgate", ""),
        );
        self.run_configured(gateway, arguments)
    }

    pub fn run_configured(&self, gateway: &Gateway, arguments: &[&str]) -> Run {
        let key = [("WEIRGATE_KEY", &*gateway.key)];
        let output = self.run("codex", gateway.address(), arguments, &key);
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let events = out
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Run {
            events: events.collect(),
            shown: format!("{arguments:?}: {}\n{out}\n{err}", output.status),
        }
    }

    /// Asks for something and waits for the end.
    pub fn asks_codex(&self, gateway: &Gateway, model: &str, prompt: &str) -> Run {
        self.run_codex(gateway, &exec(model, &[prompt]))
    }
}

pub fn exec<'a>(model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let always = [
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "-m",
        model,
    ];
    [&always, more].concat()
}

/// A model that does what a prompt with this mark asks for.
pub fn model(
    mark: &'static str,
    script: impl Fn(&Asked) -> Said + Send + Sync + 'static,
) -> (Upstream, Gateway) {
    model_named("", mark, script)
}

/// The same, for names that begin so.
pub fn model_named(
    prefix: &str,
    mark: &'static str,
    script: impl Fn(&Asked) -> Said + Send + Sync + 'static,
) -> (Upstream, Gateway) {
    let provider = saying(move |asked| match asked.holds(mark) {
        true => script(asked),
        false => Turn::text("A title").into(),
    });
    let more = match prefix {
        "" => String::new(),
        prefix => models_named(prefix),
    };
    let gateway = gateway_with(&provider, "", &more, "1000");
    (provider, gateway)
}

/// The tool by which a model runs commands.
fn shell(asked: &Asked, command: &str) -> Turn {
    let tool = ["exec_command", "shell", "shell_command", "local_shell"];
    let tool = tool.into_iter().find(|name| asked.offers(name));
    match tool.unwrap_or_else(|| panic!("no shell among {:?}", asked.tools)) {
        "exec_command" => Turn::call("exec_command", json!({"cmd": command})),
        "shell_command" => Turn::call("shell_command", json!({"command": command})),
        name => Turn::call(name, json!({"command": ["bash", "-lc", command]})),
    }
}

#[test]
#[ignore = "needs Codex: make test-agents"]
fn it_says_hello() {
    on_wires("Codex: a question and its answer", ON_ALL, |id| {
        let (_provider, gateway) = model("HELLO", |_| {
            let reasoning = Some("A greeting.".to_owned());
            let turn = Turn::text("Hello from any model.");
            Turn { reasoning, ..turn }.into()
        });
        let run = Machine::new().asks_codex(&gateway, id, "HELLO, who are you?");
        run.says("Hello from any model.");
    });
}

#[test]
#[ignore = "needs Codex: make test-agents"]
fn it_runs_commands() {
    on_wires(
        "Codex: two commands at once, with reasoning",
        ON_ALL,
        |id| {
            let machine = Machine::new();
            machine.write("a.txt", "the first is APPLE\n");
            machine.write("b.txt", "the second is PEAR\n");
            let (_provider, gateway) = model("READ-TWO", |asked| {
                let turn = match asked.results.len() {
                    0 => {
                        let mut first = shell(asked, "cat a.txt");
                        first.calls.extend(shell(asked, "cat b.txt").calls);
                        first.text = Some("I read both.".to_owned());
                        first
                    }
                    _ => Turn::text(format!("They say: {}", asked.results.join(" / "))),
                };
                let reasoning = Some("Both files are small.".to_owned());
                Turn { reasoning, ..turn }.into()
            });
            let run = machine.asks_codex(&gateway, id, "READ-TWO: what do a.txt and b.txt say?");
            run.says("APPLE");
            run.says("PEAR");
        },
    );
}

#[test]
#[ignore = "needs Codex: make test-agents"]
fn a_provider_that_refuses_for_a_while_is_asked_again() {
    on_wires("Codex: a provider that refuses for a while", ON_ONE, |id| {
        let refused = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&refused);
        let (_provider, gateway) = model("LATER", move |_| {
            match count.fetch_add(1, Ordering::Relaxed) {
                0..2 => Said::Reply(Reply::json(429, r#"{"error":{"message":"slow down"}}"#)),
                _ => Turn::text("At last.").into(),
            }
        });
        let run = Machine::new().asks_codex(&gateway, id, "LATER");
        run.says("At last.");
        assert!(refused.load(Ordering::Relaxed) > 2);
    });
}

#[test]
#[ignore = "needs Codex: make test-agents"]
fn a_stream_that_breaks_is_asked_again() {
    on_wires("Codex: a stream that breaks", ON_ONE, |id| {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let (_provider, gateway) = model("BREAK-ONCE", move |_| {
            let turn = Turn::text("This text is whole, and as long as it has to be. ".repeat(40));
            let breaks = count.fetch_add(1, Ordering::Relaxed) == 0;
            Turn { breaks, ..turn }.into()
        });
        let run = Machine::new().asks_codex(&gateway, id, "BREAK-ONCE");
        run.says("as long as it has to be.");
        assert!(asked.load(Ordering::Relaxed) >= 2);
    });
}

#[test]
#[ignore = "needs Codex: make test-agents"]
fn a_session_goes_on() {
    on_wires("Codex: a session that goes on", ON_ONE, |id| {
        let machine = Machine::new();
        let (_provider, gateway) = model("REMEMBER", |asked| {
            match asked.holds("THE-SECOND") {
                true => Turn::text(match asked.holds("Noted: PEAR.") {
                    true => "It was PEAR.",
                    false => "I do not know.",
                }),
                false => Turn::text("Noted: PEAR."),
            }
            .into()
        });
        let first = machine.asks_codex(&gateway, id, "REMEMBER PEAR");
        first.says("Noted: PEAR.");
        let thread = first.thread().to_owned();
        let more = ["resume", &thread, "THE-SECOND: what was it?"];
        machine
            .run_codex(&gateway, &exec(id, &more))
            .says("It was PEAR.");
    });
}
