//! A project and its flags in words, for people. Nothing here decides.

use super::condition::Condition;
use super::decide;
use super::explain::{bucket_ranges, rule_kind, rules_in_order};
use super::project::{Audience, Flag, Project, Rule, Variation};
use super::reason::Reasons;

/// The maximum length of the words for one condition.
const MAX_WORDS_BYTES: usize = 4096;

/// How many parts a project has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProjectParts {
    pub flags: usize,
    pub experiments: usize,
    pub rollouts: usize,
    /// Those that run.
    pub holdouts: usize,
    pub audiences: usize,
    pub attributes: usize,
    pub events: usize,
}

/// A flag in a list of flags.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FlagSummary<'p> {
    pub key: &'p str,
    pub id: &'p str,
    /// The number of its experiments, and how many of them run.
    pub experiments: usize,
    pub running_experiments: usize,
    /// The number of rules of its rollout.
    pub rollout_rules: usize,
    /// The number of holdouts of the flag as a whole.
    pub holdouts: usize,
    pub variables: usize,
}

/// A flag with its rules.
#[derive(Clone, Debug)]
pub struct FlagDescription<'p> {
    pub key: &'p str,
    pub id: &'p str,
    pub variables: Vec<VariableDescription<'p>>,
    /// The rules in the order in which they count, as [`explain`](super::explain::explain) lists them.
    pub rules: Vec<RuleDescription<'p>>,
    /// The audiences that the rules name, without repetitions.
    pub audiences: Vec<AudienceDescription<'p>>,
}

/// A variable of a flag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VariableDescription<'p> {
    pub key: &'p str,
    pub kind: &'static str,
    /// As JSON.
    pub default: &'p str,
}

/// A rule of a flag.
#[derive(Clone, Debug)]
pub struct RuleDescription<'p> {
    /// `holdout`, `experiment` or `rollout`.
    pub kind: &'static str,
    pub key: &'p str,
    pub id: &'p str,
    pub is_running: bool,
    /// The audience in words, or `None` for everyone.
    pub audience: Option<String>,
    /// Which buckets give which variation. Empty for an experiment whose variations are predicted.
    pub traffic: Vec<TrafficShare<'p>>,
    /// The first bucket outside of an experiment whose variations are predicted.
    pub predicted_until: Option<u32>,
    /// The exclusion group, if users take part in one of its experiments at most.
    pub group: Option<&'p str>,
    /// The number of users with a variation of their own.
    pub whitelisted_users: usize,
    pub variations: Vec<VariationDescription<'p>>,
}

/// A range of the ten thousand buckets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TrafficShare<'p> {
    /// `None`: no variation.
    pub variation: Option<&'p str>,
    pub from: u32,
    /// The first bucket after the range.
    pub until: u32,
}

/// A variation of a rule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VariationDescription<'p> {
    pub key: &'p str,
    pub is_enabled: bool,
    /// The flag's variables in this variation: key, value as JSON.
    pub variables: Vec<(&'p str, &'p str)>,
}

/// An audience.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AudienceDescription<'p> {
    pub name: &'p str,
    pub id: &'p str,
    /// Its conditions in words.
    pub conditions: String,
}

impl Project {
    /// Returns how many parts the project has.
    pub fn parts(&self) -> ProjectParts {
        ProjectParts {
            flags: self.flags.len(),
            experiments: self.experiments.len(),
            rollouts: self.rollouts.len(),
            holdouts: self.holdouts.len(),
            audiences: self.audiences.len(),
            attributes: self.attributes.len(),
            events: self.events.len(),
        }
    }

    /// Returns the flags whose key contains a text, without regard to case, in the datafile's order. Cost: visits every key.
    pub fn find_flags(&self, text: &str) -> Vec<FlagSummary<'_>> {
        let text = text.to_lowercase();
        let is_wanted =
            |flag: &&Flag| text.is_empty() || flag.key.to_lowercase().contains(text.as_str());
        let found = self.flags.iter().filter(is_wanted);
        found.map(|flag| self.summarize(flag)).collect()
    }

    fn summarize<'p>(&'p self, flag: &'p Flag) -> FlagSummary<'p> {
        let running = self.flag_experiments(flag).filter(|rule| rule.is_running);
        FlagSummary {
            key: &flag.key,
            id: &flag.id,
            experiments: flag.experiments.len(),
            running_experiments: running.count(),
            rollout_rules: self.rollout_rules(flag).len(),
            holdouts: flag.holdouts.len(),
            variables: flag.variables.len(),
        }
    }

    /// Returns a flag with its rules.
    pub fn describe_flag(&self, key: &str) -> Option<FlagDescription<'_>> {
        let flag = self.flag(key)?;
        let rules = rules_in_order(self, flag);
        let described = rules.iter().map(|(source, rule)| RuleDescription {
            kind: rule_kind(*source),
            ..self.describe_rule(flag, rule)
        });
        let mut named = Vec::new();
        for (_, rule) in &rules {
            if let Some(condition) = &rule.condition {
                condition.audiences(&mut named);
            }
        }
        named.sort_unstable();
        named.dedup();
        let audiences = named.into_iter();
        Some(FlagDescription {
            key: &flag.key,
            id: &flag.id,
            variables: describe_variables(flag),
            rules: described.collect(),
            audiences: audiences
                .filter_map(|at| self.describe_audience(at))
                .collect(),
        })
    }

    fn describe_rule<'p>(&'p self, flag: &'p Flag, rule: &'p Rule) -> RuleDescription<'p> {
        let condition = rule.condition.as_ref();
        let group = rule.group.and_then(|at| self.groups.get(at));
        let traffic = bucket_ranges(rule).map(|(variation, from, until)| TrafficShare {
            variation: variation.map(|variation| &*variation.key),
            from,
            until,
        });
        let variations = rule.variations.iter();
        RuleDescription {
            kind: "",
            key: &rule.key,
            id: &rule.id,
            is_running: rule.is_running,
            audience: condition.map(|condition| describe_condition(condition, &self.audiences)),
            traffic: traffic.filter(|_| rule.cmab.is_none()).collect(),
            predicted_until: rule.cmab.as_ref().map(|cmab| cmab.end),
            group: group
                .filter(|group| group.is_random)
                .map(|group| &*group.id),
            whitelisted_users: rule.whitelist.len(),
            variations: variations
                .map(|variation| describe_variation(flag, variation))
                .collect(),
        }
    }

    fn describe_audience(&self, at: usize) -> Option<AudienceDescription<'_>> {
        let audience = self.audiences.get(at)?;
        let condition = self.audience_conditions.get(at)?;
        Some(AudienceDescription {
            name: &audience.name,
            id: &audience.id,
            conditions: describe_condition(condition, &self.audiences),
        })
    }
}

fn describe_variables(flag: &Flag) -> Vec<VariableDescription<'_>> {
    let variables = flag.variables.iter().map(|variable| VariableDescription {
        key: &variable.key,
        kind: variable.kind.as_str(),
        default: &variable.typed_default.json,
    });
    variables.collect()
}

fn describe_variation<'p>(flag: &'p Flag, variation: &'p Variation) -> VariationDescription<'p> {
    VariationDescription {
        key: &variation.key,
        is_enabled: variation.is_enabled,
        variables: decide::variables(flag, Some(variation), &mut Reasons::default()),
    }
}

/// Returns a condition in words: `"Germans" AND NOT ("Staff" OR "Testers")`. Words that would be too long end with an
/// ellipsis.
fn describe_condition(condition: &Condition, audiences: &[Audience]) -> String {
    let mut words = Words {
        audiences,
        out: String::new(),
        is_cut: false,
    };
    words.write(condition, false);
    words.out
}

struct Words<'p> {
    audiences: &'p [Audience],
    out: String,
    is_cut: bool,
}

impl Words<'_> {
    fn write(&mut self, condition: &Condition, is_inner: bool) {
        match condition {
            Condition::And(children) if children.is_empty() => self.push("everyone"),
            Condition::Or(children) if children.is_empty() => self.push("nobody"),
            Condition::And(children) => self.write_all(children, " AND ", is_inner),
            Condition::Or(children) => self.write_all(children, " OR ", is_inner),
            Condition::Not(Some(inner)) => {
                self.push("NOT ");
                self.write(inner, true);
            }
            Condition::Audience(at) => match self.audiences.get(*at) {
                Some(audience) => self.push(&format!("\"{}\"", audience.name)),
                None => self.push("an audience that is missing"),
            },
            Condition::Missing(id) => self.push(&format!("the missing audience \"{id}\"")),
            Condition::Leaf(leaf) => self.push(&leaf.describe()),
            Condition::Not(None) | Condition::Unknown => {
                self.push("a condition that cannot be read");
            }
        }
    }

    fn write_all(&mut self, children: &[Condition], word: &str, is_inner: bool) {
        let is_grouped = is_inner && children.len() > 1;
        if is_grouped {
            self.push("(");
        }
        for (at, child) in children.iter().enumerate() {
            if self.is_cut {
                return;
            }
            if at > 0 {
                self.push(word);
            }
            self.write(child, true);
        }
        if is_grouped {
            self.push(")");
        }
    }

    fn push(&mut self, text: &str) {
        if self.is_cut {
            return;
        }
        self.out.push_str(text);
        if self.out.len() > MAX_WORDS_BYTES {
            let end = self.out.floor_char_boundary(MAX_WORDS_BYTES);
            self.out.truncate(end);
            self.out.push('…');
            self.is_cut = true;
        }
    }
}

#[cfg(test)]
#[path = "description_tests.rs"]
mod tests;
