//! The terms of a key: what it may spend and use, in the stored form and in the checked form.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::budgets_file::BudgetsFile;
use super::passthrough::Vendor;
use super::rules::{KeyRules, Lists};
use crate::cidr::Cidr;
use crate::money::allowance::KeyLimits;
use crate::money::budgets::BudgetTerms;
use crate::money::{Period, Price, Usd};

/// The checked terms of a key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KeyTerms {
    pub limits: KeyLimits,
    pub rules: KeyRules,
    /// What its sessions, agents and tags may spend.
    pub budgets: BudgetTerms,
    /// The vendors whose credentials its requests may bring.
    pub passthrough: Box<[Vendor]>,
}

/// The terms of a key as stored. Shape: a JSON object; an absent field sets no limit.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TermsFile {
    /// The maximum that the key may ever spend, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "usd"))]
    pub limit: Option<String>,
    /// The maximum that the key may spend in an hour, day, week or month, in USD.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("additionalProperties" = {"type": "string", "format": "usd"}))]
    pub limit_per: BTreeMap<String, String>,
    /// The models that it may use, and no others: ids, aliases, or either behind a provider.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_models: Vec<String>,
    /// The models that it may not use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_models: Vec<String>,
    /// The providers that may serve it, and no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_providers: Vec<String>,
    /// The providers that may not serve it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_providers: Vec<String>,
    /// The maximum input price, in USD per million tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "usd"))]
    pub max_input_price: Option<String>,
    /// The maximum output price, in USD per million tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "usd"))]
    pub max_output_price: Option<String>,
    /// The blocks of addresses that it may be used from, and no others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_ips: Vec<String>,
    /// The blocks of addresses that it may not be used from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_ips: Vec<String>,
    /// The most that its sessions, agents and tags may spend.
    #[serde(skip_serializing_if = "BudgetsFile::is_empty")]
    pub budgets: BudgetsFile,
    /// The vendors whose credentials its requests may bring, which then serve them: `anthropic`, `openai`. By default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_passthrough: Vec<String>,
}

/// An invalid term.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidTerm {
    /// The field of [`TermsFile`].
    pub field: &'static str,
    /// The received value and the accepted ones.
    pub problem: String,
}

impl fmt::Display for InvalidTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl std::error::Error for InvalidTerm {}

impl TermsFile {
    /// Returns whether no term is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks and converts the terms.
    ///
    /// Errors: the first invalid term: an amount that is negative or too long, a period, an address block, an empty
    /// name, a vendor, or what [`BudgetsFile::check`] refuses.
    pub fn check(&self) -> Result<KeyTerms, InvalidTerm> {
        let limits = KeyLimits {
            lifetime: parse_optional("limit", self.limit.as_deref(), Usd::parse)?,
            periods: self.parse_periods()?,
        };
        let price = Price::per_million;
        let rules = KeyRules {
            models: Lists {
                allow: parse_names("allow_models", &self.allow_models)?,
                deny: parse_names("deny_models", &self.deny_models)?,
            },
            providers: Lists {
                allow: parse_names("allow_providers", &self.allow_providers)?,
                deny: parse_names("deny_providers", &self.deny_providers)?,
            },
            max_input: parse_optional("max_input_price", self.max_input_price.as_deref(), price)?,
            max_output: parse_optional(
                "max_output_price",
                self.max_output_price.as_deref(),
                price,
            )?,
            addresses: Lists {
                allow: parse_all("allow_ips", &self.allow_ips, |text| text.parse::<Cidr>())?,
                deny: parse_all("deny_ips", &self.deny_ips, |text| text.parse::<Cidr>())?,
            },
        };
        Ok(KeyTerms {
            limits,
            rules,
            budgets: self.budgets.check()?,
            passthrough: parse_all("allow_passthrough", &self.allow_passthrough, parse_vendor)?,
        })
    }

    fn parse_periods(&self) -> Result<[Option<Usd>; 4], InvalidTerm> {
        const FIELD: &str = "limit_per";
        let mut limits = [None; 4];
        for (word, amount) in &self.limit_per {
            let period: Period = parse_field(FIELD, word, str::parse)?;
            let amount = parse_field(FIELD, amount, Usd::parse)?;
            let pairs = Period::ALL.into_iter().zip(&mut limits);
            for (_, limit) in pairs.filter(|(candidate, _)| *candidate == period) {
                *limit = Some(amount);
            }
        }
        Ok(limits)
    }
}

fn parse_optional<T, E: fmt::Display>(
    field: &'static str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, InvalidTerm> {
    text.map(|text| parse_field(field, text, parse)).transpose()
}

fn parse_all<T, E: fmt::Display>(
    field: &'static str,
    texts: &[String],
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Box<[T]>, InvalidTerm> {
    texts
        .iter()
        .map(|text| parse_field(field, text, &parse))
        .collect()
}

fn parse_names(field: &'static str, texts: &[String]) -> Result<Box<[Box<str>]>, InvalidTerm> {
    parse_all(field, texts, |text| {
        if text.trim().is_empty() || text.trim() != text {
            return Err(format!("{text:?} is no name"));
        }
        Ok(text.into())
    })
}

fn parse_vendor(word: &str) -> Result<Vendor, String> {
    let known = word.parse::<Vendor>();
    known.map_err(|accepted| {
        format!("{word:?} is no vendor whose credentials are passed on: {accepted}")
    })
}

pub(super) fn parse_field<T, E: fmt::Display>(
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
