//! The issuer and the audience of tokens. Source: RFC 7519 4.1.1, 4.1.3.

use serde::Deserialize;

use super::jwt::InvalidToken;

/// The issuer and the audience that tokens have to name; `None` accepts any.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClaimRules {
    pub issuer: Option<Box<str>>,
    /// A token's `aud` has to contain this audience.
    pub audience: Option<Box<str>>,
}

/// The claim `aud`, which is one string or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn contains(&self, text: &str) -> bool {
        match self {
            Self::One(one) => one == text,
            Self::Several(several) => several.iter().any(|one| one == text),
        }
    }
}

impl ClaimRules {
    /// Checks the claims `iss` and `aud` of a token.
    ///
    /// Errors: [`InvalidToken::Issuer`], [`InvalidToken::Audience`].
    pub fn check(
        &self,
        issuer: Option<&str>,
        audience: Option<&Texts>,
    ) -> Result<(), InvalidToken> {
        if self.issuer.is_some() && self.issuer.as_deref() != issuer {
            return Err(InvalidToken::Issuer);
        }
        let is_for = |wanted: &str| audience.is_some_and(|named| named.contains(wanted));
        match self.audience.as_deref().is_none_or(is_for) {
            true => Ok(()),
            false => Err(InvalidToken::Audience),
        }
    }
}
