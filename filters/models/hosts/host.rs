//! How a host serves wires: where, at which paths, with which header, and what it wants of bodies.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue, header};

use super::model_list::ModelLists;
use crate::fault::{Fault, FaultKind};
use crate::models::cloud_credentials::Cloud;
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;
use crate::models::routing::MappingWire;
use crate::models::routing::parameters::Parameters;
use crate::models::routing::places::Residence;
use crate::models::wires::{BodyForm, Quirks, WireHead, WireKind};

/// A wire as a host serves it.
#[derive(Clone, Copy, Debug)]
pub struct ServedWire {
    /// The word by which mappings choose it; `None`: there is no choice.
    pub word: Option<MappingWire>,
    pub kind: WireKind,
    /// The beginnings of the names of models for which it is chosen where a mapping says nothing.
    pub models: &'static [&'static str],
    /// The beginning of its paths behind the base URL, in which `{project}`, `{region}` and `{model}` stand for those of a
    /// mapping.
    pub path_prefix: &'static str,
    /// The same where the configuration names a dated version of the API; `None`: there are no dated versions.
    pub dated_prefix: Option<&'static str>,
    /// The ends of the paths of chats, whole and streamed; `None`: those of the wire.
    pub chat_endpoints: Option<[&'static str; 2]>,
    /// What the host wants of its bodies.
    pub body: BodyForm,
    /// The formats of audio that the host takes, under all their names; empty: those of the wire.
    pub audio_formats: &'static [&'static str],
    /// Whether the host counts tokens as the vendor of the wire does.
    pub counts: bool,
    /// Returns what the host does with the parameters of the wire.
    pub parameters: fn(Parameters) -> Parameters,
}

impl ServedWire {
    /// Returns a wire without a choice and without deviations.
    pub(super) const fn only(kind: WireKind) -> Self {
        Self {
            word: None,
            kind,
            models: &[],
            path_prefix: "",
            dated_prefix: None,
            chat_endpoints: None,
            body: BodyForm::OF_WIRE,
            audio_formats: &[],
            counts: true,
            parameters: |parameters| parameters,
        }
    }

    /// Returns a wire without deviations, which mappings choose by a word.
    pub(super) const fn new(word: MappingWire, kind: WireKind) -> Self {
        Self {
            word: Some(word),
            ..Self::only(kind)
        }
    }

    /// Returns the same wire with paths below another one.
    pub(super) const fn below(self, path_prefix: &'static str) -> Self {
        Self {
            path_prefix,
            ..self
        }
    }
}

/// What paths are made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathNames<'a> {
    /// The upstream's own model id.
    pub model: &'a str,
    /// The cloud's project.
    pub project: &'a str,
    /// The cloud's region.
    pub region: &'a str,
    /// The dated version of the API; empty: the newest.
    pub api: &'a str,
}

impl PathNames<'_> {
    /// Returns a template with these names in it, each as one segment.
    fn fill(&self, template: &str) -> String {
        let names = [
            ("{model}", self.model),
            ("{project}", self.project),
            ("{region}", self.region),
        ];
        names
            .into_iter()
            .fold(template.to_owned(), |text, (place, name)| {
                text.replace(place, &escaped(name))
            })
    }
}

/// How a kind of provider serves its wires.
///
/// Our choice: a wire is a dialect, and a cloud is a row with deviations; its own sign-in stands beside it
/// ([`crate::models::cloud_credentials`]).
pub struct Host {
    /// The usual base URL, in which `{region}` stands for the region; `None`: it has none.
    pub base_url: Option<&'static str>,
    /// The names of regions whose base URL has another form, and these URLs.
    pub region_urls: &'static [(&'static str, &'static str)],
    /// What the configuration has to say before requests have a place.
    pub place: HostPlace,
    /// Its wires, the usual one first.
    pub wires: &'static [ServedWire],
    pub credential: HostCredential,
    /// The service that signatures for AWS name.
    pub signing_service: &'static str,
    /// The names and values of headers of all requests to it.
    pub headers: &'static [(&'static str, &'static str)],
    /// The header that names the customer's workspace; `None`: there are none.
    pub workspace_header: Option<&'static str>,
    /// The JSON that an organization may give as its key, in place of a text: that of this cloud; `None`: there is none.
    pub own_key_form: Option<Cloud>,
    /// Where it lists its models.
    pub model_lists: ModelLists,
    /// The header of refusals that names the exception, for bodies that do not; `None`: there is none.
    pub exception_header: Option<&'static str>,
    /// Its name in OpenTelemetry's conventions for generative AI; `None`: that of the configuration.
    pub trace_name: Option<&'static str>,
    /// The most bytes that a body of a request may have; `None`: it is not known.
    pub max_body_bytes: Option<usize>,
    /// The header of replies that tells the tokens of the prompt, for bodies that do not; `None`: there is none.
    pub prompt_tokens_header: Option<&'static str>,
    /// What it and others are called that read each other's state; `None`: each provider reads its own.
    pub state_family: Option<&'static str>,
    /// Whether it is the vendor's own, which knows what is new in the dialect, and whose state goes bare.
    pub is_vendors: bool,
    /// Whether the name of a mapping says which model it is; else `base_model` alone does.
    pub names_tell_models: bool,
    /// Whether its requests can name a region, so that regions need no address.
    pub names_regions: bool,
    /// Returns where calls of a model in a region are computed; `None`: a call stays in its region.
    pub residence: Option<Residence>,
}

/// What the configuration has to say of a host before requests have a place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HostPlace {
    /// An address, unless there is a usual one.
    Address,
    /// A region of the cloud.
    Region,
    /// A project of the cloud, and a region, which is `global` unless another is named.
    Project,
}

/// How requests carry a key.
#[derive(Clone, Copy, Debug)]
pub enum HostCredential {
    /// In the header of the provider's quirks, usually as `Bearer`.
    Convention,
    /// The bare key, in this header.
    Header(&'static str),
}

/// The end of the path of chat in the convention.
const CHAT: &str = "chat/completions";

impl Host {
    /// Returns the usual base URL, in a region where the host has some; `None`: it has none.
    pub fn base_url_in(&self, region: &str) -> Option<String> {
        let mut named = self.region_urls.iter();
        match named.find(|(name, _)| *name == region) {
            Some((_, url)) => Some((*url).to_owned()),
            None => self.base_url.map(|url| url.replace("{region}", region)),
        }
    }

    /// Returns the wire of mappings that choose this one, as it is served here: the usual one where none is chosen.
    pub fn served(&self, choice: Option<MappingWire>) -> &'static ServedWire {
        let chosen = self
            .wires
            .iter()
            .find(|it| it.word.is_some() && it.word == choice);
        chosen.unwrap_or_else(|| self.usual())
    }

    /// Returns the word of the wire of a mapping that chooses none, by its model; `None`: it is the usual one.
    ///
    /// `base_model` is the model that the mapping says it is, `name` the host's own name of it.
    pub fn word_for(&self, base_model: Option<&str>, name: &str) -> Option<MappingWire> {
        let model = base_model.or(Some(name).filter(|_| self.names_tell_models))?;
        let serves = |wire: &&ServedWire| wire.models.iter().any(|it| model.starts_with(it));
        self.wires.iter().find(serves)?.word
    }

    /// Returns the usual wire.
    pub fn usual(&self) -> &'static ServedWire {
        static NONE: ServedWire = ServedWire::only(WireKind::Compatible);
        self.wires.first().unwrap_or(&NONE)
    }

    /// Returns the words by which mappings choose a wire here.
    pub fn words(&self) -> impl Iterator<Item = MappingWire> {
        self.wires.iter().filter_map(|it| it.word)
    }

    /// Returns the head of requests for an operation; `None`: the wire does not offer it.
    pub fn head(
        &self,
        served: &ServedWire,
        (operation, is_stream): (Operation, bool),
        names: &PathNames<'_>,
        quirks: &Quirks,
    ) -> Option<WireHead> {
        let codec = served.kind.wire().codec(operation)?;
        let own = codec.endpoint(is_stream);
        let of_chats = served.chat_endpoints;
        let of_chats = of_chats.filter(|_| operation == Operation::Chat);
        let endpoint = of_chats.map_or(own, |[whole, streamed]| match is_stream {
            true => streamed,
            false => whole,
        });
        let fixed = self.headers.iter().chain(codec.fixed_headers());
        let headers = fixed.map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        Some(WireHead {
            path: served.path(endpoint, names, quirks),
            headers: headers.collect(),
        })
    }

    /// Checks the size of a body before it is sent.
    ///
    /// Errors: 413, which names the provider, what came and what it takes.
    pub fn check_body(&self, provider: &str, bytes: usize) -> Result<(), Fault> {
        match self.max_body_bytes {
            Some(most) if bytes > most => {
                let message = format!(
                    "the request has {bytes} bytes in the words of {provider}, which takes {most}; \
                     send less, or name a provider that takes more"
                );
                Err(Fault::new(FaultKind::TooLarge, message))
            }
            _ => Ok(()),
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
        credential_in(name, secret)
    }
}

/// Returns the header of a bearer token, marked sensitive, so that no log prints it.
///
/// Errors: an internal fault where the token cannot stand in a header.
pub fn bearer(secret: &str) -> Result<(HeaderName, HeaderValue), Fault> {
    credential_in(header::AUTHORIZATION, secret)
}

fn credential_in(name: HeaderName, secret: &str) -> Result<(HeaderName, HeaderValue), Fault> {
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

impl ServedWire {
    /// Returns whether a request goes out without the form of its answer, which the host refuses.
    pub fn leaves_out_form(&self, request: &ModelRequest) -> bool {
        let own = self.kind.wire().dialect;
        let is_own = own.is_some() && own == request.front.row().dialect;
        self.body.refuses_forms && request.needs.json_schema && is_own
    }

    /// Returns the path of an endpoint behind that of the base URL. Without a slash in front it stands beside that of chat.
    pub fn path(&self, endpoint: &str, names: &PathNames<'_>, quirks: &Quirks) -> String {
        let chat = &quirks.chat_path;
        let end = match endpoint {
            CHAT => chat.clone(),
            _ if endpoint.starts_with('/') => endpoint.to_owned(),
            _ if chat.contains(CHAT) => chat.replacen(CHAT, endpoint, 1),
            _ => ["/", endpoint].concat(),
        };
        let dated = self.dated_prefix.filter(|_| !names.api.is_empty());
        let prefix = dated.unwrap_or(self.path_prefix);
        let path = names.fill(&[prefix, &end].concat());
        match dated {
            Some(_) => [&path, "?api-version=", &escaped(names.api)].concat(),
            None => path,
        }
    }
}

/// Returns a name as a segment of a path.
fn escaped(name: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
    name.bytes()
        .map(|b| {
            if is_plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}
