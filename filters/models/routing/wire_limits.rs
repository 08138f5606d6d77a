//! What a wire can say, whatever the catalogue says of a model.

use crate::models::chat::inlined::RemoteImage;
use crate::models::dialects::Dialect;
use crate::models::speech::format::AudioFormat;

/// The limits of a wire, whatever the catalogue says.
#[derive(Clone, Copy, Debug)]
pub struct WireLimits {
    /// The dialect of its chats.
    pub dialect: Option<Dialect>,
    /// Whether it says chats of other dialects, too.
    pub translates: bool,
    /// Whether the host is the vendor's whose dialect it speaks.
    pub is_vendor: bool,
    /// The most choices of one answer.
    pub choices: u32,
    pub streams_choices: bool,
    /// Whether `json_schema` is understood.
    pub json_schema: bool,
    /// Whether a schema is said as a call that is forced, so that neither functions nor reasoning may stand beside it.
    pub schema_calls: bool,
    /// Whether a request of its own dialect goes without its schema where that is not understood.
    pub leaves_out_own_schemas: bool,
    /// Whether a forced call is honoured.
    pub forced_tools: bool,
    /// Images, audio and files.
    pub media: MediaLimits,
    /// Whether the assistant may speak first.
    pub assistant_first: bool,
    pub service_tiers: bool,
    /// Whether `reasoning.mode` can be said.
    pub reasoning_modes: bool,
    pub blank_stops: bool,
    pub image_output: bool,
    pub token_inputs: bool,
    /// Formats of speech; empty: any.
    pub speech_formats: &'static [AudioFormat],
    /// Whether a search of the web can be said, whatever the mapping's dialect.
    pub web_search: bool,
    pub demanded_search: bool,
}

impl WireLimits {
    /// The limits of a wire that has none.
    pub const WIDEST: Self = Self {
        dialect: None,
        translates: true,
        is_vendor: false,
        choices: 128,
        streams_choices: true,
        json_schema: true,
        schema_calls: false,
        leaves_out_own_schemas: false,
        forced_tools: true,
        media: MediaLimits::WIDEST,
        assistant_first: true,
        service_tiers: true,
        reasoning_modes: true,
        blank_stops: true,
        image_output: true,
        token_inputs: true,
        speech_formats: &[],
        web_search: true,
        demanded_search: true,
    };
}

/// The images, audio and files that a wire can say.
#[derive(Clone, Copy, Debug)]
pub struct MediaLimits {
    /// Media types of images in the body; empty: any.
    pub images: &'static [&'static str],
    /// Whether an image may be an `https` address.
    pub remote_images: bool,
    /// Whether an image may be an address of plain http.
    pub http_images: bool,
    /// Whether addresses that the wire does not take are fetched and said as data URLs.
    pub fetches: bool,
    /// Whether an image may be anything else.
    pub other_images: bool,
    /// Formats of audio; empty: any.
    pub audio: &'static [&'static str],
    /// Media types of files in the body, `text/*` for all of text; empty: any.
    pub files: &'static [&'static str],
    /// Whether files may be named by their ids.
    pub file_ids: bool,
}

/// The list of a wire that takes no audio.
pub const NO_AUDIO: &[&str] = &[""];

impl MediaLimits {
    /// The limits of a wire that has none.
    pub const WIDEST: Self = Self {
        images: &[],
        remote_images: true,
        http_images: true,
        fetches: false,
        other_images: true,
        audio: &[],
        files: &[],
        file_ids: true,
    };

    /// Returns whether an image has to be fetched before the wire can say it.
    pub fn must_fetch(&self, image: &RemoteImage) -> bool {
        let passes = if image.is_http() {
            self.http_images
        } else {
            self.remote_images
        };
        self.fetches && !passes
    }
}
