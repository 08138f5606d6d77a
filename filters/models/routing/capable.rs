//! Whether a mapping can serve a request. Source: docs/facts/model-gateway.md 3.2, docs/model-gateway.md 2.1.

use std::borrow::Cow;

use super::catalog::{Capability, Mapping};
use super::input_lengths;
use super::search::SearchDialect;
use super::wire_limits::{MediaLimits, NO_AUDIO, WireLimits};
use crate::fault::Fault;
use crate::fault_code::FaultCode;
use crate::models::dialects::NamedMember;
use crate::models::parameter::Parameter;
use crate::models::request::{ModelRequest, Needs, Payload};

/// The reason why a mapping cannot serve a request, and the field that needs it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lack {
    pub param: Cow<'static, str>,
    /// Why it cannot be served.
    pub reason: Cow<'static, str>,
    code: Option<FaultCode>,
    is_of_auto: bool,
}

impl Lack {
    /// Makes a reason.
    pub(super) fn new(
        param: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            param: param.into(),
            reason: reason.into(),
            code: None,
            is_of_auto: false,
        }
    }

    /// Returns the reason behind the fault of a wire that cannot express a request.
    pub fn of_fault(fault: &Fault) -> Self {
        let param = fault.param.clone().unwrap_or_default();
        Self::new(param, fault.message.clone())
    }

    /// Returns the reason why `auto` does not choose a candidate that could serve the request.
    pub(super) fn of_auto(reason: &'static str) -> Self {
        Self {
            is_of_auto: true,
            ..Self::new("model", reason)
        }
    }

    /// Returns whether only `auto` leaves the candidate out.
    pub(super) fn is_of_auto(&self) -> bool {
        self.is_of_auto
    }

    /// Returns the 400 when no provider can serve the request; `others` are the reasons per provider.
    pub fn to_fault(&self, others: &str) -> Fault {
        let param = &self.param;
        let message = format!("no provider of this model can serve `{param}` as asked: {others}");
        let fault = Fault::invalid(&**param, message);
        match self.code {
            Some(code) => fault.with_code(code),
            None => fault,
        }
    }
}

/// Checks one mapping against what the request needs; without `wire` the operation is not offered there.
///
/// A forced tool call is not checked here, because [`super::plan`] lowers it where no provider honours it.
pub fn check(
    request: &ModelRequest,
    mapping: &Mapping,
    wire: Option<&WireLimits>,
) -> Result<(), Lack> {
    let Some(wire) = wire else {
        let operation = request.payload.operation().row().name;
        return Err(Lack::new("model", format!("does not offer {operation}")));
    };
    check_dialect(request, wire)?;
    check_capabilities(request, mapping)?;
    check_schema(request, mapping, wire)?;
    check_image_output(request, mapping, wire)?;
    check_messages(request, wire)?;
    check_native(request, wire)?;
    check_inputs(request, wire)?;
    check_choices(request, mapping, wire)?;
    check_reasoning(request, mapping, wire)?;
    check_web_search(request, mapping, wire)?;
    check_service_tier(request, mapping, wire)?;
    check_parameters(request, mapping)?;
    check_video(request, mapping)?;
    check_sizes(request, mapping)?;
    input_lengths::check(request, mapping)
}

/// Checks what a mapping need not have to be called: where no other has it, the provider judges.
///
/// Source: docs/model-gateway.md 2.1, `max_tokens` and rules of `reasoning_effort` 3.
pub fn check_wishes(request: &ModelRequest, mapping: &Mapping) -> Result<(), Lack> {
    let needs = &request.needs;
    if needs.adapts {
        return Ok(());
    }
    let listed = mapping.thinking.check_listed(needs);
    listed.map_err(|reason| Lack::new(request.name_of(NamedMember::Effort), reason))?;
    let asked = needs.max_tokens.filter(|_| needs.odd_max_tokens.is_none());
    match (asked, mapping.max_output) {
        (Some(asked), Some(most)) if asked > most => {
            let reason = format!("answers at most {most} tokens");
            Err(Lack::new(request.name_of(Parameter::MaxTokens), reason))
        }
        _ => Ok(()),
    }
}

/// Returns whether the mapping honours a forced tool call.
pub fn honours_forced_tools(mapping: &Mapping, wire: &WireLimits) -> bool {
    wire.forced_tools && mapping.can(Capability::ForcedTools)
}

/// Returns why no provider may get the request if `model` names none: the id of a file means something to the provider
/// alone that gave it, and nothing in the id says which that is.
pub fn find_foreign_file(request: &ModelRequest) -> Option<Lack> {
    let reason = "gets a `file_id` only if `model` names the provider, as in `provider/model`";
    let has_ids = request.needs.media.file_ids;
    has_ids.then(|| Lack::new(request.name_of(NamedMember::Turns), reason))
}

/// Checks whether the wire can say requests of this API.
fn check_dialect(request: &ModelRequest, wire: &WireLimits) -> Result<(), Lack> {
    let is_foreign = wire
        .dialect
        .is_some_and(|dialect| !request.is_said_in(dialect));
    if wire.translates || !is_foreign {
        return Ok(());
    }
    let reason = "completes texts, and answers no chats";
    Err(Lack::new(request.name_of(NamedMember::Model), reason))
}

/// Checks the capabilities that the catalogue lists.
fn check_capabilities(request: &ModelRequest, mapping: &Mapping) -> Result<(), Lack> {
    for (is_needed, capability, member, what) in list_capabilities(request) {
        if is_needed && !mapping.can(capability) {
            return Err(Lack::new(
                request.name_of(member),
                format!("takes no {what}"),
            ));
        }
    }
    Ok(())
}

/// Returns whether the request needs each capability, the member that asks for it, and what a mapping without it does not take.
fn list_capabilities(
    request: &ModelRequest,
) -> [(bool, Capability, NamedMember, &'static str); 11] {
    let needs = &request.needs;
    let has_audio = !needs.audio.is_empty();
    let (stream, media) = (NamedMember::Stream, NamedMember::Media);
    let tools = NamedMember::from(Parameter::Tools);
    let form = NamedMember::from(Parameter::ResponseFormat);
    // Speech goes out as it comes, as events too, whatever the provider does.
    let streams = request.is_stream && !matches!(request.payload, Payload::Speech(_));
    [
        (streams, Capability::Streaming, stream, "streaming"),
        (needs.vision, Capability::Vision, media, "images"),
        (has_audio, Capability::Audio, media, "audio"),
        (needs.documents, Capability::Documents, media, "files"),
        (needs.tools, Capability::Tools, tools, "tools"),
        (
            needs.json_object,
            Capability::JsonObject,
            form,
            "`json_object`",
        ),
        (
            needs.json_schema,
            Capability::JsonSchema,
            form,
            "`json_schema`",
        ),
        (
            needs.verbosity,
            Capability::Verbosity,
            Parameter::Verbosity.into(),
            "`verbosity`",
        ),
        (
            needs.dimensions,
            Capability::Dimensions,
            Parameter::Dimensions.into(),
            "`dimensions`",
        ),
        (
            needs.timestamps,
            Capability::Timestamps,
            form,
            "format with the times of segments",
        ),
        (
            needs.diarization,
            Capability::Diarization,
            form,
            "`diarized_json`",
        ),
    ]
}

/// Checks whether the schema of an answer can be said.
fn check_schema(request: &ModelRequest, mapping: &Mapping, wire: &WireLimits) -> Result<(), Lack> {
    let needs = &request.needs;
    let is_own = wire.dialect.is_some() && wire.dialect == request.front.row().dialect;
    if !needs.json_schema || wire.json_schema || is_own && wire.leaves_out_own_schemas {
        return Ok(());
    }
    let calls = wire.schema_calls && wire.forced_tools;
    let has_tools = needs.tools || needs.web_search.is_some();
    if calls && !has_tools && !mapping.thinking.is_on(needs) {
        return Ok(());
    }
    let reason = match calls {
        true => "takes no `json_schema` beside tools, or while it reasons",
        false => "takes no `json_schema`",
    };
    Err(Lack::new(
        request.name_of(Parameter::ResponseFormat),
        reason,
    ))
}

/// Checks whether the mapping draws images, where the request asks for them.
fn check_image_output(
    request: &ModelRequest,
    mapping: &Mapping,
    wire: &WireLimits,
) -> Result<(), Lack> {
    let is_wanted = request.needs.image_output == Some(true);
    if !is_wanted || wire.image_output && mapping.can(Capability::ImageOutput) {
        return Ok(());
    }
    Err(Lack::new(
        request.name_of(NamedMember::ImageOutput),
        "draws no images",
    ))
}

/// Checks whether the wire can say the messages, as far as that is known without reading them again.
fn check_messages(request: &ModelRequest, wire: &WireLimits) -> Result<(), Lack> {
    let needs = &request.needs;
    if let Some(reason) = find_media_lack(needs, &wire.media) {
        return Err(Lack::new(request.name_of(NamedMember::Media), reason));
    }
    if needs.assistant_first && !wire.assistant_first {
        return Err(Lack::new(
            request.name_of(NamedMember::Turns),
            "wants a user's message first",
        ));
    }
    if needs.blank_stop && !wire.blank_stops {
        return Err(Lack::new(
            request.name_of(Parameter::Stop),
            "takes no blank sequences",
        ));
    }
    Ok(())
}

/// Checks whether the provider knows what only hosts of one dialect know.
fn check_native(request: &ModelRequest, wire: &WireLimits) -> Result<(), Lack> {
    let Some(native) = &request.needs.native else {
        return Ok(());
    };
    if wire.dialect == Some(native.dialect) && (wire.is_vendor || !native.is_vendor_only) {
        return Ok(());
    }
    Err(Lack {
        code: native.code,
        ..Lack::new(native.member, format!("knows no {}", native.what))
    })
}

/// Returns why the wire cannot say the images, audio or files of a request.
fn find_media_lack(needs: &Needs, limits: &MediaLimits) -> Option<Cow<'static, str>> {
    let needed = &needs.media;
    let unknown = |held: &[Box<str>], known: &[&str]| {
        let takes = |known: &str, kind: &str| match known.strip_suffix('*') {
            Some(family) => kind.starts_with(family),
            None => known == kind,
        };
        let is_known = |kind: &str| known.iter().any(|known| takes(known, kind));
        let mut held = held.iter();
        let unknown = held.find(|kind| !known.is_empty() && !is_known(kind))?;
        let shown: String = unknown.chars().take(40).collect();
        Some((shown, known.join(", ")))
    };
    let (https, http) = (
        limits.remote_images || limits.fetches,
        limits.http_images || limits.fetches,
    );
    if needed.remote_images && !https {
        return Some("takes images as base64 data URLs only".into());
    }
    if needed.http_images && !http || needed.other_images && !limits.other_images {
        return Some("takes images as https addresses or base64 data URLs only".into());
    }
    if let Some((kind, known)) = unknown(&needed.images, limits.images) {
        return Some(format!("takes images of {known}, not `{kind}`").into());
    }
    if let Some((kind, known)) = unknown(&needs.audio, limits.audio) {
        return Some(match limits.audio {
            NO_AUDIO => "takes no audio".into(),
            _ => format!("takes audio of {known}, not `{kind}`").into(),
        });
    }
    if let Some((kind, known)) = unknown(&needed.files, limits.files) {
        return Some(format!("takes files of {known}, not `{kind}`").into());
    }
    let is_lost = needed.file_ids && !limits.file_ids;
    is_lost.then_some("takes files as `file_data` with a base64 data URL only".into())
}

fn check_inputs(request: &ModelRequest, wire: &WireLimits) -> Result<(), Lack> {
    if request.needs.token_inputs && !wire.token_inputs {
        return Err(Lack::new(
            request.name_of(Parameter::TokenInputs),
            "takes texts, not tokens",
        ));
    }
    let formats = wire.speech_formats;
    let asked = request.needs.speech_format;
    let unknown = asked.filter(|asked| !formats.is_empty() && !formats.contains(asked));
    if let Some(unknown) = unknown {
        let words: Vec<&str> = formats.iter().map(|format| format.as_str()).collect();
        let reason = format!("speaks as {}, not {}", words.join(" or "), unknown.as_str());
        return Err(Lack::new(
            request.name_of(Parameter::ResponseFormat),
            reason,
        ));
    }
    Ok(())
}

fn check_choices(request: &ModelRequest, mapping: &Mapping, wire: &WireLimits) -> Result<(), Lack> {
    if request.needs.choices <= 1 {
        return Ok(());
    }
    if !mapping.can(Capability::N) || wire.choices <= 1 {
        return Err(Lack::new(
            request.name_of(NamedMember::Choices),
            "answers one choice only",
        ));
    }
    if request.needs.choices > wire.choices {
        return Err(Lack::new(
            request.name_of(NamedMember::Choices),
            format!("answers at most {} choices", wire.choices),
        ));
    }
    if request.is_stream && !wire.streams_choices {
        return Err(Lack::new(
            request.name_of(NamedMember::Choices),
            "does not stream several choices",
        ));
    }
    Ok(())
}

/// Checks whether the mapping searches the web, and whether a search can be demanded of it.
fn check_web_search(
    request: &ModelRequest,
    mapping: &Mapping,
    wire: &WireLimits,
) -> Result<(), Lack> {
    let Some(search) = request.needs.web_search else {
        return Ok(());
    };
    let asking = match search.is_tool {
        true => Parameter::Tools,
        false => Parameter::WebSearch,
    };
    let (can_ask, can_demand) = match mapping.search.dialect {
        SearchDialect::None => {
            let can_demand = wire.demanded_search && honours_forced_tools(mapping, wire);
            (wire.web_search, can_demand)
        }
        dialect => (true, dialect.can_demand()),
    };
    if !mapping.searches_web() || !can_ask {
        return Err(Lack::new(
            request.name_of(asking),
            "does not search the web",
        ));
    }
    if search.is_demanded && !can_demand {
        let reason = "searches the web only when it sees fit";
        return Err(Lack::new(request.name_of(Parameter::ToolChoice), reason));
    }
    Ok(())
}

fn check_reasoning(
    request: &ModelRequest,
    mapping: &Mapping,
    wire: &WireLimits,
) -> Result<(), Lack> {
    let needs = &request.needs;
    if let Some(mode) = &needs.reasoning_mode
        && !(wire.reasoning_modes && mapping.reasoning_modes.contains(mode))
    {
        return Err(Lack::new(
            request.name_of(NamedMember::ReasoningMode),
            format!("takes no mode `{mode}`"),
        ));
    }
    if needs.adapts {
        return Ok(());
    }
    let checked = mapping.thinking.check(needs);
    checked.map_err(|(member, reason)| Lack::new(request.name_of(member), reason))
}

/// Checks the parameters that the request asks for.
fn check_parameters(request: &ModelRequest, mapping: &Mapping) -> Result<(), Lack> {
    let reasons = mapping.thinking.is_on(&request.needs);
    let checked = mapping.parameters.check(&request.asked, reasons);
    let name_of = |parameter: Parameter| request.name_of(parameter);
    checked.map_err(|(parameter, reason)| Lack::new(name_of(parameter), reason))?;
    // An image drawn otherwise is another image. Only a filter may be as strict as it is, and a style is of retired models.
    // Source: docs/model-gateway.md 2.7.
    let is_ignored = |parameter: &Parameter| {
        let may_be = matches!(
            parameter,
            Parameter::ImageModeration | Parameter::ImageStyle
        );
        !may_be && mapping.parameters.drops(*parameter)
    };
    let draws = request.payload.operation().draws();
    if let Some(parameter) = request.asked.set.iter().find(is_ignored).filter(|_| draws) {
        let field = name_of(parameter);
        return Err(Lack::new(field, format!("takes no `{field}`")));
    }
    Ok(())
}

fn check_service_tier(
    request: &ModelRequest,
    mapping: &Mapping,
    wire: &WireLimits,
) -> Result<(), Lack> {
    let Some(word) = request.needs.service_tier.wire_word() else {
        return Ok(());
    };
    let is_listed = mapping.service_tiers.iter().any(|known| &**known == word);
    if wire.service_tiers && is_listed {
        return Ok(());
    }
    let mut lack = Lack::new(
        request.name_of(NamedMember::ServiceTier),
        format!("has no tier `{word}`"),
    );
    lack.code = Some(FaultCode::UnsupportedServiceTier);
    Err(lack)
}

/// Checks whether the mapping makes such a video.
fn check_video(request: &ModelRequest, mapping: &Mapping) -> Result<(), Lack> {
    let Some(asked) = request.payload.video() else {
        return Ok(());
    };
    let checked = mapping.video.check(asked);
    checked.map_err(|(field, reason)| Lack::new(field, reason))
}

fn check_sizes(request: &ModelRequest, mapping: &Mapping) -> Result<(), Lack> {
    match mapping.context_size {
        Some(size) if request.needs.context_tokens > size => Err(Lack::new(
            request.name_of(NamedMember::Turns),
            format!("has a context of {size} tokens"),
        )),
        _ => Ok(()),
    }
}
