//! A request in the words of this wire. Source: docs/facts/wire-formats.md 4.1, docs/facts/model-gateway.md 10.4, 10.5.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::contents::{ContentsConversation, GoogleContent};
use super::drawing;
use super::parts::native;
use super::schema::SchemaBudget;
use super::splice;
use crate::fault::Fault;
use crate::models::chat::conversation::{AnswerForm, Conversation, Native};
use crate::models::chat::tools::ToolChoice;
use crate::models::dialects::Dialect;
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, ModelRequest, Payload};
use crate::models::routing::parameters::{Parameters, Treatment};
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::search::SearchDialect;
use crate::models::routing::thinking::{ThinkingControl, ThinkingDefaults};
use crate::models::routing::{Outside, WrittenBounds, WrittenParameters};
use crate::models::wires::codec::BodySlice;
use crate::models::wires::history::fold_instructions;
use crate::models::wires::opaque;
use crate::models::wires::wire::{Target, write_body};

/// Stop sequences of one request.
const STOPS: usize = 5;

/// Returns what this wire does with parameters and how it tells a model to think.
///
/// Source: docs/facts/wire-formats.md 4.1, docs/facts/model-gateway.md 10.4.
pub(super) fn defaults() -> ProviderDefaults {
    let dropped = [
        Parameter::User,
        Parameter::ParallelToolCalls,
        // The search has no options.
        Parameter::SearchLocation,
        Parameter::SearchContextSize,
        Parameter::SearchMaxUses,
    ];
    let refused = [Parameter::AllowedDomains, Parameter::BlockedDomains];
    let stops = WrittenBounds {
        min: None,
        max: Some(STOPS as f64),
        outside: Some(Outside::Refuse),
    };
    let more = WrittenParameters {
        pass: vec![
            Parameter::ImageAspectRatio,
            Parameter::ImageSize,
            Parameter::ImageSeed,
        ],
        // Only the newest models search beside functions.
        exclusive: vec![vec![Parameter::Tools, Parameter::WebSearch]],
        bounds: BTreeMap::from([(Parameter::Stop, stops)]),
        ..WrittenParameters::default()
    };
    ProviderDefaults {
        parameters: Parameters::of_another_convention()
            .without(&dropped, &refused)
            .with(&more),
        thinking: ThinkingDefaults {
            control: ThinkingControl::Budget,
            says_none: false,
            can_switch_off: false,
            ..ThinkingDefaults::LEVELS
        },
        search: SearchDialect::None,
        others: Vec::new(),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<GoogleContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GoogleContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    generation_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'static str>,
    safety_settings: Value,
}

pub(super) fn encode(request: &ModelRequest, target: &Target<'_>) -> Result<Vec<BodySlice>, Fault> {
    if let (Some(Dialect::Contents), Payload::Chat(facts)) =
        (request.front.row().dialect, &request.payload)
    {
        return splice::encode(request, facts, target);
    }
    let mut chat = request.front.conversation(request)?;
    fold_instructions(&mut chat);
    let knows = |block: &Native<'_>| native(block).is_some();
    opaque::keep_own(&mut chat, Dialect::Contents, target, knows);
    let conversation = ContentsConversation::read(&chat, target)?;
    let system = conversation.system;
    let mut schemas = SchemaBudget::new();
    let body = Body {
        contents: conversation.contents,
        system_instruction: (!system.is_empty()).then(|| GoogleContent::instruction(system)),
        tools: tools(&chat, request, &mut schemas)?,
        tool_config: tool_config(&chat, request, target),
        generation_config: generation(request, &chat, target, &mut schemas)?,
        service_tier: target.body.tier_word(request.needs.service_tier),
        safety_settings: safety(),
    };
    write_body(&body, request.source.body.len())
}

/// Returns whether the mapping thinks by levels. Such models refuse calls without a signature.
pub(super) fn has_levels(target: &Target<'_>) -> bool {
    target.thinking.control == ThinkingControl::Levels
}

fn tools(
    chat: &Conversation<'_>,
    request: &ModelRequest,
    schemas: &mut SchemaBudget,
) -> Result<Option<Value>, Fault> {
    let declarations = chat.functions().map(|function| {
        let mut declaration = Map::new();
        declaration.insert("name".into(), (&*function.name).into());
        if let Some(description) = function.description.as_deref() {
            declaration.insert("description".into(), description.into());
        }
        if let Some(raw) = function.parameters.as_deref() {
            let cleaned = schemas.clean(raw, || chat.path(function.at, None))?;
            let has_some = |cleaned: &Value| cleaned.as_object().is_some_and(|it| !it.is_empty());
            if let Some(cleaned) = cleaned.filter(has_some) {
                declaration.insert("parameters".into(), cleaned);
            }
        }
        Ok(Value::Object(declaration))
    });
    let declarations = declarations.collect::<Result<Vec<Value>, Fault>>()?;
    let mut tools = Vec::new();
    if !declarations.is_empty() {
        tools.push(json!({ "functionDeclarations": declarations }));
    }
    if request.needs.web_search.is_some() {
        tools.push(json!({ "googleSearch": {} }));
    }
    Ok((!tools.is_empty()).then(|| tools.into()))
}

fn tool_config(
    chat: &Conversation<'_>,
    request: &ModelRequest,
    target: &Target<'_>,
) -> Option<Value> {
    chat.functions().next()?;
    let mut config = Map::new();
    if let Some(calling) = function_calling(chat, target) {
        config.insert("functionCallingConfig".to_owned(), calling);
    }
    // Without it the models that search beside functions refuse both together.
    if request.needs.web_search.is_some() {
        config.insert("includeServerSideToolInvocations".to_owned(), true.into());
    }
    (!config.is_empty()).then(|| Value::Object(config))
}

fn function_calling(chat: &Conversation<'_>, target: &Target<'_>) -> Option<Value> {
    let mut strict = chat.functions().filter(|function| {
        function.strict == Some(true) && target.parameters.supports(Parameter::StrictTools)
    });
    // Calls fit their schemas in the modes that force them, and in this one.
    let unforced = strict.next().map(|_| json!({ "mode": "VALIDATED" }));
    match &chat.choice {
        Some(ToolChoice::None) => Some(json!({ "mode": "NONE" })),
        Some(_) if target.lower_tool_choice => unforced,
        Some(ToolChoice::Required) => Some(json!({ "mode": "ANY" })),
        Some(ToolChoice::Function(name)) => {
            Some(json!({ "mode": "ANY", "allowedFunctionNames": [&**name] }))
        }
        Some(ToolChoice::Auto | ToolChoice::WebSearch) | None => unforced,
    }
}

fn generation(
    request: &ModelRequest,
    chat: &Conversation<'_>,
    target: &Target<'_>,
    schemas: &mut SchemaBudget,
) -> Result<Map<String, Value>, Fault> {
    let mut config = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            config.insert(key.to_owned(), value);
        }
    };
    let number = |parameter| {
        let raw = chat.option(parameter)?;
        match target.treat(parameter, request) {
            Treatment::Pass => serde_json::from_str::<Value>(raw.get()).ok(),
            Treatment::Number(number) => Some(number.into()),
            Treatment::Drop => None,
        }
    };
    let most = target.max_tokens(request);
    let most = most.and_then(|most| target.said_limit(most, request));
    put("maxOutputTokens", most);
    let numbers = [
        ("temperature", Parameter::Temperature),
        ("topP", Parameter::TopP),
        ("seed", Parameter::Seed),
        ("frequencyPenalty", Parameter::FrequencyPenalty),
        ("presencePenalty", Parameter::PresencePenalty),
    ];
    for (key, parameter) in numbers {
        put(key, number(parameter));
    }
    put(
        "candidateCount",
        (request.needs.choices > 1).then(|| request.needs.choices.into()),
    );
    let takes_stop = target.treat(Parameter::Stop, request) != Treatment::Drop;
    if takes_stop && !chat.stop.is_empty() {
        let stop = chat.stop.iter().take(STOPS).map(|text| &**text);
        put("stopSequences", Some(stop.collect::<Vec<_>>().into()));
    }
    let (media_type, schema) = answer_form(chat, schemas)?;
    put("responseMimeType", media_type);
    put("responseSchema", schema);
    put("thinkingConfig", thinking(request, target));
    if target.draws(request) {
        config.extend(drawing::members(request, chat, target)?);
    } else if target.image_output == Some(true) {
        // Left to itself, the model draws.
        config.insert("responseModalities".to_owned(), json!(["TEXT"]));
    }
    Ok(config)
}

/// Returns the media type of the answer and its schema.
fn answer_form(
    chat: &Conversation<'_>,
    schemas: &mut SchemaBudget,
) -> Result<(Option<Value>, Option<Value>), Fault> {
    let schema = match &chat.form {
        AnswerForm::Text => return Ok((None, None)),
        AnswerForm::Json => None,
        AnswerForm::Schema(form) => {
            schemas.clean(form.schema.get(), || chat.path(form.at, None))?
        }
    };
    Ok((Some("application/json".into()), schema))
}

/// Source: docs/facts/model-gateway.md 10.4, docs/facts/wire-formats.md 4.1. Levels and budgets exclude each other.
pub(super) fn thinking(request: &ModelRequest, target: &Target<'_>) -> Option<Value> {
    let (needs, thinking) = (&request.needs, target.thinking);
    if thinking.reasons == Some(false) {
        return None;
    }
    if let Some(budget) = thinking.asked_budget(needs) {
        return Some(json!({ "thinkingBudget": budget, "includeThoughts": true }));
    }
    let effort = target.thinking.effort(needs)?;
    match thinking.control {
        ThinkingControl::Levels | ThinkingControl::Adaptive => {
            // No model of Google's has the level `none`.
            let word = thinking.asked_word(needs).unwrap_or(effort);
            let word = if word == Effort::None {
                Effort::Minimal
            } else {
                word
            };
            let level = word.as_str().to_ascii_uppercase();
            Some(json!({ "thinkingLevel": level, "includeThoughts": effort != Effort::None }))
        }
        _ if effort == Effort::None => {
            Some(json!({ "thinkingBudget": 0, "includeThoughts": false }))
        }
        _ => None,
    }
}

/// The caller's provider-independent expectation is the model's answer; the model's own filters stay.
fn safety() -> Value {
    const CATEGORIES: [&str; 4] = [
        "HARASSMENT",
        "HATE_SPEECH",
        "SEXUALLY_EXPLICIT",
        "DANGEROUS_CONTENT",
    ];
    let settings = CATEGORIES.iter().map(
        |category| json!({ "category": format!("HARM_CATEGORY_{category}"), "threshold": "OFF" }),
    );
    settings.collect::<Vec<_>>().into()
}
