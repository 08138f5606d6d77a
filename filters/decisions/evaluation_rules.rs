//! The choices of the engine where the public SDKs differ. Source: docs/decisions.md 19, docs/facts/decision-engine.md B, C.

/// The choices of a protocol, as named behaviours. Cost: a few bytes, copied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EvaluationRules {
    /// Which string in a list of conditions is its operator.
    pub operator: OperatorString,
    /// AND is unknown at its first unknown condition, even where a later one is false.
    pub and_stops_at_unknown: bool,
    /// Numbers beyond 2^53 are compared; otherwise such a comparison is unknown.
    pub compares_inexact_numbers: bool,
    /// Which version has to have a suffix, so that the user's shorter version is the later one.
    pub semver_suffix: SemverSuffix,
    /// Experiments run whatever their status; otherwise only those that are `Running`.
    pub runs_paused_experiments: bool,
    /// Experiments with predictions honour the user's profile too.
    pub reads_bandit_profiles: bool,
    /// Which flags and rules a holdout holds for.
    pub holdout_scope: HoldoutScope,
    /// Holdouts that exclude targeted deliveries let them through.
    pub spares_targeted_deliveries: bool,
    /// A feature rollout gives the users that it does not reach the variation of everyone else.
    pub opens_feature_rollouts: bool,
    /// An impression without a campaign names its experiment as the campaign.
    pub defaults_campaign_to_experiment: bool,
    /// How requests for predictions name attributes.
    pub prediction_attribute: AttributeName,
    /// Reasons say which audience could not be judged.
    pub tells_doubts: bool,
    /// Reasons quote the request in full; otherwise they cut it, as messages do.
    pub quotes_in_full: bool,
}

/// Which string in a list of conditions is its operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OperatorString {
    /// The first item. Without an operator there, the list is joined by OR.
    First,
    /// The last string, wherever it stands. Another word means OR; without a string the list is unknown.
    Last,
}

/// Which of two versions has to have a suffix.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SemverSuffix {
    /// The condition's: a release comes after its pre-releases and builds.
    Condition,
    /// The user's, which has to be a pre-release: a release comes before its pre-releases.
    User,
}

/// Which flags and rules a holdout holds for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HoldoutScope {
    /// A holdout holds for every flag, and a local holdout for the rules that it lists.
    EveryFlag,
    /// A holdout holds for the flags that it lists, or for every flag where it lists none. Where one of those without a
    /// list excludes a flag, no holdout without a list holds for it. Local holdouts are ignored.
    ListedFlags,
}

/// How requests for predictions name attributes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AttributeName {
    Id,
    Key,
}
