//! The one credential that a request to the graph service presents, before verification.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::fault::{Fault, FaultKind};
use crate::form::pairs;

/// The request has two credentials, or one place holds two. It is refused because a server behind this one might use
/// the other credential.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConflictingCredentials {
    /// Two `Authorization` lines.
    Authorization,
    /// Two `auth` values in the query.
    Auth,
    /// `Authorization` and `auth` differ.
    Both,
}

/// Source: docs/decisions.md 27.
impl From<ConflictingCredentials> for Fault {
    fn from(conflict: ConflictingCredentials) -> Self {
        let message = match conflict {
            ConflictingCredentials::Authorization => {
                "`Authorization` came more than once: send one credential"
            }
            ConflictingCredentials::Auth => {
                "`auth` came more than once in the query: send one credential"
            }
            ConflictingCredentials::Both => {
                "`Authorization` and `auth` differ: send one credential"
            }
        };
        Self::new(FaultKind::Invalid, message)
    }
}

/// A credential as received. It has no `Debug`, because it is a secret.
pub enum PresentedCredential<'r> {
    Absent,
    /// A public key, from the query or the header.
    Single(Cow<'r, str>),
    /// An application's key with a signature.
    Signed(Signed<'r>),
    /// An application's key and its secret.
    Basic(Basic),
    Bearer(&'r str),
    /// An unknown scheme, or a malformed value.
    Other,
}

/// `key:secret`, decoded.
pub struct Basic(pub(super) String);

impl Basic {
    /// Returns the application's key and its secret.
    pub fn parts(&self) -> (&str, &str) {
        self.0.split_once(':').unwrap_or((&self.0, ""))
    }
}

/// The parts of `epi-hmac key:timestamp:nonce:signature`.
pub struct Signed<'r> {
    /// The application's key.
    pub key: &'r str,
    /// Unix time in milliseconds as received, because the signature covers the text.
    pub timestamp_ms: &'r str,
    pub nonce: &'r str,
    /// Base64.
    pub signature: &'r str,
}

impl<'r> PresentedCredential<'r> {
    /// Reads `Authorization` and the `auth` of `query`, which has no leading `?`.
    ///
    /// Errors: [`ConflictingCredentials`]. Cost: allocates for Basic and for an encoded `auth`. Source:
    /// docs/facts/graph-service.md 1.3.
    pub fn from_request(
        headers: &'r HeaderMap,
        query: Option<&'r str>,
    ) -> Result<Self, ConflictingCredentials> {
        let mut lines = headers.get_all(AUTHORIZATION).iter();
        let header = match (lines.next(), lines.next()) {
            (None, _) => Self::Absent,
            (Some(line), None) => parse_authorization(line.as_bytes()),
            (Some(_), Some(_)) => return Err(ConflictingCredentials::Authorization),
        };
        let Some(auth) = find_auth_key(query.unwrap_or_default())? else {
            return Ok(header);
        };
        match header {
            Self::Absent => Ok(Self::Single(auth)),
            Self::Single(key) if key == auth => Ok(Self::Single(key)),
            _ => Err(ConflictingCredentials::Both),
        }
    }
}

fn parse_authorization(line: &[u8]) -> PresentedCredential<'_> {
    let Ok(line) = std::str::from_utf8(line.trim_ascii()) else {
        return PresentedCredential::Other;
    };
    if line.is_empty() {
        return PresentedCredential::Absent;
    }
    let Some((scheme, rest)) = line.split_once(' ') else {
        return PresentedCredential::Other;
    };
    let rest = rest.trim_start_matches(' ');
    // Two credentials joined on one line are malformed.
    if rest.is_empty() || rest.contains([' ', ',', '\t']) {
        return PresentedCredential::Other;
    }
    let is_scheme = |name: &str| scheme.eq_ignore_ascii_case(name);
    if is_scheme("epi-single") {
        PresentedCredential::Single(Cow::Borrowed(rest))
    } else if is_scheme("epi-hmac") {
        parse_signed(rest).map_or(PresentedCredential::Other, PresentedCredential::Signed)
    } else if is_scheme("basic") {
        parse_basic(rest).map_or(PresentedCredential::Other, PresentedCredential::Basic)
    } else if is_scheme("bearer") {
        PresentedCredential::Bearer(rest)
    } else {
        PresentedCredential::Other
    }
}

fn parse_signed(text: &str) -> Option<Signed<'_>> {
    let mut parts = text.split(':');
    let signed = Signed {
        key: parts.next()?,
        timestamp_ms: parts.next()?,
        nonce: parts.next()?,
        signature: parts.next()?,
    };
    let has_all_parts = [signed.key, signed.nonce, signed.signature]
        .iter()
        .all(|part| !part.is_empty());
    (has_all_parts && parts.next().is_none()).then_some(signed)
}

fn parse_basic(text: &str) -> Option<Basic> {
    let pair = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
    pair.contains(':').then_some(Basic(pair))
}

/// Returns the value of `auth`. Its name is compared without case, and an empty value is absent.
fn find_auth_key(query: &str) -> Result<Option<Cow<'_, str>>, ConflictingCredentials> {
    let mut values = pairs(query).filter(|pair| pair.decoded_name().eq_ignore_ascii_case("auth"));
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => Err(ConflictingCredentials::Auth),
        (Some(pair), None) => Ok(Some(pair.decoded_value()).filter(|value| !value.is_empty())),
        (None, _) => Ok(None),
    }
}

#[cfg(test)]
#[path = "presented_tests.rs"]
mod tests;
