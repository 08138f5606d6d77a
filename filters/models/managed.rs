//! A chat request that names a managed prompt or an experiment, and the usual request that becomes of it.
//!
//! [`ManagedRequest::expand`](expand) puts the rendered messages before the caller's, and fills what the caller left unset:
//! first from the [`variation`] that the experiment's flag has for the user, then from the prompt. The caller's members stay
//! slices of the body. The result goes through the checks of its front like any other body, so everything behind them sees a
//! usual request; [`Managed`](super::prompts::origin::Managed) stays with it, to say where it came from.

pub mod expand;
mod messages;
mod responses;
mod translated;
pub mod variation;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod variation_tests;

use std::ops::Range;

use super::dialects::Dialect;
use super::prompts::library::ReferencePlace;
use super::prompts::reference::PromptReference;
use super::request::Source;

/// A request that is complete only with its prompt or its experiment.
#[derive(Clone, Debug)]
pub struct ManagedRequest {
    /// In whose words it is.
    pub dialect: Dialect,
    /// The body, each of whose members has been checked.
    pub source: Source,
    pub model: Option<Box<str>>,
    /// Whether that is a model, and not the name of a prompt or a flag.
    pub has_model: bool,
    pub prompt: Option<NamedPrompt>,
    pub flag: Option<Box<str>>,
    /// `user`, where it is set and not empty.
    pub user: Option<Box<str>>,
    pub session: Option<Box<str>>,
    /// Whether it has an effort inside `reasoning`.
    pub has_inner_effort: bool,
}

/// A prompt that a request names.
#[derive(Clone, Debug)]
pub struct NamedPrompt {
    pub reference: PromptReference,
    pub place: ReferencePlace,
    pub variables: Vec<GivenVariable>,
}

/// A variable of the object `prompt`.
#[derive(Clone, Debug)]
pub struct GivenVariable {
    pub name: Box<str>,
    /// Its value: a string, a number or a boolean of the body.
    pub value: Range<usize>,
}
