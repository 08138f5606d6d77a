//! The API of a kind of provider, and the target of an attempt.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::body_form::BodyForm;
use super::codec::{BodySlice, Codec};
use super::error_body;
use super::failure::Failure;
use super::quirks::Quirks;
use super::rate_limit::LimitHeaders;
use crate::fault::{Fault, FaultKind};
use crate::models::chat::inlined::InlinedImages;
use crate::models::dialects::Dialect;
use crate::models::dialects::state::{LeftOutState, Maker, States};
use crate::models::embeddings::batch::BatchLimits;
use crate::models::operation::Operation;
use crate::models::parameter::Parameter;
use crate::models::request::{ModelRequest, Payload};
use crate::models::routing::parameters::{Parameters, Treatment};
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::search::WebSearch;
use crate::models::routing::thinking::Thinking;
use crate::models::videos::progress::VideoReport;

/// An API of providers. Shape: the table that the folder of a wire holds.
pub struct Wire {
    /// How it says a chat; `None`: it has none.
    pub dialect: Option<Dialect>,
    /// How it does each operation that it offers.
    pub(super) codecs: &'static [(Operation, &'static dyn Codec)],
    pub(super) defaults: fn() -> ProviderDefaults,
    /// The header of a reply that names the tier that served it; `None`: its replies say so inside, or not at all.
    pub tier_header: Option<&'static str>,
    /// The headers in which its providers tell their limits.
    pub rate_limits: &'static [LimitHeaders],
    /// How its providers say what becomes of a video; `None`: it makes none.
    pub videos: Option<&'static dyn VideoWire>,
    /// How its providers count the tokens of a chat; `None`: they are not asked.
    pub counting: Option<&'static Counting>,
    pub(super) classify: fn(u16, &[u8]) -> Failure,
}

/// How the providers of a wire count the tokens of a chat.
#[derive(Debug)]
pub struct Counting {
    /// The path, by that of a chat.
    pub path: fn(&str) -> String,
    /// The body, by that of a chat and the upstream's model.
    pub body: fn(Vec<u8>, &str) -> Vec<u8>,
    /// The tokens of a reply; `None`: it says none.
    pub tokens: fn(&[u8]) -> Option<u64>,
}

impl Wire {
    /// A wire of another convention, with words of its own for each operation.
    pub(super) const OF_ITS_OWN: Self = Self {
        dialect: None,
        codecs: &[],
        defaults: || ProviderDefaults {
            parameters: Parameters::of_another_convention(),
            ..ProviderDefaults::plain()
        },
        tier_header: None,
        rate_limits: &[],
        videos: None,
        counting: None,
        classify: error_body::classify,
    };

    /// Returns how it does an operation; `None`: it does not offer it.
    pub fn codec(&self, operation: Operation) -> Option<&'static dyn Codec> {
        let mut codecs = self.codecs.iter();
        let (_, codec) = codecs.find(|(offered, _)| *offered == operation)?;
        Some(*codec)
    }

    /// Returns what its mappings do with parameters and how they are told to reason, where neither configuration nor
    /// catalogue says anything else.
    pub fn defaults(&self) -> ProviderDefaults {
        (self.defaults)()
    }

    /// Returns the meaning of a reply of another status than 200, whose body may be cut short or empty.
    pub fn classify(&self, status: u16, body: &[u8]) -> Failure {
        (self.classify)(status, body)
    }
}

/// How a provider says what becomes of a video that it has begun to make. Its paths are ends, as those of codecs are.
pub trait VideoWire: Send + Sync {
    /// Returns the path that tells how a job does; `None`: the provider's id of it cannot stand in a path.
    fn status_endpoint(&self, job: &str) -> Option<String>;

    /// Returns the body of the request for it; `None`: it has none, and is a `GET`.
    fn status_body(&self, _job: &str) -> Option<Vec<u8>> {
        None
    }

    /// Returns whether the reply about a job that is done holds its video.
    fn holds_videos(&self) -> bool {
        false
    }

    /// Returns the bytes of the video that a reply about a job holds.
    fn held_video(&self, _body: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Reads what the provider says of a job, in a reply of status 200.
    ///
    /// Errors: the reply says nothing of a job.
    fn read_status(&self, body: &[u8]) -> Result<VideoReport, Failure>;

    /// Returns the path of the bytes, where no link was told.
    fn content_endpoint(&self, job: &str) -> Option<String>;

    /// Returns the path by which the provider forgets a job; `None`: it has none.
    fn delete_endpoint(&self, job: &str) -> Option<String>;
}

/// The target of one attempt.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The provider's name in the configuration.
    pub provider: &'a str,
    /// The upstream's own model id.
    pub model: &'a str,
    /// Who makes and reads state here.
    pub maker: Maker<'a>,
    /// Whether the mapping is listed as drawing images; `None`: its capabilities are not listed.
    pub image_output: Option<bool>,
    /// The region that the request has to name, where one was chosen and the address does not stand for it.
    pub region: Option<&'a str>,
    /// The maximum tokens of an answer, where the catalogue knows it.
    pub max_output: Option<u64>,
    /// The limit that the provider is told of a chat that has none, so that an answer costs no more than is reserved; `None`:
    /// it is told none.
    pub unasked_output: Option<u64>,
    /// What the mapping does with parameters.
    pub parameters: &'a Parameters,
    /// How the mapping is told to reason.
    pub thinking: &'a Thinking,
    /// How the mapping searches the web.
    pub search: WebSearch,
    /// Whether a forced call has to become `auto`, because no mapping of the model honours it.
    pub lower_tool_choice: bool,
    /// The peculiarities of this provider.
    pub quirks: &'a Quirks,
    /// What the mapping takes of embeddings at once.
    pub batch: BatchLimits,
    /// Which part of the request is asked for, of those that [`Codec::parts`] counts; from 0.
    pub part: u32,
    /// What the host wants of bodies.
    pub body: BodyForm,
    /// Whether it is one of the vendor's own hosts.
    pub is_vendor: bool,
    /// Whether it has refused the state of earlier turns, which is left out now.
    pub refuses_state: bool,
    /// Counts what of earlier turns is left out.
    pub left_out_state: LeftOutState<'a>,
    /// The least tokens that the mapping caches, where the gateway marks what to cache; `None`: it does not.
    pub auto_cache: Option<u64>,
    /// Whether the mapping is listed as streaming.
    pub streams: bool,
    /// What was fetched of the images that the request names by address.
    pub inlined: &'a InlinedImages,
    /// The id of the caller's API key.
    pub key_id: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Returns the target of a mapping of which nothing is known but the names of its provider and its model.
    pub fn plain(provider: &'a str, model: &'a str, quirks: &'a Quirks) -> Self {
        Self {
            provider,
            model,
            maker: Maker {
                states: States::NONE,
                family: provider,
                model,
                own_key: None,
            },
            image_output: None,
            region: None,
            max_output: None,
            unasked_output: None,
            parameters: Parameters::PLAIN,
            thinking: Thinking::UNKNOWN,
            search: WebSearch::default(),
            lower_tool_choice: false,
            quirks,
            batch: BatchLimits::NONE,
            part: 0,
            body: BodyForm::OF_WIRE,
            is_vendor: false,
            refuses_state: false,
            left_out_state: LeftOutState::UNCOUNTED,
            auto_cache: None,
            streams: false,
            inlined: InlinedImages::NONE,
            key_id: None,
        }
    }
}

impl Target<'_> {
    /// Returns whether the answer may hold images: the request asks for them, or the model draws and the request leaves
    /// that to it.
    pub fn draws(&self, request: &ModelRequest) -> bool {
        self.may_draw(request) == Some(true)
    }

    /// Returns the same; `None`: the request leaves it to a model that is not listed either way.
    pub(super) fn may_draw(&self, request: &ModelRequest) -> Option<bool> {
        let listed = self.image_output;
        match request.needs.image_output {
            Some(wants) => Some(wants && listed != Some(false)),
            None => listed,
        }
    }

    /// Returns what becomes of a parameter that a request has.
    pub fn treat(&self, parameter: Parameter, request: &ModelRequest) -> Treatment {
        let reasons = self.thinking.is_on(&request.needs);
        self.parameters.treat(parameter, &request.asked, reasons)
    }

    /// Returns what goes out of a parameter that came as `raw`.
    pub fn treated<'r>(
        &self,
        raw: &'r RawValue,
        parameter: Parameter,
        request: &ModelRequest,
    ) -> Option<Cow<'r, RawValue>> {
        match self.treat(parameter, request) {
            Treatment::Pass => Some(Cow::Borrowed(raw)),
            Treatment::Number(number) => RawValue::from_string(number.to_string())
                .ok()
                .map(Cow::Owned),
            Treatment::Drop => None,
        }
    }

    /// Returns how many images the part at hand asks for, at least 1.
    pub fn images_of_part(&self, request: &ModelRequest) -> u32 {
        let wanted = request.image_count().unwrap_or(1);
        let at_once = self.images_at_once(request);
        let drawn = self.part.saturating_mul(at_once);
        wanted.saturating_sub(drawn).clamp(1, at_once)
    }

    /// Returns how many images the provider draws at once, at least 1.
    pub(super) fn images_at_once(&self, request: &ModelRequest) -> u32 {
        if !self.parameters.supports(Parameter::ImageCount) {
            return 1;
        }
        let wanted = request.image_count().unwrap_or(1).max(1);
        match self.treat(Parameter::ImageCount, request) {
            Treatment::Number(most) => (most as u32).clamp(1, wanted),
            Treatment::Pass | Treatment::Drop => wanted,
        }
    }

    /// Returns what says that an answer has at most so many tokens. A number of the request's that counts none goes as it
    /// was written: the provider judges.
    pub fn said_limit(&self, most: u64, request: &ModelRequest) -> Option<Value> {
        if most < u64::MAX {
            return Some(most.into());
        }
        serde_json::from_str(request.needs.odd_max_tokens.as_deref()?).ok()
    }

    /// Returns what says how often an answer may search, likewise.
    pub fn said_searches(&self, request: &ModelRequest) -> Value {
        let odd = request.needs.odd_max_uses.as_deref();
        let odd = odd.and_then(|odd| serde_json::from_str(odd).ok());
        odd.unwrap_or_else(|| self.max_searches(request).into())
    }

    /// Returns the most searches of an answer.
    pub fn max_searches(&self, request: &ModelRequest) -> u64 {
        self.search.limit(&request.needs, self.parameters)
    }

    /// Returns whether an option of a search that the request has goes out.
    pub fn tells(&self, option: Parameter, request: &ModelRequest) -> bool {
        self.treat(option, request) != Treatment::Drop
    }

    /// Returns the most tokens of an answer that the request allows, within the mapping's bounds; where it says nothing, the
    /// limit that the provider is told all the same. `u64::MAX`: the request says a number that bounds nothing.
    pub fn max_tokens(&self, request: &ModelRequest) -> Option<u64> {
        let Some(asked) = request.needs.max_tokens else {
            let is_chat = matches!(request.payload, Payload::Chat(_));
            let is_told = is_chat && self.parameters.supports(Parameter::MaxTokens);
            return self.unasked_output.filter(|_| is_told);
        };
        let most = self.max_output.filter(|_| request.needs.adapts);
        let asked = asked.min(most.unwrap_or(u64::MAX));
        match self.treat(Parameter::MaxTokens, request) {
            Treatment::Number(bound) => Some(asked.min(bound as u64)),
            Treatment::Pass | Treatment::Drop => Some(asked),
        }
    }
}

/// The head of an upstream request without scheme and authority.
#[derive(Debug)]
pub struct WireHead {
    /// Path and query, to be appended to the path of the provider's base URL.
    pub path: String,
    /// Headers beside `host`, `content-length`, `content-type`, the credential and the configured ones.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// Writes the body of an upstream request.
///
/// `source_bytes` is the length of the client's body: what a request says in the words of a wire is about as long as it
/// was. Errors: an internal fault.
pub(super) fn write_body(
    body: &impl Serialize,
    source_bytes: usize,
) -> Result<Vec<BodySlice>, Fault> {
    let mut bytes = Vec::with_capacity(source_bytes + 4096);
    serde_json::to_writer(&mut bytes, body).map_err(|error| {
        Fault::new(FaultKind::Internal, "the request could not be translated")
            .with_detail(error.to_string())
    })?;
    Ok(vec![bytes.into()])
}
