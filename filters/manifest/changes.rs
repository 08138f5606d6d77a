//! The changes of a plan, and how two forms of a thing differ.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    ACTIVE, DeclaredKey, DeclaredMember, DeclaredOrganization, DeclaredProject, DeclaredProviderKey,
};

/// What is done to a thing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    Create,
    Update,
    /// It is deleted; a key is revoked.
    Remove,
}

impl Action {
    /// Returns the word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Remove => "remove",
        }
    }
}

/// A field that changes. Null: it has no value.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct FieldChange {
    pub name: String,
    pub before: Value,
    pub after: Value,
}

/// One change.
#[derive(Clone, Debug)]
pub struct PlannedChange {
    pub action: Action,
    /// `organization`, `project`, `member`, `key`, `provider key` or `prompt`.
    pub kind: &'static str,
    pub id: String,
    /// Its names, the outermost first: `acme/app`.
    pub name: String,
    pub fields: Vec<FieldChange>,
    /// The row as it shall be.
    pub row: PlannedRow,
    /// Its place in the file; empty: the file does not name it.
    pub path: String,
}

/// What a change writes.
#[derive(Clone, Debug)]
pub enum PlannedRow {
    /// Without what belongs to it.
    Organization(DeclaredOrganization),
    Project(String, DeclaredProject),
    Member(String, DeclaredMember),
    Key(PlannedKey),
    ProviderKey(String, DeclaredProviderKey),
    Prompt(PlannedPrompt),
}

/// A key as it shall be.
#[derive(Clone, Debug)]
pub struct PlannedKey {
    pub organization_id: String,
    pub project_id: String,
    pub member_id: Option<String>,
    pub key: DeclaredKey,
    /// Whether it gets another text.
    pub is_text_new: bool,
}

/// What changes of a prompt.
#[derive(Clone, Debug)]
pub struct PlannedPrompt {
    pub organization_id: String,
    pub project_id: Option<String>,
    pub name: String,
    /// New versions, oldest first: their contents and labels.
    pub new_versions: Vec<(String, Vec<String>)>,
    /// Labels that go to versions with these numbers.
    pub labels: Vec<(String, u64)>,
    /// Labels that are removed.
    pub dropped_labels: Vec<String>,
}

pub(super) fn removal(
    kind: &'static str,
    (id, name): (&str, String),
    row: PlannedRow,
) -> PlannedChange {
    PlannedChange {
        action: Action::Remove,
        kind,
        id: id.to_owned(),
        name,
        fields: Vec::new(),
        row,
        path: String::new(),
    }
}

/// What says that a text is another one. Neither is shown.
pub(super) fn replaced_secret() -> FieldChange {
    FieldChange {
        name: "secret".to_owned(),
        before: json!("(hidden)"),
        after: json!("(another)"),
    }
}

/// The members that are things of their own, or no part of what is compared.
const OUTSIDE: [&str; 8] = [
    "id",
    "secret",
    "projects",
    "members",
    "keys",
    "provider_keys",
    "prompts",
    "versions",
];

/// Returns the fields of a thing.
pub(super) fn fields(thing: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(thing) else {
        return Map::new();
    };
    fields.retain(|name, _| !OUTSIDE.contains(&name.as_str()));
    fields
}

/// Returns the fields in which two forms of a thing differ.
pub(super) fn changed(
    before: Option<Map<String, Value>>,
    after: Map<String, Value>,
) -> Vec<FieldChange> {
    let before = before.unwrap_or_default();
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |fields: &Map<String, Value>, name: &str| match fields.get(name) {
        Some(value) => value.clone(),
        // What is in use does not say so in files.
        None if name == "status" && !fields.is_empty() => json!(ACTIVE),
        None => Value::Null,
    };
    let all = names.into_iter().map(|name| FieldChange {
        name: name.clone(),
        before: value(&before, name),
        after: value(&after, name),
    });
    all.filter(|it| it.before != it.after).collect()
}
