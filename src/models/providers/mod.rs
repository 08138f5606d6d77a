//! The providers as the proxy reaches them: wire, credentials, place.

mod byok;
mod credentials;

use std::sync::Arc;

use filters::models::operation::Operation;
use filters::models::routing::capable::WireLimits;
use filters::models::wires::{Quirks, Wire};
use http::{HeaderName, HeaderValue};

pub use self::byok::{ByokKeys, ByokSnapshot};
pub use self::credentials::{ByokKey, Credential, KeyPool};
use crate::config::{self, Secret};
use crate::proxy::origin::{ConnectTimeouts, Origin};

/// One provider.
pub struct Provider {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// Its wire.
    pub wire: &'static dyn Wire,
    /// What is special about it.
    pub quirks: Quirks,
    /// The platform's credentials; one without text where it needs none, none where only callers have some.
    pub keys: Arc<KeyPool>,
    /// Its preference among equals; 1 is neutral.
    pub priority: f64,
    /// Headers added to each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Where it is.
    pub origin: Arc<Origin>,
    /// What stands in front of the wire's path; without a slash at the end.
    pub path: String,
}

impl Provider {
    /// The provider as configured.
    ///
    /// Errors: the base URL cannot be used; the configuration's checks should have found that.
    pub fn new(
        provider: &config::ProviderConfig,
        routing: &config::Routing,
        fingerprint_key: &[u8],
    ) -> Result<Self, String> {
        let url: http::Uri = provider
            .base_url
            .parse()
            .map_err(|error| format!("provider {}: the base URL: {error}", provider.name))?;
        let timeouts = ConnectTimeouts {
            connect: routing.connect_timeout,
            // The buffered session keeps time. This bounds what it cannot see: an upload that the provider does not read.
            read_write: routing.total_timeout.max(routing.stream_total_timeout),
        };
        let of = |key: &Secret| Credential::new(key.clone(), fingerprint_key, None).into();
        let mut keys: Vec<_> = provider.keys.iter().map(of).collect();
        if keys.is_empty() && !provider.is_byok_only {
            keys.push(Credential::none().into());
        }
        Ok(Self {
            name: provider.name.as_str().into(),
            wire: provider.kind.wire_kind().wire(),
            quirks: provider.quirks.clone(),
            keys: Arc::new(KeyPool::new(keys)),
            headers: provider.headers.clone(),
            priority: provider.priority,
            origin: Arc::new(Origin::new(
                &format!("provider {}", provider.name),
                &url,
                timeouts,
            )?),
            path: url.path().trim_end_matches('/').to_owned(),
        })
    }

    /// What its wire and its quirks leave possible, whatever the catalogue claims; `None`: not this operation.
    pub fn limits(&self, operation: Operation) -> Option<WireLimits> {
        Some(WireLimits {
            json_schema: self.quirks.json_schema,
            forced_tools: self.quirks.forced_tools,
            ..self.wire.limits(operation)?
        })
    }

    /// The path of an upstream request.
    pub fn path_of(&self, wire_path: &str) -> String {
        format!("{}{wire_path}", self.path)
    }
}
