//! Whether a mapping can serve a request. Source: docs/facts/model-gateway.md 3.2, docs/model-gateway.md 2.1.

use super::catalog::{Capability, Mapping};
use crate::fault::Fault;
use crate::models::request::{Effort, ModelRequest, ServiceTier};

/// The limits of a wire, whatever the catalogue says.
#[derive(Clone, Copy, Debug)]
pub struct WireLimits {
    /// The most choices of one answer.
    pub choices: u32,
    /// Whether several choices may be streamed.
    pub streams_choices: bool,
    /// Whether `json_schema` is understood.
    pub json_schema: bool,
    /// Whether a forced call is honoured.
    pub forced_tools: bool,
    /// Whether an exact budget of reasoning can be said.
    pub reasoning_budget: bool,
    /// Whether it can be said which turns' reasoning the model sees.
    pub reasoning_context: bool,
    /// Members of a request that change the answer and cannot be said.
    pub unsayable: &'static [&'static str],
    /// The most inputs of one request.
    pub inputs: u64,
    /// Whether inputs may be tokens.
    pub token_inputs: bool,
}

impl WireLimits {
    /// The limits of a wire that has none.
    pub const WIDEST: Self = Self {
        choices: 128,
        streams_choices: true,
        json_schema: true,
        forced_tools: true,
        reasoning_budget: true,
        reasoning_context: true,
        unsayable: &[],
        inputs: u64::MAX,
        token_inputs: true,
    };
}

/// The reason why a mapping cannot serve a request, and the field that needs it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lack {
    /// The field.
    pub param: &'static str,
    /// Why it cannot be served.
    pub reason: String,
    code: Option<&'static str>,
}

impl Lack {
    fn new(param: &'static str, reason: impl Into<String>) -> Self {
        Self {
            param,
            reason: reason.into(),
            code: None,
        }
    }

    /// Returns the 400 when no provider can serve the request; `others` are the reasons per provider.
    pub fn into_fault(self, others: &str) -> Fault {
        let message = format!("no provider of this model can serve the request: {others}");
        let fault = Fault::invalid(self.param, message);
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
        let operation = request.payload.operation().as_str();
        return Err(Lack::new("model", format!("does not offer {operation}")));
    };
    check_capabilities(request, mapping)?;
    check_members(request, wire)?;
    if request.needs.json_schema && !wire.json_schema {
        return Err(Lack::new("response_format", "takes no `json_schema`"));
    }
    check_inputs(request, wire)?;
    check_choices(request, mapping, wire)?;
    check_reasoning(request, mapping, wire)?;
    check_service_tier(request, mapping)?;
    check_sizes(request, mapping)
}

/// Returns whether the mapping honours a forced tool call.
pub fn honours_forced_tools(mapping: &Mapping, wire: &WireLimits) -> bool {
    wire.forced_tools && mapping.can(Capability::ForcedTools)
}

/// Checks the capabilities that the catalogue lists.
fn check_capabilities(request: &ModelRequest, mapping: &Mapping) -> Result<(), Lack> {
    let needs = &request.needs;
    let has_audio = !needs.audio.is_empty();
    let wanted = [
        (
            request.is_stream,
            Capability::Streaming,
            "stream",
            "streaming",
        ),
        (needs.vision, Capability::Vision, "messages", "images"),
        (has_audio, Capability::Audio, "messages", "audio"),
        (needs.documents, Capability::Documents, "messages", "files"),
        (needs.tools, Capability::Tools, "tools", "tools"),
        (
            needs.json_object,
            Capability::JsonObject,
            "response_format",
            "`json_object`",
        ),
        (
            needs.json_schema,
            Capability::JsonSchema,
            "response_format",
            "`json_schema`",
        ),
        (
            needs.verbosity,
            Capability::Verbosity,
            "verbosity",
            "`verbosity`",
        ),
        (
            needs.dimensions,
            Capability::Dimensions,
            "dimensions",
            "`dimensions`",
        ),
    ];
    for (is_needed, capability, param, what) in wanted {
        if is_needed && !mapping.can(capability) {
            return Err(Lack::new(param, format!("takes no {what}")));
        }
    }
    Ok(())
}

/// Checks the members that the wire has no word for. Values that ask for nothing pass.
fn check_members(request: &ModelRequest, wire: &WireLimits) -> Result<(), Lack> {
    let asks = |key: &&&str| {
        let member = request.source.member(key);
        member.is_some_and(|member| !is_neutral(request.source.value(member)))
    };
    match wire.unsayable.iter().find(asks) {
        Some(key) => Err(Lack::new(key, format!("takes no `{key}`"))),
        None => Ok(()),
    }
}

fn is_neutral(value: &[u8]) -> bool {
    let text = std::str::from_utf8(value).unwrap_or_default();
    matches!(text, "null" | "false" | "[]" | "{}" | "\"\"") || text.parse() == Ok(0.0)
}

fn check_inputs(request: &ModelRequest, wire: &WireLimits) -> Result<(), Lack> {
    if request.needs.token_inputs && !wire.token_inputs {
        return Err(Lack::new("input", "takes texts, not tokens"));
    }
    if request.needs.inputs > wire.inputs {
        let reason = format!("takes at most {} inputs of a request", wire.inputs);
        return Err(Lack::new("input", reason));
    }
    Ok(())
}

fn check_choices(request: &ModelRequest, mapping: &Mapping, wire: &WireLimits) -> Result<(), Lack> {
    if request.needs.choices <= 1 {
        return Ok(());
    }
    let is_listed = mapping
        .capabilities
        .is_some_and(|known| known.contains(Capability::N));
    if !is_listed || wire.choices <= 1 {
        return Err(Lack::new("n", "answers one choice only"));
    }
    if request.needs.choices > wire.choices {
        return Err(Lack::new(
            "n",
            format!("answers at most {} choices", wire.choices),
        ));
    }
    if request.is_stream && !wire.streams_choices {
        return Err(Lack::new("n", "does not stream several choices"));
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
        && !mapping.reasoning_modes.contains(mode)
    {
        return Err(Lack::new(
            "reasoning.mode",
            format!("takes no mode `{mode}`"),
        ));
    }
    if let Some(context) = &needs.reasoning_context
        && !wire.reasoning_context
    {
        let reason = format!("takes no context `{context}`");
        return Err(Lack::new("reasoning.context", reason));
    }
    if needs.reasoning_tokens.is_some() {
        if !mapping.can(Capability::Reasoning) {
            return Err(Lack::new("reasoning.max_tokens", "does not reason"));
        }
        if !wire.reasoning_budget {
            return Err(Lack::new(
                "reasoning.max_tokens",
                "takes efforts, not budgets",
            ));
        }
    }
    let Some(effort) = needs.effort.filter(|effort| *effort != Effort::None) else {
        return Ok(());
    };
    if !mapping.can(Capability::Reasoning) {
        return Err(Lack::new("reasoning_effort", "does not reason"));
    }
    let efforts = &mapping.reasoning_efforts;
    if !efforts.is_empty() && !efforts.iter().any(|known| **known == *effort.as_str()) {
        let reason = format!(
            "takes the efforts {}, not {}",
            efforts.join(", "),
            effort.as_str()
        );
        return Err(Lack::new("reasoning_effort", reason));
    }
    Ok(())
}

fn check_service_tier(request: &ModelRequest, mapping: &Mapping) -> Result<(), Lack> {
    let Some(word) = request.needs.service_tier.map(ServiceTier::as_str) else {
        return Ok(());
    };
    if mapping.service_tiers.iter().any(|known| &**known == word) {
        return Ok(());
    }
    let mut lack = Lack::new("service_tier", format!("has no tier `{word}`"));
    lack.code = Some("unsupported_service_tier");
    Err(lack)
}

fn check_sizes(request: &ModelRequest, mapping: &Mapping) -> Result<(), Lack> {
    if let (Some(asked), Some(most)) = (request.needs.max_tokens, mapping.max_output)
        && asked > most
    {
        return Err(Lack::new(
            "max_tokens",
            format!("answers at most {most} tokens"),
        ));
    }
    match mapping.context_size {
        Some(size) if request.needs.context_tokens > size => Err(Lack::new(
            request.payload.operation().prompt_member(),
            format!("has a context of {size} tokens"),
        )),
        _ => Ok(()),
    }
}
