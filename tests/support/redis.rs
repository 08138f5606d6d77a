//! A Redis server of a test's own, on a free port of the loopback address: it can be killed, stopped and started
//! again where it was.
//!
//! It needs Debian's `redis-server` and fails where it is missing: a suite that skips what processes share proves
//! nothing about it. A shell between the test process and the server holds a pipe to the former; when that closes,
//! however the process ended, it kills the server.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, Command, Stdio};

/// `$1`: port. What the server says goes to stdout, behind a line with its process.
const SCRIPT: &str = r#"
cd /
redis-server --port "$1" --bind 127.0.0.1 --save '' --appendonly no 2>&1 &
server=$!
echo "process $server"
read -r _ || true
kill -KILL "$server" 2>/dev/null
wait "$server"
"#;

/// How often a free port is looked for that nobody else takes meanwhile.
const ATTEMPTS: u32 = 5;

/// A server. Killed when dropped.
pub struct Redis {
    port: u16,
    running: Option<Running>,
}

struct Running {
    process: String,
    shell: Child,
    // The open end of the pipe keeps the server alive.
    _leash: ChildStdin,
}

impl Redis {
    /// An empty server.
    pub fn start() -> Redis {
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            drop(listener);
            match Running::start(port) {
                Ok(running) => {
                    let running = Some(running);
                    return Redis { port, running };
                }
                Err(lines) => said = lines,
            }
        }
        panic!("Redis did not start; is Debian's package `redis-server` installed?\n{said}");
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Ends it at once. What it held is lost.
    pub fn kill(&mut self) {
        let mut running = self.running.take().expect("a running server");
        running.signal("KILL");
        running.shell.kill().unwrap();
        running.shell.wait().unwrap();
    }

    /// Starts it where it was, empty.
    pub fn start_again(&mut self) {
        assert!(self.running.is_none());
        self.running = Some(Running::start(self.port).expect("Redis starts again"));
    }

    /// It keeps its connections and says nothing.
    pub fn pause(&self) {
        self.running.as_ref().unwrap().signal("STOP");
    }

    /// It goes on.
    pub fn resume(&self) {
        self.running.as_ref().unwrap().signal("CONT");
    }

    /// A connection to it.
    pub fn connect(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).unwrap();
        client.get_connection().unwrap()
    }
}

impl Running {
    fn start(port: u16) -> Result<Running, String> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "sh", &port.to_string()])
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
                // Somebody has to read on, or a full pipe would stop the server.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(Running {
                    process,
                    shell,
                    _leash: leash,
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
    fn drop(&mut self) {
        // A stopped server does not see its leash go.
        let mut kill = Command::new("kill");
        let _ = kill
            .args(["-KILL", &self.process])
            .stderr(Stdio::null())
            .status();
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
