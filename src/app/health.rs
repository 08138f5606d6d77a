//! `GET /`: shows whether the gateway can reach its store and Redis.
//! Source: docs/model-gateway.md 2.9, docs/facts/model-gateway.md 1.18.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::Fault;
use futures::future::BoxFuture;
use http::HeaderName;
use serde::Serialize;

use crate::accounts::AccountsHandle;
use crate::ledger::Ledger;
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;
use crate::redis::Redis;

/// The store counts as unreachable if its last reply is older than this.
pub(super) const STORE_OUTAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// `GET /`.
///
/// Cost: no query. The refresh of the snapshot queries the store four times a second, and the heartbeat queries Redis
/// every second.
pub struct Health {
    /// Has the time of the store's last reply.
    pub accounts: AccountsHandle,
    /// Knows whether the store accepts writes.
    pub ledger: Arc<Ledger>,
    /// The connection to Redis, or `None` if nothing is shared.
    pub redis: Option<Redis>,
    /// The header with the client's address.
    pub client_ip_header: Option<HeaderName>,
}

impl Endpoint for Health {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let response = self.response(&request);
        Box::pin(async { Ok(response) })
    }
}

impl Health {
    fn response(&self, request: &Request<'_>) -> Response {
        let skip = Skip::parse(request.query);
        let is_unreachable = !skip.database && self.accounts.age() > STORE_OUTAGE_TIMEOUT;
        let is_read_only = !skip.database && self.ledger.is_store_down();
        let is_redis_unavailable =
            !skip.redis && self.redis.as_ref().is_some_and(Redis::is_unavailable);
        let client_ip = request.client_ip.map(|client| client.to_string());
        let header = self.client_ip_header.as_ref();
        let part = |fault: Option<&'static str>| HealthPart {
            connected: fault.is_none(),
            error: fault,
        };
        let (status, body) = status_and_body(
            client_ip.as_deref(),
            header.map_or("", HeaderName::as_str),
            match self.redis {
                Some(_) => part(is_redis_unavailable.then_some("Redis does not answer")),
                None => HealthPart::NOT_CONFIGURED,
            },
            part(match (is_unreachable, is_read_only) {
                (true, _) => Some("the store does not answer"),
                (false, true) => Some("the store takes no writes"),
                (false, false) => None,
            }),
        );
        Response {
            status,
            ..Response::json(body)
        }
    }
}

/// The health of one part.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct HealthPart {
    /// Whether the part can be reached, or its check was skipped.
    pub connected: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
}

impl HealthPart {
    /// A part that is not configured, which is not a fault.
    const NOT_CONFIGURED: Self = Self {
        connected: false,
        error: Some("not configured"),
    };

    fn is_healthy(&self) -> bool {
        self.connected || *self == Self::NOT_CONFIGURED
    }
}

#[derive(Serialize)]
struct Body<'a> {
    message: &'static str,
    version: &'static str,
    #[serde(rename = "clientIp")]
    client_ip: Option<&'a str>,
    #[serde(rename = "clientIpHeader")]
    client_ip_header: &'a str,
    health: Parts,
}

#[derive(Serialize)]
struct Parts {
    status: &'static str,
    redis: HealthPart,
    database: HealthPart,
}

/// The checks that the query skips: `skip=redis,database`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Skip {
    pub redis: bool,
    /// Whether the check of the store is skipped.
    pub database: bool,
}

impl Skip {
    /// Parses a query. Names are trimmed and compared without case; unknown names are ignored.
    pub fn parse(query: &str) -> Self {
        let mut skip = Self::default();
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        for (_, value) in pairs.filter(|(key, _)| *key == "skip") {
            let value = value
                .replace("%2C", ",")
                .replace("%2c", ",")
                .replace(['+', ' '], "");
            for name in value.replace("%20", "").to_ascii_lowercase().split(',') {
                skip.redis |= name == "redis";
                skip.database |= name == "database";
            }
        }
        skip
    }
}

/// Returns the status and the body of the response.
fn status_and_body(
    client_ip: Option<&str>,
    client_ip_header: &str,
    redis: HealthPart,
    database: HealthPart,
) -> (u16, Vec<u8>) {
    let is_healthy = redis.is_healthy() && database.is_healthy();
    let body = Body {
        message: "Weirgate",
        version: env!("CARGO_PKG_VERSION"),
        client_ip,
        client_ip_header,
        health: Parts {
            status: if is_healthy { "healthy" } else { "unhealthy" },
            redis,
            database,
        },
    };
    (
        if is_healthy { 200 } else { 503 },
        serde_json::to_vec(&body).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn checks_are_left_out_by_name() {
        assert_eq!(
            Skip::parse("skip=redis,%20Database"),
            Skip {
                redis: true,
                database: true
            }
        );
        assert_eq!(
            Skip::parse("a=b&skip=redis"),
            Skip {
                redis: true,
                database: false
            }
        );
        assert_eq!(Skip::parse("skip="), Skip::default());
    }

    /// Contract: model-gateway 4 GET /
    #[test]
    fn a_part_that_is_down_makes_a_503_of_the_same_shape() {
        let down = HealthPart {
            connected: false,
            error: Some("connection failed"),
        };
        let up = HealthPart {
            connected: true,
            error: None,
        };
        let (status, body) = status_and_body(None, "", up, down);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (status, &body["health"]["status"]),
            (503, &"unhealthy".into())
        );
        assert_eq!(body["health"]["database"]["error"], "connection failed");
        assert!(body["clientIp"].is_null());
    }
}
