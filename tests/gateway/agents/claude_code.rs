//! What people do with Claude Code, on models of every wire. Each scenario has a script for the model, and looks at what came
//! of it: files, and what reached the provider.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use filters::audit::PROGRAM;
use serde_json::{Value, json};

use super::machine::Machine;
use super::{DOT, ON_ALL, ON_ONE, on_wires};
use crate::support::boot::Gateway;
use crate::support::script::Reply;
use crate::support::scripted::{
    Asked, MODELS, Said, Turn, found_page, gateway, gateway_with_judge, gateway_with_search, saying,
};
use crate::support::upstream::Upstream;

/// A model that does what a prompt with this mark asks for, and names titles and the like otherwise.
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

/// The requests that hold a mark, as the provider got them.
fn asked(provider: &Upstream, mark: &str) -> Vec<Value> {
    let all = provider.requests().into_iter();
    let all = all.filter(|request| String::from_utf8_lossy(&request.body).contains(mark));
    all.map(|request| request.json()).collect()
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_says_hello() {
    on_wires("a question and its answer", ON_ALL, |id| {
        let (_provider, gateway) = model("HELLO", |_| Turn::text("Hello from any model.").into());
        let ended = Machine::new().ask(&gateway, id, "HELLO, who are you?", &[]);
        ended.says("Hello from any model.");
    });
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_reads_two_files_at_once_and_shows_why() {
    on_wires("two tools at once, with reasoning", ON_ALL, |id| {
        let machine = Machine::new();
        machine.write("a.txt", "the first is APPLE\n");
        machine.write("b.txt", "the second is PEAR\n");
        let read = |name| json!({"file_path": machine.path(name)});
        let (first, second) = (read("a.txt"), read("b.txt"));
        let (provider, gateway) = model("READ-TWO", move |asked| {
            let turn = match asked.results.len() {
                0 => Turn::text("I read both.")
                    .and_call("Read", first.clone())
                    .and_call("Read", second.clone()),
                _ => Turn::text(format!("They say: {}", asked.results.join(" / "))),
            };
            let reasoning = Some("Both files are small.".to_owned());
            Turn { reasoning, ..turn }.into()
        });
        let ended = machine.ask(&gateway, id, "READ-TWO: what do a.txt and b.txt say?", &[]);
        ended.says("APPLE");
        ended.says("PEAR");
        assert_eq!(
            asked(&provider, "READ-TWO").len(),
            2,
            "one turn answers both"
        );
    });
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_edits_a_file() {
    on_wires("read, then edit", ON_ONE, |id| {
        let machine = Machine::new();
        machine.write("code.py", "def f():\n    return \"old\"\n");
        let path = machine.path("code.py");
        let (_provider, gateway) = model("EDIT-ONE", move |asked| {
            match asked.results.len() {
                0 => Turn::call("Read", json!({"file_path": path})),
                1 => Turn::call("Edit", json!({"file_path": path, "old_string": "return \"old\"", "new_string": "return \"nëw\\n\""})),
                _ => Turn::text("Edited."),
            }
            .into()
        });
        machine.ask(&gateway, id, "EDIT-ONE", &[]).says("Edited.");
        assert_eq!(machine.read("code.py"), "def f():\n    return \"nëw\\n\"\n");
    });
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_runs_a_command() {
    on_wires("a shell command", ON_ONE, |id| {
        let machine = Machine::new();
        let command = format!(
            "printf 'a\\tb' > {} && echo RAN-IT",
            machine.path("out.txt")
        );
        let (_provider, gateway) = model("RUN-ONE", move |asked| {
            match asked.results.last() {
                None => Turn::call(
                    "Bash",
                    json!({"command": command, "description": "Writes a file"}),
                ),
                Some(result) => Turn::text(format!("It said {result}")),
            }
            .into()
        });
        machine.ask(&gateway, id, "RUN-ONE", &[]).says("RAN-IT");
        assert_eq!(machine.read("out.txt"), "a\tb");
    });
}

/// The tools of the gateway's own MCP server are deferred: the model finds one, and then it is offered.
#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_finds_a_tool_of_an_mcp_server_and_calls_it() {
    const TOOL: &str = "mcp__gate__list-models";
    on_wires("a tool of an MCP server, found first", ON_ONE, |id| {
        let machine = Machine::new();
        let (_provider, gateway) = model("FIND-IT", |asked| {
            let said = asked.results.last().map_or("", String::as_str);
            if asked.offers(TOOL) && !said.contains("sandbox") && !said.contains("blocks") {
                Turn::call(TOOL, json!({}))
            } else if asked.results.is_empty() {
                Turn::call(
                    "ToolSearch",
                    json!({"query": format!("select:{TOOL}"), "max_results": 3}),
                )
            } else {
                Turn::text(format!("The server said {said}"))
            }
            .into()
        });
        let server = json!({"mcpServers": {"gate": {"type": "http", "url": format!("http://{}/mcp", gateway.address()),
            "headers": {"Authorization": format!("Bearer {}", gateway.key)}}}});
        let server = server.to_string();
        let more = ["--mcp-config", &server, "--strict-mcp-config"];
        machine
            .ask(&gateway, id, "FIND-IT: which models are there?", &more)
            .says("blocks");
    });
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_asks_an_agent_of_its_own() {
    on_wires("a sub-agent", ON_ONE, |id| {
        let (provider, gateway) = model("DELEGATE", |asked| {
            if asked.last_text().contains("SUB-TASK")
                || asked.holds("SUB-TASK") && !asked.holds("ask an agent")
            {
                return Turn::text("The agent found 42.").into();
            }
            match asked.results.last() {
                None => Turn::call("Agent", json!({"description": "Looks it up", "prompt": "SUB-TASK of DELEGATE: find the number", "subagent_type": "general-purpose"})),
                Some(result) => Turn::text(format!("It reports: {result}")),
            }
            .into()
        });
        let ended = Machine::new().ask(&gateway, id, "DELEGATE: ask an agent for the number", &[]);
        ended.says("It reports:");
        assert!(!asked(&provider, "SUB-TASK").is_empty());
    });
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_looks_at_an_image() {
    let is_seen = |asked: &Asked| {
        let mut marks = ["image_url", "input_image", "\"image/png\""].into_iter();
        marks.any(|mark| asked.body.to_string().contains(mark))
    };
    it_sees("an image that a tool has read", "dot.png", DOT, is_seen);
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_reads_a_pdf() {
    const PAGE: &str = "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n\
        3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>\nendobj\nxref\n0 4\n0000000000 65535 f \n0000000009 00000 n \n\
        0000000054 00000 n \n0000000105 00000 n \ntrailer\n<</Size 4/Root 1 0 R>>\nstartxref\n168\n%%EOF\n";
    let is_shown = |asked: &Asked| asked.holds("application/pdf");
    it_sees(
        "a PDF that a tool has read",
        "page.pdf",
        PAGE.as_bytes(),
        is_shown,
    );
}

/// Has a tool read a file that is no text, and a model say whether it was shown to it.
fn it_sees(scenario: &str, name: &str, bytes: &[u8], is_shown: fn(&Asked) -> bool) {
    on_wires(scenario, ON_ONE, |id| {
        let machine = Machine::new();
        machine.write(name, bytes);
        let path = machine.path(name);
        let (_provider, gateway) = model("LOOK-AT", move |asked| {
            match asked.results.is_empty() && !asked.has_result {
                true => Turn::call("Read", json!({"file_path": path})),
                false if is_shown(asked) => Turn::text("I see it."),
                false => Turn::text(format!("I see nothing: {:?}", asked.results)),
            }
            .into()
        });
        let ended = machine.ask(&gateway, id, &format!("LOOK-AT {name}"), &[]);
        ended.says("I see it.");
    });
}

/// Each model finds the whole history, and its own reasoning alone.
#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn a_session_goes_on_with_other_models() {
    on_wires("another model in mid-session", ON_ONE, |id| {
        let machine = Machine::new();
        let (provider, gateway) = model("MANY-MODELS", |asked| {
            let turn = Turn::text(format!(
                "Turn with {}.",
                asked.body["model"].as_str().unwrap_or("parts")
            ));
            let reasoning = Some("Thought about it.".to_owned());
            Turn { reasoning, ..turn }.into()
        });
        let first = machine.ask(&gateway, id, "MANY-MODELS 1", &[]);
        first.says("Turn with");
        let mut session = first.session;
        let others = MODELS.iter().filter(|other| **other != id);
        for (at, other) in others.chain([&id]).enumerate() {
            let prompt = format!("MANY-MODELS {}", at + 2);
            let ended = machine.ask(&gateway, other, &prompt, &["--resume", &session]);
            ended.says("Turn with");
            session = ended.session;
        }
        let last = asked(&provider, "MANY-MODELS 5").pop().unwrap().to_string();
        for n in 1..=5 {
            assert!(
                last.contains(&format!("MANY-MODELS {n}")),
                "turn {n} is lost: {last}"
            );
        }
    });
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn a_session_goes_on_behind_a_restart() {
    on_wires("a restart of the gateway", ON_ONE, |id| {
        let machine = Machine::new();
        let (provider, gateway) = model("GO-ON", |asked| {
            let reasoning = Some("Hm.".to_owned());
            let turn = Turn::text(format!("It holds {}.", asked.holds("GO-ON first")));
            Turn { reasoning, ..turn }.into()
        });
        let first = machine.ask(&gateway, id, "GO-ON first", &[]);
        let gateway = gateway.restart();
        let resume = ["--resume", &first.session];
        let ended = machine.ask(&gateway, id, "GO-ON second", &resume);
        ended.says("It holds true.");
        assert_eq!(
            asked(&provider, "GO-ON second").len(),
            1,
            "nothing was refused"
        );
    });
}

/// A model that fails twice in some way before it answers.
fn failing(
    mark: &'static str,
    failure: impl Fn() -> Said + Send + Sync + 'static,
) -> (Upstream, Gateway) {
    let failures = Arc::new(AtomicUsize::new(0));
    model(mark, move |_| {
        match failures.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => failure(),
            _ => Turn::text("Here it is.").into(),
        }
    })
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn a_stream_that_breaks_is_asked_for_again() {
    on_wires("a stream that breaks", ON_ONE, |id| {
        let (_provider, gateway) = failing("BREAKS", || {
            let breaks = true;
            Turn {
                breaks,
                ..Turn::text("This is the beginning of a long answer.")
            }
            .into()
        });
        Machine::new()
            .ask(&gateway, id, "BREAKS", &[])
            .says("Here it is.");
    });
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn a_provider_without_room_is_waited_for() {
    on_wires("a provider that refuses for a while", ON_ONE, |id| {
        let (_provider, gateway) = failing("CROWDED", || {
            let body = json!({"error": {"message": "slow down", "type": "rate_limit_error", "code": 429, "status": "RESOURCE_EXHAUSTED"}});
            // The client would give up on this much.
            let headers = [("content-type", "application/json"), ("retry-after", "77")];
            Said::Reply(Reply::whole(429, &headers, body.to_string()))
        });
        Machine::new()
            .ask(&gateway, id, "CROWDED", &[])
            .says("Here it is.");
    });
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn a_key_whose_budget_is_used_ends_the_run_with_words() {
    on_wires("a budget that is used", ON_ONE, |id| {
        let (provider, gateway) = model("TOO-DEAR", |_| Turn::text("The last one.").into());
        gateway.change(async |store| {
            let key_id = store.keys("acme").await.unwrap().remove(0).id;
            let terms = filters::accounts::TermsFile {
                limit: Some("0.000001".to_owned()),
                ..Default::default()
            };
            let change = weirgate::store::KeyChange {
                terms: Some(terms),
                ..Default::default()
            };
            store
                .by(&PROGRAM)
                .update_key(&key_id, &change)
                .await
                .unwrap();
        });
        let machine = Machine::new();
        machine
            .ask(&gateway, id, "TOO-DEAR", &[])
            .says("The last one.");
        let ended = machine.ask(&gateway, id, "TOO-DEAR again", &[]);
        assert!(ended.is_error, "{:#}", ended.said);
        assert!(ended.result.contains("limit"), "{:#}", ended.said);
        assert!(asked(&provider, "TOO-DEAR again").is_empty());
    });
}

/// Providers say that in many words; the client knows one wording, shortens the history and asks again.
#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn a_prompt_that_is_too_long_is_made_shorter() {
    const REFUSAL: &str = r#"{"error":{"message":"This model's maximum context length is 64000 tokens. However, your messages resulted in 70000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    on_wires("a prompt that is too long", ON_ONE, |id| {
        let machine = Machine::new();
        let (_provider, gateway) = model("TOO-LONG", |asked| {
            let is_summary = asked.last_text().contains("summary");
            if is_summary {
                return Turn::text("<summary>TOO-LONG: all that was said.</summary>").into();
            }
            let is_long = asked.holds("TOO-LONG second") && !asked.holds("all that was said");
            match is_long {
                true => Said::Reply(Reply::json(400, REFUSAL)),
                false => Turn::text("Noted.").into(),
            }
        });
        let mut session = machine.ask(&gateway, id, "TOO-LONG first", &[]).session;
        for turn in ["TOO-LONG more", "TOO-LONG second"] {
            let ended = machine.ask(&gateway, id, turn, &["--resume", &session]);
            ended.says("Noted.");
            session = ended.session;
        }
    });
}

/// The model says that its window is nearly full: the client asks for a summary and goes on with that.
#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn a_long_session_is_made_shorter() {
    on_wires("a session that is made shorter", ON_ONE, |id| {
        let machine = Machine::new();
        let (provider, gateway) = model("SHORTER", |asked| {
            let turn = match asked.last_text().contains("summary") {
                true => Turn::text("<summary>SHORTER: all that was said.</summary>"),
                false => Turn::text("Noted."),
            };
            turn.into()
        });
        let first = machine.ask(&gateway, id, "SHORTER: remember the number 7123", &[]);
        first.says("Noted.");
        let resume = ["--resume", &first.session];
        let ended = machine.ask(&gateway, id, "/compact", &resume);
        assert!(!ended.is_error, "{:#}", ended.said);
        let ended = machine.ask(
            &gateway,
            id,
            "SHORTER still?",
            &["--resume", &ended.session],
        );
        ended.says("Noted.");
        let last = asked(&provider, "SHORTER still?")
            .pop()
            .unwrap()
            .to_string();
        assert!(last.contains("all that was said"), "{last}");
        assert!(!last.contains("7123"), "{last}");
    });
}

/// Its own tool asks for a search of the vendor's in a request of its own; the gateway runs it over its search.
#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_searches_the_web() {
    on_wires("a search of the web", ON_ONE, |id| {
        let finder = Upstream::always(found_page());
        let provider = saying(|asked| {
            let result = asked.results.last();
            match (asked.offers("web_search"), result) {
                (true, None) => Turn::call("web_search", json!({"query": "small cats"})),
                (true, Some(found)) => Turn::text(format!("The web says: {found}")),
                _ if !asked.holds("WEB-LOOK") => Turn::text("A title"),
                (false, None) => Turn::call("WebSearch", json!({"query": "small cats"})),
                (false, Some(told)) => Turn::text(format!("I have read: {told}")),
            }
            .into()
        });
        let gateway = gateway_with_search(&provider, &finder, "1000");
        let ended = Machine::new().ask(&gateway, id, "WEB-LOOK", &[]);
        ended.says("https://cats.test");
        ended.says("Cats are small.");
        let searches: Vec<Value> = finder.requests().iter().map(|it| it.json()).collect();
        assert_eq!(searches.len(), 1, "{searches:?}");
        assert_eq!(searches[0]["query"], "small cats");
    });
}

/// No host here judges calls, and the client hears that of the first answer: it allows what its own rules allow, and refuses the
/// rest in words that end the matter. Where it heard of verdicts that are missing, it would try again, ten times.
#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn auto_mode_goes_on_by_its_own_rules_where_nobody_judges() {
    on_wires("auto mode, where nobody judges", ON_ONE, |id| {
        let machine = Machine::new();
        let (provider, gateway) = model("AUTO-RULES", |asked| {
            let command = match asked.results.len() {
                0 => "printf hi > out.txt && echo RAN-IT",
                1 => "sh -c 'printf hi > other.txt'",
                _ => return Turn::text(asked.results.join(" / ")).into(),
            };
            Turn::call(
                "Bash",
                json!({"command": command, "description": "Writes a file"}),
            )
            .into()
        });
        let ended = machine.ask(&gateway, id, "AUTO-RULES", &["--permission-mode", "auto"]);
        ended.says("RAN-IT");
        ended.says("does not run for this session");
        assert_eq!(machine.read("out.txt"), "hi");
        assert_eq!(machine.read("other.txt"), "");
        let asked = asked(&provider, "AUTO-RULES");
        assert_eq!(asked.len(), 3, "nothing is tried again");
        for request in asked {
            assert_eq!(request.get("safeguards"), None);
        }
    });
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn auto_mode_asks_the_model_itself_whether_a_call_is_dangerous() {
    on_wires("auto mode, judged by the model", ON_ONE, |id| {
        let machine = Machine::new();
        let (provider, gateway) = model("AUTO-JUDGE", |asked| {
            if asked.tools.is_empty() && asked.holds("<block>") {
                return Turn::text("<block>no</block>").into();
            }
            match asked.results.last() {
                None => Turn::call(
                    "Bash",
                    json!({"command": "sh -c 'printf hi > out.txt' && echo RAN-IT", "description": "Writes a file"}),
                ),
                Some(result) => Turn::text(format!("It said {result}")),
            }
            .into()
        });
        // `weirgate clients claude-code --model` prints them.
        let own = [
            ("CLAUDE_CODE_AUTO_MODE_SERVER", "0"),
            ("ANTHROPIC_DEFAULT_SONNET_MODEL", id),
        ];
        let auto = ["--permission-mode", "auto"];
        let ended = machine.ask_with(&gateway, id, "AUTO-JUDGE", &auto, &own);
        ended.says("RAN-IT");
        assert_eq!(machine.read("out.txt"), "hi");
        let judged = asked(&provider, "<block>");
        assert_eq!(judged.len(), 1, "the call was judged once");
    });
}

/// What the judge clears runs, what it flags does not, and the client asks no model itself.
#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn auto_mode_hears_the_verdicts_of_the_operators_judge() {
    on_wires("auto mode, judged by the operator's model", ON_ONE, |id| {
        let machine = Machine::new();
        let provider = saying(|asked| {
            if asked.body["model"] == "up-judge" {
                let question: Value = serde_json::from_str(&asked.last_text()).unwrap();
                let call = &question["calls"][0];
                let is_bad = call["input"].to_string().contains("FORBIDDEN");
                let outcome = if is_bad { "flagged" } else { "not_flagged" };
                let verdict =
                    json!({"id": call["id"], "outcome": outcome, "explanation": "It writes."});
                return Turn::text(json!({"verdicts": [verdict]}).to_string()).into();
            }
            let command = match (asked.holds("AUTO-VERDICT"), asked.results.len()) {
                (false, _) => return Turn::text("A title").into(),
                (true, 0) => "sh -c 'printf hi > out.txt' && echo RAN-IT",
                (true, 1) => "sh -c 'printf FORBIDDEN > other.txt'",
                _ => return Turn::text(asked.results.join(" / ")).into(),
            };
            let input = json!({"command": command, "description": "Writes a file"});
            Turn::call("Bash", input).into()
        });
        let gateway = gateway_with_judge(&provider, "judge");
        let auto = ["--permission-mode", "auto"];
        let ended = machine.ask(&gateway, id, "AUTO-VERDICT", &auto);
        ended.says("RAN-IT");
        assert_eq!(machine.read("out.txt"), "hi");
        assert_eq!(machine.read("other.txt"), "");
        assert_eq!(asked(&provider, "<block>").len(), 0, "nobody else judges");
    });
}
