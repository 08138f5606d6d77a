//! Sets of scopes.

use std::fmt;

use super::error::{OAuthError, OAuthErrorCode};
use super::scope::Scope;
use crate::fault::quoted;

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Scopes(u8);

impl Scopes {
    /// Returns the set of all scopes.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Reads names that are separated by spaces.
    ///
    /// Errors: an unknown scope, or an empty list.
    pub fn parse(text: &str) -> Result<Self, OAuthError> {
        let mut scopes = Self::default();
        for name in text.split(' ').filter(|name| !name.is_empty()) {
            let scope = Scope::parse(name).ok_or_else(|| {
                let accepted = Self::all();
                let name = quoted(name);
                invalid(format!("there is no scope `{name}`; accepted: {accepted}"))
            })?;
            scopes.insert(scope);
        }
        if scopes == Self::default() {
            return Err(invalid("`scope` names no scope".to_owned()));
        }
        Ok(scopes)
    }

    /// Returns the set for the bits of [`Self::bits`]. Other bits are ignored.
    pub fn from_bits(bits: u8) -> Self {
        let known = Scope::ALL.into_iter();
        known.filter(|scope| bits & bit(*scope) != 0).collect()
    }

    /// Returns a bit for each scope.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Adds a scope.
    pub fn insert(&mut self, scope: Scope) {
        self.0 |= bit(scope);
    }

    /// Returns whether the set contains a scope.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & bit(scope) != 0
    }

    /// Returns whether the set contains every scope of `other`.
    pub fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Returns the scopes in the order of [`Scope::ALL`].
    pub fn to_vec(self) -> Vec<Scope> {
        let all = Scope::ALL.into_iter();
        all.filter(|scope| self.contains(*scope)).collect()
    }
}

fn invalid(message: String) -> OAuthError {
    OAuthError::new(OAuthErrorCode::InvalidScope, message)
}

fn bit(scope: Scope) -> u8 {
    match scope {
        Scope::Models => 1,
        Scope::Decisions => 2,
        Scope::LimitsRead => 4,
        Scope::AccountRead => 8,
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let mut set = Self::default();
        scopes.into_iter().for_each(|scope| set.insert(scope));
        set
    }
}

/// The names, separated by spaces.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.to_vec().into_iter().map(Scope::as_str).collect();
        f.write_str(&names.join(" "))
    }
}
