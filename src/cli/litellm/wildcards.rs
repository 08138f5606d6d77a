//! Names with `*`: all models of a provider, which clients name before the model.

use std::collections::BTreeSet;

use filters::models::routing::matches_alias;

use super::deployments::Deployment;
use super::pools::{PoolRef, Pools};
use super::ranks::{ImportedMapping, ImportedModel, shipped_models};
use super::references::Reading;

/// A wildcard and the number of its provider.
pub(super) struct Wildcard<'d, 'n> {
    deployment: &'d Deployment<'n>,
    prefix: &'d str,
    pattern: &'d str,
    number: usize,
}

/// Gives the providers of wildcards the names by which clients ask for them. Those that cannot be served are noted.
pub(super) fn name_providers<'d, 'n>(
    deployments: &[&'d Deployment<'n>],
    pools: &mut Pools,
    reading: &mut Reading<'_>,
) -> Vec<Wildcard<'d, 'n>> {
    let mut wildcards: Vec<Wildcard<'d, 'n>> = Vec::new();
    for &deployment in deployments {
        let Some((prefix, pattern)) = deployment.wildcard() else {
            continue;
        };
        let is_name = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        let is_same = deployment.upstream == pattern || deployment.upstream == "*";
        let known = wildcards.iter().find(|known| known.prefix == prefix);
        let is_free = known.is_none_or(|known| {
            known.deployment.endpoint == deployment.endpoint
                && known.deployment.settings == deployment.settings
        });
        let is_short = (1..=64).contains(&prefix.len());
        if !is_same || !is_free || !is_short || !prefix.chars().all(is_name) {
            let what = "a wildcard is one provider here, whose own names stand behind its prefix";
            let cure = "list the models by name, or write PREFIX/* for one provider alone; then import again";
            reading.findings.left_out(&deployment.field, what, cure);
            continue;
        }
        wildcards.push(Wildcard {
            deployment,
            prefix,
            pattern,
            number: pools.add_named(deployment, prefix),
        });
    }
    wildcards
}

/// Returns the models of wildcards: those that the shipped catalogue knows. `known` are names of other models.
pub(super) fn to_models(
    wildcards: Vec<Wildcard<'_, '_>>,
    known: &BTreeSet<String>,
    reading: &mut Reading<'_>,
) -> Vec<ImportedModel> {
    let mut names = known.clone();
    let mut models = Vec::new();
    for wildcard in wildcards {
        let shipped = wildcard.deployment.row.shipped();
        let is_convention = |wildcard: &Wildcard<'_, '_>| {
            let usual = wildcard.deployment.row.settings(false);
            wildcard.deployment.settings.get("kind") == usual.get("kind")
        };
        let before = models.len();
        for (model_type, mapping) in shipped
            .filter(|_| is_convention(&wildcard))
            .into_iter()
            .flat_map(shipped_models)
        {
            let name = mapping.get("name").and_then(toml::Value::as_str);
            let Some(name) = name.filter(|name| matches_alias(wildcard.pattern, name)) else {
                continue;
            };
            let id = format!("{}/{name}", wildcard.prefix);
            if !names.insert(id.clone()) {
                continue;
            }
            let mut members = mapping.clone();
            for key in ["provider", "name", "regions", "region_prices"] {
                members.remove(key);
            }
            models.push(ImportedModel {
                id,
                model_type: model_type.filter(|it| *it != "chat").map(str::to_owned),
                aliases: Vec::new(),
                mappings: vec![ImportedMapping {
                    pool: PoolRef {
                        number: wildcard.number,
                        regions: Vec::new(),
                    },
                    name: name.to_owned(),
                    members,
                    rank: 0,
                }],
            });
        }
        note(&wildcard, models.len() - before, reading);
    }
    models
}

fn note(wildcard: &Wildcard<'_, '_>, count: usize, reading: &mut Reading<'_>) {
    let prefix = wildcard.prefix;
    let (what, cure) = match count {
        0 => (
            format!(
                "the catalogue knows no model of {prefix}, so any name behind {prefix}/ is asked for, at an unknown price"
            ),
            "add models with prices to models.toml; then the provider serves those alone",
        ),
        _ => (
            format!(
                "{count} models that the shipped catalogue knows stand for it; other names behind {prefix}/ are unknown"
            ),
            "add what is missing to models.toml",
        ),
    };
    reading
        .findings
        .differs(&wildcard.deployment.field, what, cure);
}
