//! The managed prompts in force, and how a request that names one is completed.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use filters::accounts::Caller;
use filters::fault::Fault;
use filters::models::front::Front;
use filters::models::managed::ManagedRequest;
use filters::models::prompts::library::{PromptEntry, PromptLibrary};
use filters::models::prompts::prompt::Prompt;
use filters::models::prompts::tree::Node;
use filters::models::request::ModelRequest;

use super::Models;
use crate::accounts::PromptRows;
use crate::store::PromptRecord;

/// The prompts in force. [`Self::update`] follows the rows that [`crate::accounts`] publishes.
#[derive(Default)]
pub struct PromptSnapshot {
    current: ArcSwap<PromptLibrary>,
}

impl PromptSnapshot {
    /// Returns the prompts in force. Cost: no lock, no allocation.
    pub fn current(&self) -> Guard<Arc<PromptLibrary>> {
        self.current.load()
    }

    /// Replaces all prompts, or those that have changed. One caller at a time. Cost: each new version is compiled once.
    pub fn update(&self, rows: PromptRows) {
        let before = self.current();
        let library = match rows {
            PromptRows::All(records) => {
                let entries = records.into_iter().map(|record| entry(record, &before));
                PromptLibrary::new(entries)
            }
            PromptRows::Changed(records) => before.with(records.into_iter().map(|record| {
                let is_removed = record.versions.is_empty();
                let (id, entry) = entry(record, &before);
                (id, (!is_removed).then_some(entry))
            })),
        };
        self.current.store(Arc::new(library));
    }
}

/// Returns a prompt by its id. A version that is known already is not compiled again, because versions never change.
fn entry(record: PromptRecord, before: &PromptLibrary) -> (Box<str>, PromptEntry) {
    let known = before.entry(&record.id);
    let mut versions = BTreeMap::new();
    for (number, content) in record.versions {
        let known = known.and_then(|entry| entry.versions.get(&number));
        match known.cloned().or_else(|| compile(&content)) {
            Some(prompt) => _ = versions.insert(number, prompt),
            None => log::warn!(
                "version {number} of the prompt {} cannot be read",
                record.id
            ),
        }
    }
    let labels = record.labels.into_iter();
    let entry = PromptEntry {
        owner_id: record.owner_id.into(),
        name: record.name.into(),
        labels: labels
            .map(|(label, number)| (label.into(), number))
            .collect(),
        versions,
    };
    (record.id.into(), entry)
}

fn compile(content: &str) -> Option<Arc<Prompt>> {
    let root = Node::parse_json(content).ok()?;
    Some(Arc::new(Prompt::compile(&root).ok()?))
}

impl Models {
    /// Returns the usual request that a request and its prompt make.
    ///
    /// Errors: 404 for the prompt; 400 for its variables, and where the result breaks a rule, saying who has written what
    /// is at fault; 413.
    pub(super) fn complete(
        &self,
        front: &dyn Front,
        request: &ManagedRequest,
        caller: Option<&Caller>,
    ) -> Result<ModelRequest, Fault> {
        if !self.prompts_enabled {
            let message = "this gateway has no managed prompts (`prompts.enabled` is false); accepted is a request without";
            return Err(Fault::invalid("prompt", message).with_code("invalid_parameters"));
        }
        let owners = caller.map_or(("", ""), |caller| {
            (&*caller.organization_id, &*caller.project_id)
        });
        let library = self.prompts.current();
        let found = library.find(owners, &request.reference, request.place)?;
        let expansion = request.expand(&found, self.max_chat_bytes)?;
        let managed = Arc::new(expansion.managed);
        match front.parse(expansion.body) {
            Ok(request) => Ok(ModelRequest {
                managed: Some(managed),
                ..request
            }),
            Err(fault) => Err(managed.explain(fault)),
        }
    }
}
