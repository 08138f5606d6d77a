//! A checked request of any operation: what planning, billing and logging read, the body as it came, and what only
//! the wires read.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chat::data_url;
use super::chat::facts::ChatFacts;
use super::chat::inlined::RemoteImage;
use super::dialects::compaction::Compaction;
use super::dialects::{Dialect, NamedMember};
use super::embeddings::EmbeddingFacts;
use super::front::Front;
use super::images::ImageFacts;
use super::moderations::ModerationFacts;
use super::ocr::OcrFacts;
use super::operation::Operation;
use super::parameter::{AskedParameters, Parameter};
use super::prompts::origin::Managed;
use super::rerank::RerankFacts;
use super::search::SearchFacts;
use super::speech::SpeechFacts;
use super::speech::format::AudioFormat;
use super::stored_responses::ResponsePromise;
use super::transcriptions::TranscriptionFacts;
use super::typed_decisions::DecisionFacts;
use super::videos::VideoFacts;
use crate::fault_code::FaultCode;
use crate::ledger::ExperimentNames;
use crate::money::{CostInputs, PricePoint, ServiceTier, UnitCounts};
use crate::spooled_json::SpooledData;

/// A request that passed the 400 rules of its front.
///
/// Only wires look into [`Self::payload`]. Everything else serves all operations alike.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The front that it came through, which writes the response.
    pub front: &'static dyn Front,
    /// The model string as sent, or as a prompt names it.
    pub model: Box<str>,
    /// Whether the response is an event stream.
    pub is_stream: bool,
    /// `routing`, where given and not `auto`.
    pub strategy: Option<Strategy>,
    /// The session that the body names, where no `x-session-id` header came.
    pub session: Option<Box<str>>,
    /// What the request needs of a model and its provider.
    pub needs: Needs,
    /// The parameters that it asks for.
    pub asked: AskedParameters,
    /// What bounds the cost; the wire bounds the length of an answer.
    pub cost_inputs: CostInputs,
    /// Bytes of text in the prompt (media data left out), for estimates.
    pub text_bytes: u64,
    /// The units that it takes, as far as it tells, for estimates.
    pub units: UnitCounts,
    /// The client's headers that pass to hosts of the front's dialect.
    pub own_headers: Vec<(HeaderName, HeaderValue)>,
    /// The body as it came, or as its prompt has completed it.
    pub source: Source,
    /// The prompt that has completed it.
    pub managed: Option<Arc<Managed>>,
    /// What it promises of its response, where that is kept or goes on with one that is.
    pub promise: Option<Arc<ResponsePromise>>,
    /// What only wires read.
    pub payload: Payload,
}

/// What is particular to an operation.
#[derive(Clone, Debug)]
pub enum Payload {
    /// See [`Operation::Chat`].
    Chat(ChatFacts),
    /// See [`Operation::Embeddings`].
    Embeddings(EmbeddingFacts),
    /// See [`Operation::Images`] and [`Operation::ImageEdits`]. Wires whose chats draw read it as a conversation.
    Images(ImageFacts),
    /// See [`Operation::Rerank`].
    Rerank(RerankFacts),
    /// See [`Operation::Moderations`].
    Moderations(ModerationFacts),
    /// See [`Operation::Speech`].
    Speech(SpeechFacts),
    /// See [`Operation::Ocr`].
    Ocr(OcrFacts),
    /// See [`Operation::Search`].
    Search(SearchFacts),
    /// See [`Operation::TypedDecisions`].
    TypedDecisions(DecisionFacts),
    /// See [`Operation::Transcriptions`] and [`Operation::Translations`]. The body is a form whose file is not in memory, so
    /// the source is empty.
    Transcription(TranscriptionFacts),
    /// See [`Operation::Videos`].
    Videos(VideoFacts),
}

impl ModelRequest {
    /// Returns whether its body is in the words of a dialect. The requests for images that wires say as chats have none.
    pub fn is_said_in(&self, dialect: Dialect) -> bool {
        let own = self.front.row().dialect;
        own.is_none_or(|own| own == dialect)
    }

    /// Takes the headers that pass to hosts of the front's dialect.
    pub fn take_headers(&mut self, headers: &HeaderMap) {
        let prefix = self.front.row().own_headers;
        if prefix.is_empty() {
            return;
        }
        let own = headers
            .iter()
            .filter(|(name, _)| name.as_str().starts_with(prefix));
        self.own_headers = own
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
    }

    /// Returns what decides its prices where it starts in this unix second.
    pub fn price_point(&self, start_s: u64) -> PricePoint {
        PricePoint {
            tier: self.needs.service_tier,
            start_s,
        }
    }

    /// Returns whether the response goes out as it comes, and not when it is whole.
    pub fn goes_out_at_once(&self) -> bool {
        self.is_stream || matches!(self.payload, Payload::Speech(_))
    }

    /// Returns the model string as the caller sent it, or the one of the prompt if the caller named only that.
    pub fn requested_model(&self) -> &str {
        let managed = self.managed.as_ref();
        let requested = managed.and_then(|managed| managed.requested_model.as_deref());
        requested.unwrap_or(&self.model)
    }

    /// Returns what makes it a request for a summary of its history.
    pub fn compaction(&self) -> Compaction {
        match &self.payload {
            Payload::Chat(facts) => facts.compaction,
            _ => Compaction::No,
        }
    }

    /// Returns what its API calls a member.
    pub fn name_of(&self, member: impl Into<NamedMember>) -> &'static str {
        self.front.name_of(member.into(), &self.source)
    }

    /// Returns the JSON schema that the answer to a chat has to fit, where it names one.
    pub fn answer_schema(&self) -> Option<&str> {
        let Payload::Chat(chat) = &self.payload else {
            return None;
        };
        let place = chat.schema.clone()?;
        std::str::from_utf8(self.source.body.get(place)?).ok()
    }

    /// Returns whether its response is kept.
    pub fn is_kept(&self) -> bool {
        let promise = self.promise.as_ref();
        promise.is_some_and(|promise| promise.id.is_some())
    }

    /// Returns whether its response is made in the background.
    pub fn is_background(&self) -> bool {
        let promise = self.promise.as_ref();
        promise.is_some_and(|promise| promise.is_background)
    }

    /// Returns the experiment that has filled it.
    pub fn experiment(&self) -> Option<&Arc<ExperimentNames>> {
        self.managed.as_ref()?.experiment.as_ref()
    }
}

/// What a variant of [`Payload`] holds, or all of them.
pub trait PayloadFacts: 'static {
    /// Returns those of a request; `None`: it is of another operation.
    fn find(payload: &Payload) -> Option<&Self>;
}

impl PayloadFacts for Payload {
    fn find(payload: &Payload) -> Option<&Self> {
        Some(payload)
    }
}

macro_rules! facts {
    ($($facts:ty: $variant:ident;)*) => {
        $(impl PayloadFacts for $facts {
            fn find(payload: &Payload) -> Option<&Self> {
                match payload {
                    Payload::$variant(facts) => Some(facts),
                    _ => None,
                }
            }
        })*
    };
}

facts! {
    ChatFacts: Chat;
    EmbeddingFacts: Embeddings;
    ImageFacts: Images;
    RerankFacts: Rerank;
    ModerationFacts: Moderations;
    SpeechFacts: Speech;
    OcrFacts: Ocr;
    SearchFacts: Search;
    DecisionFacts: TypedDecisions;
    TranscriptionFacts: Transcription;
    VideoFacts: Videos;
}

impl Payload {
    /// The operation.
    pub fn operation(&self) -> Operation {
        match self {
            Self::Chat(_) => Operation::Chat,
            Self::Embeddings(_) => Operation::Embeddings,
            Self::Images(images) if images.is_edit => Operation::ImageEdits,
            Self::Images(..) => Operation::Images,
            Self::Rerank(_) => Operation::Rerank,
            Self::Moderations(_) => Operation::Moderations,
            Self::Speech(_) => Operation::Speech,
            Self::Ocr(_) => Operation::Ocr,
            Self::Search(_) => Operation::Search,
            Self::TypedDecisions(_) => Operation::TypedDecisions,
            Self::Transcription(facts) if facts.is_translation => Operation::Translations,
            Self::Transcription(_) => Operation::Transcriptions,
            Self::Videos(_) => Operation::Videos,
        }
    }

    /// Returns whether a chat may answer it.
    pub fn is_chat(&self) -> bool {
        matches!(self, Self::Chat(_) | Self::Images(_))
    }

    /// The images that it names by address.
    pub fn remote_images(&self) -> &[RemoteImage] {
        match self {
            Self::Chat(chat) => &chat.remote_images,
            Self::Images(images) => &images.remote,
            _ => &[],
        }
    }

    /// The facts of a request for a video.
    pub fn video(&self) -> Option<&VideoFacts> {
        match self {
            Self::Videos(video) => Some(video),
            _ => None,
        }
    }

    /// The facts of a request for images.
    pub fn images(&self) -> Option<&ImageFacts> {
        match self {
            Self::Images(images) => Some(images),
            _ => None,
        }
    }
}

/// The body as received, and where its members stand: wires of the same convention cut slices from it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The body.
    pub body: Bytes,
    /// The members of the top-level object, in order.
    pub members: Vec<RequestMember>,
    /// What is not in memory of the body.
    pub spooled: Vec<SpooledData>,
}

/// One member of the top-level object. Units: byte offsets in the body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestMember {
    /// The key, without escapes.
    pub key: Box<str>,
    /// From the key's first quote to the end of the value.
    pub whole: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

/// `routing`. Source: docs/model-gateway.md 2.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Strategy {
    /// Cheapest.
    Price,
    /// Most tokens a second.
    Throughput,
    /// First event soonest.
    Latency,
}

impl Strategy {
    /// The words of requests. `auto` leaves the strategy to the gateway.
    pub const WORDS: [&'static str; 4] = ["auto", "price", "throughput", "latency"];

    /// Returns the strategy of a request's word.
    pub fn from_word(word: &str) -> Option<Self> {
        let mut all = [Self::Price, Self::Throughput, Self::Latency].into_iter();
        all.find(|strategy| strategy.as_str() == word)
    }

    /// Returns the word of `routing` for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Price => "price",
            Self::Throughput => "throughput",
            Self::Latency => "latency",
        }
    }
}

/// What a request needs of a model and its provider.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Needs {
    /// How many choices; 0 counts as 1.
    pub choices: u32,
    /// The most tokens of an answer that the request allows; `u64::MAX`: it says a number that bounds nothing.
    pub max_tokens: Option<u64>,
    /// That number as it was written.
    pub odd_max_tokens: Option<Box<str>>,
    /// The most searches, where that is a number below 1 or a broken one, as it was written.
    pub odd_max_uses: Option<Box<str>>,
    /// `service_tier`.
    pub service_tier: ServiceTier,
    /// `free_models_only`.
    pub free_models_only: bool,
    /// `no_reasoning`.
    pub no_reasoning: bool,
    /// Tokens that the context of the model has to hold, at the least.
    pub context_tokens: u64,
    /// The times of segments or words have to come with the text.
    pub timestamps: bool,
    /// Speakers have to be told apart.
    pub diarization: bool,
    /// Whether the inputs are tokens.
    pub token_inputs: bool,
    /// Whether the output has to be shortened.
    pub dimensions: bool,
    /// The format of speech, where the request asks for one.
    pub speech_format: Option<AudioFormat>,
    /// A part is an image.
    pub vision: bool,
    /// Formats of audio parts.
    pub audio: Vec<Box<str>>,
    /// A part is a file.
    pub documents: bool,
    /// Where images and files come from.
    pub media: MediaNeeds,
    /// The first message that is not an instruction is the assistant's.
    pub assistant_first: bool,
    /// `tools` holds functions.
    pub tools: bool,
    /// `tool_choice` forces a call.
    pub forced_tools: bool,
    /// `response_format` is `json_object`.
    pub json_object: bool,
    /// `response_format` is `json_schema`.
    pub json_schema: bool,
    /// `reasoning_effort` or `reasoning.effort`.
    pub effort: Option<Effort>,
    /// `reasoning.max_tokens`.
    pub reasoning_tokens: Option<u64>,
    /// `reasoning.mode`, where given.
    pub reasoning_mode: Option<Box<str>>,
    /// `reasoning.context`, where given and not `auto`. A wire without words for it drops it.
    pub reasoning_context: Option<Box<str>>,
    /// A stop sequence is blank.
    pub blank_stop: bool,
    /// `verbosity` is given.
    pub verbosity: bool,
    /// The request says itself what a provider shall cache.
    pub cache_control: bool,
    /// Whether images are asked for (`image_config`, or `modalities` with `image`) or unwanted (`modalities` of `text`
    /// alone); `None`: the model decides.
    pub image_output: Option<bool>,
    /// The model may search the web, by `web_search` or a tool of this type.
    pub web_search: Option<SearchNeeds>,
    /// Efforts and the most tokens are those of the models of one vendor, whatever model is asked. So another one gets the
    /// nearest that it has, and is not left out.
    pub adapts: bool,
    /// What only hosts of one dialect know.
    pub native: Option<NativeNeed>,
}

/// A tool, a block or a member that only hosts of one dialect know.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NativeNeed {
    pub dialect: Dialect,
    /// The member that holds it.
    pub member: &'static str,
    /// What it is, in words: `blocks of type …`.
    pub what: Box<str>,
    /// Whether of these hosts only the vendor itself knows it. Others would ignore it.
    pub is_vendor_only: bool,
    /// The code by which clients recognize that it is refused.
    pub code: Option<FaultCode>,
}

impl NativeNeed {
    /// Returns a need that every host of the dialect meets.
    pub(super) fn new(dialect: Dialect, member: &'static str, what: String) -> Self {
        Self {
            dialect,
            member,
            what: what.into(),
            is_vendor_only: false,
            code: None,
        }
    }
}

/// What a request wants of a model's own web search.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SearchNeeds {
    /// A tool asks for it, not the flag alone.
    pub is_tool: bool,
    /// `tool_choice` demands a search.
    pub is_demanded: bool,
    /// The most searches that the request allows; `u64::MAX`: it says a number that bounds nothing.
    pub max_uses: Option<u64>,
}

/// Where images and files of a request come from.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MediaNeeds {
    /// Media types of images in the body.
    pub images: Vec<Box<str>>,
    /// An image is an `https` address.
    pub remote_images: bool,
    /// An image is an address of plain http.
    pub http_images: bool,
    /// An image is neither in the body nor an address.
    pub other_images: bool,
    /// Media types of files in the body.
    pub files: Vec<Box<str>>,
    /// A file is named by the id that a provider gave it.
    pub file_ids: bool,
    /// A file in the body has no name.
    pub unnamed_files: bool,
    /// An image in the body names another media type than its bytes tell.
    pub misnamed_images: bool,
}

impl MediaNeeds {
    /// Notes where an image comes from; returns it if its server has to be asked. `param` is where its address stands.
    pub fn note_image(
        &mut self,
        url: &str,
        param: impl FnOnce() -> Box<str>,
    ) -> Option<RemoteImage> {
        if let Some(media_type) = data_url::media_type(url) {
            note_kind(&mut self.images, &media_type);
            self.misnamed_images |= data_url::retyping(url).is_some();
            return None;
        }
        let is_https = url.starts_with("https://");
        if !is_https && !url.starts_with("http://") {
            self.other_images = true;
            return None;
        }
        self.remote_images |= is_https;
        self.http_images |= !is_https;
        Some(RemoteImage {
            param: param(),
            url: url.into(),
        })
    }
}

/// Adds a media type or a format to those that a request holds.
pub fn note_kind(kinds: &mut Vec<Box<str>>, kind: &str) {
    if !kinds.iter().any(|known| **known == *kind) {
        kinds.push(kind.into());
    }
}

/// A reasoning effort, from no reasoning to the most. Source: docs/model-gateway.md 2.1.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Xhigh,
        Self::Max,
    ];

    /// The words of requests.
    pub const WORDS: [&'static str; 7] =
        ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

    /// Returns the effort of a request's word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == word)
    }

    /// Returns the convention's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl ModelRequest {
    /// Returns how many images it asks for, where it says so.
    pub fn image_count(&self) -> Option<u32> {
        match &self.payload {
            Payload::Images(images) => Some(images.count),
            Payload::Chat(_) => {
                let count = self.asked.number(Parameter::ImageCount);
                count.map(|count| count as u32)
            }
            _ => None,
        }
    }
}

impl Source {
    /// Returns a body that is whole in memory.
    pub fn new(body: Bytes, members: Vec<RequestMember>) -> Self {
        Self {
            body,
            members,
            spooled: Vec::new(),
        }
    }

    /// The member of this key.
    pub fn member(&self, key: &str) -> Option<&RequestMember> {
        self.members.iter().find(|member| &*member.key == key)
    }

    /// The text of a member's value.
    pub fn value(&self, member: &RequestMember) -> &[u8] {
        self.body.get(member.value.clone()).unwrap_or_default()
    }

    /// Whether a member's value is null.
    pub fn is_null(&self, member: &RequestMember) -> bool {
        self.value(member) == b"null"
    }
}
