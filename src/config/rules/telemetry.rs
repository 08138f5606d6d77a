//! Checks the keys of `[telemetry]`.

use http::{HeaderName, HeaderValue, Uri};

use super::Rules;
use super::provider_urls::is_unencrypted_and_remote;
use crate::config::checked::TelemetryConfig;
use crate::config::file::{OtlpProtocol, SecretRef, TelemetryFile};
use crate::config::secret::{self, Secret};
use crate::config::walk::{join_key, sounds_secret};

const ENDPOINT: &str = "telemetry.otlp_endpoint";
/// The path of exports over HTTP. Source: the OTLP specification.
const TRACES_PATH: &str = "/v1/traces";
/// The variables of OpenTelemetry's SDKs, each with the key that does the same here.
///
/// Our choice: they are not read. A variable that a platform sets for all its programs would send names of organizations
/// and models to an address that nobody has written here.
const SDK_VARIABLES: [(&str, &str); 6] = [
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "otlp_endpoint"),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "otlp_endpoint"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "otlp_headers"),
    ("OTEL_EXPORTER_OTLP_PROTOCOL", "otlp_protocol"),
    ("OTEL_SERVICE_NAME", "service_name"),
    ("OTEL_TRACES_SAMPLER_ARG", "sample_ratio"),
];
/// Headers that belong to the export itself.
const RESERVED: [&str; 9] = [
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "accept-encoding",
    "connection",
    "transfer-encoding",
    "upgrade",
    "te",
];

/// Converts the section, or returns `None` if traces go nowhere.
pub(super) fn check(rules: &mut Rules<'_>, file: &TelemetryFile) -> Option<TelemetryConfig> {
    warn_of_sdk_variables(rules);
    let headers = check_headers(rules, file);
    if file.otlp_endpoint.is_empty() {
        if !file.otlp_headers.is_empty() {
            let message = format!("has no effect without {ENDPOINT}");
            let cure = "set it, or take the headers out";
            rules.warn("telemetry.otlp_headers", message, cure);
        }
        return None;
    }
    let url = file.otlp_endpoint.trim_end_matches('/');
    if is_unencrypted_and_remote(url) {
        let message =
            "traces, and the headers with them, would travel unencrypted to another machine";
        rules.warn(ENDPOINT, message, "use https");
    }
    Some(TelemetryConfig {
        endpoint: endpoint(rules, url, file.otlp_protocol),
        protocol: file.otlp_protocol,
        headers,
        service_name: file.service_name.clone(),
        sample_ratio: file.sample_ratio,
        queue: file.queue,
        timeout: file.timeout,
        semconv: file.semconv,
    })
}

/// Warns of a variable that an SDK would read, where the key that does the same is not set.
fn warn_of_sdk_variables(rules: &mut Rules<'_>) {
    for (variable, name) in SDK_VARIABLES {
        let is_set = rules.env.get(variable).is_some_and(|text| !text.is_empty());
        let key = join_key("telemetry", name);
        if is_set && !rules.is_set(&key) {
            let message = format!("{variable} is set, and is not read");
            let cure = match name {
                "otlp_headers" => format!("set {key}"),
                _ => format!("set {key}, or WEIRGATE_TELEMETRY__{}", name.to_uppercase()),
            };
            rules.warn(&key, message, cure);
        }
    }
}

/// Returns the URL of each export.
fn endpoint(rules: &mut Rules<'_>, url: &str, protocol: OtlpProtocol) -> String {
    let path = url.parse::<Uri>();
    let path = path.as_ref().map_or("", |uri| uri.path());
    match protocol {
        OtlpProtocol::Http if path.ends_with(TRACES_PATH) => url.to_owned(),
        OtlpProtocol::Http => format!("{url}{TRACES_PATH}"),
        OtlpProtocol::Grpc => {
            if path.len() > 1 {
                let message = "is a URL with a path, which gRPC does not have";
                let cure = "cut the path off, or set telemetry.otlp_protocol = \"http\"";
                rules.refuse(ENDPOINT, message, cure);
            }
            url.to_owned()
        }
    }
}

fn check_headers(rules: &mut Rules<'_>, file: &TelemetryFile) -> Vec<(HeaderName, Secret)> {
    let mut checked = Vec::new();
    for (name, reference) in &file.otlp_headers {
        let key = join_key("telemetry.otlp_headers", name);
        // The names were checked with the document.
        let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
            continue;
        };
        let lower = header.as_str();
        if RESERVED.contains(&lower) || lower.starts_with("grpc-") {
            let message = format!("the exporter sets {lower} itself");
            rules.refuse(&key, message, "take it out");
            continue;
        }
        if let Some(value) = find_value(rules, &key, (lower, reference)) {
            checked.push((header, value));
        }
    }
    checked
}

/// Returns the value of a header. A literal is refused where its name sounds like that of a secret.
fn find_value(
    rules: &mut Rules<'_>,
    key: &str,
    (name, reference): (&str, &SecretRef),
) -> Option<Secret> {
    let is_literal = matches!(reference, SecretRef::Literal(_));
    let found = match is_literal && !sounds_secret(name) {
        true => secret::find_text(reference, rules.env).ok(),
        false => rules.find_secret(key, Some(reference)),
    }?;
    if HeaderValue::from_str(found.expose()).is_err() {
        let message = "holds characters that cannot stand in a header";
        rules.refuse(key, message, "write it without them");
        return None;
    }
    Some(found)
}
