//! Who changes accounts, and the log of what they change.
//!
//! All changes of accounts are methods of [`AccountEditor`], which knows who makes them. They end with
//! [`AccountChange::commit`], which takes what is to be in the log. So a change cannot be made without an entry, and an entry is
//! there exactly if its change is: both are in one transaction. What changes nothing has no entry.
//!
//! Processes that append at once take turns at the row of `store_state`, which every change locks first. So there is one chain.

use std::ops::Deref;

use filters::audit::Actor;

use super::account_change::AccountChange;
use super::{Store, StoreError};

/// A store as someone changes its accounts.
#[derive(Clone, Copy)]
pub struct AccountEditor<'a> {
    store: &'a Store,
    actor: &'a Actor,
}

impl Store {
    /// Returns the store as this actor changes its accounts.
    pub fn by<'a>(&'a self, actor: &'a Actor) -> AccountEditor<'a> {
        AccountEditor { store: self, actor }
    }
}

impl Deref for AccountEditor<'_> {
    type Target = Store;

    fn deref(&self) -> &Store {
        self.store
    }
}

impl AccountEditor<'_> {
    /// Begins a change of accounts.
    pub(super) async fn change(&self) -> Result<AccountChange, StoreError> {
        let feed = self.store.change_without_entry().await?;
        Ok(AccountChange::new(feed, self.actor.clone()))
    }
}
