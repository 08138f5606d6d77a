//! Compares the catalogue with the lists of models that providers publish, all asked at once, and asks for the destination of the log
//! export.

use std::cell::Cell;

use filters::models::routing::WrittenMapping;
use filters::money::Price;
use futures::future::join_all;
use prometheus::{IntCounterVec, Opts};
use tokio::runtime::{Builder, Runtime};

use super::super::progress::WorkProgress;
use super::listed_model::{self, ListedModels};
use super::model_list::{AskedLists, sign_in_and_ask};
use crate::config::{Config, Location, Problem, ProviderConfig};
use crate::log_export;

/// The maximum number of names in one finding.
const MAX_SHOWN: usize = 20;
/// What stands behind the key of a provider in the finding that counts.
pub(super) const COUNTED: &str = ".models";

/// Asks providers for their lists. Returns the differences from the catalogue, and how many of its models each provider lists.
///
/// A provider without a list, or whose key is missing, gives its own finding.
pub(super) fn compare(
    config: &Config,
    providers: &[&ProviderConfig],
    progress: &WorkProgress,
) -> (Vec<Problem>, Vec<Problem>) {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(why) => return (vec![problem("providers", why, "")], Vec::new()),
    };
    let (done, total) = (Cell::new(0), providers.len() as u64);
    let ask = async |provider: &ProviderConfig| {
        let asked = sign_in_and_ask(provider).await;
        done.set(done.get() + 1);
        progress.show(
            format_args!("asking for lists of models"),
            done.get(),
            total,
        );
        asked
    };
    let asked = runtime.block_on(join_all(providers.iter().map(|it| ask(it))));
    let (mut problems, mut counts) = (Vec::new(), Vec::new());
    for (provider, asked) in providers.iter().zip(asked) {
        let key = format!("providers.{}", provider.name);
        match asked {
            Ok(asked) => {
                let (told, count) = compare_one(config, provider, &key, &asked);
                problems.extend(told);
                counts.extend(count);
            }
            Err(error) => {
                let (key, message) = match &*error.setting {
                    "" => (key, error.came),
                    setting => (
                        format!("{key}.credentials"),
                        format!("{setting}: {}", error.came),
                    ),
                };
                problems.push(problem(&key, message, &error.cure));
            }
        }
    }
    (problems, counts)
}

/// Returns a runtime for requests, with which all clients share one crypto provider.
///
/// Errors: why nothing can be asked.
fn runtime() -> Result<Runtime, String> {
    // It may already be installed.
    _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("cannot be asked: {error}"))
}

/// Asks whether the destination of the log export is there. Returns why lines would not arrive.
pub(super) fn try_log_export(config: &Config) -> Option<Problem> {
    let export = config.log_export.as_ref()?;
    // Nobody reads these counts.
    let fetches = IntCounterVec::new(Opts::new("fetches", "fetches"), &["provider", "outcome"]);
    let tried = fetches
        .map_err(|error| error.to_string())
        .and_then(|fetches| runtime()?.block_on(log_export::try_out(export, &fetches)));
    let why = format!("lines would not arrive: {}", tried.err()?);
    let cure = "see that the destination is there and takes these keys";
    Some(problem("log_export", why, cure))
}

/// Compares the mappings of a provider with what its lists have said.
fn compare_one(
    config: &Config,
    provider: &ProviderConfig,
    key: &str,
    asked: &AskedLists,
) -> (Vec<Problem>, Option<Problem>) {
    let failures = asked.failures.iter().map(|error| {
        let key = match &*error.setting {
            "" => key.to_owned(),
            setting => format!("{key}.{setting}"),
        };
        problem(&key, error.came.clone(), &error.cure)
    });
    let mut problems: Vec<Problem> = failures.collect();
    let mut mappings = find_mappings(config, &provider.name);
    mappings.retain(|mapping| asked.can_miss(provider, mapping.wire));
    let cure = provider.kind.host().model_lists.absent_cure;
    problems.extend(differences((key, cure), &mappings, &asked.models));
    let listed = mappings
        .iter()
        .filter(|mapping| listed_model::find(&asked.models, &mapping.name).is_some());
    let (listed, all) = (listed.count(), mappings.len());
    let count = (all > 0).then(|| {
        let message = format!("lists {listed} of the {all} models that the catalogue has of it");
        problem(&format!("{key}{COUNTED}"), message, "")
    });
    (problems, count)
}

fn problem(key: &str, message: String, cure: &str) -> Problem {
    Problem {
        key: key.to_owned(),
        place: Location::Nowhere {},
        message,
        cure: cure.to_owned(),
    }
}

fn find_mappings<'c>(config: &'c Config, provider: &str) -> Vec<&'c WrittenMapping> {
    let catalog = config.models.catalog.as_ref();
    let models = catalog
        .map(|file| file.models.as_slice())
        .unwrap_or_default();
    let mappings = models.iter().flat_map(|model| &model.providers);
    mappings
        .filter(|mapping| mapping.provider == provider)
        .collect()
}

/// Returns the differences between the catalogue and a provider's list.
fn differences(
    (key, absent_cure): (&str, &str),
    mappings: &[&WrittenMapping],
    listed: &ListedModels,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let known = mappings
        .iter()
        .map(|mapping| (*mapping, listed_model::find(listed, &mapping.name)));
    let unlisted = known.clone().filter(|(_, listed)| listed.is_none());
    let unlisted: Vec<String> = unlisted.map(|(mapping, _)| mapping.name.clone()).collect();
    if !unlisted.is_empty() {
        let message = format!("does not list {}", join_names(&unlisted));
        problems.push(problem(key, message, absent_cure));
    }
    let known = known.filter_map(|(mapping, listed)| Some((mapping, listed?)));
    let dear = known.clone().filter_map(|(mapping, listed)| {
        let ours = [&mapping.input_price, &mapping.output_price];
        let ours = ours.map(|price| Price::per_million(price.as_deref()?).ok());
        let pairs = ours.iter().zip(listed.prices);
        let mut pairs = pairs.filter_map(|(ours, theirs)| Some(((*ours)?, theirs?)));
        let differs = pairs.find(|(ours, theirs)| ours != theirs)?;
        let (ours, theirs) = (differs.0.to_decimal(), differs.1.to_decimal());
        Some(format!(
            "{} ({theirs} USD a token, {ours} in the catalogue)",
            mapping.name
        ))
    });
    let dear: Vec<String> = dear.collect();
    if !dear.is_empty() {
        let message = format!("lists other prices of {}", join_names(&dear));
        problems.push(problem(key, message, "correct the prices in the catalogue"));
    }
    let ending = known.filter_map(|(mapping, listed)| {
        let is_told = mapping.deprecated_at.is_some() || mapping.deactivated_at.is_some();
        let ends_at = listed.ends_at.as_ref().filter(|_| !is_told)?;
        Some(format!("{} ({ends_at})", mapping.name))
    });
    let ending: Vec<String> = ending.collect();
    if !ending.is_empty() {
        let message = format!("is about to retire {}", join_names(&ending));
        let cure = "give them deprecated_at or deactivated_at, and a successor";
        problems.push(problem(key, message, cure));
    }
    problems
}

fn join_names(names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_SHOWN);
    let first = names.iter().take(MAX_SHOWN).cloned();
    let first: Vec<String> = first.collect();
    match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
#[path = "online_tests.rs"]
mod tests;
