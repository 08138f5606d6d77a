//! The features and experiments that a call of activate asks for. Source: docs/decision-agent.md 4, rule 2.

use std::borrow::Cow;

use super::activate::Activation;
use super::keys::Keys;
use super::project::Project;
use crate::fault::{Fault, FaultKind, quoted};
use crate::form;

/// The rules of reading a selection where the protocols differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SelectionRules {
    /// `type` adds all items of the type to the named keys. Otherwise it selects among the named keys.
    pub type_adds_items: bool,
    /// `enabled=false` lists only items that are off. Otherwise it is ignored.
    pub lists_disabled: bool,
    /// A switch with a value other than `true` and `false` is a fault. Otherwise it is ignored.
    pub refuses_other_words: bool,
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ItemKind {
    Feature,
    Experiment,
}

/// Returns the items that a query asks for, without repetitions. A key of both kinds means the feature.
///
/// Errors: 400 for too many keys and for an unknown type.
pub fn read_selection<'a>(
    query: &'a str,
    project: &'a Project,
    rules: SelectionRules,
) -> Result<Vec<(ItemKind, Cow<'a, str>)>, Fault> {
    let mut found = Keys::default();
    for key in form::values(query, "featureKey") {
        found.name(ItemKind::Feature, key, "featureKey")?;
    }
    for key in form::values(query, "experimentKey") {
        found.name(ItemKind::Experiment, key, "experimentKey")?;
    }
    let kinds = read_kinds(query)?;
    if found.is_empty() || rules.type_adds_items {
        for kind in kinds {
            let keys: &mut dyn Iterator<Item = &'a str> = match kind {
                ItemKind::Feature => &mut project.flag_keys(),
                ItemKind::Experiment => &mut project.experiment_keys(),
            };
            keys.for_each(|key| found.add(kind, key.into()));
        }
        return Ok(found.into_vec());
    }
    let mut found = found.into_vec();
    if !kinds.is_empty() {
        found.retain(|(kind, _)| kinds.contains(kind));
    }
    Ok(found)
}

fn read_kinds(query: &str) -> Result<Vec<ItemKind>, Fault> {
    form::values(query, "type")
        .map(|word| match &*word {
            "feature" => Ok(ItemKind::Feature),
            "experiment" => Ok(ItemKind::Experiment),
            _ => {
                let message = format!("type \"{}\" not supported", quoted(&word));
                Err(Fault::new(FaultKind::Invalid, message).with_param("type"))
            }
        })
        .collect()
}

/// Returns a filter for the items that the query asks for. Errors: as [`read_switch`].
pub fn item_filter(
    query: &str,
    rules: SelectionRules,
) -> Result<impl Fn(&Activation<'_>) -> bool + use<>, Fault> {
    let wanted = read_switch(query, "enabled", rules)?;
    let wanted = wanted.filter(|is_on| *is_on || rules.lists_disabled);
    Ok(move |item: &Activation<'_>| wanted.is_none_or(|wanted| item.is_enabled == wanted))
}

/// Reads a parameter that is `true` or `false`. The last one counts. Errors: 400 for another value.
pub fn read_switch(query: &str, name: &str, rules: SelectionRules) -> Result<Option<bool>, Fault> {
    let mut switch = None;
    for word in form::values(query, name) {
        switch = match &*word {
            "true" => Some(true),
            "false" => Some(false),
            _ if !rules.refuses_other_words => None,
            other => {
                let message = format!(
                    "`{name}` is {:?}; true and false are accepted",
                    quoted(other)
                );
                return Err(Fault::new(FaultKind::Invalid, message).with_param(name));
            }
        };
    }
    Ok(switch)
}
