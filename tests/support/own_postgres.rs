//! A PostgreSQL server for one test. It can be killed and restarted on the same address with the same data.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::JoinHandle;

use super::loopback::own_address;

/// `$1`: folder of the programs, `$2`: address, `$3`: port, `$4`: folder of the data, which is initialised if it is empty.
const SCRIPT: &str = r#"
set -e
cd /
dir=${4:-$(mktemp -d /tmp/weirgate-postgres-XXXXXX)}
echo "folder $dir"
[ -d "$dir/data" ] || "$1/initdb" -D "$dir/data" -U weirgate -A trust -E UTF8 --locale=C --no-sync >/dev/null
"$1/postgres" -D "$dir/data" -h "$2" -p "$3" -c unix_socket_directories= -c lc_messages=C 2>&1 &
server=$!
read -r _ || true
kill -QUIT "$server"
wait "$server" || true
"#;

/// The port of every server: their addresses differ.
const PORT: u16 = 15_432;

struct Running {
    shell: Child,
    leash: ChildStdin,
    /// Reads on what the server says, until its last process has ended.
    reader: JoinHandle<()>,
}

/// A server. Killed when dropped.
pub struct Postgres {
    address: Ipv4Addr,
    folder: String,
    running: Option<Running>,
}

impl Postgres {
    /// A server with an empty database `weirgate`.
    pub fn start() -> Postgres {
        let mut server = Postgres {
            address: own_address(),
            folder: String::new(),
            running: None,
        };
        server.start_again();
        server
    }

    /// Its own database.
    pub fn url(&self) -> String {
        format!("postgres://weirgate@{}:{PORT}/postgres", self.address)
    }

    /// Kills it at once, in the middle of its work (SIGKILL).
    pub fn kill(&mut self) {
        let running = self.running.take().expect("a running server");
        let file = format!("{}/data/postmaster.pid", self.folder);
        let text = std::fs::read_to_string(file).unwrap();
        let id = text.lines().next().unwrap();
        let killed = Command::new("kill").args(["-KILL", id]).status().unwrap();
        assert!(killed.success());
        running.end();
    }

    /// Restarts it on the same address, with the same data.
    #[expect(
        clippy::zombie_processes,
        reason = "`kill` and the end of the value wait for it"
    )]
    pub fn start_again(&mut self) {
        let mut shell = shell();
        shell.args(["-c", SCRIPT, "sh"]).arg(programs());
        shell.args([self.address.to_string(), PORT.to_string()]);
        shell.arg(&self.folder);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let leash = shell.stdin.take().expect("piped");
        let mut lines = BufReader::new(shell.stdout.take().expect("piped")).lines();
        let mut said = Vec::new();
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some(folder) = line.strip_prefix("folder ") {
                self.folder = folder.to_owned();
            }
            if line.contains("ready to accept connections") {
                // A thread reads on, because a full pipe would stop the server.
                let reader = std::thread::spawn(move || lines.for_each(drop));
                self.running = Some(Running {
                    shell,
                    leash,
                    reader,
                });
                return;
            }
            said.push(line);
        }
        panic!("PostgreSQL did not start: {}", said.join("\n"));
    }
}

impl Running {
    /// Waits until all of its processes have ended.
    fn end(mut self) {
        drop(self.leash);
        _ = self.shell.wait();
        _ = self.reader.join();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.end();
        }
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter();
    let folders = versions.flatten().flatten().map(|it| it.path().join("bin"));
    folders
        .filter(|folder| folder.join("postgres").exists())
        .max()
        .expect("PostgreSQL is missing: install Debian's package `postgresql`")
}

/// A shell of a user other than root, because the server refuses to run as root.
fn shell() -> Command {
    if std::fs::metadata("/proc/self").expect("Linux").uid() != 0 {
        return Command::new("sh");
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--", "sh"]);
    command
}
