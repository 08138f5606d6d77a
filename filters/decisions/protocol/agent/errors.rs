//! The agent's faults: some are JSON, some plain text, and some have no body. Source: docs/facts/decision-engine.md E.

use http::StatusCode;

use super::json;
use crate::auth::jwt::InvalidToken;
use crate::decisions::credentials::{key_name, unauthenticated};
use crate::decisions::errors::{self, ErrorBody};
use crate::fault::{Fault, FaultKind};

/// The form of a fault's body. A fault stores it as its tag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum FaultForm {
    /// The message as plain text.
    Text = 1,
    /// A JSON object with the message, sent as plain text.
    JsonText,
    /// The same object, with the fault's detail as the reason.
    JsonTextWithReason,
    /// No body.
    Empty,
}

impl FaultForm {
    const MARKED: [Self; 4] = [
        Self::Text,
        Self::JsonText,
        Self::JsonTextWithReason,
        Self::Empty,
    ];

    /// Returns the same fault, to be written in this form.
    pub(super) fn mark(self, fault: Fault) -> Fault {
        fault.with_tag(self as u8)
    }

    /// Returns the form of a fault, or `None` for JSON.
    fn from_fault(fault: &Fault) -> Option<Self> {
        let marked = Self::MARKED.into_iter();
        let form = marked.into_iter().find(|form| *form as u8 == fault.tag());
        form.or_else(|| (fault.kind == FaultKind::MediaType).then_some(Self::Empty))
    }
}

/// Returns the body of a fault.
pub(super) fn write(fault: &Fault) -> ErrorBody {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let text = |text: String| ErrorBody {
        bytes: format!("{text}\n").into_bytes(),
        is_text: true,
    };
    match FaultForm::from_fault(fault) {
        None => ErrorBody {
            bytes: json::escape(&errors::write_json(fault)),
            is_text: false,
        },
        Some(FaultForm::Text) => text(fault.message.clone().into_owned()),
        Some(FaultForm::JsonText) => text(format!("{{\"error\": {}}}", quoted(&fault.message))),
        Some(FaultForm::JsonTextWithReason) => {
            // The agent writes invalid JSON here. Our text is valid, and otherwise the same.
            let (error, reason) = (quoted(&fault.message), quoted(&fault.detail));
            text(format!("{{\"error\": {error}, \"reason\": {reason}}}"))
        }
        Some(FaultForm::Empty) => ErrorBody {
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

/// Returns the fault of an unreadable token. All of these have one message, followed by the reason.
pub(super) fn bad_token(error: InvalidToken) -> Fault {
    let reason = match error {
        // The token is readable, but its claims do not suffice.
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
    FaultForm::JsonTextWithReason.mark(unauthenticated("unauthorized").with_detail(reason))
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
    FaultForm::JsonText.mark(Fault::new(FaultKind::Invalid, message))
}

pub(super) fn too_many_operations(most: usize) -> Fault {
    let message = format!("too many operations, exceeding {most} operations");
    FaultForm::JsonText.mark(Fault::new(FaultKind::TooMany, message))
}

/// Returns the fault of an operation whose path the agent does not have.
pub(super) fn no_page() -> Fault {
    FaultForm::Text.mark(Fault::new(FaultKind::NotFound, "404 page not found"))
}

/// Returns the fault of an operation whose path does not take its method.
pub(super) fn wrong_method() -> Fault {
    let message = "the path does not take this method";
    FaultForm::Empty.mark(Fault::new(FaultKind::MethodNotAllowed, message))
}

/// Returns the fault of an operation that cannot be turned into a request.
pub(super) fn no_request() -> Fault {
    let message = "no request can be made of the operation";
    FaultForm::Empty.mark(Fault::new(FaultKind::Invalid, message))
}
