//! `usage` and `metadata` of an answer. Source: docs/model-gateway.md 2.5, docs/decisions.md 3, 14.

use std::sync::Arc;

use super::usage::{Settlement, Usage};
use crate::json::Object;

/// `metadata` of an answer.
#[derive(Debug)]
pub struct Metadata<'a> {
    /// The request's id.
    pub request_id: &'a str,
    /// The model string as sent.
    pub requested_model: &'a str,
    /// The provider named in the model string.
    pub requested_provider: Option<&'a str>,
    /// `provider/model`, with `:region` where one was used.
    pub used_model: &'a str,
    /// The provider that answered.
    pub used_provider: &'a str,
    /// The region used.
    pub used_region: Option<&'a str>,
    /// The upstream's own model id.
    pub underlying_used_model: &'a str,
    /// The organization that sent the request.
    pub organization_id: &'a str,
    /// The project of its key.
    pub project_id: &'a str,
    /// One entry per attempt.
    pub routing: &'a [AttemptRecord],
}

/// One attempt, as the client sees it. Source: docs/decisions.md 3.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// The provider's name.
    pub provider: Arc<str>,
    /// The upstream's own model id.
    pub model: Arc<str>,
    /// The status of the reply; 0 without one.
    pub status_code: u16,
    /// `none` on success.
    pub error_type: &'static str,
    /// Whether the provider answered.
    pub succeeded: bool,
    /// The region used.
    pub region: Option<Arc<str>>,
    /// 16 hex digits that stand for the credential.
    pub api_key_hash: Option<Arc<str>>,
    /// `platform` or `byok`.
    pub credential_source: &'static str,
    /// Id and label of the caller's BYOK key; `None`: a platform key was used.
    pub provider_key: Option<(Arc<str>, Arc<str>)>,
}

impl Metadata<'_> {
    /// Returns a JSON object.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512 + 256 * self.routing.len());
        let mut object = Object::open(&mut out);
        object.text("request_id", self.request_id);
        object.text("requested_model", self.requested_model);
        object.text_or_null("requested_provider", self.requested_provider);
        object.text("used_model", self.used_model);
        object.text("used_provider", self.used_provider);
        object.optional_text("used_region", self.used_region);
        object.text("underlying_used_model", self.underlying_used_model);
        object.text("organization_id", self.organization_id);
        object.text("project_id", self.project_id);
        // The gateway has no discounts yet.
        object.raw("discount", "null");
        object.array("routing", self.routing, AttemptRecord::write);
        object.close();
        out
    }
}

impl AttemptRecord {
    /// Appends the attempt as a JSON object.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_with(out, |_| ());
    }

    /// Appends the attempt as a JSON object with the members that `more` writes.
    pub fn write_with(&self, out: &mut Vec<u8>, more: impl FnOnce(&mut Object<'_>)) {
        let mut object = Object::open(out);
        object.text("provider", &self.provider);
        object.text("model", &self.model);
        object.number("status_code", u64::from(self.status_code));
        object.text("error_type", self.error_type);
        object.bool("succeeded", self.succeeded);
        object.optional_text("region", self.region.as_deref());
        object.optional_text("apiKeyHash", self.api_key_hash.as_deref());
        object.text("credentialSource", self.credential_source);
        if let Some((id, label)) = &self.provider_key {
            object.text("providerKeyId", id);
            object.text("providerKeyLabel", label);
        }
        more(&mut object);
        object.close();
    }
}

/// Returns `usage` as a JSON object.
///
/// `cost` is null where the price is not known.
pub fn write_usage(settlement: &Settlement) -> Vec<u8> {
    let usage = &settlement.usage;
    let mut out = Vec::with_capacity(1024);
    let mut object = Object::open(&mut out);
    object.number("prompt_tokens", usage.prompt);
    object.number("completion_tokens", usage.completion);
    object.number("total_tokens", usage.total());
    if let Some(reasoning) = usage.reasoning {
        object.number("reasoning_tokens", reasoning);
    }
    object.object("prompt_tokens_details", |details| {
        details.number("cached_tokens", usage.cached);
        details.number("cache_write_tokens", usage.cache_write);
        details.number("audio_tokens", usage.audio_prompt);
        details.number("video_tokens", usage.video_prompt);
        if usage.cache_write > 0 {
            write_cache_creation(usage, details);
        }
    });
    object.object("completion_tokens_details", |details| {
        details.number("reasoning_tokens", usage.reasoning.unwrap_or(0));
        details.number("image_tokens", usage.image_completion);
        details.number("audio_tokens", usage.audio_completion);
    });
    match &settlement.cost {
        Some(cost) => {
            let mut total = String::with_capacity(32);
            cost.total.write(&mut total);
            object.raw("cost", &total);
            object.raw("cost_details", &cost.details.to_json());
        }
        None => object.raw("cost", "null"),
    }
    if usage.estimated {
        object.text("info", "estimated");
    }
    object.close();
    out
}

fn write_cache_creation(usage: &Usage, details: &mut Object<'_>) {
    details.number("cache_creation_tokens", usage.cache_write);
    if usage.cache_write_5m.is_some() || usage.cache_write_1h.is_some() {
        details.object("cache_creation", |written| {
            let (five, hour) = (usage.cache_write_5m, usage.cache_write_1h);
            written.number("ephemeral_5m_input_tokens", five.unwrap_or(0));
            written.number("ephemeral_1h_input_tokens", hour.unwrap_or(0));
        });
    }
}
