//! What API keys share: organizations, projects and members, of which each key's caller is made.
//!
//! A row that this version cannot read, because a newer one wrote it or the store is damaged, refuses only the keys that
//! need it: a feed that stopped at such a row would keep every later revocation from coming into force.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use filters::accounts::{
    AllowedRegions, Caller, KeyHash, KeyRow, KeyState, KeyTerms, Member, Mode, OrganizationStatus,
    Plan, TermsFile,
};

use super::StoreError;
use super::fan_out::FanOut;
use super::feed::{Changes, DeletedKind};
use super::members::budget;
use super::projects::cache_ttl_s;
use super::records::{
    AccountRecord, KeyRecord, MemberRecord, OrganizationRecord, ProjectRecord, SharedKind,
};
use super::regions;

/// The maximum number of unreadable rows that are named; others are only counted.
const MAX_NAMED: usize = 8;

/// After this many halvings the largest step is 1.
const MAX_HALVINGS: u32 = 14;

/// Rows that this version cannot read.
#[derive(Debug, Default)]
pub struct UnreadableRows {
    /// What is wrong with the first ones.
    pub named: Vec<String>,
    pub count: u64,
}

impl UnreadableRows {
    /// Adds a row: what it is, its id, and why it cannot be read.
    pub(super) fn add(&mut self, kind: &str, id: &str, error: &StoreError) {
        self.count += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!("{kind} {id}: {error}"));
        }
    }

    /// Takes the value of a row, or adds the row and returns the default value.
    fn value<T: Default>(
        &mut self,
        row: (&str, &str),
        is_unreadable: &mut bool,
        read: Result<T, StoreError>,
    ) -> T {
        read.unwrap_or_else(|error| {
            self.add(row.0, row.1, &error);
            *is_unreadable = true;
            T::default()
        })
    }
}

#[derive(Default)]
struct OrganizationRow {
    id: Arc<str>,
    name: Arc<str>,
    plan: Plan,
    plan_since_ms: i64,
    status: OrganizationStatus,
    regions: Option<Arc<AllowedRegions>>,
    exports_content: bool,
    keep_bodies_until_ms: Option<i64>,
    is_unreadable: bool,
}

#[derive(Default)]
struct ProjectRow {
    id: Arc<str>,
    organization_id: String,
    name: Arc<str>,
    mode: Mode,
    cache_ttl_s: Option<u32>,
    is_archived: bool,
    experiments: Option<Arc<str>>,
    regions: Option<Arc<AllowedRegions>>,
    is_unreadable: bool,
}

/// What keys share: organizations, projects and members, by id.
#[derive(Default)]
pub struct SharedRows {
    organizations: HashMap<String, OrganizationRow>,
    projects: HashMap<String, ProjectRow>,
    /// `None`: it cannot be read.
    members: HashMap<String, Option<Arc<Member>>>,
    /// The keys that are still to be read again, because something of these has changed.
    pub(super) fan_out: FanOut,
    /// How often the size of a step was halved, because the store did not answer in time.
    halvings: u32,
}

/// Equal values of the keys that are read together, stored once.
#[derive(Default)]
pub(super) struct Interned {
    terms: HashMap<String, Arc<KeyTerms>>,
    labels: HashMap<String, Arc<str>>,
}

impl SharedRows {
    /// Adds a row, replaces the one of its id, or removes it. Rows of other kinds are left out.
    pub(super) fn add(&mut self, record: &AccountRecord, unreadable: &mut UnreadableRows) {
        match record {
            AccountRecord::Organization(record) => self.add_organization(record, unreadable),
            AccountRecord::Project(record) => self.add_project(record, unreadable),
            AccountRecord::Member(record) => self.add_member(record, unreadable),
            AccountRecord::Deleted(kind, id) => self.remove(*kind, id),
            AccountRecord::Key(_)
            | AccountRecord::ByokKeys(..)
            | AccountRecord::Prompt(_)
            | AccountRecord::Budget(_)
            | AccountRecord::Revoked(..)
            | AccountRecord::Revision(_) => {}
        }
    }

    /// Removes a row that was deleted, of an organization with its projects. Its keys are found no more.
    fn remove(&mut self, kind: DeletedKind, id: &str) {
        match kind {
            DeletedKind::Organization => {
                self.organizations.remove(id);
                self.projects
                    .retain(|_, project| project.organization_id != id);
            }
            DeletedKind::Project => _ = self.projects.remove(id),
            DeletedKind::Member => _ = self.members.remove(id),
            DeletedKind::Key => {}
        }
    }

    fn add_organization(&mut self, record: &OrganizationRecord, unreadable: &mut UnreadableRows) {
        let mut is_unreadable = false;
        let named = ("organization", record.id.as_str());
        let plan = parse("plan", &record.plan);
        let regions = regions::read(record.regions.as_deref());
        let row = OrganizationRow {
            id: record.id.as_str().into(),
            name: record.name.as_str().into(),
            plan: unreadable.value(named, &mut is_unreadable, plan),
            regions: unreadable
                .value(named, &mut is_unreadable, regions)
                .map(Arc::new),
            plan_since_ms: record.plan_since,
            status: record.status(),
            exports_content: record.exports_content,
            keep_bodies_until_ms: record.keep_bodies_until,
            is_unreadable,
        };
        self.organizations.insert(record.id.clone(), row);
    }

    fn add_project(&mut self, record: &ProjectRecord, unreadable: &mut UnreadableRows) {
        let (mut is_unreadable, named) = (false, ("project", record.id.as_str()));
        let mode = parse("mode", &record.mode);
        let mode = unreadable.value(named, &mut is_unreadable, mode);
        let cache_ttl_s = cache_ttl_s(record.cache_ttl_s);
        let regions = regions::read(record.regions.as_deref());
        let row = ProjectRow {
            id: record.id.as_str().into(),
            organization_id: record.organization_id.clone(),
            name: record.name.as_str().into(),
            mode,
            cache_ttl_s: unreadable.value(named, &mut is_unreadable, cache_ttl_s),
            is_archived: record.status == "archived",
            experiments: record.experiments.as_deref().map(Arc::from),
            regions: unreadable
                .value(named, &mut is_unreadable, regions)
                .map(Arc::new),
            is_unreadable,
        };
        self.projects.insert(record.id.clone(), row);
    }

    fn add_member(&mut self, record: &MemberRecord, unreadable: &mut UnreadableRows) {
        let mut is_unreadable = false;
        let budget = budget(record.budget.as_deref());
        let budget = unreadable.value(("member", &record.id), &mut is_unreadable, budget);
        let member = (!is_unreadable).then(|| Member {
            id: record.id.as_str().into(),
            budget,
        });
        self.members.insert(record.id.clone(), member.map(Arc::new));
    }

    /// Halves the steps in which changes are followed, because the store did not answer in time.
    pub fn slow_down(&mut self) {
        self.halvings = (self.halvings + 1).min(MAX_HALVINGS);
    }

    /// Doubles the steps again.
    pub fn speed_up(&mut self) {
        self.halvings = self.halvings.saturating_sub(1);
    }

    /// Returns the size of a step that is so large while the store answers in time; at least 1.
    pub(super) fn step(&self, size: i64) -> i64 {
        (size >> self.halvings).max(1)
    }

    /// Replaces a row by one that nothing can be read of.
    pub(super) fn refuse(&mut self, kind: SharedKind, id: String) {
        let is_unreadable = true;
        match kind {
            SharedKind::Organization => {
                let row = OrganizationRow {
                    is_unreadable,
                    ..OrganizationRow::default()
                };
                self.organizations.insert(id, row);
            }
            SharedKind::Project => {
                let organization_id = self
                    .projects
                    .get(&id)
                    .map(|row| row.organization_id.clone());
                let row = ProjectRow {
                    organization_id: organization_id.unwrap_or_default(),
                    is_unreadable,
                    ..ProjectRow::default()
                };
                self.projects.insert(id, row);
            }
            SharedKind::Member => {
                self.members.insert(id, None);
            }
        }
    }

    /// Returns the projects that have changed, or whose organization has.
    pub(super) fn projects_of(&self, changes: &Changes) -> BTreeSet<String> {
        let mut projects = changes.projects.clone();
        if !changes.organizations.is_empty() {
            let of_changed = self.projects.iter().filter(|(_, project)| {
                changes
                    .organizations
                    .contains(project.organization_id.as_str())
            });
            projects.extend(of_changed.map(|(id, _)| id.clone()));
        }
        projects
    }

    /// Returns the row of a key, or `None` if the key is newer than the shared rows, or its hash cannot be read.
    pub(super) fn key_row(
        &self,
        key: KeyRecord,
        interned: &mut Interned,
        unreadable: &mut UnreadableRows,
    ) -> Option<(KeyHash, KeyRow)> {
        let project = self.projects.get(&key.project_id)?;
        let organization = self.organizations.get(&project.organization_id)?;
        let Ok(hash) = key.hash.try_into() else {
            unreadable.add("key", &key.id, &StoreError::Damaged("hash"));
            return None;
        };
        let mut is_unreadable = project.is_unreadable || organization.is_unreadable;
        let terms = interned.terms(key.terms);
        let terms = unreadable.value(("key", &key.id), &mut is_unreadable, terms);
        let member = key.member_id.and_then(|id| self.members.get(&id));
        is_unreadable |= member.is_some_and(Option::is_none);
        let caller = Caller {
            organization_id: Arc::clone(&organization.id),
            organization: Arc::clone(&organization.name),
            project_id: Arc::clone(&project.id),
            project: Arc::clone(&project.name),
            key_id: key.id.into(),
            key_label: interned.label(key.label),
            mode: project.mode,
            plan: organization.plan,
            plan_since_ms: organization.plan_since_ms,
            member: member.cloned().flatten(),
            terms,
            cache_ttl_s: project.cache_ttl_s,
            experiments: project.experiments.clone(),
            expires_at_ms: key.expires_at,
            is_debug: key.is_debug,
            regions: [organization.regions.clone(), project.regions.clone()],
            exports_content: organization.exports_content,
            keep_bodies_until_ms: organization.keep_bodies_until_ms,
        };
        let row = KeyRow {
            caller: Arc::new(caller),
            state: KeyState::from_times(key.disabled_at, key.revoked_at),
            is_unreadable,
            organization_status: organization.status,
            is_project_archived: project.is_archived,
        };
        Some((KeyHash::from_bytes(hash), row))
    }
}

impl Interned {
    fn terms(&mut self, text: Option<String>) -> Result<Option<Arc<KeyTerms>>, StoreError> {
        let Some(text) = text else { return Ok(None) };
        if let Some(terms) = self.terms.get(&text) {
            return Ok(Some(Arc::clone(terms)));
        }
        let file: TermsFile =
            serde_json::from_str(&text).map_err(|_| StoreError::Damaged("terms"))?;
        let terms = Arc::new(file.check().map_err(|_| StoreError::Damaged("terms"))?);
        self.terms.insert(text, Arc::clone(&terms));
        Ok(Some(terms))
    }

    fn label(&mut self, label: String) -> Arc<str> {
        let entry = self.labels.entry(label);
        Arc::clone(entry.or_insert_with_key(|label| Arc::from(label.as_str())))
    }
}

fn parse<T: std::str::FromStr>(column: &'static str, text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| StoreError::Damaged(column))
}
