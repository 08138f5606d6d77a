//! `GET /v1/models` and `GET /v1/models/{id}`: the models that the caller may use.
//! Source: docs/facts/model-gateway.md 1.16, docs/model-gateway.md 2.1, 9.4.

use std::borrow::Cow;
use std::sync::Arc;

use filters::accounts::{Caller, Mode};
use filters::fault::{Fault, FaultKind, quoted};
use filters::form;
use filters::models::fronts::ALTERNATIVE_STYLE;
use filters::models::routing::catalog::{Mapping, Model};
use filters::models::routing::providers::ProviderSet;
use filters::money::{PricePoint, ServiceTier};
use futures::future::BoxFuture;
use http::HeaderName;
use serde_json::{Value, json};

use super::codex;
use super::contents;
use super::messages;
use super::model_entry::entry;
use crate::models::Models;
use crate::models::planner::is_forbidden;
use crate::proxy::handler::{Endpoint, Request};
use crate::proxy::response::Response;

/// Stands before the id in the paths of single models.
const MODELS: &str = "/models/";
/// The header by which clients of the Gemini API are known.
const KEY_OF_CONTENTS: HeaderName = HeaderName::from_static("x-goog-api-key");
/// The beginning of the paths of that API.
const VERSION_OF_CONTENTS: &str = "/v1beta";

/// `GET /v1/models`.
pub struct ListModels {
    pub models: Arc<Models>,
}

/// `GET /v1/models/{id}`. An id may have slashes, plain or escaped.
pub struct GetModel {
    pub models: Arc<Models>,
}

impl Endpoint for ListModels {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let caller = request.caller.map(|caller| &**caller);
        let query = ModelsQuery::parse(&request, &self.models);
        let response = query.and_then(|query| {
            let view = View::new(&self.models, caller);
            if is_of_contents(&request) {
                return contents::page(usable(&view, &query), &request);
            }
            if request.headers.contains_key(ALTERNATIVE_STYLE) {
                return messages::page(&list(&view, &query), &request);
            }
            let data = list(&view, &query);
            let mut body = json!({ "object": "list", "data": data });
            // Codex asks so, and reads nothing else.
            if let Some(body) = body.as_object_mut()
                && request.values("client_version").last().is_some()
            {
                body.insert("models".to_owned(), codex::list(usable(&view, &query)));
            }
            Ok(Response::json(
                serde_json::to_vec(&body).unwrap_or_default(),
            ))
        });
        Box::pin(async { response })
    }
}

impl Endpoint for GetModel {
    fn call<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Response, Fault>> {
        let caller = request.caller.map(|caller| &**caller);
        let (_, id) = request.path.split_once(MODELS).unwrap_or_default();
        // In a path, a plus does not mean a space.
        let id = form::decode(&id.replace('+', "%2B")).into_owned();
        let view = View::new(&self.models, caller);
        let found =
            find(&view, &id).map(
                |(model, mappings, is_mapped)| match is_of_contents(&request) {
                    true => contents::entry(&id, model, &mappings),
                    false => entry(model, &mappings, view.now, is_mapped),
                },
            );
        let response =
            found.map(|entry| Response::json(serde_json::to_vec(&entry).unwrap_or_default()));
        Box::pin(async { response })
    }
}

/// Returns whether a client asks in the words of the Gemini API.
fn is_of_contents(request: &Request<'_>) -> bool {
    let path = request.path.trim_start_matches('/');
    let version = VERSION_OF_CONTENTS.trim_start_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    first.eq_ignore_ascii_case(version) || request.headers.contains_key(&KEY_OF_CONTENTS)
}

/// The options of the query.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct ModelsQuery<'q> {
    /// Whether to list models that are no longer served.
    include_deactivated: bool,
    exclude_deprecated: bool,
    /// Whether to list one entry per provider, with the id `provider/model`.
    is_mapped: bool,
    model_type: Option<Cow<'q, str>>,
    provider: Option<Cow<'q, str>>,
}

impl<'q> ModelsQuery<'q> {
    /// Parses a query. Switches are only set by the value `true`, and unknown names are ignored.
    ///
    /// Errors: 400 for a type or a provider that no model has, and for questions that the catalogue cannot answer.
    fn parse(request: &Request<'q>, models: &Models) -> Result<Self, Fault> {
        let catalog = models.planner.catalog();
        let last = |name| request.values(name).last();
        if request.is_true("no_training") {
            let message = "`no_training` cannot be told: the catalogue does not say who trains on what it is sent";
            return Err(Fault::invalid("no_training", message));
        }
        let types = catalog.models().iter().map(|model| &*model.model_type);
        let mappings = || catalog.models().iter().flat_map(|model| &model.mappings);
        let providers = mappings().map(|mapping| &*mapping.provider);
        Ok(Self {
            include_deactivated: request.is_true("include_deactivated"),
            exclude_deprecated: request.is_true("exclude_deprecated"),
            is_mapped: request.is_true("mapped"),
            model_type: check_known("type", last("type"), types)?,
            provider: check_known("provider", last("provider"), providers)?,
        })
    }

    /// Returns whether the query selects a mapping.
    fn wants(&self, model: &Model, mapping: &Mapping, now_s: u64) -> bool {
        let is = |wanted: &Option<Cow<'_, str>>, value: &str| {
            wanted.as_ref().is_none_or(|wanted| *wanted == value)
        };
        is(&self.model_type, &model.model_type)
            && is(&self.provider, &mapping.provider)
            && (self.include_deactivated || !mapping.is_retired(now_s))
            && (!self.exclude_deprecated || !mapping.is_deprecated(now_s))
    }
}

/// Checks that a value, if given, is one of the known ones.
fn check_known<'q, 'k>(
    name: &'static str,
    value: Option<Cow<'q, str>>,
    known: impl Iterator<Item = &'k str>,
) -> Result<Option<Cow<'q, str>>, Fault> {
    let Some(value) = value else { return Ok(None) };
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    if known.contains(&&*value) {
        return Ok(Some(value));
    }
    let message = format!(
        "`{name}` is `{}`; accepted: {}",
        quoted(&value),
        known.join(", ")
    );
    Err(Fault::invalid(name, message))
}

/// The models that a caller may use now.
struct View<'m> {
    models: &'m Models,
    caller: Option<&'m Caller>,
    providers: ProviderSet,
    now: PricePoint,
}

impl<'m> View<'m> {
    fn new(models: &'m Models, caller: Option<&'m Caller>) -> Self {
        let byok_keys = models.byok_keys.current();
        let byok = caller.filter(|caller| caller.mode != Mode::Platform);
        let byok = byok.and_then(|caller| byok_keys.of_organization(&caller.organization_id));
        let byok: Vec<&str> = byok.into_iter().flat_map(|keys| keys.providers()).collect();
        Self {
            providers: models.planner.usable_providers(caller, &byok),
            models,
            caller,
            now: PricePoint {
                tier: ServiceTier::Standard,
                start_s: models.clock.unix_s(),
            },
        }
    }

    /// Returns whether the caller may use a mapping: the keys of the project reach the provider, the rules of the API key
    /// allow it, and one of its regions is among those of the caller.
    fn allows(&self, mapping: &Mapping) -> bool {
        let candidates = self.models.planner.catalog().candidates_of(mapping);
        let is_forbidden = |caller: &Caller| {
            let terms = caller.terms.as_ref();
            let candidate = candidates.first().zip(terms);
            let is_forbidden = |(it, terms): (&Arc<_>, &Arc<_>)| is_forbidden(terms, it, self.now);
            let mut residences = candidates.iter().map(|it| it.residence.as_deref());
            candidate.and_then(is_forbidden).is_some() || !residences.any(|it| caller.may_be_in(it))
        };
        self.providers.contains(mapping.provider_number) && !self.caller.is_some_and(is_forbidden)
    }

    /// Returns the wanted mappings of a model that the caller may use.
    fn mappings(&self, model: &'m Model, is_wanted: impl Fn(&Mapping) -> bool) -> Vec<&'m Mapping> {
        let mappings = model.mappings.iter().map(|mapping| &**mapping);
        mappings
            .filter(|mapping| is_wanted(mapping) && self.allows(mapping))
            .collect()
    }
}

/// Returns the models that the query selects, with the mappings that the caller may use.
fn usable<'m>(
    view: &'m View<'m>,
    query: &ModelsQuery<'_>,
) -> impl Iterator<Item = (&'m Model, Vec<&'m Mapping>)> {
    let models = view.models.planner.catalog().models().iter();
    models.filter_map(|model| {
        let mappings = view.mappings(model, |it| query.wants(model, it, view.now.start_s));
        (!mappings.is_empty()).then_some((&**model, mappings))
    })
}

/// Returns the entries of the list.
fn list(view: &View<'_>, query: &ModelsQuery<'_>) -> Vec<Value> {
    let mut data = Vec::new();
    for (model, mappings) in usable(view, query) {
        if query.is_mapped {
            let entries = mappings.iter();
            data.extend(entries.map(|one| entry(model, &[one], view.now, true)));
        } else {
            data.push(entry(model, &mappings, view.now, false));
        }
    }
    data
}

/// A model with the mappings that the caller may use, and whether one provider was asked for.
type AllowedModel<'m> = (&'m Model, Vec<&'m Mapping>, bool);

/// Returns one model, by its id, an alias, or either after `provider/`.
///
/// Errors: 404 if there is no such model that the caller may use.
fn find<'m>(view: &View<'m>, id: &str) -> Result<AllowedModel<'m>, Fault> {
    let catalog = view.models.planner.catalog();
    let everywhere = || {
        let model = catalog.find(id)?;
        let mappings = view.mappings(model, |_| true);
        (!mappings.is_empty()).then_some((&**model, mappings, false))
    };
    let at_provider = || {
        let (provider, name) = id.split_once('/')?;
        let model = catalog.find(name)?;
        let mappings = view.mappings(model, |it| *it.provider == *provider);
        (!mappings.is_empty()).then_some((&**model, mappings, true))
    };
    everywhere().or_else(at_provider).ok_or_else(|| {
        let message = format!("there is no model `{}` that this key may use", quoted(id));
        Fault::new(FaultKind::ModelNotFound, message).with_param("model")
    })
}
