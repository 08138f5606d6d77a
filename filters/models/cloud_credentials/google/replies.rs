//! What Google's sources answer.

use serde::Deserialize;

use crate::models::cloud_credentials::granted::{Granted, GrantedSecret, read_time};
use crate::models::cloud_credentials::secret_text::SecretText;

#[derive(Deserialize)]
struct TokenReply {
    access_token: String,
    expires_in: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImpersonationReply {
    access_token: String,
    expire_time: String,
}

/// Reads a token of an endpoint or of the metadata.
pub fn read_token(body: &[u8], now_s: u64) -> Option<Granted> {
    let reply: TokenReply = serde_json::from_slice(body).ok()?;
    // The metadata pads tokens with dots, which belong to them.
    let is_token = !reply.access_token.is_empty();
    is_token.then(|| Granted::token(reply.access_token, reply.expires_in, now_s))
}

/// Reads the token of a service account that is taken on.
pub fn read_impersonation(body: &[u8]) -> Option<Granted> {
    let reply: ImpersonationReply = serde_json::from_slice(body).ok()?;
    let is_token = !reply.access_token.is_empty();
    is_token.then_some(Granted {
        secret: GrantedSecret::Token(SecretText::new(reply.access_token)),
        expires_s: Some(read_time(&reply.expire_time)?),
    })
}
