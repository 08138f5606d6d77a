//! `usageMetadata` of a reply.

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use crate::models::reply::Sink;
use crate::models::usage::{Unread, Usage};
use crate::models::wires::count::lenient;
use crate::models::wires::tier_word::TierWord;

/// Absent counts leave what was known: some chunks carry nothing but a traffic type.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct UsageReport {
    #[serde(deserialize_with = "lenient")]
    prompt_token_count: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    candidates_token_count: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    thoughts_token_count: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    cached_content_token_count: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    total_token_count: Option<u64>,
    prompt_tokens_details: Option<Modalities>,
    candidates_tokens_details: Option<Modalities>,
    service_tier: Option<TierWord>,
    traffic_type: Option<TierWord>,
}

impl UsageReport {
    /// Takes what a later report says.
    pub(super) fn update(&mut self, later: Self) {
        self.prompt_token_count = later.prompt_token_count.or(self.prompt_token_count);
        self.candidates_token_count = later.candidates_token_count.or(self.candidates_token_count);
        self.thoughts_token_count = later.thoughts_token_count.or(self.thoughts_token_count);
        self.cached_content_token_count = later
            .cached_content_token_count
            .or(self.cached_content_token_count);
        self.tool_use_prompt_token_count = later
            .tool_use_prompt_token_count
            .or(self.tool_use_prompt_token_count);
        self.total_token_count = later.total_token_count.or(self.total_token_count);
        self.prompt_tokens_details = later.prompt_tokens_details.or(self.prompt_tokens_details);
        self.candidates_tokens_details = later
            .candidates_tokens_details
            .or(self.candidates_tokens_details);
        self.service_tier = later.service_tier.or(self.service_tier);
        self.traffic_type = later.traffic_type.or(self.traffic_type);
    }

    /// Hands on the report, once the tokens of the prompt are known.
    pub(super) fn tell(&self, sink: &mut dyn Sink) {
        let words = [self.service_tier, self.traffic_type];
        if let Some(tier) = words.into_iter().flatten().find_map(|word| word.0) {
            sink.service_tier(tier);
        }
        if let Some(usage) = self.usage() {
            sink.usage(usage);
        }
    }

    /// Returns the usage, once the tokens of the prompt are known.
    fn usage(&self) -> Option<Usage> {
        let prompt = self
            .prompt_token_count?
            .saturating_add(self.tool_use_prompt_token_count.unwrap_or(0));
        let candidates = self.candidates_token_count.unwrap_or(0);
        let thoughts = self.thoughts_token_count.unwrap_or(0);
        // Where prompt and candidates already make the total, the candidates hold the thoughts.
        let holds_thoughts = self.total_token_count == Some(prompt.saturating_add(candidates));
        let completion = if holds_thoughts {
            candidates
        } else {
            candidates.saturating_add(thoughts)
        };
        let asked = self.prompt_tokens_details.unwrap_or_default();
        let made = self.candidates_tokens_details.unwrap_or_default();
        Some(Usage {
            prompt,
            completion,
            reasoning: self
                .thoughts_token_count
                .map(|thoughts| thoughts.min(completion)),
            cached: self.cached_content_token_count.unwrap_or(0).min(prompt),
            image_prompt: asked.image,
            audio_prompt: asked.audio,
            video_prompt: asked.video,
            image_completion: made.image,
            audio_completion: made.audio,
            // A count that is absent may be zero.
            unread: Unread {
                prompt: false,
                completion: self.candidates_token_count.is_none()
                    && self.thoughts_token_count.is_none(),
            },
            ..Usage::default()
        })
    }
}

/// Tokens by what they stand for; those of text and documents are not told apart from the rest.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Modalities {
    image: u64,
    audio: u64,
    video: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModalityCount {
    #[serde(default)]
    modality: Modality,
    #[serde(default)]
    token_count: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Modality {
    Image,
    Audio,
    Video,
    #[default]
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Modalities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Sum;
        impl<'de> Visitor<'de> for Sum {
            type Value = Modalities;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of modalities with their tokens")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Modalities, A::Error> {
                let mut sum = Modalities::default();
                while let Some(count) = list.next_element::<ModalityCount>()? {
                    let tokens = match count.modality {
                        Modality::Image => &mut sum.image,
                        Modality::Audio => &mut sum.audio,
                        Modality::Video => &mut sum.video,
                        Modality::Other => continue,
                    };
                    *tokens = tokens.saturating_add(count.token_count);
                }
                Ok(sum)
            }
        }
        deserializer.deserialize_seq(Sum)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn tokens_are_counted_by_what_they_stand_for_and_later_reports_keep_them() {
        let mut report: UsageReport = serde_json::from_str(
            r#"{"promptTokenCount": 1000, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10},
                {"modality": "IMAGE", "tokenCount": 258}, {"modality": "AUDIO", "tokenCount": 32},
                {"modality": "IMAGE", "tokenCount": 258}, {"modality": "VIDEO", "tokenCount": 400}, {"modality": "NEW"}]}"#,
        )
        .unwrap();
        let later = r#"{"candidatesTokenCount": 1300, "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1290}]}"#;
        report.update(serde_json::from_str(later).unwrap());
        let usage = report.usage().unwrap();
        let prompt = (usage.image_prompt, usage.audio_prompt, usage.video_prompt);
        assert_eq!(prompt, (516, 32, 400));
        assert_eq!((usage.image_completion, usage.completion), (1290, 1300));
        report.update(serde_json::from_str("{}").unwrap());
        assert_eq!(report.usage().unwrap(), usage);
    }
}
