//! The tables of sums by the hour, and how sums are added to them.

use filters::money::Usd;
use serde::ser::{Serialize, SerializeSeq, Serializer};
use sqlx::AnyConnection;

use super::super::StoreError;
use super::rows::Rows;
use super::split_cost;

/// No reply has more tokens. A provider's false report must not overflow a sum, because that would stop all posting.
const MAX_COUNT: u64 = 1_000_000_000_000;

/// A table of sums by the hour.
pub(super) struct HourTable {
    pub name: &'static str,
    /// The columns that make a row one of its hour: texts, then numbers and the hour.
    pub texts: &'static [&'static str],
    pub numbers: &'static [&'static str],
    pub sums: &'static [&'static str],
}

/// The sums of calls.
pub(super) const USAGE: HourTable = HourTable {
    name: "usage_hours",
    texts: &["organization_id", "key_id", "model", "provider", "outcome"],
    numbers: &["hour"],
    sums: &[
        "requests",
        "prompt_tokens",
        "cached_tokens",
        "cache_write_tokens",
        "completion_tokens",
        "reasoning_tokens",
        "web_searches",
        "cost_nano",
        "cost_rest",
    ],
};
/// The sums of the calls of experiments.
pub(super) const VARIATIONS: HourTable = HourTable {
    name: "variation_hours",
    texts: &[
        "organization_id",
        "project_id",
        "flag",
        "rule",
        "variation",
        "outcome",
    ],
    numbers: &["duration_step", "hour"],
    sums: &[
        "requests",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "cost_nano",
        "cost_rest",
    ],
};

/// The sums of the calls of sessions.
pub(super) const SESSIONS: HourTable = HourTable {
    name: "session_hours",
    texts: &[
        "organization_id",
        "key_id",
        "session_id",
        "agent_id",
        "parent_agent_id",
    ],
    numbers: &["hour"],
    sums: &[
        "requests",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "cost_nano",
        "cost_rest",
    ],
};

/// The sums of the calls with tags.
pub(super) const TAGS: HourTable = HourTable {
    name: "tag_hours",
    texts: &["organization_id", "key_id", "tag"],
    numbers: &["hour"],
    sums: SESSIONS.sums,
};

/// A row of a table, in the order of [`HourTable::columns`].
pub(super) struct HourRow<'a, const TEXTS: usize> {
    pub texts: [&'a str; TEXTS],
    pub numbers: Vec<i64>,
}

impl<const TEXTS: usize> Serialize for HourRow<'_, TEXTS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_seq(Some(TEXTS + self.numbers.len()))?;
        for text in self.texts {
            row.serialize_element(text)?;
        }
        for number in &self.numbers {
            row.serialize_element(number)?;
        }
        row.end()
    }
}

/// Sums of calls: their counts, in the order of the table's columns, and their cost.
pub(super) struct HourSums<const COUNTS: usize> {
    counts: [u64; COUNTS],
    cost: Usd,
}

impl<const COUNTS: usize> Default for HourSums<COUNTS> {
    fn default() -> Self {
        Self {
            counts: [0; COUNTS],
            cost: Usd::ZERO,
        }
    }
}

impl<const COUNTS: usize> HourSums<COUNTS> {
    /// Adds a call.
    pub(super) fn add(&mut self, counts: [u64; COUNTS], cost: Usd) {
        for (sum, count) in self.counts.iter_mut().zip(counts) {
            *sum += count.min(MAX_COUNT);
        }
        self.cost = self.cost.plus(cost);
    }

    /// Returns the numbers of a row, with those of its key before them.
    pub(super) fn to_numbers(&self, key: &[i64]) -> Vec<i64> {
        let (nano, rest) = split_cost(self.cost);
        let counts = self.counts.iter().map(|count| count.cast_signed());
        let numbers = key.iter().copied().chain(counts);
        numbers.chain([nano, rest]).collect()
    }
}

impl HourTable {
    /// Adds rows. Their order is that in which all processes lock them, so none waits for another that waits for it.
    pub(super) async fn add(
        &self,
        change: &mut AnyConnection,
        rows: &[impl Serialize],
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows = Rows::new(change, rows)?;
        rows.query(&self.add_sql()).execute(change).await?;
        Ok(())
    }

    /// Returns the SQL that adds rows, in the order of [`Self::columns`].
    fn add_sql(&self) -> String {
        let values = self.columns().into_iter().enumerate();
        let values = values.map(|(place, _)| match place < self.texts.len() {
            true => format!("value ->> {place}"),
            false => format!("CAST(value ->> {place} AS BIGINT)"),
        });
        let values: Vec<String> = values.collect();
        let sums = self.sums.iter();
        let sums =
            sums.map(|sum| format!("{sum} = {name}.{sum} + excluded.{sum}", name = self.name));
        let sums: Vec<String> = sums.collect();
        // `WHERE 1 = 1`: without it SQLite takes the ON behind it for that of a join.
        format!(
            "INSERT INTO {} ({}) SELECT {} FROM {{rows}} WHERE 1 = 1 ON CONFLICT ({}) DO UPDATE SET {}",
            self.name,
            self.columns().join(", "),
            values.join(", "),
            self.key().join(", "),
            sums.join(", ")
        )
    }

    /// Returns the columns that make a row one of its hour.
    pub(super) fn key(&self) -> Vec<&'static str> {
        [self.texts, self.numbers].concat()
    }

    /// Returns all columns: those of [`Self::key`], then the sums.
    pub(super) fn columns(&self) -> Vec<&'static str> {
        [&*self.key(), self.sums].concat()
    }
}
