//! Why the head of a request is refused, in words for its sender.

use crate::fault::{Fault, FaultKind};

/// Why a head is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeadError {
    /// The head is larger than `listen.header_bytes`, which is this many bytes.
    TooLarge(usize),
    /// The head has more than [`MAX_FIELDS`](super::framing::MAX_FIELDS) header fields.
    TooManyFields,
    /// The target is longer than [`MAX_TARGET_BYTES`](super::framing::MAX_TARGET_BYTES).
    TargetTooLong,
    /// A line ends without CR LF, or has a CR inside.
    LineEnd,
    /// The first line is not method, target and version.
    RequestLine,
    /// The method is not in upper-case letters, or it is `CONNECT` or `TRACE`.
    Method,
    /// The target has a byte that must be encoded.
    TargetBytes,
    /// The target starts neither with `/` nor with the address of this server.
    TargetForm,
    /// The target names another host than `Host`.
    OtherHost,
    /// A header line starts with a space.
    FoldedLine,
    /// The value of a header has a control byte.
    FieldValue,
    /// `Connection` names an end-to-end header, or too many names.
    ConnectionOption,
    /// The name of a header is not a token.
    FieldName,
    /// `Host` is missing from HTTP/1.1.
    HostMissing,
    /// `Host` occurs twice.
    HostTwice,
    /// `Host` is not a host with an optional port.
    Host,
    /// `Content-Length` occurs twice, with two values.
    LengthTwice,
    /// `Content-Length` is not a number.
    Length,
    /// `Transfer-Encoding` occurs twice.
    CodingTwice,
    /// `Transfer-Encoding` is not `chunked`.
    Coding,
    /// `Content-Length` and `Transfer-Encoding` occur together.
    TwoLengths,
    /// `Transfer-Encoding` occurs in a version without it.
    CodingVersion,
}

impl HeadError {
    fn message(self) -> &'static str {
        match self {
            Self::TooLarge(_) => "the request's head is too large",
            Self::TooManyFields => "the request has more than 100 header fields",
            Self::TargetTooLong => "the request's target is longer than 8192 bytes",
            Self::LineEnd => "a line of the request's head does not end with CR LF",
            Self::RequestLine => {
                "the first line is not method, target and version with one space between them"
            }
            Self::Method => {
                "the method is not accepted: send upper-case letters, such as `POST`, but not `CONNECT` or `TRACE`"
            }
            Self::TargetBytes => {
                "the target has a byte that has to be percent-encoded: a space, a quotation mark, `<`, `>`, a control byte or one beyond ASCII"
            }
            Self::TargetForm => "the target does not start with `/`",
            Self::OtherHost => "the target names another host than `Host`",
            Self::FoldedLine => "a header line starts with a space: send each header on one line",
            Self::FieldName => "the name of a header has a character that names cannot have",
            Self::FieldValue => "the value of a header has a control byte",
            Self::ConnectionOption => {
                "`Connection` is not a list of up to 9 names, or it names `Host` or another header that has to be sent on"
            }
            Self::HostMissing => "`Host` is missing",
            Self::HostTwice => "`Host` occurs twice: send it once",
            Self::Host => "`Host` is not a host with an optional port",
            Self::LengthTwice => "`Content-Length` occurs with two values: send one",
            Self::Length => "`Content-Length` is not a number of bytes",
            Self::CodingTwice => "`Transfer-Encoding` occurs twice: send it once",
            Self::Coding => "`Transfer-Encoding` may only be `chunked`",
            Self::TwoLengths => {
                "`Content-Length` and `Transfer-Encoding` occur together: send one of them"
            }
            Self::CodingVersion => "`Transfer-Encoding` exists only in HTTP/1.1",
        }
    }
}

impl From<HeadError> for Fault {
    fn from(error: HeadError) -> Self {
        match error {
            HeadError::TooLarge(max_bytes) => Self::new(
                FaultKind::HeadTooLarge,
                format!("the request's head is larger than {max_bytes} bytes"),
            ),
            HeadError::TooManyFields => Self::new(FaultKind::HeadTooLarge, error.message()),
            HeadError::TargetTooLong => Self::new(FaultKind::TargetTooLong, error.message()),
            _ => Self::new(FaultKind::Invalid, error.message()),
        }
    }
}
