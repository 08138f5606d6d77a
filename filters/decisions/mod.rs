//! Flag decisions: which variation of which rule a user gets, from a datafile alone.
//!
//! A datafile is indexed once into a [`Project`]; deciding reads it, takes no lock and does no I/O. Everything
//! that is known elsewhere comes in as values ([`inputs`]): overrides, the user's profile, segments, predictions.
//! What has to be sent goes out as values: events, and what is new in the profile. Nothing here knows HTTP.
//!
//! | module | knows |
//! |---|---|
//! | [`project`] | the datafile, indexed; what is wrong with one |
//! | [`decide`] | decisions of flags |
//! | [`activate`] | the older calls: experiments and features by key |
//! | [`bandit`], [`segment`] | what is asked of predictors and of segments |
//! | [`notice`] | what listeners are told |
//! | [`event`] | impressions and conversions, as the backend expects them |
//! | [`ask`], [`members`], [`pairs`], [`keys`], [`answer`] | what callers send, and what they get |
//! | [`overview`] | the configuration as clients may see it |
//! | [`bucket`](mod@bucket) | which of ten thousand a user falls into |

pub mod activate;
pub mod answer;
pub mod ask;
pub mod bandit;
mod bucket;
mod condition;
mod datafile;
pub mod decide;
pub mod encode;
pub mod event;
mod holdout;
mod index;
pub mod inputs;
pub mod keys;
mod matcher;
pub mod members;
mod murmur;
pub mod notice;
pub mod options;
pub mod overview;
pub mod pairs;
pub mod profile_json;
pub mod project;
mod reason;
mod rule;
pub mod segment;
mod semver;
mod variable;

pub mod credentials;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

pub use bucket::bucket;
pub use decide::Decision;
pub use inputs::{Inputs, Profile};
pub use options::Options;
pub use project::{InvalidDatafile, Project};

/// Whose behaviour is shown where the contracts leave it open. Source: docs/decisions.md 19.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Compat {
    /// The document's, and the majority of the newest SDKs'.
    #[default]
    Document,
    /// The agent's of old, byte for byte.
    Agent,
}
