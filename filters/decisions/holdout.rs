//! Holdouts: users who do not get what a flag would give them, as a comparison.

use super::inputs::Inputs;
use super::project::{Project, Rule, Variation};
use super::reason::{self, Reasons};
use super::rule;

/// Returns the variation of a holdout if the user is in it.
fn in_holdout<'p>(
    project: &'p Project,
    holdout: &'p Rule,
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) -> Option<&'p Variation> {
    let user = reason::quote(inputs.user_id, project.rules);
    let key = &holdout.key;
    let holds = rule::is_met(project, holdout, inputs, reasons);
    reasons.info(|| reason::audiences("holdout", key, holds));
    reasons.info(|| {
        let does = if holds { "meets" } else { "does not meet" };
        format!("User {user} {does} conditions for holdout {key}.")
    });
    if !holds {
        return None;
    }
    let id = rule::bucketing_id(project, inputs, holdout, reasons);
    let variation = rule::bucketed(project, holdout, id);
    reasons.info(|| match variation {
        Some(variation) => format!(
            "User {user} is in variation {} of holdout {key}.",
            variation.key
        ),
        None => format!("User {user} is in no holdout variation."),
    });
    variation
}

/// Returns the first of these holdouts that contains the user.
pub(super) fn find_first<'p>(
    project: &'p Project,
    holdouts: &[usize],
    inputs: &Inputs<'_>,
    reasons: &mut Reasons,
) -> Option<(&'p Rule, &'p Variation)> {
    holdouts
        .iter()
        .filter_map(|at| project.holdouts.get(*at))
        .find_map(|holdout| Some((holdout, in_holdout(project, holdout, inputs, reasons)?)))
}
