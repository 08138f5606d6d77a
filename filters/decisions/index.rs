//! Turns a datafile as written into a [`Project`]: ids become indices, conditions become trees, values get their
//! types.
//!
//! Ids of missing experiments, rollouts and audiences are skipped, as the SDKs do. A datafile is refused only if no
//! SDK could read it.

mod holdouts;

use super::bucket::BucketRange;
use super::condition::{self, Condition};
use super::datafile;
use super::evaluation_rules::EvaluationRules;
use super::project::{
    Attribute, Audience, ByText, Cmab, ConversionEvent, ExclusionGroup, Flag, InvalidDatafile, Odp,
    Project, Rule, Variation,
};
use super::variable::{TypedValue, Variable, VariableKind};

pub(super) fn index(
    mut written: datafile::Datafile,
    evaluation: EvaluationRules,
) -> Result<Project, InvalidDatafile> {
    let odp = odp(&written.integrations)?;
    let (audiences, audience_ids) = audiences(&mut written);
    let rules = RuleIndex {
        evaluation,
        audience_ids,
        attributes: &written.attributes,
    };
    let audience_conditions: Vec<Condition> = audiences
        .iter()
        .map(|audience| condition::compile_audience(&audience.conditions, evaluation))
        .collect();
    let (mut experiments, groups) = rules.experiments(&written);
    let rollouts: Vec<Vec<Rule>> = written
        .rollouts
        .iter()
        .map(|rollout| {
            rollout
                .experiments
                .iter()
                .map(|rule| rules.rule(rule, None))
                .collect()
        })
        .collect();
    let flags = flags(&written, &mut experiments, &rollouts, evaluation);
    let mut project = Project {
        rules: evaluation,
        segments: segments(&audience_conditions),
        attribute_ids: index_first(written.attributes.iter().map(|one| one.key.as_str())),
        attributes: written.attributes.iter().map(attribute).collect(),
        event_keys: index_last(written.events.iter().map(|one| one.key.as_str())),
        events: written.events.iter().map(event).collect(),
        audiences,
        audience_conditions,
        experiment_keys: index_last(experiments.iter().map(|rule| &*rule.key)),
        flag_keys: index_last(flags.iter().map(|flag| &*flag.key)),
        experiments,
        groups,
        flags,
        rollouts,
        holdouts: Vec::new(),
        odp,
        account_id: written.account_id.as_str().into(),
        project_id: written.project_id.as_str().into(),
        revision: written.revision.as_str().into(),
        sdk_key: written.sdk_key.as_str().into(),
        environment_key: written.environment_key.as_str().into(),
        region: region(&written.region),
        anonymize_ip: written.anonymize_ip,
        bot_filtering: written.bot_filtering,
        send_flag_decisions: written.send_flag_decisions,
    };
    rules.holdouts(&written, &mut project);
    Ok(project)
}

fn region(written: &str) -> Box<str> {
    if written.is_empty() { "US" } else { written }.into()
}

fn odp(integrations: &[datafile::DatafileIntegration]) -> Result<Option<Odp>, InvalidDatafile> {
    for integration in integrations {
        let Some(key) = &integration.key else {
            return Err(InvalidDatafile("an integration has no `key`".to_owned()));
        };
        if key == "odp" {
            return Ok(Some(Odp {
                host: integration.host.as_str().into(),
                public_key: integration.public_key.as_str().into(),
            }));
        }
    }
    Ok(None)
}

/// Returns all audiences, typed ones first. If an audience id repeats, the first one counts.
fn audiences(written: &mut datafile::Datafile) -> (Vec<Audience>, ByText<usize>) {
    let typed = std::mem::take(&mut written.typed_audiences);
    let legacy = std::mem::take(&mut written.audiences);
    let mut found: Vec<Audience> = Vec::new();
    let mut ids = ByText::default();
    for audience in typed.into_iter().chain(legacy) {
        let id: Box<str> = audience.id.into();
        if ids.contains_key(&id) {
            continue;
        }
        ids.insert(id.clone(), found.len());
        found.push(Audience {
            id,
            name: audience.name.into(),
            conditions: audience.conditions,
        });
    }
    (found, ids)
}

fn segments(conditions: &[Condition]) -> Vec<Box<str>> {
    let mut found = Vec::new();
    for condition in conditions {
        condition.segments(&mut found);
    }
    let mut unique: Vec<Box<str>> = Vec::new();
    for segment in found {
        if !unique.iter().any(|one| **one == *segment) {
            unique.push(segment.into());
        }
    }
    unique
}

/// The tables that rules refer to.
struct RuleIndex<'w> {
    evaluation: EvaluationRules,
    audience_ids: ByText<usize>,
    attributes: &'w [datafile::DatafileNamed],
}

impl RuleIndex<'_> {
    /// Returns the experiments, followed by those of groups, and the groups.
    fn experiments(&self, written: &datafile::Datafile) -> (Vec<Rule>, Vec<ExclusionGroup>) {
        let plain = written.experiments.iter();
        let mut rules: Vec<Rule> = plain.map(|one| self.rule(one, None)).collect();
        let mut groups = Vec::new();
        for (at, group) in written.groups.iter().enumerate() {
            rules.extend(group.experiments.iter().map(|one| self.rule(one, Some(at))));
            groups.push(ExclusionGroup {
                id: group.id.as_str().into(),
                is_random: group.policy == "random",
                ranges: group
                    .traffic_allocation
                    .iter()
                    .map(|range| BucketRange {
                        end: range.end_of_range,
                        owner: range.entity_id.as_str().into(),
                    })
                    .collect(),
            });
        }
        (rules, groups)
    }

    fn rule(&self, written: &datafile::DatafileExperiment, group: Option<usize>) -> Rule {
        let audience = |id: &str| self.audience_ids.get(id).copied();
        let ids = &written.audience_ids;
        let condition = condition::compile_rule(&written.audience_conditions, ids, &audience);
        let positions = index_first(written.variations.iter().map(|one| one.id.as_str()));
        let position = |id: &str| positions.get(id).copied();
        Rule {
            id: written.id.as_str().into(),
            key: written.key.as_str().into(),
            layer_id: written.layer_id.as_str().into(),
            is_running: written.status == "Running" || self.evaluation.runs_paused_experiments,
            is_targeted_delivery: written.kind == "td",
            spares_deliveries: written.exclude_targeted_deliveries,
            condition,
            audience_conditions: written.audience_conditions.clone(),
            ranges: written
                .traffic_allocation
                .iter()
                .map(|range| BucketRange {
                    end: range.end_of_range,
                    owner: position(&range.entity_id).filter(|_| !range.entity_id.is_empty()),
                })
                .collect(),
            variations: written.variations.iter().map(variation).collect(),
            whitelist: written
                .forced_variations
                .iter()
                .filter_map(|(user, key)| Some((user.as_str().into(), key.as_str()?.into())))
                .collect(),
            group,
            cmab: written.cmab.as_ref().map(|cmab| self.cmab(cmab)),
            holdouts: Vec::new(),
        }
    }

    fn cmab(&self, written: &datafile::DatafileCmab) -> Cmab {
        let key = |id: &str| self.attributes.iter().find(|one| one.id == id);
        Cmab {
            attributes: written
                .attribute_ids
                .iter()
                .filter_map(|id| Some((key(id)?.key.as_str().into(), id.as_str().into())))
                .collect(),
            end: written.traffic_allocation,
        }
    }
}

fn variation(written: &datafile::DatafileVariation) -> Variation {
    Variation {
        id: written.id.as_str().into(),
        key: written.key.as_str().into(),
        is_enabled: written.feature_enabled,
        values: written
            .variables
            .iter()
            .map(|value| (value.id.as_str().into(), value.value.as_str().into()))
            .collect(),
    }
}

fn flags(
    written: &datafile::Datafile,
    experiments: &mut [Rule],
    rollouts: &[Vec<Rule>],
    evaluation: EvaluationRules,
) -> Vec<Flag> {
    let by_id = index_first(experiments.iter().map(|rule| &*rule.id));
    let rollout_ids = index_last(written.rollouts.iter().map(|rollout| rollout.id.as_str()));
    let feature_rollouts: Vec<&str> = written
        .experiments
        .iter()
        .chain(written.groups.iter().flat_map(|group| &group.experiments))
        .filter(|one| one.kind == "fr" && evaluation.opens_feature_rollouts)
        .map(|one| one.id.as_str())
        .collect();
    let mut flags = Vec::with_capacity(written.feature_flags.len());
    for flag in &written.feature_flags {
        let ids = flag.experiment_ids.iter();
        let indices: Vec<usize> = ids
            .filter_map(|id| by_id.get(id.as_str()).copied())
            .collect();
        let rollout = rollout_ids.get(flag.rollout_id.as_str()).copied();
        let rules: &[Rule] = rollout
            .and_then(|at| rollouts.get(at))
            .map_or(&[], Vec::as_slice);
        let everyone_else = rules.last().and_then(|rule| rule.variations.first());
        if let Some(variation) = everyone_else {
            for at in &indices {
                let rule = experiments.get_mut(*at);
                if let Some(rule) = rule.filter(|one| feature_rollouts.contains(&&*one.id)) {
                    open_to_everyone_else(rule, variation);
                }
            }
        }
        let variables: Vec<Variable> = flag.variables.iter().map(variable).collect();
        let of_experiments = indices.iter().filter_map(|at| experiments.get(*at));
        let values = typed_values(&variables, of_experiments.chain(rules));
        flags.push(Flag {
            id: flag.id.as_str().into(),
            key: flag.key.as_str().into(),
            experiments: indices,
            rollout_id: flag.rollout_id.as_str().into(),
            rollout,
            variables,
            values,
            holdouts: Vec::new(),
        });
    }
    flags
}

/// Gives everyone else's variation to the users that a feature rollout does not reach.
fn open_to_everyone_else(rule: &mut Rule, variation: &Variation) {
    let known = rule
        .variations
        .iter()
        .position(|one| one.id == variation.id);
    let owner = known.unwrap_or_else(|| {
        rule.variations.push(variation.clone());
        rule.variations.len() - 1
    });
    rule.ranges.push(BucketRange {
        end: 10_000,
        owner: Some(owner),
    });
}

fn variable(written: &datafile::DatafileVariable) -> Variable {
    let kind = VariableKind::parse(&written.kind, &written.sub_type);
    Variable {
        id: written.id.as_str().into(),
        key: written.key.as_str().into(),
        kind,
        default: written.default_value.as_str().into(),
        typed_default: kind.read(&written.default_value),
    }
}

/// Returns the typed values of variables in each variation that is on and has values of its own.
fn typed_values<'r>(
    variables: &[Variable],
    rules: impl Iterator<Item = &'r Rule>,
) -> ByText<Vec<TypedValue>> {
    let mut found = ByText::default();
    for variation in rules.flat_map(|rule| &rule.variations) {
        if !variation.is_enabled || variation.values.is_empty() {
            continue;
        }
        let value_of = |variable: &Variable| {
            let own = variation
                .values
                .iter()
                .rev()
                .find(|(id, _)| *id == variable.id);
            own.map_or_else(
                || variable.typed_default.clone(),
                |(_, text)| variable.kind.read(text),
            )
        };
        found
            .entry(variation.id.clone())
            .or_insert_with(|| variables.iter().map(value_of).collect());
    }
    found
}

fn attribute(written: &datafile::DatafileNamed) -> Attribute {
    Attribute {
        id: written.id.as_str().into(),
        key: written.key.as_str().into(),
    }
}

fn event(written: &datafile::DatafileEvent) -> ConversionEvent {
    ConversionEvent {
        id: written.id.as_str().into(),
        key: written.key.as_str().into(),
        experiment_ids: written
            .experiment_ids
            .iter()
            .map(|id| id.as_str().into())
            .collect(),
    }
}

/// Returns the index of each key. If a key repeats, the first one counts.
fn index_first<'k>(keys: impl Iterator<Item = &'k str>) -> ByText<usize> {
    let mut found = ByText::default();
    for (at, key) in keys.enumerate() {
        found.entry(key.into()).or_insert(at);
    }
    found
}

/// Returns the index of each key. If a key repeats, the last one counts.
fn index_last<'k>(keys: impl Iterator<Item = &'k str>) -> ByText<usize> {
    keys.enumerate().map(|(at, key)| (key.into(), at)).collect()
}
