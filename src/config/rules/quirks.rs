//! The differences of a provider from its kind.

use filters::models::hosts::{ProviderKind, ServedWire};
use filters::models::routing::providers::ProviderDefaults;
use filters::models::wires::Quirks;
use filters::models::wires::quirks::{ReasoningReplay, StreamUsage};
use http::HeaderName;

use super::Rules;
use super::provider_urls::is_known_server;
use crate::config::file::{self, providers as raw};

/// Returns the options of the provider's mappings where the catalogue sets none.
pub(super) fn to_defaults(
    rules: &mut Rules<'_>,
    key: &str,
    kind: ProviderKind,
    provider: &file::ProviderConfig,
) -> ProviderDefaults {
    let written = &provider.parameters;
    for problem in written.problems() {
        let place = format!("{key}.parameters.{}", problem.key);
        rules.refuse(&place, problem.message, &problem.cure);
    }
    let host = kind.host();
    let of_wire = |served: &ServedWire| {
        let mut defaults = served.kind.wire().defaults();
        defaults.parameters = (served.parameters)(defaults.parameters).with(written);
        defaults
    };
    let mut defaults = of_wire(host.usual());
    defaults.search = provider.web_search.unwrap_or(defaults.search);
    let others = host.wires.iter().skip(1);
    let others = others.filter_map(|served| Some((served.word?, of_wire(served))));
    defaults.others.extend(others);
    defaults
}

pub(super) fn to_quirks(provider: &file::ProviderConfig) -> Quirks {
    let defaults = Quirks::default();
    Quirks {
        chat_path: provider.chat_path.clone().unwrap_or(defaults.chat_path),
        auth_header: provider
            .auth_header
            .as_ref()
            .and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok())
            .unwrap_or(defaults.auth_header),
        stream_usage: provider
            .stream_usage
            .map_or(defaults.stream_usage, to_stream_usage),
        reasoning_replay: provider
            .reasoning_replay
            .map_or(defaults.reasoning_replay, to_reasoning_replay),
        reasoning_excluded_from_completion: provider
            .reasoning_excluded_from_completion
            .unwrap_or(defaults.reasoning_excluded_from_completion),
        strict_messages: provider.strict_messages.unwrap_or(defaults.strict_messages),
        drop_unknown_fields: match provider.unknown_fields {
            Some(unknown) => unknown == raw::UnknownFields::Drop,
            None => !is_known_server(provider),
        },
        pass_members: provider
            .pass_members
            .clone()
            .unwrap_or(defaults.pass_members),
        tool_call_ids_of_nine: provider.tool_call_ids == Some(raw::ToolCallIds::Mistral9),
        null_content_is_empty: provider.null_content == Some(raw::NullContent::Empty),
        json_schema: provider.json_schema.unwrap_or(defaults.json_schema),
        forced_tools: provider.forced_tools.unwrap_or(defaults.forced_tools),
        strict_schema: provider.strict_schema.unwrap_or(defaults.strict_schema),
        developer_is_system: provider.system_role == Some(raw::SystemRole::System),
        late_instructions: provider
            .late_instructions
            .unwrap_or(provider.kind == ProviderKind::OpenAi),
        inline_images: provider.inline_images.unwrap_or(defaults.inline_images),
        cache_breakpoints: provider
            .cache_breakpoints
            .unwrap_or(defaults.cache_breakpoints),
        bills_after_disconnect: provider
            .bills_after_disconnect
            .unwrap_or(defaults.bills_after_disconnect),
    }
}

fn to_stream_usage(raw: raw::StreamUsage) -> StreamUsage {
    match raw {
        raw::StreamUsage::Ask => StreamUsage::Ask,
        raw::StreamUsage::Always => StreamUsage::Always,
        raw::StreamUsage::Never => StreamUsage::Never,
    }
}

fn to_reasoning_replay(raw: raw::ReasoningReplay) -> ReasoningReplay {
    match raw {
        raw::ReasoningReplay::None => ReasoningReplay::None,
        raw::ReasoningReplay::ReasoningContent => ReasoningReplay::ReasoningContent,
        raw::ReasoningReplay::Reasoning => ReasoningReplay::Reasoning,
        raw::ReasoningReplay::ReasoningContentRequired => ReasoningReplay::ReasoningContentRequired,
        raw::ReasoningReplay::ReasoningDetails => ReasoningReplay::ReasoningDetails,
    }
}
