//! The graph service behind its limits: forwarded requests, responses, and attempts to bypass the limits.

mod answers;
mod cache;
mod credentials;
pub mod limits;
mod sandbox;
mod shared_limits;
mod tls;
mod tricks;

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::until;
use crate::support::upstream::Upstream;

/// The reply of the scripted service.
const DATA: &str = r#"{"data":{"a":1}}"#;
/// A query.
const QUERY: &str = r#"{"query":"{ a }"}"#;

/// A service that sends the same reply to every request.
fn service() -> Upstream {
    Upstream::always(Reply::json(200, DATA))
}

/// A gateway in front of it, with the tenant `t1` whose public key is `k1`, and more TOML: keys of `[graph]`, a blank
/// line, keys of the tenant and further tables.
fn before(service: &Upstream, graph: &str, tenant: &str) -> Gateway {
    at(&service.url(), graph, tenant)
}

/// The same for a service at a URL.
fn at(url: &str, graph: &str, tenant: &str) -> Gateway {
    let toml = format!(
        "[graph]\nupstream = \"{url}\"\n{graph}\n\
         [[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\n{tenant}\n"
    );
    Gateway::start(&toml, "")
}

/// A query with the tenant's public key.
fn query() -> Ask {
    Ask::post("/content/v2?auth=k1", QUERY)
}

/// Returns the limit in a response's headers, and its window.
fn limit(answer: &Answer) -> (&str, &str) {
    let header = |name| answer.header(name).unwrap_or("none");
    (header("x-ratelimit-limit"), header("x-ratelimit-window"))
}

impl Gateway {
    /// Blocks until the metrics have this value: a request is counted after its response.
    fn wait_metric(&self, line: &str) {
        until(line, || self.metrics().contains(line));
    }

    fn graph(&self, request: &Ask) -> Answer {
        ask(self.address(), request)
    }
}
