//! A datafile, indexed: immutable, and shared by all decisions.

use std::collections::HashMap;
use std::fmt;

use foldhash::quality::RandomState;
use serde_json::Value;

use super::bucket::BucketRange;
use super::condition::Condition;
use super::evaluation_rules::EvaluationRules;
use super::variable::Variable;

/// Parts of a datafile by id or key. The author of a fetched datafile chooses its keys, so each map hashes with its
/// own random seed.
pub(super) type ByText<T> = HashMap<Box<str>, T, RandomState>;

/// Why a datafile cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InvalidDatafile(pub(super) String);

impl fmt::Display for InvalidDatafile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidDatafile {}

/// The project of a datafile.
#[derive(Debug)]
pub struct Project {
    /// The choices where SDKs differ.
    pub rules: EvaluationRules,
    pub account_id: Box<str>,
    pub project_id: Box<str>,
    /// The revision. Two datafiles with one revision are the same.
    pub revision: Box<str>,
    /// The SDK key in the datafile, which may differ from the one with which the datafile was fetched.
    pub sdk_key: Box<str>,
    pub environment_key: Box<str>,
    /// `US` or `EU`.
    pub region: Box<str>,
    pub(super) anonymize_ip: bool,
    pub(super) bot_filtering: bool,
    pub(super) send_flag_decisions: bool,
    pub(super) attributes: Vec<Attribute>,
    pub(super) attribute_ids: ByText<usize>,
    pub(super) events: Vec<ConversionEvent>,
    pub(super) event_keys: ByText<usize>,
    pub(super) audiences: Vec<Audience>,
    pub(super) audience_conditions: Vec<Condition>,
    pub(super) experiments: Vec<Rule>,
    pub(super) experiment_keys: ByText<usize>,
    pub(super) groups: Vec<ExclusionGroup>,
    pub(super) flags: Vec<Flag>,
    pub(super) flag_keys: ByText<usize>,
    pub(super) rollouts: Vec<Vec<Rule>>,
    pub(super) holdouts: Vec<Rule>,
    /// The customer-data platform, if the project uses one.
    pub odp: Option<Odp>,
    pub(super) segments: Vec<Box<str>>,
}

/// The customer-data platform in the datafile.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Odp {
    pub host: Box<str>,
    /// The key for the platform's API.
    pub public_key: Box<str>,
}

#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) id: Box<str>,
    pub(super) key: Box<str>,
}

#[derive(Debug)]
pub(super) struct ConversionEvent {
    pub(super) id: Box<str>,
    pub(super) key: Box<str>,
    pub(super) experiment_ids: Vec<Box<str>>,
}

#[derive(Debug)]
pub(super) struct Audience {
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    /// As written, for the overview.
    pub(super) conditions: Value,
}

#[derive(Debug)]
pub(super) struct ExclusionGroup {
    pub(super) id: Box<str>,
    pub(super) is_random: bool,
    /// The experiment ids that own the buckets.
    pub(super) ranges: Vec<BucketRange<Box<str>>>,
}

/// An experiment, a rule of a rollout, or a holdout.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: Box<str>,
    pub(super) key: Box<str>,
    pub(super) layer_id: Box<str>,
    pub(super) is_running: bool,
    pub(super) is_targeted_delivery: bool,
    /// Whether this is a holdout that lets targeted deliveries through.
    pub(super) spares_deliveries: bool,
    pub(super) condition: Option<Condition>,
    /// As written, for the overview.
    pub(super) audience_conditions: Value,
    pub(super) ranges: Vec<BucketRange<Option<usize>>>,
    pub(super) variations: Vec<Variation>,
    /// Variation keys by user.
    pub(super) whitelist: ByText<Box<str>>,
    pub(super) group: Option<usize>,
    pub(super) cmab: Option<Cmab>,
    /// Local holdouts of the rule.
    pub(super) holdouts: Vec<usize>,
}

impl Rule {
    pub(super) fn variation(&self, key: &str) -> Option<&Variation> {
        self.variations.iter().find(|one| &*one.key == key)
    }

    pub(super) fn find_variation_by_id(&self, id: &str) -> Option<&Variation> {
        self.variations.iter().find(|one| &*one.id == id)
    }
}

#[derive(Debug)]
pub(super) struct Cmab {
    /// The keys and ids of the attributes that the predictor may see.
    pub(super) attributes: Vec<(Box<str>, Box<str>)>,
    /// The first bucket outside of the experiment.
    pub(super) end: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Variation {
    pub(super) id: Box<str>,
    pub(super) key: Box<str>,
    pub(super) is_enabled: bool,
    /// Values by the variable's id, as written.
    pub(super) values: Vec<(Box<str>, Box<str>)>,
}

/// A flag.
#[derive(Debug)]
pub(super) struct Flag {
    pub(super) id: Box<str>,
    pub(super) key: Box<str>,
    pub(super) experiments: Vec<usize>,
    pub(super) rollout_id: Box<str>,
    pub(super) rollout: Option<usize>,
    pub(super) variables: Vec<Variable>,
    pub(super) values: ByText<Vec<super::variable::TypedValue>>,
    /// Global holdouts.
    pub(super) holdouts: Vec<usize>,
}

impl Project {
    /// Indexes a datafile.
    ///
    /// Errors: the datafile is not a JSON object of the known shape, or not of version 4. Cost: about a second for a
    /// hundred megabytes, so call this outside of worker threads.
    pub fn parse(datafile: &[u8], rules: EvaluationRules) -> Result<Self, InvalidDatafile> {
        let written: super::datafile::Datafile = serde_json::from_slice(datafile)
            .map_err(|error| InvalidDatafile(format!("the datafile cannot be read: {error}")))?;
        if written.version != "4" {
            return Err(InvalidDatafile(format!(
                "unsupported datafile version {:?}; \"4\" is accepted",
                written.version
            )));
        }
        super::index::index(written, rules)
    }

    /// Returns the keys of all flags, in the datafile's order.
    pub fn flag_keys(&self) -> impl Iterator<Item = &str> {
        self.flags.iter().map(|flag| &*flag.key)
    }

    /// Returns the keys of all experiments, in the datafile's order.
    pub fn experiment_keys(&self) -> impl Iterator<Item = &str> {
        self.experiments.iter().map(|rule| &*rule.key)
    }

    /// Returns whether the project has a flag with this key.
    pub fn has_flag(&self, key: &str) -> bool {
        self.flag_keys.contains_key(key)
    }

    /// Returns whether the project has the experiment, and whether the experiment has the variation.
    pub fn has_variation(&self, experiment: &str, variation: &str) -> (bool, bool) {
        let rule = self.experiment(experiment);
        let found = rule.and_then(|rule| rule.variation(variation));
        (rule.is_some(), found.is_some())
    }

    /// Returns whether a flag uses the experiment with this key.
    pub fn is_flag_experiment(&self, experiment: &str) -> bool {
        let at = self.experiment_keys.get(experiment);
        at.is_some_and(|at| self.flags.iter().any(|flag| flag.experiments.contains(at)))
    }

    /// Returns the segments that conditions test. If there are none, no segments need to be fetched.
    pub fn segments(&self) -> &[Box<str>] {
        &self.segments
    }

    pub(super) fn flag(&self, key: &str) -> Option<&Flag> {
        self.flag_keys.get(key).and_then(|at| self.flags.get(*at))
    }

    pub(super) fn experiment(&self, key: &str) -> Option<&Rule> {
        let at = self.experiment_keys.get(key)?;
        self.experiments.get(*at)
    }

    /// Returns the experiments of a flag, in order.
    pub(super) fn flag_experiments<'p>(&'p self, flag: &'p Flag) -> impl Iterator<Item = &'p Rule> {
        flag.experiments
            .iter()
            .filter_map(|at| self.experiments.get(*at))
    }

    /// Returns the rules of a flag's rollout, in order.
    pub(super) fn rollout_rules(&self, flag: &Flag) -> &[Rule] {
        let rollout = flag.rollout.and_then(|at| self.rollouts.get(at));
        rollout.map_or(&[], Vec::as_slice)
    }
}
