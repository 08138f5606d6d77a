//! The configuration for clients: `GET /v1/config`.
//! Source: docs/decision-agent.md 2.1, docs/facts/decision-engine.md A.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::encode;
use super::project::{Audience, Flag, Project, Rule, Variation};
use super::variable::Variable;
use crate::json::{Object, Str};

/// An audience that only editors see.
const DUMMY_AUDIENCE: &str = "$opt_dummy_audience";

impl Project {
    /// Returns the configuration as a JSON object, with maps sorted by key and lists in the datafile's order.
    pub fn overview(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut view = Object::open(&mut out);
        view.text("environmentKey", &self.environment_key);
        view.text("sdkKey", &self.sdk_key);
        view.text("revision", &self.revision);
        let owners = self.flags_of_experiments();
        let experiments = self.experiments.iter().map(|rule| {
            let flag = owners.get(&*rule.id).copied();
            (&*rule.key, (rule, flag))
        });
        map(
            &mut view,
            "experimentsMap",
            experiments,
            |(rule, flag), out| {
                self.experiment_view(rule, flag, out);
            },
        );
        let flags = self.flags.iter().map(|flag| (&*flag.key, flag));
        map(&mut view, "featuresMap", flags, |flag, out| {
            self.flag_view(flag, out)
        });
        view.array("attributes", &self.attributes, |attribute, out| {
            let mut one = Object::open(out);
            one.text("id", &attribute.id);
            one.text("key", &attribute.key);
            one.close();
        });
        let audiences = self
            .audiences
            .iter()
            .filter(|audience| &*audience.id != DUMMY_AUDIENCE);
        view.array("audiences", audiences, |audience, out| {
            self.audience_view(audience, out)
        });
        view.array("events", &self.events, |event, out| {
            let mut one = Object::open(out);
            one.text("id", &event.id);
            one.text("key", &event.key);
            one.array("experimentIds", &event.experiment_ids, |id, out| {
                Str::Plain(id).write(out)
            });
            one.close();
        });
        view.close();
        out
    }

    /// Returns the first flag that uses each experiment, by the experiment's id.
    fn flags_of_experiments(&self) -> HashMap<&str, &Flag> {
        let mut owners = HashMap::new();
        for flag in &self.flags {
            for rule in self.flag_experiments(flag) {
                owners.entry(&*rule.id).or_insert(flag);
            }
        }
        owners
    }

    fn experiment_view(&self, rule: &Rule, flag: Option<&Flag>, out: &mut Vec<u8>) {
        let mut view = Object::open(out);
        view.text("id", &rule.id);
        view.text("key", &rule.key);
        view.text(
            "audiences",
            &self.describe_audiences(&rule.audience_conditions),
        );
        let variations = rule.variations.iter().map(|one| (&*one.key, one));
        map(&mut view, "variationsMap", variations, |variation, out| {
            let mut one = Object::open(out);
            one.text("id", &variation.id);
            one.text("key", &variation.key);
            one.bool("featureEnabled", variation.is_enabled);
            let variables = flag.map_or(&[][..], |flag| &flag.variables);
            variables_view(&mut one, variables, Some(variation));
            one.close();
        });
        view.close();
    }

    fn flag_view(&self, flag: &Flag, out: &mut Vec<u8>) {
        let mut view = Object::open(out);
        view.text("id", &flag.id);
        view.text("key", &flag.key);
        view.array(
            "experimentRules",
            self.flag_experiments(flag),
            |rule, out| {
                self.experiment_view(rule, Some(flag), out);
            },
        );
        view.array("deliveryRules", self.rollout_rules(flag), |rule, out| {
            self.experiment_view(rule, Some(flag), out);
        });
        variables_view(&mut view, &flag.variables, None);
        let experiments = self.flag_experiments(flag).map(|rule| (&*rule.key, rule));
        map(&mut view, "experimentsMap", experiments, |rule, out| {
            self.experiment_view(rule, Some(flag), out);
        });
        view.close();
    }

    fn audience_view(&self, audience: &Audience, out: &mut Vec<u8>) {
        let mut view = Object::open(out);
        view.text("id", &audience.id);
        view.text("name", &audience.name);
        match &audience.conditions {
            Value::String(text) => view.text("conditions", text),
            other => view.text("conditions", &encode::value(other)),
        }
        view.close();
    }

    /// Returns the audiences of a rule in words: `"US" OR ("beta" AND NOT "staff")`.
    fn describe_audiences(&self, conditions: &Value) -> String {
        match conditions {
            Value::Array(items) => self.describe_items(items),
            Value::String(id) if !id.is_empty() => self.audience_name(id),
            _ => String::new(),
        }
    }

    fn describe_items(&self, items: &[Value]) -> String {
        let mut word = "OR";
        let mut text = String::new();
        for item in items {
            let part = match item {
                Value::String(operator) if matches!(operator.as_str(), "and" | "or" | "not") => {
                    word = match operator.as_str() {
                        "and" => "AND",
                        "not" => "NOT",
                        _ => "OR",
                    };
                    continue;
                }
                Value::String(id) => self.audience_name(id),
                Value::Array(inner) => match self.describe_items(inner) {
                    part if part.is_empty() => continue,
                    part => format!("({part})"),
                },
                _ => continue,
            };
            match (text.is_empty(), word) {
                (true, "NOT") => text = format!("NOT {part}"),
                (true, _) => text = part,
                (false, word) => text.push_str(&format!(" {word} {part}")),
            }
        }
        text
    }

    fn audience_name(&self, id: &str) -> String {
        let audience = self.audiences.iter().find(|audience| *audience.id == *id);
        format!("\"{}\"", audience.map_or(id, |audience| &audience.name))
    }
}

/// Writes an object with one member per key, sorted. If a key repeats, the last one counts.
fn map<'k, T>(
    view: &mut Object<'_>,
    key: &'static str,
    members: impl Iterator<Item = (&'k str, T)>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    let members: BTreeMap<&str, T> = members.collect();
    view.value(key, |out| {
        out.push(b'{');
        for (at, (key, member)) in members.into_iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            Str::Plain(key).write(out);
            out.push(b':');
            write(member, out);
        }
        out.push(b'}');
    });
}

/// Writes variables, with the values of a variation if it is on and has its own.
fn variables_view(view: &mut Object<'_>, variables: &[Variable], variation: Option<&Variation>) {
    let members = variables.iter().map(|variable| (&*variable.key, variable));
    map(view, "variablesMap", members, |variable, out| {
        let own = variation
            .filter(|variation| variation.is_enabled)
            .and_then(|variation| {
                variation
                    .values
                    .iter()
                    .rev()
                    .find(|(id, _)| *id == variable.id)
            });
        let mut one = Object::open(out);
        one.text("id", &variable.id);
        one.text("key", &variable.key);
        one.text("type", variable.kind.as_str());
        one.text("value", own.map_or(&*variable.default, |(_, value)| value));
        one.close();
    });
}
