//! Finds the endpoint of a batch operation. The agent makes a request from any URL, and serves only its own paths.
//! Source: docs/facts/decision-engine.md E.

use http::Method;

use super::errors;
use crate::decisions::batch::{
    BatchOperation, BatchTarget, FindRoute, FoundRoute, no_decision_endpoint,
};
use crate::fault::{Fault, FaultKind};

/// The routes that the agent also has, except batches, which must not contain batches.
const ROUTES: [&str; 11] = [
    "config",
    "datafile",
    "decide",
    "activate",
    "track",
    "overrides",
    "lookup",
    "save",
    "send_odp_event",
    "event_stream",
    "token",
];

/// Returns whether an operation can be turned into a request.
pub(super) fn is_request(operation: &BatchOperation) -> bool {
    let (path, _) = operation.split_url();
    let method = operation.method.as_bytes();
    let is_method = method.is_empty() || Method::from_bytes(method).is_ok();
    let mut parts = path.split('%');
    parts.next();
    let is_escape = |part: &str| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let has_control = operation.url.bytes().any(|byte| byte.is_ascii_control());
    is_method && !has_control && !path.starts_with(':') && parts.all(is_escape)
}

/// Returns the endpoint of an operation. Below `/v1/` the agent checks the credentials before the path.
pub(super) fn find_target(operation: &BatchOperation, find: FindRoute<'_>) -> BatchTarget {
    let (path, _) = operation.split_url();
    match find_endpoint(&operation.method, path, find) {
        Ok(index) => BatchTarget::Endpoint(index),
        Err(fault) => BatchTarget::Missing {
            fault,
            is_hidden: path.starts_with("/v1/"),
        },
    }
}

fn find_endpoint(method: &str, path: &str, find: FindRoute<'_>) -> Result<usize, Fault> {
    let method = match method {
        "" => Method::GET,
        other => Method::from_bytes(other.as_bytes()).map_err(|_| errors::no_request())?,
    };
    let at = |method: &Method| find_own(method, path, find);
    let found = match method {
        Method::GET | Method::POST => at(&method)?,
        _ => None,
    };
    match found {
        Some(route) if route.is_operation => Ok(route.index),
        Some(_) => Err(no_decision_endpoint()),
        None if at(&Method::GET)?.is_some() || at(&Method::POST)?.is_some() => {
            Err(errors::wrong_method())
        }
        None => Err(errors::no_page()),
    }
}

/// Returns the route if the agent also has it. Errors: 400 for a path that cannot be normalised.
fn find_own(method: &Method, path: &str, find: FindRoute<'_>) -> Result<Option<FoundRoute>, Fault> {
    let is_absent = |fault: &Fault| {
        matches!(
            fault.kind,
            FaultKind::NotFound | FaultKind::MethodNotAllowed
        )
    };
    match find(method, path) {
        Ok(route) => Ok(Some(route).filter(|route| ROUTES.contains(&route.name))),
        Err(fault) if is_absent(&fault) => Ok(None),
        Err(fault) => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(url: &str) -> BatchOperation {
        BatchOperation {
            url: url.to_owned(),
            ..BatchOperation::default()
        }
    }

    #[test]
    fn of_some_operations_no_request_can_be_made() {
        for url in ["/v1/a%zz", "/v1/a%4", "/v1/\u{7f}", ":x", "/v1/a\nb"] {
            assert!(!is_request(&to(url)), "{url:?}");
        }
        for url in [
            "/v1/a%20b",
            "",
            "/v1/decide?keys=%",
            "http://host/v1/config",
        ] {
            assert!(is_request(&to(url)), "{url:?}");
        }
        let mut bad = to("/v1/config");
        bad.method = "GE T".to_owned();
        assert!(!is_request(&bad));
    }
}
