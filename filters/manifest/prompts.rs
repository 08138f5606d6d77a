//! What changes of managed prompts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::changes::{Action, FieldChange, PlannedChange, PlannedPrompt, PlannedRow, removal};
use super::planner::{Owners, Planner};
use super::{DeclaredPrompt, DeclaredVersion};

/// Plans the prompts of an organization.
pub(super) fn plan_prompts(
    planner: &mut Planner<'_>,
    at: &str,
    owners: &Owners<'_>,
    declared: &[DeclaredPrompt],
    stored: &[DeclaredPrompt],
) {
    let place = |it: &DeclaredPrompt| (it.project.clone(), it.name.clone());
    let known: BTreeMap<_, _> = stored.iter().map(|it| (place(it), it)).collect();
    let named: BTreeSet<_> = declared.iter().map(place).collect();
    for (index, prompt) in declared.iter().enumerate() {
        let path = format!("{at}.prompts[{index}]");
        let project_id = match prompt.project.as_str() {
            "" => None,
            name => match planner.find_owner(&path, "project", name, &owners.projects) {
                Some(id) => Some(id),
                None => continue,
            },
        };
        let now = known.get(&place(prompt)).copied();
        let change = PlannedPrompt {
            project_id,
            ..compare(owners, prompt, now, planner.is_pruning)
        };
        let fields = describe_prompt(now, &change);
        if fields.is_empty() {
            continue;
        }
        let is_known = now.is_some_and(|it| !it.versions.is_empty());
        let id = now.map_or_else(|| (planner.new_id)("prompt"), |it| it.id.clone());
        planner.changes.push(PlannedChange {
            action: if is_known {
                Action::Update
            } else {
                Action::Create
            },
            kind: "prompt",
            id,
            name: full_name(owners, prompt),
            fields,
            row: PlannedRow::Prompt(change),
            path,
        });
    }
    let unnamed = stored
        .iter()
        .filter(|it| !it.versions.is_empty() && !named.contains(&place(it)));
    for prompt in unnamed.filter(|_| planner.is_pruning) {
        let row = PlannedRow::Prompt(compare(owners, prompt, None, false));
        let of = (prompt.id.as_str(), full_name(owners, prompt));
        planner.removals.push(removal("prompt", of, row));
    }
}

fn full_name(owners: &Owners<'_>, prompt: &DeclaredPrompt) -> String {
    let parts = [owners.organization, &prompt.project, &prompt.name];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// Compares a prompt with what the store has of it. A label is right where it is at any version of the same content.
fn compare(
    owners: &Owners<'_>,
    prompt: &DeclaredPrompt,
    stored: Option<&DeclaredPrompt>,
    is_pruning: bool,
) -> PlannedPrompt {
    let versions = stored.map_or(&[][..], |it| &it.versions);
    let labels = |it: &DeclaredVersion| it.labels.clone().unwrap_or_default();
    let mut change = PlannedPrompt {
        organization_id: owners.organization_id.to_owned(),
        project_id: None,
        name: prompt.name.clone(),
        new_versions: Vec::new(),
        labels: Vec::new(),
        dropped_labels: Vec::new(),
    };
    for version in &prompt.versions {
        let mut same = versions.iter().filter(|it| it.content == version.content);
        let right: Vec<String> = same.clone().flat_map(labels).collect();
        let Some(last) = same.next_back() else {
            change
                .new_versions
                .push((version.content.clone(), labels(version)));
            continue;
        };
        let wrong = labels(version).into_iter().filter(|it| !right.contains(it));
        change.labels.extend(wrong.map(|it| (it, last.number)));
    }
    if is_pruning {
        let named: Vec<String> = prompt.versions.iter().flat_map(labels).collect();
        let stored = versions.iter().flat_map(labels);
        change.dropped_labels = stored.filter(|it| !named.contains(it)).collect();
    }
    change
}

/// Says what changes of a prompt.
fn describe_prompt(stored: Option<&DeclaredPrompt>, change: &PlannedPrompt) -> Vec<FieldChange> {
    let versions = stored.map_or(&[][..], |it| &it.versions);
    let number = |label: &str| {
        let has = |labels: &Option<Vec<String>>| labels.iter().flatten().any(|it| it == label);
        let found = versions.iter().find(|it| has(&it.labels));
        found.map_or(Value::Null, |it| json!(it.number))
    };
    let label = |label: &String, after: Value| FieldChange {
        name: format!("labels.{label}"),
        before: number(label),
        after,
    };
    let mut fields = Vec::new();
    if !change.new_versions.is_empty() {
        fields.push(FieldChange {
            name: "versions".to_owned(),
            before: json!(versions.len()),
            after: json!(versions.len() + change.new_versions.len()),
        });
    }
    for labels in change.new_versions.iter().map(|(_, labels)| labels) {
        fields.extend(labels.iter().map(|it| label(it, json!("a new version"))));
    }
    fields.extend(change.labels.iter().map(|(it, to)| label(it, json!(to))));
    fields.extend(
        change
            .dropped_labels
            .iter()
            .map(|it| label(it, Value::Null)),
    );
    fields
}
