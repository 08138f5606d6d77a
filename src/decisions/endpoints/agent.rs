//! How the agent of old tells faults: some as JSON, some as plain text, a wrong media type not at all.
//!
//! Which it is, a fault says itself: [`AgentForm`] is given to it where it is made.
//! Source: docs/facts/decision-engine.md E, docs/decisions.md 19.

use filters::decisions::Compat;
use filters::fault::{AgentForm, Fault, FaultKind};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};

use crate::proxy::response::Response;

/// What marks plain text.
const PLAIN: [(HeaderName, HeaderValue); 2] = [
    (
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// A fault as the agent of old sends it.
pub(super) fn refusal(fault: &Fault) -> Response {
    let message = &*fault.message;
    match fault.agent_form {
        AgentForm::Json => super::to_agent_response(
            Compat::Agent,
            Response {
                body: fault.plain_body().into(),
                ..Response::from(fault)
            },
        ),
        AgentForm::Text => plain(fault, message.to_owned()),
        AgentForm::Object => plain(fault, format!("{{\"error\": {}}}", quoted(message))),
        AgentForm::Reason => {
            // The agent's own line is no JSON; ours lacks its mistake alone.
            let (error, reason) = (quoted(message), quoted(&fault.detail));
            plain(
                fault,
                format!("{{\"error\": {error}, \"reason\": {reason}}}"),
            )
        }
        AgentForm::Nothing => Response {
            body: bytes::Bytes::new().into(),
            ..Response::from(fault)
        },
    }
}

/// Text, and a line end behind it.
fn plain(fault: &Fault, mut text: String) -> Response {
    text.push('\n');
    let mut answer = Response {
        body: text.into(),
        ..Response::from(fault)
    };
    answer.headers.extend(PLAIN);
    answer
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What it says of an SDK key that the source of datafiles refuses.
pub(super) fn refused_by_source(status: StatusCode) -> Fault {
    let message = format!(
        "unable to fetch fresh datafile (consider rechecking SDK key), status code: {status}"
    );
    Fault::new(FaultKind::Forbidden, message)
}

/// What it says of a path it does not know.
pub(super) fn no_page() -> Fault {
    Fault::new(FaultKind::NotFound, "404 page not found").with_agent_form(AgentForm::Text)
}

/// What it says of a method that a path does not take.
pub(super) fn other_method() -> Fault {
    let fault = Fault::new(
        FaultKind::MethodNotAllowed,
        "the path does not take this method",
    );
    fault.with_agent_form(AgentForm::Nothing)
}

/// What it says of an operation that no request can be made of.
pub(super) fn no_request() -> Fault {
    let fault = Fault::new(
        FaultKind::Invalid,
        "no request can be made of the operation",
    );
    fault.with_agent_form(AgentForm::Nothing)
}

/// What it says of an SDK key whose datafile cannot be had, or not be used.
pub(super) fn no_client(name: &str) -> Fault {
    let message = format!("failed to instantiate Optimizely for SDK Key: {name}");
    Fault::new(FaultKind::Internal, message)
}
