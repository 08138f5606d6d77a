//! Messages of clients: JSON-RPC 2.0, one in a body.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// The body is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The body is JSON, but not a message.
pub const INVALID_REQUEST: i32 = -32600;
/// The server has no such method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters of a method are wrong.
pub const INVALID_PARAMS: i32 = -32602;
/// The server failed.
pub const INTERNAL_ERROR: i32 = -32603;
/// The request is refused for its origin, its size or a limit, and not for its content. Our own code.
pub const REFUSED: i32 = -32000;
/// There is no valid API key. Our own code.
pub const UNAUTHENTICATED: i32 = -32001;
/// A header differs from the body, or is missing.
pub const HEADER_MISMATCH: i32 = -32020;
/// The revision of the protocol is not one of those that the server speaks.
pub const UNSUPPORTED_VERSION: i32 = -32022;

/// The members of an object.
pub type Members = Map<String, Value>;

/// A message of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A request, which gets a result or an error.
    Call(Call),
    Notification(Notification),
    /// A response. The server asks clients nothing, so it ignores responses.
    Response,
}

/// A notification.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub method: String,
    /// The parameters, which may be empty.
    pub params: Members,
}

impl Notification {
    /// Returns the id of the request that the client cancels, if this notification cancels one.
    pub fn cancelled_id(&self) -> Option<&Value> {
        let is_cancelled = self.method == "notifications/cancelled";
        self.params.get("requestId").filter(|_| is_cancelled)
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// A string or a number, which the response repeats.
    pub id: Value,
    pub method: String,
    /// The parameters, which may be empty.
    pub params: Members,
}

impl Call {
    /// Returns the metadata of the request.
    pub fn meta(&self) -> Option<&Members> {
        self.params.get("_meta")?.as_object()
    }

    /// Returns whether the call begins a session, in the revisions with sessions.
    pub fn begins_session(&self) -> bool {
        self.method == "initialize"
    }

    /// Returns a string parameter.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name)?.as_str()
    }
}

/// An error of the protocol, with the status of its response.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub code: i32,
    pub message: Cow<'static, str>,
    pub status: u16,
    pub id: Option<Box<Value>>,
    /// Details for programs.
    pub data: Option<Box<Value>>,
}

impl RpcError {
    /// Returns an error of a request without an id.
    pub fn new(code: i32, status: u16, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            status,
            id: None,
            data: None,
        }
    }

    /// Sets the id of the request.
    #[must_use]
    pub fn with_id(mut self, id: &Value) -> Self {
        self.id = Some(Box::new(id.clone()));
        self
    }

    /// Sets the details for programs.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// Returns the body: `{jsonrpc, id?, error: {code, message, data?}}`.
    pub fn body(&self) -> Vec<u8> {
        let mut error = json!({"code": self.code, "message": self.message});
        if let (Some(members), Some(data)) = (error.as_object_mut(), &self.data) {
            members.insert("data".to_owned(), Value::clone(data));
        }
        let mut body = json!({"jsonrpc": "2.0"});
        if let Some(members) = body.as_object_mut() {
            members.extend(self.id.as_deref().map(|id| ("id".to_owned(), id.clone())));
            members.insert("error".to_owned(), error);
        }
        body.to_string().into_bytes()
    }
}

/// The most values in a message. Each takes some 80 bytes of memory, however few bytes it has in the body.
const MAX_VALUES: usize = 20_000;

/// Returns whether a body may have too many values, without parsing it: each value follows one of four characters.
fn has_too_many_values(body: &[u8]) -> bool {
    let (mut marks, mut is_text, mut is_escaped) = (0, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b':' | b'[' | b'{' if !is_text => marks += 1,
            _ => {}
        }
    }
    marks > MAX_VALUES
}

/// Reads a body.
///
/// Errors: 400 for too many values, for a body that is not JSON, for a batch, and for an object that is not a
/// message.
pub fn read(body: &[u8]) -> Result<Message, RpcError> {
    if has_too_many_values(body) {
        return Err(invalid(
            "the message has too many values; at most 20,000 are accepted",
        ));
    }
    let value = serde_json::from_slice(body);
    let value: Value = value.map_err(|error| {
        let message = format!("the body is not JSON: {error}");
        RpcError::new(PARSE_ERROR, 400, message)
    })?;
    match value {
        Value::Object(members) => read_members(members),
        Value::Array(_) => Err(invalid(
            "the body is a batch of messages; one message is accepted",
        )),
        _ => Err(invalid("the body is no object; one message is accepted")),
    }
}

fn invalid(message: &'static str) -> RpcError {
    RpcError::new(INVALID_REQUEST, 400, message)
}

fn read_members(mut members: Members) -> Result<Message, RpcError> {
    let id = members.remove("id");
    let known = id.clone().filter(is_id);
    let refuse = |message| {
        let error = invalid(message);
        known.as_ref().map_or(error.clone(), |id| error.with_id(id))
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(refuse("`jsonrpc` is not `2.0`"));
    }
    if id.is_some() && known.is_none() {
        return Err(refuse("`id` is neither a text nor a number"));
    }
    let method = match members.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return Err(refuse("`method` is not a text")),
        None if members.contains_key("result") || members.contains_key("error") => {
            return Ok(Message::Response);
        }
        None => return Err(refuse("`method` is missing")),
    };
    let params = match members.remove("params") {
        None => Members::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(refuse("`params` is not an object")),
    };
    Ok(match known {
        None => Message::Notification(Notification { method, params }),
        Some(id) => Message::Call(Call { id, method, params }),
    })
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_number()
}
