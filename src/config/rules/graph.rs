//! How the keys of `[graph]` depend on each other.

use std::collections::{BTreeMap, BTreeSet};

use super::Rules;
use super::decisions::optional;
use crate::config::file::File;
use crate::config::file::graph::{Graph, Tenant};
use crate::config::suggest;
use crate::config::walk::join;

/// The categories of the built-in table.
const BUILT_IN: [&str; 6] = [
    "configuration",
    "account",
    "indexing",
    "management",
    "query",
    "other",
];

/// Checks the section, where there is one.
pub(super) fn check(rules: &mut Rules<'_>, file: &File) {
    let Some(graph) = &file.graph else { return };
    levels(rules, graph);
    categories(rules, graph);
    tenants(rules, graph);
}

fn levels(rules: &mut Rules<'_>, graph: &Graph) {
    let pairs = graph.levels.iter().zip(graph.levels.iter().skip(1));
    let falling = pairs
        .enumerate()
        .find(|(_, (lower, higher))| lower >= higher);
    if let Some((index, (lower, higher))) = falling {
        let key = format!("graph.levels[{}]", index + 1);
        let message = format!("{higher} does not rise above {lower}");
        rules.refuse(&key, message, "list the levels in ascending order");
    }
}

fn categories(rules: &mut Rules<'_>, graph: &Graph) {
    for (name, category) in &graph.categories {
        if category.default > category.maximum {
            let key = format!("{}.default", join("graph.categories", name));
            let message = format!(
                "{} is above the maximum {}",
                category.default, category.maximum
            );
            rules.refuse(&key, message, "lower the default, or raise the maximum");
        }
    }
    let mut known: Vec<&str> = BUILT_IN.to_vec();
    known.extend(graph.categories.keys().map(String::as_str));
    for (index, operation) in graph.operations.iter().enumerate() {
        if known.contains(&operation.category.as_str()) {
            continue;
        }
        let message = format!("there is no category {:?}", operation.category);
        let cure = match suggest::nearest(&operation.category, &known) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => format!(
                "use one of: {}; or add it to [graph.categories]",
                known.join(", ")
            ),
        };
        rules.refuse(
            &format!("graph.operations[{index}].category"),
            message,
            cure,
        );
    }
}

fn tenants(rules: &mut Rules<'_>, graph: &Graph) {
    let mut ids = BTreeSet::new();
    let mut owners = BTreeMap::new();
    for (index, tenant) in graph.tenants.iter().enumerate() {
        let key = format!("graph.tenants[{index}]");
        if !ids.insert(&tenant.id) {
            let message = format!("a second tenant has the id {:?}", tenant.id);
            rules.refuse(&format!("{key}.id"), message, "take one of them out");
        }
        credentials(rules, &key, tenant, &mut owners);
        for (place, app) in tenant.app_keys.iter().enumerate() {
            let key = format!("{key}.app_keys[{place}].secret");
            optional(rules, &key, app.secret.as_ref(), "the key is not verified");
        }
    }
}

/// A key belongs to one tenant: with two owners nobody could tell whom a request counts for.
fn credentials<'a>(
    rules: &mut Rules<'_>,
    key: &str,
    tenant: &'a Tenant,
    owners: &mut BTreeMap<&'a str, &'a str>,
) {
    let single = tenant.single_keys.iter().enumerate();
    let single = single.map(|(index, name)| (format!("{key}.single_keys[{index}]"), name));
    let app = tenant.app_keys.iter().enumerate();
    let app = app.map(|(index, app)| (format!("{key}.app_keys[{index}].key"), &app.key));
    for (place, name) in single.chain(app) {
        if let Some(owner) = owners.insert(name, &tenant.id) {
            let message = format!("this key belongs to the tenant {owner:?} already");
            rules.refuse(&place, message, "give each tenant keys of its own");
        }
    }
}
