//! `POST /mcp/oauth/token`: issues tokens for a code or a refresh token. Source: OAuth 2.1 draft 3.2, 4.1.3, 4.3.

use filters::accounts::{AccessToken, KeyHash, admit_hash};
use filters::fault::{Fault, FaultKind};
use filters::form;
use filters::mcp::oauth::authorization::{AuthorizationRequest, check_resource};
use filters::mcp::oauth::client::Client;
use filters::mcp::oauth::error::{OAuthError, OAuthErrorCode};
use filters::mcp::oauth::form::OAuthParameters;
use filters::mcp::oauth::pkce;
use filters::mcp::oauth::refresh::{RefreshVerdict, decide};
use filters::mcp::oauth::scopes::Scopes;
use serde_json::{Value, json};

use super::response::{self, OAuthRefusal};
use super::{Here, OAuth, no_entropy, random_secret, unix_ms};
use crate::accounts::AccountsHandle;
use crate::proxy::handler::Request;
use crate::proxy::response::Response;
use crate::store::{OAuthGrant, Redeemed, StoredCode};

/// The number of a grant's first refresh token.
const FIRST: i64 = 1;
/// The maximum number of attempts at a refresh while other processes rotate the same grant.
const MAX_TRIES: usize = 3;

/// Returns tokens.
///
/// Errors: 404 if OAuth is off, 503 while the store does not respond.
pub(super) async fn answer(oauth: &OAuth, request: Request<'_>) -> Result<Response, Fault> {
    response::answer(exchange(oauth, request).await)
}

/// Reads the form of a request.
///
/// Errors: the body is not a form, or a parameter is repeated.
pub(super) fn read_form<'r>(request: &Request<'r>) -> Result<OAuthParameters<'r>, OAuthError> {
    let media_type = form::media_type(request.headers);
    if !media_type.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
        let message = "`Content-Type` is not `application/x-www-form-urlencoded`";
        return Err(OAuthError::invalid(message));
    }
    let text = std::str::from_utf8(request.body);
    let text = text.map_err(|_| OAuthError::invalid("the body is not UTF-8"))?;
    let form = OAuthParameters::read(text);
    form.check_single()?;
    Ok(form)
}

async fn exchange(oauth: &OAuth, request: Request<'_>) -> Result<Value, OAuthRefusal> {
    let here = oauth.here(&request)?;
    let form = read_form(&request)?;
    let grant_type = form.require("grant_type")?;
    let is_code = match grant_type {
        "authorization_code" => true,
        "refresh_token" => false,
        _ => {
            let message = "`grant_type` is neither `authorization_code` nor `refresh_token`";
            return Err(OAuthError::new(OAuthErrorCode::UnsupportedGrantType, message).into());
        }
    };
    let client = oauth.authenticate_client(request.headers, &form).await?;
    let now_ms = unix_ms(request.now_ms);
    if is_code {
        redeem(oauth, client, (&form, &here), now_ms).await
    } else {
        refresh(oauth, &client, &form, now_ms).await
    }
}

fn invalid_grant(message: &'static str) -> OAuthError {
    OAuthError::new(OAuthErrorCode::InvalidGrant, message)
}

/// The facts that the holder of a code has to present, and those of the new grant.
struct CodeClaim {
    client: Client,
    redirect_uri: String,
    verifier: String,
    resource: String,
    grant_id: String,
    expires_at_ms: i64,
    accounts: AccountsHandle,
    now_ms: i64,
}

impl CodeClaim {
    /// Returns the grant for a code.
    ///
    /// Errors: the code is not for this claim, or is no longer valid.
    fn check(&self, code: &StoredCode) -> Result<OAuthGrant, OAuthError> {
        let request = serde_json::from_str::<AuthorizationRequest>(&code.request);
        let request = request.map_err(|_| invalid_grant("the code is damaged"))?;
        let problem = if code.client_id != self.client.id {
            "the code was given to another client"
        } else if self.now_ms >= code.expires_at_ms {
            "the code has expired"
        } else if request.redirect_uri != self.redirect_uri {
            "`redirect_uri` is not the one of the authorization request"
        } else if !pkce::verify(&request.challenge, &self.verifier) {
            "`code_verifier` is not the one of `code_challenge`"
        } else if request.resource != self.resource {
            "the code is for another resource"
        } else if !is_key_valid(&self.accounts, &code.key_hash, self.now_ms) {
            "the API key that allowed it is not valid any more"
        } else {
            return Ok(OAuthGrant {
                id: self.grant_id.clone(),
                client_id: code.client_id.clone(),
                key_id: code.key_id.clone(),
                key_hash: code.key_hash.clone(),
                scopes: Scopes::from_bits(request.scopes).to_string(),
                resource: request.resource,
                expires_at_ms: self.expires_at_ms,
                generation: FIRST,
                rotated_at_ms: self.now_ms,
            });
        };
        Err(invalid_grant(problem))
    }
}

fn is_key_valid(accounts: &AccountsHandle, hash: &[u8], now_ms: i64) -> bool {
    let hash = <[u8; 32]>::try_from(hash).map(KeyHash::from_bytes);
    hash.is_ok_and(|hash| admit_hash(&hash, &accounts.current(), now_ms).is_ok())
}

/// Issues tokens for a code.
async fn redeem(
    oauth: &OAuth,
    client: Client,
    (form, here): (&OAuthParameters<'_>, &Here),
    now_ms: i64,
) -> Result<Value, OAuthRefusal> {
    let code = form.require("code")?;
    let verifier = form.require("code_verifier")?;
    if !pkce::is_verifier(verifier) {
        let message = "`code_verifier` has not 43 to 128 unreserved characters";
        return Err(OAuthError::invalid(message).into());
    }
    check_resource(form, &here.resource)?;
    let has_refresh_tokens = client.metadata.has_refresh_tokens;
    let lifetime_ms = match has_refresh_tokens {
        true => oauth.refresh_token_ms,
        false => oauth.access_token_ms,
    };
    let claim = CodeClaim {
        client,
        redirect_uri: form.require("redirect_uri")?.to_owned(),
        verifier: verifier.to_owned(),
        resource: here.resource.clone(),
        grant_id: random_secret("")?,
        expires_at_ms: now_ms.saturating_add(lifetime_ms),
        accounts: oauth.parts.accounts.clone(),
        now_ms,
    };
    let hash = oauth.parts.pepper.hash_secret(code.as_bytes());
    let turns = &oauth.parts.store;
    let redeemed = turns.with_store(|store| async move {
        let judge = |code: &StoredCode| claim.check(code);
        store.redeem_code(hash.as_bytes(), now_ms, judge).await
    });
    let grant = match redeemed.await? {
        Redeemed::Granted(grant) => grant,
        Redeemed::Refused(error) => return Err(error.into()),
        Redeemed::Replayed => return Err(invalid_grant("the code was used before").into()),
        Redeemed::Unknown => return Err(invalid_grant("there is no such code").into()),
    };
    let scopes = Scopes::parse(&grant.scopes)?;
    let number = has_refresh_tokens.then_some(FIRST);
    Ok(oauth.issue(&grant, scopes, number, now_ms)?)
}

/// Issues tokens for a refresh token, which the new one replaces.
async fn refresh(
    oauth: &OAuth,
    client: &Client,
    form: &OAuthParameters<'_>,
    now_ms: i64,
) -> Result<Value, OAuthRefusal> {
    let text = form.require("refresh_token")?;
    let unknown = || invalid_grant("the refresh token is not good any more");
    let (id, number) = oauth.refresh_tokens.read(text).ok_or_else(unknown)?;
    for _ in 0..MAX_TRIES {
        let grant = oauth.grant(&id, now_ms).await?.ok_or_else(unknown)?;
        if grant.client_id != client.id {
            return Err(invalid_grant("the refresh token is another client's").into());
        }
        if !is_key_valid(&oauth.parts.accounts, &grant.key_hash, now_ms) {
            let message = "the API key that allowed it is not valid any more";
            return Err(invalid_grant(message).into());
        }
        check_resource(form, &grant.resource)?;
        let scopes = narrowed(form, Scopes::parse(&grant.scopes)?)?;
        let verdict = decide(number, grant.generation, grant.rotated_at_ms, now_ms);
        match verdict {
            RefreshVerdict::Rotate if !oauth.rotate(&grant, now_ms).await? => continue,
            RefreshVerdict::Rotate | RefreshVerdict::Repeat => {
                return Ok(oauth.issue(&grant, scopes, Some(number + 1), now_ms)?);
            }
            RefreshVerdict::Unknown => return Err(unknown().into()),
            RefreshVerdict::Reused => {
                oauth.end_grant(&id, now_ms).await?;
                let message =
                    "the refresh token was used before: all tokens of its grant have ended";
                return Err(invalid_grant(message).into());
            }
        }
    }
    Err(unknown().into())
}

/// Returns the scopes that a request names, or all scopes of the grant.
fn narrowed(form: &OAuthParameters<'_>, granted: Scopes) -> Result<Scopes, OAuthError> {
    let Some(names) = form.find("scope") else {
        return Ok(granted);
    };
    let named = Scopes::parse(names)?;
    if !granted.covers(named) {
        let message = format!("`scope` is more than was allowed: {granted}");
        return Err(OAuthError::new(OAuthErrorCode::InvalidScope, message));
    }
    Ok(named)
}

impl OAuth {
    /// Returns a grant that has not ended.
    ///
    /// Errors: 503 while the store does not respond.
    pub(super) async fn grant(&self, id: &str, now_ms: i64) -> Result<Option<OAuthGrant>, Fault> {
        let (turns, id) = (&self.parts.store, id.to_owned());
        let found = turns.with_store(|store| async move { store.oauth_grant(&id, now_ms).await });
        found.await
    }

    async fn rotate(&self, grant: &OAuthGrant, now_ms: i64) -> Result<bool, Fault> {
        let (turns, id, number) = (&self.parts.store, grant.id.clone(), grant.generation);
        let expires_at_ms = now_ms.saturating_add(self.refresh_token_ms);
        let rotated = turns.with_store(|store| async move {
            store
                .rotate_oauth_grant(&id, number, expires_at_ms, now_ms)
                .await
        });
        rotated.await
    }

    /// Ends a grant with all its tokens.
    ///
    /// Errors: 503 while the store does not respond.
    pub(super) async fn end_grant(&self, id: &str, now_ms: i64) -> Result<(), Fault> {
        let (turns, id) = (&self.parts.store, id.to_owned());
        let ended =
            turns.with_store(|store| async move { store.end_oauth_grant(&id, now_ms).await });
        ended.await
    }

    /// Returns the body of a response with tokens: an access token, and the refresh token with this number.
    fn issue(
        &self,
        grant: &OAuthGrant,
        scopes: Scopes,
        refresh_number: Option<i64>,
        now_ms: i64,
    ) -> Result<Value, Fault> {
        let damaged = || Fault::new(FaultKind::Internal, "the grant is damaged");
        let key = <[u8; 32]>::try_from(grant.key_hash.as_slice()).map_err(|_| damaged())?;
        let token = AccessToken {
            key: KeyHash::from_bytes(key),
            client_id: grant.client_id.as_str().into(),
            grant_id: grant.id.as_str().into(),
            scopes: scopes.bits(),
            audience: grant.resource.as_str().into(),
            expires_ms: now_ms.saturating_add(self.access_token_ms),
        };
        let written = self.parts.tokens.write(&token);
        let mut body = json!({
            "access_token": written.map_err(|_| no_entropy())?,
            "token_type": "Bearer",
            "expires_in": self.access_token_ms.div_euclid(1000),
            "scope": scopes.to_string(),
        });
        if let (Some(number), Some(members)) = (refresh_number, body.as_object_mut()) {
            let refresh_token = self.refresh_tokens.write(&grant.id, number);
            members.insert("refresh_token".to_owned(), refresh_token.into());
        }
        Ok(body)
    }
}
