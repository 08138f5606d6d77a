//! A folder in which a page runs, with a gateway of the shipped configuration.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::page::{Page, Run};
use crate::{loopback, root};

/// The address that pages name, of the shipped configuration.
const NAMED: [&str; 2] = ["127.0.0.1", "localhost"];
const PORTS: [&str; 2] = ["8080", "8081"];
/// Providers that are on, so that pages can name their models. Nothing can be asked of them.
const PROVIDERS: [(&str, &str, &str); 4] = [
    ("OPENAI", "OPENAI_API_KEY", "/v1"),
    ("ANTHROPIC", "ANTHROPIC_API_KEY", ""),
    ("GOOGLE", "GEMINI_API_KEY", ""),
    ("ZAI", "ZAI_API_KEY", "/v1"),
];
/// How long a gateway may take to print its key.
const START: Duration = Duration::from_secs(240);
/// How long the blocks of a page may take together, in seconds.
const PATIENCE_S: &str = "400";
/// How the last line of the first start begins.
const LAST_LINE: &str = "All of it: ";

/// What stands before the blocks of a page.
const PRELUDE: &str = r#"set -eEuo pipefail
wanted=2xx at=
trap 'code=$?; echo "$at: exit $code: $BASH_COMMAND" >&2' ERR
curl() {
    if [ "$wanted" = 2xx ]; then
        command curl --fail-with-body --silent --show-error --max-time 60 "$@"
    else
        local status
        status=$(command curl --silent --show-error --max-time 60 --output /dev/stderr --write-out '%{http_code}' "$@")
        [ "$status" = "$wanted" ] || { echo "status $status, not $wanted" >&2; return 1; }
    fi
}
is_printed() {
    local file=$1 printed
    shift
    printed=$("$@" | sed 's/^ *//')
    [[ "$printed" == *"$(sed 's/^ *//' "$file")"* ]] || {
        echo "$at: $* does not print this, but: $printed" >&2
        return 1
    }
}
systemctl() {
    case "$*" in
    "stop weirgate")
        kill -TERM "$SERVER_PID"
        # Who has started it sees its end later.
        while grep -qs -v ') Z ' "/proc/$SERVER_PID/stat"; do sleep 0.05; done
        ;;
    "start weirgate")
        weirgate serve > /dev/null 2>> server.log &
        SERVER_PID=$!
        until command curl --silent --fail --output /dev/null "http://$WEIRGATE_ADMIN__ADDRESS/readyz"; do
            kill -0 "$SERVER_PID"
            sleep 0.05
        done
        ;;
    "restart weirgate") systemctl stop weirgate && systemctl start weirgate ;;
    "reload weirgate") weirgate reload ;;
    *) echo "systemctl $*: the test knows start, stop, restart and reload of weirgate" >&2 && return 1 ;;
    esac
}
"#;

/// A gateway, and all that the page has started; killed when dropped.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // A process that took over from the first one is in its group.
        let group = format!("-{}", self.0.id());
        let mut kill = Command::new("kill");
        let kill = kill.args(["-KILL", "--", &group]).stderr(Stdio::null());
        _ = kill.status();
        _ = self.0.wait();
    }
}

/// Runs the blocks of a page in order.
///
/// Errors: the place of the first command that failed, with what was said.
pub fn run(page: &Page) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    lay_out(folder);
    let host = loopback::own_address().to_string();
    let file = |name: &str| File::create(folder.join(name)).unwrap();
    let said = |name: &str| fs::read(folder.join(name)).unwrap_or_default();
    let mut server = command(folder, &host, "weirgate");
    let server = server.arg("serve").stdout(Stdio::null());
    let server = server.stderr(file("server.log")).spawn().unwrap();
    let mut server = Group(server);
    let log = || String::from_utf8_lossy(&said("server.log")).into_owned();
    let key = wait_for_key(&mut server.0, log)
        .map_err(|problem| format!("{}: {problem}\n{}", page.path, log()))?;
    fs::write(folder.join("page.sh"), script_of(page, &host)).unwrap();
    let mut shell = command(folder, &host, "timeout");
    let shell = shell
        .args(["--kill-after=5", PATIENCE_S, "bash", "page.sh"])
        .env("WEIRGATE_API_KEY", key)
        .env("PYTHON", root().join("target/clients/venv/bin/python"))
        .env("SERVER_PID", server.0.id().to_string())
        .stdin(Stdio::null())
        .stdout(file("out"))
        .stderr(file("err"));
    let mut shell = Group(shell.spawn().unwrap());
    let status = shell.0.wait().unwrap();
    if status.success() {
        return Ok(());
    }
    let [out, err, server] = ["out", "err", "server.log"].map(|name| last_lines(&said(name)));
    let path = &page.path;
    Err(format!(
        "{path}: {status}\n{err}\nwhat it printed:\n{out}\nthe gateway:\n{server}"
    ))
}

/// Makes the files of the folder: the shipped configuration, and the program.
fn lay_out(folder: &Path) {
    for inner in ["conf", "bin"] {
        fs::create_dir(folder.join(inner)).unwrap();
    }
    for file in ["conf/weirgate.toml", "conf/models.toml"] {
        fs::copy(root().join(file), folder.join(file)).unwrap();
    }
    let modules = root().join("target/clients/node_modules");
    std::os::unix::fs::symlink(modules, folder.join("node_modules")).unwrap();
    let program = std::env::var_os("WEIRGATE_TEST_BINARY");
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_weirgate").into());
    std::os::unix::fs::symlink(program, folder.join("bin/weirgate")).unwrap();
}

/// A program in the folder, whose environment has nothing of this machine's accounts.
fn command(folder: &Path, host: &str, program: &str) -> Command {
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new(match program {
        "weirgate" => folder.join("bin/weirgate"),
        other => other.into(),
    });
    command
        .env_clear()
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .env("HOME", folder)
        .env("WEIRGATE_LISTEN__ADDRESS", format!("{host}:{}", PORTS[0]))
        .env("WEIRGATE_ADMIN__ADDRESS", format!("{host}:{}", PORTS[1]))
        .current_dir(folder)
        .process_group(0);
    for (name, key, path) in PROVIDERS {
        let url = format!("WEIRGATE_PROVIDERS__{name}__BASE_URL");
        command.env(key, "sk-example");
        command.env(url, format!("http://{host}:9{path}"));
    }
    command
}

fn wait_for_key(server: &mut Child, said: impl Fn() -> String) -> Result<String, String> {
    let started = Instant::now();
    while started.elapsed() < START {
        if let Some(status) = server.try_wait().unwrap() {
            return Err(format!("the gateway did not start: {status}"));
        }
        let said = said();
        if said.lines().any(|line| line.starts_with(LAST_LINE)) {
            let key = said.lines().find(|line| line.starts_with("wg_"));
            return key
                .map(str::to_owned)
                .ok_or_else(|| "the gateway printed no key".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("the gateway printed no key within {START:?}"))
}

/// The blocks of a page as one script, so that variables and folders of a block hold in those that follow.
fn script_of(page: &Page, host: &str) -> String {
    let mut script = PRELUDE.to_owned();
    for block in &page.blocks {
        let text = addressed(&block.commands(), host);
        let at = format!("at='{}:{}'", page.path, block.line);
        let mut add = |text: std::fmt::Arguments| script.write_fmt(text).unwrap();
        match &block.run {
            Run::Never | Run::Skip(_) => {}
            Run::Succeeds if !block.is_shell() => {
                let (program, file) = match &*block.language {
                    "python" => ("\"$PYTHON\"", "block.py"),
                    _ => ("node", "block.mjs"),
                };
                add(format_args!(
                    "{at}\n{}{program} {file}\n",
                    written(">", file, &text)
                ));
            }
            Run::Succeeds => add(format_args!("{at} wanted=2xx\n{text}")),
            Run::PrintedBy(command) => add(format_args!(
                "{at}\n{}is_printed block.txt {command}\n",
                written(">", "block.txt", &text)
            )),
            Run::Status(status) => add(format_args!("{at} wanted={status}\n{text}")),
            Run::Exit(code) => add(format_args!(
                "{at} wanted=2xx code=0\ntrap - ERR\nset +e\n(set -e\n{text})\ncode=$?\nset -e\n\
                 trap 'code=$?; echo \"$at: exit $code: $BASH_COMMAND\" >&2' ERR\n\
                 [ \"$code\" = {code} ] || {{ echo \"$at: exit $code, not {code}\" >&2; exit 1; }}\n"
            )),
            Run::Write(name) | Run::Append(name) => {
                let arrow = match block.run {
                    Run::Write(_) => ">",
                    _ => ">>",
                };
                add(format_args!("{at}\n{}", written(arrow, name, &text)));
            }
        }
    }
    script
}

/// A command that writes a text into a file.
fn written(arrow: &str, name: &str, text: &str) -> String {
    format!(
        "mkdir -p \"$(dirname '{name}')\"\ncat {arrow} '{name}' <<'END OF THE BLOCK'\n{text}END OF THE BLOCK\n"
    )
}

/// Replaces the address that pages name by that of this page's gateway.
fn addressed(text: &str, host: &str) -> String {
    let mut text = text.to_owned();
    for (name, port) in NAMED.iter().flat_map(|name| PORTS.map(|port| (name, port))) {
        text = text.replace(&format!("{name}:{port}"), &format!("{host}:{port}"));
    }
    text
}

fn last_lines(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.len().saturating_sub(15);
    lines[start..].join("\n")
}
