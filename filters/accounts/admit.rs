//! Finds the caller that a request's headers name.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use super::access_token::AccessToken;
use super::api_key::{ApiKey, KeyHash, Pepper, holds_api_key};
use super::caller::{AccountsSnapshot, Caller, KeyRow, KeyState, OrganizationStatus};
use super::passthrough::{has_key_apart, kind_of};
use crate::fault::{Fault, FaultKind};
use crate::fault_code::FaultCode;
use crate::form;

/// The scheme of Basic credentials, with the space after it.
const BASIC: &[u8] = b"basic ";
pub(super) const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The header in which clients of the Gemini API send their key.
pub(super) const X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
/// The parameter in which they may send it, too.
const KEY_PARAMETER: &str = "key";

/// The reason for which a request is not authenticated. It never contains a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AuthError {
    /// No key, or an empty one.
    Missing,
    /// `Authorization` names a scheme other than `Bearer`.
    OtherScheme,
    /// The key does not have the format of a key, or its checksum does not match.
    Malformed,
    /// The credential is one of a vendor, and came without an API key beside it.
    OfVendor,
    /// The key is well formed, but this server never issued it.
    Unknown,
    Revoked,
    /// The key is out of use until it is enabled again.
    Disabled,
    Expired,
    /// This server issued the key, but the key has a value that this version does not know.
    Unreadable,
    /// The access token is not of this server, or not for the requested resource.
    TokenUnknown,
    /// The access token has expired.
    TokenExpired,
    /// The grant or the client of the access token was revoked.
    TokenRevoked,
    /// A header that may have the key came more than once.
    Repeated,
    /// Two headers name different keys.
    Conflicting,
    /// The key is valid, but its organization is held for review.
    OrganizationHeld,
    OrganizationDisabled,
    ProjectArchived,
}

impl AuthError {
    /// Returns whether a key or a token came and is invalid. Such a request may be guessing keys; a request without
    /// any cannot.
    pub fn is_refused_key(self) -> bool {
        matches!(
            self,
            Self::Malformed
                | Self::OfVendor
                | Self::Unknown
                | Self::Revoked
                | Self::Disabled
                | Self::Expired
                | Self::TokenUnknown
                | Self::TokenExpired
                | Self::TokenRevoked
        )
    }

    /// Returns the message for the caller.
    pub fn message(self) -> &'static str {
        match self {
            Self::Missing => {
                "an API key is required: send `Authorization: Bearer <key>` or `x-api-key: <key>`"
            }
            Self::OtherScheme => {
                "`Authorization` has another scheme than `Bearer`: send `Authorization: Bearer <key>`"
            }
            Self::Malformed => {
                "the API key is mistyped: a key is `wg_` and 43 letters and digits, and its checksum must match"
            }
            Self::OfVendor => {
                "a provider's own credential came without an API key of this gateway: send the API key in the gateway's \
                 own header (`x-weirgate-key`, unless its operator names another), or in place of the credential"
            }
            Self::Unknown => "the API key is not known here",
            Self::Revoked => "the API key was revoked",
            Self::Disabled => "the API key is disabled",
            Self::Expired => "the API key has expired",
            Self::Unreadable => {
                "this server cannot read the settings of the API key, which a newer version may have written: ask its \
                 operator"
            }
            Self::TokenUnknown => "the access token is not one of this server for this resource",
            Self::TokenExpired => "the access token has expired",
            Self::TokenRevoked => "the access token was revoked",
            Self::Repeated => {
                "`Authorization`, `x-api-key` or the gateway's own header came more than once: send one key, once"
            }
            Self::Conflicting => {
                "two of `Authorization`, `x-api-key` and the gateway's own header name different keys: send one, or the \
                 same in both"
            }
            Self::OrganizationHeld => {
                "the organization of this API key is held for review: ask its operator"
            }
            Self::OrganizationDisabled => "the organization of this API key is disabled",
            Self::ProjectArchived => "the project of this API key is archived",
        }
    }
}

/// Source: docs/decisions.md 6; docs/hostile-input.md 33, 37.
impl From<AuthError> for Fault {
    fn from(error: AuthError) -> Self {
        let message = error.message();
        match error {
            AuthError::Repeated => Self::new(FaultKind::Invalid, message),
            AuthError::Conflicting => {
                Self::new(FaultKind::Invalid, message).with_param("x-api-key")
            }
            AuthError::Unreadable => {
                Self::new(FaultKind::Forbidden, message).with_code(FaultCode::KeyUnreadable)
            }
            AuthError::OrganizationHeld => {
                Self::new(FaultKind::Forbidden, message).with_code(FaultCode::OrganizationHeld)
            }
            AuthError::OrganizationDisabled => {
                Self::new(FaultKind::Gone, message).with_code(FaultCode::OrganizationDisabled)
            }
            AuthError::ProjectArchived => {
                Self::new(FaultKind::Gone, message).with_code(FaultCode::ProjectArchived)
            }
            AuthError::TokenUnknown | AuthError::TokenExpired | AuthError::TokenRevoked => {
                Self::new(FaultKind::Unauthenticated, message).with_code(FaultCode::InvalidToken)
            }
            AuthError::Missing
            | AuthError::OtherScheme
            | AuthError::Malformed
            | AuthError::OfVendor
            | AuthError::Unknown
            | AuthError::Revoked
            | AuthError::Disabled
            | AuthError::Expired => Self::new(FaultKind::Unauthenticated, message),
        }
    }
}

/// Returns the caller that the headers name. `key_header` is the header that only holds API keys.
///
/// `now_ms` is unix time in milliseconds. Errors: [`AuthError`]; a repeated header and two different keys are refused
/// before a key is checked. Cost: a checksum, one HMAC-SHA256, one map look-up, no allocation.
pub fn admit(
    headers: &HeaderMap,
    key_header: &HeaderName,
    accounts: &AccountsSnapshot,
    pepper: &Pepper,
    now_ms: i64,
) -> Result<Arc<Caller>, AuthError> {
    admit_key(credential(headers, key_header)?, accounts, pepper, now_ms)
}

/// Returns the caller of an API key.
///
/// `now_ms` is unix time in milliseconds. Errors: [`AuthError`].
pub fn admit_key(
    text: &[u8],
    accounts: &AccountsSnapshot,
    pepper: &Pepper,
    now_ms: i64,
) -> Result<Arc<Caller>, AuthError> {
    let key = ApiKey::parse(text).map_err(|_| match kind_of(text) {
        Ok(_) => AuthError::OfVendor,
        Err(_) => AuthError::Malformed,
    })?;
    admit_hash(&pepper.hash(key), accounts, now_ms)
}

/// Returns the caller of the API key with this hash.
///
/// `now_ms` is unix time in milliseconds. Errors: [`AuthError`].
pub fn admit_hash(
    hash: &KeyHash,
    accounts: &AccountsSnapshot,
    now_ms: i64,
) -> Result<Arc<Caller>, AuthError> {
    let row = accounts.find(hash).ok_or(AuthError::Unknown)?;
    check_row(row, now_ms)?;
    Ok(Arc::clone(&row.caller))
}

/// Returns the caller of the API key that a genuine access token stands for, if the token is for `audience`.
///
/// `now_ms` is unix time in milliseconds. Errors: [`AuthError`]. Errors of the token come before those of its key.
pub fn admit_token(
    token: &AccessToken,
    audience: Option<&str>,
    accounts: &AccountsSnapshot,
    now_ms: i64,
) -> Result<Arc<Caller>, AuthError> {
    if audience != Some(&*token.audience) {
        return Err(AuthError::TokenUnknown);
    }
    if now_ms >= token.expires_ms {
        return Err(AuthError::TokenExpired);
    }
    if accounts.is_revoked(&token.grant_id) || accounts.is_revoked(&token.client_id) {
        return Err(AuthError::TokenRevoked);
    }
    admit_hash(&token.key, accounts, now_ms)
}

/// Returns whether a request carries an API key, valid or not: in its target, in a header, or as a part of Basic
/// credentials.
///
/// Cost: one search over the head, no allocation unless there are Basic credentials.
pub fn carries_api_key(head: &Parts) -> bool {
    let target = head.uri.path_and_query().map_or("", |path| path.as_str());
    holds_api_key(target.as_bytes())
        || head.headers.values().any(|value| {
            let value = value.as_bytes();
            holds_api_key(value) || decode_basic(value).is_some_and(|text| holds_api_key(&text))
        })
}

fn decode_basic(value: &[u8]) -> Option<Vec<u8>> {
    let (scheme, encoded) = value.split_at_checked(BASIC.len())?;
    if !scheme.eq_ignore_ascii_case(BASIC) {
        return None;
    }
    STANDARD.decode(encoded.trim_ascii()).ok()
}

/// Checks that an issued key is still valid. The state of the key itself comes first, so that the holder of a dead
/// key learns nothing about its organization.
fn check_row(row: &KeyRow, now_ms: i64) -> Result<(), AuthError> {
    match row.state {
        KeyState::Active => {}
        KeyState::Disabled => return Err(AuthError::Disabled),
        KeyState::Revoked => return Err(AuthError::Revoked),
    }
    if row.caller.expires_at_ms.is_some_and(|end| now_ms >= end) {
        return Err(AuthError::Expired);
    }
    if row.is_unreadable {
        return Err(AuthError::Unreadable);
    }
    match row.organization_status {
        OrganizationStatus::Disabled => Err(AuthError::OrganizationDisabled),
        OrganizationStatus::Held => Err(AuthError::OrganizationHeld),
        OrganizationStatus::Active if row.is_project_archived => Err(AuthError::ProjectArchived),
        OrganizationStatus::Active => Ok(()),
    }
}

/// Returns the API key or the token that the headers present. In `key_header` it leaves the others to credentials of vendors.
///
/// Errors: [`AuthError`], if there is none or more than one.
pub fn credential<'h>(
    headers: &'h HeaderMap,
    key_header: &HeaderName,
) -> Result<&'h [u8], AuthError> {
    if has_key_apart(headers, key_header) {
        return credential_apart(headers, key_header);
    }
    let bearer = single_value(headers, &AUTHORIZATION)?.map(parse_bearer);
    let mut presented = bearer.transpose();
    for name in [&X_API_KEY, &X_GOOG_API_KEY] {
        let Some(value) = single_value(headers, name)? else {
            continue;
        };
        let plain = value.as_bytes().trim_ascii();
        // Clients send it empty beside a bearer.
        if plain.is_empty() && *name == X_GOOG_API_KEY {
            continue;
        }
        presented = match presented {
            Ok(None) => Ok(Some(plain)),
            Ok(Some(other)) if other == plain => Ok(Some(plain)),
            _ => return Err(AuthError::Conflicting),
        };
    }
    match presented? {
        Some(key) if !key.is_empty() => Ok(key),
        _ => Err(AuthError::Missing),
    }
}

/// Returns the API key or the token in the header that only holds these.
///
/// Errors: [`AuthError`], if there are several, or another one in another header.
fn credential_apart<'h>(
    headers: &'h HeaderMap,
    key_header: &HeaderName,
) -> Result<&'h [u8], AuthError> {
    let value = single_value(headers, key_header)?.ok_or(AuthError::Missing)?;
    let key = value.as_bytes().trim_ascii();
    for name in [&AUTHORIZATION, &X_API_KEY, &X_GOOG_API_KEY] {
        for value in headers.get_all(name) {
            let plain = value.as_bytes().trim_ascii();
            let other = match *name == AUTHORIZATION {
                true => parse_bearer(value).unwrap_or(plain),
                false => plain,
            };
            if other != key && holds_api_key(other) {
                return Err(AuthError::Conflicting);
            }
        }
    }
    Ok(key)
}

/// Returns the API key that the headers or the query present.
///
/// Errors: [`AuthError`], if there is none or more than one.
pub fn credential_with_query<'h>(
    headers: &'h HeaderMap,
    key_header: &HeaderName,
    query: &'h str,
) -> Result<Cow<'h, [u8]>, AuthError> {
    let mut values = form::values(query, KEY_PARAMETER);
    let in_query = values.next().filter(|key| !key.is_empty());
    if values.next().is_some() {
        return Err(AuthError::Repeated);
    }
    let Some(key) = in_query else {
        return credential(headers, key_header).map(Cow::Borrowed);
    };
    match credential(headers, key_header) {
        Err(AuthError::Missing) => Ok(match key {
            Cow::Borrowed(key) => Cow::Borrowed(key.as_bytes()),
            Cow::Owned(key) => Cow::Owned(key.into_bytes()),
        }),
        Ok(other) if *other == *key.as_bytes() => Ok(Cow::Borrowed(other)),
        Ok(_) => Err(AuthError::Conflicting),
        Err(error) => Err(error),
    }
}

fn single_value<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h HeaderValue>, AuthError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        _ => Err(AuthError::Repeated),
    }
}

/// Returns the text after the scheme. Several spaces count as one, because nothing can hide between them.
pub(super) fn parse_bearer(value: &HeaderValue) -> Result<&[u8], AuthError> {
    const SCHEME: &[u8] = b"bearer";
    let value = value.as_bytes().trim_ascii();
    if value.is_empty() {
        return Ok(value);
    }
    let (scheme, rest) = value
        .split_at_checked(SCHEME.len())
        .ok_or(AuthError::OtherScheme)?;
    if !scheme.eq_ignore_ascii_case(SCHEME) || rest.first().is_some_and(|byte| *byte != b' ') {
        return Err(AuthError::OtherScheme);
    }
    Ok(rest.trim_ascii_start())
}

#[cfg(test)]
#[path = "admit_tests.rs"]
mod tests;
