//! Runs a part as a process: starts it, measures it, ends it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::kind::Kind;

/// The time that a binary has to start, also under valgrind.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A running part.
pub struct Part {
    child: Child,
    /// The address of its listener.
    pub address: String,
    /// The API key that it accepts, if it has one.
    pub key: String,
    /// The API key of a project whose replies are cached.
    pub caching_key: String,
    /// The address of the operator's listener, if it tells it.
    pub admin: String,
}

/// CPU time by thread, in microseconds. Threads of one name count as one.
#[derive(Clone, Debug, Default)]
pub struct Cpu(pub BTreeMap<String, f64>);

impl Cpu {
    /// Returns the time of all threads.
    pub fn sum(&self) -> f64 {
        self.0.values().sum()
    }

    /// Returns the time since an earlier reading, divided by the number of calls.
    pub fn per_call_since(&self, earlier: &Self, calls: usize) -> Self {
        let since = |(thread, us): (&String, &f64)| {
            let before = earlier.0.get(thread).copied().unwrap_or_default();
            // A thread that has ended takes its time with it.
            (thread.clone(), (us - before).max(0.0) / calls as f64)
        };
        Self(self.0.iter().map(since).collect())
    }
}

impl Part {
    /// Starts this program in a role. It prints its address, its keys and the address of its operator's listener on its first line.
    pub fn start(role: &str, variables: &[(&str, &str)]) -> Part {
        Self::start_under(&[], role, variables)
    }

    /// Starts this program in a role under a tool such as valgrind.
    pub fn start_under(tool: &[String], role: &str, variables: &[(&str, &str)]) -> Part {
        let mut command = command_under(tool, &std::env::current_exe().unwrap());
        command
            .env("WEIRGATE_BENCH_ROLE", role)
            .envs(variables.iter().copied());
        Self::run(command, role, role == "upstream")
    }

    /// Starts another program that listens on this address, and waits until it does. Its output goes nowhere.
    pub fn start_program(mut command: Command, address: String, keys: &str) -> Part {
        command.stdout(Stdio::null());
        let child = spawn(&mut command, "the binary", false);
        let mut part = Self::with_words(child, std::iter::once(&*address).chain(keys.split(' ')));
        let started = Instant::now();
        while TcpStream::connect(&part.address).is_err() {
            let ended = part.child.try_wait().unwrap();
            assert!(ended.is_none(), "the binary did not start: {ended:?}");
            assert!(started.elapsed() < START_TIMEOUT, "the binary listens");
            std::thread::sleep(Duration::from_millis(5));
        }
        part
    }

    /// Starts the public npm SDK behind `node:http` on the same flags, if `make bench` has installed it.
    pub fn sdk() -> Option<Part> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = root.join("target/oracle");
        if !folder.join("node_modules").is_dir() {
            return None;
        }
        let script = folder.join("sdk.mjs");
        std::fs::copy(root.join("benches/loopback/sdk.mjs"), &script).unwrap();
        let mut command = Command::new("node");
        command.arg(script).arg(root.join("conf/flags.json"));
        Some(Self::run(command, "sdk", false))
    }

    fn run(mut command: Command, role: &str, is_beside_load: bool) -> Part {
        command.stdout(Stdio::piped());
        let mut child = spawn(&mut command, role, is_beside_load);
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        assert!(!line.trim().is_empty(), "{role} did not start");
        Self::with_words(child, line.split_whitespace())
    }

    fn with_words<'a>(child: Child, words: impl Iterator<Item = &'a str>) -> Part {
        let mut words = words.map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        Part {
            child,
            address: word(),
            key: word(),
            caching_key: word(),
            admin: word(),
        }
    }

    /// Returns a request of this kind, with the key that it needs.
    pub fn request(&self, kind: Kind) -> Vec<u8> {
        kind.request(match kind {
            Kind::Replay => &self.caching_key,
            _ => &self.key,
        })
    }

    /// Returns its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it by SIGTERM, and waits.
    pub fn end(mut self) {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it by SIGKILL.
    pub fn kill(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }

    /// Returns the CPU time used so far. The scheduler counts it in nanoseconds.
    pub fn cpu_us(&self) -> Cpu {
        let mut cpu = Cpu::default();
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.id())).unwrap() {
            let folder = thread.unwrap().path();
            let read = |name| std::fs::read_to_string(folder.join(name));
            // A thread may end meanwhile.
            let (Ok(name), Ok(times)) = (read("comm"), read("schedstat")) else {
                continue;
            };
            let on_cpu_ns: f64 = times.split(' ').next().unwrap().parse().unwrap();
            *cpu.0
                .entry(thread_group(name.trim()).to_owned())
                .or_default() += on_cpu_ns / 1e3;
        }
        cpu
    }

    /// Returns the resident memory.
    pub fn resident_kib(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Returns the peak of resident memory since [`Self::reset_peak_kib`].
    pub fn peak_kib(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Resets the peak and returns the resident memory.
    pub fn reset_peak_kib(&self) -> u64 {
        std::fs::write(format!("/proc/{}/clear_refs", self.id()), "5").unwrap();
        self.resident_kib()
    }

    fn status(&self, key: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the command that runs a program under a tool, if any.
pub fn command_under(tool: &[String], program: &Path) -> Command {
    let [tool, arguments @ ..] = tool else {
        return Command::new(program);
    };
    let mut command = Command::new(tool);
    command.args(arguments).arg(program);
    command
}

/// Starts a process: beside the load, or on the proxy's core.
fn spawn(command: &mut Command, role: &str, is_beside_load: bool) -> Child {
    let mut spawn = || {
        command
            .spawn()
            .unwrap_or_else(|error| panic!("{role}: {error}"))
    };
    match is_beside_load {
        true => spawn(),
        false => Cores::of_process().for_proxy(spawn),
    }
}

/// Returns whether a tool is installed.
pub fn is_installed(tool: &str) -> bool {
    let mut command = Command::new(tool);
    let tried = command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

/// Returns the work of a thread with this name. Bare Pingora names its worker after its service.
fn thread_group(name: &str) -> &str {
    match name {
        name if name.starts_with("gateway") || name.starts_with("Pingora HTTP") => "worker",
        name if name.starts_with("sqlx") => "SQLite",
        name if name.starts_with("loopback") => "main",
        name => name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-'),
    }
}

/// The cores: one for the measured part with all of its threads, the others for the upstream and the load.
pub struct Cores(Option<(CpuSet, CpuSet)>);

impl Cores {
    /// Divides the cores of this process, once. A single core is shared by all.
    pub fn of_process() -> &'static Self {
        static CORES: OnceLock<Cores> = OnceLock::new();
        CORES.get_or_init(|| {
            let all = sched_getaffinity(None).unwrap();
            let mut cores = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core));
            let proxy = cores.next_back().unwrap();
            let (mut mine, mut others) = (CpuSet::new(), CpuSet::new());
            mine.set(proxy);
            cores.for_each(|core| others.set(core));
            if others.count() == 0 {
                return Self(None);
            }
            sched_setaffinity(None, &others).unwrap();
            Self(Some((mine, others)))
        })
    }

    /// Returns the number of cores.
    pub fn count(&self) -> u32 {
        self.0.as_ref().map_or(1, |(_, others)| 1 + others.count())
    }

    /// Starts a process on the proxy's core. A process inherits the cores of the thread that starts it.
    fn for_proxy<T>(&self, start: impl FnOnce() -> T) -> T {
        let Some((mine, others)) = &self.0 else {
            return start();
        };
        sched_setaffinity(None, mine).unwrap();
        let started = start();
        sched_setaffinity(None, others).unwrap();
        started
    }
}
