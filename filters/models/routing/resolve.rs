//! From a model string to candidates. Source: docs/facts/model-gateway.md 3.1, docs/decisions.md 6, 11.

use std::sync::Arc;

use super::catalog::{Catalog, Mapping, Model};
use crate::fault::{Fault, FaultKind};
use crate::models::operation::Operation;

/// The model string that lets the gateway choose the model.
pub const AUTO: &str = "auto";

/// The candidates that could serve a model string.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Model, mapping and region, in the catalogue's order.
    pub candidates: Vec<Candidate>,
    /// The provider named in the string: no other is tried.
    pub provider: Option<Box<str>>,
    /// The gateway chooses the model.
    pub is_auto: bool,
}

/// One way to serve a request.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The model.
    pub model: Arc<Model>,
    /// The model at its provider.
    pub mapping: Arc<Mapping>,
    /// The region, where one was named.
    pub region: Option<Box<str>>,
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
    providers: &[&str],
    auto: &[String],
    now_s: u64,
) -> Result<Resolved, Fault> {
    if string == AUTO {
        return resolve_auto(operation, catalog, providers, auto, now_s);
    }
    let is_on = |mapping: &Mapping| providers.contains(&&*mapping.provider);
    if let Some((prefix, name)) = string.split_once('/')
        && providers.contains(&prefix)
    {
        let found = resolve_pinned(prefix, name, operation, catalog, now_s)?;
        return found.ok_or_else(|| unknown_model(string, catalog, is_on));
    }
    let Some(model) = catalog.find(string) else {
        return Err(unknown_model(string, catalog, is_on));
    };
    let candidates = list_candidates(model, operation, now_s, is_on)?;
    Ok(Resolved {
        candidates,
        provider: None,
        is_auto: false,
    })
}

fn resolve_auto(
    operation: Operation,
    catalog: &Catalog,
    providers: &[&str],
    auto: &[String],
    now_s: u64,
) -> Result<Resolved, Fault> {
    if !operation.takes_auto() {
        return Err(Fault::invalid(
            "model",
            format!(
                "`auto` chooses among chat models; {} need a model id",
                operation.as_str()
            ),
        ));
    }
    let is_wanted = |mapping: &Mapping| {
        providers.contains(&&*mapping.provider) && !mapping.is_deprecated(now_s)
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
    let candidates: Vec<Candidate> = models
        .into_iter()
        .filter_map(|model| list_candidates(model, operation, now_s, is_wanted).ok())
        .flatten()
        .collect();
    if candidates.is_empty() {
        return Err(model_not_found(
            "`auto` has no model to choose from: `routing.auto` names none that is served",
        ));
    }
    Ok(Resolved {
        candidates,
        provider: None,
        is_auto: true,
    })
}

/// Returns the candidates of this provider under a name; `None`: the name is unknown.
fn resolve_pinned(
    provider: &str,
    name: &str,
    operation: Operation,
    catalog: &Catalog,
    now_s: u64,
) -> Result<Option<Resolved>, Fault> {
    let done = |candidates| {
        Some(Resolved {
            candidates,
            provider: Some(provider.into()),
            is_auto: false,
        })
    };
    let find = |name: &str| -> Option<Result<Vec<Candidate>, Fault>> {
        let at_provider = |mapping: &Mapping| &*mapping.provider == provider;
        if let Some(model) = catalog.find(name)
            && model.mappings.iter().any(|mapping| at_provider(mapping))
        {
            return Some(list_candidates(model, operation, now_s, at_provider));
        }
        let (model, found) = catalog.find_upstream(provider, name)?;
        let index = found.index;
        Some(list_candidates(model, operation, now_s, |mapping| {
            mapping.index == index
        }))
    };
    if let Some(found) = find(name) {
        return found.map(done);
    }
    // The last colon precedes the region, because an upstream's own id may hold colons itself.
    if let Some((model, region)) = name.rsplit_once(':')
        && let Some(found) = find(model)
    {
        let candidates = serve_region(found?, region);
        if candidates.is_empty() {
            return Err(model_not_found(format!(
                "{provider} does not serve `{model}` in the region `{region}`"
            )));
        }
        return Ok(done(candidates));
    }
    if !catalog.has_provider(provider) && !name.is_empty() {
        return Ok(done(vec![uncatalogued(provider, name, operation)]));
    }
    if catalog.find(name).is_some() {
        return Err(model_not_found(format!(
            "{provider} does not serve `{name}`"
        )));
    }
    Ok(None)
}

/// Keeps the candidates that serve a region, and sets it.
fn serve_region(mut candidates: Vec<Candidate>, region: &str) -> Vec<Candidate> {
    candidates.retain(|candidate| {
        let mut regions = candidate.mapping.regions.iter();
        regions.any(|known| &**known == region)
    });
    for candidate in &mut candidates {
        candidate.region = Some(region.into());
    }
    candidates
}

/// Returns the candidate for a model that only the operator's own server knows.
fn uncatalogued(provider: &str, name: &str, operation: Operation) -> Candidate {
    let mapping = Mapping {
        index: usize::MAX,
        provider: provider.into(),
        name: name.into(),
        ..Mapping::default()
    };
    let model = Model {
        id: name.into(),
        name: name.into(),
        family: provider.into(),
        model_type: "chat".into(),
        operations: vec![operation],
        aliases: Vec::new(),
        description: None,
        created: None,
        mappings: Vec::new(),
    };
    Candidate {
        model: Arc::new(model),
        mapping: Arc::new(mapping),
        region: None,
    }
}

fn list_candidates(
    model: &Arc<Model>,
    operation: Operation,
    now_s: u64,
    is_wanted: impl Fn(&Mapping) -> bool,
) -> Result<Vec<Candidate>, Fault> {
    let wanted: Vec<&Arc<Mapping>> = model.mappings.iter().filter(|m| is_wanted(m)).collect();
    if wanted.is_empty() {
        return Err(unserved_model(&model.id));
    }
    if !model.operations.contains(&operation) {
        return Err(Fault::invalid(
            "model",
            format!(
                "`{}` is a model for {}, not for {}",
                model.id,
                model.model_type,
                operation.as_str()
            ),
        ));
    }
    let active = wanted.iter().filter(|mapping| !mapping.is_retired(now_s));
    let candidates: Vec<Candidate> = active
        .map(|mapping| Candidate {
            model: Arc::clone(model),
            mapping: Arc::clone(mapping),
            region: None,
        })
        .collect();
    if candidates.is_empty() {
        return Err(
            Fault::new(FaultKind::Gone, format!("`{}` is retired", model.id)).with_param("model"),
        );
    }
    Ok(candidates)
}

fn unknown_model(string: &str, catalog: &Catalog, is_on: impl Fn(&Mapping) -> bool) -> Fault {
    if let Some(provider) = catalog.provider_of_upstream_id(string, is_on) {
        return Fault::invalid(
            "model",
            format!("`{string}` is a provider's own id; `{provider}/{string}` is accepted"),
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

fn model_not_found(message: impl Into<std::borrow::Cow<'static, str>>) -> Fault {
    Fault::new(FaultKind::ModelNotFound, message).with_param("model")
}
