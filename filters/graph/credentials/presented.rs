//! The one credential that a request to the graph service presents, not yet believed.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::fault::{Fault, FaultKind};
use crate::form::pairs;

/// Two credentials, or one place filled twice: whoever stands behind us might take the other one.
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
    fn from(doubled: ConflictingCredentials) -> Self {
        let message = match doubled {
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

/// A credential as it came. It has no `Debug`: it is a secret.
pub enum PresentedCredential<'r> {
    /// None at all.
    Nothing,
    /// A public key, from the query or the header.
    Single(Cow<'r, str>),
    /// An application's key and what it signed.
    Signed(Signed<'r>),
    /// An application's key and its secret.
    Basic(Basic),
    /// A token.
    Bearer(&'r str),
    /// Of a scheme we do not know, or malformed.
    Other,
}

/// `key:secret`, decoded.
pub struct Basic(pub(super) String);

impl Basic {
    /// The application's key, and its secret.
    pub fn parts(&self) -> (&str, &str) {
        self.0.split_once(':').unwrap_or((&self.0, ""))
    }
}

/// The parts of `epi-hmac key:timestamp:nonce:signature`.
pub struct Signed<'r> {
    /// The application's key.
    pub key: &'r str,
    /// Unix time in milliseconds, as written: it is part of what is signed.
    pub timestamp_ms: &'r str,
    /// Used once.
    pub nonce: &'r str,
    /// Base64.
    pub signature: &'r str,
}

impl<'r> PresentedCredential<'r> {
    /// Reads `Authorization` and the `auth` of a query, which stands without its `?`.
    ///
    /// Errors: [`ConflictingCredentials`]. Cost: allocates for Basic and for an encoded `auth`.
    /// Source: docs/facts/graph-service.md 1.3.
    pub fn read(
        headers: &'r HeaderMap,
        query: Option<&'r str>,
    ) -> Result<Self, ConflictingCredentials> {
        let mut lines = headers.get_all(AUTHORIZATION).iter();
        let header = match (lines.next(), lines.next()) {
            (None, _) => Self::Nothing,
            (Some(line), None) => authorization(line.as_bytes()),
            (Some(_), Some(_)) => return Err(ConflictingCredentials::Authorization),
        };
        let Some(auth) = auth(query.unwrap_or_default())? else {
            return Ok(header);
        };
        match header {
            Self::Nothing => Ok(Self::Single(auth)),
            Self::Single(key) if key == auth => Ok(Self::Single(key)),
            _ => Err(ConflictingCredentials::Both),
        }
    }
}

fn authorization(line: &[u8]) -> PresentedCredential<'_> {
    let Ok(line) = std::str::from_utf8(line.trim_ascii()) else {
        return PresentedCredential::Other;
    };
    if line.is_empty() {
        return PresentedCredential::Nothing;
    }
    let Some((scheme, rest)) = line.split_once(' ') else {
        return PresentedCredential::Other;
    };
    let rest = rest.trim_start_matches(' ');
    // Two credentials joined on one line are none.
    if rest.is_empty() || rest.contains([' ', ',', '\t']) {
        return PresentedCredential::Other;
    }
    let is = |name: &str| scheme.eq_ignore_ascii_case(name);
    if is("epi-single") {
        PresentedCredential::Single(Cow::Borrowed(rest))
    } else if is("epi-hmac") {
        signed(rest).map_or(PresentedCredential::Other, PresentedCredential::Signed)
    } else if is("basic") {
        basic(rest).map_or(PresentedCredential::Other, PresentedCredential::Basic)
    } else if is("bearer") {
        PresentedCredential::Bearer(rest)
    } else {
        PresentedCredential::Other
    }
}

fn signed(text: &str) -> Option<Signed<'_>> {
    let mut parts = text.split(':');
    let signed = Signed {
        key: parts.next()?,
        timestamp_ms: parts.next()?,
        nonce: parts.next()?,
        signature: parts.next()?,
    };
    let is_whole = [signed.key, signed.nonce, signed.signature]
        .iter()
        .all(|part| !part.is_empty());
    (is_whole && parts.next().is_none()).then_some(signed)
}

fn basic(text: &str) -> Option<Basic> {
    let pair = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
    pair.contains(':').then_some(Basic(pair))
}

/// The value of `auth`, however its name is spelt; an empty one is none.
fn auth(query: &str) -> Result<Option<Cow<'_, str>>, ConflictingCredentials> {
    let mut values = pairs(query).filter(|pair| pair.plain_name().eq_ignore_ascii_case("auth"));
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => Err(ConflictingCredentials::Auth),
        (Some(pair), None) => Ok(Some(pair.plain_value()).filter(|value| !value.is_empty())),
        (None, _) => Ok(None),
    }
}

#[cfg(test)]
#[path = "presented_tests.rs"]
mod tests;
