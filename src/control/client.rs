//! The socket's side of a command line.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ControlReply, ControlRequest, MAX_REPLY_BYTES};

/// How long a reply is waited for. An upgrade and a reload have bounds of their own, which are shorter.
const REPLY_TIMEOUT: Duration = Duration::from_secs(600);

/// The reason for which no reply came.
#[derive(Debug)]
pub enum ClientError {
    /// No process serves at the path.
    NoServer(PathBuf),
    /// The socket is another user's.
    Forbidden(PathBuf),
    /// The process has closed the connection without a reply.
    Closed(PathBuf),
    /// The connection failed, or the reply is none.
    Failed(PathBuf, io::Error),
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoServer(path) => write!(
                f,
                "no server runs at {}: start one with `weirgate serve`, and name the same configuration here (-c)",
                path.display()
            ),
            Self::Forbidden(path) => write!(
                f,
                "{}: permission denied: run this as the user of the server, or as root",
                path.display()
            ),
            Self::Closed(path) => write!(
                f,
                "{}: the server has not answered: its log says why, or eight commands wait already",
                path.display()
            ),
            Self::Failed(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for ClientError {}

/// Asks the process at a path to run a command, and waits until it has.
///
/// Errors: see [`ClientError`].
pub fn ask(path: &Path, request: impl Into<ControlRequest>) -> Result<ControlReply, ClientError> {
    let failed = |error: io::Error| {
        let path = path.to_owned();
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => ClientError::NoServer(path),
            ErrorKind::PermissionDenied => ClientError::Forbidden(path),
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => ClientError::Closed(path),
            _ => ClientError::Failed(path, error),
        }
    };
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    stream
        .set_read_timeout(Some(REPLY_TIMEOUT))
        .map_err(failed)?;
    let mut line = serde_json::to_vec(&request.into()).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    stream.write_all(&line).map_err(failed)?;
    let mut reply = Vec::new();
    let mut reader = BufReader::new(stream).take(MAX_REPLY_BYTES);
    reader.read_until(b'\n', &mut reply).map_err(failed)?;
    if !reply.ends_with(b"\n") {
        return Err(ClientError::Closed(path.to_owned()));
    }
    serde_json::from_slice(&reply).map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::control::ControlCommand;

    #[test]
    fn without_a_server_the_error_says_how_to_start_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let absent = ask(&path, ControlCommand::Reload).unwrap_err();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let dead = ask(&path, ControlCommand::Reload).unwrap_err();
        for error in [absent, dead] {
            assert!(matches!(error, ClientError::NoServer(_)), "{error}");
            assert!(error.to_string().contains("weirgate serve"), "{error}");
        }
    }
}
