//! Which models stand in for which.
//!
//! Here a model has several providers, and a failure leads to the next one. So the deployments of a fallback become further
//! providers of the model, which are asked after its own.

use std::collections::BTreeSet;

use super::fields::{Field, Fields};
use super::ranks::Groups;
use super::references::Reading;

/// A model, and those that stand in for it, with their places in the input.
struct FallbackRule<'n> {
    field: Field<'n>,
    group: String,
    names: Vec<(Field<'n>, String)>,
}

/// All fallbacks of the input.
#[derive(Default)]
pub(super) struct Fallbacks<'n> {
    rules: Vec<FallbackRule<'n>>,
    /// Those of models without a rule.
    usual: Vec<(Field<'n>, String)>,
}

/// The fields with rules, and what is said of them.
const RULES: [(&str, &str); 2] = [
    (
        "fallbacks",
        "what stands in for a model is a further provider of it, after its own; a conversation stays with it while it works",
    ),
    (
        "context_window_fallbacks",
        "they stand in for every failure here; a request that is too long goes to them at once where context_size is known",
    ),
];

impl<'n> Fallbacks<'n> {
    /// Reads the fallbacks. What `router` says counts before what `library` says.
    pub(super) fn read(
        router: &mut Fields<'n>,
        library: &mut Fields<'n>,
        reading: &mut Reading<'_>,
    ) -> Self {
        let mut fallbacks = Self::default();
        for (name, what) in RULES {
            let Some(field) = take_either(name, router, library, reading) else {
                continue;
            };
            let before = fallbacks.rules.len();
            fallbacks.add_rules(&field, reading);
            if fallbacks.rules.len() > before {
                let cure =
                    "nothing; `x-no-fallback: true` asks one provider alone (docs/routing.md)";
                reading.findings.differs(&field, what, cure);
            }
        }
        if let Some(field) = take_either("default_fallbacks", router, library, reading) {
            for item in field.items() {
                match item.to_text() {
                    Some(name) => fallbacks.usual.push((item, name)),
                    None => reading.findings.wrong_kind(&item, "the name of a model"),
                }
            }
        }
        if let Some(field) = take_either("content_policy_fallbacks", router, library, reading) {
            let what = "what a provider refuses for its content is not asked elsewhere";
            let cure = "let the client ask again with another model";
            reading.findings.left_out(&field, what, cure);
        }
        fallbacks
    }

    fn add_rules(&mut self, field: &Field<'n>, reading: &mut Reading<'_>) {
        for entry in field.items() {
            let rules = Fields::read(Some(entry), &mut reading.findings);
            for (group, field) in rules.into_rest() {
                let mut names = Vec::new();
                for item in field.items() {
                    match item.to_text() {
                        Some(name) => names.push((item, name)),
                        None => {
                            let what = "a fallback with parameters of its own has no counterpart";
                            let cure = "name the model alone, and import again";
                            reading.findings.left_out(&item, what, cure);
                        }
                    }
                }
                self.rules.push(FallbackRule {
                    field,
                    group: group.to_owned(),
                    names,
                });
            }
        }
    }

    /// Returns what stands in for a model, each once, in this order.
    pub(super) fn standing_in_for(&self, group: &str) -> Vec<&str> {
        let rules = self.rules.iter().filter(|rule| rule.group == group);
        let mut names: Vec<&(Field<'n>, String)> = rules.flat_map(|rule| &rule.names).collect();
        if names.is_empty() {
            names = self.usual.iter().collect();
        }
        let mut seen = BTreeSet::from([group]);
        let names = names.into_iter().map(|(_, name)| name.as_str());
        names.filter(|name| seen.insert(name)).collect()
    }

    /// Notes names that `model_list` does not have.
    pub(super) fn check(&self, groups: &Groups<'_, '_>, reading: &mut Reading<'_>) {
        let known: BTreeSet<&str> = groups.iter().map(|(group, _)| *group).collect();
        let what = "model_list has no such model by name";
        let cure = "add it to model_list, or take it out; then import again";
        for rule in &self.rules {
            if !known.contains(&*rule.group) {
                reading.findings.left_out(&rule.field, what, cure);
            }
        }
        let names = self.rules.iter().flat_map(|rule| &rule.names);
        for (field, name) in names.chain(&self.usual) {
            if !known.contains(&**name) {
                reading.findings.left_out(field, what, cure);
            }
        }
    }
}

/// Takes a field that may be in two places, and notes the one that does not count.
pub(super) fn take_either<'n>(
    name: &str,
    first: &mut Fields<'n>,
    second: &mut Fields<'n>,
    reading: &mut Reading<'_>,
) -> Option<Field<'n>> {
    let (first, second) = (first.take(name), second.take(name));
    if let (Some(first), Some(second)) = (&first, &second) {
        let what = format!("{} says it, too, and counts", first.path);
        reading
            .findings
            .left_out(second, what, "take one of them out");
    }
    first.or(second)
}
