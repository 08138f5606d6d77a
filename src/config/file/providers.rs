//! `[providers.NAME]`, as the file has it.

use std::collections::BTreeMap;

use filters::accounts::Vendor;
use filters::models::cloud_credentials::Cloud;
use filters::models::hosts::ProviderKind;
use filters::models::routing::WrittenParameters;
use filters::models::routing::search::SearchDialect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretRef;

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderConfig {
    /// The wire it speaks.
    pub kind: ProviderKind,
    /// What the vendor's own SDK takes: with /v1 for the OpenAI convention; default by kind.
    #[serde(default)]
    #[schemars(extend("format" = "url"))]
    pub base_url: Option<String>,
    /// The addresses of more servers that are equal to the one of base_url, each with the same path. A call takes one of
    /// those that are up, and is repeated at another if it fails.
    #[serde(default)]
    #[schemars(extend("items" = {"type": "string", "format": "url"}, "uniqueItems" = true))]
    pub replicas: Vec<String>,
    /// The vendor that its addresses lead to, where they are not the vendor's own, such as those of a proxy in front of it. Callers'
    /// own credentials of this vendor go there, so name one only for what leads to it and to nobody else.
    #[serde(default)]
    pub vendor: Option<Vendor>,
    /// The path, from the root of a server, that tells whether it is up; without it a connection does.
    #[serde(default)]
    #[schemars(extend("format" = "path"))]
    pub health_path: Option<String>,
    /// Seconds between two health checks; 0: none. By default 5 where replicas or health_path is set, else none.
    #[serde(default)]
    #[schemars(range(max = 3600))]
    pub health_interval_s: Option<u64>,
    /// Its keys, tried in this order; with none of them present the provider is off. Not needed for the sandbox
    /// and for local servers; [] says that a remote server of the OpenAI convention needs none.
    #[serde(default)]
    pub keys: Option<Vec<SecretRef>>,
    /// The cloud's project that requests to Vertex name.
    #[serde(default)]
    pub project: Option<String>,
    /// The workspace that requests to Claude Platform on AWS name.
    #[serde(default)]
    pub workspace: Option<String>,
    /// The version of Azure's API: v1, or a dated one, whose paths name deployments.
    #[serde(default)]
    #[schemars(extend("default" = "v1"))]
    pub api: Option<String>,
    /// The cloud whose own sign-in it has in place of keys: aws signs requests, entra and google send tokens. Where they come
    /// from, the environment says as for the cloud's own SDKs.
    #[serde(default)]
    pub credentials: Option<Cloud>,
    /// The region of the cloud, which is in addresses, in paths and in signatures; default: AWS_REGION, AWS_DEFAULT_REGION, that of
    /// the profile, on Vertex global. Of other kinds: where base_url is. Requests to one of regions are signed for that one.
    #[serde(default)]
    pub region: Option<String>,
    /// The service that signatures for AWS name.
    #[serde(default)]
    #[schemars(extend("default" = "bedrock"))]
    pub signing_service: Option<String>,
    /// The scope of tokens; default for entra `https://ai.azure.com/.default`, which deployments with dated versions of the API
    /// do not take, for google cloud-platform.
    #[serde(default)]
    pub token_scope: Option<String>,
    /// Its regions: those of the catalogue that a model string may name.
    #[serde(default)]
    pub regions: BTreeMap<String, RegionConfig>,
    /// Headers added to each request to it.
    #[serde(default)]
    #[schemars(extend("x-names" = "header"))]
    pub headers: BTreeMap<String, String>,
    /// Its preference among equals: prices are divided by it.
    #[serde(default = "one")]
    #[schemars(range(min = 0.001, max = 1000))]
    pub priority: f64,
    /// Path of chat completions behind base_url.
    #[serde(default)]
    #[schemars(extend("format" = "path", "default" = "/chat/completions"))]
    pub chat_path: Option<String>,
    /// The header of the key; authorization carries `Bearer `, any other the bare key.
    #[serde(default)]
    #[schemars(extend("format" = "header", "default" = "authorization"))]
    pub auth_header: Option<String>,
    /// What it does with parameters of requests, where that differs from its kind. For kind openai max_tokens is called
    /// max_completion_tokens unless it is renamed here.
    #[serde(default)]
    pub parameters: WrittenParameters,
    /// When a stream reports usage: only when asked for it, always, never.
    #[serde(default)]
    #[schemars(extend("default" = "ask"))]
    pub stream_usage: Option<StreamUsage>,
    /// How reasoning of earlier turns goes back.
    #[serde(default)]
    #[schemars(extend("default" = "none"))]
    pub reasoning_replay: Option<ReasoningReplay>,
    /// Whether reported completion tokens leave reasoning out, so that it is added.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    pub reasoning_excluded_from_completion: Option<bool>,
    /// Whether message members beyond the convention are refused, so that they are left out.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    pub strict_messages: Option<bool>,
    /// Whether request fields unknown to the convention pass or are left out; default pass for OpenAI itself and for
    /// servers on this machine.
    #[serde(default)]
    #[schemars(extend("default" = "drop"))]
    pub unknown_fields: Option<UnknownFields>,
    /// Unknown request fields that pass all the same. Those that choose another model or price, such as models,
    /// provider or search_parameters, pass only if they are listed here.
    #[serde(default)]
    #[schemars(extend("items" = {"type": "string", "minLength": 1}, "uniqueItems" = true, "default" = []))]
    pub pass_members: Option<Vec<String>>,
    /// Which ids of tool calls are accepted: any, or nine letters or digits.
    #[serde(default)]
    #[schemars(extend("default" = "any"))]
    pub tool_call_ids: Option<ToolCallIds>,
    /// Whether `content: null` is kept or becomes an empty string.
    #[serde(default)]
    #[schemars(extend("default" = "keep"))]
    pub null_content: Option<NullContent>,
    /// Whether response_format json_schema is understood.
    #[serde(default)]
    #[schemars(extend("default" = true))]
    pub json_schema: Option<bool>,
    /// Whether a forced tool choice is honoured.
    #[serde(default)]
    #[schemars(extend("default" = true))]
    pub forced_tools: Option<bool>,
    /// Whether schemas must be strict and closed at every object.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    pub strict_schema: Option<bool>,
    /// How models are told to search the web.
    #[serde(default)]
    #[schemars(extend("default" = "none"))]
    pub web_search: Option<SearchDialect>,
    /// What developer messages are called.
    #[serde(default)]
    #[schemars(extend("default" = "developer"))]
    pub system_role: Option<SystemRole>,
    /// Whether instructions between messages are taken; default: by kind openai alone. Where they are not, those of clients of
    /// other APIs than chat completions become the user's words.
    #[serde(default)]
    pub late_instructions: Option<bool>,
    /// Whether images have to be in the request: those that it names by address are fetched and sent as data URLs.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    pub inline_images: Option<bool>,
    /// Whether prompts that are likely to be read again are marked for the provider's cache, where its API wants marks and a
    /// request has none.
    #[serde(default)]
    #[schemars(extend("default" = true))]
    pub cache_breakpoints: Option<bool>,
    /// Whether a call is billed whose client has left.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    pub bills_after_disconnect: Option<bool>,
}

/// `[providers.NAME.regions.REGION]`
#[derive(Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RegionConfig {
    /// The region's address; default: the provider's.
    #[schemars(extend("format" = "url"))]
    pub base_url: Option<String>,
    /// The region's keys; default: the provider's.
    pub keys: Option<Vec<SecretRef>>,
    /// When it is tried for requests that name no region: lower ones first, from 1. Regions with neither order nor weight serve
    /// only requests that name them.
    #[schemars(range(min = 1, max = 1000))]
    pub order: Option<u32>,
    /// Its share of the requests that name no region, among regions of the same order.
    #[schemars(range(min = 1, max = 1000))]
    pub weight: Option<u32>,
}

fn one() -> f64 {
    1.0
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StreamUsage {
    Ask,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasoningReplay {
    None,
    ReasoningContent,
    Reasoning,
    ReasoningContentRequired,
    ReasoningDetails,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UnknownFields {
    Pass,
    Drop,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolCallIds {
    Any,
    Mistral9,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NullContent {
    Keep,
    Empty,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SystemRole {
    Developer,
    System,
}

/// The keys that describe how a provider differs from the OpenAI convention.
pub(crate) const CONVENTION_QUIRKS: [&str; 16] = [
    "chat_path",
    "auth_header",
    "stream_usage",
    "reasoning_replay",
    "reasoning_excluded_from_completion",
    "strict_messages",
    "unknown_fields",
    "pass_members",
    "tool_call_ids",
    "null_content",
    "json_schema",
    "forced_tools",
    "strict_schema",
    "web_search",
    "system_role",
    "late_instructions",
];
