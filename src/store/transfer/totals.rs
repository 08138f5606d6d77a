//! The sums of a store, for people and against losses.

use filters::money::Usd;
use serde::{Deserialize, Serialize};

use super::super::ledger::join_cost;
use super::format::Cell;
use super::shape::Column;

/// The sums of a store.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TransferTotals {
    pub organizations: u64,
    /// API keys, revoked ones too.
    pub keys: u64,
    /// Single calls that are kept.
    pub calls: u64,
    /// Credit that was given.
    pub granted: Usd,
    /// What calls have taken out of it.
    pub settled: Usd,
    /// What all calls have cost, whoever paid.
    pub cost: Usd,
}

/// The sums as the file has them.
#[derive(Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenTotals {
    organizations: u64,
    keys: u64,
    calls: u64,
    granted: String,
    settled: String,
    cost: String,
}

impl From<&TransferTotals> for WrittenTotals {
    fn from(totals: &TransferTotals) -> Self {
        Self {
            organizations: totals.organizations,
            keys: totals.keys,
            calls: totals.calls,
            granted: totals.granted.to_string(),
            settled: totals.settled.to_string(),
            cost: totals.cost.to_string(),
        }
    }
}

/// The bytes of the id of a call in a batch.
const CALL_ID_BYTES: u64 = 16;

impl TransferTotals {
    /// Adds a row of a table.
    ///
    /// Errors: the column of an amount that is none.
    pub(super) fn add(
        &mut self,
        table: &str,
        columns: &[Column],
        cells: &[Cell],
    ) -> Result<(), &'static str> {
        let row = TotalsRow { columns, cells };
        match table {
            "organizations" => self.organizations += 1,
            "api_keys" => self.keys += 1,
            "ledger" => self.calls += 1,
            "call_batches" => self.calls += row.byte_count("ids") / CALL_ID_BYTES,
            "credit_grants" => self.granted = self.granted.plus(row.usd("amount")?),
            "balances" => self.settled = self.settled.plus(row.usd("settled")?),
            "usage_hours" => {
                let cost = join_cost(row.integer("cost_nano"), row.integer("cost_rest"));
                self.cost = self.cost.plus(cost);
            }
            _ => {}
        }
        Ok(())
    }
}

/// A row by the names of its columns.
struct TotalsRow<'a> {
    columns: &'a [Column],
    cells: &'a [Cell],
}

impl TotalsRow<'_> {
    fn cell(&self, name: &str) -> Option<&Cell> {
        let place = self.columns.iter().position(|column| column.0 == name)?;
        self.cells.get(place)
    }

    fn integer(&self, name: &str) -> i64 {
        match self.cell(name) {
            Some(Cell::Integer(integer)) => *integer,
            _ => 0,
        }
    }

    fn byte_count(&self, name: &str) -> u64 {
        match self.cell(name) {
            Some(Cell::Bytes(bytes)) => bytes.len() as u64,
            _ => 0,
        }
    }

    fn usd(&self, name: &'static str) -> Result<Usd, &'static str> {
        match self.cell(name) {
            Some(Cell::Text(text)) => Usd::parse_signed(text).map_err(|_| name),
            _ => Ok(Usd::ZERO),
        }
    }
}
