//! Checks the sign-in of providers to clouds, as far as that needs no server.

use std::collections::BTreeMap;
use std::sync::Arc;

use filters::models::cloud_credentials::aws::profile::{self, ProfileFiles};
use filters::models::cloud_credentials::aws::{self, Environment};
use filters::models::cloud_credentials::google::account::GoogleAccount;
use filters::models::cloud_credentials::source_error::SourceError;
use filters::models::cloud_credentials::{Cloud, entra, google};
use filters::models::hosts::ProviderKind;

use super::{Rules, places};
use crate::config::checked::CloudSettings;
use crate::config::file;

/// The beginnings of the variables that sources read.
const VARIABLES: [&str; 7] = [
    "AWS_",
    "AZURE_",
    "IDENTITY_",
    "GOOGLE_",
    "GCE_",
    "CLOUDSDK_",
    "HOME",
];
/// The settings that have an effect with `credentials` alone.
const BESIDE: [&str; 2] = ["signing_service", "token_scope"];

/// Checks `credentials` of a provider, and what stands beside it.
pub(super) fn check(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
) -> Option<CloudSettings> {
    let Some(cloud) = provider.credentials else {
        for name in BESIDE {
            let place = format!("{key}.{name}");
            if rules.is_set(&place) {
                rules.warn(&place, "has no effect without credentials", "take it out");
            }
        }
        return None;
    };
    let place = format!("{key}.credentials");
    if provider.keys.is_some() {
        rules.refuse(&place, "stands beside keys", "take one of the two out");
    }
    if provider.kind == ProviderKind::Sandbox {
        rules.refuse(&place, "has no effect on the sandbox", "take it out");
    }
    let environment = environment(rules.env);
    check_words(rules, key, provider);
    let region = check_source(rules, key, (cloud, provider), &environment);
    let usual = cloud.usual_scope();
    let scope = provider.token_scope.as_deref().unwrap_or(usual);
    Some(CloudSettings {
        cloud,
        environment: Arc::new(environment),
        region: region.into(),
        service: provider
            .signing_service
            .as_deref()
            .unwrap_or(provider.kind.host().signing_service)
            .into(),
        scope: scope.into(),
    })
}

/// Returns the variables that sources read.
pub(super) fn environment(all: &BTreeMap<String, String>) -> Environment {
    let variables = all.iter().filter(|(name, _)| {
        let mut beginnings = VARIABLES.iter();
        beginnings.any(|beginning| name.starts_with(beginning))
    });
    let variables = variables.map(|(name, value)| (name.clone(), value.clone()));
    variables.collect()
}

/// Returns the sign-in to a service of AWS by its own sources.
pub(super) fn of_aws(environment: Environment, region: &str, service: &str) -> CloudSettings {
    CloudSettings {
        cloud: Cloud::Aws,
        environment: Arc::new(environment),
        region: region.into(),
        service: service.into(),
        scope: Cloud::Aws.usual_scope().into(),
    }
}

/// Returns how a provider signs in with the JSON that an organization may give as its key: as it does itself, or else as its kind
/// can. The platform's own secrets are not in it.
pub(super) fn for_own_keys(
    provider: &file::ProviderConfig,
    own: Option<&CloudSettings>,
    region: &str,
) -> Option<CloudSettings> {
    let host = provider.kind.host();
    let settings = match own {
        Some(own) => CloudSettings {
            environment: Arc::default(),
            ..own.clone()
        },
        None => {
            let cloud = host.own_key_form?;
            CloudSettings {
                cloud,
                environment: Arc::default(),
                region: region.into(),
                service: host.signing_service.into(),
                scope: cloud.usual_scope().into(),
            }
        }
    };
    // A signature names a region.
    let can_sign = settings.cloud != Cloud::Aws || !settings.region.is_empty();
    (settings.cloud != Cloud::Entra && can_sign).then_some(settings)
}

/// Refuses words that stand in signatures and requests and that no cloud writes so.
fn check_words(rules: &mut Rules<'_>, key: &str, provider: &file::ProviderConfig) {
    let is_scope = |text: &str| text.bytes().all(|b| b.is_ascii_graphic()) && !text.is_empty();
    let service = provider.signing_service.as_deref();
    let service = service.filter(|it| !places::is_name(it));
    let scope = provider.token_scope.as_deref();
    let scope = scope.filter(|it| !is_scope(it));
    let bad = [
        service.map(|_| "signing_service"),
        scope.map(|_| "token_scope"),
    ];
    for name in bad.into_iter().flatten() {
        let message = "has characters that none has";
        rules.refuse(
            &format!("{key}.{name}"),
            message,
            "write it as the cloud does",
        );
    }
}

/// Chooses the source once, so that what cannot work is said at the start. Returns the region of AWS.
fn check_source(
    rules: &mut Rules<'_>,
    key: &str,
    (cloud, provider): (Cloud, &file::ProviderConfig),
    environment: &Environment,
) -> String {
    let chosen = match cloud {
        Cloud::Entra => entra::choose(environment).map(drop),
        Cloud::Google => check_google(environment),
        Cloud::Aws => {
            let place = (key, "credentials");
            return check_aws(
                rules,
                place,
                (provider.region.as_deref(), true),
                environment,
            );
        }
    };
    if let Err(error) = chosen {
        refuse(rules, (key, "credentials"), error);
    }
    String::new()
}

/// Returns the region of AWS, or an empty text after a finding. `needs_source` says that a source has to be there, and
/// `place` is the table and the key at which it is missed.
pub(super) fn check_aws(
    rules: &mut Rules<'_>,
    place: (&str, &str),
    (region, needs_source): (Option<&str>, bool),
    environment: &Environment,
) -> String {
    let texts = profile::paths(environment).map(|path| std::fs::read_to_string(path?).ok());
    let [config, credentials] = &texts;
    let files = ProfileFiles {
        config: config.as_deref(),
        credentials: credentials.as_deref(),
    };
    let region = match aws::find_region(region, environment, &files) {
        Ok(region) => region,
        Err(error) => {
            refuse(rules, (place.0, "region"), error);
            return String::new();
        }
    };
    if needs_source && let Err(error) = aws::choose(environment, &files, &region) {
        refuse(rules, place, error);
    }
    region
}

fn refuse(rules: &mut Rules<'_>, (key, name): (&str, &str), error: SourceError) {
    let message = match &*error.setting {
        setting if setting == name => error.came,
        setting => format!("{setting}: {}", error.came),
    };
    rules.refuse(&format!("{key}.{name}"), message, error.cure);
}

fn check_google(environment: &Environment) -> Result<(), SourceError> {
    let file = google::file(environment).filter(|file| file.is_required);
    let Some(file) = file else {
        return google::metadata_request(environment, google::USUAL_SCOPE).map(drop);
    };
    let text = std::fs::read_to_string(&file.path).map_err(|error| {
        let came = format!("{} cannot be read: {error}", file.path);
        SourceError::new(file.setting, came, "let the service's user read the file")
    })?;
    GoogleAccount::read(file.setting, &text).map(drop)
}
