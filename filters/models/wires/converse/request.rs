//! A request in the words of this wire. Source: docs/facts/wire-formats.md 5.2, docs/facts/model-gateway.md 10.4, 10.5.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::blocks::{ContentBlock, WireTurn};
use super::breakpoints::Prompt;
use super::messages::ConverseConversation;
use super::names::ToolNames;
use super::tools::{self, ToolConfig};
use crate::fault::Fault;
use crate::models::chat::conversation::{AnswerForm, Conversation};
use crate::models::dialects::state::is_sealed;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::Parameters;
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::search::SearchDialect;
use crate::models::routing::thinking::{ThinkingControl, ThinkingDefaults};
use crate::models::routing::{WrittenBounds, WrittenParameters};
use crate::models::wires::codec::BodySlice;
use crate::models::wires::history::fold_instructions;
use crate::models::wires::wire::{Target, write_body};
use crate::models::wires::{closed_schema, opaque};

/// Returns what this wire does with parameters and how it tells a model to reason.
///
/// Source: docs/facts/wire-formats.md 5.2. Our choice: strict functions are plain ones, unless a mapping says otherwise, because
/// the newest models refuse them here.
pub(super) fn defaults() -> ProviderDefaults {
    let dropped = [
        Parameter::FrequencyPenalty,
        Parameter::PresencePenalty,
        Parameter::Seed,
        Parameter::User,
        Parameter::ParallelToolCalls,
        Parameter::StrictTools,
    ];
    let temperature = WrittenBounds {
        min: Some(0.0),
        max: Some(1.0),
        outside: None,
    };
    let more = WrittenParameters {
        bounds: BTreeMap::from([(Parameter::Temperature, temperature)]),
        ..WrittenParameters::default()
    };
    ProviderDefaults {
        parameters: Parameters::of_another_convention()
            .without(&dropped, &[])
            .with(&more),
        thinking: ThinkingDefaults {
            control: ThinkingControl::Budget,
            budgets: [0, 1024, 1024, 2000, 4000, 16_000, 32_000],
            bounds: (Some(1024), Some(128_000)),
            can_switch_off: true,
            says_none: false,
        },
        search: SearchDialect::None,
        others: Vec::new(),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    messages: Vec<WireTurn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<ContentBlock<'a>>,
    #[serde(skip_serializing_if = "InferenceConfig::is_empty")]
    inference_config: InferenceConfig<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    additional_model_request_fields: Map<String, Value>,
    /// Where the model names the stop sequence that it came to.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    additional_model_response_field_paths: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InferenceConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
}

impl InferenceConfig<'_> {
    fn is_empty(&self) -> bool {
        self.max_tokens.is_none()
            && self.temperature.is_none()
            && self.top_p.is_none()
            && self.stop_sequences.is_empty()
    }
}

/// Where Claude says the stop sequence, in whole replies and in streams. Models without such a member ignore the paths.
const STOP_PATHS: [&str; 2] = ["/stop_sequence", "/delta/stop_sequence"];

pub(super) fn encode(request: &ModelRequest, target: &Target<'_>) -> Result<Vec<BodySlice>, Fault> {
    let mut chat = request.front.conversation(request)?;
    fold_instructions(&mut chat);
    leave_out_bare(&mut chat, target);
    opaque::keep_own(&mut chat, Dialect::Messages, target, |_| false);
    let names = ToolNames::read(&chat);
    let mut points = 0;
    let mut tools = tools::list(&chat, &names, target, &mut points);
    let mut conversation = ConverseConversation::read(&chat, &names, points, target.inlined)?;
    if matches!(chat.form, AnswerForm::Json) {
        let text = "Answer with one JSON object and nothing else.";
        conversation.system.push(ContentBlock::Text(text.into()));
    }
    if tools.forbids_calls {
        let text = "Answer in text. Do not call a tool now.";
        conversation.system.push(ContentBlock::Text(text.into()));
    }
    if let Some(min_tokens) = target.auto_cache.filter(|_| !request.needs.cache_control) {
        let prompt = Prompt {
            tools: tools.config.as_mut(),
            system: &mut conversation.system,
            turns: &mut conversation.turns,
        };
        prompt.mark(min_tokens);
    }
    let has_reasoning = !conversation.lacks_reasoning();
    let stop_sequences: Vec<&str> = stop_sequences(&chat);
    let stop_paths: &[&str] = if stop_sequences.is_empty() {
        &[]
    } else {
        &STOP_PATHS
    };
    let option = |parameter| target.treated(chat.option(parameter)?, parameter, request);
    let tier = request.needs.service_tier.wire_word();
    let most = max_tokens(request, target);
    let body = Body {
        messages: conversation.turns,
        system: conversation.system,
        inference_config: InferenceConfig {
            max_tokens: most.and_then(|most| target.said_limit(most, request)),
            temperature: option(Parameter::Temperature),
            top_p: option(Parameter::TopP),
            stop_sequences,
        },
        tool_config: tools.config,
        output_config: output_config(&chat)?,
        additional_model_request_fields: reasoning(request, target, has_reasoning),
        additional_model_response_field_paths: stop_paths,
        service_tier: tier.map(|tier| json!({ "type": tier })),
    };
    write_body(&body, request.source.body.len())
}

/// Leaves out state without a seal: Claude's other hosts have said it, and the model here may be of another maker.
fn leave_out_bare(chat: &mut Conversation<'_>, target: &Target<'_>) {
    chat.retain(
        |state| {
            let stays = is_sealed(&state.text);
            if !stays {
                target.left_out_state.add();
            }
            stays
        },
        |_| true,
    );
}

/// Returns the stop sequences that models take. Chats with others go elsewhere, and other fronts cut the text themselves.
fn stop_sequences<'c>(chat: &'c Conversation<'_>) -> Vec<&'c str> {
    let stops = chat.stop.iter().map(|text| &**text);
    stops.filter(|text| !text.trim().is_empty()).collect()
}

/// Returns the most tokens of an answer; where there is a budget of reasoning, more than that.
pub(super) fn max_tokens(request: &ModelRequest, target: &Target<'_>) -> Option<u64> {
    let asked = target.max_tokens(request);
    let Some(budget) = target.thinking.asked_budget(&request.needs) else {
        return asked;
    };
    let most = asked.or(target.max_output);
    let most = most.unwrap_or_else(|| 4096.max(budget + 1000));
    Some(if most <= budget { budget + 1000 } else { most })
}

/// Returns what tells the model to reason, in its maker's own words: a budget, a switch and an effort are Claude's, an effort alone
/// is that of models of OpenAI's convention.
fn reasoning(
    request: &ModelRequest,
    target: &Target<'_>,
    has_reasoning: bool,
) -> Map<String, Value> {
    let (needs, thinking) = (&request.needs, target.thinking);
    let mut fields = Map::new();
    if !thinking.is_asked(needs) {
        return fields;
    }
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    if let Some(budget) = thinking.asked_budget(needs) {
        if has_reasoning {
            put(
                "thinking",
                json!({ "type": "enabled", "budget_tokens": budget }),
            );
        }
        return fields;
    }
    let word = thinking.asked_word(needs);
    match thinking.control {
        ThinkingControl::Levels => {
            if let Some(word) = word {
                put(
                    Dialect::Chat.name_of(NamedMember::Effort),
                    word.as_str().into(),
                );
            }
        }
        _ if !thinking.is_on(needs) => {
            put("thinking", json!({ "type": "disabled" }));
        }
        ThinkingControl::Adaptive => {
            put(
                "thinking",
                json!({ "type": "adaptive", "display": "summarized" }),
            );
            // Without an effort nothing of the reasoning comes back.
            if let Some(word) = word {
                put("output_config", json!({ "effort": word.as_str() }));
            }
        }
        ThinkingControl::Switch => {
            put("thinking", json!({ "type": "enabled" }));
        }
        ThinkingControl::Budget | ThinkingControl::Fixed => {}
    }
    fields
}

/// Returns the schema of the answer, which stands in a text.
fn output_config(chat: &Conversation<'_>) -> Result<Option<Value>, Fault> {
    let AnswerForm::Schema(form) = &chat.form else {
        return Ok(None);
    };
    let schema = closed_schema::schema_of_answer(chat, form)?;
    let mut own = Map::new();
    own.insert("schema".to_owned(), schema.to_string().into());
    own.insert("name".to_owned(), (*form.name).into());
    if let Some(description) = &form.description {
        own.insert("description".to_owned(), (**description).into());
    }
    Ok(Some(json!({
        "textFormat": { "type": "json_schema", "structure": { "jsonSchema": own } }
    })))
}
