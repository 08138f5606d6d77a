//! The process as a new user starts it: its banner, its first response, its end.

use std::fs::DirEntry;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use weirgate::app::boot;
use weirgate::config;
use weirgate::telemetry::logging::AccessLog;

use crate::models::fronts::chat_completions::chunk;
use crate::support::ask::Ask;
use crate::support::client::{Client, ask};
use crate::support::flags::call;
use crate::support::loopback::own_address;
use crate::support::process::{Process, serve_in, weirgate};
use crate::support::script::{Gate, Reply};
use crate::support::upstream::Upstream;
use crate::support::{POLL, WAIT_TIMEOUT, every};

/// Runs command lines in the folder of a process; returns each with what it printed, the status on the last line.
fn run_all<'l>(process: &Process, lines: &[&'l str], key: &str) -> Vec<(&'l str, String)> {
    let run = |line: &&'l str| {
        let command = format!("{line} -s -w '\\n%{{http_code}}'");
        let mut shell = Command::new("sh");
        let shell = shell.current_dir(process.folder.path());
        let shell = shell.env("WEIRGATE_API_KEY", key);
        let output = shell.args(["-c", &command]).output().unwrap();
        (*line, String::from_utf8(output.stdout).unwrap())
    };
    lines.iter().map(run).collect()
}

fn assert_answered(answers: &[(&str, String)], expected: &[(&str, &str)]) {
    for (curl, answer) in answers {
        let (_, status) = answer.rsplit_once('\n').unwrap();
        assert!(["200", "201", "204"].contains(&status), "{curl}: {answer}");
    }
    for (path, part) in expected {
        let has_path = |(curl, _): &&(&str, String)| curl.contains(&format!("{path}'"));
        let (curl, answer) = answers.iter().find(has_path).expect(path);
        assert!(answer.contains(part), "{curl}: {answer}");
    }
}

/// All three products, on sandboxes.
const PRODUCTS: &str = "[decisions]\n[[decisions.projects]]\nsdk_key = \"s\"\ndatafile = \"sandbox\"\n\
                        [graph]\nupstream = \"sandbox\"\n[[graph.tenants]]\nid = \"a\"\nsingle_keys = [\"k\"]\n";

/// Source: interface "First run".
#[test]
fn the_first_start_prints_at_most_twelve_lines_and_each_of_its_commands_answers() {
    let process = Process::start(PRODUCTS);
    assert!(process.banner.len() <= 12, "{:#?}", process.banner);
    let lines: Vec<&str> = process.curls().map(String::as_str).collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    let expected = [
        ("/v1/chat/completions", "sandbox-chat"),
        ("/v1/decide?keys=dark_mode", "dark_mode"),
        ("/content/v2?auth=k", r#"{"hello":"Ada"}"#),
    ];
    assert_answered(&run_all(&process, &lines, ""), &expected);
}

#[test]
fn each_line_of_examples_answers() {
    let process = Process::start(PRODUCTS);
    let url = format!("http://{}", process.address);
    let output = weirgate(process.folder.path(), &["examples", "--url", &url]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines.len() > 20, "{printed}");
    assert!(
        lines.iter().all(|line| line.starts_with("curl ")),
        "{printed}"
    );
    let expected = [
        ("/v1/models/sandbox-chat", "sandbox-chat"),
        ("/v1/chat/completions", "sandbox-chat"),
        ("/v1/decide?keys=dark_mode", "dark_mode"),
        ("/content/v2?auth=k", r#"{"hello":"Ada"}"#),
    ];
    assert_answered(&run_all(&process, &lines, process.key()), &expected);
    let output = weirgate(
        process.folder.path(),
        &["examples", "--url", &url, "--key", process.key()],
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.lines().count(), lines.len());
    assert!(printed.contains(process.key()) && !printed.contains("$WEIRGATE"));
}

#[test]
fn examples_without_a_server_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("weirgate.toml"), "").unwrap();
    let free = TcpListener::bind((own_address(), 0)).unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let output = weirgate(folder.path(), &["examples", "--url", &url]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains(&url) && said.contains("weirgate serve"),
        "{said}"
    );
}

/// `weirgate … | head` is no mistake: the reader has what it wants.
#[test]
fn a_reader_that_closes_the_pipe_gets_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let models = "[[models]]\nid = \"m\"\n[[models.providers]]\nprovider = \"p\"\nname = \"n\"\n";
    let toml = "[models]\nfile = \"models.toml\"\n[providers.p]\nkind = \"sandbox\"\n";
    std::fs::write(folder.path().join("models.toml"), models).unwrap();
    std::fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
    for words in [
        &["--help"][..],
        &["--version"],
        &["check"],
        &["check", "--format", "json"],
        &["config", "show"],
        &["config", "schema"],
        &["org", "create", "acme"],
        &["org", "list"],
        &["project", "list", "--org", "acme"],
        &["key", "create", "--org", "acme"],
        &["key", "list", "--org", "acme"],
        &["member", "list", "--org", "acme"],
        &["credit", "show", "--org", "acme"],
        &["provider-key", "list", "--org", "acme"],
        &["prompt", "list", "--org", "acme"],
        &["usage", "--org", "acme"],
        &["journal", "list"],
        &["models", "list"],
        &["man"],
        &["completions", "bash"],
        &["mcp"],
        &["decisions", "client-secret"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = crate::support::program()
            .args(words)
            .args(["-c", "weirgate.toml"])
            .current_dir(folder.path())
            .stdout(writer)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
        let is_error = said.contains("error") || said.contains("panic");
        assert!(!is_error, "{words:?}: {said}");
    }
}

/// Reads the name, cut after 15 bytes, and the niceness of a thread from its `stat`.
fn name_and_niceness(stat: &str) -> (String, i32) {
    let (thread, fields) = stat.rsplit_once(") ").unwrap();
    let (_, name) = thread.split_once(" (").unwrap();
    let niceness = fields.split(' ').nth(16).unwrap();
    (name.to_owned(), niceness.parse().unwrap())
}

#[test]
fn threads_in_the_background_give_way_to_those_that_serve_and_to_the_journal() {
    let process = Process::start("");
    // Workers exist once one has answered.
    _ = ask(process.address, &Ask::get("/")).status();
    let of_process = Path::new("/proc").join(process.child.id().to_string());
    let first = std::fs::read_to_string(of_process.join("stat")).unwrap();
    let (_, of_first) = name_and_niceness(&first);
    // A thread may end in between.
    let stat = |thread: std::io::Result<DirEntry>| {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("stat"));
        stat.ok().as_deref().map(name_and_niceness)
    };
    let threads = || {
        std::fs::read_dir(of_process.join("task"))
            .unwrap()
            .filter_map(stat)
    };
    for (name, is_lowered) in [
        ("background", true),
        ("sqlx-sqlite", true),
        ("log", true),
        ("gateway", false),
        ("journal", false),
    ] {
        // A thread has the name and the priority of the one that started it until it has run for the first time.
        let mut found: Vec<_> = Vec::new();
        let waited = every(POLL, WAIT_TIMEOUT).any(|_| {
            found = threads()
                .filter(|(thread, _)| thread.starts_with(name))
                .collect();
            let is_right = |(_, it): &(String, i32)| (*it > of_first) == is_lowered;
            !found.is_empty() && found.iter().all(is_right)
        });
        assert!(waited, "{name}: {found:?}");
    }
}

#[test]
fn the_printed_curl_line_answers_and_stdout_carries_json_lines_alone() {
    let mut process = Process::start("");
    let is_chat = |curl: &&String| curl.contains("/v1/chat/completions");
    let curl = process.curls().find(is_chat).unwrap().clone();
    let output = Command::new("sh")
        .args(["-c", &format!("{curl} -s -w '\\n%{{http_code}}'")])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.ends_with("\n200") && text.contains("\"used_provider\":\"sandbox\""),
        "{text}"
    );
    assert_eq!(ask(process.admin, &Ask::get("/readyz")).status(), 200);
    process.terminate();
    assert!(
        process.wait(Duration::from_secs(1)).is_some(),
        "an idle process ends within a second"
    );
    let mut stdout = String::new();
    process
        .child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    let lines: Vec<serde_json::Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let access = lines
        .iter()
        .find(|line| line["route"] == "chat_completions")
        .expect("an access line");
    for key in [
        "time",
        "request_id",
        "organization",
        "key_id",
        "model",
        "provider",
        "attempts",
        "status",
        "duration_ms",
        "prompt_tokens",
        "cost",
    ] {
        assert!(!access[key].is_null(), "{key}: {access}");
    }
    assert!(
        !stdout.contains(process.key()) && !stdout.contains("Hello"),
        "no key and no body in the log"
    );
}

#[test]
fn the_key_is_printed_once() {
    let mut process = Process::start("");
    process.terminate();
    process.wait(Duration::from_secs(2)).unwrap();
    let folder = process.folder.path().to_owned();
    let mut again = serve_in(&folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(again.stderr.take().unwrap()).lines();
    let said: Vec<String> = (0..3).map(|_| lines.next().unwrap().unwrap()).collect();
    again.kill().unwrap();
    again.wait().unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(
        !said.iter().chain(&rest).any(|line| line.contains("wg_")),
        "{said:?} {rest:?}"
    );
}

/// A process that was asked to stop after the first piece of a client's stream, and that client. The listener has closed.
fn stopped_within_a_stream(upstream: &Upstream) -> (Process, Client) {
    let provider = format!(
        "[providers.own]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []",
        upstream.url()
    );
    let process = Process::start(&provider);
    let mut client = Client::connect(process.address);
    let body = r#"{"model":"own/any","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
    client.send(&Ask::post("/v1/chat/completions", body).key(process.key()));
    client.head();
    client.chunk().unwrap();
    process.terminate();
    let is_closed = |_| TcpStream::connect(process.address).is_err();
    assert!(
        every(POLL, Duration::from_secs(5)).any(is_closed),
        "the listener closes"
    );
    (process, client)
}

#[test]
fn a_stream_ends_normally_after_sigterm_and_then_the_process() {
    let gate = Gate::default();
    let reply = Reply::stream()
        .event(&chunk(
            serde_json::json!({"role": "assistant", "content": "hel"}),
            None,
        ))
        .wait(&gate)
        .event(&chunk(serde_json::json!({"content": "lo"}), Some("stop")))
        .event("[DONE]")
        .end();
    let upstream = Upstream::always(reply);
    let (mut process, mut client) = stopped_within_a_stream(&upstream);
    assert!(
        process.child.try_wait().unwrap().is_none(),
        "a request is still running"
    );
    gate.open();
    assert!(crate::support::sse::parse(client.rest().0).is_done());
    assert!(process.wait(Duration::from_secs(1)).is_some());
}

#[test]
fn while_the_last_request_ends_the_operators_listener_answers_and_a_second_signal_ends_now() {
    for second in ["-TERM", "-INT"] {
        let gate = Gate::default();
        let reply = Reply::stream()
            .event(&chunk(serde_json::json!({"content": "hel"}), None))
            .wait(&gate)
            .end();
        let upstream = Upstream::always(reply);
        let (mut process, _client) = stopped_within_a_stream(&upstream);
        for _ in 0..3 {
            assert_eq!(ask(process.admin, &Ask::get("/readyz")).status(), 503);
            assert_eq!(ask(process.admin, &Ask::get("/livez")).status(), 200);
            let metrics = ask(process.admin, &Ask::get("/metrics"));
            assert!(metrics.text().contains("weirgate_connections_open "));
        }
        process.signal(second);
        let took = process.wait(Duration::from_secs(5));
        assert!(took.is_some(), "{second}: it ends");
        let status = process.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{second}");
        gate.open();
    }
}

#[test]
fn a_start_prints_the_warnings_that_check_prints() {
    let folder = tempfile::tempdir().unwrap();
    let toml = "[listen]\naddress = \"127.0.0.1:0\"\nclient_ip_header = \"x-real-ip\"\n\
                [admin]\naddress = \"127.0.0.1:0\"\n";
    std::fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
    let mut child = serve_in(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said: Vec<String> = lines
        .map(Result::unwrap)
        .take_while(|line| !line.contains("listens on"))
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let checked = crate::support::program()
        .args(["check", "-c", "weirgate.toml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let checked = String::from_utf8(checked.stdout).unwrap();
    let told: Vec<_> = checked
        .lines()
        .filter(|line| line.starts_with("warning: "))
        .collect();
    assert_eq!(told.len(), 2, "{checked}");
    for line in told {
        assert!(said.iter().any(|said| said == line), "{line}: {said:?}");
    }
}

#[test]
fn what_decisions_have_to_tell_is_sent_before_the_process_ends() {
    for signal in ["-TERM", "-INT"] {
        let backend = Upstream::always(Reply::whole(204, &[], ""));
        let decisions = format!(
            "[decisions]\nevent_url = \"{}/e\"\nevent_flush_interval_s = 3600\n\
             [[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"sandbox\"",
            backend.url()
        );
        let mut process = Process::start(&decisions);
        let decide = call("/v1/decide", &serde_json::json!({"userId": "ada"}));
        assert_eq!(ask(process.address, &decide).status(), 200);
        process.signal(signal);
        assert!(process.wait(Duration::from_secs(4)).is_some(), "{signal}");
        assert_eq!(backend.requests().len(), 1, "{signal}");
    }
}

#[test]
fn a_start_that_cannot_listen_makes_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let toml = format!(
        "[listen]\naddress = \"{}\"\n[admin]\naddress = \"127.0.0.1:0\"\n[providers.sandbox]\nkind = \"sandbox\"\n",
        taken.local_addr().unwrap()
    );
    std::fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
    let output = crate::support::program()
        .args(["-c", "weirgate.toml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("listen.address"));
    assert!(
        !folder.path().join("var/weirgate.db").exists(),
        "no store, so no key that nobody gets to see"
    );
}

#[test]
fn nothing_else_can_take_the_ports_of_a_gateway_that_starts() {
    let folder = tempfile::tempdir().unwrap();
    let addresses = [8080, 9090].map(|port| SocketAddr::from((own_address(), port)));
    let (path, [public, admin]) = (folder.path().display(), addresses);
    let toml = format!(
        "[listen]\naddress = \"{public}\"\n[admin]\naddress = \"{admin}\"\n\
         [store]\nurl = \"sqlite:{path}/weirgate.db\"\nstate_dir = \"{path}\"\n"
    );
    let loaded = config::from_str(&toml, []).unwrap_or_else(|bad| panic!("{}", bad[0]));
    // The log starts before the store is opened and long before Pingora runs.
    let running = boot(loaded, |metrics| {
        for address in addresses {
            let refused = TcpListener::bind(address).unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::AddrInUse, "{address}");
        }
        AccessLog::start(std::io::sink(), metrics.log_dropped.clone())
    });
    let running = running.unwrap();
    assert_eq!((running.public, running.admin), (public, admin));
    assert_eq!(ask(public, &Ask::get("/")).status(), 200);
    assert_eq!(ask(admin, &Ask::get("/readyz")).status(), 200);
}
