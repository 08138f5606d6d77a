//! A caller's own credential of a vendor, which comes beside the API key of the gateway: what it is, and whose it is.
//!
//! Clients sign in with a vendor themselves and send what they got in the header that their SDK has for it. The API key of the
//! gateway then stands in a header of its own. The shape of the credential alone says whose it is: no other party gets it, and
//! what could be of several vendors goes to none.
//!
//! Source: docs/decisions.md 75.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::admit::{X_API_KEY, X_GOOG_API_KEY, parse_bearer};
use super::api_key::holds_api_key;
use super::caller::UnknownValue;
use crate::fault::{Fault, FaultKind};
use crate::fault_code::FaultCode;

/// The headers in which a credential may come, as messages name them.
const PLACES: [(HeaderName, &str); 3] = [
    (AUTHORIZATION, "Authorization"),
    (X_API_KEY, "x-api-key"),
    (X_GOOG_API_KEY, "x-goog-api-key"),
];
/// No credential of a vendor is shorter, or longer.
const CREDENTIAL_BYTES: std::ops::RangeInclusive<usize> = 20..=4096;
/// What every API key of OpenAI has in its middle, also those that begin with a bare `sk-` as keys of others do.
const OPENAI_MARK: &[u8] = b"T3BlbkFJ";
/// The beta without which Anthropic takes no token of a login.
const LOGIN_BETA: &str = "oauth-2025-04-20";

/// A vendor whose credentials callers may send.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    Anthropic,
    OpenAi,
}

impl Vendor {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    /// Returns the name in the CLI, the store and the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// Returns the name for messages.
    pub fn title(self) -> &'static str {
        match self {
            Self::Anthropic => "Anthropic",
            Self::OpenAi => "OpenAI",
        }
    }

    /// Returns the host of its API. Those of its regions end in it.
    fn host(self) -> &'static str {
        match self {
            Self::Anthropic => "api.anthropic.com",
            Self::OpenAi => "api.openai.com",
        }
    }

    /// Returns whose addresses these are, if all are of one vendor. A reseller, a cloud and a proxy are none, whatever API they
    /// speak.
    pub fn of_urls<'u>(urls: impl IntoIterator<Item = &'u str>) -> Option<Self> {
        let mut owners = urls.into_iter().map(Self::of_url);
        let first = owners.next()??;
        owners.all(|owner| owner == Some(first)).then_some(first)
    }

    /// Returns whose address a URL is: over TLS, at the usual port, at the vendor's host.
    fn of_url(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let authority = uri.authority()?;
        let is_plain = authority.as_str().contains('@');
        let is_usual =
            uri.scheme_str() == Some("https") && uri.port_u16().is_none_or(|it| it == 443);
        if is_plain || !is_usual {
            return None;
        }
        let host = authority.host().to_ascii_lowercase();
        Self::ALL.into_iter().find(|vendor| {
            let before = host.strip_suffix(vendor.host());
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
    }
}

impl std::str::FromStr for Vendor {
    type Err = UnknownValue;
    fn from_str(word: &str) -> Result<Self, UnknownValue> {
        let mut all = Self::ALL.into_iter();
        all.find(|vendor| vendor.as_str() == word)
            .ok_or(UnknownValue("anthropic, openai"))
    }
}

/// What a caller's own credential is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OwnCredentialKind {
    /// The token of a client that has signed in to a Claude plan.
    ClaudeLogin,
    AnthropicKey,
    OpenAiKey,
}

impl OwnCredentialKind {
    /// Returns the only vendor that gets it.
    pub fn vendor(self) -> Vendor {
        match self {
            Self::ClaudeLogin | Self::AnthropicKey => Vendor::Anthropic,
            Self::OpenAiKey => Vendor::OpenAi,
        }
    }

    /// Returns what it is, for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeLogin => "the token of a Claude login",
            Self::AnthropicKey => "an API key of Anthropic",
            Self::OpenAiKey => "an API key of OpenAI",
        }
    }

    /// Returns whether it goes as a bearer token, whatever header the vendor has for its API keys.
    pub fn is_token(self) -> bool {
        self == Self::ClaudeLogin
    }

    /// Adds the header without which the vendor refuses it, unless the client has sent that itself.
    pub fn complete(self, headers: &mut HeaderMap) {
        const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
        if !self.is_token() {
            return;
        }
        let listed = headers.get(&BETA).map(HeaderValue::as_bytes);
        let has = listed.is_some_and(|listed| {
            let mut betas = listed.split(|byte| *byte == b',');
            betas.any(|beta| beta.trim_ascii().starts_with(b"oauth-"))
        });
        if has {
            return;
        }
        let joined = match listed {
            Some(listed) => [listed, b",", LOGIN_BETA.as_bytes()].concat(),
            None => LOGIN_BETA.as_bytes().to_vec(),
        };
        if let Ok(joined) = HeaderValue::from_bytes(&joined) {
            headers.insert(BETA, joined);
        }
    }
}

/// A caller's own credential. It has no `Debug`, because it is a secret.
#[derive(Clone, Copy)]
pub struct OwnCredential<'h> {
    pub kind: OwnCredentialKind,
    /// The header in which it came, as messages name it.
    pub header: &'static str,
    /// The credential, without the scheme before it.
    pub text: &'h str,
}

/// The reason for which a caller's own credential is not used. It never contains the credential.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PassthroughError {
    /// The header came more than once.
    Repeated(&'static str),
    /// `Authorization` names a scheme other than `Bearer`.
    OtherScheme,
    /// Two headers have different ones.
    Different([&'static str; 2]),
    /// What came is none that could be passed on.
    Unusable {
        header: &'static str,
        what: &'static str,
    },
    /// The key does not allow it.
    NotAllowed(&'static str, OwnCredentialKind),
}

/// Source: docs/decisions.md 75.
impl From<PassthroughError> for Fault {
    fn from(error: PassthroughError) -> Self {
        const ACCEPTED: &str = "accepted beside the API key are the token of a Claude login (`sk-ant-oat…`), an API key of \
                                Anthropic (`sk-ant-api…`) or of OpenAI (`sk-proj-…`, `sk-svcacct-…`), or nothing";
        let invalid = |header: &str, came: String| {
            Self::invalid(header, format!("{came}; {ACCEPTED}"))
                .with_code(FaultCode::OwnCredentialUnusable)
        };
        match error {
            PassthroughError::Repeated(header) => {
                invalid(header, format!("`{header}` came more than once"))
            }
            PassthroughError::OtherScheme => invalid(
                "Authorization",
                "`Authorization` has another scheme than `Bearer`".to_owned(),
            ),
            PassthroughError::Different([one, other]) => invalid(
                other,
                format!("`{one}` and `{other}` hold different credentials: send one of them"),
            ),
            PassthroughError::Unusable { header, what } => {
                invalid(header, format!("`{header}` holds {what}"))
            }
            PassthroughError::NotAllowed(header, kind) => {
                let (what, vendor) = (kind.as_str(), kind.vendor().as_str());
                let message = format!(
                    "`{header}` holds {what}, and this API key may not pass one on: its operator allows it with \
                     `weirgate key update ID --allow-passthrough {vendor}`"
                );
                Self::new(FaultKind::Forbidden, message)
                    .with_param(header)
                    .with_code(FaultCode::PassthroughNotAllowed)
            }
        }
    }
}

/// Returns the caller's own credential, if the API key stands in `key_header` and another header has one beside it.
///
/// Errors: [`PassthroughError`], but for what a key allows. Cost: three look-ups of headers, no allocation.
pub fn own_credential<'h>(
    headers: &'h HeaderMap,
    key_header: &HeaderName,
) -> Result<Option<OwnCredential<'h>>, PassthroughError> {
    if !has_key_apart(headers, key_header) {
        return Ok(None);
    }
    let mut found: Option<(&'static str, &[u8])> = None;
    for (name, header) in &PLACES {
        match (foreign(headers, name, header)?, found) {
            (None, _) => {}
            (Some(text), None) => found = Some((header, text)),
            (Some(text), Some((_, other))) if text == other => {}
            (Some(_), Some((other, _))) => {
                return Err(PassthroughError::Different([other, header]));
            }
        }
    }
    let Some((header, bytes)) = found else {
        return Ok(None);
    };
    let unusable = |what| PassthroughError::Unusable { header, what };
    let kind = kind_of(bytes).map_err(unusable)?;
    let text = std::str::from_utf8(bytes).map_err(|_| unusable(UNKNOWN))?;
    Ok(Some(OwnCredential { kind, header, text }))
}

/// Returns whether the API key stands in a header of its own. An empty one counts as none: clients send it where the variable
/// that they take it from is not set.
pub(super) fn has_key_apart(headers: &HeaderMap, key_header: &HeaderName) -> bool {
    let mut values = headers.get_all(key_header).iter();
    values.any(|value| !value.as_bytes().trim_ascii().is_empty())
}

/// Returns the text of a header, without the scheme before it, unless it is empty or a credential of the gateway.
fn foreign<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
    header: &'static str,
) -> Result<Option<&'h [u8]>, PassthroughError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(PassthroughError::Repeated(header));
    }
    let text = match *name == AUTHORIZATION {
        true => parse_bearer(value).map_err(|_| PassthroughError::OtherScheme)?,
        false => value.as_bytes().trim_ascii(),
    };
    Ok((!text.is_empty() && !holds_api_key(text)).then_some(text))
}

const UNKNOWN: &str = "a credential of an unknown kind";

/// The beginnings of credentials, the longer ones first, and what each is: one that is passed on, or what messages call it.
const BEGINNINGS: [(&[u8], Result<OwnCredentialKind, &str>); 14] = [
    (b"sk-ant-oat", Ok(OwnCredentialKind::ClaudeLogin)),
    (b"sk-ant-api", Ok(OwnCredentialKind::AnthropicKey)),
    (
        b"sk-ant-admin",
        Err("an admin key of Anthropic, which asks no models"),
    ),
    (b"sk-ant-ort", Err("the refresh token of a Claude login")),
    (b"sk-ant-sid", Err("a session of claude.ai")),
    (
        b"sk-ant-",
        Err("a credential of Anthropic of an unknown kind"),
    ),
    (b"sk-proj-", Ok(OwnCredentialKind::OpenAiKey)),
    (b"sk-svcacct-", Ok(OwnCredentialKind::OpenAiKey)),
    (
        b"sk-admin-",
        Err("an admin key of OpenAI, which asks no models"),
    ),
    (b"sk-or-", Err("a key of OpenRouter")),
    (b"AIza", Err("a key of Google")),
    (b"gsk_", Err("a key of Groq")),
    (b"xai-", Err("a key of xAI")),
    (
        b"eyJ",
        Err("a JSON Web Token, such as that of a ChatGPT login, which OpenAI's API does not take"),
    ),
];

/// Returns what a credential is. Errors: what messages call one that is not passed on.
pub(super) fn kind_of(credential: &[u8]) -> Result<OwnCredentialKind, &'static str> {
    let is_text = credential.iter().all(u8::is_ascii_graphic);
    let mut known = BEGINNINGS.iter();
    let known = known.find(|(beginning, _)| credential.starts_with(beginning));
    let is_marked = || memchr::memmem::find(credential, OPENAI_MARK).is_some();
    let kind = match known {
        Some((_, kind)) => *kind,
        None if credential.starts_with(b"sk-") && is_marked() => Ok(OwnCredentialKind::OpenAiKey),
        None if credential.starts_with(b"sk-") => {
            Err("a key whose beginning (`sk-`) several vendors share")
        }
        None => Err(UNKNOWN),
    };
    match kind {
        Ok(_) if !is_text || !CREDENTIAL_BYTES.contains(&credential.len()) => {
            Err("a credential that is cut, or has characters that none has")
        }
        kind => kind,
    }
}

#[cfg(test)]
#[path = "passthrough_tests.rs"]
mod tests;
