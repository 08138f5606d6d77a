//! Which providers are on, and with what.

use std::net::IpAddr;

use filters::models::wires::Quirks;
use filters::models::wires::quirks::{ReasoningReplay, StreamUsage};
use http::{HeaderName, HeaderValue, Uri};

use super::Rules;
use crate::config::checked::{ProviderConfig, ProviderKind};
use crate::config::file::{self, File, providers as written};
use crate::config::secret::{self, Absent, Secret};
use crate::config::walk::join;

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
    /// Those that are on.
    pub on: Vec<ProviderConfig>,
    /// The others, with the reason.
    pub off: Vec<(String, String)>,
    /// Those of the others that only lack a key.
    pub keyless: Vec<ProviderConfig>,
}

/// Which providers are on, and which are not.
pub(super) fn check(rules: &mut Rules<'_>, file: &File) -> FoundProviders {
    let mut found = FoundProviders::default();
    for (name, written) in &file.providers {
        match one(rules, name, written) {
            Ok((provider, None)) => found.on.push(provider),
            Ok((provider, Some(why))) => {
                found.off.push((name.clone(), why));
                found.keyless.push(provider);
            }
            Err(why) => found.off.push((name.clone(), why)),
        }
    }
    found
}

/// One provider, and why it has no key though it needs one. Errors: why it is off for everybody.
fn one(
    rules: &mut Rules<'_>,
    name: &str,
    provider: &file::ProviderConfig,
) -> Result<(ProviderConfig, Option<String>), String> {
    let key = join("providers", name);
    let headers = headers(rules, &key, provider);
    let keys = keys(rules, &key, provider);
    let base_url = base_url(rules, &key, provider);
    let Some(kind) = kind(provider.kind) else {
        let message = "not in force yet: this kind is not built";
        rules.warn(
            &format!("{key}.kind"),
            message,
            "nothing to do: the provider stays off",
        );
        return Err("its kind is not in force yet".to_owned());
    };
    if matches!(
        kind,
        ProviderKind::Anthropic | ProviderKind::Google | ProviderKind::Sandbox
    ) {
        idle_quirks(rules, &key);
    }
    let (keys, lack) = match keys {
        Ok(keys) => (keys, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let carries_keys = !keys.is_empty() || lack.is_some();
    if is_plain_and_remote(&base_url) && carries_keys {
        let message = "keys and prompts would travel unencrypted to another machine";
        rules.warn(&format!("{key}.base_url"), message, "use https");
    }
    let provider = ProviderConfig {
        name: name.to_owned(),
        kind,
        base_url,
        keys,
        needs_own_key: lack.is_some(),
        region: provider.region.clone(),
        headers,
        priority: provider.priority,
        quirks: quirks(provider),
    };
    Ok((provider, lack))
}

fn kind(kind: written::ProviderKind) -> Option<ProviderKind> {
    match kind {
        written::ProviderKind::OpenAi => Some(ProviderKind::OpenAi),
        written::ProviderKind::Anthropic => Some(ProviderKind::Anthropic),
        written::ProviderKind::Google => Some(ProviderKind::Google),
        written::ProviderKind::Compatible => Some(ProviderKind::Compatible),
        written::ProviderKind::Sandbox => Some(ProviderKind::Sandbox),
        written::ProviderKind::Vertex
        | written::ProviderKind::Bedrock
        | written::ProviderKind::Azure => None,
    }
}

fn base_url(rules: &mut Rules<'_>, key: &str, provider: &file::ProviderConfig) -> String {
    let usual = match provider.kind {
        written::ProviderKind::OpenAi => "https://api.openai.com/v1",
        written::ProviderKind::Anthropic => "https://api.anthropic.com",
        written::ProviderKind::Google => "https://generativelanguage.googleapis.com",
        _ => "",
    };
    let is_needed = matches!(
        provider.kind,
        written::ProviderKind::Compatible | written::ProviderKind::Azure
    );
    if provider.base_url.is_none() && is_needed {
        let message = "is missing: this kind has no usual address";
        rules.refuse(
            &format!("{key}.base_url"),
            message,
            "add base_url = \"https://…/v1\"",
        );
    }
    let given = provider.base_url.as_deref().unwrap_or(usual);
    given.trim_end_matches('/').to_owned()
}

/// The keys that are there. Errors: why there is none though one is needed.
fn keys(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
) -> Result<Vec<Secret>, String> {
    let listed = provider.keys.as_deref().unwrap_or_default();
    if listed.is_empty() {
        return if needs_key(provider) {
            Err("no keys are listed".to_owned())
        } else {
            Ok(Vec::new())
        };
    }
    let mut found = Vec::new();
    let mut absent = Vec::new();
    for (index, reference) in listed.iter().enumerate() {
        let place = format!("{key}.keys[{index}]");
        if provider.kind != written::ProviderKind::Sandbox && rules.literal(&place, reference) {
            continue;
        }
        match secret::find(reference, rules.env) {
            Ok(secret) if HeaderValue::from_str(secret.expose()).is_err() => {
                let message = "holds characters that cannot stand in a header";
                rules.refuse(&place, message, "store the bare key there");
            }
            Ok(secret) => found.push(secret),
            Err(why) => {
                if matches!(why, Absent::Unreadable(..)) {
                    rules.warn(&place, why.to_string(), "let the service's user read it");
                }
                absent.push(why.to_string());
            }
        }
    }
    if found.is_empty() {
        Err(absent.join("; "))
    } else {
        Ok(found)
    }
}

fn needs_key(provider: &file::ProviderConfig) -> bool {
    match provider.kind {
        written::ProviderKind::Sandbox => false,
        written::ProviderKind::Compatible => {
            let is_local = provider.base_url.as_deref().is_some_and(is_loopback);
            provider.keys.is_none() && !is_local
        }
        _ => true,
    }
}

fn is_loopback(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn is_plain_and_remote(url: &str) -> bool {
    url.starts_with("http://") && !is_loopback(url)
}

fn headers(
    rules: &mut Rules<'_>,
    key: &str,
    provider: &file::ProviderConfig,
) -> Vec<(HeaderName, HeaderValue)> {
    let mut good = Vec::new();
    for (name, value) in &provider.headers {
        let place = join(&format!("{key}.headers"), name);
        if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
            let message = "is written by the gateway itself";
            rules.refuse(
                &place,
                message,
                "put credentials into keys, and take the rest out",
            );
            continue;
        }
        match (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(value),
        ) {
            (Ok(name), Ok(value)) => good.push((name, value)),
            _ => rules.refuse(
                &place,
                "holds characters that cannot stand in a header",
                "use printable characters only",
            ),
        }
    }
    good
}

/// Quirks describe the OpenAI convention; other wires have none but the last.
fn idle_quirks(rules: &mut Rules<'_>, key: &str) {
    for quirk in written::CONVENTION_QUIRKS {
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

fn quirks(provider: &file::ProviderConfig) -> Quirks {
    let plain = Quirks::default();
    let is_openai = provider.kind == written::ProviderKind::OpenAi;
    Quirks {
        chat_path: provider.chat_path.clone().unwrap_or(plain.chat_path),
        auth_header: provider
            .auth_header
            .as_ref()
            .and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok())
            .unwrap_or(plain.auth_header),
        max_completion_tokens: provider.max_tokens_field.map_or(is_openai, |field| {
            field == written::MaxTokensField::MaxCompletionTokens
        }),
        stream_usage: provider
            .stream_usage
            .map_or(plain.stream_usage, stream_usage),
        reasoning_replay: provider
            .reasoning_replay
            .map_or(plain.reasoning_replay, reasoning_replay),
        reasoning_excluded_from_completion: provider
            .reasoning_excluded_from_completion
            .unwrap_or(plain.reasoning_excluded_from_completion),
        drop: provider.drop.clone().unwrap_or(plain.drop),
        strict_messages: provider.strict_messages.unwrap_or(plain.strict_messages),
        drop_unknown_fields: provider.unknown_fields == Some(written::UnknownFields::Drop),
        tool_call_ids_of_nine: provider.tool_call_ids == Some(written::ToolCallIds::Mistral9),
        null_content_is_empty: provider.null_content == Some(written::NullContent::Empty),
        max_temperature: provider.max_temperature,
        json_schema: provider.json_schema.unwrap_or(plain.json_schema),
        forced_tools: provider.forced_tools.unwrap_or(plain.forced_tools),
        strict_schema: provider.strict_schema.unwrap_or(plain.strict_schema),
        developer_is_system: provider.system_role == Some(written::SystemRole::System),
        error_in_200: provider.error_in_200.unwrap_or(plain.error_in_200),
        bills_after_disconnect: provider
            .bills_after_disconnect
            .unwrap_or(plain.bills_after_disconnect),
    }
}

fn stream_usage(written: written::StreamUsage) -> StreamUsage {
    match written {
        written::StreamUsage::Ask => StreamUsage::Ask,
        written::StreamUsage::Always => StreamUsage::Always,
        written::StreamUsage::Never => StreamUsage::Never,
    }
}

fn reasoning_replay(written: written::ReasoningReplay) -> ReasoningReplay {
    match written {
        written::ReasoningReplay::None => ReasoningReplay::None,
        written::ReasoningReplay::ReasoningContent => ReasoningReplay::ReasoningContent,
        written::ReasoningReplay::Reasoning => ReasoningReplay::Reasoning,
        written::ReasoningReplay::ReasoningContentRequired => {
            ReasoningReplay::ReasoningContentRequired
        }
    }
}
