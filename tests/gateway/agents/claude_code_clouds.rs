//! Claude Code on Claude of the clouds, whose hosts are as strict as their vendors.

use serde_json::json;

use super::machine::Machine;
use super::matrix;
use crate::support::boot::Gateway;
use crate::support::clouds::CloudHosts;
use crate::support::scripted::{Asked, Said, Turn};

/// The clouds that serve Claude over Messages: Foundry, Bedrock, Vertex.
const CLOUDS: [&str; 3] = ["azure-messages", "bedrock-messages", "vertex-messages"];

/// Clouds whose model does what a prompt with this mark asks for, and names titles and the like otherwise.
fn clouds(
    mark: &'static str,
    script: impl Fn(&Asked) -> Turn + Send + Sync + 'static,
) -> (CloudHosts, Gateway) {
    let hosts = CloudHosts::start(move |_, asked| {
        Said::Turn(match asked.holds(mark) {
            true => script(asked),
            false => Turn::text("A title"),
        })
    });
    let gateway = hosts.gateway("", "");
    (hosts, gateway)
}

/// Fails the test if a host has refused something, or was not asked.
fn assert_taken(hosts: &CloudHosts, id: &str) {
    let refused = hosts.refusals();
    assert!(refused.is_empty(), "{refused:?}");
    assert!(!hosts.host(id).requests().is_empty(), "{id} was not asked");
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_says_hello_on_every_cloud() {
    for id in CLOUDS {
        let (hosts, gateway) = clouds("HELLO", |_| Turn::text("Hello from a cloud."));
        let ended = Machine::new().ask(&gateway, id, "HELLO, who are you?", &[]);
        ended.says("Hello from a cloud.");
        assert_taken(&hosts, id);
        matrix::note("a question and its answer", id);
    }
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_runs_a_command_on_every_cloud() {
    for id in CLOUDS {
        let machine = Machine::new();
        let out = machine.path("out.txt");
        let command = format!("printf 'a\\tb' > {out} && echo RAN-IT");
        let (hosts, gateway) = clouds("RUN-ONE", move |asked| match asked.results.last() {
            None => Turn::call(
                "Bash",
                json!({"command": command, "description": "Writes a file"}),
            ),
            Some(result) => Turn::text(format!("It said {result}")),
        });
        machine.ask(&gateway, id, "RUN-ONE", &[]).says("RAN-IT");
        assert_eq!(machine.read("out.txt"), "a\tb");
        assert_taken(&hosts, id);
        matrix::note("a shell command", id);
    }
}

#[test]
#[ignore = "needs Claude Code: make test-agents"]
fn it_reads_two_files_and_shows_why_on_every_cloud() {
    for id in CLOUDS {
        let machine = Machine::new();
        machine.write("a.txt", "the first is APPLE\n");
        machine.write("b.txt", "the second is PEAR\n");
        let read = |name| json!({"file_path": machine.path(name)});
        let (first, second) = (read("a.txt"), read("b.txt"));
        let (hosts, gateway) = clouds("READ-TWO", move |asked| {
            let turn = match asked.results.len() {
                0 => Turn::text("I read both.")
                    .and_call("Read", first.clone())
                    .and_call("Read", second.clone()),
                _ => Turn::text(format!("They say: {}", asked.results.join(" / "))),
            };
            let reasoning = Some("Both files are small.".to_owned());
            Turn { reasoning, ..turn }
        });
        let ended = machine.ask(&gateway, id, "READ-TWO: what do a.txt and b.txt say?", &[]);
        ended.says("APPLE");
        ended.says("PEAR");
        assert_taken(&hosts, id);
        matrix::note("two tools at once, with reasoning", id);
    }
}
