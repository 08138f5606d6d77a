//! The top-level members, and what holds between them.

use super::block::{messages, system};
use super::tool::{tool_choice, tools};
use super::{Findings, Thinking};
use crate::fault_code::FaultCode;
use crate::json::{Type, Walker};
use crate::models::check::read::{
    array, expect, integer, limit, object_of_set, one_of, required, string,
};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, U32};
use crate::models::check::top::MODEL;
use crate::models::dialects::Dialect;
use crate::models::request::{Effort, NativeNeed, Strategy};

/// The most stop sequences. Our choice: no provider takes as many.
const MAX_STOPS: usize = 8192;

type Row = Field<Findings>;

pub(in super::super) static FIELDS: [Row; 20] = [
    Row::own("model", |walk, found| found.named.read_model(walk)),
    Row::own("messages", messages),
    Row::own("max_tokens", |walk, found| {
        limit(walk).map(|limit| found.max_tokens = Some(limit))
    })
    .strict(),
    Row::own("system", system),
    Row::flag("stream", |found, stream| found.is_stream = stream)
        .doc("True: the reply is an event stream."),
    Row::own("stop_sequences", stop_sequences),
    Row::number("temperature", |found, number| {
        found.temperature = Some(number)
    }),
    Row::number("top_p", |found, number| found.top_p = Some(number)),
    Row::number("top_k", |_, _| ()).doc("For providers that speak this dialect; others ignore it."),
    Row::own("tools", tools),
    Row::own("tool_choice", tool_choice),
    Row::own("thinking", thinking),
    Row::own("output_config", output_config),
    Row::own("thread", thread),
    Row::own("prompt", |walk, found| found.named.read_prompt(walk)),
    Row::object("metadata", &METADATA),
    Row::choice("service_tier", &["auto", "standard_only"], |_, _| ())
        .doc("For providers that speak this dialect; others ignore it."),
    Row::choice("routing", &Strategy::WORDS, |found, word| {
        found.strategy = Strategy::from_word(word);
    })
    .doc("What chooses the provider; not beside a model that names one."),
    Row::flag("free_models_only", |found, flag| {
        found.free_models_only = flag
    })
    .doc("With `auto`: only models that cost nothing."),
    Row::flag("no_reasoning", |found, flag| found.no_reasoning = flag)
        .doc("With `auto`: no reasoning models."),
];

static METADATA: [Row; 1] =
    [Row::text("user_id", |_, _| Ok(())).doc("Reaches providers that speak this dialect alone.")];

/// A member of the vendor's that is no name of ours.
pub(super) fn unknown(
    walk: &mut Walker<'_>,
    key: &str,
    found: &mut Findings,
) -> Result<(), Reject> {
    found.needs.cache_control |= key == "cache_control";
    walk.skip()?;
    Ok(())
}

/// The vendor holds the history, and the request has what is new. Elsewhere the answer would know no history, so this need is told
/// before all others: clients then send everything. Source: docs/facts/messages.md 4.
fn thread(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    expect(walk, Type::Object, "an object: a message thread")?;
    walk.skip()?;
    found.native = Some(NativeNeed {
        is_vendor_only: true,
        code: Some(FaultCode::ThreadUnsupportedRequest),
        ..NativeNeed::new(Dialect::Messages, "thread", "message threads".to_owned())
    });
    Ok(())
}

fn stop_sequences(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let count = array(walk, |walk, _| {
        let text = string(walk)?.unescaped();
        found.needs.blank_stop |= text.trim().is_empty();
        Ok(())
    })?;
    if count > MAX_STOPS {
        return Err(Reject::rule(format!(
            "holds {count} sequences; accepted are at most {MAX_STOPS}"
        )));
    }
    Ok(())
}

/// `{type: enabled, budget_tokens}`, `{type: adaptive}` or `{type: disabled}`, each with more members of the vendor.
fn thinking(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    const ACCEPTED: &str = "`enabled`, `adaptive` or `disabled`";
    let (mut kind, mut budget) = (None, None);
    object_of_set(walk, &["type", "budget_tokens"], |walk, key| {
        match key {
            "type" => kind = Some(string(walk)?.unescaped().into_owned()),
            _ => budget = Some(integer(walk, 1, U32)?),
        }
        Ok(())
    })?;
    let kind: Option<&str> = kind.as_deref();
    let kind = required(kind, "type", ACCEPTED)?;
    found.thinking = Some(match kind {
        "disabled" => Thinking::Off,
        "enabled" => Thinking::Budget(required(budget, "budget_tokens", "a number of tokens")?),
        // The vendor adds types, which hosts of its dialect know; to others they are thinking.
        _ => Thinking::Adaptive,
    });
    Ok(())
}

/// `{effort, format: {type: json_schema, schema}}`, with more members of the vendor.
fn output_config(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    object_of_set(walk, &["effort", "format"], |walk, key| {
        if key == "format" {
            return format(walk, found);
        }
        found.effort = Effort::from_word(one_of(walk, &Effort::WORDS)?);
        Ok(())
    })
}

fn format(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut kind, mut schema) = (None, None);
    object_of_set(walk, &["type", "schema"], |walk, key| {
        if key == "type" {
            kind = Some(one_of(walk, &["json_schema"])?);
            return Ok(());
        }
        expect(walk, Type::Object, "an object: a JSON schema")?;
        let length = walk.skip()?.len();
        schema = Some(walk.at() - length..walk.at());
        found.text_bytes += length as u64;
        Ok(())
    })?;
    required(kind, "type", "`json_schema`")?;
    found.schema = Some(required(schema, "schema", "a JSON schema")?);
    found.needs.json_schema = true;
    Ok(())
}

/// What holds between members. `counts`: nothing is answered, so no limit has to be there.
pub(super) fn together(found: &Findings, counts: bool) -> Result<(), Reject> {
    required(found.named.model.as_ref(), "model", MODEL)?;
    let messages = required(found.messages, "messages", "an array of messages")?;
    if messages == 0 {
        let said = "is empty; accepted is at least one message";
        return Err(Reject::rule(said).within("messages"));
    }
    if !counts {
        required(
            found.max_tokens.as_ref(),
            "max_tokens",
            "the most tokens of the answer",
        )?;
    }
    if found.needs.forced_tools && !found.needs.tools && found.search.is_none() {
        let said = "forces a call, but `tools` holds none; accepted is `auto` or `none`";
        return Err(Reject::rule(said).within("tool_choice"));
    }
    match &found.chosen {
        Some(name) if !found.functions.contains(name) => {
            let shown: String = name.chars().take(64).collect();
            let said = format!(
                "is {shown:?}, which is not in `tools`; accepted is the name of one of them"
            );
            Err(Reject::rule(said).within("name").within("tool_choice"))
        }
        _ => Ok(()),
    }
}

/// A string, or an array of which `item` reads each.
pub(super) fn text_or_blocks(
    walk: &mut Walker<'_>,
    found: &mut Findings,
    mut item: impl FnMut(&mut Walker<'_>, &mut Findings, usize) -> Result<(), Reject>,
) -> Result<(), Reject> {
    match walk.peek()? {
        Type::String => {
            found.text_bytes += walk.string()?.len() as u64;
            Ok(())
        }
        Type::Array => array(walk, |walk, at| item(walk, found, at)).map(|_| ()),
        _ => Err(other(walk, "a string or an array of blocks")),
    }
}
