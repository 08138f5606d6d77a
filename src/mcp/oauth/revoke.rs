//! `POST /mcp/oauth/revoke`: a client gives up its grant. Source: RFC 7009 2.

use filters::fault::Fault;
use filters::mcp::oauth::error::{OAuthError, OAuthErrorCode};
use serde_json::{Value, json};

use super::response::{self, OAuthRefusal};
use super::token::read_form;
use super::{OAuth, unix_ms};
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Ends the grant of a token, which may be any of the grant's tokens. An invalid token is ignored.
///
/// Errors: 404 if OAuth is off, 503 while the store does not respond.
pub(super) async fn answer(oauth: &OAuth, request: Request<'_>) -> Result<Response, Fault> {
    response::answer(revoke(oauth, request).await)
}

async fn revoke(oauth: &OAuth, request: Request<'_>) -> Result<Value, OAuthRefusal> {
    oauth.here(&request)?;
    let form = read_form(&request)?;
    let token = form.require("token")?;
    let client = oauth.authenticate_client(request.headers, &form).await?;
    let now_ms = unix_ms(request.now_ms);
    let (grant_id, client_id) = match oauth.refresh_tokens.read(token) {
        Some((id, _)) => match oauth.grant(&id, now_ms).await? {
            Some(grant) => (id, grant.client_id),
            None => return Ok(json!({})),
        },
        None => match oauth.parts.tokens.read(token.as_bytes()) {
            Some(token) => (token.grant_id.into(), token.client_id.into()),
            None => return Ok(json!({})),
        },
    };
    if client_id != client.id {
        let message = "the token is another client's";
        return Err(OAuthError::new(OAuthErrorCode::UnauthorizedClient, message).into());
    }
    oauth.end_grant(&grant_id, now_ms).await?;
    Ok(json!({}))
}
