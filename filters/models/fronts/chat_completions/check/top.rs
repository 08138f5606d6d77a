//! The top-level members, and what holds between them. Source: docs/model-gateway.md 2.1.

use super::Findings;
use super::image_config::image_config;
use super::managed::{named_model, prompt};
use super::message::messages;
use super::safeguards::safeguards;
use super::tool::{response_format, tool_choice, tools};
use crate::json::{Type, Walker};
use crate::models::check::read::{
    array, boolean, integer, limit, number, object_of_set, one_of, required, string,
};
use crate::models::check::reject::{Reject, other};
use crate::models::check::top::members;
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, Strategy};
use crate::money::ServiceTier;

const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const LEVELS: [&str; 3] = ["low", "medium", "high"];
const MESSAGES: &str = "an array of messages, or a managed prompt that has some";

/// The whole object, in which null counts as absent.
pub(super) fn top(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let members = members(walk, |walk, key| match walk.null()? {
        true => Ok(()),
        false => member(walk, key, found),
    })?;
    found.members = members;
    Ok(())
}

/// Checks a member that is not null.
pub(super) fn member(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    match key {
        "model" => named_model(walk, found),
        "prompt" => prompt(walk, found),
        "messages" => messages(walk, found),
        "stream" => flag(walk, &mut found.stream),
        "stream_options" => stream_options(walk, found),
        "temperature" | "top_p" | "frequency_penalty" | "presence_penalty" => {
            number(walk).map(|_| ())
        }
        "max_tokens" | "max_completion_tokens" => max_tokens(walk, key, found),
        "n" => {
            found.choices = u32::try_from(integer(walk, 1, 128)?).ok();
            Ok(())
        }
        "response_format" => response_format(walk, found),
        "tools" => tools(walk, found),
        "tool_choice" => tool_choice(walk, found),
        // The latter is deprecated, ignored, grants nothing. Source: docs/model-gateway.md 9.5.
        "parallel_tool_calls" | "onboarding" => boolean(walk).map(|_| ()),
        "user" => text(walk, &mut found.user),
        "prompt_cache_key" => text(walk, &mut found.cache_key),
        "prompt_cache_retention" => one_of(walk, &["in_memory", "24h"]).map(|_| ()),
        "reasoning_effort" => {
            found.has_effort = true;
            found.needs.effort = effort(one_of(walk, &EFFORTS)?);
            Ok(())
        }
        "reasoning" => reasoning(walk, found),
        // Of the convention, beyond the contract: checked because it is translated.
        "stop" => match walk.peek()? {
            Type::String => walk.skip().map(|_| ()).map_err(Reject::from),
            Type::Array => array(walk, |walk, _| string(walk).map(|_| ())).map(|_| ()),
            _ => Err(other(walk, "a string or an array of strings")),
        },
        "verbosity" => {
            found.needs.verbosity = true;
            one_of(walk, &LEVELS).map(|_| ())
        }
        _ => routing_member(walk, key, found),
    }
}

/// Members that speak to the gateway.
fn routing_member(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    match key {
        "service_tier" => {
            found.needs.service_tier = match one_of(walk, &["auto", "default", "flex", "priority"])?
            {
                "flex" => ServiceTier::Flex,
                "priority" => ServiceTier::Priority,
                _ => ServiceTier::Standard,
            };
            Ok(())
        }
        "routing" => {
            found.strategy = match one_of(walk, &["auto", "price", "throughput", "latency"])? {
                "price" => Some(Strategy::Price),
                "throughput" => Some(Strategy::Throughput),
                "latency" => Some(Strategy::Latency),
                _ => None,
            };
            Ok(())
        }
        "free_models_only" => flag(walk, &mut found.needs.free_models_only),
        "no_reasoning" => flag(walk, &mut found.needs.no_reasoning),
        "image_config" => image_config(walk, found),
        _ => rare_member(walk, key, found),
    }
}

/// Members that few providers know.
fn rare_member(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    match key {
        "effort" => one_of(walk, &LEVELS).map(|_| ()),
        "prompt_cache_options" => object_of_set(walk, &["mode", "ttl"], |walk, key| match key {
            "mode" => {
                let mode = one_of(walk, &["implicit", "explicit"])?;
                found.needs.cache_control |= mode == "explicit";
                Ok(())
            }
            _ => one_of(walk, &["30m"]).map(|_| ()),
        }),
        "sensitive_word_check" => {
            let mut status = None;
            object_of_set(walk, &["status"], |walk, _| {
                status = Some(one_of(walk, &["DISABLE", "ENABLE"])?);
                Ok(())
            })?;
            required(status, "status", "`DISABLE` or `ENABLE`").map(|_| ())
        }
        "web_search" => flag(walk, &mut found.search_flag),
        "vendor_safeguards" => safeguards(walk),
        "plugins" => {
            found.heals = array(walk, plugin)? > 0;
            Ok(())
        }
        _ => {
            // A mark on the top level is no member of the contract, but one of a provider's own.
            found.needs.cache_control |= key == "cache_control";
            found.is_unknown = true;
            walk.skip()?;
            Ok(())
        }
    }
}

fn plugin(walk: &mut Walker<'_>, _: usize) -> Result<(), Reject> {
    let mut id = None;
    object_of_set(walk, &["id"], |walk, _| {
        id = Some(one_of(walk, &["response-healing"])?);
        Ok(())
    })?;
    required(id, "id", "`response-healing`").map(|_| ())
}

fn max_tokens(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    let most = Some(limit(walk)?);
    *(if key == "max_tokens" {
        &mut found.max_tokens
    } else {
        &mut found.max_completion_tokens
    }) = most;
    Ok(())
}

fn stream_options(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    object_of_set(walk, &["include_usage"], |walk, _| {
        flag(walk, &mut found.include_usage)
    })
}

fn flag(walk: &mut Walker<'_>, into: &mut bool) -> Result<(), Reject> {
    *into = boolean(walk)?;
    Ok(())
}

fn text(walk: &mut Walker<'_>, into: &mut Option<Box<str>>) -> Result<(), Reject> {
    *into = Some(string(walk)?.unescaped().into());
    Ok(())
}

fn reasoning(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut word = None;
    object_of_set(
        walk,
        &["effort", "max_tokens", "context", "mode"],
        |walk, key| {
            match key {
                "effort" => word = Some(one_of(walk, &EFFORTS)?),
                "max_tokens" => {
                    found.needs.reasoning_tokens = Some(integer(walk, 1, u64::from(u32::MAX))?);
                }
                "context" => {
                    let context = one_of(walk, &["auto", "current_turn", "all_turns"])?;
                    found.needs.reasoning_context = (context != "auto").then(|| context.into());
                }
                _ => found.needs.reasoning_mode = Some(one_of(walk, &["standard", "pro"])?.into()),
            }
            Ok(())
        },
    )?;
    found.needs.effort = word.and_then(effort).or(found.needs.effort);
    found.has_inner_effort = word.is_some();
    Ok(())
}

fn effort(word: &str) -> Option<Effort> {
    Effort::ALL
        .into_iter()
        .find(|effort| effort.as_str() == word)
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
            .with_code("invalid_request")
            .within("reasoning_effort"));
    }
    if found.choices.is_some_and(|n| n > 1) && found.stream && found.needs.tools {
        let said = "is more than 1 together with `stream` and function tools; accepted is 1, no stream, or no tools";
        return Err(Reject::rule(said)
            .with_code("unsupported_parameter_combination")
            .within("n"));
    }
    if found.needs.tools && found.asked.number(Parameter::ImageCount) > Some(1.0) {
        let said = "is more than 1 together with function tools, which a further drawing would call again; accepted is 1, or no tools";
        return Err(Reject::rule(said)
            .with_code("unsupported_parameter_combination")
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
