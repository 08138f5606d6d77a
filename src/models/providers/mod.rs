//! The providers as the proxy calls them: wire, credentials, origin.

mod byok;
mod credentials;

use std::sync::Arc;

use filters::fault::Fault;
use filters::models::operation::Operation;
use filters::models::routing::MappingWire;
use filters::models::routing::capable::WireLimits;
use filters::models::routing::catalog::Mapping;
use filters::models::wires::{Quirks, Wire, WireKind};
use http::{HeaderName, HeaderValue};

pub use self::byok::{ByokKeys, ByokSnapshot};
pub use self::credentials::{ByokKey, Credential, KeyPool};
use crate::config::{self, Secret};
use crate::proxy::origin::{ConnectTimeouts, Origin, Reach};

/// A shorter header value or path behind the host, such as `/v1`, says nothing about an account.
const MIN_REVEALING_BYTES: usize = 8;

/// One provider.
pub struct Provider {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// Whether it is the built-in provider.
    pub is_sandbox: bool,
    /// The usual wire of its kind.
    wire: &'static dyn Wire,
    /// Its deviations from the wire.
    pub quirks: Quirks,
    /// The platform keys. The pool holds one credential without a secret if the provider needs none, and is empty if only
    /// BYOK keys are used.
    pub keys: Arc<KeyPool>,
    /// Its preference among equal providers; 1 is neutral.
    pub priority: f64,
    /// Headers added to each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Its origin.
    pub origin: Arc<Origin>,
    /// The path of the base URL, which precedes the wire's path; it does not end with a slash.
    pub base_path: String,
}

impl Provider {
    /// Creates a provider from its configuration.
    ///
    /// Errors: the base URL is not valid; the checks of the configuration should have found that.
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
            // The buffered session has the timers of an attempt. This timeout covers an upload that the provider does not
            // read, which the session cannot see.
            read_write: routing.total_timeout.max(routing.stream_total_timeout),
        };
        let credential = |key: &Secret| Credential::new(key.clone(), fingerprint_key, None).into();
        let mut keys: Vec<_> = provider.keys.iter().map(credential).collect();
        if keys.is_empty() && !provider.is_byok_only {
            keys.push(Credential::none().into());
        }
        Ok(Self {
            name: provider.name.as_str().into(),
            is_sandbox: provider.kind == config::ProviderKind::Sandbox,
            wire: provider.kind.wire_kind().wire(),
            quirks: provider.quirks.clone(),
            keys: Arc::new(KeyPool::new(keys)),
            headers: provider.headers.clone(),
            priority: provider.priority,
            origin: Arc::new(Origin::new(
                &format!("provider {}", provider.name),
                &url,
                timeouts,
                match provider.is_base_url_built_in {
                    true => Reach::Public,
                    false => Reach::Anywhere,
                },
            )?),
            base_path: url.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Returns the wire in which it serves a mapping.
    pub fn wire_of(&self, mapping: &Mapping) -> &'static dyn Wire {
        match mapping.wire {
            None | Some(MappingWire::Chat) => self.wire,
            Some(MappingWire::Responses) => WireKind::Responses.wire(),
        }
    }

    /// Returns the limits that a mapping's wire and the provider's quirks set for an operation; `None`: the wire does not
    /// offer the operation. They hold even if the catalogue claims more.
    pub fn limits(&self, mapping: &Mapping, operation: Operation) -> Option<WireLimits> {
        Some(WireLimits {
            json_schema: self.quirks.json_schema,
            forced_tools: self.quirks.forced_tools,
            ..self.wire_of(mapping).limits(operation)?
        })
    }

    /// Returns the header that its credentials have, without one; `None`: it cannot be written.
    pub fn credential_place(&self) -> Option<(HeaderName, HeaderValue)> {
        self.wire.credential("", &self.quirks).ok()
    }

    /// Returns whether its requests carry a credential.
    pub fn needs_key(&self) -> bool {
        let first = self.keys.get(0);
        first.is_none_or(|key| key.secret.is_some())
    }

    /// Returns the header of one of its keys; `None` if it needs none.
    ///
    /// Errors: the credential cannot stand in a header.
    pub fn credential<'k>(
        &self,
        key: &'k Credential,
    ) -> Result<Option<&'k (HeaderName, HeaderValue)>, Fault> {
        key.header(|secret| self.wire.credential(secret, &self.quirks))
    }

    /// Returns what its words must not reveal: its addresses, the path behind them, and the values of its headers.
    pub fn revealing(&self) -> Vec<String> {
        let mut all = self.origin.revealing();
        let values = self
            .headers
            .iter()
            .filter_map(|(_, value)| value.to_str().ok());
        let paths = [&*self.base_path];
        let more = values.chain(paths).map(str::to_owned);
        all.extend(more.filter(|text| text.len() >= MIN_REVEALING_BYTES));
        all
    }

    /// Returns the path of an upstream request.
    pub fn upstream_path(&self, wire_path: &str) -> String {
        format!("{}{wire_path}", self.base_path)
    }
}
