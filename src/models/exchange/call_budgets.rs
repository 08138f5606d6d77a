//! The budgets of a call, as it keeps them.

use std::sync::Arc;

use filters::ledger::CallMarks;
use filters::money::budgets::{Budget, BudgetReached};

/// The budgets of a call.
#[derive(Default)]
pub(super) struct CallBudgets {
    /// Its tags, as the client gives them.
    pub(super) tags: Box<[Box<str>]>,
    /// `None`: it has none.
    pub(super) all: Option<Arc<[Budget]>>,
    /// Its tags, and the names of its budgets; `None`: it has neither.
    pub(super) marks: Option<Arc<CallMarks>>,
    /// The budget for which it was refused.
    pub(super) reached: Option<BudgetReached>,
}
