//! From a model string to candidates. Source: docs/facts/model-gateway.md 3.1, docs/decisions.md 6, 11.

use std::borrow::Cow;
use std::sync::Arc;

use super::catalog::{Catalog, Mapping, Model};
use super::places::{ProviderPlaces, RegionTurn};
use super::plan::LeftOut;
use super::providers::{ProviderDefaults, ProviderSet};
use super::thinking::{Thinking, WrittenThinking};
use crate::fault::{Fault, FaultKind, quoted};
use crate::models::key_shape::holds_key;
use crate::models::operation::Operation;
use crate::money::{PriceList, PricePoint, PriceSet};

/// The model string that lets the gateway choose the model.
pub const AUTO: &str = "auto";

/// The candidates that could serve a model string.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Model, mapping and region, in the catalogue's order.
    pub candidates: Vec<Arc<Candidate>>,
    /// The provider named in the string: no other is tried.
    pub provider: Option<Arc<str>>,
    pub is_auto: bool,
    /// The candidates that the caller may not use.
    pub barred: Vec<LeftOut>,
    /// Those of them that are outside the regions of the caller.
    pub outside: Vec<Arc<Candidate>>,
    /// Whether the model string names a region.
    pub is_regional: bool,
}

impl Resolved {
    /// Returns these candidates of a model string that names neither a provider nor `auto`.
    fn among(candidates: Vec<Arc<Candidate>>) -> Self {
        Self {
            candidates,
            provider: None,
            is_auto: false,
            barred: Vec::new(),
            outside: Vec::new(),
            is_regional: false,
        }
    }
}

/// One way to serve a request.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its number, for tables beside the catalogue; `usize::MAX` outside it.
    pub index: usize,
    /// A number of its names, which it has in each catalogue; 0 outside all.
    pub id: u64,
    pub model: Arc<Model>,
    pub mapping: Arc<Mapping>,
    pub region: Option<Arc<str>>,
    /// The prices there; `None`: unknown, so every cost is unknown.
    pub prices: Option<Arc<PriceList>>,
    /// Its turn among those of the mapping, for requests that name no region; `None`: it serves none of them.
    pub turn: Option<RegionTurn>,
    /// The region in which its calls are computed; `None`: unknown.
    pub residence: Option<Arc<str>>,
}

impl Candidate {
    /// Returns whether it is in a region of unknown prices, while those of other calls of the mapping are known.
    pub fn is_unpriced_region(&self) -> bool {
        self.region.is_some() && self.prices.is_none() && self.mapping.prices.is_some()
    }

    /// Returns the prices of a call with a short prompt, where they are known.
    pub fn short_prices(&self, point: PricePoint) -> Option<&PriceSet> {
        let prices = self.prices.as_ref()?;
        Some(prices.at(point).short())
    }
}

/// Reads a model string: `auto`, an id, an alias, `provider/model`, `provider/model:region`, or a provider's own
/// id behind its prefix.
///
/// Our choice: a provider without models in the catalogue (a server of the operator's own) accepts any id behind its
/// prefix, at an unknown price.
///
/// Finds models that serve `operation`. `providers` are on for this caller; `auto` are the models of `routing.auto`.
/// Errors: 404 `model_not_found`, 400 for another type of model or a bare upstream id, 410 retired.
pub fn resolve(
    string: &str,
    operation: Operation,
    catalog: &Catalog,
    providers: &ProviderSet,
    auto: &[String],
    now_s: u64,
) -> Result<Resolved, Fault> {
    if string == AUTO {
        return resolve_auto(operation, catalog, providers, auto, now_s);
    }
    let is_on = |mapping: &Mapping| providers.contains(mapping.provider_number);
    if let Some((prefix, name)) = string.split_once('/')
        && let Some(number) = catalog.providers().number(prefix)
        && providers.contains(number)
    {
        let found = resolve_pinned(number, name, operation, catalog, now_s)?;
        return found.ok_or_else(|| unknown_model(string, catalog, is_on));
    }
    let Some(model) = catalog.find(string) else {
        return Err(unknown_model(string, catalog, is_on));
    };
    let candidates = list_candidates(catalog, model, operation, now_s, is_on)?;
    Ok(Resolved::among(candidates))
}

fn resolve_auto(
    operation: Operation,
    catalog: &Catalog,
    providers: &ProviderSet,
    auto: &[String],
    now_s: u64,
) -> Result<Resolved, Fault> {
    if !operation.takes_auto() {
        return Err(Fault::invalid(
            "model",
            format!(
                "`auto` chooses among chat models; {} need a model id",
                operation.row().name
            ),
        ));
    }
    let is_wanted = |mapping: &Mapping| {
        providers.contains(mapping.provider_number) && !mapping.is_deprecated(now_s)
    };
    let models: Vec<&Arc<Model>> = if auto.is_empty() {
        catalog
            .models()
            .iter()
            .filter(|model| model.operations.contains(&operation))
            .collect()
    } else {
        auto.iter().filter_map(|name| catalog.find(name)).collect()
    };
    let candidates: Vec<Arc<Candidate>> = models
        .into_iter()
        .filter_map(|model| list_candidates(catalog, model, operation, now_s, is_wanted).ok())
        .flatten()
        .collect();
    if candidates.is_empty() {
        return Err(model_not_found(
            "`auto` has no model to choose from: `routing.auto` names none that is served",
        ));
    }
    Ok(Resolved {
        is_auto: true,
        ..Resolved::among(candidates)
    })
}

/// Returns the candidates of this provider under a name; `None`: the name is unknown.
fn resolve_pinned(
    number: usize,
    name: &str,
    operation: Operation,
    catalog: &Catalog,
    now_s: u64,
) -> Result<Option<Resolved>, Fault> {
    let Some(provider) = catalog.providers().name(number) else {
        return Ok(None);
    };
    let pinned = |candidates| Resolved {
        provider: Some(Arc::clone(provider)),
        ..Resolved::among(candidates)
    };
    let done = |candidates| Some(pinned(candidates));
    let list = |model, is_wanted: &dyn Fn(&Mapping) -> bool| {
        list_candidates(catalog, model, operation, now_s, is_wanted)
    };
    let find = |name: &str| -> Option<Result<Vec<Arc<Candidate>>, Fault>> {
        let at_provider = |mapping: &Mapping| mapping.provider_number == number;
        if let Some(model) = catalog.find(name)
            && model.mappings.iter().any(|mapping| at_provider(mapping))
        {
            return Some(list(model, &at_provider));
        }
        let (model, found) = catalog.find_upstream(provider, name)?;
        Some(list(model, &|mapping| mapping.index == found.index))
    };
    if let Some(found) = find(name) {
        return found.map(done);
    }
    // The last colon precedes the region, because an upstream's own id may hold colons itself.
    if let Some((model, region)) = name.rsplit_once(':')
        && let Some(found) = find(model)
    {
        let candidates = serve_region(catalog, found?, (provider, model, region))?;
        return Ok(Some(Resolved {
            is_regional: true,
            ..pinned(candidates)
        }));
    }
    if !catalog.has_provider(number) && !name.is_empty() {
        let providers = catalog.providers();
        let known = (providers.defaults(number), providers.places(number));
        let provider = (number, provider, known);
        return Ok(done(vec![uncatalogued(provider, name, operation)]));
    }
    if catalog.find(name).is_some() {
        return Err(model_not_found(format!(
            "{provider} does not serve `{}`",
            quoted(name)
        )));
    }
    Ok(None)
}

/// Returns the candidates in a region, of the mappings that serve it.
///
/// Errors: 404 where none does.
fn serve_region(
    catalog: &Catalog,
    mut candidates: Vec<Arc<Candidate>>,
    (provider, model, region): (&str, &str, &str),
) -> Result<Vec<Arc<Candidate>>, Fault> {
    candidates.dedup_by_key(|candidate| candidate.mapping.index);
    let in_region =
        |candidate: &Arc<Candidate>| catalog.candidate_in(&candidate.mapping, region).cloned();
    let served: Vec<_> = candidates.iter().filter_map(in_region).collect();
    if !served.is_empty() {
        return Ok(served);
    }
    Err(model_not_found(format!(
        "{provider} does not serve `{}` in the region `{}`",
        quoted(model),
        shown(region)
    )))
}

/// Returns the candidate for a model that only the operator's own server knows.
fn uncatalogued(
    (provider_number, provider, (defaults, places)): (
        usize,
        &Arc<str>,
        (ProviderDefaults, ProviderPlaces),
    ),
    name: &str,
    operation: Operation,
) -> Arc<Candidate> {
    let name: Arc<str> = name.into();
    let unwritten = Thinking::new(&WrittenThinking::default(), &defaults.thinking);
    let mapping = Mapping {
        parameters: defaults.parameters,
        thinking: unwritten.unwrap_or_default(),
        index: usize::MAX,
        provider: Arc::clone(provider),
        provider_number,
        name: Arc::clone(&name),
        ..Mapping::default()
    };
    let model = Model {
        name: (*name).into(),
        id: name,
        family: (**provider).into(),
        model_type: "chat".into(),
        operations: vec![operation],
        aliases: Vec::new(),
        description: None,
        successor: None,
        created: None,
        mappings: Vec::new(),
    };
    Arc::new(Candidate {
        residence: places.residence(&model.id, None),
        turn: Some(RegionTurn::HOME),
        index: usize::MAX,
        id: 0,
        model: Arc::new(model),
        mapping: Arc::new(mapping),
        region: None,
        prices: None,
    })
}

fn list_candidates(
    catalog: &Catalog,
    model: &Model,
    operation: Operation,
    now_s: u64,
    is_wanted: impl Fn(&Mapping) -> bool,
) -> Result<Vec<Arc<Candidate>>, Fault> {
    let wanted = || model.mappings.iter().filter(|mapping| is_wanted(mapping));
    if wanted().next().is_none() {
        return Err(unserved_model(&model.id));
    }
    if !model.operations.contains(&operation) {
        return Err(other_operation(model, operation));
    }
    let active = wanted().filter(|mapping| !mapping.is_retired(now_s));
    let candidates: Vec<Arc<Candidate>> = active
        .flat_map(|mapping| catalog.usual_candidates(mapping).cloned())
        .collect();
    if candidates.is_empty() {
        return Err(retired(model));
    }
    Ok(candidates)
}

/// Returns the error of a model that serves other operations, which names their endpoints.
fn other_operation(model: &Model, operation: Operation) -> Fault {
    let mut message = format!(
        "`{}` is a model for {}, not for {}",
        model.id,
        model.model_type,
        operation.row().name
    );
    for (at, served) in model.operations.iter().enumerate() {
        message.push_str(if at == 0 {
            ": use `POST "
        } else {
            " or `POST "
        });
        message.push_str(served.row().path);
        message.push('`');
    }
    Fault::invalid("model", message)
}

fn retired(model: &Model) -> Fault {
    let message = match &model.successor {
        Some(successor) => format!("`{}` is retired: use `{successor}`", model.id),
        None => format!("`{}` is retired", model.id),
    };
    Fault::new(FaultKind::Gone, message).with_param("model")
}

/// Quotes a name, unless it is a key.
pub(super) fn shown(name: &str) -> Cow<'_, str> {
    match holds_key(name) {
        true => Cow::Borrowed("[removed]"),
        false => quoted(name),
    }
}

fn unknown_model(string: &str, catalog: &Catalog, is_on: impl Fn(&Mapping) -> bool) -> Fault {
    if let Some(provider) = catalog.provider_of_upstream_id(string, is_on) {
        return Fault::invalid(
            "model",
            format!("`{string}` is a provider's own id; `{provider}/{string}` is accepted"),
        );
    }
    if holds_key(string) {
        return model_not_found(
            "`model` holds an API key: send keys in `Authorization`; `GET /v1/models` lists the models",
        );
    }
    let shown: String = string
        .chars()
        .filter(|c| !c.is_control())
        .take(100)
        .collect();
    if catalog.is_unserved(string) {
        return unserved_model(&shown);
    }
    model_not_found(format!(
        "the model `{shown}` does not exist; `GET /v1/models` lists those that do"
    ))
}

fn unserved_model(model: &str) -> Fault {
    model_not_found(format!(
        "the model `{model}` is known, but no provider that serves it is switched on"
    ))
}

fn model_not_found(message: impl Into<Cow<'static, str>>) -> Fault {
    Fault::new(FaultKind::ModelNotFound, message).with_param("model")
}
