//! The inputs of a decision beside the project.

use std::collections::{BTreeMap, HashMap};

use super::borrowed_object::BorrowedObject;
use super::matcher::UserAttributes;
use super::options::Options;

/// The variations that a user got before: variation ids by experiment id.
pub type Profile = BTreeMap<Box<str>, Box<str>>;

/// A decision that the caller forces. Source: docs/decision-agent.md 2.2.
#[derive(Clone, Debug, Default)]
pub struct Forced {
    /// The flag.
    pub flag_key: Box<str>,
    /// The rule; `None`: the flag as a whole.
    pub rule_key: Option<Box<str>>,
    /// The variation.
    pub variation_key: Box<str>,
}

/// The prediction for a user in an experiment.
#[derive(Clone, Debug)]
pub enum Predicted {
    /// A variation.
    Variation {
        /// The variation's id.
        id: Box<str>,
        /// The prediction's id.
        uuid: Box<str>,
    },
    /// There is no prediction.
    Failed,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The user's id.
    pub user_id: &'a str,
    /// The user's attributes.
    pub attributes: &'a BorrowedObject<'a>,
    /// The user's segments, if they were fetched.
    pub segments: &'a [String],
    /// Decisions that the caller forces.
    pub forced: &'a [Forced],
    /// Overrides of this user: experiment key, variation key.
    pub overrides: &'a [(Box<str>, Box<str>)],
    /// The user's profile, if profiles are stored.
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
