//! Asks providers for their lists of models, with their keys, all at once, each within three seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use filters::models::cloud_credentials::sigv4::{BodyHash, SigningScope};
use filters::models::cloud_credentials::source_error::SourceError;
use filters::models::routing::WrittenMapping;
use filters::money::Price;
use futures::future::join_all;
use serde_json::Value;

use crate::config::{Config, Location, Problem, ProviderConfig};
use crate::models::cloud_credentials::authorize::authorize;
use crate::models::cloud_credentials::{CredentialSource, HeldCredential, SourceState};
use crate::outbound::{Outbound, describe, read_success};
use crate::telemetry::metrics::Metrics;

/// The time limit of a provider's whole reply.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum size of a list.
const MAX_LIST_BYTES: usize = 16 << 20;
/// The maximum number of names in one finding.
const MAX_SHOWN: usize = 20;

/// A model in its provider's list.
#[derive(Debug, Default)]
struct ListedModel {
    /// The price per token in USD, of prompt and completion, if the list has prices.
    prices: [Option<Price>; 2],
    ends_at: Option<String>,
}

/// Asks providers for their lists. Returns the differences from the catalogue.
///
/// A provider without a list, or whose key is missing, gives its own finding.
pub(super) fn compare(config: &Config, providers: &[&ProviderConfig]) -> Vec<Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            return vec![problem(
                "providers",
                format!("cannot be asked: {error}"),
                "",
            )];
        }
    };
    // All clients share one crypto provider, which may already be installed.
    _ = rustls::crypto::ring::default_provider().install_default();
    let lists = runtime.block_on(join_all(providers.iter().map(|it| sign_in_and_list(it))));
    let mut findings = Vec::new();
    for (provider, listed) in providers.iter().zip(lists) {
        let key = format!("providers.{}", provider.name);
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                let message = format!("{}: {}", error.setting, error.came);
                let key = format!("{key}.credentials");
                findings.push(problem(&key, message, &error.cure));
                continue;
            }
        };
        match listed {
            Ok(listed) => {
                let mappings = find_mappings(config, &provider.name);
                findings.extend(differences(&key, &mappings, &listed));
            }
            Err(why) => {
                let message = format!("its list of models could not be read: {why}");
                let cure = "nothing to do if it has no such list; else look at its key";
                findings.push(problem(&key, message, cure));
            }
        }
    }
    findings
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

/// The models of a provider, by name, or why it has no list.
type Listed = Result<BTreeMap<String, ListedModel>, String>;

/// Fetches a provider's credentials, if a source gives them, and asks it for its models.
///
/// Errors: the source gives none.
async fn sign_in_and_list(provider: &ProviderConfig) -> Result<Listed, SourceError> {
    let Some(cloud) = &provider.cloud else {
        return Ok(list(provider, None).await);
    };
    let failed = |came: String| SourceError::new("credentials", came, "");
    let metrics = Metrics::new().map_err(|error| failed(error.to_string()))?;
    let name = provider.name.as_str().into();
    let source = CredentialSource::new(&name, cloud, &metrics.credential_fetches);
    let source = Arc::new(source);
    source.wait().await;
    match source.state() {
        SourceState::Ready(held) => Ok(list(provider, Some(&held)).await),
        SourceState::Failed(error) => Err(error),
        SourceState::Missing => Err(failed("the source did not answer in time".to_owned())),
    }
}

/// Returns the headers with which a request for a list carries a credential.
fn authorized(
    url: &str,
    provider: &ProviderConfig,
    held: &HeldCredential,
) -> Option<http::HeaderMap> {
    let uri: http::Uri = url.parse().ok()?;
    let host = http::HeaderValue::from_str(uri.authority()?.as_str()).ok()?;
    let request = http::Request::get(uri).header(http::header::HOST, host);
    let (mut parts, ()) = request.body(()).ok()?.into_parts();
    let cloud = provider.cloud.as_ref()?;
    let scope = SigningScope {
        region: cloud.region.clone(),
        service: cloud.service.clone(),
    };
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    let hash = BodyHash::from_slices([]);
    authorize(&mut parts, held, Some(&scope), (&hash, now_s))?;
    // The HTTP client writes it.
    parts.headers.remove(http::header::HOST);
    Some(parts.headers)
}

/// Asks a provider for its models, by name. Errors: the reason for which there is no list.
async fn list(provider: &ProviderConfig, held: Option<&HeldCredential>) -> Listed {
    let host = provider.kind.host();
    let list = host.model_list;
    let list = list.ok_or_else(|| "its API has none".to_owned())?;
    // Equal endpoints serve the same models, so the first one suffices.
    let base_url = provider.base_urls.first().map_or("", String::as_str);
    let url = format!("{base_url}{list}");
    let client = Outbound::new(LIST_TIMEOUT, [base_url]).map_err(describe)?;
    let mut request = client.get(&url)?;
    for (name, value) in host.headers {
        request = request.header(*name, *value);
    }
    for (name, value) in &provider.headers {
        request = request.header(name, value);
    }
    if let Some(key) = provider.keys.first() {
        let header = host.credential(key.expose(), &provider.quirks);
        let (name, value) = header.map_err(|fault| fault.message.into_owned())?;
        request = request.header(name, value);
    }
    if let Some(held) = held {
        let headers = authorized(&url, provider, held);
        request = request.headers(headers.ok_or("its credentials do not sign")?);
    }
    let reply = request.send().await.map_err(describe)?;
    let body = read_success(reply, MAX_LIST_BYTES).await?;
    let body: Value = serde_json::from_slice(&body).map_err(|_| "it is no JSON".to_owned())?;
    read_list(&body).ok_or_else(|| "it is no list of models".to_owned())
}

/// Reads the lists of all kinds of providers: the models are in `data`, in `models`, or in the list itself.
fn read_list(body: &Value) -> Option<BTreeMap<String, ListedModel>> {
    let inner = [body.get("data"), body.get("models"), Some(body)];
    let models = inner.into_iter().flatten().find_map(Value::as_array)?;
    let named = models.iter().filter_map(|model| {
        let name = ["id", "name"]
            .iter()
            .find_map(|key| model.get(key)?.as_str())?;
        Some((
            name.trim_start_matches("models/").to_owned(),
            read_model(model),
        ))
    });
    Some(named.collect())
}

fn read_model(model: &Value) -> ListedModel {
    let price = |key: &str| {
        let price = model.get("pricing")?.get(key)?;
        let text = price
            .as_str()
            .map_or_else(|| price.to_string(), str::to_owned);
        Price::per_call(&text).ok()
    };
    let ends = [
        "deprecation",
        "deprecation_date",
        "expiration_date",
        "retirement_date",
    ];
    let ends_at = ends.iter().find_map(|key| model.get(key)?.as_str());
    let is_deprecated = model.get("deprecated").and_then(Value::as_bool) == Some(true);
    ListedModel {
        prices: [price("prompt"), price("completion")],
        ends_at: ends_at
            .map(str::to_owned)
            .or_else(|| is_deprecated.then(|| "a day it does not name".to_owned())),
    }
}

/// Returns the differences between the catalogue and a provider's list.
fn differences(
    key: &str,
    mappings: &[&WrittenMapping],
    listed: &BTreeMap<String, ListedModel>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let known = mappings
        .iter()
        .map(|mapping| (*mapping, listed.get(&mapping.name)));
    let unlisted = known.clone().filter(|(_, listed)| listed.is_none());
    let unlisted: Vec<String> = unlisted.map(|(mapping, _)| mapping.name.clone()).collect();
    if !unlisted.is_empty() {
        let message = format!("does not list {}", join_names(&unlisted));
        let cure = "correct their names in the catalogue, or take them out";
        problems.push(problem(key, message, cure));
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
