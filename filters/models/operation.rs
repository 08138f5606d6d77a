//! The operations of the model gateway.

use serde::Deserialize;

use crate::limits::QuotaGroup;

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

/// What is particular to an operation.
#[derive(Debug)]
pub struct OperationFacts {
    /// The name for messages to the caller.
    pub name: &'static str,
    /// The path that messages to the caller name: that of its first front.
    pub path: &'static str,
    /// The quota that its requests count against.
    pub quota: QuotaGroup,
    /// What its answers are, in the words of `GET /v1/models`.
    pub output_modality: &'static str,
    /// The member of a request that holds the prompt.
    pub prompt_member: &'static str,
    /// Its parameters, as `GET /v1/models` lists them; those of chats and images depend on the model.
    pub parameters: &'static [&'static str],
}

const CHAT: OperationFacts = OperationFacts {
    name: "chat completions",
    path: "/v1/chat/completions",
    quota: QuotaGroup::Chat,
    output_modality: "text",
    prompt_member: "messages",
    parameters: &[],
};
const EMBEDDINGS: OperationFacts = OperationFacts {
    name: "embeddings",
    path: "/v1/embeddings",
    quota: QuotaGroup::Embeddings,
    output_modality: "embedding",
    prompt_member: "input",
    parameters: &["encoding_format", "dimensions"],
};
const IMAGES: OperationFacts = OperationFacts {
    name: "image generation",
    path: "/v1/images/generations",
    quota: QuotaGroup::Images,
    output_modality: "image",
    prompt_member: "prompt",
    parameters: &[],
};
const IMAGE_EDITS: OperationFacts = OperationFacts {
    name: "image editing",
    path: "/v1/images/edits",
    quota: QuotaGroup::ImageEdits,
    output_modality: "image",
    prompt_member: "prompt",
    parameters: &[],
};
const RERANK: OperationFacts = OperationFacts {
    name: "reranking",
    path: "/v1/rerank",
    quota: QuotaGroup::Rerank,
    output_modality: "rerank",
    prompt_member: "documents",
    parameters: &["top_n", "return_documents"],
};
const MODERATIONS: OperationFacts = OperationFacts {
    name: "moderations",
    path: "/v1/moderations",
    quota: QuotaGroup::Moderation,
    output_modality: "moderation",
    prompt_member: "input",
    parameters: &[],
};
const SPEECH: OperationFacts = OperationFacts {
    name: "speech",
    path: "/v1/audio/speech",
    quota: QuotaGroup::Audio,
    output_modality: "audio",
    prompt_member: "input",
    parameters: &[
        "voice",
        "instructions",
        "response_format",
        "speed",
        "stream_format",
    ],
};
const OCR: OperationFacts = OperationFacts {
    name: "OCR",
    path: "/v1/ocr",
    quota: QuotaGroup::Ocr,
    output_modality: "ocr",
    prompt_member: "document",
    parameters: &[
        "pages",
        "include_image_base64",
        "image_limit",
        "document_annotation_format",
    ],
};
const SEARCH: OperationFacts = OperationFacts {
    name: "web search",
    path: "/v1/search",
    quota: QuotaGroup::Search,
    output_modality: "search",
    prompt_member: "query",
    parameters: &[
        "max_results",
        "search_domain_filter",
        "search_after_date_filter",
        "search_before_date_filter",
    ],
};
const TYPED_DECISIONS: OperationFacts = OperationFacts {
    name: "typed decisions",
    path: "/v1/systemone",
    quota: QuotaGroup::Decision,
    output_modality: "decision",
    prompt_member: "state",
    parameters: &[],
};
const TRANSCRIPTIONS: OperationFacts = OperationFacts {
    name: "transcriptions",
    path: "/v1/audio/transcriptions",
    quota: QuotaGroup::Transcriptions,
    output_modality: "transcription",
    prompt_member: "file",
    parameters: &["language", "prompt", "response_format", "temperature"],
};
const TRANSLATIONS: OperationFacts = OperationFacts {
    name: "translations",
    path: "/v1/audio/translations",
    quota: QuotaGroup::Translations,
    output_modality: "transcription",
    prompt_member: "file",
    parameters: &["prompt", "response_format", "temperature"],
};
const VIDEOS: OperationFacts = OperationFacts {
    name: "videos",
    path: "/v1/videos",
    quota: QuotaGroup::Video,
    output_modality: "video",
    prompt_member: "prompt",
    parameters: &["seconds", "size", "audio"],
};

impl Operation {
    /// Returns what is particular to it.
    pub fn row(self) -> &'static OperationFacts {
        match self {
            Self::Chat => &CHAT,
            Self::Embeddings => &EMBEDDINGS,
            Self::Images => &IMAGES,
            Self::ImageEdits => &IMAGE_EDITS,
            Self::Rerank => &RERANK,
            Self::Moderations => &MODERATIONS,
            Self::Speech => &SPEECH,
            Self::Ocr => &OCR,
            Self::Search => &SEARCH,
            Self::TypedDecisions => &TYPED_DECISIONS,
            Self::Transcriptions => &TRANSCRIPTIONS,
            Self::Translations => &TRANSLATIONS,
            Self::Videos => &VIDEOS,
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
