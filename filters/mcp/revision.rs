//! The revisions of the protocol, and the headers that repeat parts of the body in each revision.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Value, json};

use super::message::{
    Call, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, Message, RpcError, UNSUPPORTED_VERSION,
};
use crate::fault::quoted;

/// The header of the revision.
pub const VERSION_HEADER: &str = "mcp-protocol-version";
/// The header that repeats the method, since 2026-07-28.
pub const METHOD_HEADER: &str = "mcp-method";
/// The header that repeats the subject of the method, since 2026-07-28.
pub const NAME_HEADER: &str = "mcp-name";
/// The member of `_meta` that names the revision, since 2026-07-28.
const VERSION_MEMBER: &str = "io.modelcontextprotocol/protocolVersion";
/// The member of `_meta` with the capabilities of the client, since 2026-07-28.
const CAPABILITIES_MEMBER: &str = "io.modelcontextprotocol/clientCapabilities";

/// A revision of the protocol. Older revisions compare as less.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Revision {
    June2025,
    /// 2025-11-25, the newest revision that begins with `initialize`.
    November2025,
    /// 2026-07-28, whose requests are independent of each other.
    July2026,
}

impl Revision {
    /// All revisions, the newest first.
    pub const ALL: [Self; 3] = [Self::July2026, Self::November2025, Self::June2025];

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::June2025 => "2025-06-18",
            Self::November2025 => "2025-11-25",
            Self::July2026 => "2026-07-28",
        }
    }

    /// Returns the revision of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == name)
    }

    /// Returns whether requests are independent of each other.
    pub fn is_stateless(self) -> bool {
        self == Self::July2026
    }

    /// Returns whether a stream may begin with an event that has no message. Older clients read every event as a
    /// message.
    pub fn opens_streams(self) -> bool {
        self == Self::November2025
    }

    /// Returns the revision on which an `initialize` agrees: the one that the client names, else the newest.
    pub fn agree(asked: &str) -> Self {
        let known = Self::find(asked).filter(|it| !it.is_stateless());
        known.unwrap_or(Self::November2025)
    }

    /// Returns the names of all revisions.
    pub fn names() -> [&'static str; 3] {
        Self::ALL.map(Self::as_str)
    }
}

/// Returns the revision of a request. A request without the header has the newest revision with an `initialize`.
///
/// Errors: 400 for an unsupported revision, and for headers that are missing or differ from the body.
pub fn check_head(headers: &HeaderMap, message: &Message) -> Result<Revision, RpcError> {
    let call = match message {
        Message::Call(call) => Some(call),
        Message::Notification(_) | Message::Response => None,
    };
    let checked = find_revision(headers, call).and_then(|revision| {
        if let (true, Some(call)) = (revision.is_stateless(), call) {
            check_repeated(headers, call)?;
        }
        Ok(revision)
    });
    checked.map_err(|error| match call {
        Some(call) => error.with_id(&call.id),
        None => error,
    })
}

/// Returns the revision that the headers name, if they name one.
///
/// Errors: 400 for an unsupported revision, and for more than one.
pub fn named_revision(headers: &HeaderMap) -> Result<Option<Revision>, RpcError> {
    let Some(name) = single_value(headers, VERSION_HEADER)? else {
        return Ok(None);
    };
    let revision = Revision::find(&name);
    revision.map(Some).ok_or_else(|| unsupported(&name, false))
}

fn find_revision(headers: &HeaderMap, call: Option<&Call>) -> Result<Revision, RpcError> {
    let named = call.and_then(|call| call.meta()?.get(VERSION_MEMBER));
    let header = single_value(headers, VERSION_HEADER)?;
    let Some(header) = header else {
        return match named {
            Some(_) => Err(mismatch("`MCP-Protocol-Version` is missing".to_owned())),
            None => Ok(Revision::November2025),
        };
    };
    if let Some(named) = named
        && named.as_str() != Some(&header)
    {
        let message = format!(
            "`MCP-Protocol-Version` is `{}`, and `_meta` names another revision",
            quoted(&header)
        );
        return Err(mismatch(message));
    }
    let revision = Revision::find(&header).ok_or_else(|| unsupported(&header, named.is_some()))?;
    match call {
        Some(call) if revision.is_stateless() => check_meta(call, named)?,
        _ => {}
    }
    Ok(revision)
}

fn check_meta(call: &Call, named: Option<&Value>) -> Result<(), RpcError> {
    let lacks = |message: String| RpcError::new(INVALID_PARAMS, 400, message);
    if named.is_none() {
        return Err(lacks(format!("`_meta` lacks `{VERSION_MEMBER}`")));
    }
    let capabilities = call.meta().and_then(|meta| meta.get(CAPABILITIES_MEMBER));
    if capabilities.is_some_and(Value::is_object) {
        return Ok(());
    }
    Err(lacks(format!(
        "`_meta` lacks `{CAPABILITIES_MEMBER}`, an object"
    )))
}

fn unsupported(asked: &str, is_stateless: bool) -> RpcError {
    let code = if is_stateless {
        UNSUPPORTED_VERSION
    } else {
        INVALID_REQUEST
    };
    let message = format!(
        "the revision is `{}`; accepted: {}",
        quoted(asked),
        Revision::names().join(", ")
    );
    let data = json!({"supported": Revision::names(), "requested": quoted(asked)});
    RpcError::new(code, 400, message).with_data(data)
}

fn mismatch(message: String) -> RpcError {
    RpcError::new(HEADER_MISMATCH, 400, message)
}

/// Checks that the headers repeat the body.
fn check_repeated(headers: &HeaderMap, call: &Call) -> Result<(), RpcError> {
    check_equal(headers, METHOD_HEADER, &call.method)?;
    let name = match call.method.as_str() {
        "tools/call" | "prompts/get" => call.text("name"),
        "resources/read" => call.text("uri"),
        _ => return Ok(()),
    };
    check_equal(headers, NAME_HEADER, name.unwrap_or_default())
}

fn check_equal(headers: &HeaderMap, name: &'static str, expected: &str) -> Result<(), RpcError> {
    match single_value(headers, name)? {
        None => Err(mismatch(format!("`{name}` is missing"))),
        Some(value) if decode(&value).as_deref() == Some(expected) => Ok(()),
        Some(value) => Err(mismatch(format!(
            "`{name}` is `{}`, and the body says otherwise",
            quoted(&value)
        ))),
    }
}

/// Returns the only value of a header.
fn single_value(headers: &HeaderMap, name: &'static str) -> Result<Option<String>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    match text {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(mismatch(format!(
            "`{name}` came more than once, or is no text"
        ))),
    }
}

/// Returns the text of a header's value: the value itself, or the contents of `=?base64?…?=`.
fn decode(value: &str) -> Option<String> {
    let encoded = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match encoded {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
    }
}
