//! The managed prompts in force. They complete requests that name a prompt or a flag.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use filters::accounts::Caller;
use filters::fault::Fault;
use filters::fault_code::FaultCode;
use filters::models::front::Front;
use filters::models::fronts::chat_completions::prompt_file::is_field;
use filters::models::managed::ManagedRequest;
use filters::models::managed::expand::Filling;
use filters::models::managed::variation::{Variation, no_flag};
use filters::models::prompts::library::{FoundPrompt, PromptEntry, PromptLibrary, ReferencePlace};
use filters::models::prompts::prompt::Prompt;
use filters::models::prompts::tree::Node;
use filters::models::request::ModelRequest;

use super::Models;
use super::experiments::{AskedFlag, SendImpression};
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

    /// Replaces all prompts, or only the changed ones. One caller at a time. Cost: each new version is compiled once.
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

/// Returns a prompt by its id. Known versions are not compiled again, because versions never change.
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

/// Compiles the stored content of a version; `None`: it cannot be read.
pub fn compile(content: &str) -> Option<Arc<Prompt>> {
    let root = Node::parse_json(content).ok()?;
    Some(Arc::new(Prompt::compile(&root).ok()?))
}

impl Models {
    /// Returns the variation of the flag that a request names, with its impression, or `None` if it names no flag.
    /// The user is the request's `user`, or else its session, or else the key.
    ///
    /// Errors: 404 for the flag, 400 for its variables, 503.
    pub(super) async fn decide(
        &self,
        request: &ManagedRequest,
        session: Option<&str>,
        caller: Option<&Caller>,
        now_ms: u64,
    ) -> Result<Option<(Variation, SendImpression)>, Fault> {
        let Some(flag) = request.flag.as_deref() else {
            return Ok(None);
        };
        let sdk_key = caller.and_then(|caller| caller.experiments.as_deref());
        let (Some(experiments), Some(sdk_key)) = (&self.experiments, sdk_key) else {
            let said = "cannot be decided: the project has no experiments (`weirgate project update --experiments SDK_KEY`)";
            return Err(no_flag(flag, said));
        };
        let session = session.or(request.session.as_deref());
        let key_id = caller.map(|caller| &*caller.key_id);
        let user_id = request.user.as_deref().or(session).or(key_id);
        let asked = AskedFlag {
            sdk_key,
            flag,
            user_id: user_id.unwrap_or_default(),
            now_ms,
        };
        let (decided, impression) = experiments.decide(asked).await?;
        Ok(Some((Variation::read(decided, is_field)?, impression)))
    }

    /// Returns the plain request that results from a request with its prompt and its variation.
    ///
    /// Errors: 404 for the prompt; 400 for its variables, and if the result breaks a rule, with the author of the
    /// wrong part; 413.
    pub(super) fn complete(
        &self,
        front: &dyn Front,
        request: &ManagedRequest,
        variation: Option<&Variation>,
        caller: Option<&Caller>,
    ) -> Result<ModelRequest, Fault> {
        let prompt = self.find_prompt(request, variation, caller)?;
        let filling = Filling {
            variation,
            prompt: prompt.as_ref(),
        };
        let expansion = request.expand(filling, self.max_chat_bytes)?;
        let managed = Arc::new(expansion.managed);
        match front.parse(expansion.body) {
            Ok(request) => Ok(ModelRequest {
                managed: Some(managed),
                ..request
            }),
            Err(fault) => Err(managed.explain(fault)),
        }
    }

    /// Returns the prompt that the caller names, or else the one that the variation names.
    fn find_prompt(
        &self,
        request: &ManagedRequest,
        variation: Option<&Variation>,
        caller: Option<&Caller>,
    ) -> Result<Option<FoundPrompt>, Fault> {
        let own = request
            .prompt
            .as_ref()
            .map(|prompt| (&prompt.reference, prompt.place));
        let of_variation = variation.and_then(|variation| variation.prompt.as_ref());
        let of_variation = of_variation.map(|reference| (reference, ReferencePlace::Model));
        let Some((reference, place)) = own.or(of_variation) else {
            return Ok(None);
        };
        if !self.prompts_enabled {
            let message = "this gateway has no managed prompts (`prompts.enabled` is false); accepted is a request without";
            return Err(Fault::invalid("prompt", message).with_code(FaultCode::InvalidParameters));
        }
        let owners = caller.map_or(("", ""), |caller| {
            (&*caller.organization_id, &*caller.project_id)
        });
        let found = self.prompts.current().find(owners, reference, place);
        found.map(Some).map_err(|mut fault| {
            if let Some(variation) = variation.filter(|_| own.is_none()) {
                let names = variation.names.describe();
                fault.message = format!("{} (named by {names})", fault.message).into();
            }
            fault
        })
    }
}
