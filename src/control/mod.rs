//! The control socket: how a command on the same machine reaches the running process.
//!
//! A unix socket, which only the user of the process may use. A client sends one line of JSON and gets one line of JSON
//! when the work is done: [`ControlRequest`] and [`ControlReply`]. This module knows no command's work: [`server`] is
//! given a function that runs commands.

pub mod client;
pub mod server;
pub mod status;

use serde::{Deserialize, Serialize};

use self::status::ProcessStatus;

/// The maximum size of a request's line.
const MAX_REQUEST_BYTES: u64 = 4 << 10;
/// The maximum size of a reply's line.
const MAX_REPLY_BYTES: u64 = 4 << 20;

/// The work that a client asks for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlCommand {
    /// Read the configuration again, and use it for new requests.
    Reload,
    /// Start the program anew, and hand everything over to that process.
    Upgrade,
    /// Name what a reload would change.
    Diff,
    /// Describe the process.
    Status,
    /// Make a link to the console that signs in once.
    Console,
}

impl ControlCommand {
    /// Returns the word of the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Upgrade => "upgrade",
            Self::Diff => "diff",
            Self::Status => "status",
            Self::Console => "console",
        }
    }
}

/// A client's line. Shape: `{"command":"reload"}`.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ControlRequest {
    pub command: ControlCommand,
    /// The name of the person who asks, where the process notes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl From<ControlCommand> for ControlRequest {
    fn from(command: ControlCommand) -> Self {
        Self {
            command,
            name: None,
        }
    }
}

/// The process's line. Shape: `{"ok":true,"message":"…","changes":[…],"problems":[…]}`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct ControlReply {
    /// Whether the work was done.
    pub ok: bool,
    /// What was done, or why it was not.
    pub message: String,
    /// The changes of the configuration: objects, each with a member `text` for people.
    pub changes: Vec<serde_json::Value>,
    /// What stands in the way, for people.
    pub problems: Vec<String>,
    /// What the process is doing, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ProcessStatus>,
}

impl ControlReply {
    /// Returns the reply to a command that was done.
    pub fn done(message: impl Into<String>) -> Self {
        Self {
            ok: true,
            message: message.into(),
            ..Self::default()
        }
    }

    /// Returns the reply to a command that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}
