//! The JSON of Google's credentials: service accounts, external accounts, authorized users.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::external::{ExternalAccount, WrittenExternalAccount};
use super::service_account::{ServiceAccount, WrittenServiceAccount};
use super::token_url;
use crate::models::cloud_credentials::secret_text::SecretText;
use crate::models::cloud_credentials::source_error::SourceError;
use crate::models::cloud_credentials::source_request::SourceRequest;

const USUAL_TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const TYPES: &str = "give a service_account, an external_account or an authorized_user";

/// An account of a file.
#[derive(Debug)]
pub enum GoogleAccount {
    Service(ServiceAccount),
    External(Box<ExternalAccount>),
    User(AuthorizedUser),
}

/// A person who has signed in with gcloud.
#[derive(Debug)]
pub struct AuthorizedUser {
    client_id: String,
    client_secret: SecretText,
    refresh_token: SecretText,
    token_url: Url,
}

#[derive(Deserialize)]
struct WrittenUser {
    client_id: String,
    client_secret: String,
    refresh_token: String,
    token_uri: Option<String>,
}

impl GoogleAccount {
    /// Reads a file of the operator. `setting` names the file in errors.
    ///
    /// Errors: it is no JSON of a type that is supported, lacks a member, or names an address that is not Google's.
    pub fn read(setting: &'static str, text: &str) -> Result<Self, SourceError> {
        let written: Value = parse(setting, text)?;
        let kind = written
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "service_account" => {
                let written: WrittenServiceAccount = members(setting, kind, &written)?;
                ServiceAccount::check(setting, written).map(Self::Service)
            }
            "external_account" => {
                let written: WrittenExternalAccount = members(setting, kind, &written)?;
                let account = ExternalAccount::check(setting, written)?;
                Ok(Self::External(Box::new(account)))
            }
            "authorized_user" => {
                let written: WrittenUser = members(setting, kind, &written)?;
                let token_url = written.token_uri.as_deref().unwrap_or(USUAL_TOKEN_URL);
                Ok(Self::User(AuthorizedUser {
                    token_url: super::token_url(setting, token_url)?,
                    client_id: written.client_id,
                    client_secret: SecretText::new(written.client_secret),
                    refresh_token: SecretText::new(written.refresh_token),
                }))
            }
            _ => Err(SourceError::new(setting, unknown_type(kind), TYPES)),
        }
    }
}

fn unknown_type(kind: &str) -> String {
    let is_word = kind.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') && kind.len() <= 64;
    match kind {
        "" => "its JSON has no type".to_owned(),
        kind if is_word => format!("its type is {kind}, which is not supported"),
        _ => "its type is not supported".to_owned(),
    }
}

/// Reads the service account of an organization.
///
/// Errors: it is another type, lacks a member, or its `token_uri` is not Google's.
pub fn of_organization(text: &str) -> Result<ServiceAccount, SourceError> {
    const KEY: &str = "the provider key";
    let written: Value = parse(KEY, text)?;
    let kind = written
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if kind != "service_account" {
        let cure = "give the JSON of a service_account: nothing else is taken from an organization";
        return Err(SourceError::new(KEY, unknown_type(kind), cure));
    }
    for name in ["client_email", "private_key", "token_uri"] {
        let came = match written.get(name) {
            Some(Value::String(_)) => continue,
            Some(_) => format!("its {name} is no text"),
            None => format!("its {name} is missing"),
        };
        return Err(SourceError::new(
            KEY,
            came,
            "give the file as Google writes it",
        ));
    }
    let written: WrittenServiceAccount = members(KEY, kind, &written)?;
    let account = ServiceAccount::check(KEY, written)?;
    if token_url(KEY, USUAL_TOKEN_URL)? != *account.token_url() {
        let cure = "write https://oauth2.googleapis.com/token, as Google does";
        return Err(SourceError::new(
            KEY,
            "its token_uri is another than Google's",
            cure,
        ));
    }
    Ok(account)
}

fn parse(setting: &'static str, text: &str) -> Result<Value, SourceError> {
    let parsed = serde_json::from_str(text).ok().filter(Value::is_object);
    parsed.ok_or_else(|| {
        let cure = "give the JSON of credentials as Google writes it";
        SourceError::new(setting, "it is no JSON object", cure)
    })
}

/// Reads the members of a type. The error of the reader may quote a secret, so it names the type alone.
fn members<T: DeserializeOwned>(
    setting: &'static str,
    kind: &str,
    written: &Value,
) -> Result<T, SourceError> {
    T::deserialize(written).map_err(|_| {
        let came = format!("it lacks a member that a {kind} has, or has one of another type");
        SourceError::new(setting, came, "fetch the file anew from Google")
    })
}

impl AuthorizedUser {
    /// Returns the request for a token.
    pub fn request(&self, setting: &'static str) -> SourceRequest {
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", &self.client_id),
            ("client_secret", self.client_secret.expose()),
            ("refresh_token", self.refresh_token.expose()),
        ];
        SourceRequest::with_form(setting, self.token_url.clone(), &form)
    }
}
