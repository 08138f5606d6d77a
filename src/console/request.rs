//! A request to the console, as views see it.

use std::net::IpAddr;

use filters::form;
use http::{HeaderMap, Method};

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
        }
    }

    /// Returns the first value of a parameter of the query, without the spaces around it; `None` if it is absent or empty.
    pub fn query(&self, name: &str) -> Option<String> {
        first(&self.query, name)
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
        first(&self.form, name)
    }

    /// Returns the rest of the path behind the path of a view.
    pub fn rest(&self, view: &str) -> &str {
        let rest = self.path.strip_prefix(view).unwrap_or_default();
        rest.strip_prefix('/').unwrap_or(rest)
    }
}

fn first(pairs: &str, name: &str) -> Option<String> {
    let value = form::values(pairs, name).next()?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}
