//! The agent's faults: some are JSON, some plain text, and some have no body. Source: docs/facts/decision-engine.md E.

use http::StatusCode;

use super::json;
use crate::auth::jwt::InvalidToken;
use crate::decisions::credentials::{key_name, unauthenticated};
use crate::decisions::errors::{self, ErrorBody};
use crate::fault::{Fault, FaultKind};

/// The form of a fault's body. A fault carries it as its tag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Form {
    /// The message as plain text.
    Text = 1,
    /// A JSON object with the message, sent as plain text.
    JsonText,
    /// The same, with the fault's detail as the reason.
    JsonTextWithReason,
    /// No body.
    Empty,
}

impl Form {
    const MARKED: [Self; 4] = [
        Self::Text,
        Self::JsonText,
        Self::JsonTextWithReason,
        Self::Empty,
    ];

    /// The same fault, to be written in this form.
    pub(super) fn mark(self, fault: Fault) -> Fault {
        fault.with_tag(self as u8)
    }

    /// The form of a fault; `None`: JSON.
    fn from_fault(fault: &Fault) -> Option<Self> {
        let marked = Self::MARKED.into_iter();
        let form = marked.into_iter().find(|form| *form as u8 == fault.tag());
        form.or_else(|| (fault.kind == FaultKind::MediaType).then_some(Self::Empty))
    }
}

/// The body of a fault.
pub(super) fn write(fault: &Fault) -> ErrorBody {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let text = |text: String| ErrorBody {
        bytes: format!("{text}\n").into_bytes(),
        is_text: true,
    };
    match Form::from_fault(fault) {
        None => ErrorBody {
            bytes: json::escape(&errors::write_json(fault)),
            is_text: false,
        },
        Some(Form::Text) => text(fault.message.clone().into_owned()),
        Some(Form::JsonText) => text(format!("{{\"error\": {}}}", quoted(&fault.message))),
        Some(Form::JsonTextWithReason) => {
            // The agent's own line is no JSON. Ours differs in that alone.
            let (error, reason) = (quoted(&fault.message), quoted(&fault.detail));
            text(format!("{{\"error\": {error}, \"reason\": {reason}}}"))
        }
        Some(Form::Empty) => ErrorBody {
            bytes: Vec::new(),
            is_text: false,
        },
    }
}

pub(super) fn missing_key() -> Fault {
    let message = "missing required X-Optimizely-SDK-Key header";
    Fault::new(FaultKind::Invalid, message)
}

pub(super) fn key_not_granted() -> Fault {
    unauthenticated(
        "SDK key given in X-Optimizely-Sdk-Key header was not found in the SDK keys in this token's claims",
    )
}

/// All tokens that cannot be read have one message and a reason beside it.
pub(super) fn bad_token(error: InvalidToken) -> Fault {
    let reason = match error {
        // The token was read, and its claims do not suffice.
        InvalidToken::NoExpiry | InvalidToken::NoSdkKeys => {
            return unauthenticated(error.message());
        }
        InvalidToken::Expired => "Token is expired",
        InvalidToken::NotYetValid => "Token is not valid yet",
        InvalidToken::NoKeyId => "expecting JWT header to have string kid",
        InvalidToken::Empty
        | InvalidToken::Signature
        | InvalidToken::UnknownKey
        | InvalidToken::Extension
        | InvalidToken::Issuer
        | InvalidToken::Audience => error.message(),
    };
    Form::JsonTextWithReason.mark(unauthenticated("unauthorized").with_detail(reason))
}

pub(super) fn refused_by_source(status: StatusCode) -> Fault {
    let message = format!(
        "unable to fetch fresh datafile (consider rechecking SDK key), status code: {status}"
    );
    Fault::new(FaultKind::Forbidden, message)
}

pub(super) fn unusable_datafile(sdk_key: &str) -> Fault {
    let message = format!(
        "failed to instantiate Optimizely for SDK Key: {}",
        key_name(sdk_key)
    );
    Fault::new(FaultKind::Internal, message)
}

pub(super) fn unreadable_batch() -> Fault {
    let message = "cannot decode the operation body";
    Form::JsonText.mark(Fault::new(FaultKind::Invalid, message))
}

pub(super) fn too_many_operations(most: usize) -> Fault {
    let message = format!("too many operations, exceeding {most} operations");
    Form::JsonText.mark(Fault::new(FaultKind::TooMany, message))
}

/// The agent has nothing at the path of an operation.
pub(super) fn no_page() -> Fault {
    Form::Text.mark(Fault::new(FaultKind::NotFound, "404 page not found"))
}

/// The path of an operation does not take its method.
pub(super) fn wrong_method() -> Fault {
    let message = "the path does not take this method";
    Form::Empty.mark(Fault::new(FaultKind::MethodNotAllowed, message))
}

/// An operation cannot be made into a request.
pub(super) fn no_request() -> Fault {
    let message = "no request can be made of the operation";
    Form::Empty.mark(Fault::new(FaultKind::Invalid, message))
}
