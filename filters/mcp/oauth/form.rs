//! The parameters of an OAuth request. None may be repeated.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::error::OAuthError;
use crate::fault::quoted;
use crate::form;

/// The parameters of a query or a form. A parameter without a value counts as absent. Source: RFC 6749 3.1, 3.2.
#[derive(Clone, Debug, Default)]
pub struct OAuthParameters<'q> {
    values: BTreeMap<Cow<'q, str>, Cow<'q, str>>,
    /// The names of repeated parameters.
    repeated: BTreeSet<Cow<'q, str>>,
}

impl<'q> OAuthParameters<'q> {
    /// Reads a query or a form.
    pub fn read(text: &'q str) -> Self {
        let mut parameters = Self::default();
        for pair in form::pairs(text) {
            let (name, value) = (pair.decoded_name(), pair.decoded_value());
            if value.is_empty() {
                continue;
            }
            if parameters.values.insert(name.clone(), value).is_some() {
                parameters.repeated.insert(name);
            }
        }
        parameters
    }

    /// Returns a parameter.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| &**value)
    }

    /// Returns a required parameter.
    ///
    /// Errors: the parameter is absent or repeated.
    pub fn require(&self, name: &str) -> Result<&str, OAuthError> {
        let missing = || OAuthError::invalid(format!("`{name}` is missing"));
        self.find(name).ok_or_else(missing)
    }

    /// Returns whether a parameter is repeated.
    pub fn is_repeated(&self, name: &str) -> bool {
        self.repeated.contains(name)
    }

    /// Checks that no parameter is repeated.
    ///
    /// Errors: a parameter is repeated.
    pub fn check_single(&self) -> Result<(), OAuthError> {
        match self.repeated.first() {
            None => Ok(()),
            Some(name) => {
                let message = format!("`{}` came more than once", quoted(name));
                Err(OAuthError::invalid(message))
            }
        }
    }
}
