//! `usage` and `metadata` of an answer. Source: model-gateway 2.5, decisions 3, 14.

use serde::Serialize;

use super::usage::Usage;

/// `metadata` of an answer.
#[derive(Debug, Serialize)]
pub struct Metadata<'a> {
    /// The id of the request.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_region: Option<&'a str>,
    /// The upstream's own model id.
    pub underlying_used_model: &'a str,
    /// Whose request it was.
    pub organization_id: &'a str,
    /// For which project.
    pub project_id: &'a str,
    /// No discount is given yet.
    pub discount: Option<u8>,
    /// One entry per attempt.
    pub routing: &'a [Attempted],
}

/// One attempt, as told to the client. Source: decisions 3.
#[derive(Clone, Debug, Serialize)]
pub struct Attempted {
    /// The provider's name.
    pub provider: Box<str>,
    /// The upstream's own model id.
    pub model: Box<str>,
    /// The status of the reply; 0 without one.
    pub status_code: u16,
    /// `none` on success.
    pub error_type: &'static str,
    /// Whether it answered.
    pub succeeded: bool,
    /// The region used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<Box<str>>,
    /// 16 hex digits that stand for the credential.
    #[serde(rename = "apiKeyHash", skip_serializing_if = "Option::is_none")]
    pub api_key_hash: Option<Box<str>>,
    /// `platform` or `byok`.
    #[serde(rename = "credentialSource")]
    pub credential_source: &'static str,
}

/// `usage` as a JSON object.
///
/// `cost` is a JSON number and `cost_details` a JSON object, written from exact decimals; both are `None` where
/// the price is not known.
pub fn write_usage(usage: &Usage, cost: Option<&str>, cost_details: Option<&str>) -> String {
    let mut out = format!(
        "{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{}",
        usage.prompt,
        usage.completion,
        usage.total(),
    );
    if let Some(reasoning) = usage.reasoning {
        out.push_str(&format!(",\"reasoning_tokens\":{reasoning}"));
    }
    out.push_str(&format!(
        ",\"prompt_tokens_details\":{{\"cached_tokens\":{},\"cache_write_tokens\":{},\"audio_tokens\":{},\"video_tokens\":{}",
        usage.cached, usage.cache_write, usage.audio_prompt, usage.video_prompt,
    ));
    if usage.cache_write > 0 {
        out.push_str(&format!(",\"cache_creation_tokens\":{}", usage.cache_write));
        if usage.cache_write_5m.is_some() || usage.cache_write_1h.is_some() {
            out.push_str(&format!(
                ",\"cache_creation\":{{\"ephemeral_5m_input_tokens\":{},\"ephemeral_1h_input_tokens\":{}}}",
                usage.cache_write_5m.unwrap_or(0),
                usage.cache_write_1h.unwrap_or(0),
            ));
        }
    }
    out.push_str(&format!(
        "}},\"completion_tokens_details\":{{\"reasoning_tokens\":{},\"image_tokens\":{},\"audio_tokens\":{}}}",
        usage.reasoning.unwrap_or(0),
        usage.image_completion,
        usage.audio_completion,
    ));
    out.push_str(",\"cost\":");
    out.push_str(cost.unwrap_or("null"));
    if let Some(details) = cost_details {
        out.push_str(",\"cost_details\":");
        out.push_str(details);
    }
    if usage.estimated {
        out.push_str(",\"info\":\"estimated\"");
    }
    out.push('}');
    out
}
