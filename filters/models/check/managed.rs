//! Managed prompts and experiments in `model` and `prompt`. Source: docs/model-gateway.md 2.1; flags are our choice.

use super::read::{any_object, integer, object_of_set, required, string, twice};
use super::reject::{Reject, other};
use super::top::check_model;
use crate::json::{Type, Walker};
use crate::models::dialects::Dialect;
use crate::models::managed::variation::FLAG_PREFIX;
use crate::models::managed::{GivenVariable, ManagedRequest, NamedPrompt};
use crate::models::prompts::library::ReferencePlace;
use crate::models::prompts::reference::{PREFIX, PromptReference, VersionReference};
use crate::models::request::Source;

/// What a request names: its model, and the prompts and the flag that complete it.
#[derive(Debug, Default)]
pub(in crate::models) struct Named {
    /// The model, the prompt or the flag, as the caller sent it.
    pub(in crate::models) model: Option<Box<str>>,
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

impl Named {
    /// Returns whether a prompt or a flag completes the request.
    pub(in crate::models) fn is_managed(&self) -> bool {
        self.by_model.is_some() || self.by_flag.is_some() || self.by_object.is_some()
    }

    /// Reads `model`.
    pub(in crate::models) fn read_model(&mut self, walk: &mut Walker<'_>) -> Result<(), Reject> {
        let model = string(walk)?.unescaped();
        self.model = Some(check_model(&model)?);
        if let Some(name) = model.strip_prefix(PREFIX) {
            let said = "names no prompt; accepted is `@prompt/NAME`, `@prompt/NAME@LABEL` or `@prompt/NAME@VERSION`";
            let reference = PromptReference::parse(name).ok_or_else(|| Reject::rule(said))?;
            self.by_model = Some(reference);
        }
        if let Some(key) = model.strip_prefix(FLAG_PREFIX) {
            if key.is_empty() {
                return Err(Reject::rule("names no flag; accepted is `@flag/KEY`"));
            }
            self.by_flag = Some(key.into());
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
        self.by_object = Some(Box::new(NamedByObject {
            reference,
            variables,
        }));
        Ok(())
    }

    /// Returns the request that a prompt or a flag completes. It has no user and no session.
    ///
    /// Errors: `model` and `prompt` name different prompts.
    pub(in crate::models) fn into_request(
        self,
        dialect: Dialect,
        source: Source,
    ) -> Result<ManagedRequest, Reject> {
        let (by_model, by_flag, by_object) = (self.by_model, self.by_flag, self.by_object);
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
        Ok(ManagedRequest {
            dialect,
            source,
            model: self.model,
            has_model,
            prompt,
            flag: by_flag,
            user: None,
            session: None,
            has_inner_effort: false,
        })
    }
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
