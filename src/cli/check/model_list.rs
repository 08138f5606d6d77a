//! Asks a provider for its lists of models, with its key or its sign-in. No redirect is followed; bytes, pages and time are bounded.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use filters::models::cloud_credentials::clock_skew;
use filters::models::cloud_credentials::sigv4::{BodyHash, SigningScope};
use filters::models::cloud_credentials::source_error::{SourceError, describe_refusal};
use filters::models::hosts::ModelList;
use filters::models::routing::MappingWire;
use http::header;
use reqwest::Response;
use serde_json::Value;

use super::listed_model::{ListedModels, read_list};
use crate::cloud_credentials::authorize::authorize;
use crate::cloud_credentials::{CredentialSource, HeldCredential, SourceState};
use crate::config::ProviderConfig;
use crate::outbound::{Outbound, describe, read_body};
use crate::telemetry::metrics::Metrics;

/// The time limit of a whole reply.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);
/// The time limit of all lists of a provider, without its sign-in.
const LISTS_TIMEOUT: Duration = Duration::from_secs(12);
/// Maximum size of a page.
const MAX_PAGE_BYTES: usize = 16 << 20;
/// The maximum number of pages of a list, whose rest is not read.
const MAX_PAGES: usize = 10;
const CLOCK_CURE: &str = "set the clock of this machine";

/// What a provider's lists have said.
#[derive(Default)]
pub(super) struct AskedLists {
    pub(super) models: ListedModels,
    /// Whether each list of the host has answered to its end, in their order.
    answered: Vec<bool>,
    /// Why others have not.
    pub(super) failures: Vec<SourceError>,
}

impl AskedLists {
    /// Returns whether a model of this wire that is on no list is not offered.
    pub(super) fn can_miss(&self, provider: &ProviderConfig, wire: Option<MappingWire>) -> bool {
        let host = provider.kind.host();
        let wire = wire.or(host.usual().word);
        host.model_lists.can_miss(wire, &self.answered)
    }
}

/// Fetches a provider's credentials, if a source gives them, and asks it for its models.
///
/// Errors: the source gives none, or the lists take too long.
pub(super) async fn sign_in_and_ask(provider: &ProviderConfig) -> Result<AskedLists, SourceError> {
    let held = match &provider.cloud {
        None => None,
        Some(cloud) => {
            let failed = |came: String| SourceError::new("credentials", came, "");
            let metrics = Metrics::new().map_err(|error| failed(error.to_string()))?;
            let name = provider.name.as_str().into();
            let source = CredentialSource::new(&name, cloud, &metrics.credential_fetches);
            let source = Arc::new(source);
            source.wait().await;
            match source.state() {
                SourceState::Ready(held) => Some(held),
                SourceState::Failed(error) => return Err(error),
                SourceState::Missing => {
                    return Err(failed("the source did not answer in time".to_owned()));
                }
            }
        }
    };
    let asked = tokio::time::timeout(LISTS_TIMEOUT, ask_all(provider, held.as_deref())).await;
    asked.map_err(|_| {
        let came = format!(
            "its lists of models took more than {} s",
            LISTS_TIMEOUT.as_secs()
        );
        SourceError::new("", came, "look at the way to it, or try again")
    })
}

/// Asks for the lists of a provider, one after the other.
async fn ask_all(provider: &ProviderConfig, held: Option<&HeldCredential>) -> AskedLists {
    let wanted = provider.kind.host().model_lists;
    let mut asked = AskedLists::default();
    if wanted.lists.is_empty() {
        let came = "its list of models could not be read: its API has none";
        let error = SourceError::new("", came, "nothing to do");
        asked.failures.push(error);
    }
    for list in wanted.lists {
        let listed = ask(provider, held, list).await;
        asked.answered.push(listed.is_ok());
        match listed {
            Ok(models) => {
                asked.models.extend(models);
                if wanted.first_suffices {
                    asked.failures.clear();
                    break;
                }
            }
            Err(error) => asked.failures.push(error),
        }
    }
    asked.answered.resize(wanted.lists.len(), false);
    asked.failures.dedup();
    asked
}

/// Reads a list, page by page.
///
/// Errors: the setting at fault, why there is no list, and the cure.
async fn ask(
    provider: &ProviderConfig,
    held: Option<&HeldCredential>,
    list: &ModelList,
) -> Result<ListedModels, SourceError> {
    // Equal endpoints serve the same models, so the first one suffices.
    let written = provider.base_urls.first().map_or("", String::as_str);
    let own = list.base_url_in(&provider.place.region);
    let own = own.filter(|_| provider.is_base_url_built_in);
    let base_url = own.as_deref().unwrap_or(written);
    let first = format!("{base_url}{}", list.path);
    let mut url = first.clone();
    let mut models = ListedModels::new();
    for _ in 0..MAX_PAGES {
        let page = ask_page((provider, held), list, (base_url, &url)).await?;
        let listed = read_list(&page);
        models.extend(listed.ok_or_else(|| unreadable("it is no list of models"))?);
        let next = list
            .next_page
            .and_then(|[member, name]| Some((page.get(member)?.as_str()?, name)));
        let Some((token, name)) = next.filter(|(token, _)| !token.is_empty()) else {
            return Ok(models);
        };
        let token: String = form_urlencoded::byte_serialize(token.as_bytes()).collect();
        let joint = if first.contains('?') { '&' } else { '?' };
        url = format!("{first}{joint}{name}={token}");
    }
    Err(unreadable(&format!("it has more than {MAX_PAGES} pages")))
}

fn unreadable(why: &str) -> SourceError {
    let came = format!("its list of models could not be read: {why}");
    let cure = "nothing to do if it has no such list; else look at its key";
    SourceError::new("", came, cure)
}

async fn ask_page(
    (provider, held): (&ProviderConfig, Option<&HeldCredential>),
    list: &ModelList,
    (base_url, url): (&str, &str),
) -> Result<Value, SourceError> {
    let host = provider.kind.host();
    let failed = |error: String| unreadable(&error);
    let client = Outbound::new(LIST_TIMEOUT, [base_url]).map_err(|it| failed(describe(it)))?;
    let request = client.get(url);
    let mut request = request.map_err(|error| failed(error.to_string()))?;
    for (name, value) in host.headers {
        request = request.header(*name, *value);
    }
    for (name, value) in &provider.headers {
        request = request.header(name, value);
    }
    if let Some(key) = provider.keys.first() {
        let header = host.credential(key.expose(), &provider.quirks);
        let (name, value) = header.map_err(|fault| failed(fault.message.into_owned()))?;
        request = request.header(name, value);
    }
    if let Some(held) = held {
        let headers = authorized(url, provider, held);
        let headers = headers.ok_or_else(|| unreadable("its credentials do not sign"))?;
        request = request.headers(headers);
    }
    let reply = request.send().await.map_err(|it| failed(describe(it)))?;
    if !reply.status().is_success() {
        return Err(refused(provider, list, reply).await);
    }
    let body = read_body(reply, MAX_PAGE_BYTES).await.map_err(failed)?;
    serde_json::from_slice(&body).map_err(|_| unreadable("it is no JSON"))
}

/// Returns the headers with which a request for a list carries a credential.
fn authorized(
    url: &str,
    provider: &ProviderConfig,
    held: &HeldCredential,
) -> Option<http::HeaderMap> {
    let uri: http::Uri = url.parse().ok()?;
    let host = http::HeaderValue::from_str(uri.authority()?.as_str()).ok()?;
    let request = http::Request::get(uri).header(header::HOST, host);
    let (mut parts, ()) = request.body(()).ok()?.into_parts();
    let cloud = provider.cloud.as_ref()?;
    let scope = SigningScope {
        region: cloud.region.clone(),
        service: cloud.service.clone(),
    };
    let now_s = unix_s();
    let hash = BodyHash::from_slices([]);
    authorize(&mut parts, held, Some(&scope), (&hash, now_s))?;
    // The HTTP client writes it.
    parts.headers.remove(header::HOST);
    Some(parts.headers)
}

fn unix_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Describes a refusal: what came, and what helps.
async fn refused(provider: &ProviderConfig, list: &ModelList, reply: Response) -> SourceError {
    let status = reply.status().as_u16();
    let header = provider.kind.host().exception_header;
    let word = header.and_then(|name| reply.headers().get(name));
    let word = word.and_then(|word| word.to_str().ok()?.split(':').next().map(str::to_owned));
    let word = word.filter(|word| {
        (1..=64).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    let date = reply.headers().get(header::DATE);
    let skew = date.and_then(|date| clock_skew::describe(date.to_str().ok()?, unix_s()));
    let body = read_body(reply, MAX_PAGE_BYTES).await.unwrap_or_default();
    let came = match word {
        Some(word) => format!("it answered {status}, {word}"),
        None => describe_refusal(status, &body),
    };
    if !matches!(status, 401 | 403) {
        return unreadable(&came);
    }
    let setting = match provider.cloud {
        Some(_) => "credentials",
        None => "keys",
    };
    let came = format!("its list of models could not be read: {came}");
    if let Some(skew) = skew {
        return SourceError::new(setting, format!("{came}, and {skew}"), CLOCK_CURE);
    }
    let cure = match list.right {
        "" => "look at its key".to_owned(),
        right => format!("grant {right}; calls do not need it (docs/providers.md)"),
    };
    SourceError::new(setting, came, cure)
}
