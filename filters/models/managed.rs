//! A chat request that names a managed prompt, and the usual request that becomes of both.
//!
//! [`ManagedRequest::expand`] puts the rendered messages before the caller's, and fills what the caller left unset. The
//! caller's members stay slices of the body. The result goes through the checks of its front like any other body, so
//! everything behind them sees a usual request; [`Managed`](super::prompts::origin::Managed) stays with it, to say where it came from.

pub mod expand;

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::prompts::library::ReferencePlace;
use super::prompts::reference::PromptReference;
use super::request::Source;

/// A request that is complete only with its prompt.
#[derive(Clone, Debug)]
pub struct ManagedRequest {
    /// The body, each of whose members has been checked.
    pub source: Source,
    /// The model string, if it is set.
    pub model: Option<Box<str>>,
    /// The prompt that it names.
    pub reference: PromptReference,
    /// Where it names the prompt.
    pub place: ReferencePlace,
    /// The values of variables.
    pub variables: Vec<GivenVariable>,
    /// Whether it has an effort inside `reasoning`.
    pub has_inner_effort: bool,
}

/// A variable of the object `prompt`.
#[derive(Clone, Debug)]
pub struct GivenVariable {
    /// Its name.
    pub name: Box<str>,
    /// Its value: a string, a number or a boolean of the body.
    pub value: Range<usize>,
}
