//! Refusals of this wire. Source: docs/facts/wire-formats.md 6.1.

use crate::models::wires::error_body;
use crate::models::wires::failure::Failure;

/// The status of a request, or of an answer, that holds words which are not allowed.
const BLOCKED: u16 = 498;
/// The status of a request that the server has given up.
const CANCELLED: u16 = 499;

/// Returns the meaning of a refusal, by the statuses that everybody knows.
pub(super) fn classify(status: u16, body: &[u8]) -> Failure {
    let status = match status {
        BLOCKED => 400,
        CANCELLED => 503,
        status => status,
    };
    error_body::classify(status, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::wires::failure::FailureKind;

    #[test]
    fn statuses_of_its_own_become_usual_ones() {
        let said = br#"{"id":"1","message":"total number of texts must be at most 96"}"#;
        for (status, kind, is_retryable) in [
            (400, 400, false),
            (401, 401, true),
            (422, 422, false),
            (429, 429, true),
            (498, 400, false),
            (499, 503, true),
            (500, 500, true),
        ] {
            let failure = classify(status, said).scrubbed(&[""; 0]);
            assert_eq!(failure.kind, FailureKind::Status(kind), "{status}");
            assert_eq!(failure.is_retryable, is_retryable, "{status}");
            assert!(failure.message.contains("at most 96"), "{failure:?}");
        }
    }
}
