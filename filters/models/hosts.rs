//! Where wires are served: a row per kind of provider, with its address, the beginning of its paths and the header of its
//! keys. The kinds of the configuration are these rows.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dialects::chat;
use super::parameter::Parameter;
use super::routing::parameters::Parameters;
use super::routing::{MappingWire, Outside, WrittenBounds, WrittenParameters};
use super::wires::{Codec, Quirks, Wire, WireHead, WireKind};
use crate::fault::{Fault, FaultKind};

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
    Cohere,
    Voyage,
    Tavily,
    Exa,
    Sandbox,
}

/// How a kind of provider serves its wires.
///
/// Our choice: a key is a header, and a body is what its wire says, because all of today's hosts have it so. A cloud's own
/// sign-in stands beside it ([`super::cloud_credentials`]); one that moves members of bodies gets a column of its own.
pub struct Host {
    /// The usual base URL; `None`: it has none.
    pub base_url: Option<&'static str>,
    /// The beginning of all paths behind the base URL.
    pub path_prefix: &'static str,
    /// The usual wire.
    pub wire: WireKind,
    /// Other wires, and the words by which mappings choose them.
    pub other_wires: &'static [(MappingWire, WireKind)],
    pub credential: HostCredential,
    /// The names and values of headers of all requests to it.
    pub headers: &'static [(&'static str, &'static str)],
    /// The path of its list of models behind the base URL; `None`: it has none.
    pub model_list: Option<&'static str>,
    /// The formats of audio that it takes, under all their names; empty: those of its wire.
    pub audio_formats: &'static [&'static str],
    /// What it and others are called that read each other's state; `None`: each provider reads its own.
    pub state_family: Option<&'static str>,
    /// Whether its requests can name a region, so that regions need no address.
    pub names_regions: bool,
    /// Returns what it does with the parameters of its usual wire.
    pub parameters: fn(Parameters) -> Parameters,
}

/// How requests carry a key.
#[derive(Clone, Copy, Debug)]
pub enum HostCredential {
    /// In the header of the provider's quirks, usually as `Bearer`.
    Convention,
    /// The bare key, in this header.
    Header(&'static str),
}

/// A server of OpenAI's convention.
const CONVENTION: Host = Host {
    base_url: None,
    path_prefix: "",
    wire: WireKind::Compatible,
    other_wires: &[
        (MappingWire::Responses, WireKind::Responses),
        (MappingWire::Completions, WireKind::Completions),
        (MappingWire::Images, WireKind::Images),
        (MappingWire::ImagesByRatio, WireKind::ImagesByRatio),
    ],
    credential: HostCredential::Convention,
    headers: &[],
    model_list: Some("/models"),
    audio_formats: &[],
    state_family: None,
    names_regions: false,
    parameters: |parameters| parameters,
};

static COMPATIBLE: Host = Host {
    // Of OpenAI's own fields this one is refused by strict servers, and does nothing at the others.
    parameters: |parameters| parameters.without(&[Parameter::PromptCacheRetention], &[]),
    ..CONVENTION
};

static SANDBOX: Host = Host {
    other_wires: &[],
    ..CONVENTION
};

static OPENAI: Host = Host {
    base_url: Some("https://api.openai.com/v1"),
    audio_formats: &["wav", "mp3", "mpeg", "mpga"],
    parameters: |parameters| {
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
    },
    ..CONVENTION
};

/// A host of a wire of its own.
const fn host(base_url: &'static str, path_prefix: &'static str, wire: WireKind) -> Host {
    Host {
        base_url: Some(base_url),
        path_prefix,
        wire,
        other_wires: &[],
        model_list: None,
        ..CONVENTION
    }
}

static ANTHROPIC: Host = Host {
    credential: HostCredential::Header("x-api-key"),
    headers: &[("anthropic-version", "2023-06-01")],
    model_list: Some("/v1/models?limit=1000"),
    // No provider's name has a blank.
    state_family: Some("hosts of Claude"),
    names_regions: true,
    ..host("https://api.anthropic.com", "/v1", WireKind::Messages)
};

static GOOGLE: Host = Host {
    credential: HostCredential::Header("x-goog-api-key"),
    model_list: Some("/v1beta/models?pageSize=1000"),
    ..host(
        "https://generativelanguage.googleapis.com",
        "/v1beta",
        WireKind::Contents,
    )
};

static COHERE: Host = Host {
    model_list: Some("/v1/models?page_size=1000"),
    ..host("https://api.cohere.com", "/v2", WireKind::Cohere)
};

static VOYAGE: Host = host("https://api.voyageai.com/v1", "", WireKind::Voyage);

static TAVILY: Host = host("https://api.tavily.com", "", WireKind::Tavily);

static EXA: Host = Host {
    credential: HostCredential::Header("x-api-key"),
    ..host("https://api.exa.ai", "", WireKind::Exa)
};

impl ProviderKind {
    /// Returns its row.
    pub fn host(self) -> &'static Host {
        match self {
            Self::OpenAi => &OPENAI,
            Self::Anthropic => &ANTHROPIC,
            Self::Google => &GOOGLE,
            Self::Compatible => &COMPATIBLE,
            Self::Cohere => &COHERE,
            Self::Voyage => &VOYAGE,
            Self::Tavily => &TAVILY,
            Self::Exa => &EXA,
            Self::Sandbox => &SANDBOX,
        }
    }
}

/// The end of the path of chat in the convention.
const CHAT: &str = "chat/completions";

impl Host {
    /// Returns the wire of mappings that choose this one.
    pub fn wire(&self, choice: Option<MappingWire>) -> &'static Wire {
        let mut others = self.other_wires.iter();
        let chosen = others.find(|(word, _)| Some(*word) == choice);
        chosen.map_or(self.wire, |(_, kind)| *kind).wire()
    }

    /// Returns the head of requests for an upstream's model.
    pub fn head(
        &self,
        codec: &dyn Codec,
        is_stream: bool,
        model: &str,
        quirks: &Quirks,
    ) -> WireHead {
        let endpoint = codec.endpoint(is_stream);
        let endpoint = endpoint.replace("{model}", &escaped(model));
        let fixed = self.headers.iter().chain(codec.fixed_headers());
        let headers = fixed.map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        WireHead {
            path: self.path(&endpoint, quirks),
            headers: headers.collect(),
        }
    }

    /// Returns the path of an endpoint behind that of the base URL. Without a slash in front it stands beside that of chat.
    pub fn path(&self, endpoint: &str, quirks: &Quirks) -> String {
        let chat = &quirks.chat_path;
        match endpoint {
            CHAT => chat.clone(),
            _ if endpoint.starts_with('/') => [self.path_prefix, endpoint].concat(),
            _ if chat.contains(CHAT) => chat.replacen(CHAT, endpoint, 1),
            _ => ["/", endpoint].concat(),
        }
    }

    /// Returns the header of a credential, marked sensitive, so that no log prints it.
    ///
    /// Errors: an internal fault where the credential cannot stand in a header.
    pub fn credential(
        &self,
        secret: &str,
        quirks: &Quirks,
    ) -> Result<(HeaderName, HeaderValue), Fault> {
        let name = match self.credential {
            HostCredential::Convention => quirks.auth_header.clone(),
            HostCredential::Header(name) => HeaderName::from_static(name),
        };
        let value = match name == header::AUTHORIZATION {
            true => Cow::Owned(format!("Bearer {secret}")),
            false => Cow::Borrowed(secret),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            Fault::new(
                FaultKind::Internal,
                "the provider's credential is not usable",
            )
            .with_detail("a credential holds bytes that cannot stand in a header")
        })?;
        value.set_sensitive(true);
        Ok((name, value))
    }
}

/// A model's name as a part of a path.
fn escaped(model: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
    model
        .bytes()
        .map(|b| {
            if is_plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}
