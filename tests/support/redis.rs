//! A Redis server for one test, on a loopback address that no other test uses. It can be killed, paused and restarted on
//! the same address.
//!
//! It needs Debian's `redis-server` and fails if that is missing: a suite that skips shared state proves
//! nothing about it. A shell between the test process and the server holds a pipe to the former; when that closes,
//! however the process ended, it kills the server.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::loopback::own_address;

/// `$1`: address, `$2`: port, then more options. The server's output goes to stdout, after a line with its process id.
const SCRIPT: &str = r#"
cd /
address=$1 port=$2
shift 2
redis-server --bind "$address" --port "$port" --save '' --appendonly no "$@" 2>&1 &
server=$!
echo "process $server"
read -r _ || true
exec 2>/dev/null
kill -KILL "$server"
wait "$server"
"#;

/// The port of every server: their addresses differ.
const PORT: u16 = 16_379;
/// How often a cluster is asked whether it is ready, 5 ms apart.
const READY_CHECKS: usize = 4_000;

/// A server. Killed when dropped.
pub struct Redis {
    address: Ipv4Addr,
    options: Vec<String>,
    running: Option<Running>,
    /// Where a node of a cluster notes what it knows of the others.
    _folder: Option<TempDir>,
}

struct Running {
    process: String,
    shell: Child,
    /// The open end of the pipe keeps the server alive.
    leash: Option<ChildStdin>,
}

impl Redis {
    /// An empty server.
    pub fn start() -> Redis {
        Self::with_options(Vec::new(), None)
    }

    /// An empty cluster of one node, which holds all slots. It refuses commands and scripts whose keys are in two.
    pub fn start_cluster() -> Redis {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let options = ["--cluster-enabled", "yes", "--dir", path].map(str::to_owned);
        let redis = Self::with_options(options.into(), Some(folder));
        let mut connection = redis.connect();
        let mut slots = redis::cmd("CLUSTER");
        slots.arg("ADDSLOTSRANGE").arg(0).arg(16_383);
        slots.exec(&mut connection).unwrap();
        let mut info = redis::cmd("CLUSTER");
        info.arg("INFO");
        let mut told = || info.query::<String>(&mut connection).unwrap();
        let is_ready = (0..READY_CHECKS).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            told().contains("cluster_state:ok")
        });
        assert!(is_ready, "the cluster is not ready");
        redis
    }

    fn with_options(options: Vec<String>, folder: Option<TempDir>) -> Redis {
        let address = own_address();
        let running = Running::start(address, &options).unwrap_or_else(|said| {
            panic!("Redis did not start; is Debian's package `redis-server` installed?\n{said}")
        });
        Redis {
            address,
            options,
            running: Some(running),
            _folder: folder,
        }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://{}:{PORT}/0", self.address)
    }

    /// Kills it at once. Its data is lost.
    pub fn kill(&mut self) {
        drop(self.running.take().expect("a running server"));
    }

    /// Restarts it on the same address, empty.
    pub fn start_again(&mut self) {
        assert!(self.running.is_none());
        self.running =
            Some(Running::start(self.address, &self.options).expect("Redis starts again"));
    }

    /// Pauses it: it keeps its connections open and sends nothing.
    pub fn pause(&self) {
        self.running.as_ref().unwrap().signal("STOP");
    }

    /// Resumes it.
    pub fn resume(&self) {
        self.running.as_ref().unwrap().signal("CONT");
    }

    /// Returns how many scripts it has run for its clients.
    pub fn script_calls(&self) -> u64 {
        let mut info = redis::cmd("INFO");
        let text: String = info.arg("commandstats").query(&mut self.connect()).unwrap();
        let said = text
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        let count = said.and_then(|said| said.split(',').next());
        count.map_or(0, |count| count.parse().unwrap())
    }

    /// A connection to it.
    pub fn connect(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).unwrap();
        client.get_connection().unwrap()
    }
}

impl Running {
    fn start(address: Ipv4Addr, options: &[String]) -> Result<Running, String> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .args([address.to_string(), PORT.to_string()])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let leash = shell.stdin.take().expect("piped");
        let mut lines = BufReader::new(shell.stdout.take().expect("piped")).lines();
        let (mut said, mut process) = (Vec::new(), String::new());
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some(number) = line.strip_prefix("process ") {
                process = number.to_owned();
            }
            if line.contains("Ready to accept connections") {
                // A thread reads on, because a full pipe would stop the server.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(Running {
                    process,
                    shell,
                    leash: Some(leash),
                });
            }
            said.push(line);
        }
        let _ = shell.wait();
        Err(said.join("\n"))
    }

    fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        let status = kill.args([&format!("-{name}"), &self.process]).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Running {
    /// Kills the server and waits for its end, because its port is free only then.
    fn drop(&mut self) {
        self.leash = None;
        _ = self.shell.wait();
    }
}
