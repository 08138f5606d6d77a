//! Event streams of messages, and what is told in them before a result.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::message::{Call, INVALID_PARAMS, RpcError};

/// Returns the event of a message, which is one line of JSON.
pub fn event(message: &[u8]) -> Vec<u8> {
    [b"event: message\ndata: ", message, b"\n\n"].concat()
}

/// How long a client waits before it opens a stream that ended again, in milliseconds.
const RETRY_MS: u32 = 3000;

/// What the answer to a call begins with, behind its id: an event without a message, from which a client can go on.
pub const OPENING: &[u8] = b"retry: 3000\ndata:\n\n";

/// Returns the version of a list: it differs if the list does, and is the same in each process.
pub fn version(list: &[u8]) -> String {
    let digest = Sha256::digest(list);
    let hex = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
    hex.collect()
}

/// Returns what a stream begins with: how long to wait before it is opened again, and an event without a message, whose id says from
/// where it goes on.
pub fn first_event(version: &str) -> Vec<u8> {
    format!("retry: {RETRY_MS}\nid: {version}\ndata:\n\n").into_bytes()
}

/// Returns the event that tells that the list of prompts has changed, and is now of this version.
pub fn prompts_changed(version: &str) -> Vec<u8> {
    let message = json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"});
    let event = event(message.to_string().as_bytes());
    [format!("id: {version}\n").as_bytes(), &event].concat()
}

/// How much of an answer has come, for a client that wants to know.
#[derive(Clone, Debug, PartialEq)]
pub struct CallProgress {
    token: Value,
    bytes: u64,
}

impl CallProgress {
    /// Returns the progress that a call asks for, if it does.
    ///
    /// Errors: its token is neither a text nor a number.
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

    /// Counts bytes that have come of the answer, and returns the event that tells of them; `None`: there are none.
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
