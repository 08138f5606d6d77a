//! Whom a key may reach, and from where. Source: docs/facts/model-gateway.md 5.2.
//!
//! Allowing rules of one kind are united, kinds are joined by "and", and a denying rule wins over all.

use core::net::IpAddr;

use crate::cidr::Cidr;
use crate::fault::{Fault, FaultKind};
use crate::money::{Price, PriceSet};

/// What is allowed and what is denied; without an allowing rule everything is allowed that is not denied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lists<T> {
    /// Of these, one must match, unless there are none.
    pub allow: Box<[T]>,
    /// None of these may match.
    pub deny: Box<[T]>,
}

/// The rules of a key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KeyRules {
    /// By model: an id, an alias, or either behind `provider/`.
    pub models: Lists<Box<str>>,
    /// By provider.
    pub providers: Lists<Box<str>>,
    /// The highest input price.
    pub max_input: Option<Price>,
    /// The highest output price.
    pub max_output: Option<Price>,
    /// By the client's address.
    pub addresses: Lists<Cidr>,
}

/// One way to serve a request, as rules look at it.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// The model's id.
    pub model: &'a str,
    /// The model's other names.
    pub aliases: &'a [Box<str>],
    /// Who would serve it.
    pub provider: &'a str,
    /// What the provider calls it.
    pub upstream_name: &'a str,
    /// For how much; `None`: nobody knows.
    pub prices: Option<&'a PriceSet>,
}

/// Which kind of rule forbids something.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Forbidden {
    /// The model.
    Model,
    /// The provider.
    Provider,
    /// The price.
    Price,
    /// The address that the request came from.
    Address,
}

impl Forbidden {
    /// What is forbidden, in words.
    pub fn what(self) -> &'static str {
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
        let what = forbidden.what();
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
    fn admits(&self, matches: impl Fn(&T) -> bool) -> bool {
        let is_allowed = self.allow.is_empty() || self.allow.iter().any(&matches);
        is_allowed && !self.deny.iter().any(&matches)
    }

    fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }
}

impl KeyRules {
    /// Whether there is no rule at all.
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
            && self.providers.is_empty()
            && self.max_input.is_none()
            && self.max_output.is_none()
            && self.addresses.is_empty()
    }

    /// Whether a request may come from `address`.
    ///
    /// Errors: an address that is denied, or not among those allowed; one that is unknown, where some are allowed.
    pub fn check_address(&self, address: Option<IpAddr>) -> Result<(), Forbidden> {
        let is_admitted = match address {
            Some(address) => self.addresses.admits(|block| block.contains(address)),
            None => self.addresses.allow.is_empty(),
        };
        if is_admitted {
            Ok(())
        } else {
            Err(Forbidden::Address)
        }
    }

    /// Whether a request may be served so.
    ///
    /// Our choice: a price that nobody knows is above every highest price. Errors: the first kind that forbids it.
    pub fn check(&self, offer: &Offer<'_>) -> Result<(), Forbidden> {
        if !self.models.admits(|rule| offer.is_named(rule)) {
            return Err(Forbidden::Model);
        }
        if !self.providers.admits(|rule| **rule == *offer.provider) {
            return Err(Forbidden::Provider);
        }
        let is_within = |most: Option<Price>, price: fn(&PriceSet) -> Price| match most {
            None => true,
            Some(most) => offer.prices.is_some_and(|prices| price(prices) <= most),
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
        let behind_provider = rule
            .strip_prefix(self.provider)
            .and_then(|rest| rest.strip_prefix('/'));
        is_model(rule)
            || behind_provider.is_some_and(|name| is_model(name) || name == self.upstream_name)
    }
}
