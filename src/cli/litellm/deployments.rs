//! `model_list`: which model of which provider each entry stands for, and where it is.

use std::collections::BTreeMap;

use toml::Table;

use super::fields::{Field, Fields};
use super::known;
use super::mapping::{self, MappingInput};
use super::places::{self, Endpoint};
use super::providers::{self, ModelName, ProviderRow};
use super::references::Reading;

/// An entry of `model_list`.
pub(super) struct Deployment<'n> {
    /// Where it is in the input.
    pub field: Field<'n>,
    /// The name that clients ask for: `model_name`.
    pub group: String,
    pub row: &'static ProviderRow,
    /// The provider's own name of the model.
    pub upstream: String,
    /// When it is tried among those of its group; lower ones first.
    pub order: u64,
    /// Its share of the calls of its group; `None`: as any other.
    pub weight: Option<u64>,
    /// What is configured for its provider beside its place.
    pub settings: Table,
    pub endpoint: Endpoint,
    /// The type of its model; `None`: chats.
    pub model_type: Option<String>,
    /// The members of its mapping but `provider`, `name` and `regions`.
    pub mapping: Table,
}

impl Deployment<'_> {
    /// Returns the parts of a wildcard: the prefix of its group, and the pattern behind it.
    pub(super) fn wildcard(&self) -> Option<(&str, &str)> {
        let (prefix, rest) = self.group.split_once('/')?;
        (rest.contains('*') && self.upstream.contains('*')).then_some((prefix, rest))
    }
}

/// Named credentials, which entries refer to: their fields by name.
pub(super) type Credentials<'n> = BTreeMap<String, Fields<'n>>;

/// Reads `credential_list`.
pub(super) fn read_credentials<'n>(
    list: Option<Field<'n>>,
    reading: &mut Reading<'_>,
) -> Credentials<'n> {
    let mut credentials = Credentials::new();
    let entries = list.as_ref().map(Field::items).unwrap_or_default();
    for entry in entries {
        let mut fields = Fields::read(Some(entry.clone()), &mut reading.findings);
        let name = fields.take_text("credential_name", &mut reading.findings);
        let values = Fields::read(fields.take("credential_values"), &mut reading.findings);
        reading.findings.leave(fields, known::CREDENTIAL);
        match name {
            Some((_, name)) => drop(credentials.insert(name, values)),
            None => reading.findings.left_out(
                &entry,
                "has no credential_name",
                "name it as model_list does",
            ),
        }
    }
    credentials
}

/// Reads all entries.
pub(super) fn read<'n>(
    list: Option<Field<'n>>,
    credentials: &Credentials<'n>,
    reading: &mut Reading<'_>,
) -> Vec<Deployment<'n>> {
    let entries = list.as_ref().map(Field::items).unwrap_or_default();
    let read = entries.into_iter();
    read.filter_map(|entry| read_entry(entry, credentials, reading))
        .collect()
}

fn read_entry<'n>(
    entry: Field<'n>,
    credentials: &Credentials<'n>,
    reading: &mut Reading<'_>,
) -> Option<Deployment<'n>> {
    let Some(mut fields) = entry.to_fields() else {
        reading.findings.wrong_kind(&entry, "a table");
        return None;
    };
    let group = fields.take_text("model_name", &mut reading.findings);
    let mut params = Fields::read(fields.take("litellm_params"), &mut reading.findings);
    let mut info = Fields::read(fields.take("model_info"), &mut reading.findings);
    reading.findings.leave(fields, known::MODEL);
    add_credential(&mut params, credentials, reading);
    let model = read_model(&entry, &mut params, reading);
    let group = check_group(&entry, group, reading);
    let (group, model) = (group?, model?);
    if model.name.contains('*') && !group.contains('/') {
        let what = "a part of a name cannot be handed on to the provider";
        let cure =
            "list the models by name, or write PREFIX/* for all of a provider; then import again";
        reading.findings.left_out(&entry, what, cure);
        return None;
    }
    let place = places::read(&entry, &model, &mut params, reading)?;
    let order = params.take_count("order", &mut reading.findings);
    let weight = read_weight(&mut params, reading);
    let mut mapping = MappingInput {
        model: &model,
        place: &place,
        params: &mut params,
        info: &mut info,
    };
    let (model_type, mapping) = mapping::read(&mut mapping, reading)?;
    leave_params(params, reading);
    reading.findings.leave(info, known::MODEL_INFO);
    Some(Deployment {
        field: entry,
        group,
        row: model.row,
        upstream: model.name,
        order: order.map_or(0, |(_, order)| order),
        weight,
        settings: place.settings,
        endpoint: place.endpoint,
        model_type,
        mapping,
    })
}

/// Returns the name of a model, if one can be named so here.
fn check_group(
    entry: &Field<'_>,
    given: Option<(Field<'_>, String)>,
    reading: &mut Reading<'_>,
) -> Option<String> {
    let Some((field, group)) = given else {
        let cure = "name it as clients ask for it";
        reading.findings.left_out(entry, "has no model_name", cure);
        return None;
    };
    let cure = match &*group {
        "*" => "give each provider an entry of its own, such as one named PREFIX/*",
        "" | "auto" => "give it another name: `auto` lets the gateway choose the model",
        _ => return Some(group),
    };
    let what = "no model can be named so here";
    reading.findings.left_out(&field, what, cure);
    None
}

/// Adds the fields of the named credential that the entry refers to. What stands in the entry itself counts first.
fn add_credential<'n>(
    params: &mut Fields<'n>,
    credentials: &Credentials<'n>,
    reading: &mut Reading<'_>,
) {
    let findings = &mut reading.findings;
    let Some((field, name)) = params.take_text("litellm_credential_name", findings) else {
        return;
    };
    match credentials.get(&name) {
        Some(values) => params.add_missing(values),
        None => findings.left_out(
            &field,
            "names a credential that credential_list does not have",
            "add it to credential_list, and import again",
        ),
    }
}

fn read_model<'n>(
    entry: &Field<'n>,
    params: &mut Fields<'n>,
    reading: &mut Reading<'_>,
) -> Option<ModelName> {
    let given = params.take_text("custom_llm_provider", &mut reading.findings);
    let Some(field) = params.take("model") else {
        let what = "has no litellm_params.model, so nothing can be asked";
        let cure = "add it, as PROVIDER/MODEL";
        reading.findings.left_out(entry, what, cure);
        return None;
    };
    let model = reading.text(&field)?;
    let found = providers::split(&model, given.as_ref().map(|(_, given)| &**given));
    if found.is_none() {
        let what = "no provider is known here for this model, so its entry is left out";
        let cure = "if it is a server of OpenAI's convention, write openai/MODEL and its api_base; then import again";
        reading.findings.left_out(&field, what, cure);
    }
    found.filter(|found| !found.name.is_empty())
}

/// Returns the weight of a deployment: the one that is written, or else its requests or tokens per minute, by which the other
/// gateway weighs.
fn read_weight(params: &mut Fields<'_>, reading: &mut Reading<'_>) -> Option<u64> {
    let findings = &mut reading.findings;
    let mut weight = params
        .take_count("weight", findings)
        .map(|(_, weight)| weight);
    for name in ["rpm", "tpm"] {
        let Some((field, count)) = params.take_count(name, findings) else {
            continue;
        };
        let is_weight = weight.is_none();
        weight = weight.or(Some(count));
        let what = match is_weight {
            true => {
                "it is a weight among equal servers here, and no limit of calls to the provider"
            }
            false => "calls to a provider have no limit of their own here",
        };
        let cure = "nothing, if the provider tells its limits in its replies, which are kept to; else bound keys, or limits.requests_per_minute";
        findings.differs(&field, what, cure);
    }
    weight
}

/// Notes what is left of `litellm_params`: parameters of requests, and fields without a counterpart.
fn leave_params(mut params: Fields<'_>, reading: &mut Reading<'_>) {
    for field in params.take_all(known::is_parameter) {
        let what = "a mapping has no parameters of its own for requests that say nothing";
        let cure = "let clients send it, or keep it in a managed prompt (docs/prompts.md)";
        reading.findings.left_out(&field, what, cure);
    }
    reading.findings.leave(params, known::PARAMS);
}
