//! Codex's tools of other forms than functions, images, and what it does when its history has become long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::codex::{configuration, exec, model, model_named};
use super::machine::Machine;
use super::{DOT, ON_ONE, on_wires};
use crate::support::script::Reply;
use crate::support::scripted::{Asked, Said, Turn};

/// The beginning of the names of a family to which Codex gives `apply_patch`, a tool that takes a text.
const FAMILY: &str = "gpt-5.5-";

#[test]
#[ignore = "needs Codex: make test-agents"]
fn it_applies_a_patch() {
    on_wires(
        "Codex: a patch, in a tool that takes a text",
        ON_ONE,
        |id| {
            const PATCH: &str =
                "*** Begin Patch\n*** Add File: new.txt\n+PEAR \"and\" more\n*** End Patch";
            let machine = Machine::new();
            let (_provider, gateway) = model_named(FAMILY, "PATCH-IT", |asked| {
                match asked.results.last() {
                    None => Turn::call("apply_patch", json!({"input": PATCH})),
                    Some(result) => Turn::text(format!("It was applied: {result}")),
                }
                .into()
            });
            let named = [FAMILY, id].concat();
            let run = machine.asks_codex(&gateway, &named, "PATCH-IT: write new.txt");
            run.says("It was applied");
            assert_eq!(machine.read("new.txt"), "PEAR \"and\" more\n");
        },
    );
}

/// Tools of a server stand in a namespace.
#[test]
#[ignore = "needs Codex: make test-agents"]
fn it_calls_a_tool_of_an_mcp_server() {
    on_wires("Codex: a tool of an MCP server", ON_ONE, |id| {
        let machine = Machine::new();
        let (_provider, gateway) = model("ASK-SERVER", |asked| {
            let mut tools = asked.tools.iter();
            let tool = tools.find(|name| {
                name.contains("gate") && name.replace('-', "_").ends_with("list_models")
            });
            match (asked.results.last(), tool) {
                (Some(result), _) => Turn::text(format!("The server said {result}")),
                (None, Some(tool)) => Turn::call(tool, json!({})),
                (None, None) => Turn::text(format!("No such tool among {:?}", asked.tools)),
            }
            .into()
        });
        let server = format!(
            "[mcp_servers.gate]\nurl = \"http://{}/mcp\"\nbearer_token_env_var = \"WEIRGATE_KEY\"\n",
            gateway.address()
        );
        let configured = [&*configuration(&gateway, "Weirgate", ""), &server].concat();
        machine.configure(".codex/config.toml", &configured);
        let run = machine.run_configured(
            &gateway,
            &exec(id, &["ASK-SERVER: which models are there?"]),
        );
        run.says("blocks");
    });
}

#[test]
#[ignore = "needs Codex: make test-agents"]
fn it_looks_at_an_image() {
    on_wires("Codex: an image that a tool has read", ON_ONE, |id| {
        let machine = Machine::new();
        machine.write("dot.png", DOT);
        let path = machine.path("dot.png");
        let (_provider, gateway) = model_named(FAMILY, "LOOK-AT", move |asked| {
            let shown = asked.body.to_string();
            let mut marks = ["image_url", "\"image/png\""].into_iter();
            let is_shown = marks.any(|mark| shown.contains(mark));
            match asked.results.is_empty() && !asked.has_result {
                true => Turn::call("view_image", json!({"path": path})),
                false if is_shown => Turn::text("I see it."),
                false => Turn::text(format!("I see nothing: {:?}", asked.results)),
            }
            .into()
        });
        let named = [FAMILY, id].concat();
        machine
            .asks_codex(&gateway, &named, "LOOK-AT dot.png")
            .says("I see it.");
    });
}

/// A model whose first answer fills the window, so that Codex has the history summarized before the second question.
fn long_history(name: &str, id: &str) {
    let summaries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&summaries);
    let machine = Machine::new();
    let (provider, gateway) = model("LONG", move |asked: &Asked| -> Said {
        let last = asked.last_text();
        if last.contains("THE-SECOND") {
            let is_known = asked.holds("SUMMARY: it was PEAR.");
            return Turn::text(if is_known {
                "It was PEAR."
            } else {
                "I do not know."
            })
            .into();
        }
        if last.to_lowercase().contains("summary") {
            count.fetch_add(1, Ordering::Relaxed);
            return Turn::text("SUMMARY: it was PEAR. LONG").into();
        }
        let turn = Turn::text("Noted.");
        Turn {
            prompt_tokens: 50_000,
            ..turn
        }
        .into()
    });
    let more = "model_auto_compact_token_limit = 20000\nmodel_context_window = 100000\n";
    machine.configure(".codex/config.toml", &configuration(&gateway, name, more));
    let first = machine.run_configured(&gateway, &exec(id, &["LONG: remember PEAR"]));
    first.says("Noted.");
    let thread = first.thread().to_owned();
    let second = machine.run_configured(
        &gateway,
        &exec(id, &["resume", &thread, "THE-SECOND, LONG: what was it?"]),
    );
    second.says("It was PEAR.");
    assert_eq!(summaries.load(Ordering::Relaxed), 1);
    // Its own metadata, which passes to hosts of the dialect, may name what it does.
    let holds_items = |body: String| body.contains("\"type\":\"compaction");
    let mut asked = provider.requests().into_iter();
    assert!(asked.all(|request| !holds_items(request.json().to_string())));
}

#[test]
#[ignore = "needs Codex: make test-agents"]
fn it_has_its_history_summarized() {
    on_wires(
        "Codex: a history that it has summarized itself",
        ON_ONE,
        |id| {
            long_history("Weirgate", id);
        },
    );
}

/// A provider with the vendor's name is asked by an item, and Codex takes nothing but one item for an answer.
#[test]
#[ignore = "needs Codex: make test-agents"]
fn it_has_its_history_summarized_as_by_the_vendor() {
    on_wires(
        "Codex: a history that the gateway summarizes",
        ON_ONE,
        |id| {
            long_history("OpenAI", id);
        },
    );
}

#[test]
#[ignore = "needs Codex: make test-agents"]
fn a_limit_that_tells_its_end_is_waited_for() {
    on_wires("Codex: a limit that tells its end", ON_ONE, |id| {
        let refused = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&refused);
        let (_provider, gateway) = model("LIMITED", move |_| {
            match count.fetch_add(1, Ordering::Relaxed) {
                0..3 => Said::Reply(Reply::whole(
                    429,
                    &[("content-type", "application/json"), ("retry-after", "1")],
                    r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#,
                )),
                _ => Turn::text("At last.").into(),
            }
        });
        Machine::new()
            .asks_codex(&gateway, id, "LIMITED")
            .says("At last.");
        assert!(refused.load(Ordering::Relaxed) > 3);
    });
}

#[test]
#[ignore = "needs Codex: make test-agents"]
fn a_prompt_that_is_too_long_is_told_as_such() {
    on_wires("Codex: a prompt that is too long", ON_ONE, |id| {
        let count = Arc::new(AtomicUsize::new(0));
        let asked = Arc::clone(&count);
        let (_provider, gateway) = model("TOO-LONG", move |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            let error = json!({"type": "error", "error": {"type": "invalid_request_error", "code": "context_length_exceeded", "status": "INVALID_ARGUMENT",
                "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens."}});
            Said::Reply(Reply::json(400, error.to_string()))
        });
        let run = Machine::new().asks_codex(&gateway, id, "TOO-LONG");
        assert!(run.shown.contains("context window"), "{}", run.shown);
        // Nothing is gained by another try.
        assert!(count.load(Ordering::Relaxed) < 4, "{}", run.shown);
    });
}
