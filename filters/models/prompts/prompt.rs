//! One version of a prompt: compiled once, rendered for each request that names it.

use std::ops::Range;

use super::read::Reader;
use super::template::{PromptValue, Template};
use super::tree::Node;
use crate::fault::{Fault, quoted};
use crate::fault_code::FaultCode;
use crate::json::Str;

/// Something wrong in the file of a prompt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistake {
    /// The member, such as `messages[1].role`.
    pub path: String,
    pub span: Range<usize>,
    /// What is wrong and what is accepted, to stand behind the member's name.
    pub said: String,
    /// The part of the value that is meant, if it is not the whole.
    pub quote: Option<Quote>,
}

/// A part of a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Quote {
    /// Its words.
    pub text: String,
    /// How many parts with the same words stand before it.
    pub before: usize,
}

/// A compiled version.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The model, where the caller names none.
    pub model: Option<Box<str>>,
    /// The members of a request that it fills where the caller left them unset.
    pub parameters: Vec<PromptParameter>,
    pub message_count: usize,
    pub(super) template: Template,
    pub(super) variables: Vec<PromptVariable>,
}

/// A member of a request.
#[derive(Clone, Debug)]
pub struct PromptParameter {
    pub key: Box<str>,
    pub json: Box<str>,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct PromptVariable {
    pub name: Box<str>,
    /// What its values must be; `None`: a string, a number or a boolean.
    pub kind: Option<VariableKind>,
    /// The value where a request gives none.
    pub default: Option<DefaultValue>,
    pub description: Option<Box<str>>,
    /// Whether a message holds it.
    pub is_used: bool,
}

/// A type of variables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum VariableKind {
    String,
    Number,
    Boolean,
}

/// The value of a variable that a request leaves out.
#[derive(Clone, Debug)]
pub enum DefaultValue {
    Text(Box<str>),
    /// A number, as it is written.
    Number(Box<str>),
    Bool(bool),
}

impl VariableKind {
    pub(super) const ALL: [Self; 3] = [Self::String, Self::Number, Self::Boolean];

    /// Returns the word of a file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    pub(super) fn accepted(kind: Option<Self>) -> &'static str {
        match kind {
            Some(Self::String) => "a string",
            Some(Self::Number) => "a number",
            Some(Self::Boolean) => "a boolean",
            None => "a string, a number or a boolean",
        }
    }
}

impl DefaultValue {
    fn value(&self) -> PromptValue<'_> {
        match self {
            Self::Text(text) => PromptValue::Text(Str::Plain(text)),
            Self::Number(number) => PromptValue::Number(number),
            Self::Bool(flag) => PromptValue::Bool(*flag),
        }
    }

    pub(super) fn kind(&self) -> VariableKind {
        kind_of(self.value())
    }
}

fn kind_of(value: PromptValue<'_>) -> VariableKind {
    match value {
        PromptValue::Text(_) => VariableKind::String,
        PromptValue::Number(_) => VariableKind::Number,
        PromptValue::Bool(_) => VariableKind::Boolean,
    }
}

impl Prompt {
    /// Compiles a file. What its messages and parameters hold is checked elsewhere.
    ///
    /// Errors: all mistakes, in no order.
    pub fn compile(root: &Node) -> Result<Self, Vec<Mistake>> {
        let mut reader = Reader::default();
        let prompt = reader.prompt(root);
        if reader.mistakes.is_empty() {
            Ok(prompt)
        } else {
            Err(reader.mistakes)
        }
    }

    /// Returns its variables: first those that are declared.
    pub fn variables(&self) -> &[PromptVariable] {
        &self.variables
    }

    /// Returns the values of its variables, in their order.
    ///
    /// Errors: 400 naming the variable that is unknown, missing or of another type.
    pub fn bind<'v>(
        &'v self,
        given: impl IntoIterator<Item = (&'v str, PromptValue<'v>)>,
    ) -> Result<Vec<PromptValue<'v>>, Fault> {
        let defaults = self
            .variables
            .iter()
            .map(|variable| variable.default.as_ref());
        let mut values: Vec<_> = defaults
            .map(|value| value.map(DefaultValue::value))
            .collect();
        for (name, value) in given {
            let known = self.variables.iter().position(|it| *it.name == *name);
            let place = known.and_then(|at| Some((self.variables.get(at)?, values.get_mut(at)?)));
            let Some((variable, place)) = place else {
                return Err(self.unknown_variable(name));
            };
            let kind = kind_of(value);
            if variable.kind.is_some_and(|wanted| wanted != kind) {
                let (came, accepted) = (
                    VariableKind::accepted(Some(kind)),
                    VariableKind::accepted(variable.kind),
                );
                let said = format!("is {came}; accepted is {accepted}");
                return Err(variable_fault(name, &said));
            }
            *place = Some(value);
        }
        let bound = values.into_iter().zip(&self.variables);
        bound
            .map(|(value, variable)| {
                value.ok_or_else(|| {
                    let accepted = VariableKind::accepted(variable.kind);
                    let said = format!("is missing, and it has no default; accepted is {accepted}");
                    variable_fault(&variable.name, &said)
                })
            })
            .collect()
    }

    /// Returns about as many bytes as [`Self::render`] writes.
    pub fn rendered_bytes(&self, values: &[PromptValue<'_>]) -> usize {
        self.template.rendered_bytes(values)
    }

    /// Writes the messages, without the brackets around them.
    pub fn render(&self, values: &[PromptValue<'_>], out: &mut Vec<u8>) {
        self.template.render(values, out);
    }

    fn unknown_variable(&self, name: &str) -> Fault {
        let known: Vec<_> = self.variables.iter().map(|it| &*it.name).collect();
        let accepted = if known.is_empty() {
            "accepted are none".to_owned()
        } else {
            format!("accepted are {}", quoted(&known.join(", ")))
        };
        variable_fault(name, &format!("is no variable of this prompt; {accepted}"))
    }
}

fn variable_fault(name: &str, said: &str) -> Fault {
    let param = format!("prompt.variables.{}", quoted(name));
    let message = format!("`{param}` {said}");
    Fault::invalid(param, message).with_code(FaultCode::InvalidParameters)
}
