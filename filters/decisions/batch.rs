//! The operations of a batch and their items in the response. Source: docs/decision-agent.md 2.4, 4 rule 5.
//!
//! A protocol reads the operations and writes the items. The parts of an operation are the same for all protocols.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::fault::{Fault, FaultKind, quoted};
use crate::json::{Object, write_number};

/// One operation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BatchOperation {
    /// The method. An empty text means GET.
    pub method: String,
    /// The path and the query of the call, with or without a base URL.
    pub url: String,
    #[serde(rename = "operationID")]
    pub operation_id: String,
    pub body: Value,
    /// Query parameters that are added to those of the URL.
    pub parameters: Option<Map<String, Value>>,
    /// The same parameters under the agent's name.
    pub params: Option<Map<String, Value>>,
    pub headers: Option<Map<String, Value>>,
}

impl BatchOperation {
    /// Returns a header of the operation. Its name matches in any case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter().flatten();
        let found = headers.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found?.1.as_str()
    }

    /// Returns the path and the query of the URL, without its base and its fragment. Source: docs/decision-agent.md
    /// 2.4.
    pub fn split_url(&self) -> (&str, &str) {
        let url = self.url.split('#').next().unwrap_or_default();
        let url = without_base(url);
        url.split_once('?').unwrap_or((url, ""))
    }

    /// Returns the query of the URL, followed by the parameters.
    ///
    /// Errors: 400 for a parameter that is neither a text, a number, a boolean, nor a list of these.
    pub fn query(&self, in_url: &str) -> Result<String, Fault> {
        let mut query = form_urlencoded::Serializer::new(in_url.to_owned());
        let named = self.parameters.iter().chain(&self.params).flatten();
        for (name, value) in named {
            let values = match value {
                Value::Array(values) => values.as_slice(),
                value => std::slice::from_ref(value),
            };
            for value in values {
                match value {
                    Value::String(text) => query.append_pair(name, text),
                    Value::Bool(_) | Value::Number(_) => {
                        query.append_pair(name, &value.to_string())
                    }
                    _ => {
                        let message = format!(
                            "`parameters.{}` is neither a text nor a list of texts",
                            quoted(name)
                        );
                        let fault = Fault::new(FaultKind::Invalid, message);
                        return Err(fault.with_param("parameters"));
                    }
                };
            }
        }
        Ok(query.finish())
    }

    /// Returns the headers of the operation alone.
    ///
    /// Errors: 400 for a header that cannot be sent.
    pub fn header_map(&self) -> Result<HeaderMap, Fault> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers.iter().flatten() {
            let bad = || {
                let message = format!("the header {:?} cannot be sent", quoted(name));
                Fault::new(FaultKind::Invalid, message).with_param("headers")
            };
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let value = value.as_str().ok_or_else(bad)?;
            headers.append(header, HeaderValue::from_str(value).map_err(|_| bad())?);
        }
        Ok(headers)
    }
}

/// Returns a URL without scheme and host.
fn without_base(url: &str) -> &str {
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

/// A route of the gateway, as a batch sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FoundRoute {
    /// The route's index in the table that was searched.
    pub index: usize,
    pub name: &'static str,
    /// Whether a batch may call the route's endpoint.
    pub is_operation: bool,
}

/// Finds the route of a method and a path. Errors: 400 for a path that cannot be normalised, 404, 405.
pub type FindRoute<'f> = &'f dyn Fn(&Method, &str) -> Result<FoundRoute, Fault>;

/// The destination of an operation.
#[derive(Debug)]
pub enum BatchTarget {
    /// The endpoint of the route at this index.
    Endpoint(usize),
    /// The operation has no endpoint.
    Missing {
        fault: Fault,
        /// Only a caller with valid credentials gets the fault.
        is_hidden: bool,
    },
}

/// Returns the fault of an operation on a route that is no endpoint of decisions.
pub(super) fn no_decision_endpoint() -> Fault {
    Fault::new(FaultKind::Invalid, "`url` names no decision endpoint").with_param("url")
}

/// An operation and its response.
#[derive(Debug)]
pub struct AnsweredOperation<'a> {
    pub operation: &'a BatchOperation,
    pub status: u16,
    pub body: &'a [u8],
    pub request_id: String,
    pub times: Times,
}

/// The start and the end of a call, as RFC 3339 texts.
#[derive(Clone, Debug)]
pub struct Times {
    pub started_at: String,
    pub ended_at: String,
}

/// An item of the response, in a protocol's form.
pub(super) struct BatchItem<'a> {
    pub(super) operation: &'a BatchOperation,
    pub(super) status: u16,
    pub(super) request_id: &'a str,
    pub(super) body: &'a str,
    pub(super) started_at: &'a str,
    pub(super) ended_at: &'a str,
}

impl BatchItem<'_> {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut item = Object::open(&mut out);
        item.value("status", |out| write_number(u64::from(self.status), out));
        item.text("requestID", self.request_id);
        item.text("operationID", &self.operation.operation_id);
        item.text("method", &self.operation.method);
        item.text("url", &self.operation.url);
        item.raw("body", self.body);
        item.text("startedAt", self.started_at);
        item.text("endedAt", self.ended_at);
        item.close();
        out
    }
}

/// The result of a batch after all of its operations.
#[derive(Debug)]
pub struct AnsweredBatch {
    /// The items, as the protocol writes them, in the request's order.
    pub items: Vec<Vec<u8>>,
    pub error_count: u64,
    pub times: Times,
}

impl AnsweredBatch {
    pub(super) fn write(self, ended_at: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut body = Object::open(&mut out);
        body.text("startedAt", &self.times.started_at);
        body.text("endedAt", ended_at);
        body.number("errorCount", self.error_count);
        body.array("response", self.items, |item, out| {
            out.extend_from_slice(&item);
        });
        body.close();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: docs/decision-agent.md 2.4.
    #[test]
    fn the_base_of_a_url_is_stripped() {
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
            let operation = BatchOperation {
                url: url.to_owned(),
                ..BatchOperation::default()
            };
            assert_eq!(operation.split_url(), expected);
        }
    }
}
