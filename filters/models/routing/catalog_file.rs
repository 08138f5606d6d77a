//! The catalogue as written in its file: the only table of its keys.
//!
//! A field is a key. Its type, bounds and documentation give the schema that the file is checked against; `format` names a
//! check of the configuration.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use super::catalog::Capability;
use super::parameters_file::WrittenParameters;
use super::prices_file::{
    WrittenLongContext, WrittenOffPeak, WrittenRegionPrices, WrittenTiers, with_all_prices,
};
use super::search::{SearchDialect, SearchUnit};
use super::thinking::ThinkingControl;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::embeddings::tokenizer::Tokenizer;
use crate::models::operation::Operation;
use crate::models::request::Effort;
use crate::models::videos::{VideoLimits, VideoSize};

/// The catalogue file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CatalogFile {
    /// All models.
    #[serde(default)]
    pub models: Vec<WrittenModel>,
}

/// One model.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenModel {
    /// The id for clients.
    #[schemars(length(min = 1))]
    pub id: String,
    /// The name for people.
    #[serde(default)]
    pub name: Option<String>,
    /// The maker of the model.
    #[serde(default)]
    pub family: Option<String>,
    /// `chat`, `embedding`, `image`, …
    #[serde(default, rename = "type")]
    pub model_type: Option<String>,
    /// The operations it serves; absent: those of its type.
    #[serde(default)]
    #[schemars(
        with = "Option<Vec<String>>",
        extend("items" = {"type": "string", "enum": ["chat", "embeddings", "images", "image_edits", "rerank", "moderations", "speech", "ocr", "search", "typed_decisions", "transcriptions", "translations", "videos"]})
    )]
    pub operations: Option<Vec<Operation>>,
    /// Other names. `*` stands for any text, in names that have no model of their own: `claude-*-haiku-*`.
    #[serde(default)]
    #[schemars(inner(length(min = 1)))]
    pub aliases: Vec<String>,
    /// A description.
    #[serde(default)]
    pub description: Option<String>,
    /// The model to use in its place, once it is deprecated.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub successor: Option<String>,
    /// The day of its release.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub created: Option<Date>,
    /// The providers that serve it.
    #[serde(default)]
    pub providers: Vec<WrittenMapping>,
}

with_all_prices! {
    /// One provider of a model. Prices are USD per million tokens, as decimal strings.
    #[schemars(extend("required" = ["provider", "name"]))]
    pub struct WrittenMapping {
        /// A provider of the configuration.
        #[schemars(length(min = 1))]
        pub provider: String,
        /// The upstream's own id.
        #[schemars(length(min = 1))]
        pub name: String,
        /// The API that serves it, at a provider of the OpenAI convention; absent: chat.
        #[schemars(with = "Option<String>", extend("enum" = ["chat", "responses", "messages", "converse", "gemini", "completions", "images", "images_by_ratio", "predict", "titan", "cohere"]))]
        pub wire: Option<MappingWire>,
        /// The model that a cloud's own name stands for, such as `amazon.titan-embed-text-v2:0` for the ARN of a profile. It chooses
        /// the API where `wire` does not.
        #[schemars(length(min = 1))]
        pub base_model: Option<String>,
        /// Regions that a model string may name.
        pub regions: Vec<String>,
        /// What `web_search_price` is for: each search (`search`), or each answer that rests on searches (`answer`).
        pub web_search_unit: SearchUnit,
        /// How it is told to search, over the chat API; absent: as its provider.
        pub web_search: Option<SearchDialect>,
        /// The most searches of an answer whose request sets no limit; absent: 5, or 1 where a model searches once.
        #[schemars(range(min = 1))]
        pub max_searches: Option<u64>,
        /// The most prompt tokens of the results of one search; absent: 16384.
        pub search_tokens: Option<u64>,
        /// The share of all prices that is not billed, from 0 to 1.
        #[schemars(extend("format" = "price-share"))]
        pub discount: Option<String>,
        /// The prices of calls with long prompts: a step for each number of tokens from which others hold.
        pub long_context: Vec<WrittenLongContext>,
        /// The prices of its service tiers.
        pub tier_prices: WrittenTiers,
        /// The prices of calls that start at certain hours.
        pub off_peak: Option<WrittenOffPeak>,
        /// The prices in its regions; those of a region that is absent are unknown.
        #[schemars(with = "BTreeMap<String, WrittenRegionPrices>")]
        pub region_prices: BTreeMap<String, WrittenRegionPrices>,
        /// Tokens of prompt and answer together.
        pub context_size: Option<u64>,
        /// Tokens of the answer.
        pub max_output: Option<u64>,
        /// The most inputs of one request for embeddings: more of them are asked for in several requests. Absent: what its
        /// kind takes.
        #[schemars(range(min = 1))]
        pub max_inputs: Option<u64>,
        /// The most tokens of all inputs of one request for embeddings, likewise.
        #[schemars(range(min = 1))]
        pub max_batch_tokens: Option<u64>,
        /// How it makes tokens of the texts of embeddings: a text with more than `context_size` is refused. Absent: unknown,
        /// and its provider judges.
        #[schemars(with = "Option<String>", extend("enum" = ["cl100k_base"]))]
        pub tokenizer: Option<Tokenizer>,
        /// The sizes of its videos in pixels, as `1280x720`; absent: its provider judges. A provider that has other prices
        /// for other sizes is listed once for each.
        pub video_sizes: Vec<String>,
        /// The lengths of its videos in seconds; absent: its provider judges.
        pub video_seconds: Vec<u32>,
        /// The least prompt tokens that its provider caches; absent: 1024.
        #[schemars(range(min = 1))]
        pub min_cached_tokens: Option<u64>,
        /// The most prompt tokens of one image.
        pub image_tokens: Option<u64>,
        /// The most prompt tokens of one audio part.
        pub audio_tokens: Option<u64>,
        /// The most prompt tokens of one file.
        pub file_tokens: Option<u64>,
        /// The most images of one answer, for the reservation; absent: 10.
        pub max_images: Option<u64>,
        /// Its capabilities; absent: all that its kind has.
        pub capabilities: Option<Vec<Capability>>,
        /// What it does with parameters, where that differs from its provider.
        pub parameters: WrittenParameters,
        /// How it is told to reason: by words of effort (`levels`), by words and a budget of its own choice (`adaptive`),
        /// by a budget of tokens (`budget`), on or off (`switch`), or not at all (`fixed`).
        pub thinking: Option<ThinkingControl>,
        /// The least budget of reasoning, in tokens; given together with other controls it says that budgets are taken too.
        pub budget_min: Option<u64>,
        /// The most.
        pub budget_max: Option<u64>,
        /// Whether it reasons where a request says nothing of it.
        pub reasons_by_default: bool,
        /// Efforts it takes; `none`: it can be told not to reason.
        #[schemars(extend("uniqueItems" = true))]
        pub reasoning_efforts: Vec<Effort>,
        /// Modes it takes.
        pub reasoning_modes: Vec<String>,
        /// Tiers it takes.
        #[schemars(extend(
            "items" = {"type": "string", "enum": ["flex", "priority"]},
            "uniqueItems" = true
        ))]
        pub service_tiers: Vec<String>,
        /// The day from which it should not be used.
        #[schemars(with = "Option<String>", extend("format" = "date"))]
        pub deprecated_at: Option<Date>,
        /// The day from which it is not served.
        #[schemars(with = "Option<String>", extend("format" = "date"))]
        pub deactivated_at: Option<Date>,
        /// The day on which the prices were read.
        #[schemars(with = "Option<String>", extend("format" = "date"))]
        pub priced_at: Option<Date>,
        /// The page they were read from.
        pub source: Option<String>,
    }
}

impl WrittenMapping {
    /// Returns what it takes of embeddings at once.
    pub(super) fn batch_limits(&self) -> BatchLimits {
        BatchLimits {
            inputs: self.max_inputs.unwrap_or(u64::MAX),
            tokens: self.max_batch_tokens.unwrap_or(u64::MAX),
        }
    }

    /// Returns the videos that it makes. Errors: what is not a size.
    pub(super) fn video_limits(&self) -> Result<VideoLimits, String> {
        let sizes = self.video_sizes.iter().map(|text| {
            VideoSize::parse(text)
                .ok_or_else(|| format!("`video_sizes`: {text:?} is no size such as 1280x720"))
        });
        Ok(VideoLimits {
            sizes: sizes.collect::<Result<_, _>>()?,
            seconds: self.video_seconds.clone(),
        })
    }
}

/// The APIs among which mappings of a provider choose, where its kind has several.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum MappingWire {
    Chat,
    Responses,
    Messages,
    Converse,
    Gemini,
    Completions,
    Images,
    ImagesByRatio,
    Predict,
    Titan,
    Cohere,
}

impl MappingWire {
    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Converse => "converse",
            Self::Gemini => "gemini",
            Self::Completions => "completions",
            Self::Images => "images",
            Self::ImagesByRatio => "images_by_ratio",
            Self::Predict => "predict",
            Self::Titan => "titan",
            Self::Cohere => "cohere",
        }
    }
}

/// A day, as `2026-11-01`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Date(pub String);

impl<'de> Deserialize<'de> for Date {
    /// Reads a string, or the map with one string that the TOML crate makes of a date.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Date;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a date such as 2026-11-01")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Date, E> {
                let date = Date(text.get(..10).unwrap_or(text).to_owned());
                date.unix_s().map(|_| date.clone()).ok_or_else(|| {
                    E::invalid_value(de::Unexpected::Str(text), &"a date such as 2026-11-01")
                })
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Date, A::Error> {
                let entry = map.next_entry::<String, String>()?;
                let (_, text) = entry.ok_or_else(|| de::Error::custom("an empty date"))?;
                self.visit_str(&text)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Date {
    /// Returns the unix seconds of its first moment, in UTC.
    pub fn unix_s(&self) -> Option<u64> {
        let mut parts = self.0.splitn(3, '-').map(|part| part.parse::<i64>().ok());
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day)
        {
            return None;
        }
        // Days since 1970-01-01 in the proleptic Gregorian calendar, counted from March.
        let (y, m) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
        u64::try_from(days * 86_400).ok()
    }
}
