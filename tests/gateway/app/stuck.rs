//! A process whose threads are stuck, as its service manager and its probes see it.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::ask::Ask;
use crate::support::client::ask;
use crate::support::process::{Process, weirgate};
use crate::support::{WAIT_TIMEOUT, program_path, until};

const MODELS: &str = r#"
[[models]]
id = "sandbox-chat"
[[models.providers]]
provider = "sandbox"
name = "sandbox-chat"
input_price = "1"
output_price = "1"
"#;

/// The time in which the manager wants a sign of life.
const WATCHDOG: Duration = Duration::from_secs(6);
/// What it is told of threads that are stuck.
const STATUS: &str = "STATUS=all threads that serve requests are stuck";

/// The service manager's end of the socket.
struct Manager(UnixDatagram);

impl Manager {
    /// Waits for a message, and returns when it came.
    fn wait_for(&self, message: &str) -> Instant {
        loop {
            let told = self.next().unwrap_or_else(|| panic!("no {message}"));
            if told == message {
                return Instant::now();
            }
        }
    }

    fn next(&self) -> Option<String> {
        let mut bytes = [0; 4096];
        let count = self.0.recv(&mut bytes).ok()?;
        let text = std::str::from_utf8(&bytes[..count]).unwrap();
        Some(text.trim_end().to_owned())
    }
}

/// Source: docs/promises-tests.md, "All threads that serve requests are stuck".
#[test]
fn threads_that_are_stuck_stop_the_signs_of_life_and_fail_the_probes_until_they_go_on() {
    let sockets = tempfile::tempdir().unwrap();
    let path = sockets.path().join("notify");
    let manager = Manager(UnixDatagram::bind(&path).unwrap());
    manager.0.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    let command = |folder: &Path| {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/app/hold_threads.py");
        let mut command = Command::new("python3");
        command
            .arg(script)
            .arg(program_path())
            .args(["serve", "-c", "weirgate.toml"])
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string())
            .current_dir(folder);
        command
    };
    let process = Process::start_by(command, "", MODELS);
    let probe = |path: &str| ask(process.admin, &Ask::get(path)).status();
    let is_well = || {
        weirgate(process.folder.path(), &["status", "--quiet"])
            .status
            .success()
    };
    manager.wait_for("READY=1");
    manager.wait_for("WATCHDOG=1");
    assert_eq!(
        (probe("/livez"), probe("/readyz"), is_well()),
        (200, 200, true)
    );

    process.signal("-USR1");
    manager.wait_for(STATUS);
    assert_eq!(
        (probe("/livez"), probe("/readyz"), is_well()),
        (503, 503, false)
    );
    // Longer than the manager waits.
    manager.0.set_read_timeout(Some(WATCHDOG * 2)).unwrap();
    assert_eq!(manager.next(), None);

    manager.0.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    process.signal("-USR2");
    manager.wait_for("STATUS=");
    manager.wait_for("WATCHDOG=1");
    until("the probes succeed", || {
        (probe("/livez"), probe("/readyz"), is_well()) == (200, 200, true)
    });
}
