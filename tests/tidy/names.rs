//! Names: each public type name once per crate, no retired names, providers named at home only.

use std::collections::BTreeMap;

use crate::findings::Finding;
use crate::retired;
use crate::source::{Source, word_offsets};
use crate::tokens::{definitions, tokens};

/// Public type names that a crate defines more than once, each with the files that define it.
pub fn repeated<'a>(files: &'a [Source], folder: &str) -> Vec<(String, Vec<(&'a Source, usize)>)> {
    let mut named: BTreeMap<String, Vec<(&Source, usize)>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_under(folder)) {
        for it in definitions(&tokens(&file.shipped)) {
            if it.is_public_type() {
                named.entry(it.name).or_default().push((file, it.at));
            }
        }
    }
    named.retain(|_, places| places.len() > 1 && !is_config_pair(places));
    named.into_iter().collect()
}

/// A setting as written in the file and the same setting as used may share their name.
fn is_config_pair(places: &[(&Source, usize)]) -> bool {
    let is_written = |file: &Source| file.is_under("src/config/file");
    let is_config = places.iter().all(|(file, _)| file.is_under("src/config/"));
    let written = places.iter().filter(|(file, _)| is_written(file)).count();
    is_config && places.len() == 2 && written == 1
}

/// The definitions of such names, as findings.
pub fn repeated_types(files: &[Source], folder: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, places) in repeated(files, folder) {
        for (file, at) in &places {
            let others = places.iter().filter(|(other, _)| other.path != file.path);
            let others: Vec<&str> = others.map(|(other, _)| other.path.as_str()).collect();
            let message = format!("`{name}` is public here and in {}", others.join(", "));
            found.push(Finding::new(file, *at, &name, message));
        }
    }
    found
}

/// Definitions under retired names.
pub fn retired_names(file: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for it in definitions(&tokens(&file.shipped)) {
        let retired = match it.kind.as_str() {
            "fn" => retired::FUNCTIONS,
            "mod" => retired::MODULES,
            "const" | "static" => retired::CONSTANTS,
            _ => retired::TYPES,
        };
        let here = retired.iter().filter(|(scope, _)| file.is_under(scope));
        if here
            .flat_map(|(_, words)| words.split(' '))
            .any(|word| word == it.name)
        {
            let message = format!("`{} {}` is a retired name", it.kind, it.name);
            found.push(Finding::new(file, it.at, &it.name, message));
        }
    }
    found
}

/// Names of provider families, each with the folders under `filters/models/wires` that may say it.
const FAMILIES: &[(&str, &[&str])] = &[
    ("anthropic", &["anthropic"]),
    ("azure", &["azure"]),
    ("bedrock", &["bedrock"]),
    ("claude", &["anthropic"]),
    ("cohere", &["cohere"]),
    ("gemini", &["google"]),
    ("google", &["google"]),
    ("openai", &["openai", "responses"]),
    ("vertex", &["vertex"]),
    ("voyage", &["voyage"]),
];
/// Files that may name every family: the lists of dialects, fronts, hosts and wires, the words of chat's `extra_content`, the fronts
/// that a vendor's clients speak, the headers that name a session, whose a caller's own credential is, the settings, the help texts
/// with an example, the clients that are told how to call, what another gateway calls providers, the bills of providers, and the
/// variables of clouds. Clouds sign in in folders of their own, whatever wires they serve.
const LISTS: &[&str] = &[
    "filters/accounts/passthrough.rs",
    "filters/models/cloud_credentials/",
    "filters/models/dialects/mod.rs",
    "filters/models/fronts/chat_completions/items.rs",
    "filters/models/hosts.rs",
    "filters/models/routing/catalog_file.rs",
    "filters/models/fronts/contents/",
    "filters/models/fronts/messages/",
    "filters/models/fronts/mod.rs",
    "filters/models/wires/mod.rs",
    "filters/reconcile/",
    "src/config/",
    "src/cli/clients.rs",
    "src/cli/init/discovery.rs",
    "src/cli/key.rs",
    "src/cli/litellm/",
    "src/cli/mcp.rs",
    "src/cli/provider_key.rs",
    "src/cli/reconcile.rs",
    "src/cloud_credentials/",
    "src/models/sessions.rs",
];

/// Provider names outside their folder, the lists and tests. Comments may name whom they explain.
pub fn provider_names(file: &Source) -> Vec<String> {
    if file.shipped.is_empty() || LISTS.iter().any(|list| file.is_under(list)) {
        return Vec::new();
    }
    let code = file.shipped_strings.to_ascii_lowercase();
    let mut found = Vec::new();
    for (name, folders) in FAMILIES {
        let home = |folder: &&str| format!("filters/models/wires/{folder}");
        let is_home = |folder: &&str| {
            let home = home(folder);
            file.is_under(&format!("{home}/")) || file.path == format!("{home}.rs")
        };
        if folders.iter().any(is_home) {
            continue;
        }
        let homes: Vec<String> = folders.iter().map(home).collect();
        let message = format!("`{name}` belongs to {} alone", homes.join(" and "));
        let places = code.match_indices(name);
        found.extend(places.map(|(at, _)| file.finding(at, &message)));
    }
    found
}

/// Members that chat completions alone have. Others, such as `tools`, other APIs have too.
const CHAT_MEMBERS: &[&str] = &[
    "content_before_tool_calls",
    "extra_content",
    "finish_reason",
    "frequency_penalty",
    "function_call",
    "image_config",
    "logit_bias",
    "max_completion_tokens",
    "message_items",
    "onboarding",
    "parallel_tool_calls",
    "plugins",
    "presence_penalty",
    "prompt_cache_breakpoint",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_content",
    "reasoning_details",
    "reasoning_effort",
    "safety_identifier",
    "sensitive_word_check",
    "stream_options",
    "tool_call_id",
    "tool_calls",
    "top_logprobs",
    "vendor_native_blocks",
    "vendor_safeguards",
];
/// Where they may be said: the front that reads them, the dialect's table, the wire that speaks it, what completes the body of a
/// chat before it is read, the words of configurations, and the server that plays a provider of the convention. Responses and
/// completions, APIs of the same vendor, have many of the names.
const CHAT_HOMES: &[&str] = &[
    "filters/models/dialects/chat.rs",
    "filters/models/dialects/completions.rs",
    "filters/models/dialects/responses.rs",
    "filters/models/fronts/chat_completions/",
    "filters/models/fronts/completions/",
    "filters/models/fronts/responses/",
    "filters/models/managed/",
    "filters/models/parameter.rs",
    "filters/models/prompts/",
    "filters/models/wires/openai/",
    "src/sandbox/",
];
/// Words that a file has for another reason: its own API has a member of this name, or it speaks to the gateway's own route as a
/// client does.
const CHAT_NAMESAKES: &[(&str, &str)] = &[
    ("filters/mcp/prompts.rs", "tool_calls"),
    ("filters/mcp/tools/text.rs", "finish_reason"),
    ("filters/models/wires/responses/item.rs", "function_call"),
    ("src/models/endpoints/model_entry.rs", "image_config"),
    ("src/models/endpoints/model_entry.rs", "reasoning_effort"),
];

/// Members of chat completions in texts outside their homes and tests.
pub fn chat_members(file: &Source) -> Vec<String> {
    if CHAT_HOMES.iter().any(|home| file.is_under(home)) {
        return Vec::new();
    }
    let text = &file.shipped_strings;
    let mut found = Vec::new();
    for member in CHAT_MEMBERS {
        if CHAT_NAMESAKES.contains(&(file.path.as_str(), member)) {
            continue;
        }
        for at in word_offsets(text, member) {
            // Blanking keeps offsets, so what differs from the code stands in a text.
            let is_code = file.shipped.get(at..at + member.len()) == Some(member);
            if !is_code {
                let message = format!(
                    "`{member}` is a member of chat completions: its names are in {}",
                    CHAT_HOMES.join(", ")
                );
                found.push(file.finding(at, &message));
            }
        }
    }
    found
}
