//! Checks the providers: whether each is on, and its settings.

use std::time::Duration;

use filters::models::hosts::{HostPlace, ProviderKind};
use filters::models::routing::places::RegionTurn;
use filters::models::routing::providers::ProviderNames;
use http::{HeaderName, HeaderValue};

use super::Rules;
use super::cloud;
use super::places;
use super::provider_urls::{
    check_base_urls, check_url_end, is_loopback, is_unencrypted_and_remote, listed_urls, url_place,
};
use super::quirks::{to_defaults, to_quirks};
use crate::config::checked::{
    HealthConfig, OffProvider, ProviderConfig, RegionConfig, provider_names,
};
use crate::config::file::{self, File, providers as raw};
use crate::config::secret::{self, Absent, Secret};
use crate::config::walk::join_key;

/// Headers that carry credentials or belong to the connection.
const RESERVED: [&str; 14] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "accept-encoding",
    "connection",
    "transfer-encoding",
    "upgrade",
];

/// The configured providers.
#[derive(Default)]
pub(super) struct FoundProviders {
    pub on: Vec<ProviderConfig>,
    /// The reasons for which providers are off, including those of `byok_only`.
    pub off: Vec<OffProvider>,
    /// Providers that lack a platform key. They serve callers with BYOK keys.
    pub byok_only: Vec<ProviderConfig>,
}

impl FoundProviders {
    /// Returns the names of the serving providers.
    pub(super) fn names(&self) -> ProviderNames {
        provider_names(self.on.iter().chain(&self.byok_only))
    }
}

/// Checks all providers.
pub(super) fn check(rules: &mut Rules<'_>, file: &File) -> FoundProviders {
    let mut found = FoundProviders::default();
    for (name, raw) in &file.providers {
        let (provider, missing_key) = check_provider(rules, name, raw);
        let missing_place = find_missing_place(&join_key("providers", name), raw);
        let serves_own_keys = missing_place.is_none();
        let Some(reason) = missing_place.or(missing_key) else {
            found.on.push(provider);
            continue;
        };
        if serves_own_keys {
            found.byok_only.push(provider);
        }
        found.off.push(OffProvider {
            name: name.clone(),
            why: reason.why,
            cure: reason.cure,
            serves_own_keys,
        });
    }
    found
}

/// The reason for which there is no provider or no key, and the cure.
struct Reason {
    why: String,
    cure: String,
}

impl Reason {
    fn new(why: &str, cure: &str) -> Self {
        Self {
            why: why.to_owned(),
            cure: cure.to_owned(),
        }
    }

    /// Combines the reasons of absent keys, one of which would suffice.
    fn from_absent(absent: &[Absent]) -> Self {
        let joined = |texts: Vec<String>, between: &str| texts.join(between);
        Self {
            why: joined(absent.iter().map(Absent::to_string).collect(), "; "),
            cure: joined(absent.iter().map(Absent::cure).collect(), " or "),
        }
    }
}

/// Returns why a provider has no place, which only the operator knows: a resource, a project or a workspace. `None`: it has one, or signs
/// in to its cloud, where the lack is an error.
///
/// Our choice: such a provider is off, so that a file may list clouds that nobody uses, and no key of an organization reaches
/// an address that nobody has named.
fn find_missing_place(key: &str, provider: &file::ProviderConfig) -> Option<Reason> {
    if provider.credentials.is_some() {
        return None;
    }
    let is_empty = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
    let host = provider.kind.host();
    if provider.kind == ProviderKind::Azure && listed_urls(provider).is_empty() {
        let cure = format!("set {key}.base_url");
        return Some(Reason::new("no resource is named", &cure));
    }
    if host.place == HostPlace::Project && is_empty(&provider.project) {
        let cure = format!("set {key}.project");
        return Some(Reason::new("no project is named", &cure));
    }
    if let Some(header) = host.workspace_header
        && is_empty(&provider.workspace)
        && !provider
            .headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case(header))
    {
        let cure = format!("set {key}.workspace");
        return Some(Reason::new("no workspace is named", &cure));
    }
    None
}

/// Checks one provider. Returns it with the reason for a missing key, if it needs one.
fn check_provider(
    rules: &mut Rules<'_>,
    name: &str,
    provider: &file::ProviderConfig,
) -> (ProviderConfig, Option<Reason>) {
    let key = join_key("providers", name);
    let mut headers = check_headers(rules, &key, provider);
    places::check_workspace(rules, &key, provider, &mut headers);
    let cloud = cloud::check(rules, &key, provider);
    let keys = find_keys(rules, &key, provider);
    let place = places::check(rules, &key, provider, cloud.as_ref());
    let base_urls = check_base_urls(rules, &key, provider, &place.region);
    let own_key_cloud = cloud::for_own_keys(provider, cloud.as_ref(), &place.region);
    let kind = provider.kind;
    if kind.host().words().next().is_none() {
        warn_idle_quirks(rules, &key);
    }
    let (keys, missing_key) = match keys {
        Ok(keys) => (keys, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let regions = check_regions(rules, &key, provider);
    let has_regional_keys = regions
        .iter()
        .any(|region| region.keys.as_ref().is_some_and(|keys| !keys.is_empty()));
    let is_byok_only = missing_key.is_some();
    let missing_key = missing_key.filter(|_| !has_regional_keys);
    let carries_keys = !keys.is_empty() || cloud.is_some() || is_byok_only;
    let unencrypted = base_urls
        .iter()
        .position(|url| is_unencrypted_and_remote(url));
    if let Some(number) = unencrypted.filter(|_| carries_keys) {
        let message = "keys and prompts would travel unencrypted to another machine";
        rules.warn(&url_place(&key, provider, number), message, "use https");
    }
    check_vendor(rules, &key, provider, &regions);
    let provider = ProviderConfig {
        name: name.to_owned(),
        kind,
        vendor: provider.vendor,
        is_base_url_built_in: listed_urls(provider).is_empty() && kind != ProviderKind::Sandbox,
        health: check_health(rules, &key, provider),
        base_urls,
        keys,
        cloud,
        own_key_cloud,
        place,
        regions,
        is_byok_only,
        headers,
        priority: provider.priority,
        quirks: to_quirks(provider),
        defaults: to_defaults(rules, &key, kind, provider),
    };
    (provider, missing_key)
}

/// Refuses to send callers' own credentials to another machine unencrypted.
fn check_vendor(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
    regions: &[RegionConfig],
) {
    let regional = regions.iter().filter_map(|it| it.base_url.as_deref());
    let mut urls = listed_urls(provider).into_iter().chain(regional);
    if provider.vendor.is_some() && urls.any(is_unencrypted_and_remote) {
        let message = "callers' own credentials would travel unencrypted to another machine";
        rules.refuse(&format!("{key}.vendor"), message, "use https");
    }
}

/// The default interval of health checks.
const HEALTH_INTERVAL_S: u64 = 5;

/// Returns the health checks of a provider's endpoints. There are some if it has several endpoints or a health path.
fn check_health(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
) -> Option<HealthConfig> {
    let path = provider.health_path.clone();
    let usual = match !provider.replicas.is_empty() || path.is_some() {
        true => HEALTH_INTERVAL_S,
        false => 0,
    };
    let interval_s = provider.health_interval_s.unwrap_or(usual);
    if interval_s == 0 && path.is_some() {
        let message = "has no effect: health_interval_s = 0 switches the checks off";
        rules.warn(
            &format!("{key}.health_path"),
            message,
            "take one of them out",
        );
    }
    (interval_s > 0).then(|| HealthConfig {
        path,
        interval: Duration::from_secs(interval_s),
    })
}

/// Finds the keys. Errors: the reason for which a needed key is missing.
fn find_keys(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
) -> Result<Vec<Secret>, Reason> {
    let listed = provider.keys.as_deref().unwrap_or_default();
    if listed.is_empty() {
        return if needs_key(provider) {
            Err(Reason::new("no keys are listed", "list its keys"))
        } else {
            Ok(Vec::new())
        };
    }
    find_listed(rules, key, provider.kind, listed)
}

/// Finds the keys of a list. Errors: the reason for which none is present.
fn find_listed(
    rules: &mut Rules<'_>,
    key: &str,
    kind: ProviderKind,
    listed: &[file::SecretRef],
) -> Result<Vec<Secret>, Reason> {
    let mut found = Vec::new();
    let mut absent = Vec::new();
    for (index, reference) in listed.iter().enumerate() {
        let place = format!("{key}.keys[{index}]");
        if kind != ProviderKind::Sandbox && rules.refuse_literal(&place, reference) {
            continue;
        }
        match secret::find_text(reference, rules.env) {
            Ok(secret) if HeaderValue::from_str(secret.expose()).is_err() => {
                let message = "holds characters that cannot stand in a header";
                rules.refuse(&place, message, "store the bare key there");
            }
            Ok(secret) => found.push(secret),
            Err(why) => {
                if matches!(why, Absent::Unreadable(..)) {
                    rules.warn(&place, why.to_string(), "let the service's user read it");
                }
                absent.push(why);
            }
        }
    }
    if found.is_empty() {
        Err(Reason::from_absent(&absent))
    } else {
        Ok(found)
    }
}

/// Checks the regions. A region whose own keys are all absent only serves callers with a BYOK key.
fn check_regions(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
) -> Vec<RegionConfig> {
    let mut checked = Vec::new();
    for (name, region) in &provider.regions {
        let key = join_key(&format!("{key}.regions"), name);
        let base_url = region
            .base_url
            .as_deref()
            .map(|url| url.trim_end_matches('/'));
        if let Some(url) = base_url {
            check_url_end(rules, &format!("{key}.base_url"), provider, url);
        }
        let listed = region.keys.as_deref().filter(|keys| !keys.is_empty());
        let host = provider.kind.host();
        let usual = match host.place {
            HostPlace::Address => None,
            HostPlace::Region | HostPlace::Project => host.base_url_in(name),
        };
        if usual.is_some() && !places::is_name(name) {
            let message = format!("{name:?} is no name of a region");
            rules.refuse(
                &key,
                message,
                "use letters, digits and dashes, as in us-east-1",
            );
        }
        let is_nowhere = base_url.is_none() && listed.is_none() && usual.is_none();
        if is_nowhere && !host.names_regions {
            let message = "has neither base_url nor keys, so calls would not go to the region";
            rules.refuse(
                &key,
                message,
                "give it the region's base_url, or take it out",
            );
        }
        let keys = listed.map(|listed| {
            let found = find_listed(rules, &key, provider.kind, listed);
            found.unwrap_or_else(|reason| {
                let message = format!("the region has no key: {}", reason.why);
                rules.warn(
                    &format!("{key}.keys"),
                    message,
                    "set one, or take the list out",
                );
                Vec::new()
            })
        });
        checked.push(RegionConfig {
            turn: to_turn(region),
            name: name.clone(),
            base_url: base_url.map(str::to_owned).or(usual),
            keys,
        });
    }
    checked
}

/// Returns the turn of a region for requests that name none; `None`: it serves none of them.
fn to_turn(region: &raw::RegionConfig) -> Option<RegionTurn> {
    let is_in_turn = region.order.is_some() || region.weight.is_some();
    is_in_turn.then(|| RegionTurn {
        order: region.order.unwrap_or(1),
        weight: region.weight.unwrap_or(1),
    })
}

fn needs_key(provider: &file::ProviderConfig) -> bool {
    match provider.kind {
        _ if provider.credentials.is_some() => false,
        ProviderKind::Sandbox => false,
        ProviderKind::Compatible => {
            let urls = listed_urls(provider);
            let is_local = !urls.is_empty() && urls.into_iter().all(is_loopback);
            provider.keys.is_none() && !is_local
        }
        _ => true,
    }
}

fn check_headers(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
) -> Vec<(HeaderName, HeaderValue)> {
    let mut valid = Vec::new();
    for (name, value) in &provider.headers {
        let place = join_key(&format!("{key}.headers"), name);
        if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
            rules.hide(&place);
            let message = "is written by the gateway itself".to_owned();
            let cure = "put credentials into keys, and take the rest out".to_owned();
            rules.refuse_name(&place, message, cure);
            continue;
        }
        match (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            (Ok(name), Ok(value)) => valid.push((name, value)),
            _ => rules.refuse(
                &place,
                "holds characters that cannot stand in a header",
                "use printable characters only",
            ),
        }
    }
    valid
}

/// Warns of quirks without effect. All but the last one describe differences from the OpenAI convention.
fn warn_idle_quirks(rules: &mut Rules<'_>, key: &str) {
    for quirk in raw::CONVENTION_QUIRKS {
        let place = format!("{key}.{quirk}");
        if rules.is_set(&place) {
            let message = "has no effect on this kind";
            rules.warn(
                &place,
                message,
                "take it out: it is for the OpenAI convention",
            );
        }
    }
}
