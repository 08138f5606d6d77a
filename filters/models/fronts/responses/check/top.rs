//! The top-level members, and what holds between them.

use super::Findings;
use super::item::input;
use super::tool::{tool_choice, tools};
use crate::fault_code::FaultCode;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, expect, limit, object_of_set, one_of, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::Field;
use crate::models::check::top::MODEL;
use crate::models::parameter::Parameter;
use crate::models::request::{Effort, Strategy};
use crate::money::ServiceTier;

const LEVELS: [&str; 3] = ["low", "medium", "high"];
const OF_VENDOR: &str = "For providers that speak this dialect; others ignore it.";
/// What is said of members that need responses that are kept, where none are.
pub(super) const STATELESS: &str = "needs stored responses, which this gateway does not keep unless `[responses] store` is true; accepted is the whole history in `input`, with `store` false or absent";
const NO_CONVERSATIONS: &str = "names a conversation, which this gateway does not keep; accepted is the whole history in `input`, or `previous_response_id`";

/// The service tiers of the vendor. `fast` is another word for `priority`.
const TIERS: [&str; 6] = ["auto", "default", "flex", "priority", "scale", "fast"];

pub(in super::super) type Row = Field<Findings>;

pub(in super::super) static FIELDS: [Row; 31] = [
    Row::own("model", |walk, found| found.named.read_model(walk)),
    Row::own("input", input),
    Row::own("instructions", |walk, found| {
        found.text_bytes += string(walk)?.len() as u64;
        Ok(())
    }),
    Row::flag("stream", |found, stream| found.is_stream = stream)
        .doc("True: the reply is an event stream."),
    Row::own("max_output_tokens", |walk, found| {
        limit(walk).map(|limit| found.max_tokens = Some(limit))
    }),
    Row::number("temperature", |found, number| {
        found.temperature = Some(number)
    }),
    Row::number("top_p", |found, number| found.top_p = Some(number)),
    Row::own("tools", tools),
    Row::own("tool_choice", tool_choice),
    Row::flag("parallel_tool_calls", |found, flag| found.is_serial = !flag),
    Row::own("max_tool_calls", |walk, found| {
        limit(walk).map(|limit| found.max_tool_calls = Some(limit))
    }),
    Row::object("reasoning", &REASONING),
    Row::own("text", text),
    Row::own("include", include),
    Row::choice("truncation", &["auto", "disabled"], |_, _| ()).doc(OF_VENDOR),
    Row::flag("store", |found, store| {
        found.state.store = Some(store);
        if store {
            found.state.note(|| stateless("store").with_code(FaultCode::UnsupportedValue));
        }
    })
    .doc("True: the response is kept. It needs `[responses] store`."),
    Row::flag("background", |found, background| {
        found.state.is_background = background;
        if background {
            found.state.note(|| stateless("background").with_code(FaultCode::UnsupportedValue));
        }
    })
    .doc("True: the response is made in the background, and kept. It needs `[responses] store`, and is not streamed."),
    Row::text("previous_response_id", |found, id| {
        found.state.note(|| stateless("previous_response_id"));
        found.state.previous = Some(id.into());
        Ok(())
    })
    .doc("The id of a kept response that the request goes on with. It needs `[responses] store`."),
    Row::nothing("conversation", NO_CONVERSATIONS),
    Row::choice("service_tier", &TIERS, |found, word| {
        let word = if word == "fast" { "priority" } else { word };
        found.needs.service_tier = ServiceTier::from_word(word);
    }),
    Row::own("prompt", |walk, found| found.named.read_prompt(walk)),
    Row::text("prompt_cache_key", |found, key| {
        found.cache_key = Some(key.into());
        found.set.insert(Parameter::PromptCacheKey);
        Ok(())
    })
    .doc("Requests with the same key share a cached prefix more often."),
    Row::own("prompt_cache_options", |walk, found| {
        object_of_set(walk, &["mode"], |walk, _| {
            found.needs.cache_control |= string(walk)?.unescaped() == "explicit";
            Ok(())
        })?;
        found.set.insert(Parameter::PromptCacheOptions);
        Ok(())
    }),
    Row::text("prompt_cache_retention", |found, _| {
        found.set.insert(Parameter::PromptCacheRetention);
        Ok(())
    }),
    Row::text("safety_identifier", |found, _| {
        found.set.insert(Parameter::SafetyIdentifier);
        Ok(())
    }),
    Row::text("user", |found, user| {
        found.user = Some(user.into());
        found.set.insert(Parameter::User);
        Ok(())
    })
    .doc("The end user."),
    Row::own("metadata", |walk, found| {
        expect(walk, Type::Object, "an object")?;
        walk.skip()?;
        found.set.insert(Parameter::Metadata);
        Ok(())
    }),
    Row::integer("top_logprobs", 0, 20, |found, _| {
        found.note_native("top_logprobs", || "`top_logprobs` in Responses".to_owned());
    })
    .doc("For providers that speak this dialect."),
    Row::choice("routing", &Strategy::WORDS, |found, word| {
        found.strategy = Strategy::from_word(word);
    })
    .doc("What chooses the provider; not beside a model that names one."),
    Row::flag("free_models_only", |found, flag| {
        found.needs.free_models_only = flag;
    })
    .doc("With `auto`: only models that cost nothing."),
    Row::flag("no_reasoning", |found, flag| {
        found.needs.no_reasoning = flag;
    })
    .doc("With `auto`: no reasoning models."),
];

static REASONING: [Row; 5] = [
    Row::choice("effort", &Effort::WORDS, |found, word| {
        found.has_effort = true;
        found.needs.effort = Effort::from_word(word);
    }),
    Row::choice("summary", &["auto", "concise", "detailed"], |_, _| ()),
    Row::choice(
        "generate_summary",
        &["auto", "concise", "detailed"],
        |_, _| (),
    ),
    Row::text("context", |found, context| {
        found.needs.reasoning_context = (context != "auto").then(|| context.into());
        Ok(())
    }),
    Row::choice("mode", &["standard", "pro"], |found, mode| {
        found.needs.reasoning_mode = Some(mode.into());
    }),
];

/// A member of the vendor's that is no name of ours.
pub(super) fn unknown(walk: &mut Walker<'_>, _: &str, _: &mut Findings) -> Result<(), Reject> {
    walk.skip()?;
    Ok(())
}

fn stateless(key: &str) -> Reject {
    Reject::rule(STATELESS).within(key)
}

/// `{format, verbosity}`, with more members of the vendor.
fn text(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    object_of_set(walk, &["format", "verbosity"], |walk, key| {
        if key == "verbosity" {
            // A wish, which hosts of the dialect follow.
            return one_of(walk, &LEVELS).map(|_| ());
        }
        format(walk, found)
    })
}

/// `{type: text}`, `{type: json_object}` or `{type: json_schema, name, schema, description, strict}`.
fn format(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    const TYPES: [&str; 3] = ["text", "json_object", "json_schema"];
    let (mut kind, mut schema, mut has_name) = (None, None, false);
    let keys = ["type", "name", "schema", "description", "strict"];
    object_of_set(walk, &keys, |walk, key| {
        match key {
            "type" => kind = Some(one_of(walk, &TYPES)?),
            "name" => has_name = !string(walk)?.is_empty(),
            "description" => found.text_bytes += string(walk)?.len() as u64,
            "schema" => {
                expect(walk, Type::Object, "an object: a JSON schema")?;
                let length = walk.skip()?.len();
                schema = Some(walk.at() - length..walk.at());
                found.text_bytes += length as u64;
            }
            _ => {
                expect(walk, Type::Bool, "a boolean")?;
                walk.boolean()?;
            }
        }
        Ok(())
    })?;
    match required(kind, "type", "`text`, `json_object` or `json_schema`")? {
        "json_schema" => {
            required(has_name.then_some(()), "name", "a name")?;
            found.schema = Some(required(schema, "schema", "a JSON schema")?);
            found.needs.json_schema = true;
        }
        "json_object" => found.needs.json_object = true,
        _ => {}
    }
    Ok(())
}

/// `include`. What the vendor adds to its list is for hosts of its dialect.
fn include(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    array(walk, |walk, _| {
        let word = string(walk)?.unescaped();
        if word == "message.output_text.logprobs" {
            found.note_native("include", || {
                "probabilities of tokens in Responses".to_owned()
            });
        }
        Ok(())
    })
    .map(|_| ())
}

/// What holds between members.
pub(super) fn together(found: &Findings) -> Result<(), Reject> {
    required(found.named.model.as_ref(), "model", MODEL)?;
    let accepted = "a text or an array of items that says something";
    required(found.has_input.then_some(()), "input", accepted)?;
    let has_tools = found.needs.tools || found.search.is_some() || found.native.is_some();
    if found.needs.forced_tools && !has_tools {
        let said = "forces a call, but `tools` holds none; accepted is `auto` or `none`";
        return Err(Reject::rule(said).within("tool_choice"));
    }
    if found.demands_search && found.search.is_none() {
        let said = "demands a search, but `tools` holds no `web_search` tool; accepted is `auto` or `none`";
        return Err(Reject::rule(said).within("tool_choice"));
    }
    match &found.chosen {
        Some((name, path)) if !found.functions.contains(name) => {
            let shown: String = name.chars().take(64).collect();
            let said = format!(
                "is {shown:?}, which is not in `tools`; accepted is the name of one of them"
            );
            Err(Reject::rule(said).within(path).within("tool_choice"))
        }
        _ => Ok(()),
    }
}

/// A string, or an array of which `item` reads each.
pub(super) fn text_or_list(
    walk: &mut Walker<'_>,
    found: &mut Findings,
    accepted: &str,
    mut item: impl FnMut(&mut Walker<'_>, &mut Findings, usize) -> Result<(), Reject>,
) -> Result<usize, Reject> {
    match walk.peek()? {
        Type::String => {
            let length = walk.string()?.len();
            found.text_bytes += length as u64;
            Ok(usize::from(length > 0))
        }
        Type::Array => array(walk, |walk, at| item(walk, found, at)),
        _ => Err(other(walk, accepted)),
    }
}
