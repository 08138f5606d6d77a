//! How fast a provider serves a call, which is part of its price.

/// A service tier. Source: docs/model-gateway.md 2.1.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum ServiceTier {
    /// The usual one.
    #[default]
    Standard,
    /// Slow and cheap.
    Flex,
    /// Fast and expensive.
    Priority,
}

impl ServiceTier {
    /// The words of requests.
    pub const WORDS: [&'static str; 4] = ["auto", "default", "flex", "priority"];

    /// Returns the tier of a request's word.
    pub fn from_word(word: &str) -> Self {
        match word {
            "flex" => Self::Flex,
            "priority" => Self::Priority,
            _ => Self::Standard,
        }
    }

    /// Returns the name of the tier in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "default",
            Self::Flex => "flex",
            Self::Priority => "priority",
        }
    }

    /// Returns the word that a request to the provider has to contain; `None` for the usual tier, which needs none.
    pub fn wire_word(self) -> Option<&'static str> {
        (self != Self::Standard).then(|| self.as_str())
    }

    /// Reads the tier that served a reply, in upper or lower case. Returns `None` for any other word, which does not
    /// determine a price.
    ///
    /// Source: the vendors' references.
    pub fn from_reply(word: &str) -> Option<Self> {
        const WORDS: [(&str, ServiceTier); 8] = [
            ("default", ServiceTier::Standard),
            ("standard", ServiceTier::Standard),
            ("on_demand", ServiceTier::Standard),
            ("flex", ServiceTier::Flex),
            ("on_demand_flex", ServiceTier::Flex),
            ("priority", ServiceTier::Priority),
            ("fast", ServiceTier::Priority),
            ("on_demand_priority", ServiceTier::Priority),
        ];
        let mut words = WORDS.iter();
        let found = words.find(|(known, _)| known.eq_ignore_ascii_case(word));
        found.map(|(_, tier)| *tier)
    }
}
