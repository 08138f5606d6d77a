//! The rows that [`crate::accounts`] publishes beside the accounts, for the request path.

use std::sync::Arc;

use super::budgets::BudgetSnapshot;
use super::prompts::PromptSnapshot;
use super::providers::ByokSnapshot;
use crate::accounts::PublishedRows;

/// Snapshots that follow the store. Clones share them.
#[derive(Clone)]
pub struct StoreSnapshots {
    pub byok_keys: Arc<ByokSnapshot>,
    pub prompts: Arc<PromptSnapshot>,
    pub budgets: Arc<BudgetSnapshot>,
}

impl StoreSnapshots {
    /// Creates empty snapshots. `fingerprint_key` keys the fingerprints of BYOK keys.
    pub fn new(fingerprint_key: [u8; 32]) -> Self {
        Self {
            byok_keys: Arc::new(ByokSnapshot::new(fingerprint_key)),
            prompts: Arc::default(),
            budgets: Arc::default(),
        }
    }

    /// Follows the store. One caller at a time.
    pub fn update(&self, rows: PublishedRows) {
        match rows {
            PublishedRows::Byok(rows) => self.byok_keys.update(rows),
            PublishedRows::Prompts(rows) => self.prompts.update(rows),
            PublishedRows::Budgets(rows) => self.budgets.update(rows),
        }
    }
}
