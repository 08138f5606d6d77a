//! Shows how a user meets each rule of a flag: the audience, the bucket, and the variation of the bucket. The reasons
//! of the decision say in which order rules count, and why a rule was skipped.

use serde_json::{Map, Value, json};

use super::bucket::{bucket, owner};
use super::decide::{Decision, DecisionSource};
use super::inputs::Inputs;
use super::project::{Flag, Project, Rule, Variation};
use super::reason::Reasons;
use super::rule;

/// Returns the rules of a flag in order, or an empty list for an unknown flag. Each rule is `{type, key, id,
/// has_decided, is_running, audience, bucket, group?, ranges or bandit, bucketed, override?, whitelisted?,
/// profile?}`. `decided` is the decision for the same inputs. No event is sent and no profile changes. Cost: that of
/// a decision which evaluates every rule.
pub fn explain(
    project: &Project,
    key: &str,
    inputs: &Inputs<'_>,
    decided: &Decision<'_>,
) -> Vec<Value> {
    let Some(flag) = project.flag(key) else {
        return Vec::new();
    };
    let rules = rules_in_order(project, flag).into_iter();
    let explained = rules.map(|(source, rule)| {
        let has_decided = decided.source == source
            && !decided.variation_key.is_empty()
            && *decided.experiment_id == *rule.id;
        explained(project, rule, inputs, (rule_kind(source), has_decided))
    });
    explained.collect()
}

/// Returns the rules of a flag in order: its holdouts, its experiments and the rules of its rollout, each behind its own
/// holdouts.
pub(super) fn rules_in_order<'p>(
    project: &'p Project,
    flag: &'p Flag,
) -> Vec<(DecisionSource, &'p Rule)> {
    let holdouts = |numbers: &'p [usize]| {
        let found = numbers.iter().filter_map(|at| project.holdouts.get(*at));
        found.map(|holdout| (DecisionSource::Holdout, holdout))
    };
    let mut all: Vec<(DecisionSource, &Rule)> = holdouts(&flag.holdouts).collect();
    for rule in project.flag_experiments(flag) {
        all.extend(holdouts(&rule.holdouts));
        all.push((DecisionSource::FeatureTest, rule));
    }
    for rule in project.rollout_rules(flag) {
        all.extend(holdouts(&rule.holdouts));
        all.push((DecisionSource::Rollout, rule));
    }
    all
}

/// Returns the word for a rule: `experiment`, `rollout` or `holdout`.
pub(super) fn rule_kind(source: DecisionSource) -> &'static str {
    match source {
        DecisionSource::FeatureTest | DecisionSource::Experiment => "experiment",
        DecisionSource::Rollout => "rollout",
        DecisionSource::Holdout => "holdout",
    }
}

fn explained(
    project: &Project,
    rule: &Rule,
    inputs: &Inputs<'_>,
    (kind, has_decided): (&str, bool),
) -> Value {
    let id = rule::bucketing_id(project, inputs, rule, &mut Reasons::default());
    let number = bucket(id, &rule.id);
    let mut members = Map::new();
    let mut add = |name: &str, value: Value| _ = members.insert(name.to_owned(), value);
    add("type", kind.into());
    add("key", (&*rule.key).into());
    add("id", (&*rule.id).into());
    add("has_decided", has_decided.into());
    add("is_running", rule.is_running.into());
    add("audience", audience(project, rule, inputs).into());
    add("bucket", number.into());
    let group = rule.group.and_then(|at| project.groups.get(at));
    if let Some(group) = group.filter(|group| group.is_random) {
        let number = bucket(id, &group.id);
        let takes_part = owner(&group.ranges, number).is_some_and(|owner| *owner == rule.id);
        let group = json!({"id": group.id, "bucket": number, "takes_part": takes_part});
        add("group", group);
    }
    match &rule.cmab {
        Some(cmab) => add("bandit", json!({"until": cmab.end})),
        None => add("ranges", ranges(rule)),
    }
    let bucketed = rule::bucketed(project, rule, id).filter(|_| rule.cmab.is_none());
    add("bucketed", bucketed.map(|variation| &*variation.key).into());
    if kind == "experiment" {
        chosen(rule, inputs, add);
    }
    members.into()
}

/// Returns whether the user is in the audience. `None` means unknown, which counts as no.
fn audience(project: &Project, rule: &Rule, inputs: &Inputs<'_>) -> Option<bool> {
    let Some(condition) = &rule.condition else {
        return Some(true);
    };
    let audiences = &project.audience_conditions;
    condition.evaluate(&inputs.user(), audiences, project.rules, &mut |_| ())
}

/// Returns the ranges of buckets by variation: `{variation, from, until}`, where `until` is the first bucket after
/// the range.
fn ranges(rule: &Rule) -> Value {
    let ranges = bucket_ranges(rule).map(|(variation, from, until)| {
        let variation = variation.map(|variation| &*variation.key);
        json!({"variation": variation, "from": from, "until": until})
    });
    ranges.collect()
}

/// Returns the ranges of buckets that are not empty, in order: the variation, the first bucket, and the first one after the
/// range.
pub(super) fn bucket_ranges(rule: &Rule) -> impl Iterator<Item = (Option<&Variation>, u32, u32)> {
    let mut from = 0;
    rule.ranges.iter().filter_map(move |range| {
        let variation = range.owner.and_then(|at| rule.variations.get(at));
        let (first, until) = (from, range.end);
        from = from.max(until);
        (first < until).then_some((variation, first, until))
    })
}

/// Adds the variations that take precedence over the bucket: of an override, the whitelist and the user's profile.
fn chosen(rule: &Rule, inputs: &Inputs<'_>, mut add: impl FnMut(&str, Value)) {
    let mut overrides = inputs.overrides.iter();
    if let Some((_, key)) = overrides.find(|(experiment, _)| **experiment == *rule.key) {
        add("override", (&**key).into());
    }
    if let Some(key) = rule.whitelist.get(inputs.user_id) {
        add("whitelisted", (&**key).into());
    }
    let profile = inputs.profile.and_then(|profile| profile.get(&rule.id));
    let profile = profile.and_then(|id| rule.find_variation_by_id(id));
    if let Some(variation) = profile {
        add("profile", (&*variation.key).into());
    }
}
