//! `POST /oauth/token`: a token for a client that knows its secret.
//! Source: docs/decision-agent.md 4 rule 6, docs/facts/decision-engine.md E.

use argon2::{Argon2, PasswordHash, PasswordVerifier};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use filters::decisions::Compat;
use filters::fault::{Fault, FaultKind};
use filters::form;
use filters::json::Object;
use serde_json::{Map, Value};

use super::Request;
use crate::config::Client;
use crate::decisions::DecisionService;
use crate::proxy::response::Response;

/// What the agent of old says of another media type.
const FORM_ONLY: &str = "Content-Type header value must be application/x-www-form-urlencoded";

/// What is asked.
#[derive(Default)]
struct TokenRequest {
    grant_type: String,
    client_id: String,
    client_secret: String,
}

/// A token, or why none. Cost: a slow hash on purpose, while the worker's other requests move on.
///
/// Errors: 415 for a body that is neither a form nor JSON; 503 where too many ask at once.
pub async fn answer(flags: &DecisionService, call: &Request<'_>) -> Result<Response, Fault> {
    let said = |status, error, description| Ok(refused(status, error, description));
    let asked = match read(call) {
        Err(fault) if fault.kind == FaultKind::MediaType && flags.compat == Compat::Agent => {
            return said(415, "invalid_request", FORM_ONLY);
        }
        read => read?,
    };
    if asked.grant_type.is_empty() {
        return said(
            400,
            "invalid_request",
            "grant_type missing from request body",
        );
    }
    if asked.grant_type != "client_credentials" {
        return said(400, "unsupported_grant_type", "");
    }
    for (name, value) in [
        ("client_id", &asked.client_id),
        ("client_secret", &asked.client_secret),
    ] {
        if value.is_empty() {
            return said(
                401,
                "invalid_client",
                &format!("{name} missing from request body"),
            );
        }
    }
    let turn = flags.hashing.turn().await?;
    let client = tokio::task::block_in_place(|| proven(&flags.clients, &asked, is_secret_of));
    drop(turn);
    let tokens = flags.credentials.tokens.as_ref();
    let Some((client, tokens)) = client.zip(tokens) else {
        return said(401, "invalid_client", "invalid client_id or client_secret");
    };
    let issued = tokens.issue(&client.sdk_keys, call.now_ms / 1000);
    let (token, ttl_s) =
        issued.ok_or_else(|| Fault::new(FaultKind::Internal, "the token could not be signed"))?;
    let mut out = Vec::new();
    let mut body = Object::open(&mut out);
    body.text("access_token", &token);
    body.text("token_type", "bearer");
    body.number("expires_in", ttl_s);
    body.close();
    Ok(Response::json(out))
}

fn refused(status: u16, error: &str, description: &str) -> Response {
    let mut out = Vec::new();
    let mut body = Object::open(&mut out);
    body.text("error", error);
    body.optional_text(
        "error_description",
        Some(description).filter(|text| !text.is_empty()),
    );
    body.close();
    Response {
        status,
        ..Response::json(out)
    }
}

/// A form, as RFC 6749 says, or JSON, as docs/decision-agent.md does.
fn read(call: &Request<'_>) -> Result<TokenRequest, Fault> {
    let essence = form::media_type(call.headers);
    let mut asked = TokenRequest::default();
    let mut take = |name: &str, value: &str| {
        let member = match name {
            "grant_type" => &mut asked.grant_type,
            "client_id" => &mut asked.client_id,
            "client_secret" => &mut asked.client_secret,
            _ => return,
        };
        *member = value.to_owned();
    };
    if essence.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
        let text = String::from_utf8_lossy(call.body);
        form::pairs(&text).for_each(|pair| take(&pair.decoded_name(), &pair.decoded_value()));
    } else if essence.eq_ignore_ascii_case(b"application/json") {
        let members: Map<String, Value> = serde_json::from_slice(call.body).map_err(|error| {
            Fault::new(
                FaultKind::Invalid,
                format!("the body is no JSON object: {error}"),
            )
        })?;
        for (name, value) in &members {
            take(name, value.as_str().unwrap_or_default());
        }
    } else {
        return Err(Fault::new(
            FaultKind::MediaType,
            "`Content-Type` is neither application/json nor application/x-www-form-urlencoded",
        ));
    }
    Ok(asked)
}

/// The client that proves who it is. An unknown id costs a hash too: how long the answer takes tells nobody which ids
/// there are.
fn proven<'c>(
    clients: &'c [Client],
    asked: &TokenRequest,
    is_secret_of: impl FnOnce(&Client, &str) -> bool,
) -> Option<&'c Client> {
    let known = clients.iter().find(|client| *client.id == *asked.client_id);
    let against = known.or(clients.first());
    let is_right = against.is_some_and(|client| is_secret_of(client, &asked.client_secret));
    known.filter(|_| is_right)
}

/// An argon2id hash of the secret's text, or the agent's bcrypt of its base64-decoded bytes.
fn is_secret_of(client: &Client, secret: &str) -> bool {
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
            let proven = proven(&clients, &asked, |client, secret| {
                hashes += 1;
                (&*client.secret_hash, secret) == ("any", "secret") && is_right
            });
            (proven.is_some(), hashes)
        };
        assert_eq!(ask("shop", true), (true, 1));
        assert_eq!(ask("shop", false), (false, 1));
        assert_eq!(ask("nobody", true), (false, 1));
    }
}
