//! Short-lived credentials of clouds: fetched from their sources, kept, and refreshed before they end.
//!
//! A [`CredentialSource`] serves a provider of the operator, or a key of an organization. The request path reads a snapshot; a
//! fetch runs on a task of its own, one at a time, and what is valid stays in use while it runs or fails. [`refresh`]
//! keeps those of the operator fresh. [`fetch`] sends requests, and [`aws`], [`entra`] and [`google`] say which. [`authorize`] puts a credential into a request.
//! Source: docs/providers.md

pub mod authorize;
mod aws;
mod entra;
mod fetch;
mod google;
pub mod refresh;
mod source;

pub use self::source::{CredentialSource, HeldCredential, SourceState, SourceStatus};
