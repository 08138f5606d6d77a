//! The keys of service accounts, and the assertions that they sign.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::{Deserialize, Serialize};
use url::Url;

use super::token_url;
use crate::models::cloud_credentials::private_key;
use crate::models::cloud_credentials::source_error::SourceError;
use crate::models::cloud_credentials::source_request::SourceRequest;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// How long an assertion is valid: the longest that Google takes.
const ASSERTION_S: u64 = 3600;

/// A service account with its key.
pub struct ServiceAccount {
    email: String,
    key_id: Option<String>,
    key: EncodingKey,
    token_url: Url,
}

impl std::fmt::Debug for ServiceAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServiceAccount(…)")
    }
}

/// The members of its JSON.
#[derive(Deserialize)]
pub(super) struct WrittenServiceAccount {
    client_email: String,
    private_key: String,
    private_key_id: Option<String>,
    token_uri: String,
}

#[derive(Serialize)]
struct AssertionClaims<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
}

impl ServiceAccount {
    pub(super) fn check(
        setting: &'static str,
        written: WrittenServiceAccount,
    ) -> Result<Self, SourceError> {
        let key = private_key::read_rsa(&written.private_key);
        let key = key.ok_or_else(|| {
            let came = "its private_key is no RSA key in PEM";
            SourceError::new(setting, came, "fetch the file anew from Google")
        })?;
        Ok(Self {
            email: written.client_email,
            key_id: written.private_key_id,
            key: EncodingKey::from_rsa_der(&key),
            token_url: token_url(setting, &written.token_uri)?,
        })
    }

    pub(super) fn token_url(&self) -> &Url {
        &self.token_url
    }

    /// Returns the request for a token of a scope.
    ///
    /// Errors: the key does not sign.
    pub fn request(
        &self,
        setting: &'static str,
        scope: &str,
        now_s: u64,
    ) -> Result<SourceRequest, SourceError> {
        let header = Header {
            kid: self.key_id.clone(),
            ..Header::new(Algorithm::RS256)
        };
        let claims = AssertionClaims {
            iss: &self.email,
            scope,
            aud: self.token_url.as_str(),
            iat: now_s,
            exp: now_s.saturating_add(ASSERTION_S),
        };
        let assertion = encode(&header, &claims, &self.key).map_err(|_| {
            let came = "its private_key does not sign";
            SourceError::new(setting, came, "fetch the file anew from Google")
        })?;
        let form = [("grant_type", GRANT), ("assertion", &*assertion)];
        let url = self.token_url.clone();
        Ok(SourceRequest::with_form(setting, url, &form))
    }
}
