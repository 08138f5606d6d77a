//! Event streams of messages, and the notifications in them before a result.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::message::{Call, INVALID_PARAMS, RpcError};
use super::revision::Revision;

/// Returns the event of a message, which is one line of JSON.
pub fn event(message: &[u8]) -> Vec<u8> {
    [b"event: message\ndata: ", message, b"\n\n"].concat()
}

/// How long a client waits before it reopens an ended stream, in milliseconds.
const RETRY_MS: u32 = 3000;

/// The beginning of a response to a call, after its id: an event without a message, from which a client can resume.
pub const OPENING: &[u8] = b"retry: 3000\ndata:\n\n";

/// Returns the version of a list. It changes with the list, and is the same in each process.
pub fn version(list: &[u8]) -> String {
    let digest = Sha256::digest(list);
    let hex = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
    hex.collect()
}

/// Returns the beginning of a stream. It says how long to wait before reopening the stream, and has no message. Its id says from
/// which version the stream continues. Older clients read every event as a message, so they get a comment.
pub fn beginning(version: &str, revision: Revision) -> Vec<u8> {
    match revision.opens_streams() {
        true => format!("retry: {RETRY_MS}\nid: {version}\ndata:\n\n").into_bytes(),
        false => b": keepalive\n\n".to_vec(),
    }
}

/// Returns the event that announces a change of the list of prompts, with the new version.
pub fn prompts_changed(version: &str) -> Vec<u8> {
    let message = json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"});
    let event = event(message.to_string().as_bytes());
    [format!("id: {version}\n").as_bytes(), &event].concat()
}

/// The progress of a response, for a client that asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallProgress {
    token: Value,
    bytes: u64,
}

impl CallProgress {
    /// Returns the progress of a call that asks for it.
    ///
    /// Errors: the token is neither a string nor a number.
    pub fn read(call: &Call) -> Result<Option<Self>, RpcError> {
        let token = call.meta().and_then(|meta| meta.get("progressToken"));
        match token.cloned() {
            None => Ok(None),
            Some(token) if token.is_string() || token.is_number() => {
                Ok(Some(Self { token, bytes: 0 }))
            }
            Some(_) => {
                let message = "`_meta.progressToken` is neither a text nor a number";
                Err(RpcError::new(INVALID_PARAMS, 200, message).with_id(&call.id))
            }
        }
    }

    /// Counts received bytes of the response, and returns the event that reports them. Returns `None` for no bytes.
    pub fn count(&mut self, bytes: usize) -> Option<Vec<u8>> {
        if bytes == 0 {
            return None;
        }
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let params = json!({
            "progressToken": self.token,
            "progress": self.bytes,
            "message": format!("{} bytes of the model's answer have come", self.bytes),
        });
        let message =
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        Some(event(message.to_string().as_bytes()))
    }
}
