//! The older endpoints: the variation of an experiment or the state of a feature, by key. Source: docs/decision-agent.md 2.3.

use super::decide;
use super::decide::{DecisionSource, Impression, PredictionRequest, RuleOutcome};
use super::inputs::Inputs;
use super::project::Project;
use super::reason::Reasons;
use super::rule::{self, Ruling};

/// An item of the response.
#[derive(Debug, Default)]
pub struct Activation<'p> {
    /// The feature that the request names, or an empty text.
    pub feature_key: Box<str>,
    /// The experiment that the request names, or that decided the feature.
    pub experiment_key: Box<str>,
    /// The key of the variation, or an empty text.
    pub variation_key: &'p str,
    /// `feature`, `experiment`, or empty for an unknown key.
    pub kind: &'static str,
    pub is_enabled: bool,
    /// Variables: key, value as JSON.
    pub variables: Vec<(&'p str, &'p str)>,
    pub error: String,
    pub impression: Option<Impression<'p>>,
    /// The experiment id and the variation id that the profile has to remember.
    pub remembers: Option<(&'p str, &'p str)>,
    /// The prediction without which the decision is not possible.
    pub wants: Option<PredictionRequest<'p>>,
}

/// Decides an experiment.
pub fn experiment<'p>(project: &'p Project, key: &str, inputs: &Inputs<'_>) -> Activation<'p> {
    let Some(rule) = project.experiment(key) else {
        return Activation {
            experiment_key: key.into(),
            error: "experimentKey not found".to_owned(),
            ..Activation::default()
        };
    };
    let mut reasons = Reasons::new(false);
    let mut item = Activation {
        experiment_key: key.into(),
        kind: "experiment",
        ..Activation::default()
    };
    match rule::experiment(project, rule, inputs, &mut reasons) {
        Ruling::Pass => {}
        Ruling::NeedsPrediction => item.wants = PredictionRequest::from_rule(rule),
        Ruling::Failed => item.error = reasons.into_texts().join(" "),
        Ruling::Hit {
            variation,
            is_new,
            cmab_uuid,
        } => {
            let outcome = RuleOutcome {
                rule: Some(rule),
                variation: Some(variation),
                source: DecisionSource::Experiment,
                cmab_uuid,
                ..RuleOutcome::default()
            };
            item.variation_key = &variation.key;
            item.is_enabled = true;
            item.impression = Some(decide::impression("", &outcome));
            item.remembers = is_new.then_some((&*rule.id, &*variation.id));
        }
    }
    item
}

/// Decides a feature.
pub fn feature<'p>(project: &'p Project, key: &str, inputs: &Inputs<'_>) -> Activation<'p> {
    let Some(flag) = project.flag(key) else {
        return Activation {
            feature_key: key.into(),
            error: "featureKey not found".to_owned(),
            ..Activation::default()
        };
    };
    let mut reasons = Reasons::new(false);
    let outcome = decide::outcome(project, flag, inputs, &mut reasons);
    let variation = outcome.variation;
    let variables = decide::variables(flag, variation, &mut reasons);
    let is_experiment = outcome.source != DecisionSource::Rollout;
    let shown = outcome.rule.zip(variation).filter(|_| is_experiment);
    Activation {
        feature_key: key.into(),
        experiment_key: shown.map_or("", |(rule, _)| &rule.key).into(),
        variation_key: shown.map_or("", |(_, variation)| &variation.key),
        kind: "feature",
        is_enabled: variation.is_some_and(|variation| variation.is_enabled),
        variables,
        error: reasons.into_texts().join(" "),
        impression: (shown.is_some() || project.send_flag_decisions)
            .then(|| decide::impression(&flag.key, &outcome)),
        remembers: outcome
            .rule
            .zip(variation)
            .filter(|_| outcome.is_new)
            .map(|(rule, variation)| (&*rule.id, &*variation.id)),
        wants: outcome.wants(),
    }
}
