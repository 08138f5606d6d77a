//! The graph service behind its limits: what passes, what it says, and what nobody gets past.

mod answers;
mod cache;
mod credentials;
mod sandbox;
mod tls;
mod tricks;

use std::time::Instant;

use crate::support::PATIENCE;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// What the scripted service answers.
const DATA: &str = r#"{"data":{"a":1}}"#;
/// A query.
const QUERY: &str = r#"{"query":"{ a }"}"#;

/// A service that answers every request alike.
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

/// The limit that an answer names, and its window.
fn limit(answer: &Answer) -> (&str, &str) {
    let header = |name| answer.header(name).unwrap_or("none");
    (header("x-ratelimit-limit"), header("x-ratelimit-window"))
}

impl Gateway {
    /// Blocks until the metrics say so: a request is counted behind its answer.
    fn wait_metric(&self, line: &str) {
        let give_up = Instant::now() + PATIENCE;
        while !self.metrics().contains(line) {
            assert!(Instant::now() < give_up, "{line} not in {}", self.metrics());
            std::thread::yield_now();
        }
    }

    fn graph(&self, request: &Ask) -> Answer {
        ask(self.address(), request)
    }
}
