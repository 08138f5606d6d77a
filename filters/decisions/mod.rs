//! Flag decisions: which variation of which rule a user gets, from a datafile alone.
//!
//! A datafile is indexed once into a [`Project`]; deciding reads it, takes no lock and does no I/O. Everything
//! that is known elsewhere comes in as values ([`inputs`]): overrides, the user's profile, segments, predictions.
//! What has to be sent goes out as values: events, and what is new in the profile. The engine reads named rules
//! ([`EvaluationRules`]) and knows no protocol; only [`protocol`] knows which bytes a caller sends and gets.
//!
//! | module | knows |
//! |---|---|
//! | [`project`] | the datafile, indexed; what is wrong with one |
//! | [`decide`] | decisions of flags |
//! | [`activate`] | the older calls: experiments and features by key |
//! | [`bandit`], [`segment`] | what is asked of predictors and of segments |
//! | [`notice`] | what listeners are told |
//! | [`event`] | impressions and conversions, as the backend expects them |
//! | [`evaluation_rules`] | what the engine does where SDKs differ |
//! | [`protocol`] | the bytes of requests and responses: the published document's, the original agent's |
//! | [`ask`], [`selection`], [`members`], [`pairs`], [`keys`], [`answer`] | what callers send, and what they get |
//! | [`batch`], [`token`], [`webhook`], [`ofrep`], [`overriding`] | the same for single endpoints |
//! | [`credentials`], [`errors`] | who may ask, and what is refused |
//! | [`datafile_source`] | where datafiles are fetched, and what the source's status means |
//! | [`overview`] | the configuration as clients may see it |
//! | [`bucket`](mod@bucket) | which of ten thousand a user falls into |

pub mod activate;
pub mod answer;
pub mod ask;
pub mod bandit;
pub mod batch;
mod bucket;
mod condition;
pub mod credentials;
mod datafile;
pub mod datafile_source;
pub mod decide;
pub mod encode;
pub mod errors;
pub mod evaluation_rules;
pub mod event;
mod holdout;
mod index;
pub mod inputs;
pub mod keys;
mod matcher;
pub mod members;
mod murmur;
pub mod notice;
pub mod ofrep;
pub mod options;
pub mod overriding;
pub mod overview;
pub mod pairs;
pub mod profile_json;
pub mod project;
pub mod protocol;
mod reason;
mod rule;
pub mod segment;
pub mod selection;
mod semver;
pub mod token;
mod variable;
pub mod webhook;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

pub use bucket::bucket;
pub use decide::Decision;
pub use evaluation_rules::EvaluationRules;
pub use inputs::{Inputs, Profile};
pub use options::Options;
pub use project::{InvalidDatafile, Project};
