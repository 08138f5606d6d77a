//! What a decision looks at beside the project: the user, and what is known elsewhere.

use std::collections::{BTreeMap, HashMap};

use super::matcher::UserAttributes;
use super::members::BorrowedObject;
use super::options::Options;

/// Which variation a user got before, by experiment: ids both.
pub type Profile = BTreeMap<Box<str>, Box<str>>;

/// A decision that the caller forces. Source: docs/decision-agent.md 2.2.
#[derive(Clone, Debug, Default)]
pub struct Forced {
    /// Of which flag.
    pub flag_key: Box<str>,
    /// Of which rule; none: of the flag as a whole.
    pub rule_key: Option<Box<str>>,
    /// What comes out.
    pub variation_key: Box<str>,
}

/// What was predicted for a user in an experiment.
#[derive(Clone, Debug)]
pub enum Predicted {
    /// A variation, and the id of the prediction.
    Variation {
        /// The variation's id.
        id: Box<str>,
        /// The prediction's.
        uuid: Box<str>,
    },
    /// Nothing could be learned.
    Failed,
}

/// Everything a decision looks at beside the project.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The user.
    pub user_id: &'a str,
    /// What is known of the user.
    pub attributes: &'a BorrowedObject<'a>,
    /// The user's segments, where they were fetched.
    pub segments: &'a [String],
    /// Decisions that the caller forces.
    pub forced: &'a [Forced],
    /// Overrides of this user: experiment key, variation key.
    pub overrides: &'a [(Box<str>, Box<str>)],
    /// The user's profile, where profiles are kept.
    pub profile: Option<&'a Profile>,
    /// Predictions by experiment id.
    pub predictions: &'a HashMap<Box<str>, Predicted>,
    /// Options.
    pub options: Options,
}

impl<'a> Inputs<'a> {
    pub(super) fn user(&self) -> UserAttributes<'a> {
        UserAttributes {
            attributes: self.attributes,
            segments: self.segments,
        }
    }

    pub(super) fn forced(&self, flag: &str, rule: Option<&str>) -> Option<&'a Forced> {
        let is_meant = |one: &&Forced| *one.flag_key == *flag && one.rule_key.as_deref() == rule;
        self.forced.iter().rev().find(is_meant)
    }
}
