//! `POST /mcp/oauth/register`: registers a client. Source: RFC 7591 3.

use filters::fault::Fault;
use filters::mcp::oauth::client::{ClientAuth, ClientMetadata};
use serde_json::Value;
use tokio::time::Instant;

use super::response::{self, OAuthRefusal};
use super::{OAuth, random_secret, unix_ms};
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Registers a client.
///
/// Errors: 404 if OAuth is off, 429 for an address that registers very many clients, 503 while the store does not
/// respond.
pub(super) async fn answer(oauth: &OAuth, request: Request<'_>) -> Result<Response, Fault> {
    let mut response = response::answer(register(oauth, request).await)?;
    if response.status == 200 {
        response.status = 201;
    }
    Ok(response)
}

async fn register(oauth: &OAuth, request: Request<'_>) -> Result<Value, OAuthRefusal> {
    oauth.here(&request)?;
    let metadata = ClientMetadata::read(request.body)?;
    let parts = &oauth.parts;
    if let Some(address) = request.client_ip {
        let now = Instant::now();
        parts.address_limits.count_registration(address, now)?;
    }
    let secret = match metadata.auth {
        ClientAuth::None => None,
        ClientAuth::SecretBasic | ClientAuth::SecretPost => Some(random_secret("wgs_")?),
    };
    let hash = secret.as_ref().map_or(Vec::new(), |secret| {
        let hash = parts.pepper.hash_secret(secret.as_bytes());
        hash.as_bytes().to_vec()
    });
    let now_ms = unix_ms(request.now_ms);
    let mut members = metadata.to_members();
    let stored = Value::Object(members.clone()).to_string();
    let registered = parts.store.with_store(|store| async move {
        store.register_oauth_client(&stored, &hash, now_ms).await
    });
    members.insert("client_id".to_owned(), registered.await?.into());
    members.insert(
        "client_id_issued_at".to_owned(),
        now_ms.div_euclid(1000).into(),
    );
    if let Some(secret) = secret {
        members.insert("client_secret".to_owned(), secret.into());
        // The secret never expires. Source: RFC 7591 3.2.1.
        members.insert("client_secret_expires_at".to_owned(), 0.into());
    }
    Ok(members.into())
}
