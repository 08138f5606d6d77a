//! What people say of budgets, as far as requests have to know: more than the limit, or a pause.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use filters::money::budgets::BudgetState;
use filters::money::tally::Tally;

use crate::accounts::BudgetRows;
use crate::store::BudgetRecord;

/// The budgets of an organization of which something is said, by name.
type OfOrganization = HashMap<Box<str>, BudgetState>;

/// What is said of budgets. [`Self::update`] follows the rows that [`crate::accounts`] publishes.
#[derive(Default)]
pub struct BudgetSnapshot {
    /// By the organization's id.
    current: ArcSwap<HashMap<Box<str>, Arc<OfOrganization>>>,
}

impl BudgetSnapshot {
    /// Returns what is said of the budgets of an organization. Cost: one look-up, no lock.
    pub fn find(&self, organization_id: &str) -> Option<Arc<OfOrganization>> {
        self.current.load().get(organization_id).cloned()
    }

    /// Replaces all, or only the changed ones. One caller at a time.
    pub fn update(&self, rows: BudgetRows) {
        let (mut all, records) = match rows {
            BudgetRows::All(records) => (HashMap::new(), records),
            BudgetRows::Changed(records) => (HashMap::clone(&self.current.load()), records),
        };
        for record in records {
            let organization = all.entry(record.organization_id.as_str().into());
            let budgets = Arc::make_mut(organization.or_default());
            match read(&record) {
                Some(state) => _ = budgets.insert(record.name.into(), state),
                None => _ = budgets.remove(&*record.name),
            }
        }
        all.retain(|_, budgets| !budgets.is_empty());
        self.current.store(Arc::new(all));
    }
}

/// Reads a record; `None`: nothing is said any more.
fn read(record: &BudgetRecord) -> Option<BudgetState> {
    let granted = match record.granted.as_deref()? {
        "" => Tally::default(),
        text => text.parse().unwrap_or_else(|_| {
            log::warn!(
                "what was granted to the budget {:?} cannot be read",
                record.name
            );
            Tally::default()
        }),
    };
    Some(BudgetState {
        granted,
        paused_ms: record.paused_at,
    })
}
