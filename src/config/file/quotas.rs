//! `[limits.requests_per_minute]`, as the file has it.

use filters::limits::{QuotaGroup, QuotaLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// Requests per minute and organization, by endpoint group, as they are set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestsPerMinute {
    /// Chat completions, and the endpoints that stand for them.
    #[schemars(extend("default" = 600))]
    pub chat: Option<u64>,
    /// Embeddings.
    #[schemars(extend("default" = 1200))]
    pub embeddings: Option<u64>,
    /// Images of a prompt.
    #[schemars(extend("default" = 300))]
    pub images: Option<u64>,
    /// Images of other images; absent: as `images` where that is set.
    #[schemars(extend("default" = 300))]
    pub image_edits: Option<u64>,
    /// Speech.
    #[schemars(extend("default" = 300))]
    pub audio: Option<u64>,
    /// Transcriptions; absent: as `audio` where that is set.
    #[schemars(extend("default" = 300))]
    pub transcriptions: Option<u64>,
    /// Translations; absent: as `audio` where that is set.
    #[schemars(extend("default" = 300))]
    pub translations: Option<u64>,
    /// Videos.
    #[schemars(extend("default" = 60))]
    pub video: Option<u64>,
    /// Moderations.
    #[schemars(extend("default" = 1200))]
    pub moderation: Option<u64>,
    /// Text out of documents.
    #[schemars(extend("default" = 300))]
    pub ocr: Option<u64>,
    /// Rerank.
    #[schemars(extend("default" = 1200))]
    pub rerank: Option<u64>,
    /// Web search.
    #[schemars(extend("default" = 300))]
    pub search: Option<u64>,
    /// Typed decisions; absent: as `chat` where that is set.
    #[schemars(extend("default" = 600))]
    pub decision: Option<u64>,
}

impl RequestsPerMinute {
    /// Returns the limit of each group that is in force.
    pub fn limits(&self) -> [(QuotaGroup, QuotaLimit); QuotaGroup::ALL.len()] {
        QuotaGroup::ALL.map(|group| (group, group.limit(|group| self.set(group))))
    }

    fn set(&self, group: QuotaGroup) -> Option<u64> {
        match group {
            QuotaGroup::Chat => self.chat,
            QuotaGroup::Embeddings => self.embeddings,
            QuotaGroup::Images => self.images,
            QuotaGroup::ImageEdits => self.image_edits,
            QuotaGroup::Audio => self.audio,
            QuotaGroup::Transcriptions => self.transcriptions,
            QuotaGroup::Translations => self.translations,
            QuotaGroup::Video => self.video,
            QuotaGroup::Moderation => self.moderation,
            QuotaGroup::Ocr => self.ocr,
            QuotaGroup::Rerank => self.rerank,
            QuotaGroup::Search => self.search,
            QuotaGroup::Decision => self.decision,
        }
    }
}

/// What is in force, which is what `config show` tells.
impl Serialize for RequestsPerMinute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let limits = self.limits();
        serializer.collect_map(limits.map(|(group, limit)| (group.as_str(), limit.per_minute)))
    }
}
