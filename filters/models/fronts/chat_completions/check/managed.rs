//! Managed prompts and experiments in `model` and `prompt`. Source: docs/model-gateway.md 2.1; flags are our choice.

use bytes::Bytes;

use super::Findings;
use crate::json::{Type, Walker};
use crate::models::check::read::{any_object, integer, object_of_set, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::top::check_model;
use crate::models::managed::variation::FLAG_PREFIX;
use crate::models::managed::{GivenVariable, ManagedRequest, NamedPrompt};
use crate::models::prompts::library::ReferencePlace;
use crate::models::prompts::reference::{PREFIX, PromptReference, VersionReference};
use crate::models::request::Source;

/// The prompts and the flag that a request names.
#[derive(Debug, Default)]
pub(super) struct NamedPrompts {
    by_model: Option<PromptReference>,
    by_flag: Option<Box<str>>,
    by_object: Option<Box<NamedByObject>>,
}

/// The object `prompt`.
#[derive(Debug)]
struct NamedByObject {
    reference: PromptReference,
    variables: Vec<GivenVariable>,
}

impl NamedPrompts {
    /// Returns whether there is one.
    pub(super) fn is_some(&self) -> bool {
        self.by_model.is_some() || self.by_flag.is_some() || self.by_object.is_some()
    }
}

/// `model`.
pub(super) fn named_model(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let model = string(walk)?.unescaped();
    found.model = Some(check_model(&model)?);
    if let Some(name) = model.strip_prefix(PREFIX) {
        let said = "names no prompt; accepted is `@prompt/NAME`, `@prompt/NAME@LABEL` or `@prompt/NAME@VERSION`";
        let reference = PromptReference::parse(name).ok_or_else(|| Reject::rule(said))?;
        found.prompts.by_model = Some(reference);
    }
    if let Some(key) = model.strip_prefix(FLAG_PREFIX) {
        if key.is_empty() {
            return Err(Reject::rule("names no flag; accepted is `@flag/KEY`"));
        }
        found.prompts.by_flag = Some(key.into());
    }
    Ok(())
}

/// `prompt`.
pub(super) fn prompt(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut id, mut version, mut label) = (None, None, None);
    let mut variables = Vec::new();
    let known = ["id", "version", "label", "variables"];
    object_of_set(walk, &known, |walk, key| {
        match key {
            "id" => id = Some(filled(walk)?),
            "version" => version = Some(integer(walk, 1, u64::MAX)?),
            "label" => label = Some(filled(walk)?),
            _ => variables = given(walk)?,
        }
        Ok(())
    })?;
    let name = required(id, "id", "the name of a managed prompt")?;
    let version = match (version, label) {
        // A version says more than a label, which moves.
        (Some(number), _) => VersionReference::Number(number),
        (None, Some(label)) => VersionReference::Label(label),
        (None, None) => VersionReference::default(),
    };
    let reference = PromptReference { name, version };
    found.prompts.by_object = Some(Box::new(NamedByObject {
        reference,
        variables,
    }));
    Ok(())
}

/// A string that is not empty.
fn filled(walk: &mut Walker<'_>) -> Result<Box<str>, Reject> {
    let text = string(walk)?;
    if text.is_empty() {
        return Err(Reject::rule("is empty; accepted is a name"));
    }
    Ok(text.unescaped().into())
}

/// `prompt.variables`.
fn given(walk: &mut Walker<'_>) -> Result<Vec<GivenVariable>, Reject> {
    let mut variables: Vec<GivenVariable> = Vec::new();
    let mut names = std::collections::HashSet::new();
    any_object(walk, &[], |walk, key, _| {
        let read = match walk.peek()? {
            Type::String | Type::Number | Type::Bool => walk.skip(),
            _ => return Err(other(walk, "a string, a number or a boolean").within(&key)),
        };
        let value = read?;
        if !names.insert(key.clone()) {
            return Err(crate::models::check::read::twice().within(&key));
        }
        let end = walk.at();
        variables.push(GivenVariable {
            name: key.into(),
            value: end - value.len()..end,
        });
        Ok(())
    })?;
    Ok(variables)
}

/// Returns the request of a body that names a prompt.
pub(super) fn request(body: Bytes, found: Findings) -> Result<ManagedRequest, Reject> {
    let NamedPrompts {
        by_model,
        by_flag,
        by_object,
    } = found.prompts;
    let has_model = found.model.is_some() && by_model.is_none() && by_flag.is_none();
    let prompt = match (by_model, by_object) {
        (Some(by_model), Some(object)) if by_model != object.reference => {
            let said = format!(
                "names {} and `model` names {by_model}; accepted is one of them, or the same in both",
                object.reference
            );
            return Err(Reject::rule(said).within("prompt"));
        }
        (_, Some(object)) => Some(NamedPrompt {
            reference: object.reference,
            place: ReferencePlace::Object,
            variables: object.variables,
        }),
        (Some(reference), None) => Some(NamedPrompt {
            reference,
            place: ReferencePlace::Model,
            variables: Vec::new(),
        }),
        (None, None) => None,
    };
    let filled = |text: Option<Box<str>>| text.filter(|text| !text.is_empty());
    Ok(ManagedRequest {
        source: Source::new(body, found.members),
        model: found.model,
        has_model,
        prompt,
        flag: by_flag,
        user: filled(found.user),
        session: filled(found.cache_key),
        has_inner_effort: found.has_inner_effort,
    })
}
