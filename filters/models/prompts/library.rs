//! All prompts, as requests find them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::prompt::Prompt;
use super::reference::{LATEST, PromptReference, VersionReference};
use crate::fault::{Fault, FaultKind, quoted};
use crate::fault_code::FaultCode;

/// A prompt with its versions and labels.
#[derive(Clone, Debug)]
pub struct PromptEntry {
    /// The id of the project whose prompt it is, else of the organization.
    pub owner_id: Box<str>,
    pub name: Box<str>,
    /// The version of each label.
    pub labels: BTreeMap<Box<str>, u64>,
    pub versions: BTreeMap<u64, Arc<Prompt>>,
}

/// The prompts in force. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct PromptLibrary {
    entries: HashMap<Box<str>, Arc<PromptEntry>>,
    /// By owner and name.
    names: HashMap<Box<str>, HashMap<Box<str>, Arc<PromptEntry>>>,
}

/// The version that a request means.
#[derive(Clone, Debug)]
pub struct FoundPrompt {
    pub prompt: Arc<Prompt>,
    pub name: Box<str>,
    pub version: u64,
    pub label: Option<Box<str>>,
}

/// Where a request named a prompt, for the message that it does not exist.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReferencePlace {
    /// In the model string.
    Model,
    /// In the object `prompt`.
    Object,
}

impl PromptLibrary {
    /// Creates a library of prompts by their ids.
    pub fn new(entries: impl IntoIterator<Item = (Box<str>, PromptEntry)>) -> Self {
        let entries = entries.into_iter();
        Self::index(entries.map(|(id, entry)| (id, Arc::new(entry))).collect())
    }

    /// Returns the library after changes: `None` removes a prompt. Cost: the number of prompts, of which none is copied.
    pub fn with(&self, changes: impl IntoIterator<Item = (Box<str>, Option<PromptEntry>)>) -> Self {
        let mut entries = self.entries.clone();
        for (id, entry) in changes {
            match entry {
                Some(entry) => _ = entries.insert(id, Arc::new(entry)),
                None => _ = entries.remove(&id),
            }
        }
        Self::index(entries)
    }

    fn index(entries: HashMap<Box<str>, Arc<PromptEntry>>) -> Self {
        let mut names: HashMap<Box<str>, HashMap<Box<str>, Arc<PromptEntry>>> = HashMap::new();
        for entry in entries.values() {
            let of_owner = names.entry(entry.owner_id.clone()).or_default();
            of_owner.insert(entry.name.clone(), Arc::clone(entry));
        }
        Self { entries, names }
    }

    /// Returns the prompt of this id.
    pub fn entry(&self, id: &str) -> Option<&PromptEntry> {
        self.entries.get(id).map(|entry| &**entry)
    }

    /// Returns the prompts that a caller of this organization and project may use, by name. A prompt of the project counts before
    /// the organization's of the same name.
    pub fn usable_by(&self, (organization_id, project_id): (&str, &str)) -> Vec<&PromptEntry> {
        let of_owners = [organization_id, project_id].into_iter();
        let entries = of_owners
            .filter_map(|owner| self.names.get(owner))
            .flatten();
        let usable: BTreeMap<&str, &PromptEntry> =
            entries.map(|(name, entry)| (&**name, &**entry)).collect();
        usable.into_values().collect()
    }

    /// Returns the version that a caller of this organization and project means. A prompt of the project counts before the
    /// organization's of the same name.
    ///
    /// Errors: 404 naming the prompt, the label or the version. Cost: no lock; copies of the names.
    pub fn find(
        &self,
        (organization_id, project_id): (&str, &str),
        reference: &PromptReference,
        place: ReferencePlace,
    ) -> Result<FoundPrompt, Fault> {
        let of = |owner: &str| self.names.get(owner)?.get(&reference.name);
        let Some(entry) = of(project_id).or_else(|| of(organization_id)) else {
            let message = format!("there is no prompt {:?}", quoted(&reference.name));
            return Err(unknown(place.field("prompt.id"), message));
        };
        let number = entry.number(&reference.version).ok_or_else(|| {
            let (field, message) = entry.lacks(&reference.version);
            unknown(place.field(field), message)
        })?;
        let lacks = || unknown(place.field("prompt.version"), entry.lacks_number(number));
        Ok(FoundPrompt {
            prompt: Arc::clone(entry.versions.get(&number).ok_or_else(lacks)?),
            name: reference.name.clone(),
            version: number,
            label: match &reference.version {
                VersionReference::Label(label) => Some(label.clone()),
                VersionReference::Number(_) => None,
            },
        })
    }
}

impl PromptEntry {
    /// Returns the number of the version that is meant, if there is one.
    pub fn number(&self, version: &VersionReference) -> Option<u64> {
        match version {
            VersionReference::Number(number) => {
                self.versions.contains_key(number).then_some(*number)
            }
            VersionReference::Label(label) if &**label == LATEST => {
                self.versions.last_key_value().map(|(number, _)| *number)
            }
            VersionReference::Label(label) => self.labels.get(label).copied(),
        }
    }

    /// Returns the field of the object `prompt` that names what is not there, and the message.
    fn lacks(&self, version: &VersionReference) -> (&'static str, String) {
        match version {
            VersionReference::Number(number) => ("prompt.version", self.lacks_number(*number)),
            VersionReference::Label(label) => {
                let known = self.labels.keys().map(|label| &**label);
                let known: Vec<_> = known.chain([LATEST]).collect();
                let message = format!(
                    "the prompt `{}` has no label {:?}; it has {}",
                    self.name,
                    quoted(label),
                    quoted(&known.join(", "))
                );
                ("prompt.label", message)
            }
        }
    }

    fn lacks_number(&self, number: u64) -> String {
        let newest = self
            .versions
            .last_key_value()
            .map_or(0, |(newest, _)| *newest);
        format!(
            "the prompt `{}` has no version {number}; its newest is {newest}",
            self.name
        )
    }
}

impl ReferencePlace {
    fn field(self, of_object: &'static str) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Object => of_object,
        }
    }
}

fn unknown(field: &str, message: String) -> Fault {
    Fault::new(FaultKind::NotFound, message)
        .with_code(FaultCode::PromptNotFound)
        .with_param(field)
}
