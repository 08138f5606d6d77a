//! What a host wants of requests, where it differs from the vendor of the dialect.

use http::{HeaderName, HeaderValue};

use crate::money::ServiceTier;

/// The deviations of a host from its wire. Source: docs/facts/clouds.md.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyForm {
    /// The version that stands in the body in place of the model, which the path names; `None`: the model stands there.
    pub version_for_model: Option<&'static str>,
    /// Whether ids of users have to be plain words, so that hashes take their places.
    pub hashes_users: bool,
    /// Whether it refuses forms of answers and strict tools.
    pub refuses_forms: bool,
    /// The headers that ask for a tier in place of a member of the body, each with its value; `None`: the word of the tier.
    pub tier_headers: &'static [(&'static str, Option<&'static str>)],
}

impl BodyForm {
    /// What the vendor of the dialect wants.
    pub const OF_WIRE: Self = Self {
        version_for_model: None,
        hashes_users: false,
        refuses_forms: false,
        tier_headers: &[],
    };

    /// Returns the word by which a body asks for a tier; `None`: it does not.
    pub(super) fn tier_word(&self, tier: ServiceTier) -> Option<&'static str> {
        tier.wire_word().filter(|_| self.tier_headers.is_empty())
    }

    /// Returns the headers that ask for a tier; there are none for the usual one.
    pub(super) fn headers_of(&self, tier: ServiceTier) -> Vec<(HeaderName, HeaderValue)> {
        let word = tier.wire_word();
        let headers = self.tier_headers.iter().filter_map(|(name, value)| {
            let value = HeaderValue::from_static(value.or(word)?);
            Some((HeaderName::from_static(name), value))
        });
        headers.filter(|_| word.is_some()).collect()
    }
}
