//! What `weirgate apply` leaves in the audit log.

use std::collections::BTreeMap;

use filters::audit::AuditKind;
use filters::manifest::{
    DeclaredKey, DeclaredMember, DeclaredOrganization, DeclaredProject, DeclaredProviderKey,
    Manifest, check,
};
use filters::secret_ref::SecretRef;

use super::*;
use crate::config::Secret;

on_both![what_a_file_changes_has_an_entry_for_each_thing_as_a_command_has];

fn manifest(organization: Value) -> Manifest {
    let read = serde_json::from_value(json!({"organizations": [organization]}));
    let mut manifest: Manifest = read.unwrap();
    assert_eq!(check(&mut manifest), []);
    manifest
}

impl Fixture {
    async fn apply_file(&self, manifest: &Manifest, is_pruning: bool, is_plan: bool) -> usize {
        let reference = SecretRef::File { file: "key".into() };
        let text = Secret::new("sk-canary-of-a-provider-0123456789".to_owned());
        let secrets = BTreeMap::from([(reference, text)]);
        let wanted = WantedAccounts {
            manifest,
            secrets: &secrets,
            is_pruning,
            is_plan,
        };
        let applied = self
            .store
            .by(&self.ada())
            .apply(&wanted, NOW_MS)
            .await
            .unwrap();
        applied.ok().unwrap().changes.len()
    }
}

async fn what_a_file_changes_has_an_entry_for_each_thing_as_a_command_has(fixture: Fixture) {
    let file = |label: &str, budget: &str, labels: Value| {
        manifest(json!({
            "id": "team-7", "name": "acme", "plan": "pro",
            "projects": [{"name": "app", "mode": "byok", "cache_ttl_s": 60}],
            "members": [{"name": "ada", "budget": budget}],
            "keys": [{"id": "key_ci", "project": "app", "member": "ada", "label": label, "limit": "1.50"}],
            "provider_keys": [{"provider": "first", "label": "main", "secret": {"file": "key"}}],
            "prompts": [{"name": "p", "versions": [{"content": "{}", "labels": labels}]}],
        }))
    };
    let first = file("ci", "2.5", json!(["production"]));
    assert_eq!(fixture.apply_file(&first, false, true).await, 7);
    assert_eq!(fixture.entries().await, [], "a plan writes nothing");
    assert_eq!(fixture.apply_file(&first, false, false).await, 7);
    let entries = fixture.entries().await;
    let actions: Vec<&str> = entries.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(actions.len(), 7, "{actions:?}");
    let of = |action: &str| entries.iter().find(|it| it.0 == action).unwrap();
    let key = json!({
        "label": "ci", "project": "app", "member": "ada", "limit": "1.5",
    });
    assert_eq!(
        of("key.create"),
        &("key.create".into(), "ci".into(), Value::Null, key)
    );
    let prompt = json!({"versions": 1, "labels.production": "a new version"});
    assert_eq!(
        of("prompt.put"),
        &("prompt.put".into(), "p".into(), Value::Null, prompt)
    );
    assert_eq!(fixture.apply_file(&first, true, false).await, 0);
    assert_eq!(
        fixture.entries().await.len(),
        7,
        "the same file changes nothing"
    );
    // The same change by a file and by a command.
    assert_eq!(
        fixture
            .apply_file(&file("laptop", "3", json!(["production"])), false, false)
            .await,
        2
    );
    let by_file = fixture.entries().await.split_off(7);
    assert_eq!(fixture.apply_file(&first, false, false).await, 2);
    let update = KeyChange {
        label: Some("laptop".to_owned()),
        ..KeyChange::default()
    };
    let (actor, start) = (fixture.ada(), fixture.entries().await.len());
    let store = fixture.store.by(&actor);
    let budget = Some(ledger::usd("3"));
    store.set_budget("acme", "ada", budget).await.unwrap();
    store.update_key("key_ci", &update).await.unwrap();
    assert_eq!(fixture.entries().await.split_off(start), by_file);
    let HashedEntry { entry, .. } = fixture.last().await;
    assert_eq!(
        (entry.organization_id.as_str(), entry.organization.as_str()),
        ("team-7", "acme")
    );
    // What is pruned is told as it was.
    let empty = manifest(json!({"id": "team-7", "name": "acme", "plan": "pro"}));
    let start = fixture.entries().await.len();
    assert_eq!(fixture.apply_file(&empty, true, false).await, 5);
    let pruned = fixture.entries().await.split_off(start);
    let mut actions: Vec<&str> = pruned.iter().map(|it| it.0.as_str()).collect();
    actions.sort_unstable();
    let expected = [
        "key.revoke",
        "member.delete",
        "project.update",
        "prompt.delete",
        "provider_key.delete",
    ];
    assert_eq!(actions, expected);
    let deleted = pruned.iter().find(|it| it.0 == "member.delete").unwrap();
    assert_eq!(deleted.2, json!({"name": "ada", "budget": "3"}));
    let revoked = pruned.iter().find(|it| it.0 == "key.revoke").unwrap();
    assert_eq!(
        (&revoked.2["status"], &revoked.3["status"]),
        (&json!("active"), &json!("revoked"))
    );
    fixture.verified().await;
    let all = fixture
        .store
        .audit_entries(&AuditFilter::default(), 1000)
        .await
        .unwrap();
    assert!(!format!("{all:?}").contains("canary"));
}

/// A field that a file may set and entries do not list would change without an entry.
#[test]
fn each_field_of_a_file_is_listed() {
    fn fields<T: schemars::JsonSchema>() -> Vec<String> {
        let schema = schemars::schema_for!(T).to_value();
        let properties = schema["properties"].as_object().unwrap();
        properties.keys().cloned().collect()
    }
    let apart = [
        "id",
        "secret",
        "projects",
        "members",
        "keys",
        "provider_keys",
        "prompts",
    ];
    for (kind, fields) in [
        (AuditKind::Organization, fields::<DeclaredOrganization>()),
        (AuditKind::Project, fields::<DeclaredProject>()),
        (AuditKind::Member, fields::<DeclaredMember>()),
        (AuditKind::Key, fields::<DeclaredKey>()),
        (AuditKind::ProviderKey, fields::<DeclaredProviderKey>()),
    ] {
        assert!(fields.len() > 2, "{fields:?}");
        for field in fields {
            let is_listed = kind.fields().contains(&field.as_str());
            assert!(
                is_listed || apart.contains(&field.as_str()),
                "{kind} {field}"
            );
        }
    }
}
