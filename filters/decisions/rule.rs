//! Evaluates one rule: whether the user meets it, and which variation it gives.

use super::borrowed_object::BorrowedValue;
use super::bucket::{bucket, owner};
use super::inputs::{Inputs, Predicted};
use super::project::{Project, Rule, Variation};
use super::reason::{self, Reasons};

/// The attribute that replaces the user's id for bucketing.
const BUCKETING_ID: &str = "$opt_bucketing_id";

/// The result of one rule.
#[derive(Debug)]
pub(super) enum Ruling<'p> {
    /// The rule gives nothing to this user.
    Pass,
    /// A variation, whether the profile has to remember it, and the id of the prediction behind it.
    Hit {
        variation: &'p Variation,
        is_new: bool,
        cmab_uuid: Option<Box<str>>,
    },
    NeedsPrediction,
    /// The prediction failed, and the decision ends.
    Failed,
}

impl<'p> Ruling<'p> {
    pub(super) fn hit(variation: &'p Variation) -> Self {
        Self::Hit {
            variation,
            is_new: false,
            cmab_uuid: None,
        }
    }
}

/// Returns whether the user meets the rule's audiences. Unknown counts as false.
pub(super) fn is_met(
    project: &Project,
    rule: &Rule,
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) -> bool {
    let Some(condition) = &rule.condition else {
        return true;
    };
    let (user, audiences, rules) = (inputs.user(), &project.audience_conditions, project.rules);
    let holds = if records_doubts(project, reasons) {
        condition.evaluate(&user, audiences, rules, &mut |doubt| {
            reasons.info(|| reason::doubt(doubt, &project.audiences));
        })
    } else {
        condition.evaluate(&user, audiences, rules, &mut |_| ())
    };
    holds.unwrap_or(false)
}

/// Records the doubts of a rule that is evaluated a second time. The agent evaluates the audiences of a rollout's
/// rule twice, to apply the rule and to bucket the user.
pub(super) fn repeat_doubts(
    project: &Project,
    rule: &Rule,
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) {
    if records_doubts(project, reasons) {
        is_met(project, rule, inputs, reasons);
    }
}

fn records_doubts(project: &Project, reasons: &Reasons) -> bool {
    project.rules.tells_doubts && reasons.wants_all()
}

/// Returns the id for bucketing.
pub(super) fn bucketing_id<'a>(
    project: &Project,
    inputs: &Inputs<'a>,
    rule: &Rule,
    reasons: &mut Reasons,
) -> &'a str {
    match inputs.attributes.get(BUCKETING_ID) {
        None | Some(BorrowedValue::Null) => inputs.user_id,
        Some(BorrowedValue::Text(id)) => id,
        Some(other) => {
            reasons.info(|| reason::bad_bucketing_id(&rule.key, other, project.rules));
            inputs.user_id
        }
    }
}

/// Returns the variation whose range contains the user's bucket.
pub(super) fn bucketed<'p>(project: &Project, rule: &'p Rule, id: &str) -> Option<&'p Variation> {
    is_in_group(project, rule, id).then_some(())?;
    let found = owner(&rule.ranges, bucket(id, &rule.id))?;
    found.and_then(|at| rule.variations.get(at))
}

/// Returns whether the user may take part. In a random group each user is in at most one experiment.
fn is_in_group(project: &Project, rule: &Rule, id: &str) -> bool {
    let group = rule.group.and_then(|at| project.groups.get(at));
    let Some(group) = group.filter(|group| group.is_random) else {
        return true;
    };
    owner(&group.ranges, bucket(id, &group.id)).is_some_and(|owner| *owner == rule.id)
}

/// Applies an experiment: overrides, whitelist, prediction or profile, audience, bucket.
/// Source: docs/facts/decision-engine.md B 4.
pub(super) fn experiment<'p>(
    project: &'p Project,
    rule: &'p Rule,
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) -> Ruling<'p> {
    let user = reason::quote(inputs.user_id, project.rules);
    if !rule.is_running {
        reasons.info(|| format!("Experiment \"{}\" is not running.", rule.key));
        return Ruling::Pass;
    }
    if let Some(variation) = find_chosen(project, rule, inputs, reasons) {
        return Ruling::hit(variation);
    }
    let has_profile = rule.cmab.is_none() || project.rules.reads_bandit_profiles;
    if has_profile && let Some(variation) = find_in_profile(project, rule, inputs, reasons) {
        return Ruling::hit(variation);
    }
    let holds = is_met(project, rule, inputs, reasons);
    reasons.info(|| reason::audiences("experiment", &rule.key, holds));
    if !holds {
        reasons.info(|| match rule.cmab {
            Some(_) => format!(
                "User {user} not in audience for CMAB experiment {}",
                rule.key
            ),
            None => format!(
                "User \"{user}\" does not meet conditions to be in experiment \"{}\".",
                rule.key
            ),
        });
        return Ruling::Pass;
    }
    let id = bucketing_id(project, inputs, rule, reasons);
    if let Some(cmab) = &rule.cmab {
        let takes_part = is_in_group(project, rule, id) && bucket(id, &rule.id) < cmab.end;
        if !takes_part {
            reasons.info(|| {
                format!(
                    "User {user} not in CMAB experiment {} due to traffic allocation",
                    rule.key
                )
            });
            return Ruling::Pass;
        }
        return apply_prediction(rule, inputs, reasons);
    }
    match bucketed(project, rule, id) {
        Some(variation) => Ruling::Hit {
            variation,
            is_new: true,
            cmab_uuid: None,
        },
        None => Ruling::Pass,
    }
}

/// Returns the variation of an override or of the whitelist. These ignore audience and traffic.
fn find_chosen<'p>(
    project: &Project,
    rule: &'p Rule,
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) -> Option<&'p Variation> {
    let user = reason::quote(inputs.user_id, project.rules);
    let mut overrides = inputs.overrides.iter();
    if let Some((_, key)) = overrides.find(|(experiment, _)| **experiment == *rule.key)
        && let Some(variation) = rule.variation(key)
    {
        reasons.info(|| format!("Override variation {key} found for user {user}"));
        return Some(variation);
    }
    let key = rule.whitelist.get(inputs.user_id)?;
    let variation = rule.variation(key);
    reasons.info(|| match variation {
        Some(_) => format!(
            "User \"{user}\" is whitelisted into variation \"{key}\" of experiment \"{}\".",
            rule.key
        ),
        None => format!(
            "User \"{user}\" is whitelisted into variation \"{key}\", which is not in the datafile."
        ),
    });
    variation
}

/// Returns the variation in the user's profile.
fn find_in_profile<'p>(
    project: &Project,
    rule: &'p Rule,
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) -> Option<&'p Variation> {
    let profile = inputs
        .profile
        .filter(|_| !inputs.options.ignore_user_profile)?;
    let id = profile.get(&rule.id)?;
    let user = reason::quote(inputs.user_id, project.rules);
    let variation = rule.find_variation_by_id(id);
    reasons.info(|| match variation {
        Some(variation) => format!(
            "User \"{user}\" was previously bucketed into variation \"{}\" of experiment \"{}\".",
            variation.key, rule.key
        ),
        None => format!(
            "User \"{user}\" was previously bucketed into variation with ID \"{id}\" for experiment \"{}\", but no matching variation was found.",
            rule.key
        ),
    });
    variation
}

fn apply_prediction<'p>(rule: &'p Rule, inputs: &Inputs<'_>, reasons: &mut Reasons) -> Ruling<'p> {
    let failed = |reasons: &mut Reasons| {
        reasons.error(format!(
            "Failed to fetch CMAB data for experiment {}.",
            rule.key
        ));
        Ruling::Failed
    };
    match inputs.predictions.get(&rule.id) {
        None => Ruling::NeedsPrediction,
        Some(Predicted::Failed) => failed(reasons),
        Some(Predicted::Variation { id, uuid }) => match rule.find_variation_by_id(id) {
            None => failed(reasons),
            Some(variation) => {
                reasons.info(|| {
                    format!(
                        "User bucketed into variation {} by CMAB service",
                        variation.key
                    )
                });
                Ruling::Hit {
                    variation,
                    is_new: false,
                    cmab_uuid: Some(uuid.clone()),
                }
            }
        },
    }
}
