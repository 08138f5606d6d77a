//! The catalogue as used: models, their providers and prices.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::alias::{self, Patterns};
pub use super::capability::{Capabilities, Capability};
use super::catalog_file::{CatalogFile, Date, MappingWire, WrittenMapping, WrittenModel};
use super::identity::{candidate_id, mapping_id};
use super::parameters::Parameters;
use super::prices::{BadMember, read_prices};
use super::providers::{ProviderDefaults, ProviderNames};
use super::resolve::Candidate;
use super::search::WebSearch;
use super::thinking::{Thinking, WrittenThinking};
use crate::models::embeddings::batch::BatchLimits;
use crate::models::embeddings::tokenizer::Tokenizer;
use crate::models::operation::Operation;
use crate::models::videos::VideoLimits;
use crate::money::{PriceList, TokenBounds};

/// The least prompt tokens that a provider caches, if the catalogue does not say. Source: docs/facts/model-gateway.md 7.3.
const MIN_CACHED_TOKENS: u64 = 1024;

/// One model.
#[derive(Clone, Debug)]
pub struct Model {
    pub id: Arc<str>,
    pub name: Box<str>,
    pub family: Box<str>,
    /// `chat`, `embedding`, …
    pub model_type: Box<str>,
    /// The operations it serves.
    pub operations: Vec<Operation>,
    /// Other names.
    pub aliases: Vec<Box<str>>,
    pub description: Option<Box<str>>,
    /// The model to use in its place, once it is deprecated.
    pub successor: Option<Box<str>>,
    /// Unix seconds of its release.
    pub created: Option<u64>,
    /// Its mappings, of the providers that are on for any caller.
    pub mappings: Vec<Arc<Mapping>>,
}

/// One provider of a model.
#[derive(Clone, Debug, Default)]
pub struct Mapping {
    /// Its number, for tables beside the catalogue.
    pub index: usize,
    /// A number of its names, which it has in each catalogue; 0 outside all.
    pub id: u64,
    /// A provider of the configuration.
    pub provider: Arc<str>,
    /// The provider's number in [`Catalog::providers`].
    pub provider_number: usize,
    /// The upstream's own id.
    pub name: Arc<str>,
    /// The API that serves it; `None`: the usual one of the provider's kind.
    pub wire: Option<MappingWire>,
    /// Regions that a model string may name.
    pub regions: Vec<Region>,
    /// Prices where no region is named; `None`: unknown, so every cost is unknown.
    pub prices: Option<Arc<PriceList>>,
    /// Tokens of prompt and answer together.
    pub context_size: Option<u64>,
    /// Tokens of the answer.
    pub max_output: Option<u64>,
    /// How it makes tokens of texts, where that is known.
    pub tokenizer: Option<Tokenizer>,
    /// What it takes of embeddings at once.
    pub batch: BatchLimits,
    pub video: VideoLimits,
    /// The least prompt tokens that its provider caches.
    pub min_cached_tokens: u64,
    /// Bounds of the cost of a call.
    pub bounds: TokenBounds,
    /// Its capabilities; `None`: all that its kind has.
    pub capabilities: Option<Capabilities>,
    pub parameters: Parameters,
    pub thinking: Thinking,
    pub search: WebSearch,
    pub reasoning_modes: Vec<Box<str>>,
    pub service_tiers: Vec<Box<str>>,
    /// The day from which it should not be used.
    pub deprecated_at: Option<Date>,
    /// The day from which it is not served.
    pub deactivated_at: Option<Date>,
}

/// A region of a mapping.
#[derive(Clone, Debug)]
pub struct Region {
    pub name: Arc<str>,
    /// Prices there; `None`: unknown.
    pub prices: Option<Arc<PriceList>>,
}

impl Mapping {
    /// Returns whether it has a capability.
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities
            .is_none_or(|known| known.contains(capability))
    }

    /// Returns whether it is listed with a capability.
    pub fn lists(&self, capability: Capability) -> bool {
        self.capabilities
            .is_some_and(|known| known.contains(capability))
    }

    /// Returns whether it is listed as drawing images; `None`: its capabilities are not listed.
    pub fn image_output(&self) -> Option<bool> {
        let known = self.capabilities?;
        Some(known.contains(Capability::ImageOutput))
    }

    /// Returns whether it is listed as reasoning.
    pub fn reasons(&self) -> bool {
        self.lists(Capability::Reasoning)
    }

    /// Returns whether it is listed as searching the web. A search costs, so no mapping does it unlisted.
    pub fn searches_web(&self) -> bool {
        self.capabilities
            .is_some_and(|known| known.contains(Capability::WebSearch))
    }

    /// Returns whether it is no longer served at `now_s` (unix seconds).
    pub fn is_retired(&self, now_s: u64) -> bool {
        self.deactivated_at
            .as_ref()
            .and_then(Date::unix_s)
            .is_some_and(|at| at <= now_s)
    }

    /// Returns whether it should no longer be used at `now_s` (unix seconds).
    pub fn is_deprecated(&self, now_s: u64) -> bool {
        self.deprecated_at
            .as_ref()
            .and_then(Date::unix_s)
            .is_some_and(|at| at <= now_s)
    }
}

/// All models, by every name.
#[derive(Debug, Default)]
pub struct Catalog {
    providers: ProviderNames,
    models: Vec<Arc<Model>>,
    by_name: HashMap<Box<str>, usize>,
    /// Aliases with `*`.
    by_pattern: Patterns,
    /// Of each mapping: the candidate without a region, then one for each of its regions.
    candidates: Vec<Arc<Candidate>>,
    /// Where the candidates of a mapping begin, by its index.
    first_candidates: Vec<usize>,
    mappings: usize,
    /// Models known, but served by no provider that is on.
    unserved: HashSet<Box<str>>,
}

/// What is wrong with an entry of the catalogue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CatalogProblem {
    /// The entry, as `models[0].providers[1]`.
    pub entry: String,
    /// The member of the entry that has to change.
    pub member: String,
    /// What is wrong, with the names of model and provider.
    pub message: String,
}

impl fmt::Display for CatalogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}: {}", self.entry, self.member, self.message)
    }
}

impl Catalog {
    /// Checks a catalogue. Mappings of providers other than these are left out.
    ///
    /// Errors: every problem at once.
    pub fn check(
        written: CatalogFile,
        providers: ProviderNames,
    ) -> Result<Self, Vec<CatalogProblem>> {
        let mut catalog = Self {
            providers,
            ..Self::default()
        };
        let mut problems = Vec::new();
        for (index, model) in written.models.into_iter().enumerate() {
            catalog.add(index, model, &mut problems);
        }
        if problems.is_empty() {
            Ok(catalog)
        } else {
            Err(problems)
        }
    }

    /// Returns the model of this id or alias, or else the one whose alias with `*` matches.
    pub fn find(&self, name: &str) -> Option<&Arc<Model>> {
        let exact = self.by_name.get(name).copied();
        let at = exact.or_else(|| self.by_pattern.find(name))?;
        self.models.get(at)
    }

    /// Returns whether the model is known, but no provider that is on serves it.
    pub fn is_unserved(&self, name: &str) -> bool {
        self.unserved.contains(name)
    }

    /// Returns the model and mapping behind a provider's own id.
    pub fn find_upstream(
        &self,
        provider: &str,
        name: &str,
    ) -> Option<(&Arc<Model>, &Arc<Mapping>)> {
        self.models.iter().find_map(|model| {
            let mut mappings = model.mappings.iter();
            mappings
                .find(|m| &*m.provider == provider && &*m.name == name)
                .map(|m| (model, m))
        })
    }

    /// Returns the provider that has this own id, among the mappings that are wanted.
    pub fn provider_of_upstream_id(
        &self,
        name: &str,
        is_wanted: impl Fn(&Mapping) -> bool,
    ) -> Option<&str> {
        let mut mappings = self.models.iter().flat_map(|model| &model.mappings);
        mappings
            .find(|mapping| &*mapping.name == name && is_wanted(mapping))
            .map(|mapping| &*mapping.provider)
    }

    /// Returns whether any model is served by this provider.
    pub fn has_provider(&self, provider_number: usize) -> bool {
        self.models
            .iter()
            .flat_map(|model| &model.mappings)
            .any(|mapping| mapping.provider_number == provider_number)
    }

    /// Returns the enabled providers and their numbers.
    pub fn providers(&self) -> &ProviderNames {
        &self.providers
    }

    /// Returns the candidates that a mapping is for requests that name no region.
    pub fn usual_candidates(&self, mapping: &Mapping) -> impl Iterator<Item = &Arc<Candidate>> {
        let all = self.candidates_of(mapping).iter();
        all.filter(|candidate| candidate.turn.is_some())
    }

    /// Returns the candidate that a mapping is without a region, and those of its regions.
    pub fn candidates_of(&self, mapping: &Mapping) -> &[Arc<Candidate>] {
        let first = self.first_candidates.get(mapping.index).copied();
        let all =
            first.and_then(|first| self.candidates.get(first..=first + mapping.regions.len()));
        all.unwrap_or_default()
    }

    /// Returns the candidate that a mapping is in a region; `None`: it does not serve the region.
    pub fn candidate_in(&self, mapping: &Mapping, region: &str) -> Option<&Arc<Candidate>> {
        let first = *self.first_candidates.get(mapping.index)?;
        let at = mapping
            .regions
            .iter()
            .position(|known| *known.name == *region)?;
        self.candidates.get(first + 1 + at)
    }

    /// Returns all candidates. A candidate's index is its place.
    pub fn candidates(&self) -> &[Arc<Candidate>] {
        &self.candidates
    }

    /// Returns all models that are served.
    pub fn models(&self) -> &[Arc<Model>] {
        &self.models
    }

    /// Returns the number of mappings.
    pub fn mappings(&self) -> usize {
        self.mappings
    }

    fn add(&mut self, index: usize, model: WrittenModel, problems: &mut Vec<CatalogProblem>) {
        let id = model.id.clone();
        let mut mappings = Vec::new();
        for (at, written) in model.providers.into_iter().enumerate() {
            let provider = written.provider.clone();
            match self.mapping(written) {
                Ok(None) => {}
                Ok(Some(mut mapping)) => {
                    self.mappings += 1;
                    mapping.id = number_mapping(&id, &mapping, &mappings);
                    mappings.push(Arc::new(mapping));
                }
                Err((member, why)) => problems.push(CatalogProblem {
                    entry: format!("models[{index}].providers[{at}]"),
                    member,
                    message: format!("model {id}, provider {provider}: {why}"),
                }),
            }
        }
        for name in std::iter::once(&id).chain(&model.aliases) {
            if name.is_empty() || self.is_taken(name) {
                problems.push(CatalogProblem {
                    entry: format!("models[{index}]"),
                    member: "id".to_owned(),
                    message: format!("model {id}: the id or alias {name:?} is empty or taken"),
                });
            }
        }
        if mappings.is_empty() {
            let names =
                std::iter::once(id.as_str()).chain(model.aliases.iter().map(String::as_str));
            self.unserved.extend(names.map(Into::into));
            return;
        }
        let model_type = model.model_type.unwrap_or_else(|| "chat".to_owned());
        let at = self.models.len();
        self.name(at, &id, &model.aliases);
        let model = Arc::new(Model {
            name: model.name.unwrap_or_else(|| id.clone()).into(),
            id: id.into(),
            family: model.family.unwrap_or_default().into(),
            operations: model
                .operations
                .unwrap_or_else(|| operations(&model_type, &mappings)),
            model_type: model_type.into(),
            aliases: model.aliases.into_iter().map(Into::into).collect(),
            description: model.description.map(Into::into),
            successor: model.successor.map(Into::into),
            created: model.created.and_then(|date| date.unix_s()),
            mappings,
        });
        for mapping in &model.mappings {
            self.add_candidates(&model, mapping);
        }
        self.models.push(model);
    }

    /// Returns whether a model has this name.
    fn is_taken(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
            || self.by_pattern.contains(name)
            || self.unserved.contains(name)
    }

    /// Gives the model at a place its names.
    fn name(&mut self, at: usize, id: &str, aliases: &[String]) {
        self.by_name.insert(id.into(), at);
        for alias in aliases {
            match alias::is_pattern(alias) {
                true => self.by_pattern.add(alias.as_str().into(), at),
                false => _ = self.by_name.insert(alias.as_str().into(), at),
            }
        }
    }

    /// Returns a mapping; `None`: its provider is not known, so what only that kind of provider says is not checked.
    fn mapping(&self, written: WrittenMapping) -> Result<Option<Mapping>, BadMember> {
        let Some(number) = self.providers.number(&written.provider) else {
            check_names(&written)?;
            return read_prices(&written).map(|_| None);
        };
        let defaults = self.providers.defaults(number).over(written.wire);
        mapping(written, (self.mappings, number), &defaults).map(Some)
    }

    fn add_candidates(&mut self, model: &Arc<Model>, mapping: &Arc<Mapping>) {
        self.first_candidates.push(self.candidates.len());
        let places = self.providers.places(mapping.provider_number);
        let is_listed = |name: &str| mapping.regions.iter().any(|it| *it.name == *name);
        let regions = mapping.regions.iter();
        let regions = regions.map(|region| (Some(Arc::clone(&region.name)), &region.prices));
        for (region, prices) in std::iter::once((None, &mapping.prices)).chain(regions) {
            self.candidates.push(Arc::new(Candidate {
                turn: places.turn(region.as_deref(), is_listed),
                residence: places.residence(&mapping.name, region.as_ref()),
                index: self.candidates.len(),
                id: candidate_id(mapping.id, region.as_deref()),
                model: Arc::clone(model),
                mapping: Arc::clone(mapping),
                region,
                prices: prices.clone(),
            }));
        }
    }
}

/// Returns the id of a mapping of a model, after those before it.
fn number_mapping(model: &str, mapping: &Mapping, before: &[Arc<Mapping>]) -> u64 {
    let is_copy = |it: &&Arc<Mapping>| it.provider == mapping.provider && it.name == mapping.name;
    let copy = before.iter().filter(is_copy).count();
    mapping_id(model, &mapping.provider, &mapping.name, copy)
}

/// Returns the operations of a type; chats that draw serve those for images, too.
fn operations(model_type: &str, mappings: &[Arc<Mapping>]) -> Vec<Operation> {
    let mut operations = Operation::from_model_type(model_type).to_vec();
    let mut mappings = mappings.iter();
    let is_chat = operations.contains(&Operation::Chat);
    if is_chat && mappings.any(|mapping| mapping.image_output() == Some(true)) {
        operations.extend([Operation::Images, Operation::ImageEdits]);
    }
    operations
}

fn check_names(written: &WrittenMapping) -> Result<(), BadMember> {
    let names = [("provider", &written.provider), ("name", &written.name)];
    match names.into_iter().find(|(_, value)| value.is_empty()) {
        Some((member, _)) => Err((member.to_owned(), format!("`{member}` is empty"))),
        None => Ok(()),
    }
}

fn mapping(
    written: WrittenMapping,
    (index, provider_number): (usize, usize),
    defaults: &ProviderDefaults,
) -> Result<Mapping, BadMember> {
    check_names(&written)?;
    let prices = read_prices(&written)?;
    let batch = written.batch_limits();
    let video = written.video_limits();
    let video = video.map_err(|why| ("video_sizes".to_owned(), why))?;
    let search = written.web_search.unwrap_or(defaults.search);
    let boxed = |texts: Vec<String>| texts.into_iter().map(Into::into).collect();
    let capabilities = written.capabilities.as_ref();
    let capabilities = capabilities.map(|list| list.iter().copied().collect());
    let thinking = thinking(&written, capabilities, defaults)?;
    let names = written.regions.into_iter().map(Arc::from);
    let regions = names.zip(prices.regions);
    let regions = regions.map(|(name, prices)| Region { name, prices });
    Ok(Mapping {
        index,
        id: 0,
        provider: written.provider.into(),
        provider_number,
        name: written.name.into(),
        wire: written.wire,
        regions: regions.collect(),
        prices: prices.usual,
        context_size: written.context_size,
        max_output: written.max_output,
        tokenizer: written.tokenizer,
        batch,
        video,
        min_cached_tokens: written.min_cached_tokens.unwrap_or(MIN_CACHED_TOKENS),
        bounds: TokenBounds {
            max_output: written.max_output.or(written.context_size),
            image_tokens: written.image_tokens,
            audio_tokens: written.audio_tokens,
            file_tokens: written.file_tokens,
            drawn_images: written.max_images,
            search_tokens: written.search_tokens,
        },
        capabilities,
        parameters: search.limit(defaults.parameters.with(&written.parameters)),
        search: WebSearch {
            dialect: search,
            unit: written.web_search_unit,
            max_searches: written.max_searches,
        },
        thinking,
        reasoning_modes: boxed(written.reasoning_modes),
        service_tiers: boxed(written.service_tiers),
        deprecated_at: written.deprecated_at,
        deactivated_at: written.deactivated_at,
    })
}

fn thinking(
    written: &WrittenMapping,
    capabilities: Option<Capabilities>,
    defaults: &ProviderDefaults,
) -> Result<Thinking, BadMember> {
    let thinking = WrittenThinking {
        control: written.thinking,
        budget_min: written.budget_min,
        budget_max: written.budget_max,
        max_output: written.max_output,
        efforts: &written.reasoning_efforts,
        by_default: written.reasons_by_default,
        reasons: capabilities.map(|known| known.contains(Capability::Reasoning)),
    };
    Thinking::new(&thinking, &defaults.thinking)
}
