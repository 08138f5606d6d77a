//! Checks the addresses of providers.

use std::net::IpAddr;

use filters::models::hosts::ProviderKind;
use http::Uri;

use super::Rules;
use crate::config::file;

/// Returns the addresses that the operator wrote.
pub(super) fn listed_urls(provider: &file::ProviderConfig) -> Vec<&str> {
    let all = provider.base_url.iter().chain(&provider.replicas);
    all.map(|url| url.trim_end_matches('/')).collect()
}

/// Returns the key at which one of these addresses is in the file.
pub(super) fn url_place(key: &str, provider: &file::ProviderConfig, number: usize) -> String {
    match number.checked_sub(usize::from(provider.base_url.is_some())) {
        Some(number) => format!("{key}.replicas[{number}]"),
        None => format!("{key}.base_url"),
    }
}

/// Checks the addresses. Returns at least one.
pub(super) fn check_base_urls(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
    region: &str,
) -> Vec<String> {
    let host = provider.kind.host();
    let is_needed = match provider.kind {
        ProviderKind::Sandbox => false,
        // Without a sign-in the provider is off.
        ProviderKind::Azure => provider.credentials.is_some(),
        _ => host.base_url.is_none(),
    };
    let listed = listed_urls(provider);
    if listed.is_empty() && is_needed {
        let message = "is missing: this kind has no usual address";
        rules.refuse(
            &format!("{key}.base_url"),
            message,
            match provider.kind {
                ProviderKind::Azure => "add base_url = \"https://RESOURCE.openai.azure.com\"",
                _ => "add base_url = \"https://…/v1\"",
            },
        );
    }
    check_replicas(rules, key, provider, &listed);
    for (number, url) in listed.iter().enumerate() {
        check_url_end(rules, &url_place(key, provider, number), provider, url);
    }
    match listed.as_slice() {
        [] => vec![host.base_url_in(region).unwrap_or_default()],
        listed => listed.iter().map(|url| (*url).to_owned()).collect(),
    }
}

/// Refuses replicas whose path differs from that of the base URL.
fn check_replicas(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
    listed: &[&str],
) {
    if provider.base_url.is_none() && !provider.replicas.is_empty() {
        let message = "stands without base_url, whose equals they are";
        let cure = "make the first of them the base_url";
        rules.refuse(&format!("{key}.replicas"), message, cure);
    }
    let path = |url: &str| {
        let uri: Option<Uri> = url.parse().ok();
        uri.map(|uri| uri.path().trim_end_matches('/').to_owned())
    };
    let first = listed.first().map(|url| path(url));
    for (number, url) in listed.iter().enumerate().skip(1) {
        if Some(path(url)) != first {
            let message = "has another path than base_url";
            let cure = "list equal servers, each with the same path";
            rules.refuse(&url_place(key, provider, number), message, cure);
        }
    }
}

/// The ends of URLs that are endpoints. The wire adds endpoints itself.
const ENDPOINTS: [&str; 13] = [
    "/chat/completions",
    "/completions",
    "/embed",
    "/embeddings",
    "/rerank",
    "/moderations",
    "/ocr",
    "/search",
    "/decisions",
    "/messages",
    "/responses",
    ":generateContent",
    ":streamGenerateContent",
];

/// Refuses a URL that ends in an endpoint, and warns of a version that the wire adds.
pub(super) fn check_url_end(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
    url: &str,
) {
    if let Some(end) = ENDPOINTS.iter().find(|end| url.ends_with(*end)) {
        let message = format!("ends in {end}, which is added to it");
        rules.refuse(
            key,
            message,
            "take it off: give the URL that the vendor's own SDK takes",
        );
        return;
    }
    let mut versions = provider.kind.host().wires.iter().map(|it| it.path_prefix);
    if let Some(version) = versions.find(|it| !it.is_empty() && url.ends_with(*it)) {
        let message = format!("ends in {version}, which is added to it");
        rules.warn(
            key,
            message,
            "take it off: give the URL that the vendor's own SDK takes",
        );
    }
}

/// Returns whether unknown members do no harm: at OpenAI itself, and at a server on this machine. Any other server
/// may be an aggregator, which accepts members that choose another model or price.
pub(super) fn is_known_server(provider: &file::ProviderConfig) -> bool {
    let is_known = |url: &str| url.starts_with("https://api.openai.com/") || is_loopback(url);
    listed_urls(provider).into_iter().all(is_known)
}

/// Returns whether a URL names this machine.
pub(super) fn is_loopback(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Returns whether third parties can read requests to a URL.
pub(super) fn is_unencrypted_and_remote(url: &str) -> bool {
    url.starts_with("http://") && !is_loopback(url)
}
