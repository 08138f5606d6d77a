//! The operations of the model gateway.

use serde::Deserialize;

/// An operation of the model gateway.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// An answer to a conversation.
    Chat,
    /// Vectors that stand for texts.
    Embeddings,
    /// Images of a prompt.
    Images,
    /// Images of other images and a prompt.
    ImageEdits,
    /// An order of documents by what they have to do with a query.
    Rerank,
    /// What of texts and pictures is harmful.
    Moderations,
    /// Audio of a text that is spoken.
    Speech,
    /// The texts of the pages of a document.
    Ocr,
    /// Pages of the web for a query.
    Search,
    /// Answers to questions about a state, of a type that each question names.
    TypedDecisions,
    /// The text of speech.
    Transcriptions,
    /// The text of speech in English.
    Translations,
    /// A video of a prompt: a job that goes on after the call.
    Videos,
}

impl Operation {
    /// Returns the name for messages to the caller.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat completions",
            Self::Embeddings => "embeddings",
            Self::Images => "image generation",
            Self::ImageEdits => "image editing",
            Self::Rerank => "reranking",
            Self::Moderations => "moderations",
            Self::Speech => "speech",
            Self::Ocr => "OCR",
            Self::Search => "web search",
            Self::TypedDecisions => "typed decisions",
            Self::Transcriptions => "transcriptions",
            Self::Translations => "translations",
            Self::Videos => "videos",
        }
    }

    /// Returns the path of its endpoint.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Embeddings => "/v1/embeddings",
            Self::Images => "/v1/images/generations",
            Self::ImageEdits => "/v1/images/edits",
            Self::Rerank => "/v1/rerank",
            Self::Moderations => "/v1/moderations",
            Self::Speech => "/v1/audio/speech",
            Self::Ocr => "/v1/ocr",
            Self::Search => "/v1/search",
            Self::TypedDecisions => "/v1/systemone",
            Self::Transcriptions => "/v1/audio/transcriptions",
            Self::Translations => "/v1/audio/translations",
            Self::Videos => "/v1/videos",
        }
    }

    /// Returns what its answers are, in the words of `GET /v1/models`.
    pub fn output_modality(self) -> &'static str {
        match self {
            Self::Chat => "text",
            Self::Embeddings => "embedding",
            Self::Images | Self::ImageEdits => "image",
            Self::Rerank => "rerank",
            Self::Moderations => "moderation",
            Self::Speech => "audio",
            Self::Ocr => "ocr",
            Self::Search => "search",
            Self::TypedDecisions => "decision",
            Self::Transcriptions | Self::Translations => "transcription",
            Self::Videos => "video",
        }
    }

    /// Returns the member of a request that holds the prompt.
    pub fn prompt_member(self) -> &'static str {
        match self {
            Self::Chat => "messages",
            Self::Embeddings | Self::Moderations | Self::Speech => "input",
            Self::Images | Self::ImageEdits | Self::Videos => "prompt",
            Self::Rerank => "documents",
            Self::Ocr => "document",
            Self::Search => "query",
            Self::TypedDecisions => "state",
            Self::Transcriptions | Self::Translations => "file",
        }
    }

    /// Returns its parameters, as `GET /v1/models` lists them; those of chats and images depend on the model.
    pub fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Chat
            | Self::Images
            | Self::ImageEdits
            | Self::Moderations
            | Self::TypedDecisions => &[],
            Self::Embeddings => &["encoding_format", "dimensions"],
            Self::Rerank => &["top_n", "return_documents"],
            Self::Speech => &[
                "voice",
                "instructions",
                "response_format",
                "speed",
                "stream_format",
            ],
            Self::Search => &[
                "max_results",
                "search_domain_filter",
                "search_after_date_filter",
                "search_before_date_filter",
            ],
            Self::Ocr => &[
                "pages",
                "include_image_base64",
                "image_limit",
                "document_annotation_format",
            ],
            Self::Transcriptions => &["language", "prompt", "response_format", "temperature"],
            Self::Translations => &["prompt", "response_format", "temperature"],
            Self::Videos => &["seconds", "size", "audio"],
        }
    }

    /// Returns whether `auto` may choose the model.
    ///
    /// Our choice: for chats alone. Vectors and scores of different models, for example, cannot be compared.
    pub fn takes_auto(self) -> bool {
        self == Self::Chat || self.draws()
    }

    /// Returns whether its requests are forms with a file that is not in memory.
    pub fn is_upload(self) -> bool {
        matches!(self, Self::Transcriptions | Self::Translations)
    }

    /// Returns whether its answers are images.
    pub fn draws(self) -> bool {
        matches!(self, Self::Images | Self::ImageEdits)
    }

    /// Returns whether replies may be cached. Our choice: not those of media, which are large, and no jobs.
    pub fn is_cacheable(self) -> bool {
        !matches!(self, Self::Speech | Self::Videos) && !self.is_upload()
    }

    /// Returns whether its call begins a job, which ends later and is paid for then.
    pub fn begins_job(self) -> bool {
        self == Self::Videos
    }

    /// Returns the operations that a `type` of the catalogue serves, unless the model lists its `operations`.
    pub fn from_model_type(model_type: &str) -> &'static [Self] {
        match model_type {
            "chat" => &[Self::Chat],
            "embedding" => &[Self::Embeddings],
            "image" => &[Self::Images, Self::ImageEdits],
            "rerank" => &[Self::Rerank],
            "moderation" => &[Self::Moderations],
            "speech" => &[Self::Speech],
            "ocr" => &[Self::Ocr],
            "search" => &[Self::Search],
            "decision" => &[Self::TypedDecisions],
            "transcription" => &[Self::Transcriptions],
            "video" => &[Self::Videos],
            _ => &[],
        }
    }
}
