//! Writes `models.toml`: the models, their aliases and their mappings.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::fields::{Field, Fields};
use super::ranks::ImportedModel;
use super::references::Reading;
use super::write::{to_lines, to_quoted};

/// The members of a mapping that stand first.
const FIRST: [&str; 7] = [
    "provider",
    "name",
    "wire",
    "base_model",
    "regions",
    "input_price",
    "output_price",
];

/// Adds other names: those of `model_group_alias`, and those that a prefix would hide. `providers` are the names by number.
pub(super) fn add_aliases(
    models: &mut [ImportedModel],
    aliases: Option<Field<'_>>,
    providers: &[(String, Table)],
    reading: &mut Reading<'_>,
) {
    let names = models
        .iter()
        .flat_map(|model| std::iter::once(&model.id).chain(&model.aliases));
    let mut taken: BTreeSet<String> = names.cloned().collect();
    let places = models.iter().enumerate();
    let places: BTreeMap<String, usize> =
        places.map(|(at, model)| (model.id.clone(), at)).collect();
    let aliases = Fields::read(aliases, &mut reading.findings);
    for (alias, field) in aliases.into_rest() {
        let Some(target) = read_target(&field, reading) else {
            continue;
        };
        let model = places.get(&target).and_then(|at| models.get_mut(*at));
        match model {
            Some(model) if !alias.is_empty() && taken.insert(alias.to_owned()) => {
                model.aliases.push(alias.to_owned());
            }
            Some(_) => reading.findings.left_out(
                &field,
                "is already the name of a model",
                "give each model and each alias a name of its own",
            ),
            None => reading.findings.left_out(
                &field,
                "stands for a model that model_list does not have",
                "add it to model_list, or take the alias out; then import again",
            ),
        }
    }
    for model in models {
        add_hidden(model, providers, &mut taken);
    }
}

/// Returns the model that an alias stands for.
fn read_target(field: &Field<'_>, reading: &mut Reading<'_>) -> Option<String> {
    if let Some(target) = field.to_text() {
        return Some(target);
    }
    let mut fields = Fields::read(Some(field.clone()), &mut reading.findings);
    let target = fields.take_text("model", &mut reading.findings);
    if let Some((hidden, true)) = fields.take_bool("hidden", &mut reading.findings) {
        let what = "aliases are not listed here, but their models are";
        reading.findings.differs(&hidden, what, "nothing");
    }
    reading.findings.leave(fields, &[]);
    Some(target?.1)
}

/// Adds what stands behind the prefix of a name, if the prefix is a provider: it is asked for under that name then.
fn add_hidden(
    model: &mut ImportedModel,
    providers: &[(String, Table)],
    taken: &mut BTreeSet<String>,
) {
    let Some((prefix, rest)) = model.id.split_once('/') else {
        return;
    };
    let is_own = model.mappings.iter().any(|mapping| {
        let provider = providers.get(mapping.pool.number);
        provider.is_some_and(|(name, _)| name == prefix) && mapping.name != rest
    });
    if is_own && taken.insert(rest.to_owned()) {
        model.aliases.push(rest.to_owned());
    }
}

/// Returns the file.
pub(super) fn to_toml(models: &[ImportedModel], providers: &[(String, Table)]) -> String {
    let mut text = String::from(
        "# Models, their providers and prices, imported from the configuration of a LiteLLM proxy. Prices that the\n\
         # configuration did not say are those of the catalogue that is shipped. docs/interface.md describes the keys.\n",
    );
    for model in models {
        text.push_str(&format!("\n[[models]]\nid = {}\n", to_quoted(&model.id)));
        if let Some(model_type) = &model.model_type {
            text.push_str(&format!("type = {}\n", to_quoted(model_type)));
        }
        if !model.aliases.is_empty() {
            let aliases = model
                .aliases
                .iter()
                .map(|alias| Value::from(alias.as_str()));
            text.push_str(&format!("aliases = {}\n", Value::Array(aliases.collect())));
        }
        for mapping in &model.mappings {
            let Some((provider, _)) = providers.get(mapping.pool.number) else {
                continue;
            };
            let mut members = mapping.members.clone();
            members.insert("provider".to_owned(), Value::from(provider.as_str()));
            members.insert("name".to_owned(), Value::from(mapping.name.as_str()));
            text.push_str("\n[[models.providers]]\n");
            text.push_str(&to_lines(&members, &FIRST));
        }
    }
    text
}
