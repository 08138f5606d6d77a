//! Checks the catalogue's file like the configuration: it finds every problem at once, each with its place and cure.

mod digest;
mod prices;
mod regions;

use std::collections::{BTreeMap, BTreeSet};

use filters::models::routing::catalog::{Catalog, CatalogProblem};
use filters::models::routing::providers::ProviderNames;
use filters::models::routing::{CatalogFile, MappingWire, WrittenMapping, WrittenParameters};
use serde_json::Value as Json;

pub(super) use self::digest::CatalogDigest;
use self::prices::{find_idle_prices, find_implausible_prices};

use super::document::{self, Node, SourceSpan, Value};
use super::file::ProviderConfig;
use super::problem::{Location, Problem};
use super::reporter::Reporter;
use super::schema::make_schema;
use super::suggest;
use super::walk::{Finding, Walk};

/// The built-in provider. A configuration need not name it, although the shipped catalogue has its models.
const SANDBOX: &str = "sandbox";

/// A checked catalogue.
pub(super) struct CheckedCatalog {
    /// The models, or all problems in the order of the file.
    pub file: Result<CatalogFile, Vec<Problem>>,
    /// Findings that are not errors.
    pub warnings: Vec<Problem>,
    pub names: BTreeSet<String>,
    pub digest: CatalogDigest,
}

/// Checks the catalogue `text` of the file `name`. `providers` are all configured providers, and `enabled` those that
/// serve. A catalogue that is valid here also starts: the start uses [`Catalog::check`] with the same providers.
pub(super) fn check(
    name: &str,
    text: &str,
    providers: &BTreeMap<String, ProviderConfig>,
    enabled: ProviderNames,
) -> CheckedCatalog {
    let (root, syntax) = document::parse(text);
    let mut walk = Walk::default();
    let valid = walk.check_document(&root, &make_schema::<CatalogFile>());
    let models = items(member(&root, "models"));
    let digest = CatalogDigest::new(&valid);
    let names = check_names(&mut walk, models);
    check_successors(&mut walk, models, &names);
    check_wires(&mut walk, models, providers);
    check_parameters(&mut walk, &valid);
    let known: Vec<&str> = providers.keys().map(String::as_str).collect();
    let mut warnings = find_unknown_providers(models, &known);
    warnings.extend(find_implausible_prices(models));
    let findings = document::without_echoes(text, syntax, walk.findings);
    let reporter = Reporter {
        name,
        text,
        hidden: &walk.hidden,
    };
    let places = std::mem::take(&mut walk.places);
    let reach = regions::Reach::new(providers, &enabled);
    let file = if findings.is_empty() {
        let file = to_file(name, valid).map(|mut file| {
            choose_wires(&mut file, providers);
            file
        });
        file.and_then(|file| match Catalog::check(file.clone(), enabled) {
            Ok(_) => Ok(file),
            Err(problems) => Err(reporter.to_problems(find_places(&problems, &places))),
        })
    } else {
        Err(reporter.to_problems(findings))
    };
    let file = file.map(|mut file| {
        let is_reachable =
            |mapping: &WrittenMapping, region: &str| reach.has(&mapping.provider, region);
        warnings.extend(regions::find_idle_turns(&file, providers, &places));
        warnings.extend(find_idle_prices(&file, &places, is_reachable));
        warnings.extend(regions::leave_out_unreachable(&mut file, &reach, &places));
        file
    });
    CheckedCatalog {
        file,
        warnings: reporter.to_problems(warnings),
        names,
        digest,
    }
}

/// Returns findings at the places of these problems.
fn find_places(problems: &[CatalogProblem], places: &Places) -> Vec<Finding> {
    let cure = "give what the documentation of this key accepts: prices and factors with fewer digits, efforts and budgets \
                inside the bounds";
    let problems = problems.iter();
    let findings = problems.map(
        |CatalogProblem {
             entry,
             member,
             message,
         }| { finding(places, entry, member, message.clone(), cure) },
    );
    findings.flatten().collect()
}

/// Converts the checked document to its typed form.
fn to_file(name: &str, valid: Json) -> Result<CatalogFile, Vec<Problem>> {
    serde_json::from_value(valid).map_err(|error| {
        vec![Problem {
            key: String::new(),
            place: Location::Nowhere {},
            message: format!("{name} cannot be used: {error}"),
            cure: "please report this".to_owned(),
        }]
    })
}

/// Refuses names that two models share. Returns all names.
fn check_names(walk: &mut Walk, models: &[Node]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (index, model) in models.iter().enumerate() {
        let id = member(model, "id").map(|id| (format!("models[{index}].id"), id));
        let aliases = items(member(model, "aliases")).iter().enumerate();
        let aliases = aliases.map(|(at, alias)| (format!("models[{index}].aliases[{at}]"), alias));
        for (key, node) in id.into_iter().chain(aliases) {
            let Some(name) = as_text(node) else { continue };
            if !names.insert(name.to_owned()) {
                let message = format!("{name:?} is already the id or alias of a model");
                let cure = "give each model and each alias a name of its own".to_owned();
                walk.refuse(&key, &node.at, message, cure);
            }
        }
    }
    names
}

/// Refuses successors that are not another model of the catalogue.
fn check_successors(walk: &mut Walk, models: &[Node], names: &BTreeSet<String>) {
    for (index, model) in models.iter().enumerate() {
        let Some(node) = member(model, "successor") else {
            continue;
        };
        let Some(successor) = as_text(node) else {
            continue;
        };
        let is_itself = member(model, "id").and_then(as_text) == Some(successor);
        if names.contains(successor) && !is_itself {
            continue;
        }
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let cure = match suggest::find_typo(successor, &known) {
            Some(meant) if !is_itself => format!("did you mean {meant:?}?"),
            _ => "name the model that callers should use in its place".to_owned(),
        };
        let message = format!("{successor:?} is no other model of this catalogue");
        walk.refuse(
            &format!("models[{index}].successor"),
            &node.at,
            message,
            cure,
        );
    }
}

/// Refuses a choice of wire for a provider that offers no choice.
fn check_wires(walk: &mut Walk, models: &[Node], providers: &BTreeMap<String, ProviderConfig>) {
    for (index, model) in models.iter().enumerate() {
        for (number, mapping) in items(member(model, "providers")).iter().enumerate() {
            let provider = member(mapping, "provider").and_then(as_text);
            let Some((wire, provider)) = member(mapping, "wire").zip(provider) else {
                continue;
            };
            let Some(known) = providers.get(provider) else {
                continue;
            };
            let words = known.kind.host().words().map(MappingWire::as_str);
            let words: Vec<&str> = words.collect();
            let asked = as_text(wire).unwrap_or_default();
            // What is no word at all was refused before.
            let is_word = serde_json::from_value::<MappingWire>(asked.into()).is_ok();
            if words.contains(&asked) || !is_word {
                continue;
            }
            let key = format!("models[{index}].providers[{number}].wire");
            let (message, cure) = match &*words {
                [] => (
                    format!("provider {provider:?} has one API and no choice"),
                    "take it out: it is for providers whose kind has several".to_owned(),
                ),
                words => (
                    format!("{asked:?} is no API of provider {provider:?}"),
                    format!("use one of: {}", words.join(", ")),
                ),
            };
            walk.refuse(&key, &wire.at, message, cure);
        }
    }
}

/// Chooses the wires of mappings that choose none, by the models that they say they are.
fn choose_wires(file: &mut CatalogFile, providers: &BTreeMap<String, ProviderConfig>) {
    let models = file.models.iter_mut();
    for mapping in models.flat_map(|model| &mut model.providers) {
        let known = providers.get(&mapping.provider);
        let host = known.map(|known| known.kind.host());
        let chosen =
            host.and_then(|host| host.word_for(mapping.base_model.as_deref(), &mapping.name));
        mapping.wire = mapping.wire.or(chosen);
    }
}

/// Refuses tables of parameters that contradict themselves.
fn check_parameters(walk: &mut Walk, valid: &Json) {
    for (index, model) in elements(valid, "models").enumerate() {
        for (number, mapping) in elements(model, "providers").enumerate() {
            let written = mapping.get("parameters").cloned().unwrap_or_default();
            let written: WrittenParameters = serde_json::from_value(written).unwrap_or_default();
            for problem in written.problems() {
                let key = format!(
                    "models[{index}].providers[{number}].parameters.{}",
                    problem.key
                );
                if let Some(at) = walk.places.get(&key).cloned() {
                    walk.refuse(&key, &at, problem.message, problem.cure);
                }
            }
        }
    }
}

fn elements<'j>(of: &'j Json, name: &str) -> impl Iterator<Item = &'j Json> {
    let list = of.get(name).and_then(Json::as_array);
    list.into_iter().flatten()
}

/// A value of a mapping, with its key.
struct MappingValue<'n> {
    key: String,
    at: &'n SourceSpan,
    text: &'n str,
}

/// Returns the text values of all mappings for the key `name`.
fn mapping_values<'n>(models: &'n [Node], name: &str) -> Vec<MappingValue<'n>> {
    let mut values = Vec::new();
    for (index, model) in models.iter().enumerate() {
        for (number, mapping) in items(member(model, "providers")).iter().enumerate() {
            let node = member(mapping, name);
            if let Some((at, text)) = node.and_then(|node| Some((&node.at, as_text(node)?))) {
                let key = format!("models[{index}].providers[{number}].{name}");
                values.push(MappingValue { key, at, text });
            }
        }
    }
    values
}

/// Warns of providers that the configuration does not have. Names that look like typos get one warning each, and all
/// others one together, because a catalogue may know more providers than one uses.
fn find_unknown_providers(models: &[Node], providers: &[&str]) -> Vec<Finding> {
    let mut warnings = Vec::new();
    let mut others: Vec<MappingValue<'_>> = Vec::new();
    for value in mapping_values(models, "provider") {
        if value.text == SANDBOX || providers.contains(&value.text) {
            continue;
        }
        match suggest::find_typo(value.text, providers) {
            Some(meant) => warnings.push(Finding {
                message: format!("no provider {:?} is configured", value.text),
                cure: format!("did you mean {meant:?}?"),
                key: value.key,
                at: value.at.clone(),
            }),
            None => others.push(value),
        }
    }
    let Some(first) = others.first() else {
        return warnings;
    };
    let names: BTreeSet<&str> = others.iter().map(|value| value.text).collect();
    let names: Vec<&str> = names.into_iter().collect();
    warnings.push(Finding {
        key: first.key.clone(),
        at: first.at.clone(),
        message: format!(
            "not configured, so not offered: {} ({} mappings)",
            names.join(", "),
            others.len()
        ),
        cure: "nothing to do, or add [providers.NAME] to the configuration".to_owned(),
    });
    warnings
}

/// The positions of values by key.
type Places = BTreeMap<String, SourceSpan>;

/// Returns all mappings, each with its key.
fn mappings(file: &CatalogFile) -> impl Iterator<Item = (String, &WrittenMapping)> {
    let models = file.models.iter().enumerate();
    models.flat_map(|(index, model)| {
        let mappings = model.providers.iter().enumerate();
        mappings.map(move |(at, mapping)| (format!("models[{index}].providers[{at}]"), mapping))
    })
}

/// Returns a finding at a member of a mapping, or at the mapping if it lacks the member.
fn finding(
    places: &Places,
    mapping: &str,
    member: &str,
    message: String,
    cure: &str,
) -> Option<Finding> {
    let key = format!("{mapping}.{member}");
    let at = places.get(&key).or_else(|| places.get(mapping))?;
    Some(Finding {
        at: at.clone(),
        key,
        message,
        cure: cure.to_owned(),
    })
}

fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    match &node.value {
        Value::Table(table) => table.get(name).map(|(_, node)| node),
        _ => None,
    }
}

fn items(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

fn as_text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
