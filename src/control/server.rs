//! The socket's side of the running process.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{ControlReply, ControlRequest, MAX_REQUEST_BYTES};

/// The longest path of a unix socket on Linux, in bytes.
pub const MAX_PATH_BYTES: usize = 107;
/// The maximum number of clients at once. Our choice: reloads queue, and nobody needs more.
const MAX_CLIENTS: usize = 8;
/// How long a client may take to send its line, and to read the reply.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after a failed `accept`, so that a lack of descriptors does not busy a core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Runs a command and returns its reply.
pub type RunCommand = dyn Fn(ControlRequest) -> BoxFuture<'static, ControlReply> + Send + Sync;

/// The reason for which there is no control socket.
#[derive(Debug)]
pub enum BindError {
    /// The path is longer than [`MAX_PATH_BYTES`].
    TooLong(PathBuf),
    /// A process serves at the path.
    InUse(PathBuf),
    /// The file system failed.
    File(PathBuf, io::Error),
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong(path) => write!(
                f,
                "{}: the path of a socket may have {MAX_PATH_BYTES} bytes: set server.upgrade_socket to a shorter one",
                path.display()
            ),
            Self::InUse(path) => write!(
                f,
                "{}: another process answers here: set server.upgrade_socket to another path",
                path.display()
            ),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for BindError {}

/// A bound control socket. Its file is removed when it is dropped, unless another process has replaced the file.
pub struct ControlSocket {
    path: PathBuf,
    /// Device and inode of the socket's file.
    file: (u64, u64),
    listener: std::os::unix::net::UnixListener,
}

impl ControlSocket {
    /// Binds the socket with mode 0600. It replaces the file that a dead process has left; a successor also that of its
    /// running predecessor, in one step, so that there is a socket at any time.
    ///
    /// Errors: see [`BindError`].
    pub fn bind(path: &Path, is_successor: bool) -> Result<Self, BindError> {
        let failed = |error| BindError::File(path.to_owned(), error);
        // The socket gets its mode under another name, so nobody connects before.
        let draft = path.with_extension(format!("{:x}", std::process::id()));
        if path
            .as_os_str()
            .as_bytes()
            .len()
            .max(draft.as_os_str().as_bytes().len())
            > MAX_PATH_BYTES
        {
            return Err(BindError::TooLong(path.to_owned()));
        }
        if !is_successor && BlockingStream::connect(path).is_ok() {
            return Err(BindError::InUse(path.to_owned()));
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        remove(&draft).map_err(failed)?;
        let listener = std::os::unix::net::UnixListener::bind(&draft).map_err(failed)?;
        let socket = place(&draft, path).map_err(|error| {
            _ = remove(&draft);
            failed(error)
        })?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            file: socket,
            listener,
        })
    }

    /// Answers clients until the future is dropped.
    pub async fn serve(self, run: Arc<RunCommand>) {
        let Ok(listener) = self.listener.try_clone().and_then(UnixListener::from_std) else {
            return log::error!("{}: commands cannot be received", self.path.display());
        };
        let clients = Arc::new(Semaphore::new(MAX_CLIENTS));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let Ok(place) = Arc::clone(&clients).try_acquire_owned() else {
                // Closed without a word: eight commands wait already.
                continue;
            };
            let run = Arc::clone(&run);
            tokio::spawn(async move {
                answer(stream, &*run).await;
                drop(place);
            });
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if identify(&self.path).is_ok_and(|file| file == self.file) {
            _ = remove(&self.path);
        }
    }
}

/// Gives a bound socket its mode and its name. Returns its device and inode.
#[expect(
    clippy::disallowed_methods,
    reason = "a socket does not outlive its process, so its name need not be durable"
)]
fn place(draft: &Path, path: &Path) -> io::Result<(u64, u64)> {
    fs::set_permissions(draft, Permissions::from_mode(0o600))?;
    fs::rename(draft, path)?;
    identify(path)
}

fn identify(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Answers one client. One that says nothing, or reads nothing, is left.
async fn answer(mut stream: UnixStream, run: &RunCommand) {
    let Ok(Some(line)) = timeout(CLIENT_TIMEOUT, read_line(&mut stream)).await else {
        return;
    };
    let reply = match serde_json::from_slice::<ControlRequest>(&line) {
        // The work goes on if the client leaves.
        Ok(request) => run(request).await,
        Err(error) => ControlReply::failed(format!("no command: {error}")),
    };
    let Ok(mut reply) = serde_json::to_vec(&reply) else {
        return;
    };
    reply.push(b'\n');
    _ = timeout(CLIENT_TIMEOUT, stream.write_all(&reply)).await;
}

/// Returns a client's line, or `None` if there is none, or if it is too long.
async fn read_line(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut reader = BufReader::new(stream).take(MAX_REQUEST_BYTES);
    reader.read_until(b'\n', &mut line).await.ok()?;
    line.ends_with(b"\n").then_some(line)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::io::{Read, Write};

    use futures::FutureExt;
    use tempfile::TempDir;

    use super::*;
    use crate::control::ControlCommand;
    use crate::control::client::{self, ClientError};

    fn folder() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        (folder, path)
    }

    fn serve(path: &Path) -> tokio::task::JoinHandle<()> {
        let socket = ControlSocket::bind(path, false).unwrap();
        let run = |request: ControlRequest| {
            async move { ControlReply::done(request.command.as_str()) }.boxed()
        };
        tokio::spawn(socket.serve(Arc::new(run)))
    }

    async fn ask(path: &Path, command: ControlCommand) -> Result<ControlReply, ClientError> {
        let path = path.to_owned();
        let asked = tokio::task::spawn_blocking(move || client::ask(&path, command));
        asked.await.unwrap()
    }

    /// Sends bytes and returns all that comes back.
    async fn say(path: &Path, bytes: &'static [u8]) -> Vec<u8> {
        let path = path.to_owned();
        let said = tokio::task::spawn_blocking(move || {
            let mut stream = BlockingStream::connect(path).unwrap();
            // A client that was left gets an error here.
            _ = stream.write_all(bytes);
            let mut reply = Vec::new();
            _ = stream.read_to_end(&mut reply);
            reply
        });
        said.await.unwrap()
    }

    #[tokio::test]
    async fn only_the_user_of_the_process_may_ask_and_is_answered() {
        let (_folder, path) = folder();
        let serving = serve(&path);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        for command in [ControlCommand::Reload, ControlCommand::Status] {
            let reply = ask(&path, command).await.unwrap();
            assert_eq!(reply, ControlReply::done(command.as_str()));
        }
        serving.abort();
        _ = serving.await;
        assert!(!path.exists(), "the file goes with the socket");
    }

    #[tokio::test]
    async fn what_is_no_command_is_answered_so_and_too_long_a_line_is_left() {
        let (_folder, path) = folder();
        let _serving = serve(&path);
        for wrong in [
            &b"\n"[..],
            b"reload\n",
            b"{\"command\":\"stop\"}\n",
            b"{\"command\":\"reload\",\"more\":1}\n",
            b"\xff\xfe\n",
        ] {
            let reply: ControlReply = serde_json::from_slice(&say(&path, wrong).await).unwrap();
            assert!(
                !reply.ok && reply.message.starts_with("no command: "),
                "{reply:?}"
            );
        }
        static LONG: [u8; 5000] = [b' '; 5000];
        assert!(say(&path, &LONG).await.is_empty());
        assert!(ask(&path, ControlCommand::Diff).await.unwrap().ok);
    }

    #[tokio::test]
    async fn silent_clients_take_no_place_for_ever() {
        let (_folder, path) = folder();
        let _serving = serve(&path);
        let silent: Vec<_> = (0..MAX_CLIENTS)
            .map(|_| BlockingStream::connect(&path).unwrap())
            .collect();
        let refused = ask(&path, ControlCommand::Status).await.unwrap_err();
        assert!(matches!(refused, ClientError::Closed(_)), "{refused}");
        drop(silent);
        while ask(&path, ControlCommand::Status).await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_dead_process_is_replaced_a_running_one_only_by_its_successor() {
        let (_folder, path) = folder();
        // A killed process leaves its file.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let old = ControlSocket::bind(&path, false).unwrap();
        let refused = ControlSocket::bind(&path, false).err().unwrap();
        assert!(matches!(refused, BindError::InUse(_)), "{refused}");
        let new = ControlSocket::bind(&path, true).unwrap();
        drop(old);
        assert!(path.exists(), "the file is the successor's");
        drop(new);
        assert!(!path.exists());
    }

    #[test]
    fn a_path_that_is_too_long_is_named_with_its_cure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(120)).join("control.sock");
        let refused = ControlSocket::bind(&path, false).err().unwrap().to_string();
        assert!(refused.contains("server.upgrade_socket"), "{refused}");
        assert!(!path.exists());
    }
}
