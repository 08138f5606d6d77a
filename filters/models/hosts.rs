//! Where wires are served: a row per kind of provider, with its address, its paths and the header of its keys. The kinds of the
//! configuration are these rows.

mod host;
mod model_list;
mod profiles;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::host::{Host, HostCredential, HostPlace, PathNames, ServedWire, bearer};
pub use self::model_list::{ModelList, ModelLists};
use super::cloud_credentials::Cloud;
use super::dialects::chat;
use super::parameter::Parameter;
use super::routing::parameters::Parameters;
use super::routing::{MappingWire, Outside, WrittenBounds, WrittenParameters};
use super::wires::{BodyForm, WireKind};

/// A kind of provider.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ProviderKind {
    #[serde(rename = "openai")]
    OpenAi,
    Anthropic,
    Google,
    #[serde(rename = "openai-compatible")]
    Compatible,
    Azure,
    Bedrock,
    AwsAnthropic,
    Vertex,
    Cohere,
    Voyage,
    Tavily,
    Exa,
    Sandbox,
}

/// A server of OpenAI's convention.
const CONVENTION: Host = Host {
    base_url: None,
    region_urls: &[],
    place: HostPlace::Address,
    wires: &[
        ServedWire {
            // Of OpenAI's own fields this one is refused by strict servers, and does nothing at the others.
            parameters: |parameters| parameters.without(&[Parameter::PromptCacheRetention], &[]),
            ..ServedWire::new(MappingWire::Chat, WireKind::Compatible)
        },
        OWN_RESPONSES,
        COMPLETIONS,
        IMAGES,
        IMAGES_BY_RATIO,
    ],
    credential: HostCredential::Convention,
    signing_service: "bedrock",
    headers: &[],
    workspace_header: None,
    own_key_form: None,
    model_lists: ModelLists::each(&[ModelList::at("/models")]),
    state_family: None,
    is_vendors: false,
    names_regions: false,
    residence: None,
    exception_header: None,
    trace_name: None,
    max_body_bytes: None,
    prompt_tokens_header: None,
    names_tell_models: false,
};

const OWN_RESPONSES: ServedWire = ServedWire::new(MappingWire::Responses, WireKind::Responses);
const COMPLETIONS: ServedWire = ServedWire::new(MappingWire::Completions, WireKind::Completions);
const IMAGES: ServedWire = ServedWire::new(MappingWire::Images, WireKind::Images);
const IMAGES_BY_RATIO: ServedWire =
    ServedWire::new(MappingWire::ImagesByRatio, WireKind::ImagesByRatio);

static COMPATIBLE: Host = CONVENTION;

static SANDBOX: Host = Host {
    wires: &[ServedWire::only(WireKind::Compatible)],
    ..CONVENTION
};

static OPENAI: Host = Host {
    trace_name: Some("openai"),
    base_url: Some("https://api.openai.com/v1"),
    wires: &[
        ServedWire {
            audio_formats: &OPENAI_AUDIO,
            parameters: of_openai,
            ..ServedWire::new(MappingWire::Chat, WireKind::Compatible)
        },
        ServedWire {
            audio_formats: &OPENAI_AUDIO,
            ..OWN_RESPONSES
        },
        COMPLETIONS,
        IMAGES,
        IMAGES_BY_RATIO,
    ],
    ..CONVENTION
};

const OPENAI_AUDIO: [&str; 4] = ["wav", "mp3", "mpeg", "mpga"];

/// The vendor's own models take a limit under its newer name, and few stop sequences.
fn of_openai(parameters: Parameters) -> Parameters {
    let name = chat::NEWER_LIMIT.to_owned();
    let four = WrittenBounds {
        min: None,
        max: Some(4.0),
        outside: Some(Outside::Refuse),
    };
    parameters.with(&WrittenParameters {
        rename: BTreeMap::from([(Parameter::MaxTokens, name)]),
        bounds: BTreeMap::from([(Parameter::Stop, four)]),
        ..WrittenParameters::default()
    })
}

/// Deployments of OpenAI's and others' models, and Claude on Foundry. Source: docs/facts/clouds.md 2.
static AZURE: Host = Host {
    trace_name: Some("azure.ai.openai"),
    credential: HostCredential::Header("api-key"),
    wires: &[
        ServedWire {
            dated_prefix: Some(DEPLOYMENT),
            audio_formats: &OPENAI_AUDIO,
            parameters: of_openai,
            ..ServedWire::new(MappingWire::Chat, WireKind::Compatible).below(OPENAI_PREFIX)
        },
        ServedWire {
            audio_formats: &OPENAI_AUDIO,
            ..ServedWire::new(MappingWire::Responses, WireKind::Responses).below(OPENAI_PREFIX)
        },
        ServedWire {
            dated_prefix: Some(DEPLOYMENT),
            ..ServedWire::new(MappingWire::Completions, WireKind::Completions).below(OPENAI_PREFIX)
        },
        ServedWire {
            dated_prefix: Some(DEPLOYMENT),
            ..ServedWire::new(MappingWire::Images, WireKind::Images).below(OPENAI_PREFIX)
        },
        ServedWire::new(MappingWire::Messages, WireKind::Messages).below("/anthropic/v1"),
    ],
    headers: &[("anthropic-version", CLAUDE_VERSION)],
    model_lists: ModelLists {
        // What is deployed, or on resources without that list, what can be.
        lists: &[
            ModelList {
                right: AZURE_RIGHT,
                ..ModelList::at("/openai/deployments?api-version=2023-03-15-preview")
            },
            ModelList {
                right: AZURE_RIGHT,
                ..ModelList::at("/openai/v1/models")
            },
        ],
        first_suffices: true,
        absent_cure: "deploy them under these names, or give the mappings of your own catalogue the names of your deployments",
    },
    state_family: Some(CLAUDE_HOSTS),
    ..CONVENTION
};

const AZURE_RIGHT: &str = "the role Cognitive Services OpenAI User, or Azure AI User";

/// Where clouds serve the convention.
const OPENAI_PREFIX: &str = "/openai/v1";
/// Where dated versions of Azure's API serve a deployment.
const DEPLOYMENT: &str = "/openai/deployments/{model}";

/// What Claude's API calls the version that all its hosts speak.
const CLAUDE_VERSION: &str = "2023-06-01";

/// Source: docs/facts/clouds.md 1.
static BEDROCK: Host = Host {
    trace_name: Some("aws.bedrock"),
    base_url: Some("https://bedrock-runtime.{region}.amazonaws.com"),
    place: HostPlace::Region,
    wires: &[
        ServedWire::new(MappingWire::Converse, WireKind::Converse),
        ServedWire::new(MappingWire::Chat, WireKind::Compatible).below(OPENAI_PREFIX),
        ServedWire::new(MappingWire::Responses, WireKind::Responses).below(OPENAI_PREFIX),
        ServedWire {
            body: BodyForm {
                hashes_users: true,
                refuses_forms: true,
                ..BodyForm::OF_WIRE
            },
            counts: false,
            parameters: |parameters| parameters.without(&[Parameter::StrictTools], &[]),
            ..ServedWire::new(MappingWire::Messages, WireKind::Messages).below("/anthropic/v1")
        },
        ServedWire {
            models: &["amazon.titan-embed-text-"],
            ..ServedWire::new(MappingWire::Titan, WireKind::Titan)
        },
        ServedWire {
            models: &["cohere.embed-", "cohere.rerank-"],
            ..ServedWire::new(MappingWire::Cohere, WireKind::InvokedCohere)
        },
    ],
    headers: &[("anthropic-version", CLAUDE_VERSION)],
    own_key_form: Some(Cloud::Aws),
    model_lists: ModelLists {
        lists: &[
            AWS_PROFILES,
            ModelList {
                path: "/inference-profiles?maxResults=1000&type=APPLICATION",
                ..AWS_PROFILES
            },
            ModelList {
                path: "/foundation-models",
                next_page: None,
                right: "bedrock:ListFoundationModels",
                ..AWS_PROFILES
            },
        ],
        absent_cure: "name a profile or a model of this region in a catalogue of your own, or take another region",
        ..ModelLists::NONE
    },
    exception_header: Some(AWS_EXCEPTION),
    max_body_bytes: Some(25_000_000),
    prompt_tokens_header: Some("x-amzn-bedrock-input-token-count"),
    state_family: Some(CLAUDE_HOSTS),
    residence: Some(profiles::residence),
    ..CONVENTION
};

/// Where services of AWS name exceptions.
const AWS_EXCEPTION: &str = "x-amzn-errortype";

/// Lists are on the host that manages models, not on the one that runs them.
const AWS_PROFILES: ModelList = ModelList {
    path: "/inference-profiles?maxResults=1000",
    base_url: Some("https://bedrock.{region}.amazonaws.com"),
    next_page: Some(["nextToken", "nextToken"]),
    wires: &[],
    right: "bedrock:ListInferenceProfiles",
};

/// Claude Platform on AWS. Source: docs/facts/clouds.md 1.5.
static AWS_ANTHROPIC: Host = Host {
    base_url: Some("https://aws-external-anthropic.{region}.api.aws"),
    place: HostPlace::Region,
    signing_service: "aws-external-anthropic",
    workspace_header: Some("anthropic-workspace-id"),
    exception_header: Some(AWS_EXCEPTION),
    // Its regions are addresses.
    names_regions: false,
    own_key_form: Some(Cloud::Aws),
    ..ANTHROPIC
};

/// Source: docs/facts/clouds.md 3.
static VERTEX: Host = Host {
    trace_name: Some("gcp.vertex_ai"),
    base_url: Some("https://{region}-aiplatform.googleapis.com"),
    region_urls: &[
        ("global", "https://aiplatform.googleapis.com"),
        ("us", "https://aiplatform.us.rep.googleapis.com"),
        ("eu", "https://aiplatform.eu.rep.googleapis.com"),
    ],
    place: HostPlace::Project,
    wires: &[
        ServedWire {
            body: GOOGLE_TIERS,
            ..ServedWire::new(MappingWire::Gemini, WireKind::CloudContents).below(GOOGLE_MODELS)
        },
        ServedWire {
            body: GOOGLE_TIERS,
            models: &["text-embedding-", "text-multilingual-embedding-", "imagen-"],
            ..ServedWire::new(MappingWire::Predict, WireKind::Predictions).below(GOOGLE_MODELS)
        },
        ServedWire {
            chat_endpoints: Some([
                "/models/{model}:rawPredict",
                "/models/{model}:streamRawPredict",
            ]),
            body: BodyForm {
                version_for_model: Some("vertex-2023-10-16"),
                ..BodyForm::OF_WIRE
            },
            counts: false,
            ..ServedWire::new(MappingWire::Messages, WireKind::Messages)
                .below("/v1/projects/{project}/locations/{region}/publishers/anthropic")
        },
        ServedWire::new(MappingWire::Chat, WireKind::Compatible)
            .below("/v1/projects/{project}/locations/{region}/endpoints/openapi"),
    ],
    own_key_form: Some(Cloud::Google),
    // Models of others are on no list that says which of them a project may call.
    model_lists: ModelLists {
        lists: &[
            ModelList {
                wires: &[MappingWire::Gemini],
                ..VERTEX_MODELS
            },
            ModelList {
                path: "/v1beta1/publishers/anthropic/models?pageSize=200",
                wires: &[MappingWire::Messages],
                ..VERTEX_MODELS
            },
        ],
        absent_cure: "enable them in the cloud's catalogue of models, take another region, or take them out of your catalogue",
        ..ModelLists::NONE
    },
    names_tell_models: true,
    state_family: Some(CLAUDE_HOSTS),
    ..CONVENTION
};

const VERTEX_MODELS: ModelList = ModelList {
    path: "/v1beta1/publishers/google/models?pageSize=200",
    base_url: None,
    next_page: Some(["nextPageToken", "pageToken"]),
    wires: &[],
    right: "the role Vertex AI User (roles/aiplatform.user)",
};

/// Where Vertex serves Google's own models.
const GOOGLE_MODELS: &str = "/v1/projects/{project}/locations/{region}/publishers/google";
/// How Vertex is asked for a tier of these.
const GOOGLE_TIERS: BodyForm = BodyForm {
    tier_headers: &[
        ("x-vertex-ai-llm-request-type", Some("shared")),
        ("x-vertex-ai-llm-shared-request-type", None),
    ],
    ..BodyForm::OF_WIRE
};

/// No provider's name has a blank.
const CLAUDE_HOSTS: &str = "hosts of Claude";

const ANTHROPIC: Host = Host {
    trace_name: Some("anthropic"),
    base_url: Some("https://api.anthropic.com"),
    credential: HostCredential::Header("x-api-key"),
    headers: &[("anthropic-version", CLAUDE_VERSION)],
    wires: &[ServedWire::only(WireKind::Messages).below("/v1")],
    model_lists: ModelLists::each(&[ModelList::at("/v1/models?limit=1000")]),
    state_family: Some(CLAUDE_HOSTS),
    is_vendors: true,
    names_regions: true,
    ..CONVENTION
};

static CLAUDE: Host = ANTHROPIC;

static GOOGLE: Host = Host {
    trace_name: Some("gcp.gemini"),
    base_url: Some("https://generativelanguage.googleapis.com"),
    credential: HostCredential::Header("x-goog-api-key"),
    wires: &[ServedWire::only(WireKind::Contents).below("/v1beta")],
    model_lists: ModelLists::each(&[ModelList::at("/v1beta/models?pageSize=1000")]),
    ..CONVENTION
};

static COHERE: Host = Host {
    trace_name: Some("cohere"),
    base_url: Some("https://api.cohere.com"),
    wires: &[ServedWire::only(WireKind::Cohere).below("/v2")],
    model_lists: ModelLists::each(&[ModelList::at("/v1/models?page_size=1000")]),
    ..CONVENTION
};

static VOYAGE: Host = Host {
    base_url: Some("https://api.voyageai.com/v1"),
    wires: &[ServedWire::only(WireKind::Voyage)],
    model_lists: ModelLists::NONE,
    ..CONVENTION
};

static TAVILY: Host = Host {
    base_url: Some("https://api.tavily.com"),
    wires: &[ServedWire::only(WireKind::Tavily)],
    model_lists: ModelLists::NONE,
    ..CONVENTION
};

static EXA: Host = Host {
    base_url: Some("https://api.exa.ai"),
    credential: HostCredential::Header("x-api-key"),
    wires: &[ServedWire::only(WireKind::Exa)],
    model_lists: ModelLists::NONE,
    ..CONVENTION
};

impl ProviderKind {
    /// Returns its row.
    pub fn host(self) -> &'static Host {
        match self {
            Self::OpenAi => &OPENAI,
            Self::Anthropic => &CLAUDE,
            Self::Google => &GOOGLE,
            Self::Compatible => &COMPATIBLE,
            Self::Azure => &AZURE,
            Self::Bedrock => &BEDROCK,
            Self::AwsAnthropic => &AWS_ANTHROPIC,
            Self::Vertex => &VERTEX,
            Self::Cohere => &COHERE,
            Self::Voyage => &VOYAGE,
            Self::Tavily => &TAVILY,
            Self::Exa => &EXA,
            Self::Sandbox => &SANDBOX,
        }
    }
}
