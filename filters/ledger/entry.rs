//! One call in the ledger: who asked, what it took, what was charged.

use serde::{Deserialize, Serialize};

use crate::money::Cost;
use crate::money::Usd;

/// Names one call in the ledger, for ever. Made by us: a client's request id is only data.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
pub struct EntryId(pub [u8; 16]);

impl std::fmt::Display for EntryId {
    /// 32 hex digits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What pays for a call.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Funding {
    /// The organization's credit.
    #[default]
    Credit,
    /// The allowance of its plan.
    Plan,
    /// The caller's own provider key: the provider bills the caller.
    OwnKey,
    /// Nobody: its price is not known, or it has none.
    Nobody,
}

impl Funding {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Plan => "plan",
            Self::OwnKey => "own_key",
            Self::Nobody => "nobody",
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum CallOutcome {
    /// Answered as a whole.
    #[default]
    Answered,
    /// The provider's answer broke off.
    Broken,
    /// The client left.
    ClientGone,
    /// Our process ended in the middle.
    Killed,
}

impl CallOutcome {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Broken => "broken",
            Self::ClientGone => "client_gone",
            Self::Killed => "killed",
        }
    }
}

/// Who asked.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the words say it")]
pub struct CallOwner {
    pub organization_id: Box<str>,
    pub project_id: Box<str>,
    pub key_id: Box<str>,
    pub member_id: Option<Box<str>>,
    pub request_id: Box<str>,
}

/// The parts of a cost. Units: 1e-18 USD.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the words say it")]
pub struct CostParts {
    #[serde(with = "units")]
    pub total: Usd,
    #[serde(with = "units")]
    pub input: Usd,
    #[serde(with = "units")]
    pub cached_input: Usd,
    #[serde(with = "units")]
    pub cache_write: Usd,
    #[serde(with = "units")]
    pub output: Usd,
    #[serde(with = "units")]
    pub request: Usd,
    #[serde(with = "units")]
    pub web_search: Usd,
}

impl From<&Cost> for CostParts {
    fn from(cost: &Cost) -> Self {
        let details = &cost.details;
        Self {
            total: cost.total,
            input: details.input_cost,
            cached_input: details.cached_input_cost,
            cache_write: details.cache_write_input_cost,
            output: details.output_cost,
            request: details.request_cost,
            web_search: details.web_search_cost,
        }
    }
}

/// What a call took, so far or in the end.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct UsageRecord {
    /// The catalogue's id.
    pub model: Box<str>,
    /// The provider that answered.
    pub provider: Box<str>,
    /// The provider's own id of the model.
    pub upstream_model: Box<str>,
    /// Its region, where one was used.
    pub region: Option<Box<str>>,
    /// All prompt tokens.
    pub prompt_tokens: u64,
    /// Of those, read from a provider's cache.
    pub cached_tokens: u64,
    /// Of those, written to it.
    pub cache_write_tokens: u64,
    /// All completion tokens.
    pub completion_tokens: u64,
    /// Of those, spent on reasoning.
    pub reasoning_tokens: u64,
    /// Billable searches.
    pub web_searches: u64,
    /// What it cost; `None`: the price is not known.
    pub cost: Option<CostParts>,
    /// Whether tokens were counted by us.
    pub is_estimated: bool,
    /// Whether the model is one of the dear ones, which plans count for themselves.
    pub is_premium: bool,
    /// Attempts at providers.
    pub attempts: u32,
}

impl UsageRecord {
    /// What it cost, 0 where the price is not known.
    pub fn total(&self) -> Usd {
        self.cost.map_or(Usd::ZERO, |cost| cost.total)
    }
}

/// A row of the ledger.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct LedgerEntry {
    /// Its name.
    pub id: EntryId,
    /// When it ended, in unix milliseconds.
    pub at_ms: i64,
    /// Who asked.
    pub who: CallOwner,
    /// What pays.
    pub funding: Funding,
    /// What it took.
    pub taken: UsageRecord,
    /// How it ended.
    pub outcome: CallOutcome,
    /// What had been reserved.
    #[serde(with = "units")]
    pub reserved: Usd,
    /// What was taken from the balance.
    #[serde(with = "units")]
    pub charged: Usd,
    /// What it cost beyond that.
    #[serde(with = "units")]
    pub shortfall: Usd,
    /// From its head to its end.
    pub duration_ms: u64,
    /// From its head to the first content.
    pub first_event_ms: Option<u64>,
    /// Whether it was an event stream.
    pub is_stream: bool,
}

/// Amounts as integers of 1e-18 USD: only for the journal, which no other program reads.
pub(super) mod units {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::money::Usd;

    pub(crate) fn serialize<S: Serializer>(usd: &Usd, to: S) -> Result<S::Ok, S::Error> {
        usd.units().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Usd, D::Error> {
        i128::deserialize(from).map(Usd::from_units)
    }
}
