//! The plan while it is made: things are found in the store, changes and faults are gathered.

use std::collections::{BTreeMap, BTreeSet};

use super::changes::{Action, FieldChange, PlannedChange, PlannedRow};
use super::order::{NameConflict, Naming, order};
use super::{DeclaredMember, DeclaredOrganization, DeclaredProject, ManifestFault};

/// A thing that is found by its id, else by its name.
pub(super) trait Named {
    const KIND: &'static str;
    /// The prefix of ids.
    const PREFIX: &'static str;
    fn id(&self) -> &str;
    fn name(&self) -> &str;
}

impl Named for DeclaredOrganization {
    const KIND: &'static str = "organization";
    const PREFIX: &'static str = "org";
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for DeclaredProject {
    const KIND: &'static str = "project";
    const PREFIX: &'static str = "proj";
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for DeclaredMember {
    const KIND: &'static str = "member";
    const PREFIX: &'static str = "mem";
    fn id(&self) -> &str {
        &self.id
    }
    fn name(&self) -> &str {
        &self.name
    }
}

/// A thing of the file, and what the store has of it.
pub(super) struct Match<'a, T> {
    pub declared: &'a T,
    pub stored: Option<&'a T>,
    pub id: String,
    /// Its number in the list of the file.
    pub index: usize,
}

/// The plan so far.
pub(super) struct Planner<'a> {
    pub is_pruning: bool,
    pub new_id: &'a mut dyn FnMut(&'static str) -> String,
    pub changes: Vec<PlannedChange>,
    /// Changes behind all others.
    pub removals: Vec<PlannedChange>,
    pub faults: Vec<ManifestFault>,
}

/// What the things of an organization can belong to: ids by names, as they will be.
pub(super) struct Owners<'a> {
    pub organization: &'a str,
    pub organization_id: &'a str,
    pub projects: BTreeMap<String, String>,
    pub members: BTreeMap<String, String>,
}

impl Planner<'_> {
    pub(super) fn refuse(&mut self, path: String, message: String, cure: &str) {
        self.faults.push(ManifestFault::new(path, message, cure));
    }

    /// Finds the things of a list in the store. They are in the order in which names become free.
    pub(super) fn match_all<'a, T: Named>(
        &mut self,
        list: &str,
        declared: &'a [T],
        stored: &'a [T],
    ) -> Vec<Match<'a, T>> {
        let by_id: BTreeMap<&str, &T> = stored.iter().map(|it| (it.id(), it)).collect();
        let by_name: BTreeMap<&str, &T> = stored.iter().map(|it| (it.name(), it)).collect();
        let taken: BTreeSet<&str> = declared.iter().map(Named::id).collect();
        let mut matched = Vec::with_capacity(declared.len());
        for (index, it) in declared.iter().enumerate() {
            let known = match it.id() {
                // What another entry names by its id has its name no longer.
                "" => {
                    let named = by_name.get(it.name());
                    named.filter(|it| !taken.contains(it.id()))
                }
                id => by_id.get(id),
            };
            let id = match (known, it.id()) {
                (Some(known), _) => known.id().to_owned(),
                (None, "") => (self.new_id)(T::PREFIX),
                (None, id) => id.to_owned(),
            };
            matched.push(Match {
                declared: it,
                stored: known.copied(),
                id,
                index,
            });
        }
        let namings: Vec<Naming<'_>> = matched
            .iter()
            .map(|it| Naming {
                before: it.stored.map(Named::name),
                after: it.declared.name(),
            })
            .collect();
        let ids: BTreeSet<&str> = matched.iter().map(|it| it.id.as_str()).collect();
        let is_held = |name: &str| by_name.get(name).is_some_and(|it| !ids.contains(it.id()));
        match order(&namings, is_held) {
            Ok(sorted) => {
                let mut places: Vec<Option<Match<'a, T>>> = matched.into_iter().map(Some).collect();
                let sorted = sorted.into_iter();
                sorted
                    .filter_map(|index| places.get_mut(index)?.take())
                    .collect()
            }
            Err((index, taken)) => {
                let path = format!("{list}[{index}].name");
                let name = declared.get(index).map_or("", Named::name);
                let other = by_name.get(name).map_or("", |it| it.id());
                self.refuse_name::<T>(path, name, other, &taken);
                Vec::new()
            }
        }
    }

    fn refuse_name<T: Named>(
        &mut self,
        path: String,
        name: &str,
        other: &str,
        taken: &NameConflict,
    ) {
        let kind = T::KIND;
        match taken {
            NameConflict::Held => {
                let message = format!("the {kind} `{other}` has the name {name:?}");
                self.refuse(path, message, "name it by that id, or choose another name");
            }
            NameConflict::Round(names) => {
                let names = names.join("` → `");
                let message = format!("the names go round: `{names}`");
                self.refuse(path, message, "give one of them another name first");
            }
        }
    }

    /// Adds a change of a thing with a name, if there is one.
    pub(super) fn push<T: Named>(
        &mut self,
        is_stored: bool,
        (id, name): (&str, String),
        (fields, row): (Vec<FieldChange>, PlannedRow),
        path: String,
    ) {
        if is_stored && fields.is_empty() {
            return;
        }
        self.changes.push(PlannedChange {
            action: if is_stored {
                Action::Update
            } else {
                Action::Create
            },
            kind: T::KIND,
            id: id.to_owned(),
            name,
            fields,
            row,
            path,
        });
    }

    /// Returns the id of the project or the member that a thing names.
    pub(super) fn find_owner(
        &mut self,
        path: &str,
        field: &'static str,
        name: &str,
        known: &BTreeMap<String, String>,
    ) -> Option<String> {
        let found = known.get(name).cloned();
        if found.is_none() {
            let message = format!("the organization has no {field} {name:?}");
            let cure = match self.is_pruning {
                true => "add it to the file: what the file does not name is taken out of use",
                false => "add it to the file, or correct the name",
            };
            self.refuse(format!("{path}.{field}"), message, cure);
        }
        found
    }
}

/// Returns the ids of a list by name, as they will be.
pub(super) fn ids<T: Named>(
    matched: &[Match<'_, T>],
    stored: &[T],
    is_pruning: bool,
) -> BTreeMap<String, String> {
    let kept = unnamed(stored, matched).filter(|_| !is_pruning);
    let kept = kept.map(|it| (it.name().to_owned(), it.id().to_owned()));
    let matched = matched
        .iter()
        .map(|it| (it.declared.name().to_owned(), it.id.clone()));
    kept.chain(matched).collect()
}

/// Returns the new names of what gets another one, by the old names.
pub(super) fn new_names<'a, T: Named>(matched: &[Match<'a, T>]) -> BTreeMap<&'a str, &'a str> {
    let names = matched.iter();
    let names = names.filter_map(|it| Some((it.stored?.name(), it.declared.name())));
    names.filter(|(old, new)| old != new).collect()
}

/// Returns what the store has and the file does not name.
pub(super) fn unnamed<'a, T: Named>(
    stored: &'a [T],
    matched: &[Match<'_, T>],
) -> impl Iterator<Item = &'a T> + use<'a, T> {
    let named: BTreeSet<String> = matched.iter().map(|it| it.id.clone()).collect();
    stored.iter().filter(move |it| !named.contains(it.id()))
}
