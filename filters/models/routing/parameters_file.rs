//! What a configuration or a catalogue writes about the parameters of a provider or a mapping.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::models::parameter::Parameter;

/// Changes of a table of parameters. What is not named stays as the provider's kind has it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenParameters {
    /// Go out as they are.
    #[schemars(extend("uniqueItems" = true))]
    pub pass: Vec<Parameter>,
    /// Are left out of the request.
    #[schemars(extend("uniqueItems" = true))]
    pub drop: Vec<Parameter>,
    /// Send the request to another provider.
    #[schemars(extend("uniqueItems" = true))]
    pub refuse: Vec<Parameter>,
    /// Are left out while the model reasons.
    #[schemars(extend("uniqueItems" = true))]
    pub drop_with_reasoning: Vec<Parameter>,
    /// Send the request to another provider if the model is to reason.
    #[schemars(extend("uniqueItems" = true))]
    pub refuse_with_reasoning: Vec<Parameter>,
    /// Groups of which a request may ask for one.
    pub exclusive: Vec<Vec<Parameter>>,
    /// Have another name at the provider.
    #[schemars(with = "BTreeMap<String, String>", extend("x-names" = "parameter", "additionalProperties" = {"type": "string", "minLength": 1}))]
    pub rename: BTreeMap<Parameter, String>,
    /// Are numbers within bounds, or lists of so many items.
    #[schemars(with = "BTreeMap<String, WrittenBounds>", extend("x-names" = "parameter"))]
    pub bounds: BTreeMap<Parameter, WrittenBounds>,
}

/// Bounds of a number, or of the length of a list.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenBounds {
    /// The least.
    pub min: Option<f64>,
    /// The most.
    pub max: Option<f64>,
    /// What happens to other numbers; by default they become the nearest bound.
    pub outside: Option<Outside>,
}

/// What happens to a number outside its bounds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    #[default]
    Clamp,
    Refuse,
}

/// A contradiction between what is written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParameterProblem {
    /// The key, below the table.
    pub key: String,
    pub message: String,
    pub cure: String,
}

impl WrittenParameters {
    /// Returns what no schema says: parameters that two lists treat differently, and treatments that a parameter cannot
    /// have.
    pub fn problems(&self) -> Vec<ParameterProblem> {
        let mut problems = Vec::new();
        let lists = [
            ("pass", &self.pass),
            ("drop", &self.drop),
            ("refuse", &self.refuse),
        ];
        for (number, (key, list)) in lists.iter().enumerate() {
            for (at, parameter) in list.iter().enumerate() {
                let mut earlier = lists.iter().take(number);
                if let Some((other, _)) = earlier.find(|(_, other)| other.contains(parameter)) {
                    let name = parameter.as_str();
                    problems.push(ParameterProblem {
                        key: format!("{key}[{at}]"),
                        message: format!("{name:?} stands in {other} too"),
                        cure: "leave it in one of them".to_owned(),
                    });
                }
            }
        }
        let dropped = [
            ("drop", &self.drop),
            ("drop_with_reasoning", &self.drop_with_reasoning),
        ];
        for (key, list) in dropped {
            for (at, parameter) in list.iter().enumerate() {
                if parameter.is_essential() {
                    let name = parameter.as_str();
                    problems.push(ParameterProblem {
                        key: format!("{key}[{at}]"),
                        message: format!("{name:?} cannot be dropped: another answer would come"),
                        cure: "refuse it instead".to_owned(),
                    });
                }
            }
        }
        self.check_names(&mut problems);
        self.check_bounds(&mut problems);
        problems
    }

    fn check_names(&self, problems: &mut Vec<ParameterProblem>) {
        for parameter in self.rename.keys().filter(|renamed| !renamed.is_member()) {
            problems.push(ParameterProblem {
                key: key_of("rename", *parameter),
                message: "is no member of the request itself, so it has no other name".to_owned(),
                cure: "rename members such as max_tokens or seed".to_owned(),
            });
        }
    }

    fn check_bounds(&self, problems: &mut Vec<ParameterProblem>) {
        for (parameter, bounds) in &self.bounds {
            let key = key_of("bounds", *parameter);
            if !parameter.is_number() {
                problems.push(ParameterProblem {
                    key,
                    message: "is no number, so it has no bounds".to_owned(),
                    cure: format!("bound {}", bounded_names()),
                });
                continue;
            }
            match (bounds.min, bounds.max) {
                (Some(min), Some(max)) if min > max => problems.push(ParameterProblem {
                    key,
                    message: format!("has a min of {min} above its max of {max}"),
                    cure: "give a min that is not above the max".to_owned(),
                }),
                (None, None) => problems.push(ParameterProblem {
                    key,
                    message: "has neither min nor max".to_owned(),
                    cure: "give one of them".to_owned(),
                }),
                _ if parameter.is_list() && bounds.outside != Some(Outside::Refuse) => {
                    problems.push(ParameterProblem {
                        key,
                        message: "is a list, which cannot be shortened".to_owned(),
                        cure: "add outside = \"refuse\"".to_owned(),
                    });
                }
                _ => {}
            }
        }
    }
}

/// Returns the dotted key of a parameter in a table. A name that is not a bare key is quoted.
fn key_of(table: &str, parameter: Parameter) -> String {
    let name = parameter.as_str();
    if name.contains(['[', '.']) {
        format!("{table}.{name:?}")
    } else {
        format!("{table}.{name}")
    }
}
/// Returns the names of the parameters that may have bounds.
fn bounded_names() -> String {
    let numbers = Parameter::ALL.into_iter().filter(|it| it.is_number());
    let names: Vec<&str> = numbers.map(Parameter::as_str).collect();
    names.join(", ")
}
