//! A request to the console, as views see it.

use std::net::IpAddr;

use filters::audit::Actor;
use filters::form;
use http::{HeaderMap, Method};
use jiff::Timestamp;

use super::access::Visitor;

/// A request of a person who has signed in.
pub struct ConsoleRequest {
    pub method: Method,
    /// The path, decoded, for example `/console/calls/req_1`.
    pub path: String,
    /// The query, undecoded.
    query: String,
    /// The pairs of the form, undecoded; empty for a `GET`.
    form: String,
    pub headers: HeaderMap,
    pub visitor: Visitor,
    /// Where the person is, for the audit log.
    pub address: IpAddr,
    /// When it came. Units: unix milliseconds.
    pub now_ms: i64,
}

impl ConsoleRequest {
    pub(super) fn new(
        (method, path, query): (Method, &str, &str),
        (headers, body): (HeaderMap, &[u8]),
        (visitor, address): (Visitor, IpAddr),
    ) -> Self {
        Self {
            method,
            // A plus sign is itself in a path.
            path: form::decode(&path.replace('+', "%2B")).into_owned(),
            query: query.to_owned(),
            form: String::from_utf8_lossy(body).into_owned(),
            headers,
            visitor,
            address,
            now_ms: Timestamp::now().as_millisecond(),
        }
    }

    /// Returns the first value of a parameter of the query, without the spaces around it; `None` if it is absent or empty.
    pub fn query(&self, name: &str) -> Option<String> {
        trimmed(&self.query, name)
    }

    /// Returns the first value of a parameter of the query, with the spaces around it; empty if it is absent.
    pub fn query_as_sent(&self, name: &str) -> String {
        first(&self.query, name).unwrap_or_default()
    }

    /// Returns the query, undecoded, without these parameters.
    pub fn query_without(&self, names: &[&str]) -> String {
        let kept = form::pairs(&self.query).filter(|pair| !names.contains(&&*pair.decoded_name()));
        let kept: Vec<_> = kept
            .map(|pair| format!("{}={}", pair.name, pair.value))
            .collect();
        kept.join("&")
    }

    /// Returns the first value of a field of the form, without the spaces around it; `None` if it is absent or empty.
    pub fn field(&self, name: &str) -> Option<String> {
        trimmed(&self.form, name)
    }

    /// Returns the first value of a field of the form, with the spaces around it; empty if it is absent.
    pub fn field_as_sent(&self, name: &str) -> String {
        first(&self.form, name).unwrap_or_default()
    }

    /// Returns whether the form has a field, which may be empty.
    pub fn has_field(&self, name: &str) -> bool {
        first(&self.form, name).is_some()
    }

    /// Returns who makes a change.
    pub fn actor(&self) -> Actor {
        Actor::on_console(&self.visitor.name, self.address)
    }

    /// Returns the rest of the path behind the path of a view.
    pub fn rest(&self, view: &str) -> &str {
        let rest = self.path.strip_prefix(view).unwrap_or_default();
        rest.strip_prefix('/').unwrap_or(rest)
    }
}

fn first(pairs: &str, name: &str) -> Option<String> {
    form::values(pairs, name).next().map(|it| it.into_owned())
}

fn trimmed(pairs: &str, name: &str) -> Option<String> {
    let value = form::values(pairs, name).next()?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}
