//! The providers that the other gateway knows by a prefix, and what is configured for each here.

use toml::{Table, Value};

use crate::cli::shipped;

/// A provider by its prefix in `litellm_params.model`.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct ProviderRow {
    pub prefix: &'static str,
    pub host: ProviderHost,
    /// The variable from which the other gateway takes its key where none is written; empty: it needs none.
    pub key: &'static str,
}

/// What is configured for a provider.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum ProviderHost {
    /// The provider of this name in the shipped configuration, with all that is special about it.
    Shipped(&'static str),
    /// A server of OpenAI's convention at this address; empty: where the file says.
    Server(&'static str),
}

use ProviderHost::{Server, Shipped};

const fn row(prefix: &'static str, host: ProviderHost, key: &'static str) -> ProviderRow {
    ProviderRow { prefix, host, key }
}

/// Source: the other gateway's pages on providers.
pub(super) const ROWS: &[ProviderRow] = &[
    row("anthropic", Shipped("anthropic"), "ANTHROPIC_API_KEY"),
    row("azure", Shipped("azure"), "AZURE_API_KEY"),
    row("azure_ai", Shipped("azure"), "AZURE_AI_API_KEY"),
    row("azure_text", Shipped("azure"), "AZURE_API_KEY"),
    row("bedrock", Shipped("bedrock"), ""),
    row("bedrock_converse", Shipped("bedrock"), ""),
    row("cerebras", Shipped("cerebras"), "CEREBRAS_API_KEY"),
    row("cohere", Shipped("cohere"), "COHERE_API_KEY"),
    row("cohere_chat", Shipped("cohere"), "COHERE_API_KEY"),
    row("custom_openai", Server(""), ""),
    row("dashscope", Shipped("alibaba"), "DASHSCOPE_API_KEY"),
    row(
        "deepinfra",
        Server("https://api.deepinfra.com/v1/openai"),
        "DEEPINFRA_API_KEY",
    ),
    row("deepseek", Shipped("deepseek"), "DEEPSEEK_API_KEY"),
    row("fireworks_ai", Shipped("fireworks"), "FIREWORKS_API_KEY"),
    row("gemini", Shipped("google"), "GEMINI_API_KEY"),
    row("groq", Shipped("groq"), "GROQ_API_KEY"),
    row("hosted_vllm", Server(""), ""),
    row("jina_ai", Shipped("jina"), "JINA_AI_API_KEY"),
    row("litellm_proxy", Server(""), ""),
    row("llamafile", Server("http://127.0.0.1:8080/v1"), ""),
    row("lm_studio", Server(""), ""),
    row("mistral", Shipped("mistral"), "MISTRAL_API_KEY"),
    row("moonshot", Shipped("moonshot"), "MOONSHOT_API_KEY"),
    row(
        "nvidia_nim",
        Server("https://integrate.api.nvidia.com/v1"),
        "NVIDIA_NIM_API_KEY",
    ),
    row("ollama", Server("http://127.0.0.1:11434/v1"), ""),
    row("ollama_chat", Server("http://127.0.0.1:11434/v1"), ""),
    row("openai", Shipped("openai"), "OPENAI_API_KEY"),
    row("openai_like", Server(""), ""),
    row("openrouter", Shipped("openrouter"), "OPENROUTER_API_KEY"),
    row("perplexity", Shipped("perplexity"), "PERPLEXITYAI_API_KEY"),
    row(
        "sambanova",
        Server("https://api.sambanova.ai/v1"),
        "SAMBANOVA_API_KEY",
    ),
    row(
        "text-completion-openai",
        Shipped("openai"),
        "OPENAI_API_KEY",
    ),
    row("together_ai", Shipped("together"), "TOGETHERAI_API_KEY"),
    row("vertex_ai", Shipped("vertex"), ""),
    row("vertex_ai_beta", Shipped("vertex"), ""),
    row("vllm", Server(""), ""),
    row("voyage", Shipped("voyage"), "VOYAGE_API_KEY"),
    row("xai", Shipped("xai"), "XAI_API_KEY"),
    row("zai", Shipped("zai"), "ZAI_API_KEY"),
];

/// The beginnings of names that need no prefix, and the prefix that they stand for.
const BARE: &[(&str, &str)] = &[
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("text-embedding-3", "openai"),
    ("text-embedding-ada", "openai"),
    ("omni-moderation", "openai"),
    ("dall-e", "openai"),
    ("whisper", "openai"),
    ("tts-1", "openai"),
    ("claude-", "anthropic"),
    ("command-", "cohere"),
    ("gemini-", "vertex_ai"),
];

/// What stands between the prefix and the name, and the API that it asks for.
const ROUTES: &[(&str, &str, &str)] = &[
    ("openai", "responses", "responses"),
    ("azure", "responses", "responses"),
    ("bedrock", "converse", "converse"),
    ("bedrock", "converse_like", "converse"),
    ("bedrock", "invoke", ""),
];

/// Returns the row of a prefix.
pub(super) fn find(prefix: &str) -> Option<&'static ProviderRow> {
    ROWS.iter().find(|row| row.prefix == prefix)
}

/// A model of the other gateway, taken apart.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct ModelName {
    pub row: &'static ProviderRow,
    /// The provider's own name of it.
    pub name: String,
    /// The API that its prefix asks for; `None`: the usual one.
    pub wire: Option<&'static str>,
    /// The region that its prefix names.
    pub region: Option<String>,
}

/// Takes `litellm_params.model` apart. `given` is `custom_llm_provider`, which counts before a prefix. Returns `None` for
/// a provider that is not known.
pub(super) fn split(model: &str, given: Option<&str>) -> Option<ModelName> {
    let (row, name) = match (given, model.split_once('/')) {
        (Some(given), Some((prefix, rest))) if prefix == given => (find(given)?, rest),
        (Some(given), _) => (find(given)?, model),
        (None, Some((prefix, rest))) => (find(prefix)?, rest),
        (None, None) => {
            let bare = BARE.iter().find(|(start, _)| model.starts_with(start));
            (find(bare?.1)?, model)
        }
    };
    let mut found = ModelName {
        row,
        name: name.to_owned(),
        wire: match row.prefix {
            "azure_text" | "text-completion-openai" => Some("completions"),
            _ => None,
        },
        region: None,
    };
    if let Some((middle, rest)) = name.split_once('/') {
        let mut routes = ROUTES.iter();
        let route = routes.find(|(prefix, word, _)| *prefix == row.prefix && *word == middle);
        if let Some((_, _, wire)) = route {
            found.name = rest.to_owned();
            found.wire = Some(*wire).filter(|wire| !wire.is_empty());
        } else if found.is_of("bedrock") && is_region(middle) {
            found.name = rest.to_owned();
            found.region = Some(middle.to_owned());
        }
    }
    if found.is_of("vertex") && found.name.starts_with("claude") {
        found.wire = Some("messages");
    } else if found.is_of("vertex") && found.name.contains('/') {
        found.wire = Some("chat");
    } else if row.prefix == "azure_ai" && found.name.starts_with("claude") {
        found.wire = Some("messages");
    }
    Some(found)
}

fn is_region(text: &str) -> bool {
    let mut parts = text.split('-');
    parts.clone().count() >= 3
        && parts
            .next_back()
            .is_some_and(|last| last.parse::<u8>().is_ok())
}

impl ModelName {
    /// Returns whether its provider is this one of the shipped configuration.
    pub(super) fn is_of(&self, shipped: &str) -> bool {
        self.row.shipped() == Some(shipped)
    }
}

impl ProviderRow {
    /// Returns the name in the shipped configuration and catalogue.
    pub(super) fn shipped(&self) -> Option<&'static str> {
        match self.host {
            Shipped(name) => Some(name),
            Server(_) => None,
        }
    }

    /// Returns what is configured for it beside its place and its keys. `is_elsewhere`: the file has another address for it than the
    /// vendor's own, so that it is any server of the convention.
    pub(super) fn settings(&self, is_elsewhere: bool) -> Table {
        let own_place = [
            "base_url",
            "keys",
            "regions",
            "region",
            "project",
            "workspace",
        ];
        let known = |name| shipped::PROVIDERS.get(name)?.as_table().cloned();
        let known = self.shipped().and_then(known);
        let of_vendor = |table: &Table| table.get("kind").and_then(Value::as_str) == Some("openai");
        match known {
            Some(table) if !(is_elsewhere && of_vendor(&table)) => {
                let kept = table.into_iter();
                kept.filter(|(key, _)| !own_place.contains(&key.as_str()))
                    .collect()
            }
            _ => Table::from_iter([
                ("kind".to_owned(), Value::from("openai-compatible")),
                ("system_role".to_owned(), Value::from("system")),
            ]),
        }
    }

    /// Returns its usual address, if it has one.
    pub(super) fn base_url(&self) -> Option<String> {
        match self.host {
            Server("") => None,
            Server(address) => Some(address.to_owned()),
            Shipped(name) => {
                let address = shipped::PROVIDERS.get(name)?.get("base_url")?;
                address.as_str().map(str::to_owned)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use filters::models::hosts::ProviderKind;

    use super::*;

    #[test]
    fn every_row_stands_for_a_provider_that_can_be_configured() {
        for row in ROWS {
            if let Some(name) = row.shipped() {
                assert!(shipped::PROVIDERS.contains_key(name), "{name}");
            }
            let settings = row.settings(false);
            let kind = settings.get("kind").cloned().unwrap();
            assert!(kind.try_into::<ProviderKind>().is_ok(), "{}", row.prefix);
        }
        for (_, prefix) in BARE {
            assert!(find(prefix).is_some(), "{prefix}");
        }
    }

    /// A model, and its prefix, name, API and region.
    type SplitRow = (
        &'static str,
        &'static str,
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
    );

    const SPLITS: &[SplitRow] = &[
        ("gpt-5", "openai", "gpt-5", None, None),
        (
            "openai/responses/gpt-5",
            "openai",
            "gpt-5",
            Some("responses"),
            None,
        ),
        ("azure/my-deployment", "azure", "my-deployment", None, None),
        (
            "bedrock/us.amazon.nova-lite-v1:0",
            "bedrock",
            "us.amazon.nova-lite-v1:0",
            None,
            None,
        ),
        (
            "bedrock/eu-west-1/amazon.nova-lite-v1:0",
            "bedrock",
            "amazon.nova-lite-v1:0",
            None,
            Some("eu-west-1"),
        ),
        ("bedrock/converse/x", "bedrock", "x", Some("converse"), None),
        (
            "bedrock/arn:aws:bedrock:eu-west-1:1:inference-profile/p",
            "bedrock",
            "arn:aws:bedrock:eu-west-1:1:inference-profile/p",
            None,
            None,
        ),
        (
            "vertex_ai/claude-sonnet-4-6",
            "vertex_ai",
            "claude-sonnet-4-6",
            Some("messages"),
            None,
        ),
        (
            "vertex_ai/gemini-2.5-pro",
            "vertex_ai",
            "gemini-2.5-pro",
            None,
            None,
        ),
        (
            "openrouter/openai/gpt-5",
            "openrouter",
            "openai/gpt-5",
            None,
            None,
        ),
    ];

    #[test]
    fn a_model_is_a_prefix_a_route_and_the_providers_own_name() {
        for (model, prefix, name, wire, region) in SPLITS {
            let found = split(model, None).unwrap();
            let told = (found.row.prefix, &*found.name, found.wire);
            assert_eq!(told, (*prefix, *name, *wire), "{model}");
            assert_eq!(found.region.as_deref(), *region, "{model}");
        }
    }

    #[test]
    fn an_unknown_provider_is_none_and_a_given_one_counts_first() {
        assert_eq!(split("nobody/m", None), None);
        assert_eq!(split("my-model", None), None);
        let given = split("my/model", Some("hosted_vllm")).unwrap();
        assert_eq!(
            (given.row.prefix, &*given.name),
            ("hosted_vllm", "my/model")
        );
    }
}
