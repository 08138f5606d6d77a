//! Clients and their metadata, which they register or publish in a document.
//!
//! Source: RFC 7591 2; draft-ietf-oauth-client-id-metadata-document 4.

use serde_json::{Map, Value, json};

use super::error::{OAuthError, OAuthErrorCode};
use super::redirect::RedirectUri;
use crate::fault::quoted;

/// The most redirect URIs of a client.
const MAX_REDIRECT_URIS: usize = 10;
/// The most characters of a client's name.
const MAX_NAME_CHARS: usize = 128;
/// The most bytes of the URL of a metadata document.
const MAX_DOCUMENT_URL_BYTES: usize = 1_024;

/// A client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Client {
    /// The id of the client, or the URL of its metadata document.
    pub id: String,
    pub metadata: ClientMetadata,
}

/// The way in which a client authenticates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientAuth {
    /// The client has no secret, so it does not authenticate.
    None,
    /// The secret is in `Authorization: Basic`.
    SecretBasic,
    /// The secret is in the form.
    SecretPost,
}

impl ClientAuth {
    /// All ways to authenticate.
    pub const ALL: [Self; 3] = [Self::None, Self::SecretBasic, Self::SecretPost];

    /// Returns the name in metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SecretBasic => "client_secret_basic",
            Self::SecretPost => "client_secret_post",
        }
    }
}

/// The metadata of a client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientMetadata {
    /// The client's name for people.
    pub name: Option<String>,
    /// One or more URIs to which responses may go, each a [`RedirectUri`].
    pub redirect_uris: Vec<String>,
    pub auth: ClientAuth,
    pub has_refresh_tokens: bool,
}

impl Client {
    /// Returns the host of the client's metadata document, or `None` if the client was registered.
    pub fn document_host(&self) -> Option<&str> {
        let rest = self.id.strip_prefix("https://")?;
        rest.split(['/', '?']).next()
    }

    /// Returns the client's name for people.
    pub fn name(&self) -> &str {
        let name = self.metadata.name.as_deref();
        name.or_else(|| self.document_host())
            .unwrap_or("An application without a name")
    }
}

impl ClientMetadata {
    /// Reads metadata that a client registers, or that were stored. Unknown members are dropped, as RFC 7591 2 says.
    ///
    /// Errors: `invalid_client_metadata` or `invalid_redirect_uri`.
    pub fn read(body: &[u8]) -> Result<Self, OAuthError> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| invalid(format!("the body is not JSON: {error}")))?;
        let members = value.as_object();
        Self::from_members(members.ok_or_else(|| invalid("the body is no JSON object"))?)
    }

    /// Reads the metadata document at a URL.
    ///
    /// Errors: as [`Self::read`]; also a document of another client, and one with a secret, because everyone can read
    /// the document.
    pub fn read_document(url: &str, body: &[u8]) -> Result<Self, OAuthError> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| invalid(format!("the document is not JSON: {error}")))?;
        let members = value.as_object();
        let members = members.ok_or_else(|| invalid("the document is no JSON object"))?;
        if members.get("client_id").and_then(Value::as_str) != Some(url) {
            return Err(invalid("`client_id` is not the URL of the document"));
        }
        let mut members = members.clone();
        let method = members.entry("token_endpoint_auth_method");
        if method.or_insert_with(|| "none".into()) != "none" {
            let message = "`token_endpoint_auth_method` of a document has to be `none`";
            return Err(invalid(message));
        }
        Self::from_members(&members)
    }

    fn from_members(members: &Map<String, Value>) -> Result<Self, OAuthError> {
        let responses = texts(members, "response_types")?;
        if responses.is_some_and(|types| !types.contains(&"code")) {
            return Err(invalid("`response_types` lacks `code`, the only one here"));
        }
        let grants = texts(members, "grant_types")?;
        let has_grant = |name| grants.as_ref().is_none_or(|grants| grants.contains(&name));
        if !has_grant("authorization_code") {
            return Err(invalid("`grant_types` lacks `authorization_code`"));
        }
        Ok(Self {
            name: name(members)?,
            redirect_uris: redirect_uris(members)?,
            auth: auth(members)?,
            has_refresh_tokens: has_grant("refresh_token"),
        })
    }

    /// Returns the metadata as registered, for [`Self::read`].
    pub fn to_members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        if let Some(name) = &self.name {
            members.insert("client_name".to_owned(), name.as_str().into());
        }
        let mut grants = vec!["authorization_code"];
        grants.extend(self.has_refresh_tokens.then_some("refresh_token"));
        for (member, value) in [
            ("redirect_uris", json!(self.redirect_uris)),
            ("grant_types", json!(grants)),
            ("response_types", json!(["code"])),
            ("token_endpoint_auth_method", self.auth.as_str().into()),
        ] {
            members.insert(member.to_owned(), value);
        }
        members
    }
}

/// Returns whether an id is the URL of a metadata document: `https`, with a path, without dot segments, user or fragment.
pub fn is_document_id(id: &str) -> bool {
    let Some(rest) = id.strip_prefix("https://") else {
        return false;
    };
    let path = rest.split_once('/').map(|(_, path)| path);
    let path = path.and_then(|path| path.split('?').next());
    let has_path = path.is_some_and(|path| {
        let mut segments = path.split('/');
        !path.is_empty() && segments.all(|segment| segment != "." && segment != "..")
    });
    has_path && id.len() <= MAX_DOCUMENT_URL_BYTES && RedirectUri::parse(id).is_ok()
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> OAuthError {
    OAuthError::new(OAuthErrorCode::InvalidClientMetadata, message)
}

fn name(members: &Map<String, Value>) -> Result<Option<String>, OAuthError> {
    let Some(name) = text(members, "client_name")? else {
        return Ok(None);
    };
    if name.chars().count() > MAX_NAME_CHARS {
        return Err(invalid("`client_name` has more than 128 characters"));
    }
    if name.chars().any(is_unprintable) {
        return Err(invalid("`client_name` has a control character"));
    }
    Ok(Some(name.trim().to_owned()).filter(|name| !name.is_empty()))
}

/// Returns whether a character is a control character, or one that changes the direction of the text after it.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn redirect_uris(members: &Map<String, Value>) -> Result<Vec<String>, OAuthError> {
    let refuse = |message: String| OAuthError::new(OAuthErrorCode::InvalidRedirectUri, message);
    let uris = texts(members, "redirect_uris")?.unwrap_or_default();
    if uris.is_empty() || uris.len() > MAX_REDIRECT_URIS {
        let count = uris.len();
        let message = format!("`redirect_uris` has {count} entries; accepted: 1 to 10");
        return Err(refuse(message));
    }
    for (number, uri) in uris.iter().enumerate() {
        RedirectUri::parse(uri).map_err(|problem| {
            refuse(format!(
                "`redirect_uris[{number}]` {problem}: {}",
                quoted(uri)
            ))
        })?;
    }
    Ok(uris.into_iter().map(str::to_owned).collect())
}

fn auth(members: &Map<String, Value>) -> Result<ClientAuth, OAuthError> {
    let Some(name) = text(members, "token_endpoint_auth_method")? else {
        // The default of RFC 7591 2.
        return Ok(ClientAuth::SecretBasic);
    };
    let known = ClientAuth::ALL.into_iter().find(|it| it.as_str() == name);
    known.ok_or_else(|| {
        let name = quoted(name);
        invalid(format!(
            "`token_endpoint_auth_method` is `{name}`; accepted: none, client_secret_basic, client_secret_post"
        ))
    })
}

fn text<'m>(members: &'m Map<String, Value>, name: &str) -> Result<Option<&'m str>, OAuthError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(invalid(format!("`{name}` is not a text"))),
    }
}

fn texts<'m>(
    members: &'m Map<String, Value>,
    name: &str,
) -> Result<Option<Vec<&'m str>>, OAuthError> {
    let wrong = || invalid(format!("`{name}` is not a list of texts"));
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => {
            let texts = items.iter().map(|item| item.as_str().ok_or_else(wrong));
            texts.collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}
