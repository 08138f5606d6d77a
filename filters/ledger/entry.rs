//! One call in the ledger: its owner, its usage and its charge.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::money::{Cost, UnitCounts, Usd};

/// The permanent id of one call in the ledger. The server makes it; the client's request id is only data.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
pub struct EntryId(pub [u8; 16]);

impl EntryId {
    /// Returns when the id was made, in unix milliseconds: its first six bytes.
    pub fn made_ms(&self) -> i64 {
        let [a, b, c, d, e, f, ..] = self.0;
        i64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

impl std::fmt::Display for EntryId {
    /// 32 hex digits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Who pays for a call.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Funding {
    #[default]
    Credit,
    Plan,
    /// The caller's BYOK key: the provider bills the caller.
    Byok,
    /// No one: the price is unknown or zero.
    Unbilled,
}

impl Funding {
    /// Returns the value that the store keeps.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Plan => "plan",
            Self::Byok => "own_key",
            Self::Unbilled => "nobody",
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum CallOutcome {
    /// The client got the complete reply.
    #[default]
    Completed,
    /// The provider's reply broke off.
    Broken,
    ClientDisconnected,
    /// The server process ended during the call.
    Killed,
    /// No attempt was answered. The ledger has such calls of experiments alone.
    Failed,
}

impl CallOutcome {
    /// Returns the value that the store keeps.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "answered",
            Self::Broken => "broken",
            Self::ClientDisconnected => "client_gone",
            Self::Killed => "killed",
            Self::Failed => "failed",
        }
    }
}

/// The caller that made a call.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CallOwner {
    pub organization_id: Arc<str>,
    pub project_id: Arc<str>,
    pub key_id: Arc<str>,
    pub member_id: Option<Arc<str>>,
    pub request_id: Arc<str>,
}

/// The parts of a cost. Units: 1e-18 USD.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
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
    #[serde(skip)]
    pub units: Usd,
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
            units: details.unit_cost,
        }
    }
}

/// What a call used, so far or in total.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct UsageRecord {
    /// The model's id in the catalogue.
    pub model: Arc<str>,
    pub provider: Arc<str>,
    pub upstream_model: Arc<str>,
    pub region: Option<Arc<str>>,
    pub prompt_tokens: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached_tokens: u64,
    /// Prompt tokens written to the provider's cache.
    pub cache_write_tokens: u64,
    pub completion_tokens: u64,
    pub reasoning_tokens: u64,
    /// Billable searches.
    pub web_searches: u64,
    /// Pages, seconds and other units.
    #[serde(skip)]
    pub units: UnitCounts,
    /// The cost; `None` if the price is unknown.
    pub cost: Option<CostParts>,
    /// Whether the server counted the tokens because the provider reported none.
    pub is_estimated: bool,
    /// Whether the model is premium, which plans limit separately.
    pub is_premium: bool,
    pub attempts: u32,
}

impl UsageRecord {
    /// Returns the cost, 0 if the price is unknown.
    pub fn total(&self) -> Usd {
        self.cost.map_or(Usd::ZERO, |cost| cost.total)
    }
}

/// The names of an experiment: a flag, the rule that decided it, and the variation.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct ExperimentNames {
    pub flag: Box<str>,
    /// The rule's key; empty: none.
    pub rule: Box<str>,
    pub variation: Box<str>,
}

/// Who of a client makes a call, as the client names it. Empty: it names none.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct SessionNames {
    pub session: Box<str>,
    /// The agent of the session that asks.
    pub agent: Box<str>,
    /// The agent that has asked that one.
    pub parent: Box<str>,
}

/// What else a call counts in.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CallMarks {
    /// The tags that the client has given it.
    pub tags: Box<[Box<str>]>,
    /// The names of its budgets.
    pub budgets: Box<[Arc<str>]>,
}

/// One row of the ledger: a call that has ended.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct LedgerEntry {
    pub id: EntryId,
    /// When the call ended, in unix milliseconds.
    pub at_ms: i64,
    pub owner: CallOwner,
    pub funding: Funding,
    pub usage: UsageRecord,
    pub outcome: CallOutcome,
    #[serde(with = "units")]
    pub reserved: Usd,
    /// The amount taken from the balance.
    #[serde(with = "units")]
    pub charged: Usd,
    /// The part of the cost that the balance did not cover.
    #[serde(with = "units")]
    pub shortfall: Usd,
    /// Time from the request's head to the end of the call.
    pub duration_ms: u64,
    /// Time from the request's head to the first content.
    pub first_event_ms: Option<u64>,
    pub is_stream: bool,
    /// The experiment that has filled the request. It is written beside the entry, so that other calls take no byte for it.
    #[serde(skip)]
    pub experiment: Option<Arc<ExperimentNames>>,
    /// The session that the call belongs to. It is written as the experiment is.
    #[serde(skip)]
    pub session: Option<Arc<SessionNames>>,
    /// What else it counts in. It is written as the experiment is, until the store has counted the call.
    #[serde(skip)]
    pub marks: Option<Arc<CallMarks>>,
}

impl LedgerEntry {
    /// Returns the names of its budgets.
    pub fn budgets(&self) -> &[Arc<str>] {
        self.marks.as_ref().map_or(&[], |marks| &marks.budgets)
    }

    /// Returns its tags.
    pub fn tags(&self) -> &[Box<str>] {
        self.marks.as_ref().map_or(&[], |marks| &marks.tags)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Details;

    #[test]
    fn an_id_says_when_it_was_made() {
        let mut id = EntryId::default();
        id.0.iter_mut().zip(1..).for_each(|(to, byte)| *to = byte);
        assert_eq!(id.made_ms(), 0x0102_0304_0506);
        assert_eq!(id.to_string(), "0102030405060708090a0b0c0d0e0f10");
    }

    #[test]
    fn what_the_store_keeps_has_names() {
        let fundings = [
            Funding::Credit,
            Funding::Plan,
            Funding::Byok,
            Funding::Unbilled,
        ];
        let names = ["credit", "plan", "own_key", "nobody"];
        assert_eq!(fundings.map(Funding::as_str), names);
        let outcomes = [
            CallOutcome::Completed,
            CallOutcome::Broken,
            CallOutcome::ClientDisconnected,
            CallOutcome::Killed,
            CallOutcome::Failed,
        ];
        let names = ["answered", "broken", "client_gone", "killed", "failed"];
        assert_eq!(outcomes.map(CallOutcome::as_str), names);
    }

    #[test]
    fn the_parts_of_a_cost_are_kept() {
        let usd = Usd::from_units;
        let details = Details {
            input_cost: usd(1),
            cached_input_cost: usd(2),
            cache_write_input_cost: usd(3),
            output_cost: usd(4),
            request_cost: usd(5),
            web_search_cost: usd(6),
            unit_cost: usd(7),
            ..Details::default()
        };
        let cost = Cost {
            total: usd(28),
            details,
        };
        let parts = CostParts::from(&cost);
        let kept = [
            parts.input,
            parts.cached_input,
            parts.cache_write,
            parts.output,
            parts.request,
            parts.web_search,
            parts.units,
            parts.total,
        ];
        assert_eq!(kept, [1, 2, 3, 4, 5, 6, 7, 28].map(usd));
        let usage = UsageRecord {
            cost: Some(parts),
            ..UsageRecord::default()
        };
        assert_eq!(usage.total(), usd(28));
        assert_eq!(UsageRecord::default().total(), Usd::ZERO);
    }
}
