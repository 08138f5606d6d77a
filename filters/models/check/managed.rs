//! Managed prompts and experiments in `model` and `prompt`. Source: docs/model-gateway.md 2.1; flags are our choice.

use super::read::{any_object, integer, object_of_set, required, string, twice};
use super::reject::{Reject, other};
use super::top::check_model;
use crate::json::{Type, Walker};
use crate::models::managed::variation::FLAG_PREFIX;
use crate::models::managed::{GivenVariable, NamedPrompt};
use crate::models::prompts::library::ReferencePlace;
use crate::models::prompts::reference::{PREFIX, PromptReference, VersionReference};

/// The prompts and the flag that a request names.
#[derive(Debug, Default)]
pub(in crate::models) struct NamedPrompts {
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

/// What a request names beside them.
#[derive(Debug, Default)]
pub(in crate::models) struct Named {
    /// The model, the prompt or the flag, as the caller sent it.
    pub(in crate::models) model: Option<Box<str>>,
    pub(in crate::models) prompts: NamedPrompts,
}

impl NamedPrompts {
    /// Returns whether there is one.
    pub(in crate::models) fn is_some(&self) -> bool {
        self.by_model.is_some() || self.by_flag.is_some() || self.by_object.is_some()
    }
}

impl Named {
    /// Reads `model`.
    pub(in crate::models) fn read_model(&mut self, walk: &mut Walker<'_>) -> Result<(), Reject> {
        let model = string(walk)?.unescaped();
        self.model = Some(check_model(&model)?);
        if let Some(name) = model.strip_prefix(PREFIX) {
            let said = "names no prompt; accepted is `@prompt/NAME`, `@prompt/NAME@LABEL` or `@prompt/NAME@VERSION`";
            let reference = PromptReference::parse(name).ok_or_else(|| Reject::rule(said))?;
            self.prompts.by_model = Some(reference);
        }
        if let Some(key) = model.strip_prefix(FLAG_PREFIX) {
            if key.is_empty() {
                return Err(Reject::rule("names no flag; accepted is `@flag/KEY`"));
            }
            self.prompts.by_flag = Some(key.into());
        }
        Ok(())
    }

    /// Reads `prompt`.
    pub(in crate::models) fn read_prompt(&mut self, walk: &mut Walker<'_>) -> Result<(), Reject> {
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
        self.prompts.by_object = Some(Box::new(NamedByObject {
            reference,
            variables,
        }));
        Ok(())
    }

    /// Returns the prompt and the flag that complete the request, and whether the caller has named a model.
    pub(in crate::models) fn complete(self) -> Result<Completed, Reject> {
        let NamedPrompts {
            by_model,
            by_flag,
            by_object,
        } = self.prompts;
        let has_model = self.model.is_some() && by_model.is_none() && by_flag.is_none();
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
        Ok(Completed {
            model: self.model,
            has_model,
            prompt,
            flag: by_flag,
        })
    }
}

/// What completes a request.
#[derive(Debug)]
pub(in crate::models) struct Completed {
    pub(in crate::models) model: Option<Box<str>>,
    pub(in crate::models) has_model: bool,
    pub(in crate::models) prompt: Option<NamedPrompt>,
    pub(in crate::models) flag: Option<Box<str>>,
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
            return Err(twice().within(&key));
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
