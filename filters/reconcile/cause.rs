//! What causes a difference between the ledger and a bill.

/// A cause of a difference. Several may hold at once.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Cause {
    /// The catalogue has no model of this name at the provider.
    UnknownModel,
    /// The provider has more calls than the ledger has attempts: they did not go through the gateway.
    PastGateway,
    /// The provider has more calls than the ledger has, but no more than attempts: it bills what was given up.
    GivenUp,
    /// The ledger has calls of which the bill says nothing.
    NotBilled,
    /// The provider has fewer calls than the ledger.
    FewerCalls,
    /// Calls with callers' own keys, which are on other bills, may be among those of the ledger.
    OwnKeys,
    /// The same prompts, of which another share was read from a cache.
    CachedShare,
    /// Another number of prompt tokens was written to a cache.
    CacheWrites,
    /// The completions differ by the tokens of reasoning.
    Reasoning,
    /// The provider has calls of another service tier than the usual one.
    Tier,
    /// The ledger has calls whose price is unknown.
    UnknownPrice,
    /// The tokens agree, but not the money: a price of the catalogue is another one.
    Price,
    /// The difference of the day before or after makes up for it: calls over midnight.
    DayBoundary,
    /// Tokens differ for none of these causes.
    Tokens,
    /// The counts of some model of the day differ, and with them its money.
    Usage,
}

impl Cause {
    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownModel => "unknown_model",
            Self::PastGateway => "past_gateway",
            Self::GivenUp => "given_up",
            Self::NotBilled => "not_billed",
            Self::FewerCalls => "fewer_calls",
            Self::OwnKeys => "own_keys",
            Self::CachedShare => "cached_share",
            Self::CacheWrites => "cache_writes",
            Self::Reasoning => "reasoning",
            Self::Tier => "tier",
            Self::UnknownPrice => "unknown_price",
            Self::Price => "price",
            Self::DayBoundary => "day_boundary",
            Self::Tokens => "tokens",
            Self::Usage => "usage",
        }
    }
}
