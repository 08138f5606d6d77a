//! Ends the suite where a test hangs, and names it: a suite that never ends says nothing.
//!
//! A test is watched from the first time that it starts a server or a client until its thread ends.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::Write;
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Maximum time of one test. The longest takes a minute on an idle machine.
const LIMIT: Duration = Duration::from_secs(480);
/// How often the watch looks.
const PAUSE: Duration = Duration::from_secs(5);

type Tests = HashMap<ThreadId, (String, Instant)>;

static RUNNING: LazyLock<Mutex<Tests>> = LazyLock::new(|| {
    std::thread::spawn(watch);
    Mutex::default()
});

/// The entry of a test; removed when its thread ends.
struct Watched(ThreadId);

thread_local! {
    static THIS: OnceCell<Option<Watched>> = const { OnceCell::new() };
}

/// Watches the test of this thread. Other threads, which have no test's name, are not watched.
pub fn watch_this_test() {
    THIS.with(|this| {
        this.get_or_init(|| {
            let thread = std::thread::current();
            let name = thread.name().filter(|name| name.contains("::"))?;
            let place = std::fs::read_link("/proc/thread-self").unwrap_or_default();
            let name = format!("{name} ({})", place.display());
            with_running(|all| all.insert(thread.id(), (name, Instant::now())));
            Some(Watched(thread.id()))
        });
    });
}

impl Drop for Watched {
    fn drop(&mut self) {
        with_running(|all| all.remove(&self.0));
    }
}

fn with_running<R>(change: impl FnOnce(&mut Tests) -> R) -> R {
    change(&mut RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
}

fn watch() {
    loop {
        std::thread::sleep(PAUSE);
        let hanging = with_running(|all| {
            let found = all.values().find(|(_, since)| since.elapsed() > LIMIT);
            found.map(|(name, _)| name.clone())
        });
        if let Some(name) = hanging {
            end(&name);
        }
    }
}

/// Tells what hangs and where, and ends this process and what it started.
fn end(name: &str) -> ! {
    let id = std::process::id().to_string();
    // The suite keeps back what a test prints, and what the threads of a test print.
    let say = |text: &str| {
        _ = writeln!(
            std::io::stderr(),
            "\nThe test {name} has not ended within {LIMIT:?}{text}"
        )
    };
    say(". What the suite has started:");
    let list = ["--ppid", &id, "-o", "pid,etimes,stat,wchan:24,args"];
    _ = Command::new("ps").args(list).status();
    // Where a debugger is installed, it tells where each thread of the suite stands.
    let of_all = "thread apply all backtrace 24";
    let stacks = ["120", "gdb", "-p", &id, "-batch", "-ex", of_all];
    _ = Command::new("timeout").args(stacks).status();
    say(", so the suite ends here.");
    _ = Command::new("pkill").args(["-KILL", "-P", &id]).status();
    std::process::abort();
}
