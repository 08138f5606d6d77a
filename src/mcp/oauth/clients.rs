//! Clients: finds them by their ids, registered or in documents, and authenticates them by their secrets.

use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use filters::accounts::KeyHash;
use filters::fault::{Fault, FaultKind};
use filters::form;
use filters::mcp::oauth::client::{Client, ClientMetadata, is_document_id};
use filters::mcp::oauth::error::{OAuthError, OAuthErrorCode};
use filters::mcp::oauth::form::OAuthParameters;
use http::{HeaderMap, header};
use tokio::time::Instant;

use super::OAuth;
use super::documents::DocumentError;
use super::response::OAuthRefusal;
use crate::store::OAuthClientRow;

/// The id of a client and its secret, as a request presents them.
struct ClientCredentials {
    id: String,
    secret: Option<String>,
}

impl OAuth {
    /// Returns the client with this id, unless it was revoked. `client_ip` is the address that asks.
    ///
    /// Errors: 503 while the store does not respond; as [`Self::find_document`].
    pub(super) async fn find_client(
        &self,
        id: &str,
        client_ip: Option<IpAddr>,
    ) -> Result<Option<Client>, Fault> {
        let row = self.client_row(id).await?;
        let is_revoked = row.as_ref().is_some_and(|row| !is_valid(row));
        if is_document_id(id) && !is_revoked {
            return self.find_document(id, client_ip).await.map(Some);
        }
        Ok(row.filter(is_valid).and_then(|row| to_client(&row)))
    }

    /// Returns the client that a document at this URL describes.
    ///
    /// Errors: 400 for an unusable document, 429 for an address that causes very many fetches, 503 while very many
    /// fetches are running.
    async fn find_document(&self, id: &str, client_ip: Option<IpAddr>) -> Result<Client, Fault> {
        let documents = &self.parts.documents;
        let metadata = match documents.known(id).await {
            Some(metadata) => metadata,
            None => {
                if let Some(address) = client_ip {
                    let limits = &self.parts.address_limits;
                    limits.count_registration(address, Instant::now())?;
                }
                documents
                    .find(id)
                    .await
                    .map_err(|error| to_fault(id, error))?
            }
        };
        Ok(Client {
            id: id.to_owned(),
            metadata: ClientMetadata::clone(&metadata),
        })
    }

    /// Returns the client that sends a request. A client with a secret has to present it.
    ///
    /// Errors: `invalid_client`, without a reason.
    pub(super) async fn authenticate_client(
        &self,
        headers: &HeaderMap,
        form: &OAuthParameters<'_>,
    ) -> Result<Client, OAuthRefusal> {
        let presented = credentials(headers, form)?;
        let row = self.client_row(&presented.id).await?;
        let row = row.filter(is_valid).ok_or_else(unknown_client)?;
        let is_right = match (&presented.secret, &row.secret_hash) {
            (None, hash) => hash.is_empty(),
            (Some(secret), hash) => {
                let made = self.parts.pepper.hash_secret(secret.as_bytes());
                let stored = <[u8; 32]>::try_from(hash.as_slice());
                stored.is_ok_and(|stored| KeyHash::from_bytes(stored) == made)
            }
        };
        let client = to_client(&row).filter(|_| is_right);
        Ok(client.ok_or_else(unknown_client)?)
    }

    async fn client_row(&self, id: &str) -> Result<Option<OAuthClientRow>, Fault> {
        let id = id.to_owned();
        let turns = &self.parts.store;
        let found = turns.with_store(|store| async move { store.oauth_client(&id).await });
        found.await
    }
}

fn to_fault(id: &str, error: DocumentError) -> Fault {
    match error {
        DocumentError::Busy => {
            let message =
                "Very many applications are being asked who they are. Try again in a moment.";
            Fault::new(FaultKind::Unavailable, message)
        }
        DocumentError::Unusable { reason, detail } => {
            log::info!("the metadata document of a client, {id}: {detail}");
            let message =
                format!("The application’s description of itself cannot be used: {reason}.");
            Fault::new(FaultKind::Invalid, message)
        }
    }
}

fn is_valid(row: &OAuthClientRow) -> bool {
    row.revoked_at_ms.is_none()
}

/// Returns the client of a row, or `None` if this version would no longer register it.
fn to_client(row: &OAuthClientRow) -> Option<Client> {
    let metadata = ClientMetadata::read(row.metadata.as_bytes()).ok()?;
    let id = row.id.clone();
    Some(Client { id, metadata })
}

fn unknown_client() -> OAuthError {
    let message = "the client is not known here, or its secret is wrong";
    OAuthError::new(OAuthErrorCode::InvalidClient, message)
}

/// Returns the credentials of a request. Source: RFC 6749 2.3.1.
fn credentials(
    headers: &HeaderMap,
    form: &OAuthParameters<'_>,
) -> Result<ClientCredentials, OAuthError> {
    let secret = form.find("client_secret").map(str::to_owned);
    let Some(basic) = headers.get(header::AUTHORIZATION) else {
        let id = form.require("client_id")?.to_owned();
        return Ok(ClientCredentials { id, secret });
    };
    let (id, basic_secret) = read_basic(basic.as_bytes()).ok_or_else(unknown_client)?;
    if secret.is_some() {
        let message = "`Authorization` and `client_secret` both came; send one";
        return Err(OAuthError::invalid(message));
    }
    if form.find("client_id").is_some_and(|named| named != id) {
        let message = "`client_id` is not the client of `Authorization`";
        return Err(OAuthError::invalid(message));
    }
    let secret = Some(basic_secret).filter(|secret| !secret.is_empty());
    Ok(ClientCredentials { id, secret })
}

fn read_basic(value: &[u8]) -> Option<(String, String)> {
    let (scheme, encoded) = value.split_at_checked("Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = String::from_utf8(BASE64.decode(encoded.trim_ascii()).ok()?).ok()?;
    let (id, secret) = decoded.split_once(':')?;
    Some((
        form::decode(id).into_owned(),
        form::decode(secret).into_owned(),
    ))
}
