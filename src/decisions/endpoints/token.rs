//! `POST /oauth/token`: issues a token to a client that knows its secret.
//! Source: docs/decision-agent.md 4 rule 6, docs/facts/decision-engine.md E.

use argon2::{Argon2, PasswordHash, PasswordVerifier};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use filters::decisions::token::{TokenRefusal, TokenRequest, token_json};
use filters::fault::{Fault, FaultKind};

use crate::config::Client;
use crate::decisions::DecisionService;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;

/// Returns a token or a refusal. Cost: a slow hash on purpose, during which the worker's other requests continue.
///
/// Errors: 415 for a body that is neither a form nor JSON; 503 if too many clients ask at once.
pub async fn handle(service: &DecisionService, request: &Request<'_>) -> Result<Response, Fault> {
    let asked = match TokenRequest::read(request.headers, request.body)? {
        Some(asked) => asked,
        None => return service.protocol.wrong_token_media_type().map(refused),
    };
    if let Err(refusal) = asked.check() {
        return Ok(refused(refusal));
    }
    let permit = service.hash_limiter.acquire(request.client_ip).await?;
    let client =
        tokio::task::block_in_place(|| find_client(&service.clients, &asked, is_client_secret));
    drop(permit);
    let tokens = service.credentials.tokens.as_ref();
    let Some((client, tokens)) = client.zip(tokens) else {
        return Ok(refused(TokenRefusal::unknown_client()));
    };
    let issued = tokens.issue(&client.sdk_keys, request.now_ms / 1000);
    let (token, ttl_s) =
        issued.ok_or_else(|| Fault::new(FaultKind::Internal, "the token could not be signed"))?;
    Ok(Response::json(token_json(&token, ttl_s)))
}

fn refused(refusal: TokenRefusal) -> Response {
    Response {
        status: refusal.status,
        ..Response::json(refusal.to_json())
    }
}

/// Returns the client with this id if the secret is right. An unknown id costs a hash too, so that the response time
/// does not reveal which ids exist.
fn find_client<'c>(
    clients: &'c [Client],
    asked: &TokenRequest,
    has_secret: impl FnOnce(&Client, &str) -> bool,
) -> Option<&'c Client> {
    let known = clients.iter().find(|client| *client.id == *asked.client_id);
    let against = known.or(clients.first());
    let is_right = against.is_some_and(|client| has_secret(client, &asked.client_secret));
    known.filter(|_| is_right)
}

/// Checks the argon2id hash of the secret's text, or the agent's bcrypt hash of its base64-decoded bytes.
fn is_client_secret(client: &Client, secret: &str) -> bool {
    if let Ok(hash) = PasswordHash::new(&client.secret_hash) {
        let verified = Argon2::default().verify_password(secret.as_bytes(), &hash);
        return verified.is_ok();
    }
    let decoded = |text: &str| BASE64.decode(text).ok();
    let hash = decoded(&client.secret_hash).and_then(|hash| String::from_utf8(hash).ok());
    let matches = decoded(secret)
        .zip(hash)
        .and_then(|(secret, hash)| bcrypt::verify(secret, &hash).ok());
    matches.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_id_costs_a_hash_and_is_nobody_whatever_that_says() {
        let clients = [Client {
            id: "shop".into(),
            secret_hash: "any".into(),
            sdk_keys: Vec::new(),
        }];
        let ask = |id: &str, is_right: bool| {
            let asked = TokenRequest {
                client_id: id.to_owned(),
                client_secret: "secret".to_owned(),
                ..TokenRequest::default()
            };
            let mut hashes = 0;
            let found = find_client(&clients, &asked, |client, secret| {
                hashes += 1;
                (&*client.secret_hash, secret) == ("any", "secret") && is_right
            });
            (found.is_some(), hashes)
        };
        assert_eq!(ask("shop", true), (true, 1));
        assert_eq!(ask("shop", false), (false, 1));
        assert_eq!(ask("nobody", true), (false, 1));
    }
}
