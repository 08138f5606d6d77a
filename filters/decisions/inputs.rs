//! The inputs of a decision other than the project.

use std::collections::{BTreeMap, HashMap};

use super::borrowed_object::BorrowedObject;
use super::matcher::UserAttributes;
use super::options::Options;

/// The variations that a user got before, by experiment id.
pub type Profile = BTreeMap<Box<str>, Box<str>>;

/// A decision that the caller forces. Source: docs/decision-agent.md 2.2.
#[derive(Clone, Debug, Default)]
pub struct ForcedDecision {
    pub flag_key: Box<str>,
    /// The rule, or `None` for the flag as a whole.
    pub rule_key: Option<Box<str>>,
    pub variation_key: Box<str>,
}

/// The prediction for a user in an experiment.
#[derive(Clone, Debug)]
pub enum Predicted {
    Variation {
        /// The id of the variation.
        id: Box<str>,
        uuid: Box<str>,
    },
    Failed,
}

/// The inputs of a decision other than the project.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    pub user_id: &'a str,
    pub attributes: &'a BorrowedObject<'a>,
    pub segments: &'a [String],
    pub forced: &'a [ForcedDecision],
    /// The overrides of this user: experiment key and variation key.
    pub overrides: &'a [(Box<str>, Box<str>)],
    pub profile: Option<&'a Profile>,
    /// Predictions by experiment id.
    pub predictions: &'a HashMap<Box<str>, Predicted>,
    pub options: Options,
}

impl<'a> Inputs<'a> {
    pub(super) fn user(&self) -> UserAttributes<'a> {
        UserAttributes {
            attributes: self.attributes,
            segments: self.segments,
        }
    }

    pub(super) fn forced(&self, flag: &str, rule: Option<&str>) -> Option<&'a ForcedDecision> {
        let is_meant =
            |one: &&ForcedDecision| *one.flag_key == *flag && one.rule_key.as_deref() == rule;
        self.forced.iter().rev().find(is_meant)
    }
}
