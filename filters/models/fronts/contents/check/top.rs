//! The top-level members, and what holds between them.

use std::collections::HashSet;

use super::Findings;
use super::config::generation_config;
use super::content::{contents, system_instruction};
use super::tool::{tool_config, tools};
use crate::json::{Type, Walker};
use crate::models::check::read::{array, expect, one_of, required, string};
use crate::models::check::reject::Reject;
use crate::models::check::shape::Field;
use crate::models::check::top::check_model;
use crate::models::request::Strategy;
use crate::money::ServiceTier;

const OF_VENDOR: &str = "For providers that speak this dialect; others ignore it.";
/// What is said of a model that names what this API does not take.
const NO_PROMPTS: &str =
    "names a prompt or a flag, which this API does not take; accepted is a model id";

pub(in super::super) type Row = Field<Findings>;

const CONTENTS: &str = "an array of contents of which at least one has parts";

/// The forms of an answer, as `stream` says them.
pub(in super::super) const SSE: &str = "sse";
pub(in super::super) const ARRAY: &str = "array";

pub(in super::super) static FIELDS: [Row; 14] = [
    Row::own("model", model),
    Row::own("stream", |walk, found| {
        one_of(walk, &[SSE, ARRAY])?;
        found.is_stream = true;
        Ok(())
    }),
    Row::own("contents", contents).required(CONTENTS),
    Row::own("systemInstruction", system_instruction),
    Row::own("tools", tools),
    Row::own("toolConfig", tool_config),
    Row::own("generationConfig", generation_config),
    Row::own("safetySettings", |walk, _| {
        expect(walk, Type::Array, "an array of settings")?;
        array(walk, |walk, _| {
            expect(walk, Type::Object, "an object")?;
            Ok(walk.skip().map(|_| ())?)
        })
        .map(|_| ())
    }),
    Row::text("cachedContent", |found, name| {
        if !name.is_empty() {
            found.note_native("cachedContent", || "`cachedContent`".to_owned());
        }
        Ok(())
    })
    .doc("The name of a content that a provider of this dialect has cached."),
    Row::own("labels", |walk, _| {
        expect(walk, Type::Object, "an object of texts")?;
        Ok(walk.skip().map(|_| ())?)
    })
    .doc(OF_VENDOR),
    Row::text("serviceTier", |found, word| {
        let word = word.to_ascii_lowercase();
        let word = word.strip_prefix("service_tier_").unwrap_or(&word);
        found.needs.service_tier = match word {
            "standard" | "unspecified" => ServiceTier::Standard,
            "flex" => ServiceTier::Flex,
            "priority" => ServiceTier::Priority,
            _ => {
                let said = "is no tier; accepted is `standard`, `flex` or `priority`";
                return Err(Reject::rule(said));
            }
        };
        Ok(())
    }),
    Row::choice("routing", &Strategy::WORDS, |found, word| {
        found.strategy = Strategy::from_word(word);
    })
    .doc("What chooses the provider; not beside a model that names one."),
    Row::flag("freeModelsOnly", |found, flag| {
        found.needs.free_models_only = flag;
    })
    .doc("With `auto`: only models that cost nothing."),
    Row::flag("noReasoning", |found, flag| found.needs.no_reasoning = flag)
        .doc("With `auto`: no reasoning models."),
];

/// A member of the vendor's that is no name of ours.
pub(super) fn unknown(walk: &mut Walker<'_>, _: &str, _: &mut Findings) -> Result<(), Reject> {
    walk.skip()?;
    Ok(())
}

fn model(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let model = string(walk)?.unescaped();
    if model.starts_with('@') {
        return Err(Reject::rule(NO_PROMPTS));
    }
    found.model = Some(check_model(&model)?);
    Ok(())
}

/// What holds between members.
pub(super) fn together(found: &Findings) -> Result<(), Reject> {
    let accepted = "a model id, which stands in the path; `GET /v1beta/models` lists them";
    required(found.model.as_ref(), "model", accepted)?;
    let says = found.contents.filter(|count| *count > 0);
    required(says, "contents", CONTENTS)?;
    let config = |reject: Reject| reject.within("functionCallingConfig").within("toolConfig");
    if found.needs.forced_tools && !found.needs.tools && found.native.is_none() {
        let said = "is `ANY`, but `tools` holds no function; accepted is `AUTO` or `NONE`";
        return Err(config(Reject::rule(said).within("mode")));
    }
    let functions: HashSet<&str> = found.functions.iter().map(|it| &**it).collect();
    let mut allowed = found.allowed.iter();
    let unknown = allowed.find(|name| !functions.contains(&***name));
    if let Some(name) = unknown.filter(|_| found.native.is_none()) {
        let shown: String = name.chars().take(64).collect();
        let said =
            format!("holds {shown:?}, which is not in `tools`; accepted are names of functions");
        return Err(config(Reject::rule(said).within("allowedFunctionNames")));
    }
    Ok(())
}
