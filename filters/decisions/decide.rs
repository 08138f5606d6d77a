//! Decisions of flags: forced, holdouts, experiments, rollout, in this order. Source: docs/facts/decision-engine.md B.

use std::borrow::Cow;

use super::holdout;
use super::inputs::Inputs;
use super::project::{Flag, Project, Rule, Variation};
use super::reason::{self, Reasons};
use super::rule::{self, Ruling};

/// The kind of rule that gave a variation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DecisionSource {
    /// An experiment of a flag.
    FeatureTest,
    /// A rule of a rollout, or no rule.
    #[default]
    Rollout,
    Holdout,
    /// An experiment that the request names by its key.
    Experiment,
}

impl DecisionSource {
    /// Returns the name in events.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::FeatureTest => "feature-test",
            Self::Rollout => "rollout",
            Self::Holdout => "holdout",
            Self::Experiment => "experiment",
        }
    }
}

/// A decision.
#[derive(Debug, Default)]
pub struct Decision<'p> {
    pub flag_key: Cow<'p, str>,
    /// The key of the rule that decided, or an empty text.
    pub rule_key: &'p str,
    pub experiment_id: &'p str,
    /// The key of the variation, or an empty text.
    pub variation_key: &'p str,
    pub variation_id: &'p str,
    pub is_enabled: bool,
    /// Variables: key, value as JSON.
    pub variables: Vec<(&'p str, &'p str)>,
    pub reasons: Vec<String>,
    pub source: DecisionSource,
    /// Whether the project has the flag.
    pub is_known: bool,
    /// Whether the delivery for everyone else decided.
    pub is_everyone_else: bool,
    pub impressions: Vec<Impression<'p>>,
    /// The experiment id and the variation id that the profile has to remember.
    pub remembers: Option<(&'p str, &'p str)>,
    /// The prediction without which the decision is not possible.
    pub wants: Option<PredictionRequest<'p>>,
}

/// A prediction that a decision needs.
#[derive(Clone, Debug)]
pub struct PredictionRequest<'p> {
    pub experiment_id: &'p str,
    /// The keys and ids of the attributes that the predictor may see.
    pub attributes: &'p [(Box<str>, Box<str>)],
}

impl<'p> PredictionRequest<'p> {
    pub(super) fn from_rule(rule: &'p Rule) -> Option<Self> {
        Some(Self {
            experiment_id: &rule.id,
            attributes: &rule.cmab.as_ref()?.attributes,
        })
    }
}

/// An impression to send.
#[derive(Clone, Debug)]
pub struct Impression<'p> {
    pub(super) layer_id: &'p str,
    pub(super) experiment_id: &'p str,
    pub(super) variation_id: &'p str,
    pub(super) flag_key: &'p str,
    pub(super) rule_key: &'p str,
    pub(super) rule_type: &'static str,
    pub(super) variation_key: &'p str,
    pub(super) is_enabled: bool,
    pub(super) cmab_uuid: Option<Box<str>>,
}

/// The result of the rules of a flag.
#[derive(Debug, Default)]
pub(super) struct RuleOutcome<'p> {
    pub(super) rule: Option<&'p Rule>,
    pub(super) variation: Option<&'p Variation>,
    pub(super) source: DecisionSource,
    pub(super) is_new: bool,
    pub(super) cmab_uuid: Option<Box<str>>,
    /// The holdout that would have excluded the user, but let a targeted delivery through.
    pub(super) spared: Option<(&'p Rule, &'p Variation)>,
    pub(super) has_failed: bool,
    pub(super) wants: Option<&'p Rule>,
}

impl<'p> RuleOutcome<'p> {
    /// Returns the prediction that the experiment needs first.
    pub(super) fn wants(&self) -> Option<PredictionRequest<'p>> {
        self.wants.and_then(PredictionRequest::from_rule)
    }

    fn new(rule: Option<&'p Rule>, variation: &'p Variation, source: DecisionSource) -> Self {
        Self {
            rule,
            variation: Some(variation),
            source,
            ..Self::default()
        }
    }
}

/// Decides one flag. Cost: no lock; allocates for the decision, and for reasons if the request wants them.
pub fn decide<'p>(project: &'p Project, key: &str, inputs: &Inputs<'_>) -> Decision<'p> {
    let mut reasons = Reasons::new(inputs.options.include_reasons);
    let Some(flag) = project.flag(key) else {
        reasons.error(reason::no_flag(key, project.rules));
        return unknown(key, reasons);
    };
    let outcome = outcome(project, flag, inputs, &mut reasons);
    if outcome.has_failed || outcome.wants.is_some() {
        return Decision {
            is_known: true,
            wants: outcome.wants(),
            ..unknown(key, reasons)
        };
    }
    let variation = outcome.variation;
    let is_enabled = variation.is_some_and(|variation| variation.is_enabled);
    let variables = if inputs.options.exclude_variables {
        Vec::new()
    } else {
        variables(flag, variation, &mut reasons)
    };
    let rule_key = outcome.rule.map_or("", |rule| &rule.key);
    Decision {
        flag_key: Cow::Borrowed(&flag.key),
        rule_key,
        experiment_id: outcome.rule.map_or("", |rule| &rule.id),
        variation_key: variation.map_or("", |variation| &variation.key),
        variation_id: variation.map_or("", |variation| &variation.id),
        is_enabled,
        variables,
        reasons: reasons.into_texts(),
        source: outcome.source,
        is_known: true,
        is_everyone_else: is_everyone_else(project, flag, rule_key),
        impressions: impressions(project, flag, &outcome, inputs),
        remembers: outcome
            .rule
            .zip(variation)
            .filter(|_| outcome.is_new && !inputs.options.ignore_user_profile)
            .map(|(rule, variation)| (&*rule.id, &*variation.id)),
        wants: None,
    }
}

fn unknown<'p>(key: &str, reasons: Reasons) -> Decision<'p> {
    Decision {
        flag_key: key.to_owned().into(),
        rule_key: "",
        experiment_id: "",
        variation_key: "",
        variation_id: "",
        is_enabled: false,
        variables: Vec::new(),
        reasons: reasons.into_texts(),
        source: DecisionSource::Rollout,
        is_known: false,
        is_everyone_else: false,
        impressions: Vec::new(),
        remembers: None,
        wants: None,
    }
}

/// Applies forced decisions, holdouts and rules, in this order.
pub(super) fn outcome<'p>(
    project: &'p Project,
    flag: &'p Flag,
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) -> RuleOutcome<'p> {
    if let Some(variation) = forced(project, flag, None, inputs, reasons) {
        return RuleOutcome::new(None, variation, DecisionSource::FeatureTest);
    }
    let holdout = holdout::find_first(project, &flag.holdouts, inputs, reasons);
    let excluding = holdout.filter(|(holdout, _)| !spares(project, holdout));
    if let Some((holdout, variation)) = excluding {
        return RuleOutcome::new(Some(holdout), variation, DecisionSource::Holdout);
    }
    let reached = match experiments(project, flag, holdout.is_some(), inputs, reasons) {
        Some(outcome) => outcome,
        None => rollout(project, flag, inputs, reasons),
    };
    RuleOutcome {
        spared: holdout,
        ..reached
    }
}

/// Returns whether the holdout lets targeted deliveries through.
fn spares(project: &Project, holdout: &Rule) -> bool {
    holdout.spares_deliveries && project.rules.spares_targeted_deliveries
}

fn experiments<'p>(
    project: &'p Project,
    flag: &'p Flag,
    only_deliveries: bool,
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) -> Option<RuleOutcome<'p>> {
    let rules = project.flag_experiments(flag);
    for rule in rules.filter(|rule| !only_deliveries || rule.is_targeted_delivery) {
        if let Some(variation) = forced(project, flag, Some(rule), inputs, reasons) {
            return Some(RuleOutcome::new(
                Some(rule),
                variation,
                DecisionSource::FeatureTest,
            ));
        }
        if let Some((holdout, variation)) =
            holdout::find_first(project, &rule.holdouts, inputs, reasons)
        {
            return Some(RuleOutcome::new(
                Some(holdout),
                variation,
                DecisionSource::Holdout,
            ));
        }
        let reached = match rule::experiment(project, rule, inputs, reasons) {
            Ruling::Pass => continue,
            Ruling::Hit {
                variation,
                is_new,
                cmab_uuid,
            } => RuleOutcome {
                is_new,
                cmab_uuid,
                ..RuleOutcome::new(Some(rule), variation, DecisionSource::FeatureTest)
            },
            Ruling::NeedsPrediction => RuleOutcome {
                wants: Some(rule),
                ..RuleOutcome::default()
            },
            Ruling::Failed => RuleOutcome {
                has_failed: true,
                ..RuleOutcome::default()
            },
        };
        return Some(reached);
    }
    None
}

/// Applies the rules of the rollout. A user who meets a rule but falls into none of its buckets skips to the last
/// rule.
fn rollout<'p>(
    project: &'p Project,
    flag: &'p Flag,
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) -> RuleOutcome<'p> {
    let user = reason::quote(inputs.user_id, project.rules);
    if flag.rollout.is_none() {
        reasons.info(|| {
            format!(
                "Rollout with ID \"{}\" is not in the datafile.",
                flag.rollout_id
            )
        });
    }
    let rules = project.rollout_rules(flag);
    let mut at = 0;
    while let Some(rule) = rules.get(at) {
        let is_last = at + 1 == rules.len();
        if let Some(variation) = forced(project, flag, Some(rule), inputs, reasons) {
            return RuleOutcome::new(Some(rule), variation, DecisionSource::Rollout);
        }
        if let Some((holdout, variation)) =
            holdout::find_first(project, &rule.holdouts, inputs, reasons)
        {
            return RuleOutcome::new(Some(holdout), variation, DecisionSource::Holdout);
        }
        if !rule::is_met(project, rule, inputs, reasons) {
            reasons.info(|| {
                format!(
                    "User \"{user}\" does not meet conditions for targeting rule {}.",
                    at + 1
                )
            });
            at += 1;
            continue;
        }
        rule::repeat_doubts(project, rule, inputs, reasons);
        reasons.info(|| reason::audiences("experiment", &rule.key, true));
        if is_last {
            reasons.info(|| {
                format!("User \"{user}\" meets conditions for targeting rule \"Everyone Else\".")
            });
        }
        let id = rule::bucketing_id(project, inputs, rule, reasons);
        if let Some(variation) = rule::bucketed(project, rule, id) {
            return RuleOutcome::new(Some(rule), variation, DecisionSource::Rollout);
        }
        if is_last {
            break;
        }
        at = rules.len() - 1;
    }
    RuleOutcome::default()
}

/// Returns the variation that the caller forces. It may be any variation of the flag.
fn forced<'p>(
    project: &'p Project,
    flag: &'p Flag,
    rule: Option<&Rule>,
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) -> Option<&'p Variation> {
    let forced = inputs.forced(&flag.key, rule.map(|rule| &*rule.key))?;
    let mut rules = project
        .flag_experiments(flag)
        .chain(project.rollout_rules(flag));
    let variation = rules.find_map(|rule| rule.variation(&forced.variation_key));
    let is_valid = variation.is_some();
    reasons.info(|| reason::forced(is_valid, forced, inputs.user_id, project.rules));
    variation
}

/// Returns the values of the flag's variables in a variation.
pub(super) fn variables<'p>(
    flag: &'p Flag,
    variation: Option<&Variation>,
    reasons: &mut Reasons,
) -> Vec<(&'p str, &'p str)> {
    let own = variation.and_then(|variation| flag.values.get(&variation.id));
    let own = own.filter(|_| variation.is_some_and(|variation| variation.is_enabled));
    let mut found = Vec::with_capacity(flag.variables.len());
    for (at, variable) in flag.variables.iter().enumerate() {
        let typed = own
            .and_then(|own| own.get(at))
            .unwrap_or(&variable.typed_default);
        if typed.is_bad {
            reasons.error(reason::bad_variable(&variable.key));
        }
        found.push((&*variable.key, &*typed.json));
    }
    found
}

/// Returns whether the rule is the delivery for everyone else. Such a rule has its id as its key.
fn is_everyone_else(project: &Project, flag: &Flag, rule_key: &str) -> bool {
    let mut rules = project.rollout_rules(flag).iter();
    rule_key.starts_with("default-")
        && rules.any(|rule| *rule.key == *rule_key && rule.id == rule.key)
}

/// Returns the impressions of a decision. Source: docs/facts/decision-engine.md G.
fn impressions<'p>(
    project: &'p Project,
    flag: &'p Flag,
    outcome: &RuleOutcome<'p>,
    inputs: &Inputs<'_>,
) -> Vec<Impression<'p>> {
    if inputs.options.disable_decision_event {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Some((holdout, variation)) = outcome
        .spared
        .filter(|_| outcome.source != DecisionSource::Holdout)
    {
        let spared = RuleOutcome::new(Some(holdout), variation, DecisionSource::Holdout);
        found.push(impression(&flag.key, &spared));
    }
    let always = outcome.source != DecisionSource::Rollout && outcome.variation.is_some();
    if always || project.send_flag_decisions {
        found.push(impression(&flag.key, outcome));
    }
    found
}

pub(super) fn impression<'p>(flag_key: &'p str, outcome: &RuleOutcome<'p>) -> Impression<'p> {
    let (rule, variation) = (outcome.rule, outcome.variation);
    Impression {
        layer_id: rule.map_or("", |rule| &rule.layer_id),
        experiment_id: rule.map_or("", |rule| &rule.id),
        variation_id: variation.map_or("", |variation| &variation.id),
        flag_key,
        rule_key: rule.map_or("", |rule| &rule.key),
        rule_type: outcome.source.as_str(),
        variation_key: variation.map_or("", |variation| &variation.key),
        is_enabled: variation.is_some_and(|variation| variation.is_enabled),
        cmab_uuid: outcome.cmab_uuid.clone(),
    }
}
