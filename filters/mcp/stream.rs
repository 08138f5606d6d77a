//! Event streams of messages, and what is told in them before a result.

use serde_json::{Value, json};

use super::message::{Call, INVALID_PARAMS, RpcError};

/// Returns the event of a message, which is one line of JSON.
pub fn event(message: &[u8]) -> Vec<u8> {
    [b"event: message\ndata: ", message, b"\n\n"].concat()
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
