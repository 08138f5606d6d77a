//! Checks where the requests of a cloud go: its project, its workspace, its region, and the version of its API.

use filters::models::hosts::{HostPlace, ProviderKind};
use http::{HeaderName, HeaderValue};

use super::Rules;
use crate::config::checked::{CloudSettings, ProviderPlace};
use crate::config::file;

/// The variables of a region of AWS, in their order.
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// Checks what the paths of a provider name.
pub(super) fn check(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
    cloud: Option<&CloudSettings>,
) -> ProviderPlace {
    let place = provider.kind.host().place;
    ProviderPlace {
        project: check_project(rules, key, provider, place),
        region: check_region(rules, key, (provider, cloud), place),
        api: check_api(rules, key, provider),
    }
}

/// Adds the header of the customer's workspace, which hosts with workspaces want of all requests.
pub(super) fn check_workspace(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
    headers: &mut Vec<(HeaderName, HeaderValue)>,
) {
    let at = format!("{key}.workspace");
    let Some(name) = provider.kind.host().workspace_header else {
        if provider.workspace.is_some() {
            let message = "has no effect: only Claude Platform on AWS has workspaces";
            rules.warn(&at, message, "take it out");
        }
        return;
    };
    let name = HeaderName::from_static(name);
    let is_there = headers.iter().any(|(header, _)| *header == name);
    match provider.workspace.as_deref().unwrap_or_default() {
        "" if is_there => {}
        // Without a sign-in the provider is off.
        "" if provider.credentials.is_none() => {}
        "" => {
            let message = "is missing: each request names the workspace";
            rules.refuse(&at, message, "add workspace = \"wrkspc_ID\"");
        }
        _ if is_there => {
            let message = format!("stands beside {name} in headers");
            rules.refuse(&at, message, "take one of the two out");
        }
        workspace => match HeaderValue::from_str(workspace) {
            Ok(value) => headers.push((name, value)),
            Err(_) => {
                let message = "holds characters that cannot stand in a header";
                rules.refuse(&at, message, "use printable characters only");
            }
        },
    }
}

fn check_project(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
    place: HostPlace,
) -> Box<str> {
    let at = format!("{key}.project");
    let project = provider.project.as_deref().unwrap_or_default();
    // Without a sign-in the provider is off.
    if place == HostPlace::Project && project.is_empty() && provider.credentials.is_some() {
        let message = "is missing: the paths of Vertex name it";
        rules.refuse(&at, message, "add project = \"PROJECT_ID\"");
    }
    if place != HostPlace::Project && provider.project.is_some() {
        let message = "has no effect: only the paths of Vertex name a project";
        rules.warn(&at, message, "take it out");
    }
    project.into()
}

fn check_region(
    rules: &mut Rules<'_>,
    key: &str,
    (provider, cloud): (&file::ProviderConfig, Option<&CloudSettings>),
    place: HostPlace,
) -> Box<str> {
    let at = format!("{key}.region");
    let written = provider.region.as_deref().filter(|it| !it.is_empty());
    if let Some(region) = written.filter(|it| !is_name(it)) {
        let message = format!("has characters that none has: {region:?}");
        rules.refuse(
            &at,
            message,
            "use letters, digits and dashes, as in us-east-1",
        );
    }
    match place {
        HostPlace::Address => written.unwrap_or_default().into(),
        HostPlace::Project => written.unwrap_or("global").into(),
        HostPlace::Region => {
            let env = rules.env;
            let of_environment = || {
                let mut found = REGIONS.iter().filter_map(|name| env.get(*name));
                found.find(|region| !region.is_empty()).cloned()
            };
            // A sign-in may know it of its profile, and says itself where it does not.
            let of_cloud = cloud.map(|cloud| cloud.region.to_string());
            let region = written
                .map(str::to_owned)
                .or(of_cloud)
                .or_else(of_environment);
            if region.is_none() && provider.base_url.is_none() {
                let message = "is missing, and neither AWS_REGION nor AWS_DEFAULT_REGION is set";
                rules.refuse(&at, message, "add region = \"us-east-1\"");
            }
            region.unwrap_or_default().into()
        }
    }
}

/// Returns whether a text may be a region or a service of a cloud: it becomes a part of addresses and signatures.
pub(super) fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=60).contains(&text.len()) && text.bytes().all(is_plain)
}

/// Returns the dated version; empty: the newest.
fn check_api(rules: &mut Rules<'_>, key: &str, provider: &file::ProviderConfig) -> Box<str> {
    let at = format!("{key}.api");
    let Some(api) = provider.api.as_deref() else {
        return "".into();
    };
    if provider.kind != ProviderKind::Azure {
        let message = "has no effect: only the kind azure has versions of its API";
        rules.warn(&at, message, "take it out");
        return "".into();
    }
    if api == "v1" {
        return "".into();
    }
    if !is_dated(api) {
        let message = format!("is {api:?}; accepted is v1 or a dated version");
        rules.refuse(
            &at,
            message,
            "write it as the vendor does, as in 2024-10-21",
        );
        return "".into();
    }
    api.into()
}

/// Returns whether a version begins with a date, such as `2025-04-01-preview`.
fn is_dated(api: &str) -> bool {
    let (date, rest) = api.split_at_checked(10).unwrap_or_default();
    let is_date = date.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    !date.is_empty() && is_date && (rest.is_empty() || rest == "-preview")
}
