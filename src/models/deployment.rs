//! The facts about a model at one of its providers that calls need. They are computed once, and every attempt borrows
//! them.

use std::sync::Arc;

use filters::models::dialects::state::{Maker, States};
use filters::models::hosts::ServedWire;
use filters::models::metadata::UsedNames;
use filters::models::operation::Operation;
use filters::models::routing::catalog::{Capability, Mapping, Model};
use filters::models::routing::resolve::Candidate;
use filters::models::wires::{Target, Wire};
use filters::money::{
    CostInputs, Price, PriceList, PricePoint, ServiceTier, UNKNOWN_OUTPUT_TOKENS, Usd,
};

use super::metrics::DeploymentMetrics;
use super::providers::{Provider, Site};
use super::upstream_head::UpstreamHead;
use crate::telemetry::metrics::Metrics;

/// A model at a provider, in the region that a model string named, if any.
pub struct Deployment {
    /// The candidate's number in the catalogue; `usize::MAX` outside it.
    pub index: usize,
    /// The candidate's id, which is the same in another catalogue.
    pub id: u64,
    pub model: Arc<Model>,
    /// The provider's own name and price of the model.
    pub mapping: Arc<Mapping>,
    pub region: Option<Arc<str>>,
    /// The prices there, or `None` if they are unknown.
    pub prices: Option<Arc<PriceList>>,
    pub provider: Arc<Provider>,
    pub site: Arc<Site>,
    /// How the provider serves the mapping.
    pub served: &'static ServedWire,
    /// The wire in which it does.
    pub wire: &'static Wire,
    /// The names of provider and model for clients. Source: docs/decisions.md 3.
    pub used: Arc<UsedNames>,
    /// The name of the maker of its state, with the gateway's keys.
    pub maker: Arc<str>,
    pub metrics: DeploymentMetrics,
    /// The minimum number of tokens that are marked for the provider's cache, or `None` without marks.
    auto_cache: Option<u64>,
    /// The output limit for chats without one, if output costs and nothing else bounds it.
    unasked_output: Option<u64>,
    heads: Vec<(Operation, [UpstreamHead; 2])>,
}

impl Deployment {
    /// Creates the deployment of a candidate.
    pub fn new(candidate: &Candidate, provider: &Arc<Provider>, metrics: &Arc<Metrics>) -> Self {
        let Candidate {
            index,
            id,
            model,
            mapping,
            region,
            prices,
            ..
        } = candidate;
        let region_name = region.as_deref();
        let served = provider.host.served(mapping.wire);
        let wire = served.kind.wire();
        let names = (&*model.id, &*provider.name, &*mapping.name);
        let used = UsedNames::at_home(names, region_name, provider.home_region());
        let family = provider.host.state_family.unwrap_or(&provider.name);
        let maker = format!("{family}/{}", model.id);
        let site = provider.site(region_name);
        let heads = model.operations.iter().filter_map(|operation| {
            let names = provider.path_names(&mapping.name, region_name);
            let head = |is_stream| {
                let asked = (*operation, is_stream);
                let own = provider
                    .host
                    .head(served, asked, &names, &provider.quirks)?;
                Some(UpstreamHead::new(provider, site, &own, is_stream))
            };
            Some((*operation, [head(false)?, head(true)?]))
        });
        let marks = provider.quirks.cache_breakpoints && mapping.can(Capability::CacheControl);
        let marks = marks && prices.as_deref().is_none_or(caches);
        let is_unbounded =
            mapping.bounds.max_output.is_none() && prices.as_deref().is_some_and(has_output_price);
        Self {
            index: *index,
            id: *id,
            auto_cache: marks.then_some(mapping.min_cached_tokens),
            unasked_output: is_unbounded.then_some(UNKNOWN_OUTPUT_TOKENS),
            used: Arc::new(used),
            maker: maker.into(),
            metrics: DeploymentMetrics::new(metrics, provider, model, mapping),
            heads: heads.collect(),
            model: Arc::clone(model),
            mapping: Arc::clone(mapping),
            region: region.clone(),
            prices: prices.clone(),
            provider: Arc::clone(provider),
            site: Arc::clone(site),
            served,
            wire,
        }
    }

    /// Returns the head of its requests, or `None` if its wire does not offer the operation.
    pub fn head(&self, operation: Operation, is_stream: bool) -> Option<&UpstreamHead> {
        let mut heads = self.heads.iter();
        let (_, heads) = heads.find(|(offered, _)| *offered == operation)?;
        heads.get(usize::from(is_stream))
    }

    /// Returns whether plans count a call as premium.
    pub fn is_premium(&self) -> bool {
        let prices = self.mapping.prices.as_ref().or(self.prices.as_ref());
        prices.is_some_and(|prices| prices.is_premium())
    }

    /// Returns the maximum cost of a request, or `None` if the price is unknown.
    pub fn max_cost(&self, point: PricePoint, inputs: &CostInputs) -> Option<Usd> {
        let prices = self.prices.as_ref()?;
        Some(prices.max_cost(point, &self.mapping.bounds, inputs))
    }

    /// Returns the target of a call, with the facts that its wire needs.
    pub fn target(&self) -> Target<'_> {
        Target {
            maker: Maker::from_name(States::NONE, &self.maker),
            body: self.served.body,
            is_vendor: self.provider.is_vendor,
            image_output: self.mapping.image_output(),
            region: self.region.as_deref().filter(|_| !self.site.is_regional),
            max_output: self.mapping.max_output,
            unasked_output: self.unasked_output,
            parameters: &self.mapping.parameters,
            thinking: &self.mapping.thinking,
            search: self.mapping.search,
            batch: self.mapping.batch,
            auto_cache: self.auto_cache,
            streams: self.mapping.lists(Capability::Streaming),
            ..Target::plain(
                &self.provider.name,
                &self.mapping.name,
                &self.provider.quirks,
            )
        }
    }
}

/// Returns whether output tokens cost anything.
fn has_output_price(prices: &PriceList) -> bool {
    prices.peak(ServiceTier::Standard).short().output != Price::default()
}

/// Returns whether a list has prices for the cache. Without them a cache write would be charged too little.
fn caches(prices: &PriceList) -> bool {
    let prices = prices.peak(ServiceTier::Standard).short();
    prices.cached_input.is_some() && prices.cache_write.is_some()
}
