//! The authorization server of `/mcp`: OAuth 2.1 for clients that people let act with their API keys.
//!
//! Source: docs/mcp.md, OAuth; docs/decisions.md 60. [`clients`] finds and checks clients, [`authorize`] shows their
//! requests to people, and [`token`] makes tokens for codes and refresh tokens. Everything but access tokens is in
//! the store.

mod authorize;
mod clients;
pub mod documents;
mod documents_of_server;
mod register;
mod response;
mod revoke;
pub mod routes;
pub mod sweep;
mod token;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use filters::accounts::Pepper;
use filters::fault::{Fault, FaultKind};
use filters::mcp::oauth::metadata::RESOURCE_PATH;
use filters::mcp::oauth::refresh::RefreshTokens;
use filters::proxy::OwnOrigin;
use http::{HeaderMap, header};

use self::documents::ClientDocuments;
use crate::accounts::AccountsHandle;
use crate::accounts::access_tokens::AccessTokens;
use crate::config::McpConfig;
use crate::encryption::{Seal, SealError};
use crate::ledger::{Ledger, StoreTurns};
use crate::proxy::address_limits::AddressLimits;
use crate::proxy::handler::Request;

/// The purpose of the key that signs refresh tokens.
const REFRESH_PURPOSE: &str = "refresh tokens of OAuth, version 1";
/// The purpose of the key that encrypts the contents of pages.
const PAGES_PURPOSE: &str = "pages of consent of OAuth, version 1";
/// The bytes of a secret.
const SECRET_BYTES: usize = 32;
/// How long a request waits for its turn at the store.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// The parts that the authorization server shares with the rest of the gateway.
pub struct OAuthParts {
    pub store: StoreTurns,
    pub accounts: AccountsHandle,
    /// Hashes secrets.
    pub pepper: Pepper,
    pub tokens: Arc<AccessTokens>,
    pub address_limits: Arc<AddressLimits>,
    pub documents: ClientDocuments,
    /// The origin at which clients reach the gateway.
    pub own_origin: OwnOrigin,
}

/// Returns the turns that requests take at the ledger's store.
pub fn store_turns(ledger: Arc<Ledger>) -> StoreTurns {
    let busy = "more ask for tokens at once than the gateway serves: try again";
    StoreTurns::new(ledger, TURN_TIMEOUT, busy)
}

/// The authorization server.
pub(super) struct OAuth {
    parts: OAuthParts,
    refresh_tokens: RefreshTokens,
    /// Encrypts the contents of pages.
    pages: Seal,
    access_token_ms: i64,
    refresh_token_ms: i64,
}

/// The URLs at which a request has reached the server.
struct Here {
    /// The issuer: an origin.
    issuer: String,
    /// The resource for which tokens are valid.
    resource: String,
}

impl OAuth {
    /// Makes the server.
    ///
    /// Errors: never, because the derived keys have the lengths of their ciphers.
    pub(super) fn new(parts: OAuthParts, settings: &McpConfig) -> Result<Self, SealError> {
        let refresh_tokens = RefreshTokens::new(&parts.pepper.derive(REFRESH_PURPOSE));
        let pages = Seal::new(&parts.pepper.derive(PAGES_PURPOSE))?;
        let in_ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        Ok(Self {
            parts,
            refresh_tokens: refresh_tokens.ok_or(SealError::Damaged)?,
            pages,
            access_token_ms: in_ms(settings.access_token_ttl),
            refresh_token_ms: in_ms(settings.refresh_token_ttl),
        })
    }

    /// Returns the issuer for a request from this address with these headers, or `None` if OAuth is off there.
    pub(super) fn issuer(&self, headers: &HeaderMap, client_ip: Option<IpAddr>) -> Option<String> {
        let host = headers.get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok());
        let issuer = self.parts.own_origin.for_host(host, client_ip)?;
        Some(issuer.into_owned())
    }

    /// Returns the URLs at which a request has reached the server.
    ///
    /// Errors: 404 if OAuth is off there.
    fn here(&self, request: &Request<'_>) -> Result<Here, Fault> {
        let issuer = self.issuer(request.headers, request.client_ip);
        let issuer = issuer.ok_or_else(|| {
            let message =
                "OAuth is off here: the operator has to set `mcp.public_url`; API keys work";
            Fault::new(FaultKind::NotFound, message)
        })?;
        let resource = format!("{issuer}{RESOURCE_PATH}");
        Ok(Here { issuer, resource })
    }
}

/// Returns a new secret: a prefix and random bytes as text.
///
/// Errors: the operating system gave no random bytes.
fn random_secret(prefix: &str) -> Result<String, Fault> {
    let mut entropy = [0_u8; SECRET_BYTES];
    getrandom::fill(&mut entropy).map_err(|_| no_entropy())?;
    Ok(format!("{prefix}{}", BASE64.encode(entropy)))
}

fn no_entropy() -> Fault {
    Fault::new(FaultKind::Internal, "there are no random bytes")
}

fn unix_ms(now_ms: u64) -> i64 {
    i64::try_from(now_ms).unwrap_or(i64::MAX)
}
