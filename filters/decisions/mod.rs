//! Flag decisions: which variation of which rule a user gets, from a datafile alone.
//!
//! A datafile is indexed once into a [`Project`]. A decision reads it, takes no lock and does no I/O. All other
//! inputs are values ([`inputs`]): overrides, the user's profile, segments, predictions. The results are values too:
//! decisions, events, and additions to the profile. The engine reads named rules ([`EvaluationRules`]) and knows no
//! protocol; only [`protocol`] knows the bytes of requests and responses.
//!
//! | module | knows |
//! |---|---|
//! | [`project`] | the indexed datafile, and why one is invalid |
//! | [`decide`] | decisions of flags |
//! | [`activate`] | the older endpoints: experiments and features by key |
//! | [`mod@explain`] | the rules of a flag as a user meets them |
//! | [`description`] | a project and its flags in words, for people |
//! | [`queued_event`] | events as they wait, for people |
//! | [`evaluation_rules`] | the choices of the engine where SDKs differ |
//! | [`protocol`] | the bytes of requests and responses: the published document's, the original agent's |
//! | [`request_body`], [`selection`], [`borrowed_object`], [`caseless_object`], [`keys`] | requests |
//! | [`response_body`], [`encode`], [`overview`] | responses |
//! | [`batch`], [`token`], [`webhook`], [`ofrep`], [`override_result`] | requests and responses of single endpoints |
//! | [`credentials`], [`errors`] | callers, and faults |
//! | [`event`], [`notice`] | impressions and conversions for the backend; notices for subscribers |
//! | [`cmab`], [`odp`] | the wires of the predictor and of the customer-data platform |
//! | [`datafile_source`] | the source of datafiles |
//! | [`bucket`](mod@bucket) | which of ten thousand buckets a user falls into |

pub mod activate;
pub mod batch;
pub mod borrowed_object;
mod bucket;
pub mod caseless_object;
pub mod cmab;
mod condition;
pub mod credentials;
mod datafile;
pub mod datafile_source;
pub mod decide;
pub mod description;
pub mod encode;
pub mod errors;
pub mod evaluation_rules;
pub mod event;
pub mod explain;
mod holdout;
mod index;
pub mod inputs;
pub mod keys;
mod matcher;
mod murmur;
pub mod notice;
pub mod odp;
pub mod ofrep;
pub mod options;
pub mod override_result;
pub mod overview;
pub mod profile_json;
pub mod project;
pub mod protocol;
pub mod queued_event;
mod reason;
pub mod request_body;
pub mod response_body;
mod rule;
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
