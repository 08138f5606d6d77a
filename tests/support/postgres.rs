//! A PostgreSQL server for the whole suite, in a new folder, on a loopback address that no other server uses.
//!
//! It needs the server's programs under `/usr/lib/postgresql/*/bin` and fails if they are missing: a suite
//! that skips its second database proves nothing about it. A shell between the test process and the server holds
//! a pipe to the former; when that closes, however the process ended, it stops the server and removes the folder.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use self::loopback::own_address;

#[path = "loopback.rs"]
mod loopback;

/// `$1`: folder of the programs, `$2`: address, `$3`: port. The server's output goes to stdout.
const SCRIPT: &str = r#"
set -e
cd /
dir=$(mktemp -d /tmp/weirgate-postgres-XXXXXX)
trap 'rm -rf "$dir"' EXIT
"$1/initdb" -D "$dir/data" -U weirgate -A trust -E UTF8 --locale=C --no-sync >/dev/null
"$1/postgres" -D "$dir/data" -h "$2" -p "$3" -c unix_socket_directories= \
    -c fsync=off -c lc_messages=C 2>&1 &
server=$!
read -r _ || true
kill -QUIT "$server"
wait "$server" || true
"#;

/// The port of every server: their addresses differ.
const PORT: u16 = 15_432;

struct Server {
    address: Ipv4Addr,
    // The open end of the pipe keeps the server alive.
    _leash: ChildStdin,
    _shell: Child,
}

/// The URL of a new, empty database. The server behind it is started once per test process.
///
/// It also returns the URL of the server's own database and the statement that creates the new one.
pub struct Database {
    /// The database in which the statement runs.
    pub server_url: String,
    /// Makes the new database.
    pub create: String,
    /// The new database.
    pub url: String,
}

/// A database that no other test uses.
pub fn database() -> Database {
    static SERVER: OnceLock<Server> = OnceLock::new();
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let address = SERVER.get_or_init(start).address;
    let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let base = format!("postgres://weirgate@{address}:{PORT}");
    Database {
        server_url: format!("{base}/postgres"),
        create: format!("CREATE DATABASE {name}"),
        url: format!("{base}/{name}"),
    }
}

fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .filter(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
        .max()
        .expect("PostgreSQL is missing: install Debian's package `postgresql`")
}

fn start() -> Server {
    let address = own_address();
    let mut shell = shell();
    shell.args(["-c", SCRIPT, "sh"]).arg(programs());
    shell.args([address.to_string(), PORT.to_string()]);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().expect("a shell");
    let leash = shell.stdin.take().expect("piped");
    let mut lines = BufReader::new(shell.stdout.take().expect("piped")).lines();
    let mut said = Vec::new();
    for line in lines.by_ref().map_while(Result::ok) {
        if line.contains("ready to accept connections") {
            // A thread reads on, because a full pipe would stop the server.
            std::thread::spawn(move || lines.for_each(drop));
            return Server {
                address,
                _leash: leash,
                _shell: shell,
            };
        }
        said.push(line);
    }
    _ = shell.wait();
    panic!("PostgreSQL did not start: {}", said.join("\n"));
}

/// A shell of a user other than root, because the server refuses to run as root.
fn shell() -> Command {
    let is_root = std::fs::metadata("/proc/self").expect("Linux").uid() == 0;
    if is_root {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", "sh"]);
        command
    } else {
        Command::new("sh")
    }
}
