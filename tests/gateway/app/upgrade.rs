//! Upgrades in place and drains, from outside: the tests play the service manager and the package.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::models::fronts::chat_completions::{chunk, stream as chat_stream};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Client, ask};
use crate::support::flags;
use crate::support::loopback::own_address;
use crate::support::process::{Process, weirgate};
use crate::support::script::{Gate, Reply};
use crate::support::upstream::Upstream;
use crate::support::{POLL, WAIT_TIMEOUT, every, program_path, until};

const MODELS: &str = r#"
[[models]]
id = "sandbox-chat"
[[models.providers]]
provider = "sandbox"
name = "sandbox-chat"
input_price = "1"
output_price = "1"
"#;

/// A server that was started by a link, as an installation has it, under a service manager.
pub(super) struct Installed {
    pub(super) process: Process,
    manager: UnixDatagram,
    /// The folder of the manager's socket.
    _sockets: tempfile::TempDir,
}

/// The program's link in a folder, in place of which a package puts another file.
fn link(folder: &Path) -> PathBuf {
    folder.join("weirgate")
}

impl Installed {
    pub(super) fn start(more: &str) -> Installed {
        let sockets = tempfile::tempdir().unwrap();
        let path = sockets.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        let command = |folder: &Path| {
            symlink(program_path(), link(folder)).unwrap();
            let mut command = Command::new(link(folder));
            command
                .args(["serve", "-c", "weirgate.toml"])
                .env("NOTIFY_SOCKET", &path)
                .current_dir(folder);
            command
        };
        let process = Process::start_by(command, more, MODELS);
        let installed = Installed {
            process,
            manager,
            _sockets: sockets,
        };
        assert_eq!(installed.told(), ["READY=1"]);
        installed
    }

    fn folder(&self) -> &Path {
        self.process.folder.path()
    }

    /// The lines of the next message to the service manager.
    fn told(&self) -> Vec<String> {
        let mut bytes = [0; 4096];
        let count = self.manager.recv(&mut bytes).expect("a message");
        let text = std::str::from_utf8(&bytes[..count]).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub(super) fn command(&self, words: &[&str]) -> Output {
        weirgate(self.folder(), words)
    }

    /// Upgrades, and returns the process that the service manager knows from then on.
    fn upgrade(&self) -> u32 {
        let output = self.command(&["upgrade"]);
        assert!(output.status.success(), "{output:?}");
        // The old process names the new one, because a unit may listen to the main process alone. The new one does, too.
        let told = [self.told(), self.told()];
        let pid_beside = |line: &str| {
            let told = told.iter().find(|told| told.contains(&line.to_owned()));
            let mut lines = told.unwrap_or_else(|| panic!("{told:?}")).iter();
            let pid = lines.find_map(|line| line.strip_prefix("MAINPID="));
            pid.expect("MAINPID").parse::<u32>().unwrap()
        };
        let pid = pid_beside("WATCHDOG=1");
        assert_eq!(pid_beside("READY=1"), pid);
        pid
    }

    /// Puts a script in the place of the program.
    fn install_script(&self, lines: &str) {
        let path = link(self.folder());
        // The link goes, and not the program behind it.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    pub(super) fn chat(&self) -> Ask {
        let body = r#"{"model":"sandbox-chat","messages":[{"role":"user","content":"Hi"}]}"#;
        Ask::post("/v1/chat/completions", body).key(self.process.key())
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        // The processes that came after the first are no children of this one.
        let output = self.command(&["status"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let pid = said
            .split("process ")
            .nth(1)
            .and_then(|rest| rest.split(':').next());
        if let Some(pid) = pid {
            kill("-KILL", pid);
        }
    }
}

fn kill(signal: &str, pid: &str) {
    _ = Command::new("kill").args([signal, pid]).status();
}

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

pub(super) fn own_provider(upstream: &Upstream, more: &str) -> String {
    format!(
        "[providers.own]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n{more}",
        upstream.url()
    )
}

fn stream_of_own(process: &Process) -> Client {
    let mut client = Client::connect(process.address);
    let body = r#"{"model":"own/any","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
    client.send(&Ask::post("/v1/chat/completions", body).key(process.key()));
    client.head();
    client.chunk().unwrap();
    client
}

/// Asks again and again on connections that stay open, until it is told to stop. Returns how many were answered.
fn ask_steadily(address: SocketAddr, request: &Ask, stop: &AtomicBool) -> usize {
    let (mut answered, mut client) = (0, None);
    while !stop.load(Ordering::Relaxed) {
        let mut open = client.take().unwrap_or_else(|| Client::connect(address));
        let answer = open.ask(request);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answered += 1;
        if answer.header("connection") != Some("close") {
            client = Some(open);
        }
    }
    answered
}

/// Source: docs/promises-tests.md, "process upgraded or stopped".
#[test]
fn an_upgrade_cuts_no_stream_refuses_no_connection_and_charges_each_call_once() {
    let gate = Gate::default();
    let reply = Reply::stream()
        .event(&chunk(json!({"role": "assistant", "content": "hel"}), None))
        .wait(&gate)
        .event(&chunk(json!({"content": "lo"}), Some("stop")))
        .event("[DONE]")
        .end();
    let upstream = Upstream::always(reply);
    let mut installed = Installed::start(&own_provider(&upstream, ""));
    let old = installed.process.child.id();
    let mut client = stream_of_own(&installed.process);
    let (stop, request, address) = (
        AtomicBool::new(false),
        installed.chat(),
        installed.process.address,
    );
    let (answered, new) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| ask_steadily(address, &request, &stop)))
            .collect();
        let new = installed.upgrade();
        // The new one alone answers here from now on.
        until("the new process answers", || {
            let said = installed.command(&["status"]);
            String::from_utf8_lossy(&said.stdout).contains(&format!("process {new}: serves"))
        });
        for _ in 0..20 {
            assert_eq!(ask(address, &request).status(), 200);
        }
        stop.store(true, Ordering::Relaxed);
        let answered: usize = clients.into_iter().map(|it| it.join().unwrap()).sum();
        (answered + 20, new)
    });
    assert_ne!(new, old);
    assert!(is_running(old), "its stream runs");
    assert_eq!(
        ask(installed.process.admin, &Ask::get("/readyz")).status(),
        200
    );
    gate.open();
    assert!(crate::support::sse::parse(client.rest().0).is_done());
    drop(client);
    let ended = installed.process.wait(Duration::from_secs(8));
    assert!(
        ended.is_some(),
        "the old process ends behind its last stream"
    );
    let requests = || {
        let output = installed.command(&["usage", "--org", "default", "--format", "json"]);
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = rows.as_array().unwrap().iter();
        rows.filter_map(|row| row["requests"].as_u64()).sum::<u64>()
    };
    // The stream has no price, and is a call all the same.
    let expected = answered as u64 + 1;
    until("each call is in the ledger", || requests() >= expected);
    assert_eq!(requests(), expected);
}

/// The first batch hangs at its destination, so the old process ends before it knows that the batch has arrived.
#[test]
fn an_upgrade_exports_the_line_of_each_call_once() {
    let table = Upstream::sequence([Reply::hang(), Reply::whole(200, &[], "")]);
    let section = format!(
        "[log_export]\nkind = \"clickhouse\"\nurl = \"{}\"\nbatch_interval_s = 1\ntimeout_s = 600\n",
        table.url()
    );
    let mut installed = Installed::start(&section);
    let (stop, request, address) = (
        AtomicBool::new(false),
        installed.chat(),
        installed.process.address,
    );
    let answered = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| ask_steadily(address, &request, &stop)))
            .collect();
        table.wait_requests(1);
        installed.upgrade();
        for _ in 0..20 {
            assert_eq!(ask(address, &request).status(), 200);
        }
        stop.store(true, Ordering::Relaxed);
        clients
            .into_iter()
            .map(|it| it.join().unwrap())
            .sum::<usize>()
            + 20
    });
    assert!(
        installed.process.wait(WAIT_TIMEOUT).is_some(),
        "the old one ends"
    );
    let state = installed.folder().join("var");
    until("nothing waits", || {
        crate::log_export::segments(&state).is_empty()
    });
    let inserts = table.requests();
    // Inserts with one token count once.
    let lines = crate::log_export::objects(&inserts);
    let mut ids = crate::log_export::ids(&lines);
    assert_eq!(ids.len(), answered);
    ids.dedup();
    assert_eq!(ids.len(), answered);
    let again = inserts.iter().filter(|it| it.path == inserts[0].path);
    assert!(again.count() > 1, "the next process has sent it again");
}

#[test]
fn a_provider_that_fails_is_avoided_by_the_next_process_too() {
    let failing = Upstream::always(Reply::json(500, "{}"));
    let second = Upstream::always(chat_stream());
    let gateway = || Gateway::between(&failing.url(), &second.url());
    let body = r#"{"model":"chat","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
    let old = gateway();
    for _ in 0..6 {
        assert_eq!(old.chat(body).status(), 200);
    }
    let asked = failing.requests().len();
    let new = gateway();
    let passed = old.running.app.models.health_to_bytes();
    assert!(new.running.app.models.take_in_health(&passed) > 0);
    assert_eq!(new.chat(body).status(), 200);
    assert_eq!(failing.requests().len(), asked);
    assert_eq!(new.running.app.models.take_in_health(&passed[..9]), 0);
}

#[test]
fn forced_decisions_and_profiles_hold_in_the_next_process() {
    let more = "[decisions]\nuser_profiles = \"memory\"\n\
                [[decisions.projects]]\nsdk_key = \"sandbox\"\ndatafile = \"sandbox\"\n";
    let installed = Installed::start(more);
    let post = |path: &str, body: Value| {
        let answer = ask(installed.process.address, &flags::call(path, &body));
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer
    };
    let forced =
        json!({"userId": "u", "experimentKey": "checkout_test", "variationKey": "one_page"});
    post("/v1/override", forced);
    let bucketed = json!({"401": {"variation_id": "602"}});
    let saved = json!({"userId": "v", "experimentBucketMap": bucketed});
    post("/v1/save", saved);
    let kept = || post("/v1/lookup", json!({"userId": "v"})).json();
    let before = kept();
    assert_eq!(before["experimentBucketMap"], bucketed);
    installed.upgrade();
    assert_eq!(kept(), before);
    let decided = post("/v1/decide?keys=checkout", json!({"userId": "u"}));
    assert_eq!(decided.json()["variationKey"], "one_page");
}

#[test]
fn after_an_upgrade_another_one_is_possible_once_the_old_process_has_ended() {
    let mut installed = Installed::start("");
    let first = installed.upgrade();
    assert!(installed.process.wait(Duration::from_secs(10)).is_some());
    let second = installed.upgrade();
    assert_ne!(first, second);
    until("the first successor ends", || !is_running(first));
    let asked = ask(installed.process.address, &installed.chat());
    assert_eq!(asked.status(), 200);
    // The service manager stops the one that it knows.
    kill("-TERM", &second.to_string());
    until("it ends", || !is_running(second));
    assert!(TcpStream::connect(installed.process.address).is_err());
    assert!(!installed.folder().join("var/control.sock").exists());
}

#[test]
fn a_new_program_that_does_not_start_leaves_the_old_process_serving_and_is_quoted() {
    let installed = Installed::start("");
    let old = installed.process.child.id();
    for script in [
        "echo 'no such library' >&2; exit 1",
        "echo 'no such library' >&2; printf 'HTTP/1.1 200 OK\\r\\n\\r\\n' >&0; exit 0",
    ] {
        installed.install_script(script);
        let output = installed.command(&["upgrade"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("no such library"), "{said}");
        assert!(said.contains(&format!("Process {old} serves on")), "{said}");
        let asked = ask(installed.process.address, &installed.chat());
        assert_eq!(asked.status(), 200);
    }
    std::fs::remove_file(link(installed.folder())).unwrap();
    symlink(program_path(), link(installed.folder())).unwrap();
    assert_ne!(installed.upgrade(), old);
}

#[test]
fn sockets_of_a_service_manager_are_served_in_place_of_own_ones() {
    let listeners = [(); 2].map(|()| TcpListener::bind((own_address(), 0)).unwrap());
    let addresses = [0, 1].map(|index: usize| listeners[index].local_addr().unwrap());
    let [public, admin] = listeners.map(OwnedFd::from);
    let script = "exec 3<&0 4>&1 0</dev/null 1>/dev/null; \
                  LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=listen.address:admin.address exec \"$0\" serve -c weirgate.toml";
    let folder = tempfile::tempdir().unwrap();
    let toml = format!(
        "[listen]\naddress = \"{}\"\n[admin]\naddress = \"{}\"\n",
        addresses[0], addresses[1]
    );
    std::fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", script])
        .arg(program_path())
        .current_dir(folder.path())
        .stdin(public)
        .stdout(admin)
        .spawn()
        .unwrap();
    // Connections wait in the sockets until the process serves.
    let answers = addresses.map(|address| ask(address, &Ask::get("/livez")).status());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(answers[1], 200);
    assert!(answers[0] < 500, "{answers:?}");
}

/// Source: docs/promises-tests.md, "stream breaks".
#[test]
fn a_stream_that_still_runs_at_the_end_of_the_grace_period_ends_with_its_error_event() {
    let reply = Reply::stream()
        .event(&chunk(json!({"role": "assistant", "content": "hel"}), None))
        .and_hang();
    let upstream = Upstream::always(reply);
    let more = "[server]\ngrace_period_s = 1\n";
    let mut process = Process::start(&own_provider(&upstream, more));
    let mut client = stream_of_own(&process);
    process.terminate();
    let stream = crate::support::sse::parse(client.rest().0);
    let last = stream.json().pop().expect("an event");
    assert_eq!(last["error"]["code"], "upstream_timeout", "{last}");
    assert!(!stream.says_done());
    let took = process.wait(Duration::from_secs(5));
    assert!(took.is_some());
    assert_eq!(process.child.wait().unwrap().code(), Some(0));
}

#[test]
fn before_the_listener_closes_readyz_fails_for_the_delay_of_the_drain() {
    let mut process = Process::start("[server]\ndrain_delay_s = 2\n");
    let mut kept = Client::connect(process.address);
    assert_ne!(kept.ask(&Ask::get("/")).header("connection"), Some("close"));
    process.terminate();
    until("/readyz fails", || {
        ask(process.admin, &Ask::get("/readyz")).status() == 503
    });
    // Load balancers that have not looked yet still reach it, and are told to look elsewhere.
    let answer = ask(process.address, &Ask::get("/"));
    assert_eq!(
        (answer.status(), answer.header("connection")),
        (200, Some("close"))
    );
    assert_eq!(kept.ask(&Ask::get("/")).header("connection"), Some("close"));
    let is_closed = |_: &Duration| TcpStream::connect(process.address).is_err();
    let closed = every(POLL, Duration::from_secs(5)).find(is_closed);
    assert!(
        closed.is_some_and(|after| after > Duration::from_secs(1)),
        "{closed:?}"
    );
    assert!(process.wait(Duration::from_secs(3)).is_some());
}

#[test]
fn reload_and_status_answer_and_without_a_server_say_how_to_start_one() {
    let mut process = Process::start("");
    let status = weirgate(process.folder.path(), &["status"]);
    let said = String::from_utf8(status.stdout).unwrap();
    let expected = format!("process {}: serves", process.child.id());
    assert!(said.contains(&expected), "{said}");
    let status = weirgate(process.folder.path(), &["status", "--format", "json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["process"], process.child.id());
    for (field, expected) in [
        ("/state", json!("serves")),
        ("/store/state", json!("answers")),
        ("/load/in_flight", json!(0)),
        ("/journal/refused", json!(0)),
        ("/leases/reserved", json!("0")),
    ] {
        assert_eq!(status.pointer(field), Some(&expected), "{status}");
    }
    assert!(
        status["load"]["memory_bytes"].as_u64() > Some(1_000_000),
        "{status}"
    );
    assert!(
        status["configuration"]["hash"]
            .as_str()
            .is_some_and(|it| !it.is_empty())
    );
    let reload = weirgate(process.folder.path(), &["reload", "--format", "json"]);
    let reply: Value = serde_json::from_slice(&reload.stdout).unwrap();
    assert_eq!(
        (reload.status.code(), &reply["ok"]),
        (Some(0), &json!(true))
    );
    process.terminate();
    assert!(process.wait(Duration::from_secs(3)).is_some());
    for command in ["reload", "upgrade", "status"] {
        let output = weirgate(process.folder.path(), &[command]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("weirgate serve"), "{said}");
    }
}
