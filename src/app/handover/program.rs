//! The program of this process, as the next process starts it.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The option with which a successor is started.
pub const UPGRADE_OPTION: &str = "--upgrade";
/// Variables that are about one process alone: the service manager's sockets and its watchdog.
const OWN_VARIABLES: [&str; 5] = [
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "LISTEN_PIDFDID",
    "WATCHDOG_PID",
];

/// Path and arguments of a program.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// Returns the program of this process. Call it at start: later its file may have been replaced, and the kernel then
    /// names the deleted one.
    ///
    /// The path is the one by which the process was started, so that a link which points to another version later is
    /// followed then.
    ///
    /// Errors: the program's file is not known.
    pub fn of_this_process() -> std::io::Result<Self> {
        let executable = std::env::current_exe()?;
        let mut arguments = std::env::args_os();
        let named = arguments.next().unwrap_or_default();
        let is_same = |path: &PathBuf| path.canonicalize().is_ok_and(|it| it == executable);
        let named = find_named(&named).into_iter().find(is_same);
        Ok(Self {
            path: named.unwrap_or(executable),
            arguments: arguments.filter(|it| it != UPGRADE_OPTION).collect(),
        })
    }

    /// Returns a program of this path, for tests.
    #[cfg(test)]
    pub(super) fn at(path: PathBuf) -> Self {
        Self {
            path,
            arguments: Vec::new(),
        }
    }

    /// Returns the path of its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts it as a successor of this process, with this standard input. The log, which is its standard output, is that
    /// of this process; what it says on stderr is read.
    ///
    /// Errors: the file cannot be executed.
    pub fn start_successor(&self, stdin: OwnedFd) -> std::io::Result<Child> {
        let mut command = Command::new(&self.path);
        command.arg(UPGRADE_OPTION).args(&self.arguments);
        for variable in OWN_VARIABLES {
            command.env_remove(variable);
        }
        command.stdin(stdin).stderr(Stdio::piped()).spawn()
    }
}

/// Returns the files that the first argument of a process may mean.
fn find_named(named: &OsStr) -> Vec<PathBuf> {
    let path = Path::new(named);
    if path.components().count() > 1 {
        return std::path::absolute(path).into_iter().collect();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders);
    folders.map(|folder| folder.join(path)).collect()
}
