//! The top-level members, and what holds between them. Source: docs/model-gateway.md 2.1.

use crate::fault_code::FaultCode;
use bytes::Bytes;

use super::Findings;
use super::image_config::IMAGE_CONFIG;
use super::message::messages;
use super::safeguards::safeguards;
use super::tool::{response_format, tool_choice, tools};
use crate::json::{Type, Walker};
use crate::models::check::read::{array, limit, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, U32, read_all, read_member};
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, Strategy};
use crate::money::ServiceTier;

const LEVELS: [&str; 3] = ["low", "medium", "high"];
const MESSAGES: &str = "an array of messages, or a managed prompt that has some";

pub(in super::super) type Row = Field<Findings>;

pub(in super::super) static FIELDS: [Row; 35] = [
    Row::own("model", |walk, found| found.named.read_model(walk)),
    Row::own("messages", messages),
    Row::number("temperature", |_, _| ()),
    Row::number("top_p", |_, _| ()),
    Row::number("frequency_penalty", |_, _| ()),
    Row::number("presence_penalty", |_, _| ()),
    Row::own("max_tokens", |walk, found| {
        limit(walk).map(|limit| found.max_tokens = Some(limit))
    }),
    Row::own("max_completion_tokens", |walk, found| {
        limit(walk).map(|limit| found.max_completion_tokens = Some(limit))
    }),
    Row::own("stop", |walk, _| stop(walk)),
    Row::own("response_format", response_format),
    Row::flag("stream", |found, stream| found.stream = stream)
        .doc("True: the reply is an event stream."),
    Row::object("stream_options", &STREAM_OPTIONS),
    Row::integer("n", 1, 128, |found, n| {
        found.choices = u32::try_from(n).ok()
    })
    .doc("Choices."),
    Row::own("prompt", |walk, found| found.named.read_prompt(walk)),
    Row::text("prompt_cache_key", |found, key| {
        found.cache_key = Some(key.into());
        Ok(())
    })
    .doc("Requests with the same key share a cached prefix more often."),
    Row::choice("prompt_cache_retention", &["in_memory", "24h"], |_, _| ()),
    Row::object("prompt_cache_options", &CACHE_OPTIONS),
    Row::text("user", |found, user| {
        found.user = Some(user.into());
        Ok(())
    })
    .doc("The end user."),
    Row::own("tools", tools),
    Row::own("tool_choice", tool_choice),
    Row::flag("parallel_tool_calls", |_, _| ()),
    Row::choice("reasoning_effort", &Effort::WORDS, |found, word| {
        found.has_effort = true;
        found.needs.effort = Effort::from_word(word);
    }),
    Row::object("reasoning", &REASONING),
    Row::choice("effort", &LEVELS, |_, _| ()),
    // Of the convention, beyond the contract: checked because it is translated.
    Row::choice("verbosity", &LEVELS, |found, _| {
        found.needs.verbosity = true
    }),
    Row::choice("service_tier", &ServiceTier::WORDS, |found, word| {
        found.needs.service_tier = ServiceTier::from_word(word);
    }),
    Row::own("vendor_safeguards", |walk, _| safeguards(walk)),
    Row::choice("routing", &Strategy::WORDS, |found, word| {
        found.strategy = Strategy::from_word(word);
    })
    .doc("What chooses the provider; not beside a model that names one."),
    Row::flag("free_models_only", |found, flag| {
        found.needs.free_models_only = flag
    })
    .doc("With `auto`: only models that cost nothing."),
    Row::flag("no_reasoning", |found, flag| {
        found.needs.no_reasoning = flag
    })
    .doc("With `auto`: no reasoning models."),
    // Deprecated, ignored, grants nothing. Source: docs/model-gateway.md 9.5.
    Row::flag("onboarding", |_, _| ()).doc("Accepted and ignored."),
    Row::object("sensitive_word_check", &WORD_CHECK),
    Row::object("image_config", &IMAGE_CONFIG),
    Row::flag("web_search", |found, flag| found.search_flag = flag)
        .doc("The model's own web search."),
    Row::list("plugins", &PLUGIN, |found, count| found.heals = count > 0)
        .doc("`response-healing` repairs malformed JSON."),
];

static STREAM_OPTIONS: [Row; 1] = [Row::flag("include_usage", |found, flag| {
    found.include_usage = flag;
})];

static CACHE_OPTIONS: [Row; 2] = [
    Row::choice("mode", &["implicit", "explicit"], |found, mode| {
        found.needs.cache_control |= mode == "explicit";
    }),
    Row::choice("ttl", &["30m"], |_, _| ()),
];

static REASONING: [Row; 4] = [
    Row::choice("effort", &Effort::WORDS, |found, word| {
        found.has_inner_effort = true;
        found.needs.effort = Effort::from_word(word).or(found.needs.effort);
    }),
    Row::integer("max_tokens", 1, U32, |found, budget| {
        found.needs.reasoning_tokens = Some(budget);
    })
    .doc("An exact budget."),
    Row::choice(
        "context",
        &["auto", "current_turn", "all_turns"],
        |found, context| {
            found.needs.reasoning_context = (context != "auto").then(|| context.into());
        },
    ),
    Row::choice("mode", &["standard", "pro"], |found, mode| {
        found.needs.reasoning_mode = Some(mode.into());
    }),
];

static WORD_CHECK: [Row; 1] =
    [Row::choice("status", &["DISABLE", "ENABLE"], |_, _| ()).required("`DISABLE` or `ENABLE`")];

static PLUGIN: Row = Row::object(
    "",
    &[Row::choice("id", &["response-healing"], |_, _| ()).required("`response-healing`")],
)
.strict();

/// Walks the whole object, and returns the findings.
pub(super) fn top(body: &Bytes) -> Result<Findings, Reject> {
    let (mut found, members) =
        read_all(&[&FIELDS], body, |walk, key, found| match walk.null()? {
            true => Ok(()),
            false => unknown(walk, key, found),
        })?;
    found.members = members;
    Ok(found)
}

/// Checks a member that is not null.
pub(super) fn member(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    match read_member(&[&FIELDS], walk, key, found)? {
        true => Ok(()),
        false => unknown(walk, key, found),
    }
}

fn unknown(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    // A mark on the top level is not a member of the contract, but one of a provider's own.
    found.needs.cache_control |= key == "cache_control";
    found.is_unknown = true;
    walk.skip()?;
    Ok(())
}

fn stop(walk: &mut Walker<'_>) -> Result<(), Reject> {
    match walk.peek()? {
        Type::String => walk.skip().map(|_| ()).map_err(Reject::from),
        Type::Array => array(walk, |walk, _| string(walk).map(|_| ())).map(|_| ()),
        _ => Err(other(walk, "a string or an array of strings")),
    }
}

/// What holds between members.
pub(super) fn together(found: &Findings) -> Result<(), Reject> {
    let messages = required(found.messages, "messages", MESSAGES)?;
    if messages == 0 {
        let said = "is empty; accepted is at least one message";
        return Err(Reject::rule(said).within("messages"));
    }
    if found.has_effort && found.has_inner_effort {
        let said = "came together with `reasoning.effort`; accepted is one of them";
        return Err(Reject::rule(said)
            .with_code(FaultCode::InvalidRequest)
            .within("reasoning_effort"));
    }
    if found.choices.is_some_and(|n| n > 1) && found.stream && found.needs.tools {
        let said = "is more than 1 together with `stream` and function tools; accepted is 1, no stream, or no tools";
        return Err(Reject::rule(said)
            .with_code(FaultCode::UnsupportedParameterCombination)
            .within("n"));
    }
    if found.needs.tools && found.asked.number(Parameter::ImageCount) > Some(1.0) {
        let said = "is more than 1 together with function tools, which a further drawing would call again; accepted is 1, or no tools";
        return Err(Reject::rule(said)
            .with_code(FaultCode::UnsupportedParameterCombination)
            .within("n")
            .within("image_config"));
    }
    if found.needs.forced_tools && !found.needs.tools {
        let said = "forces a call, but `tools` holds no function; accepted is `auto` or `none`";
        return Err(Reject::rule(said).within("tool_choice"));
    }
    match &found.chosen {
        Some(name) if !found.functions.contains(name) => {
            let shown: String = name.chars().take(64).collect();
            let said = format!(
                "is {shown:?}, which is not in `tools`; accepted is the name of one of them"
            );
            Err(Reject::rule(said)
                .within("name")
                .within("function")
                .within("tool_choice"))
        }
        _ => Ok(()),
    }
}
