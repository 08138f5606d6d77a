//! What a key may spend and whom it may reach, as stored and as used.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::rules::{KeyRules, Lists};
use crate::cidr::Cidr;
use crate::money::allowance::KeyLimits;
use crate::money::{Period, Price, Usd};

/// The terms of a key, as used.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KeyTerms {
    /// What it may spend.
    pub limits: KeyLimits,
    /// Whom it may reach.
    pub rules: KeyRules,
}

/// The terms of a key, as written. Shape: a JSON object; what is left out sets no bound.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TermsFile {
    /// The most it may ever spend, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The most it may spend in an hour, day, week or month, in USD.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limit_per: BTreeMap<String, String>,
    /// Models that it may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_models: Vec<String>,
    /// Models that it may not use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_models: Vec<String>,
    /// Providers that may serve it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_providers: Vec<String>,
    /// Providers that may not serve it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_providers: Vec<String>,
    /// The highest input price, in USD per million tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_price: Option<String>,
    /// The highest output price, in USD per million tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_price: Option<String>,
    /// Blocks of addresses that it may be used from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_ips: Vec<String>,
    /// Blocks of addresses that it may not be used from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_ips: Vec<String>,
}

/// A term that cannot be one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidTerm {
    /// Which, as a field of [`TermsFile`].
    pub field: &'static str,
    /// What came and what is accepted.
    pub problem: String,
}

impl fmt::Display for InvalidTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl std::error::Error for InvalidTerm {}

impl TermsFile {
    /// Whether they bound nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The terms as used.
    ///
    /// Errors: the first that cannot be one: an amount that is negative or too long, a period, a block of addresses,
    /// an empty name.
    pub fn check(&self) -> Result<KeyTerms, InvalidTerm> {
        let limits = KeyLimits {
            lifetime: optional("limit", self.limit.as_deref(), Usd::parse)?,
            periods: self.periods()?,
        };
        let price = Price::per_million;
        let rules = KeyRules {
            models: Lists {
                allow: names("allow_models", &self.allow_models)?,
                deny: names("deny_models", &self.deny_models)?,
            },
            providers: Lists {
                allow: names("allow_providers", &self.allow_providers)?,
                deny: names("deny_providers", &self.deny_providers)?,
            },
            max_input: optional("max_input_price", self.max_input_price.as_deref(), price)?,
            max_output: optional("max_output_price", self.max_output_price.as_deref(), price)?,
            addresses: Lists {
                allow: all("allow_ips", &self.allow_ips, |text| text.parse::<Cidr>())?,
                deny: all("deny_ips", &self.deny_ips, |text| text.parse::<Cidr>())?,
            },
        };
        Ok(KeyTerms { limits, rules })
    }

    fn periods(&self) -> Result<[Option<Usd>; 4], InvalidTerm> {
        const FIELD: &str = "limit_per";
        let mut limits = [None; 4];
        for (word, amount) in &self.limit_per {
            let period: Period = checked(FIELD, word, str::parse)?;
            let amount = checked(FIELD, amount, Usd::parse)?;
            let pairs = Period::ALL.into_iter().zip(&mut limits);
            for (_, limit) in pairs.filter(|(of, _)| *of == period) {
                *limit = Some(amount);
            }
        }
        Ok(limits)
    }
}

fn optional<T, E: fmt::Display>(
    field: &'static str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, InvalidTerm> {
    text.map(|text| checked(field, text, parse)).transpose()
}

fn all<T, E: fmt::Display>(
    field: &'static str,
    texts: &[String],
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Box<[T]>, InvalidTerm> {
    texts
        .iter()
        .map(|text| checked(field, text, &parse))
        .collect()
}

fn names(field: &'static str, texts: &[String]) -> Result<Box<[Box<str>]>, InvalidTerm> {
    all(field, texts, |text| {
        if text.trim().is_empty() || text.trim() != text {
            return Err(format!("{text:?} is no name"));
        }
        Ok(text.into())
    })
}

fn checked<T, E: fmt::Display>(
    field: &'static str,
    text: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, InvalidTerm> {
    parse(text).map_err(|error| InvalidTerm {
        field,
        problem: error.to_string(),
    })
}

#[cfg(test)]
#[path = "terms_tests.rs"]
mod tests;
