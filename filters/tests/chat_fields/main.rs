//! What becomes of each field of a chat request on each wire, as `docs/chat-fields.md` shows it.
//!
//! Nothing in the page is written by hand but the names of the fields: each is sent through the checks, the plan and the
//! wire, and compared with the same request without it. After a wanted change:
//! `WRITE_GOLDEN=1 cargo test -p filters --test chat_fields`, and read the difference.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

mod fields;
mod tools;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use filters::models::chat::inlined::{InlinedImage, InlinedImages};
use filters::models::front::{ClientHead, Front, Received};
use filters::models::fronts::chat_completions::ChatCompletions;
use filters::models::hosts::{PathNames, ProviderKind};
use filters::models::operation::Operation;
use filters::models::parameter::Parameter;
use filters::models::request::{ModelRequest, Payload};
use filters::models::routing::capable;
use filters::models::routing::catalog::{Catalog, Mapping};
use filters::models::routing::providers::ProviderNames;
use filters::models::wires::{BodySlice, Quirks, Target, WireKind};
use serde_json::{Value, json};

use crate::fields::{Field, SECTIONS};

const WIRES: [(&str, WireKind); 6] = [
    ("OpenAI", WireKind::Compatible),
    ("Responses", WireKind::Responses),
    ("Anthropic", WireKind::Messages),
    ("Gemini", WireKind::Contents),
    ("Converse", WireKind::Converse),
    ("Cohere", WireKind::Cohere),
];

/// What becomes of a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Acts,
    Forwarded,
    Stripped,
    Refused,
}

impl Fate {
    fn as_str(self) -> &'static str {
        match self {
            Self::Acts => "acts",
            Self::Forwarded => "forwarded",
            Self::Stripped => "stripped",
            Self::Refused => "refused",
        }
    }
}

/// What the table of a mapping passes beyond what its wire passes.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Passes {
    Nothing,
    /// Whatever few providers of the family know.
    All,
}

/// A mapping that can do all that its wire can.
fn mapping(kind: WireKind, passes: Passes) -> Mapping {
    let capabilities = [
        "streaming",
        "tools",
        "parallel_tools",
        "forced_tools",
        "vision",
        "audio",
        "documents",
        "json_object",
        "json_schema",
        "reasoning",
        "web_search",
        "cache_control",
        "verbosity",
        "n",
        "cancellation",
        "image_output",
    ];
    let usual = kind.wire().defaults().parameters;
    let more = Parameter::ALL
        .into_iter()
        .filter(|parameter| passes == Passes::All && !usual.supports(*parameter));
    let pass: Vec<&str> = more.map(Parameter::as_str).collect();
    let catalog = json!({"models": [{"id": "m", "providers": [{"provider": "p", "name": "up", "parameters": {"pass": pass},
        "web_search": (kind == WireKind::Compatible).then_some("options"), "capabilities": capabilities, "service_tiers": ["flex", "priority"], "reasoning_modes": ["standard", "pro"]}]}]});
    let names = ProviderNames::new([("p", kind.wire().defaults())]);
    let catalog = Catalog::check(serde_json::from_value(catalog).unwrap(), names).unwrap();
    Mapping::clone(&catalog.models()[0].mappings[0])
}

/// The upstream request of a client's request: its path and its body; `None`: the wire refuses it.
fn sent(kind: WireKind, passes: Passes, request: &ModelRequest) -> Option<(String, Value)> {
    let (wire, mapping, quirks) = (kind.wire(), mapping(kind, passes), Quirks::default());
    let codec = wire.codec(Operation::Chat)?;
    let limits = codec.limits();
    capable::check(request, &mapping, Some(&limits)).ok()?;
    let mut inlined = InlinedImages::default();
    if let Payload::Chat(chat) = &request.payload {
        let images = chat.remote_images.iter();
        for image in images.filter(|image| limits.media.must_fetch(image)) {
            let fetched = InlinedImage::read(b"GIF89a").unwrap();
            inlined.add(&image.url, Arc::new(fetched));
        }
    }
    let target = Target {
        image_output: mapping.image_output(),
        parameters: &mapping.parameters,
        thinking: &mapping.thinking,
        search: mapping.search,
        inlined: &inlined,
        ..Target::plain("p", "up", &quirks)
    };
    let slices = codec.encode(request, &target).ok()?;
    let body: Vec<u8> = slices.into_iter().flat_map(in_memory).collect();
    let host = match kind {
        WireKind::Messages => ProviderKind::Anthropic,
        WireKind::Contents => ProviderKind::Google,
        WireKind::Converse => ProviderKind::Bedrock,
        WireKind::Cohere => ProviderKind::Cohere,
        _ => ProviderKind::OpenAi,
    };
    let names = PathNames {
        model: "up",
        ..PathNames::default()
    };
    let (host, asked) = (host.host(), (Operation::Chat, request.is_stream));
    let head = host.head(host.usual(), asked, &names, &quirks)?;
    Some((head.path, serde_json::from_slice(&body).unwrap()))
}

fn in_memory(slice: BodySlice) -> Bytes {
    match slice {
        BodySlice::Bytes(bytes) => bytes,
        BodySlice::Upload(range) => panic!("{range:?} is not in memory"),
    }
}

fn parse(body: &Value) -> Result<Received, String> {
    let parsed = ChatCompletions.read(&ClientHead::silent(), body.to_string().into());
    parsed.map_err(|fault| fault.code().unwrap_or_default().to_owned())
}

/// What the gateway itself does with a request.
fn own(request: &ModelRequest) -> String {
    let needs = &request.needs;
    let chooses = (needs.free_models_only, needs.no_reasoning);
    let heals = matches!(&request.payload, Payload::Chat(chat) if chat.heals);
    let repeats = request.image_count() > Some(1);
    format!(
        "{:?} {:?} {} {chooses:?} {heals} {repeats}",
        request.strategy, request.session, request.model
    )
}

fn fate(field: &Field, kind: WireKind, passes: Passes) -> Fate {
    let with = match parse(&field.with) {
        // The prompt itself is not of the wires' concern.
        Ok(Received::Managed(_) | Received::Stateful(_)) => return Fate::Acts,
        Ok(Received::Complete(request)) => request,
        Err(code) => panic!("{}: {code}", field.name),
    };
    let without = ChatCompletions
        .parse(field.without.to_string().into())
        .unwrap();
    let Some(plain) = sent(kind, passes, &without) else {
        return Fate::Refused;
    };
    let Some(said) = sent(kind, passes, &with) else {
        return Fate::Refused;
    };
    if said == plain {
        return match own(&with) == own(&without) {
            true => Fate::Stripped,
            false => Fate::Acts,
        };
    }
    let pointer = field.pointer;
    let is_same = field.with.pointer(pointer).is_some()
        && said.1.pointer(pointer) == field.with.pointer(pointer);
    match is_same {
        true => Fate::Forwarded,
        false => Fate::Acts,
    }
}

/// What usually becomes of a field, and what does where the table of a mapping passes it. Only the wires of OpenAI's family
/// have words for what few of its providers know.
fn cell(field: &Field, kind: WireKind) -> String {
    let usual = fate(field, kind, Passes::Nothing);
    let has_more = matches!(kind, WireKind::Compatible | WireKind::Responses);
    let passed = match has_more && matches!(usual, Fate::Stripped | Fate::Refused) {
        true => fate(field, kind, Passes::All),
        false => usual,
    };
    match passed {
        Fate::Acts | Fate::Forwarded if passed != usual => {
            format!("{}; {} if passed", usual.as_str(), passed.as_str())
        }
        _ => usual.as_str().to_owned(),
    }
}

fn page() -> String {
    let mut page = String::from(
        "# Fields of chat requests\n\n\
         What becomes of each field of [the contract](model-gateway.md) on each wire. A test makes this page: it sends a request\n\
         with the field and one without it through the checks, the plan and the wire, and compares what a provider would get.\n\
         The mapping can do all that its wire can; a mapping of the catalogue or a provider's `parameters` can do less.\n\n\
         - acts: the provider is told it in its own words, or the gateway itself follows it.\n\
         - forwarded: it goes out as it came.\n\
         - stripped: it is left out, and the answer is of the same kind without it.\n\
         - refused: providers of this wire are left out for the request; if there is no other, the answer is 400.\n\
         - if passed: where the mapping's `parameters` pass it, as the shipped catalogue does for models that know it.\n",
    );
    for (title, fields) in SECTIONS {
        write!(page, "\n## {title}\n\n| field |").unwrap();
        for (name, _) in WIRES {
            write!(page, " {name} |").unwrap();
        }
        page.push_str("\n|---|");
        page.push_str(&"---|".repeat(WIRES.len()));
        page.push('\n');
        for field in fields() {
            write!(page, "| `{}` |", field.name).unwrap();
            for (_, kind) in WIRES {
                write!(page, " {} |", cell(&field, kind)).unwrap();
            }
            page.push('\n');
        }
    }
    page
}

/// Contract: model-gateway 2.1 temperature
/// Contract: model-gateway 2.1 response_format
/// Contract: model-gateway 2.1 prompt_cache_retention
/// Contract: model-gateway 2.1 parallel_tool_calls
/// Contract: model-gateway 2.1 onboarding
/// Contract: model-gateway 2.1 image_config
/// Contract: model-gateway 2.2 name
/// Contract: model-gateway 2.2 phase
/// Contract: model-gateway 2.2 vendor_native_blocks
/// Contract: model-gateway 2.2 tool_result_cache_control
/// Contract: model-gateway 2.3 text
/// Contract: model-gateway 2.4 function
/// Contract: model-gateway 9 5
#[test]
fn the_page_of_fields_says_what_the_wires_do() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/chat-fields.md");
    let made = page();
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let shown = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == shown,
        "docs/chat-fields.md is not what the wires do; it would be:\n{made}"
    );
}

/// Returns a value without the members that are null.
fn stripped(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, stripped(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(stripped).collect(),
        other => other,
    }
}

/// Fields that have to be there, where they are.
const REQUIRED: [&str; 2] = ["messages[].content", "messages"];

/// Source: model-gateway 2.1, 2.2, 2.3, 2.4: null is absent on every wire.
#[test]
fn a_provider_gets_of_a_field_that_is_null_what_it_gets_without_it() {
    let fields = SECTIONS.iter().flat_map(|(_, fields)| fields());
    for field in fields.filter(|field| !REQUIRED.contains(&field.name)) {
        let (parent, key) = field.pointer.rsplit_once('/').unwrap();
        let mut with = field.without.clone();
        let Some(Value::Object(parent)) = with.pointer_mut(parent) else {
            // An item of a list is no field.
            continue;
        };
        if parent.contains_key(key) {
            continue;
        }
        parent.insert(key.to_owned(), Value::Null);
        let read = |body: &Value| ChatCompletions.parse(body.to_string().into());
        let (with, without) = (read(&with), read(&field.without));
        let with = with.unwrap_or_else(|fault| panic!("{}: {fault}", field.name));
        for (name, kind) in WIRES {
            let of = |request| {
                let sent = sent(kind, Passes::All, request);
                sent.map(|(path, body)| (path, stripped(body)))
            };
            let without = without.as_ref().unwrap();
            assert_eq!(of(&with), of(without), "{}: {name}", field.name);
        }
    }
}

#[test]
fn every_parameter_of_the_table_has_a_row() {
    let names: Vec<String> = SECTIONS
        .iter()
        .flat_map(|(_, fields)| fields())
        .map(|field| field.name.to_owned())
        .collect();
    for parameter in Parameter::ALL {
        let name = match parameter {
            Parameter::ToolSearch => "tools[]: tool_search",
            Parameter::ToolResultMedia => "messages[].content[].image_url",
            // No field of a request: the gateway asks for it.
            Parameter::ReasoningSummary => continue,
            Parameter::Dimensions | Parameter::TokenInputs => continue,
            // No field of chats.
            other if other.is_of_images() || other.is_of_texts() => continue,
            other => other.as_str(),
        };
        assert!(names.iter().any(|known| known.starts_with(name)), "{name}");
    }
}
