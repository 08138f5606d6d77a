//! A change of accounts, and what of it goes into the log.

use std::ops::{Deref, DerefMut};

use filters::audit::{Actor, AuditKind, EntryFields, Verb};
use filters::manifest::FieldChange;
use serde_json::{Map, Value, json};

use super::StoreError;
use super::audit_append::{NewEntry, append};
use super::audit_state::{self, StoredThing};
use super::connections::Connected;
use super::feed::{Changed, FeedChange};

/// A transaction that changes accounts. If it is dropped, nothing has changed.
pub(super) struct AccountChange {
    feed: FeedChange,
    actor: Actor,
}

/// A thing that a change is about to change.
pub(super) struct Noted {
    kind: AuditKind,
    verb: Verb,
    id: String,
    found: NotedState,
}

/// What is known of the thing before it changes.
enum NotedState {
    /// As the store had it; `None`: there was no such thing.
    Stored(Option<StoredThing>),
    /// The fields that change, and to what, with the name of the thing and the id of its organization.
    Planned {
        name: String,
        organization_id: String,
        fields: EntryFields,
    },
}

impl Deref for AccountChange {
    type Target = Connected;
    fn deref(&self) -> &Connected {
        &self.feed
    }
}

impl DerefMut for AccountChange {
    fn deref_mut(&mut self) -> &mut Connected {
        &mut self.feed
    }
}

impl Noted {
    /// Notes a thing that the change makes.
    pub(super) fn new(kind: AuditKind, verb: Verb, id: &str) -> Self {
        Self {
            kind,
            verb,
            id: id.to_owned(),
            found: NotedState::Stored(None),
        }
    }

    /// Notes a thing of which a plan says what changes, so that nothing has to be read.
    pub(super) fn planned(
        (kind, verb, is_new): (AuditKind, Verb, bool),
        id: &str,
        (name, organization_id): (&str, &str),
        changes: &[FieldChange],
    ) -> Self {
        let side = |value: fn(&FieldChange) -> &Value| -> Map<String, Value> {
            let all = changes.iter();
            all.map(|it| (it.name.clone(), value(it).clone())).collect()
        };
        let before = (!is_new).then(|| side(|it| &it.before));
        let after = side(|it| &it.after);
        Self {
            kind,
            verb,
            id: id.to_owned(),
            found: NotedState::Planned {
                name: name.to_owned(),
                organization_id: organization_id.to_owned(),
                fields: EntryFields::compare(kind, before.as_ref(), Some(&after)),
            },
        }
    }

    /// Adds what goes with a thing that is deleted: how many of each there are.
    pub(super) fn with_parts(mut self, parts: &[(&'static str, i64)]) -> Self {
        let counts = parts.iter().filter(|(_, count)| *count > 0);
        let counts: Map<String, Value> = counts
            .map(|(what, count)| (what.replace(' ', "_").to_lowercase(), json!(count)))
            .collect();
        if !counts.is_empty() {
            self.add("with", Value::Object(counts));
        }
        self
    }

    /// Adds a field of the thing before it changes.
    pub(super) fn add(&mut self, field: &'static str, value: Value) {
        if let NotedState::Stored(Some(thing)) = &mut self.found {
            thing.fields.insert(field.to_owned(), value);
        }
    }
}

impl AccountChange {
    /// Continues a change of the feed as a change by someone.
    pub(super) fn new(feed: FeedChange, actor: Actor) -> Self {
        Self { feed, actor }
    }

    /// Notes a thing that the change is about to change, as it is now.
    pub(super) async fn note(
        &mut self,
        kind: AuditKind,
        verb: Verb,
        id: &str,
    ) -> Result<Noted, StoreError> {
        Ok(Noted {
            kind,
            verb,
            id: id.to_owned(),
            found: NotedState::Stored(audit_state::read(self, (kind, verb), id).await?),
        })
    }

    /// Writes to the feed what has changed, and to the log what was noted, and commits.
    pub(super) async fn commit(
        self,
        changed: &[Changed<'_>],
        noted: Noted,
    ) -> Result<(), StoreError> {
        self.commit_all(changed, vec![noted]).await
    }

    /// Writes to the feed what has changed, and to the log each thing that was noted, and commits.
    pub(super) async fn commit_all(
        mut self,
        changed: &[Changed<'_>],
        noted: Vec<Noted>,
    ) -> Result<(), StoreError> {
        let mut entries = Vec::with_capacity(noted.len());
        for noted in noted {
            entries.extend(self.make_entry(noted).await?);
        }
        append(&mut self.feed, &self.actor, entries).await?;
        self.feed.commit(changed).await
    }

    /// Returns the entry of a thing that was changed; `None`: nothing has changed.
    async fn make_entry(&mut self, noted: Noted) -> Result<Option<NewEntry>, StoreError> {
        let Noted {
            kind,
            verb,
            id,
            found,
        } = noted;
        let (name, organization_id, organization, fields) = match found {
            NotedState::Planned {
                name,
                organization_id,
                fields,
            } => (name, organization_id, None, fields),
            NotedState::Stored(before) => {
                let after = audit_state::read(self, (kind, verb), &id).await?;
                let fields =
                    |thing: &Option<StoredThing>| thing.as_ref().map(|it| it.fields.clone());
                let (was, is) = (fields(&before), fields(&after));
                let fields = EntryFields::compare(kind, was.as_ref(), is.as_ref());
                let Some(thing) = after.or(before) else {
                    return Ok(None);
                };
                (
                    thing.name,
                    thing.organization_id,
                    Some(thing.organization),
                    fields,
                )
            }
        };
        Ok((!fields.is_same()).then_some(NewEntry {
            kind,
            verb,
            id,
            name,
            organization_id,
            organization,
            fields,
        }))
    }
}
