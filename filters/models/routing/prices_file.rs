//! The prices of a mapping as written in the catalogue's file: the only table of their keys.

use schemars::JsonSchema;
use serde::Deserialize;

pub use crate::money::TOKEN_PRICE_KEYS;

/// Prices of tokens as written, in the order of [`TOKEN_PRICE_KEYS`].
pub(super) type TokenTexts<'a> = [Option<&'a str>; TOKEN_PRICE_KEYS.len()];

/// Declares a table of the file that has all prices of tokens beside its own keys.
macro_rules! with_token_prices {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$own:meta])* pub $field:ident: $type:ty,)* }) => {
        #[derive(Clone, Debug, Default, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        $(#[$meta])*
        pub struct $name {
            $($(#[$own])* pub $field: $type,)*
            /// Per prompt token.
            #[schemars(extend("format" = "price-per-million"))]
            pub input_price: Option<String>,
            /// Per completion token.
            #[schemars(extend("format" = "price-per-million"))]
            pub output_price: Option<String>,
            /// Per prompt token of audio; absent: as `input_price`.
            #[schemars(extend("format" = "price-per-million"))]
            pub input_audio_price: Option<String>,
            /// Per prompt token of images; absent: as `input_price`.
            #[schemars(extend("format" = "price-per-million"))]
            pub input_image_price: Option<String>,
            /// Per completion token of audio; absent: as `output_price`.
            #[schemars(extend("format" = "price-per-million"))]
            pub output_audio_price: Option<String>,
            /// Per completion token of images; absent: as `output_price`.
            #[schemars(extend("format" = "price-per-million"))]
            pub output_image_price: Option<String>,
            /// Per completion token of reasoning; absent: as `output_price`.
            #[schemars(extend("format" = "price-per-million"))]
            pub output_reasoning_price: Option<String>,
            /// Per cached prompt token; absent: as `input_price`.
            #[schemars(extend("format" = "price-per-million"))]
            pub cached_input_price: Option<String>,
            /// Per prompt token written for five minutes; absent: as `input_price`.
            #[schemars(extend("format" = "price-per-million"))]
            pub cache_write_price: Option<String>,
            /// Per prompt token written for an hour; absent: as `cache_write_price`.
            #[schemars(extend("format" = "price-per-million"))]
            pub cache_write_1h_price: Option<String>,
        }

        impl $name {
            /// Returns its prices of tokens.
            pub(in crate::models::routing) fn token_texts(
                &self,
            ) -> $crate::models::routing::prices_file::TokenTexts<'_> {
                [
                    self.input_price.as_deref(),
                    self.output_price.as_deref(),
                    self.input_audio_price.as_deref(),
                    self.input_image_price.as_deref(),
                    self.output_audio_price.as_deref(),
                    self.output_image_price.as_deref(),
                    self.output_reasoning_price.as_deref(),
                    self.cached_input_price.as_deref(),
                    self.cache_write_price.as_deref(),
                    self.cache_write_1h_price.as_deref(),
                ]
            }
        }
    };
}
pub(super) use with_token_prices;

/// Declares a table of the file that has all other prices as well: of images, requests, searches, and of each
/// [`Unit`](crate::money::Unit).
macro_rules! with_all_prices {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$own:meta])* pub $field:ident: $type:ty,)* }) => {
        $crate::models::routing::prices_file::with_token_prices! {
            $(#[$meta])*
            pub struct $name {
                $($(#[$own])* pub $field: $type,)*
                /// USD per drawn image, in place of the price of its tokens.
                #[schemars(extend("format" = "price-per-call"))]
                pub image_price: Option<String>,
                /// USD per request.
                #[schemars(extend("format" = "price-per-call"))]
                pub request_price: Option<String>,
                /// USD per search of a model on the web.
                #[schemars(extend("format" = "price-per-call"))]
                pub web_search_price: Option<String>,
                /// USD per page that is read.
                #[schemars(extend("format" = "price-per-call"))]
                pub page_price: Option<String>,
                /// USD per page that is read and annotated, in place of `page_price`.
                #[schemars(extend("format" = "price-per-call"))]
                pub annotated_page_price: Option<String>,
                /// USD per second of audio or video that is heard or seen.
                #[schemars(extend("format" = "price-per-thousand"))]
                pub input_second_price: Option<String>,
                /// USD per second of audio or video that is made.
                #[schemars(extend("format" = "price-per-thousand"))]
                pub output_second_price: Option<String>,
                /// USD per million characters that are spoken.
                #[schemars(extend("format" = "price-per-million"))]
                pub character_price: Option<String>,
                /// USD per search: a query of the web, or one over up to a hundred documents.
                #[schemars(extend("format" = "price-per-call"))]
                pub search_price: Option<String>,
                /// USD per thousand documents that are ranked.
                #[schemars(extend("format" = "price-per-thousand"))]
                pub document_price: Option<String>,
            }
        }

        impl $name {
            /// Returns its prices of units.
            pub(in crate::models::routing) fn unit_texts(
                &self,
            ) -> $crate::money::PerUnit<Option<&str>> {
                $crate::money::PerUnit::from_array([
                    self.page_price.as_deref(),
                    self.input_second_price.as_deref(),
                    self.output_second_price.as_deref(),
                    self.character_price.as_deref(),
                    self.search_price.as_deref(),
                    self.document_price.as_deref(),
                ])
            }
        }
    };
}
pub(super) use with_all_prices;

with_token_prices! {
    /// The prices of all tokens of a call whose prompt is long; a price that is absent stays that of short prompts.
    #[schemars(extend("required" = ["above_tokens"]))]
    pub struct WrittenLongContext {
        /// The prompt tokens beyond which they hold.
        pub above_tokens: u64,
    }
}

with_token_prices! {
    /// The prices of tokens of a service tier; a price that is absent stays the usual one, times the multiplier.
    pub struct WrittenTierPrices {
        /// All prices of tokens times this.
        #[schemars(extend("format" = "price-factor"))]
        pub multiplier: Option<String>,
        /// The prices of calls with long prompts, in place of the usual ones times the multiplier.
        pub long_context: Option<Vec<WrittenLongContext>>,
    }
}

with_token_prices! {
    /// The prices of tokens of calls that start at certain hours; a price that is absent stays the usual one, times the
    /// multiplier.
    #[schemars(extend("required" = ["windows"]))]
    pub struct WrittenOffPeak {
        /// The hours.
        #[schemars(length(min = 1))]
        pub windows: Vec<WrittenWindow>,
        /// All prices of tokens times this.
        #[schemars(extend("format" = "price-factor"))]
        pub multiplier: Option<String>,
        /// The prices of calls with long prompts, in place of the usual ones times the multiplier.
        pub long_context: Option<Vec<WrittenLongContext>>,
    }
}

with_all_prices! {
    /// The prices in a region: those of the mapping times the multiplier, or prices of its own alone.
    pub struct WrittenRegionPrices {
        /// All prices of tokens of the mapping times this; no other key then.
        #[schemars(extend("format" = "price-factor"))]
        pub multiplier: Option<String>,
        /// The prices of calls with long prompts.
        pub long_context: Vec<WrittenLongContext>,
        /// The prices of service tiers.
        pub tier_prices: WrittenTiers,
        /// The prices at certain hours.
        pub off_peak: Option<WrittenOffPeak>,
    }
}

/// The prices of service tiers; a tier that is absent costs as the usual one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenTiers {
    /// Of `flex`.
    pub flex: Option<WrittenTierPrices>,
    /// Of `priority`.
    pub priority: Option<WrittenTierPrices>,
}

/// Hours of a day, in UTC.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["hours_utc"]))]
pub struct WrittenWindow {
    /// Such as `16:30-00:30`: it may wrap midnight, and belongs to the day on which it starts.
    #[schemars(length(min = 1), extend("items" = {"type": "string", "format": "hours"}))]
    pub hours_utc: Vec<String>,
    /// Weekdays from 1, Monday, to 7, in UTC; absent: all.
    #[schemars(inner(range(min = 1, max = 7)))]
    pub weekdays: Vec<u8>,
}
