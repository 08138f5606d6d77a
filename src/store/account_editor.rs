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
use super::{SeenThing, Store, StoreError, seen_things};

/// A store as someone changes its accounts.
#[derive(Clone, Copy)]
pub struct AccountEditor<'a> {
    store: &'a Store,
    actor: &'a Actor,
    /// What has to be still as it was seen.
    seen: Option<&'a SeenThing>,
}

impl Store {
    /// Returns the store as this actor changes its accounts.
    pub fn by<'a>(&'a self, actor: &'a Actor) -> AccountEditor<'a> {
        AccountEditor {
            store: self,
            actor,
            seen: None,
        }
    }
}

impl Deref for AccountEditor<'_> {
    type Target = Store;

    fn deref(&self) -> &Store {
        self.store
    }
}

impl<'a> AccountEditor<'a> {
    /// Returns the store as it is changed only if a thing is still as it was seen. Else changes are refused with
    /// [`StoreError::ChangedMeanwhile`].
    #[must_use]
    pub fn if_still(self, seen: &'a SeenThing) -> Self {
        Self {
            seen: Some(seen),
            ..self
        }
    }
}

impl AccountEditor<'_> {
    /// Begins a change of accounts.
    pub(super) async fn change(&self) -> Result<AccountChange, StoreError> {
        let feed = self.store.change_without_entry().await?;
        let mut change = AccountChange::new(feed, self.actor.clone());
        if let Some(seen) = self.seen {
            seen_things::check(&mut change, seen).await?;
        }
        Ok(change)
    }
}
