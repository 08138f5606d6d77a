//! The word of a reply for the tier that served it.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

use crate::money::ServiceTier;

/// A word for a tier; `None`: it says nothing of a price. It may be of any type, because a reply is readable without it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TierWord(pub(super) Option<ServiceTier>);

impl<'de> Deserialize<'de> for TierWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Clue<'a> {
            Word(#[serde(borrow)] std::borrow::Cow<'a, str>),
            Other(IgnoredAny),
        }
        Ok(Self(match Clue::deserialize(deserializer)? {
            Clue::Word(word) => ServiceTier::from_reply(&word),
            Clue::Other(IgnoredAny) => None,
        }))
    }
}
