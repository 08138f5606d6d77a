//! The usage of clients' sessions, of their agents, and of tags.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use filters::ledger::usage_query::UsageGroup;
use filters::ledger::{CallOutcome, CallOwner, LedgerEntry, SessionNames};
use sqlx::AnyConnection;

use super::super::{Store, StoreError};
use super::HOUR_MS;
use super::hour_tables::{SESSIONS, TAGS};
use super::named_hours;
use super::usage::{Usage, of_call};
use super::usage_hours::{AgentOrigin, Grouping, UsagePart, UsageScope};

/// Adds the calls of sessions, and those with tags, to the hours in which they ended. Failed ones are no usage.
pub(super) async fn add(
    change: &mut AnyConnection,
    entries: &[&LedgerEntry],
) -> Result<(), StoreError> {
    let (mut of_sessions, mut of_tags) = (Vec::new(), Vec::new());
    let took = entries
        .iter()
        .filter(|entry| entry.outcome != CallOutcome::Failed);
    for entry in took {
        let (organization, key) = (&*entry.owner.organization_id, &*entry.owner.key_id);
        if let Some(names) = &entry.session {
            let [session, agent, parent] = [&*names.session, &*names.agent, &*names.parent];
            of_sessions.push((*entry, [organization, key, session, agent, parent]));
        }
        let tags = entry.tags().iter();
        of_tags.extend(tags.map(|tag| (*entry, [organization, key, &**tag])));
    }
    named_hours::add(change, &SESSIONS, &of_sessions).await?;
    named_hours::add(change, &TAGS, &of_tags).await
}

impl Store {
    /// Returns the usage of an organization since a time by session, by the agents of sessions, or by tag, in the order of their
    /// names.
    ///
    /// Times count as in [`Self::usage`]; single calls are kept without tags, so by tag the first hour counts as a whole. Errors: [`StoreError::NotFound`].
    pub async fn usage_by_session(
        &self,
        organization: &str,
        since_ms: i64,
        group: UsageGroup,
    ) -> Result<Vec<UsagePart>, StoreError> {
        let scope = UsageScope {
            organization_id: self.organization(organization).await?.id.into(),
            key_id: None,
        };
        let since = self.since(since_ms).await?;
        let grouping = Grouping::new(group);
        let read = async |hours| self.read_parts(&scope, &grouping, hours, "").await;
        let mut parts = read((since.first_hour, i64::MAX)).await?;
        if group == UsageGroup::Tag
            && let Some(hour) = since.cut_hour
        {
            parts.extend(read((hour, since.first_hour)).await?);
        } else if let Some(hour) = since.cut_hour {
            let of_hour = read((hour, since.first_hour)).await?;
            let id = &scope.organization_id;
            let (all, in_hour) = self.calls_of_sessions((id, hour), since_ms, group).await?;
            // If some of its calls are gone, the hour counts as a whole.
            let summed: i64 = of_hour.iter().map(|part| part.usage.requests).sum();
            parts.extend(if all < summed { of_hour } else { in_hour });
        }
        let mut sums: BTreeMap<(String, String), UsagePart> = BTreeMap::new();
        for part in parts {
            let session = part.origin.as_ref().map(|origin| origin.session.clone());
            let key = (session.unwrap_or_default(), part.usage.name.clone());
            match sums.entry(key) {
                Entry::Vacant(place) => _ = place.insert(part),
                Entry::Occupied(mut sum) => sum.get_mut().add(part),
            }
        }
        Ok(sums.into_values().collect())
    }

    /// Returns the number of all calls of sessions of an hour, and those since a time.
    async fn calls_of_sessions(
        &self,
        (id, hour): (&str, i64),
        since_ms: i64,
        group: UsageGroup,
    ) -> Result<(i64, Vec<UsagePart>), StoreError> {
        let of_hour = (hour * HOUR_MS, (hour + 1) * HOUR_MS);
        let is_wanted = |owner: &CallOwner| *owner.organization_id == *id;
        let (mut all, mut since) = (0, Vec::new());
        self.visit_calls(of_hour, is_wanted, |call| {
            let names = call.session.as_deref();
            let Some(names) = names.filter(|_| call.outcome != CallOutcome::Failed) else {
                return;
            };
            all += 1;
            let is_since = call.at_ms >= since_ms;
            since.extend(is_since.then(|| UsagePart::of_call(call, names, group)));
        })
        .await?;
        Ok((all, since))
    }
}

impl UsagePart {
    /// Returns a single call of a session.
    fn of_call(call: &LedgerEntry, names: &SessionNames, group: UsageGroup) -> Self {
        let (name, origin) = match group {
            UsageGroup::Agent => {
                let (session, parent) = (names.session.to_string(), names.parent.to_string());
                (&names.agent, Some(AgentOrigin { session, parent }))
            }
            _ => (&names.session, None),
        };
        Self {
            usage: Usage {
                name: name.to_string(),
                ..of_call(call)
            },
            label: None,
            origin,
        }
    }

    /// Adds a part of the same name.
    fn add(&mut self, other: Self) {
        self.usage.add(&other.usage);
        if let Some((own, other)) = self.origin.as_mut().zip(other.origin) {
            own.parent = other.parent.max(std::mem::take(&mut own.parent));
        }
    }
}
