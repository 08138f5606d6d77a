//! The choices of the engine where the public SDKs differ. Source: docs/decisions.md 19,
//! docs/facts/decision-engine.md B, C.

/// The choices of a protocol, as named behaviours. Cost: a few bytes, copied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EvaluationRules {
    /// The string in a list of conditions that names its operator.
    pub operator: OperatorString,
    /// AND is unknown at its first unknown condition, even where a later one is false.
    pub and_stops_at_unknown: bool,
    /// Numbers beyond 2^53 are compared; otherwise such a comparison is unknown.
    pub compares_inexact_numbers: bool,
    /// The version that needs a suffix, so that the user's shorter version is the later one.
    pub semver_suffix: SemverSuffix,
    /// Experiments run whatever their status; otherwise only those that are `Running`.
    pub runs_paused_experiments: bool,
    /// Experiments with predictions honour the user's profile too.
    pub reads_bandit_profiles: bool,
    /// The flags and rules for which a holdout holds.
    pub holdout_scope: HoldoutScope,
    /// Holdouts that exclude targeted deliveries let them through.
    pub spares_targeted_deliveries: bool,
    /// A feature rollout gives everyone else's variation to the users that it does not reach.
    pub opens_feature_rollouts: bool,
    /// An impression without a campaign names its experiment as the campaign.
    pub defaults_campaign_to_experiment: bool,
    /// How requests for predictions name attributes.
    pub prediction_attribute: AttributeName,
    /// Reasons name the audience that could not be evaluated.
    pub tells_doubts: bool,
    /// Reasons quote the request in full. Otherwise they cut it, as messages do.
    pub quotes_in_full: bool,
}

/// The string in a list of conditions that names its operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OperatorString {
    /// The first item. A list without an operator there is joined by OR.
    First,
    /// The last string, at any position. Another word means OR; a list without strings is unknown.
    Last,
}

/// The one of two versions that needs a suffix.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SemverSuffix {
    /// The condition's version. A release comes after its pre-releases and builds.
    Condition,
    /// The user's version, with the suffix of a pre-release. A release comes before its pre-releases.
    User,
}

/// The flags and rules for which a holdout holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HoldoutScope {
    /// A holdout holds for every flag, and a local holdout for the rules that it lists.
    EveryFlag,
    /// A holdout holds for the flags that it lists, or for every flag if it lists none. If one holdout without a list
    /// excludes a flag, no holdout without a list holds for that flag. Local holdouts are ignored.
    ListedFlags,
}

/// The names of attributes in requests for predictions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AttributeName {
    Id,
    Key,
}
