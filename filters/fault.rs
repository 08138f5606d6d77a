//! The error of the product: its status, its code and the message for the caller.
//!
//! Every module has a small error type of its own, which becomes a [`Fault`] in one `From`. Only this file maps errors
//! to status, `type` and `code`, and only `src/proxy/response.rs` writes them to clients.

use std::borrow::Cow;
use std::sync::Arc;

use crate::fault_code::FaultCode;

/// The maximum characters of a caller's text in a message.
const MAX_QUOTED_CHARS: usize = 100;

/// Returns a caller's text for a message: at most [`MAX_QUOTED_CHARS`] characters, followed by an ellipsis if it is
/// cut. Messages are logged and returned, so they must not grow with the input.
pub fn quoted(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
    }
}

/// Returns a message without its quotations, and with `#` for numbers. The text after a colon may come from another
/// party, so it is dropped too.
fn unquoted(message: &str) -> String {
    let is_mark = |c: char| matches!(c, '`' | '"' | '\'' | '“' | '”' | '‘' | '’');
    let (ours, is_cut) = match message.split_once(": ") {
        Some((ours, _)) => (ours, true),
        None => (message, false),
    };
    // The match is greedy, because a quotation may contain such marks.
    let (before, after) = match (ours.split_once(is_mark), message.rsplit_once(is_mark)) {
        (Some((before, _)), _) if is_cut => (before, ""),
        (Some((before, _)), Some((_, after))) => (before, after),
        _ => (ours, ""),
    };
    let kept = match before.len() + after.len() < message.len() {
        true => [before, "…", after].concat(),
        false => message.to_owned(),
    };
    let mut out = String::with_capacity(kept.len());
    for c in kept.chars() {
        match c {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            _ => out.push(c),
        }
    }
    out
}

/// The kind of a fault; determines the status and the words of the body.
///
/// Source: docs/model-gateway.md 7; the `type` and `code` words are docs/decisions.md 5 and 6.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FaultKind {
    /// 400: a field is wrong.
    Invalid,
    /// 401: no key, or an invalid one.
    Unauthenticated,
    /// 402: no credit left, or an allowance is used up.
    Payment,
    /// 403: the caller is known but not allowed.
    Forbidden,
    /// 404: no such path.
    NotFound,
    /// 404: no such model.
    ModelNotFound,
    /// 405: the path exists, the method does not.
    MethodNotAllowed,
    /// 408: the request did not arrive in time.
    RequestTimeout,
    /// 410: archived, disabled or retired.
    Gone,
    /// 413: the body is over its limit.
    TooLarge,
    /// 414: the target is over its limit.
    TargetTooLong,
    /// 415: not JSON, or encoded.
    MediaType,
    /// 422: more operations in a batch than the maximum.
    TooMany,
    /// 429: over a limit of the gateway.
    RateLimited,
    /// 431: the head is over its limit.
    HeadTooLarge,
    /// 500: a bug, or a broken part of the gateway.
    Internal,
    /// 502: no connection to the provider.
    ConnectFailed,
    /// 502: the provider failed in some other way.
    UpstreamFailed,
    /// 503: the provider is unavailable, overloaded or throttles.
    UpstreamUnavailable,
    /// 503: a part of the gateway is unavailable.
    Unavailable,
    /// 504: the provider took too long.
    UpstreamTimeout,
    /// 529: more concurrent requests than the maximum.
    Overloaded,
    /// A response broke off after its first byte was sent. This kind only occurs as an event of a stream.
    StreamTruncated,
}

impl FaultKind {
    /// All kinds, by status.
    pub const ALL: [Self; 23] = [
        Self::Invalid,
        Self::Unauthenticated,
        Self::Payment,
        Self::Forbidden,
        Self::NotFound,
        Self::ModelNotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::Gone,
        Self::TooLarge,
        Self::TargetTooLong,
        Self::MediaType,
        Self::TooMany,
        Self::RateLimited,
        Self::HeadTooLarge,
        Self::Internal,
        Self::ConnectFailed,
        Self::UpstreamFailed,
        Self::StreamTruncated,
        Self::UpstreamUnavailable,
        Self::Unavailable,
        Self::UpstreamTimeout,
        Self::Overloaded,
    ];
}

/// A row of the table of kinds.
struct FaultRow {
    status: u16,
    error_type: &'static str,
    code: Option<FaultCode>,
    is_retryable: bool,
}

const INVALID: &str = "invalid_request_error";
const UPSTREAM: &str = "upstream_error";

impl FaultKind {
    /// Returns the code of a fault that has none of its own.
    pub fn code(self) -> Option<FaultCode> {
        self.row().code
    }
}

#[rustfmt::skip]
impl FaultKind {
    /// The table: status, `type`, `code`, the party at fault, whether the same request may succeed later.
    const fn row(self) -> FaultRow {
        match self {
            Self::Invalid => FaultRow::new(400, INVALID, None, false),
            Self::Unauthenticated => FaultRow::new(401, INVALID, Some(FaultCode::InvalidApiKey), false),
            Self::Payment => FaultRow::new(402, "billing_error", None, false),
            Self::Forbidden => FaultRow::new(403, "permission_error", Some(FaultCode::PermissionDenied), false),
            Self::NotFound => FaultRow::new(404, INVALID, Some(FaultCode::NotFound), false),
            Self::ModelNotFound => FaultRow::new(404, INVALID, Some(FaultCode::ModelNotFound), false),
            Self::MethodNotAllowed => FaultRow::new(405, INVALID, Some(FaultCode::MethodNotAllowed), false),
            Self::RequestTimeout => FaultRow::new(408, "timeout_error", Some(FaultCode::Timeout), true),
            Self::Gone => FaultRow::new(410, INVALID, None, false),
            Self::TooLarge => FaultRow::new(413, INVALID, Some(FaultCode::RequestTooLarge), false),
            Self::TargetTooLong => FaultRow::new(414, INVALID, Some(FaultCode::TargetTooLong), false),
            Self::MediaType => FaultRow::new(415, INVALID, Some(FaultCode::UnsupportedMediaType), false),
            Self::TooMany => FaultRow::new(422, INVALID, Some(FaultCode::TooManyOperations), false),
            Self::RateLimited => FaultRow::new(429, "rate_limit_error", Some(FaultCode::RateLimitExceeded), true),
            Self::HeadTooLarge => FaultRow::new(431, INVALID, Some(FaultCode::HeadersTooLarge), false),
            Self::Internal => FaultRow::new(500, "api_error", None, true),
            Self::ConnectFailed => FaultRow::new(502, UPSTREAM, Some(FaultCode::ConnectFailed), true),
            Self::UpstreamFailed => FaultRow::new(502, UPSTREAM, Some(FaultCode::AllProvidersFailed), true),
            Self::UpstreamUnavailable => FaultRow::new(503, UPSTREAM, Some(FaultCode::UpstreamUnavailable), true),
            Self::Unavailable => FaultRow::new(503, "api_error", Some(FaultCode::Unavailable), true),
            Self::UpstreamTimeout => FaultRow::new(504, UPSTREAM, Some(FaultCode::UpstreamTimeout), true),
            Self::Overloaded => FaultRow::new(529, "overloaded", Some(FaultCode::Overloaded), true),
            Self::StreamTruncated => FaultRow::new(502, UPSTREAM, Some(FaultCode::StreamTruncated), true),
        }
    }
}

impl FaultRow {
    const fn new(
        status: u16,
        error_type: &'static str,
        code: Option<FaultCode>,
        is_retryable: bool,
    ) -> Self {
        Self {
            status,
            error_type,
            code,
            is_retryable,
        }
    }
}

/// Returns whether the same request may succeed later, as the status says it.
pub const fn may_help_later(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}

/// A limit without remaining units.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExceededLimit {
    /// The number of requests that a window admits.
    pub limit: u64,
    pub window_ms: u64,
    /// The time until the window admits requests again.
    pub reset_ms: u64,
}

/// A code in place of that of the kind.
#[derive(Clone, Debug, Eq, PartialEq)]
enum OwnCode {
    Ours(FaultCode),
    /// It is behind one pointer, because faults are returned by value everywhere.
    Providers(Arc<String>),
}

/// A fact that the headers of a refusal state in addition to its status.
#[derive(Clone, Debug, Eq, PartialEq)]
enum HeaderFact {
    /// The limit that the request is over.
    Limit(ExceededLimit),
    /// The methods that the path accepts.
    Methods(String),
}

/// An error of one request.
///
/// `message` is for the caller: it names the field, what came and what is accepted, and never holds a secret, a key or
/// an upstream's raw body. `detail` is for the log line only, and holds no secrets either.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// Determines status, `type` and default `code`.
    pub kind: FaultKind,
    pub message: Cow<'static, str>,
    /// The wrong field, as a path such as `messages[2].content[0].type`.
    pub param: Option<String>,
    pub detail: Cow<'static, str>,
    /// How long the caller should wait, in seconds.
    pub retry_after_s: Option<u32>,
    /// Boxed, because faults are returned by value everywhere.
    header_fact: Option<Box<HeaderFact>>,
    code: Option<OwnCode>,
    status: Option<u16>,
    tag: u8,
    /// A JSON text. It is behind one pointer, because faults are returned by value everywhere.
    metadata: Option<Arc<Vec<u8>>>,
}

impl Fault {
    /// Creates a fault with a message for the caller.
    pub fn new(kind: FaultKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            param: None,
            detail: Cow::Borrowed(""),
            retry_after_s: None,
            header_fact: None,
            code: None,
            status: None,
            tag: 0,
            metadata: None,
        }
    }

    /// Creates a 400 about one field.
    pub fn invalid(param: impl Into<String>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FaultKind::Invalid, message).with_param(param)
    }

    /// Creates a 429 for a request over a limit. Its headers state the limit. Source: docs/model-gateway.md 8.3.
    pub fn over_limit(exceeded: ExceededLimit, message: impl Into<Cow<'static, str>>) -> Self {
        let wait_s = exceeded.reset_ms.div_ceil(1_000).max(1);
        let mut fault = Self::new(FaultKind::RateLimited, message);
        fault.retry_after_s = Some(u32::try_from(wait_s).unwrap_or(u32::MAX));
        fault.header_fact = Some(Box::new(HeaderFact::Limit(exceeded)));
        fault
    }

    /// Creates a 405 for a path that accepts only these methods. Its headers state them. Source: RFC 9110 15.5.6.
    pub fn wrong_method(methods: &[&str]) -> Self {
        let methods = methods.join(", ");
        let message = format!("this path does not take this method; accepted: {methods}");
        let mut fault = Self::new(FaultKind::MethodNotAllowed, message);
        fault.header_fact = Some(Box::new(HeaderFact::Methods(methods)));
        fault
    }

    /// Returns the limit that the request exceeds, if the fault was made by [`Self::over_limit`].
    pub fn exceeded(&self) -> Option<ExceededLimit> {
        match self.header_fact.as_deref() {
            Some(HeaderFact::Limit(exceeded)) => Some(*exceeded),
            _ => None,
        }
    }

    /// Returns the methods that the path accepts, if the fault was made by [`Self::wrong_method`].
    pub fn methods(&self) -> Option<&str> {
        match self.header_fact.as_deref() {
            Some(HeaderFact::Methods(methods)) => Some(methods),
            _ => None,
        }
    }

    /// Sets the wrong field.
    #[must_use]
    pub fn with_param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Replaces the kind's own `code`.
    #[must_use]
    pub fn with_code(mut self, code: FaultCode) -> Self {
        debug_assert_eq!(code.row().status, self.status(), "{code:?}");
        self.code = Some(OwnCode::Ours(code));
        self
    }

    /// Replaces the kind's own `code` by the word with which a provider refused the request.
    #[must_use]
    pub fn with_provider_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(OwnCode::Providers(Arc::new(code.into())));
        self
    }

    /// Sets an upstream's own status, in the cases in which docs/decisions.md 5 forwards it.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets the detail for the log.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Sets how long the caller should wait.
    #[must_use]
    pub fn with_retry_after_s(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Sets `metadata`, a JSON text that the compatible style writes beside the error.
    #[must_use]
    pub fn with_metadata(mut self, json: Vec<u8>) -> Self {
        self.metadata = Some(Arc::new(json));
        self
    }

    /// Returns `metadata`, a JSON text.
    pub fn metadata(&self) -> Option<&[u8]> {
        self.metadata.as_deref().map(Vec::as_slice)
    }

    /// Returns the message for the log. A message made for one request may quote parts of its body. So the log leaves
    /// out the text from the first to the last quotation mark or backtick, the text after a colon, and digits.
    pub fn logged_message(&self) -> Cow<'_, str> {
        match &self.message {
            Cow::Borrowed(message) => Cow::Borrowed(message),
            Cow::Owned(message) => Cow::Owned(unquoted(message)),
        }
    }

    /// Sets a tag, by which a product distinguishes the forms of faults of one kind.
    #[must_use]
    pub fn with_tag(mut self, tag: u8) -> Self {
        self.tag = tag;
        self
    }

    /// Returns the tag, or 0 if none was set.
    pub fn tag(&self) -> u8 {
        self.tag
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        self.status.unwrap_or(self.kind.row().status)
    }

    /// Returns the `type` of the compatible style.
    pub fn error_type(&self) -> &'static str {
        self.kind.row().error_type
    }

    /// Returns the `code`, if there is one.
    pub fn code(&self) -> Option<&str> {
        self.own_code().or(self.kind.code().map(FaultCode::as_str))
    }

    /// Returns the code that was set for it, and not for its kind.
    pub fn own_code(&self) -> Option<&str> {
        match self.code.as_ref()? {
            OwnCode::Ours(code) => Some(code.as_str()),
            OwnCode::Providers(code) => Some(code),
        }
    }

    /// Returns whether this code was set for it.
    pub fn has_code(&self, code: FaultCode) -> bool {
        matches!(&self.code, Some(OwnCode::Ours(own)) if *own == code)
    }

    /// Returns whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.kind.row().is_retryable
    }

    /// Returns the body in the compatible style.
    ///
    /// Shape: `{"error":{"message","type","param","code"}}`, and `metadata` if it is set. Source:
    /// docs/model-gateway.md 7.
    pub fn compatible_body(&self) -> Vec<u8> {
        self.wrap_error(&self.compatible_error())
    }

    /// Returns an error event. Shape: `event: error`, `data: {"error": {message, type, param, code, usage?}, metadata?}`;
    /// `usage` is a JSON object.
    pub fn error_event(&self, usage: Option<&[u8]>) -> Vec<u8> {
        let mut error = self.compatible_error();
        let usage = usage.and_then(|usage| serde_json::from_slice(usage).ok());
        if let (Some(error), Some(usage)) = (error.as_object_mut(), usage) {
            error.insert("usage".to_owned(), usage);
        }
        let mut event = b"event: error\ndata: ".to_vec();
        event.extend_from_slice(&self.wrap_error(&error));
        event.extend_from_slice(b"\n\n");
        event
    }

    /// Returns the body around the inner object of the compatible style.
    pub fn wrap_error(&self, error: &serde_json::Value) -> Vec<u8> {
        let mut body = serde_json::json!({ "error": error })
            .to_string()
            .into_bytes();
        if let Some(metadata) = self.metadata() {
            body.pop();
            body.extend_from_slice(b",\"metadata\":");
            body.extend_from_slice(metadata);
            body.push(b'}');
        }
        body
    }

    /// Returns the body in the alternative style.
    ///
    /// Shape: `{"type":"error","error":{"type","message"}}`. Source: docs/model-gateway.md 7.
    pub fn alternative_body(&self) -> Vec<u8> {
        let error = serde_json::json!({ "type": self.alternative_type(), "message": self.message });
        serde_json::json!({ "type": "error", "error": error })
            .to_string()
            .into_bytes()
    }

    /// Returns the `type` of the alternative style, which follows the status.
    fn alternative_type(&self) -> &'static str {
        match self.status() {
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 | 410 => "not_found_error",
            408 | 504 => "timeout_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            400..=499 => INVALID,
            529 => "overloaded_error",
            _ => "api_error",
        }
    }

    /// Returns the inner object of the compatible style, which error events extend.
    pub fn compatible_error(&self) -> serde_json::Value {
        serde_json::json!({
            "message": self.message,
            "type": self.error_type(),
            "param": self.param,
            "code": self.code(),
        })
    }

    /// Returns the body of the graph endpoints, in the style of a refusal by a limit.
    ///
    /// Shape: `{"code","status","message","details":{}}`, the code in capitals. Source: docs/graph-limits.md 7.2.
    pub fn graph_body(&self) -> Vec<u8> {
        let code = self.code().unwrap_or(self.error_type());
        serde_json::json!({
            "code": code.to_ascii_uppercase(),
            "status": self.status(),
            "message": self.message,
            "details": {},
        })
        .to_string()
        .into_bytes()
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {}: {}",
            self.status(),
            self.error_type(),
            self.message
        )
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
