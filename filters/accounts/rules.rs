//! Rules of a key: the models, providers and prices it may use, and the addresses it may be used from. Source:
//! docs/facts/model-gateway.md 5.2.
//!
//! Allow rules of one kind are joined by "or", kinds by "and", and a deny rule wins over all.

use core::net::IpAddr;

use crate::cidr::Cidr;
use crate::fault::{Fault, FaultKind};
use crate::money::{Price, PriceSet};

/// Allow and deny rules of one kind. Without allow rules, everything is allowed that no deny rule matches.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lists<T> {
    /// One of these must match, unless the list is empty.
    pub allow: Box<[T]>,
    /// None of these may match.
    pub deny: Box<[T]>,
}

/// The rules of a key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KeyRules {
    /// Rules by model: an id, an alias, or either after `provider/`.
    pub models: Lists<Box<str>>,
    pub providers: Lists<Box<str>>,
    pub max_input: Option<Price>,
    pub max_output: Option<Price>,
    pub addresses: Lists<Cidr>,
}

/// A way to serve a request, with the facts that rules check.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    pub model: &'a str,
    /// The model's other names.
    pub aliases: &'a [Box<str>],
    pub provider: &'a str,
    pub upstream_name: &'a str,
    pub prices: Option<&'a PriceSet>,
}

/// The kind of rule that forbids a request.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Forbidden {
    Model,
    Provider,
    Price,
    Address,
}

impl Forbidden {
    /// Returns the forbidden thing as messages name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "the model",
            Self::Provider => "the provider",
            Self::Price => "the price",
            Self::Address => "the address that the request came from",
        }
    }
}

/// Source: docs/decisions.md 6.
impl From<Forbidden> for Fault {
    fn from(forbidden: Forbidden) -> Self {
        let what = forbidden.as_str();
        Self::new(
            FaultKind::Forbidden,
            format!("the rules of this API key forbid {what}"),
        )
    }
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            allow: Box::default(),
            deny: Box::default(),
        }
    }
}

impl<T> Lists<T> {
    fn allows(&self, matches: impl Fn(&T) -> bool) -> bool {
        let is_allowed = self.allow.is_empty() || self.allow.iter().any(&matches);
        is_allowed && !self.deny.iter().any(&matches)
    }

    fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }
}

impl KeyRules {
    /// Returns whether the key has no rule.
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
            && self.providers.is_empty()
            && self.max_input.is_none()
            && self.max_output.is_none()
            && self.addresses.is_empty()
    }

    /// Checks the client's address.
    ///
    /// Errors: the address is denied, or not among the allowed ones, or unknown while only some are allowed.
    pub fn check_address(&self, address: Option<IpAddr>) -> Result<(), Forbidden> {
        let is_allowed = match address {
            Some(address) => self.addresses.allows(|block| block.contains(address)),
            None => self.addresses.allow.is_empty(),
        };
        if is_allowed {
            Ok(())
        } else {
            Err(Forbidden::Address)
        }
    }

    /// Checks an offer.
    ///
    /// Our choice: an unknown price exceeds every maximum. Errors: the first kind of rule that forbids the offer.
    pub fn check(&self, offer: &Offer<'_>) -> Result<(), Forbidden> {
        if !self.models.allows(|rule| offer.is_named(rule)) {
            return Err(Forbidden::Model);
        }
        if !self.providers.allows(|rule| **rule == *offer.provider) {
            return Err(Forbidden::Provider);
        }
        let is_within = |max: Option<Price>, price: fn(&PriceSet) -> Price| match max {
            None => true,
            Some(max) => offer.prices.is_some_and(|prices| price(prices) <= max),
        };
        if is_within(self.max_input, |prices| prices.input)
            && is_within(self.max_output, |prices| prices.output)
        {
            Ok(())
        } else {
            Err(Forbidden::Price)
        }
    }
}

impl Offer<'_> {
    fn is_named(&self, rule: &str) -> bool {
        let is_model = |name: &str| name == self.model || self.aliases.iter().any(|a| **a == *name);
        let without_provider = rule
            .strip_prefix(self.provider)
            .and_then(|rest| rest.strip_prefix('/'));
        is_model(rule)
            || without_provider.is_some_and(|name| is_model(name) || name == self.upstream_name)
    }
}
