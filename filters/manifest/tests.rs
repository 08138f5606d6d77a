#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use super::*;
use crate::accounts::KeyHash;

/// Reads and checks a file, given as JSON.
fn manifest(organizations: Value) -> Manifest {
    let mut manifest = unchecked(organizations);
    assert_eq!(check(&mut manifest), []);
    manifest
}

fn unchecked(organizations: Value) -> Manifest {
    serde_json::from_value(json!({ "organizations": organizations })).unwrap()
}

fn faults(organizations: Value) -> Vec<String> {
    let faults = check(&mut unchecked(organizations));
    let told = faults
        .into_iter()
        .map(|it| format!("{}: {}", it.path, it.message));
    told.collect()
}

fn planned(
    declared: &Manifest,
    stored: &Manifest,
    is_pruning: bool,
) -> Result<Vec<PlannedChange>, Vec<ManifestFault>> {
    let mut count = 0;
    plan(declared, stored, is_pruning, &mut |prefix| {
        count += 1;
        format!("{prefix}_{count}")
    })
}

/// Returns the changes, one line each.
fn changes(declared: &Manifest, stored: &Manifest, is_pruning: bool) -> Vec<String> {
    let planned = planned(declared, stored, is_pruning).unwrap();
    let line = |it: &PlannedChange| {
        let field = |it: &FieldChange| format!("{}: {} → {}", it.name, it.before, it.after);
        let fields: Vec<String> = it.fields.iter().map(field).collect();
        let fields = match it.action {
            Action::Create => String::new(),
            _ => format!(" {}", fields.join(", ")),
        };
        format!(
            "{} {} {} {}{fields}",
            it.action.as_str(),
            it.kind,
            it.id,
            it.name
        )
    };
    planned
        .iter()
        .map(|it| line(it).trim_end().to_owned())
        .collect()
}

fn refusals(declared: &Manifest, stored: &Manifest, is_pruning: bool) -> Vec<String> {
    let faults = planned(declared, stored, is_pruning).unwrap_err();
    let told = faults
        .into_iter()
        .map(|it| format!("{}: {}", it.path, it.message));
    told.collect()
}

/// An organization with one thing of each kind, as the store has it.
fn stored() -> Manifest {
    let mut stored = manifest(json!([{
        "id": "org_a", "name": "acme", "plan": "pro",
        "projects": [{"id": "proj_d", "name": "default"}, {"id": "proj_a", "name": "app", "mode": "byok"}],
        "members": [{"id": "mem_a", "name": "ada", "budget": "5"}],
        "keys": [{"id": "key_a", "project": "app", "member": "ada", "limit": "1"}],
        "provider_keys": [{"provider": "openai", "label": "main"}],
        "prompts": [{"name": "hello", "versions": [
            {"content": "one", "labels": []}, {"content": "two", "labels": ["production"]}]}],
    }]));
    let organization = &mut stored.organizations[0];
    organization.keys[0].hash = Some(KeyHash::from_bytes([1; 32]));
    organization.provider_keys[0].id = "pk_a".to_owned();
    organization.provider_keys[0].hash = Some(KeyHash::from_bytes([2; 32]));
    organization.prompts[0].id = "prompt_a".to_owned();
    for (index, version) in organization.prompts[0].versions.iter_mut().enumerate() {
        version.number = index as u64 + 1;
    }
    stored
}

#[test]
fn what_a_file_says_of_a_new_organization_is_made_in_the_order_of_dependence() {
    let mut declared = manifest(json!([{
        "name": "acme",
        "projects": [{"name": "app"}],
        "members": [{"name": "ada"}],
        "keys": [{"id": "ci", "project": "app", "member": "ada"}, {"id": "plain"}],
        "provider_keys": [{"provider": "openai", "label": "main"}],
        "prompts": [{"name": "hello", "project": "app", "versions": [{"content": "{}"}]}],
    }]));
    declared.organizations[0].provider_keys[0].hash = Some(KeyHash::from_bytes([1; 32]));
    assert_eq!(
        changes(&declared, &Manifest::default(), false),
        [
            "create organization org_1 acme",
            "create project proj_2 acme/default",
            "create project proj_3 acme/app",
            "create member mem_4 acme/ada",
            "create key ci acme/ci",
            "create key plain acme/plain",
            "create provider key pk_5 acme/openai/main",
            "create prompt prompt_6 acme/app/hello",
        ]
    );
    let made = planned(&declared, &Manifest::default(), false).unwrap();
    let PlannedRow::Key(ci) = &made[4].row else {
        panic!("{:?}", made[4]);
    };
    assert_eq!(
        (ci.project_id.as_str(), ci.member_id.as_deref()),
        ("proj_3", Some("mem_4"))
    );
    let PlannedRow::Key(plain) = &made[5].row else {
        panic!("{:?}", made[5]);
    };
    assert_eq!(
        (plain.project_id.as_str(), plain.is_text_new),
        ("proj_2", true)
    );
    let PlannedRow::Prompt(prompt) = &made[7].row else {
        panic!("{:?}", made[7]);
    };
    let version = ("{}".to_owned(), vec!["production".to_owned()]);
    assert_eq!(prompt.new_versions, [version]);
}

#[test]
fn what_the_store_says_already_is_no_change() {
    let stored = stored();
    assert_eq!(changes(&stored, &stored, false), [""; 0]);
    assert_eq!(changes(&stored, &stored, true), [""; 0]);
    // Another spelling is the same, and so is a label at another version of the same content.
    let mut same = manifest(json!([{
        "name": "acme", "plan": "pro", "status": "active",
        "projects": [{"name": "app", "mode": "byok", "cache_ttl_s": 0}],
        "members": [{"name": "ada", "budget": "5.00"}],
        "keys": [{"id": "key_a", "project": "app", "member": "ada", "limit": "1.0"}],
        "provider_keys": [{"provider": "openai", "label": "main"}],
        "prompts": [{"name": "hello", "versions": [{"content": "two"}]}],
    }]));
    assert_eq!(changes(&same, &stored, false), [""; 0]);
    same.organizations[0].keys[0].hash = Some(KeyHash::from_bytes([1; 32]));
    same.organizations[0].provider_keys[0].hash = Some(KeyHash::from_bytes([2; 32]));
    assert_eq!(changes(&same, &stored, false), [""; 0]);
}

#[test]
fn each_changed_field_is_named_and_what_a_file_leaves_out_has_its_default() {
    let mut declared = manifest(json!([{
        "id": "org_a", "name": "acme 2", "regions": "eu, us-east-1", "status": "disabled",
        "projects": [{"name": "app", "cache_ttl_s": 60, "status": "archived"}],
        "members": [{"name": "ada"}],
        "keys": [{"id": "key_a", "label": "ci", "limit_per": {"day": "2"}, "expires": "2031-01-01T01:00:00+01:00"}],
        "provider_keys": [{"provider": "openai", "label": "main"}],
        "prompts": [{"name": "hello", "versions": [
            {"content": "one", "labels": ["production", "old"]}, {"content": "three", "labels": ["next"]}]}],
    }]));
    declared.organizations[0].keys[0].hash = Some(KeyHash::from_bytes([9; 32]));
    declared.organizations[0].provider_keys[0].hash = Some(KeyHash::from_bytes([9; 32]));
    assert_eq!(
        changes(&declared, &stored(), false),
        [
            r#"update organization org_a acme 2 name: "acme" → "acme 2", plan: "pro" → "none", regions: null → "eu,us-east-1", status: "active" → "disabled""#,
            r#"update project proj_a acme 2/app cache_ttl_s: null → 60, mode: "byok" → "platform", status: "active" → "archived""#,
            r#"update member mem_a acme 2/ada budget: "5" → null"#,
            r#"update key key_a acme 2/key_a expires: null → "2031-01-01T00:00:00Z", label: null → "ci", limit: "1" → null, limit_per: null → {"day":"2"}, member: "ada" → null, project: "app" → null, secret: "(hidden)" → "(another)""#,
            r#"update provider key pk_a acme 2/openai/main secret: "(hidden)" → "(another)""#,
            r#"update prompt prompt_a acme 2/hello versions: 2 → 3, labels.next: null → "a new version", labels.production: 2 → 1, labels.old: null → 1"#,
        ]
    );
}

#[test]
fn only_a_pruning_plan_takes_out_of_use_what_the_file_does_not_name() {
    let mut all = stored();
    let other = DeclaredOrganization {
        id: "org_b".to_owned(),
        ..all.organizations[0].clone()
    };
    all.organizations.push(other);
    all.organizations[1].name = "other".to_owned();
    let revoked = DeclaredKey {
        id: "key_old".to_owned(),
        is_revoked: true,
        ..all.organizations[0].keys[0].clone()
    };
    all.organizations[0].keys.push(revoked);
    let declared = manifest(json!([{"name": "acme", "plan": "pro"}]));
    assert_eq!(changes(&declared, &all, false), [""; 0]);
    assert_eq!(
        changes(&declared, &all, true),
        [
            "remove key key_a acme/key_a",
            "remove provider key pk_a acme/openai/main",
            "remove prompt prompt_a acme/hello",
            "remove member mem_a acme/ada",
            r#"update project proj_a acme/app status: "active" → "archived""#,
            r#"update organization org_b other status: "active" → "disabled""#,
        ]
    );
    // Labels too.
    let declared = manifest(json!([{"name": "acme", "plan": "pro",
        "prompts": [{"name": "hello", "versions": [{"content": "two", "labels": []}]}]}]));
    let pruned = changes(&declared, &stored(), true).join("\n");
    assert!(
        pruned.contains("update prompt prompt_a acme/hello labels.production: 2 → null"),
        "{pruned}"
    );
}

#[test]
fn names_move_in_an_order_in_which_each_is_free_and_never_in_a_round() {
    let mut stored = manifest(json!([
        {"id": "a", "name": "one"}, {"id": "b", "name": "two"}, {"id": "c", "name": "three"}]));
    stored.organizations.truncate(2);
    let declared = manifest(json!([{"id": "a", "name": "two"}, {"id": "b", "name": "free"}]));
    assert_eq!(
        changes(&declared, &stored, false),
        [
            r#"update organization b free name: "two" → "free""#,
            r#"update organization a two name: "one" → "two""#
        ]
    );
    let round = manifest(json!([{"id": "a", "name": "two"}, {"id": "b", "name": "one"}]));
    assert_eq!(
        refusals(&round, &stored, false),
        ["organizations[0].name: the names go round: `two` → `one`"]
    );
    let taken = manifest(json!([{"id": "new", "name": "two"}]));
    assert_eq!(
        refusals(&taken, &stored, false),
        ["organizations[0].name: the organization `b` has the name \"two\""]
    );
}

#[test]
fn what_belongs_to_a_renamed_thing_stays_as_it_is() {
    let mut stored = stored();
    stored.organizations[0].prompts[0].project = "app".to_owned();
    let declared = manifest(json!([{
        "name": "acme", "plan": "pro",
        "projects": [{"id": "proj_a", "name": "app 2", "mode": "byok"}, {"name": "app"}],
        "members": [{"id": "mem_a", "name": "ada 2", "budget": "5"}],
        "keys": [{"id": "key_a", "project": "app 2", "member": "ada 2", "limit": "1"}],
        "prompts": [{"name": "hello", "project": "app 2", "versions": [{"content": "two"}]}],
    }]));
    assert_eq!(
        changes(&declared, &stored, false),
        [
            r#"update project proj_a acme/app 2 name: "app" → "app 2""#,
            "create project proj_1 acme/app",
            r#"update member mem_a acme/ada 2 name: "ada" → "ada 2""#,
        ]
    );
}

#[test]
fn an_empty_file_takes_nothing_out_of_use() {
    let empty = Manifest::default();
    assert_eq!(changes(&empty, &stored(), false), [""; 0]);
    let refused = refusals(&empty, &stored(), true);
    assert!(refused[0].contains("names no organization"), "{refused:?}");
}

#[test]
fn what_the_store_has_against_a_file_is_said_at_once() {
    let mut stored = stored();
    stored.organizations[0].keys[0].is_revoked = true;
    let declared = manifest(json!([{
        "name": "acme", "plan": "pro",
        "keys": [{"id": "key_a"}, {"id": "b", "project": "none"}, {"id": "c", "member": "bob"}],
        "provider_keys": [{"provider": "groq", "label": "main"}],
        "prompts": [{"name": "hello", "project": "none", "versions": [{"content": "{}"}]}],
    }]));
    assert_eq!(
        refusals(&declared, &stored, false),
        [
            "organizations[0].keys[0].id: the key `key_a` is revoked, which is final",
            "organizations[0].keys[1].project: the organization has no project \"none\"",
            "organizations[0].keys[2].member: the organization has no member \"bob\"",
            "organizations[0].provider_keys[0]: the store has no such key, so its text is needed",
            "organizations[0].prompts[0].project: the organization has no project \"none\"",
        ]
    );
    // What a pruning plan archives, no key can be of.
    let declared = manifest(
        json!([{"name": "acme", "plan": "pro", "keys": [{"id": "new", "project": "app"}]}]),
    );
    assert!(planned(&declared, &self::stored(), false).is_ok());
    assert_eq!(
        refusals(&declared, &self::stored(), true),
        ["organizations[0].keys[0].project: the organization has no project \"app\""]
    );
}

#[test]
fn mistakes_of_a_file_are_named_with_their_places() {
    let long = "a".repeat(129);
    let told = faults(json!([
        {"id": "-a", "name": " acme", "regions": "EU!"},
        {"id": "two", "name": "two",
         "projects": [{"name": "app", "experiments": "a b"}, {"name": "app", "regions": "x!"}],
         "members": [{"id": "m", "name": long, "budget": "-1"}, {"id": "m", "name": "b"}],
         "keys": [{"id": "k", "expires": "soon"}, {"id": "k", "limit_per": {"eon": "1"}}],
         "provider_keys": [{"provider": "p", "label": "l"}, {"provider": "p", "label": "l"}],
         "prompts": [{"name": "a b", "versions": [
            {"content": "x", "labels": ["latest", "7"]}, {"content": "x", "labels": ["ok"]}, {"content": "y", "labels": ["ok"]}]}]},
        {"name": "two", "keys": [{"id": "k"}]},
    ]));
    let places: Vec<&str> = told.iter().filter_map(|it| it.split(':').next()).collect();
    assert_eq!(
        places,
        [
            "organizations[0].id",
            "organizations[0].name",
            "organizations[0].regions",
            "organizations[1].projects[0].experiments",
            "organizations[1].projects[1].regions",
            "organizations[1].members[0].name",
            "organizations[1].members[0].budget",
            "organizations[1].keys[0].expires",
            "organizations[1].keys[1].limit_per",
            "organizations[1].prompts[0].name",
            "organizations[1].prompts[0].versions[0].labels",
            "organizations[1].prompts[0].versions[0].labels",
            "organizations[1].prompts[0].versions[1]",
            "organizations[1].prompts[0].versions[2].labels",
            "organizations[1].projects[1].name",
            "organizations[1].members[1].id",
            "organizations[1].provider_keys[1].label",
            "organizations[2].name",
            "organizations[1].keys[1].id",
            "organizations[2].keys[0].id",
        ],
        "{told:#?}"
    );
}

#[test]
fn a_file_has_a_bound() {
    let keys: Vec<Value> = (0..MAX_THINGS)
        .map(|it| json!({"id": format!("k{it}")}))
        .collect();
    let told = faults(json!([{"name": "a", "keys": keys}]));
    assert_eq!(
        told,
        ["organizations: the file names 20001 things; accepted are 20000"]
    );
}
