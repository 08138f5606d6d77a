//! Authorization requests: a client asks a person for access.
//!
//! Until the client and its redirect URI are known, the browser must not be redirected, because the redirect URI
//! could belong to anyone. Until then errors are shown to the person; later ones go to the client.

use serde::{Deserialize, Serialize};

use super::client::Client;
use super::error::{OAuthError, OAuthErrorCode};
use super::form::OAuthParameters;
use super::pkce;
use super::redirect::{self, RedirectUri};
use super::scopes::Scopes;

/// The most bytes of `state`.
const MAX_STATE_BYTES: usize = 4_096;

/// The request of a client.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AuthorizationRequest {
    pub client_id: String,
    /// The URI to which the response goes.
    pub redirect_uri: String,
    /// A text that the response repeats.
    pub state: Option<String>,
    /// The challenge of PKCE.
    pub challenge: String,
    /// The scopes, as [`Scopes::bits`].
    pub scopes: u8,
    pub resource: String,
}

/// The reason for which a request is not shown to a person.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AuthorizationRefusal {
    /// The page shows this text to the person.
    Page(String),
    /// The browser goes to this URL, which tells the client.
    Redirect(String),
}

/// Returns the client that a request names.
///
/// Errors: the text for the person.
pub fn client_id<'q>(query: &'q OAuthParameters<'_>) -> Result<&'q str, String> {
    for name in ["client_id", "redirect_uri"] {
        if query.is_repeated(name) {
            return Err(format!("The link that led here has `{name}` twice."));
        }
        if query.find(name).is_none() {
            return Err(format!("The link that led here lacks `{name}`."));
        }
    }
    let id = query.find("client_id");
    id.ok_or_else(|| "The link that led here lacks `client_id`.".to_owned())
}

impl AuthorizationRequest {
    /// Reads the request of a client for `resource`. Errors for the client name `issuer`.
    pub fn read(
        query: &OAuthParameters<'_>,
        client: &Client,
        (issuer, resource): (&str, &str),
    ) -> Result<Self, AuthorizationRefusal> {
        let named = query.find("redirect_uri").unwrap_or_default();
        let registered = &client.metadata.redirect_uris;
        let redirect_uri = redirect::find(registered, named).ok_or_else(|| {
            let message =
                "The application wants the answer sent to an address that is not one of its own.";
            AuthorizationRefusal::Page(message.to_owned())
        })?;
        let state = query.find("state").filter(|_| !query.is_repeated("state"));
        let state = state.filter(|state| state.len() <= MAX_STATE_BYTES);
        let read = read_rest(query, resource);
        let (challenge, scopes) = read.map_err(|error| {
            AuthorizationRefusal::Redirect(error_url(&redirect_uri, state, issuer, &error))
        })?;
        Ok(Self {
            client_id: client.id.clone(),
            redirect_uri: named.to_owned(),
            state: state.map(str::to_owned),
            challenge,
            scopes: scopes.bits(),
            resource: resource.to_owned(),
        })
    }

    /// Returns the URL that carries a code to the client. `None` for an invalid redirect URI, which [`Self::read`]
    /// excludes.
    pub fn code_url(&self, issuer: &str, code: &str) -> Option<String> {
        let redirect_uri = RedirectUri::parse(&self.redirect_uri).ok()?;
        let state = self.state.as_deref();
        Some(url(&redirect_uri, state, issuer, &[("code", code)]))
    }

    /// Returns the URL that tells the client why it gets no code. `None` as in [`Self::code_url`].
    pub fn error_url(&self, issuer: &str, error: &OAuthError) -> Option<String> {
        let redirect_uri = RedirectUri::parse(&self.redirect_uri).ok()?;
        let state = self.state.as_deref();
        Some(error_url(&redirect_uri, state, issuer, error))
    }
}

/// Reads the challenge and the scopes.
fn read_rest(query: &OAuthParameters<'_>, resource: &str) -> Result<(String, Scopes), OAuthError> {
    query.check_single()?;
    let response_type = query.require("response_type")?;
    if response_type != "code" {
        let message = "`response_type` is not `code`, the only one here";
        return Err(OAuthError::new(
            OAuthErrorCode::UnsupportedResponseType,
            message,
        ));
    }
    if query
        .find("response_mode")
        .is_some_and(|mode| mode != "query")
    {
        let message = "`response_mode` is not `query`, the only one here";
        return Err(OAuthError::invalid(message));
    }
    let too_long = |state: &str| state.len() > MAX_STATE_BYTES;
    if query.find("state").is_some_and(too_long) {
        let message = format!("`state` has more than {MAX_STATE_BYTES} bytes");
        return Err(OAuthError::invalid(message));
    }
    let challenge = query.require("code_challenge")?;
    if query.find("code_challenge_method") != Some(pkce::METHOD) {
        let message = "`code_challenge_method` is not `S256`, the only one here";
        return Err(OAuthError::invalid(message));
    }
    if !pkce::is_challenge(challenge) {
        let message = "`code_challenge` is not a SHA-256 in base64url";
        return Err(OAuthError::invalid(message));
    }
    check_resource(query, resource)?;
    let scopes = match query.find("scope") {
        None => Scopes::all(),
        Some(names) => Scopes::parse(names)?,
    };
    Ok((challenge.to_owned(), scopes))
}

/// Checks that a request names this resource, or no resource. Source: RFC 8707 2.
///
/// Errors: the request names another resource.
pub fn check_resource(parameters: &OAuthParameters<'_>, resource: &str) -> Result<(), OAuthError> {
    let named = parameters.find("resource");
    let named = named.map(|named| named.strip_suffix('/').unwrap_or(named));
    match named {
        Some(named) if named != resource => {
            let message = format!("`resource` is not `{resource}`, the only one here");
            Err(OAuthError::new(OAuthErrorCode::InvalidTarget, message))
        }
        _ => Ok(()),
    }
}

fn error_url(
    redirect_uri: &RedirectUri<'_>,
    state: Option<&str>,
    issuer: &str,
    error: &OAuthError,
) -> String {
    let parameters = [
        ("error", error.code.as_str()),
        ("error_description", &*error.description),
    ];
    url(redirect_uri, state, issuer, &parameters)
}

/// Returns a redirect URI with the parameters of a response. Source: RFC 6749 4.1.2; RFC 9207 2.
fn url(
    redirect_uri: &RedirectUri<'_>,
    state: Option<&str>,
    issuer: &str,
    answer: &[(&str, &str)],
) -> String {
    let mut parameters = answer.to_vec();
    parameters.extend(state.map(|state| ("state", state)));
    parameters.push(("iss", issuer));
    redirect_uri.with(&parameters)
}
