//! The operations of a batch, as they are written. Source: docs/decision-agent.md 2.4, docs/facts/decision-engine.md E.

use filters::decisions::Compat;
use filters::fault::{AgentForm, Fault, FaultKind};
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::old_operations;

#[derive(Default, Deserialize)]
struct BatchRequest {
    #[serde(default)]
    operations: Option<Vec<BatchOperation>>,
}

/// One operation; it inherits nothing from the batch.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct BatchOperation {
    /// Its method; none: GET.
    pub(super) method: String,
    /// Where it goes.
    pub(super) url: String,
    /// What its item is called.
    #[serde(rename = "operationID")]
    pub(super) operation_id: String,
    /// Its body.
    pub(super) body: Value,
    /// Its query beside that of the URL.
    pub(super) parameters: Option<Map<String, Value>>,
    /// The same under the agent's name.
    pub(super) params: Option<Map<String, Value>>,
    /// Its headers.
    pub(super) headers: Option<Map<String, Value>>,
}

impl BatchOperation {
    /// Its path and its query. The agent of old takes whole URLs, and passes over their ends behind `#`.
    pub(super) fn target(&self, compat: Compat) -> (&str, &str) {
        let url = match compat {
            Compat::Document => &*self.url,
            Compat::Agent => self.local(),
        };
        url.split_once('?').unwrap_or((url, ""))
    }

    /// The URL without scheme, authority and fragment.
    fn local(&self) -> &str {
        let url = self.url.split('#').next().unwrap_or_default();
        let Some((scheme, rest)) = url.split_once("://") else {
            return url;
        };
        if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return url;
        }
        rest.find(['/', '?'])
            .and_then(|at| rest.get(at..))
            .unwrap_or_default()
    }

    /// Whether the agent of old can make a request of it.
    pub(super) fn is_request(&self) -> bool {
        let (path, _) = self.target(Compat::Agent);
        let is_method =
            self.method.is_empty() || Method::from_bytes(self.method.as_bytes()).is_ok();
        let mut parts = path.split('%');
        parts.next();
        let is_escape = |part: &str| {
            let digits = part.as_bytes().get(..2);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        };
        let has_control = self.url.bytes().any(|byte| byte.is_ascii_control());
        is_method && !has_control && !path.starts_with(':') && parts.all(is_escape)
    }

    /// A header of it, whatever the case of its name.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter().flatten();
        let found = headers.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found?.1.as_str()
    }
}

/// The operations of a batch.
///
/// Errors: 400 for what is no batch.
pub(super) fn read(body: &[u8], compat: Compat) -> Result<Vec<BatchOperation>, Fault> {
    const WORDS: &str = "cannot decode the operation body";
    match compat {
        Compat::Document => serde_json::from_slice(body)
            .map(|batch: BatchRequest| batch.operations.unwrap_or_default())
            .map_err(|error| Fault::new(FaultKind::Invalid, format!("{WORDS}: {error}"))),
        Compat::Agent => old_operations::read(body).ok_or_else(|| {
            Fault::new(FaultKind::Invalid, WORDS).with_agent_form(AgentForm::Object)
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn to(url: &str) -> BatchOperation {
        BatchOperation {
            url: url.to_owned(),
            ..BatchOperation::default()
        }
    }

    #[test]
    fn the_agent_of_old_takes_whole_urls() {
        for (url, expected) in [
            ("/v1/decide?keys=a", ("/v1/decide", "keys=a")),
            ("http://host:80/v1/config#top", ("/v1/config", "")),
            ("https://host?a=b", ("", "a=b")),
            ("https://host", ("", "")),
            (
                "/v1/decide?to=http://host/x",
                ("/v1/decide", "to=http://host/x"),
            ),
        ] {
            assert_eq!(to(url).target(Compat::Agent), expected);
        }
    }

    #[test]
    fn of_some_operations_no_request_can_be_made() {
        for url in ["/v1/a%zz", "/v1/a%4", "/v1/\u{7f}", ":x", "/v1/a\nb"] {
            assert!(!to(url).is_request(), "{url:?}");
        }
        for url in [
            "/v1/a%20b",
            "",
            "/v1/decide?keys=%",
            "http://host/v1/config",
        ] {
            assert!(to(url).is_request(), "{url:?}");
        }
        let mut bad = to("/v1/config");
        bad.method = "GE T".to_owned();
        assert!(!bad.is_request());
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        for body in [
            "",
            "[1]",
            "{\"operations\":1}",
            "{\"operations\":[1]}",
            "{\"operations\":[{\"method\":1}]}",
        ] {
            for compat in [Compat::Agent, Compat::Document] {
                assert!(read(body.as_bytes(), compat).is_err(), "{body}");
            }
        }
        for body in [
            "[]",
            "{\"operations\":[{\"body\":[]}]}",
            "{\"operations\":[{\"params\":{\"a\":1}}]}",
            "{\"operations\":[{\"headers\":{\"a\":true}}]}",
        ] {
            assert!(read(body.as_bytes(), Compat::Agent).is_err(), "{body}");
            assert!(read(body.as_bytes(), Compat::Document).is_ok(), "{body}");
        }
    }
}
