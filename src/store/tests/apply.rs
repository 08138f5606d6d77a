//! Accounts of a file, applied on both databases.

use std::collections::BTreeMap;

use filters::manifest::{Action, Manifest, check};
use filters::secret_ref::SecretRef;
use serde_json::json;

use super::*;
use crate::config::Secret;

on_both![
    a_file_is_applied_whole_and_read_back_as_it_was,
    what_another_row_has_changes_nothing,
    a_server_follows_what_is_applied,
    two_applications_at_once_are_one_after_the_other,
];

fn manifest(organizations: serde_json::Value) -> Manifest {
    let read = serde_json::from_value(json!({ "organizations": organizations }));
    let mut manifest: Manifest = read.unwrap();
    assert_eq!(check(&mut manifest), []);
    manifest
}

/// One thing of each kind, without secrets.
fn whole(key: &str) -> Manifest {
    manifest(json!([{
        "id": "team-7", "name": "acme", "plan": "pro", "regions": "eu", "export_content": true,
        "projects": [{"name": "app", "mode": "byok", "cache_ttl_s": 60, "experiments": "sdk", "regions": "eu-west-1"},
                     {"name": "default", "mode": "platform"}],
        "members": [{"name": "ada", "budget": "2.5"}, {"name": "bob"}],
        "keys": [{"id": key, "project": "app", "member": "ada", "label": "é", "expires": "2031-01-01T00:00:00.001Z",
                  "debug": true, "limit": "1", "limit_per": {"day": "0.1"}, "allow_models": ["a", "b"]},
                 {"id": format!("{key}_off"), "status": "disabled"}],
        "prompts": [{"name": "p", "versions": [{"content": "1", "labels": ["production"]}, {"content": "2", "labels": []}]},
                    {"name": "p", "project": "app", "versions": [{"content": "{}"}]}],
    }]))
}

impl Fixture {
    async fn apply(
        &self,
        manifest: &Manifest,
        secrets: &BTreeMap<SecretRef, Secret>,
        is_pruning: bool,
    ) -> Result<AppliedAccounts, Vec<String>> {
        let wanted = WantedAccounts {
            manifest,
            secrets,
            is_pruning,
            is_plan: false,
        };
        let applied = self
            .store
            .by(&PROGRAM)
            .apply(&wanted, NOW_MS)
            .await
            .unwrap();
        let told = |faults: Vec<filters::manifest::ManifestFault>| -> Vec<String> {
            faults.into_iter().map(|it| it.message).collect()
        };
        applied.map_err(told)
    }
}

async fn a_file_is_applied_whole_and_read_back_as_it_was(fixture: Fixture) {
    let none = BTreeMap::new();
    let file = whole("key_ci");
    let applied = fixture.apply(&file, &none, false).await.ok().unwrap();
    assert_eq!(applied.changes.len(), 9);
    let ids: Vec<&str> = applied.new_keys.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["key_ci", "key_ci_off"]);
    let read = fixture.store.declared_accounts(None).await.unwrap();
    let without_ids = |manifest: &Manifest| {
        let mut value = serde_json::to_value(manifest).unwrap();
        for list in ["projects", "members"] {
            for it in value["organizations"][0][list].as_array_mut().unwrap() {
                it.as_object_mut().unwrap().remove("id");
            }
        }
        value
    };
    assert_eq!(without_ids(&read), without_ids(&file));
    for (is_pruning, wanted) in [(false, &file), (true, &file), (true, &read)] {
        let again = fixture.apply(wanted, &none, is_pruning).await.ok().unwrap();
        assert!(again.changes.is_empty(), "{:?}", again.changes);
    }
    let caller = fixture.admit(&applied.new_keys[0].1).await.unwrap();
    assert_eq!(
        (&*caller.organization_id, &*caller.key_id),
        ("team-7", "key_ci")
    );
    assert!(
        fixture.admit(&applied.new_keys[1].1).await.is_err(),
        "it is disabled"
    );
    let empty = manifest(json!([{"name": "acme", "plan": "pro", "regions": "eu"}]));
    let pruned = fixture.apply(&empty, &none, true).await.ok().unwrap();
    let removed = pruned
        .changes
        .iter()
        .filter(|it| it.action == Action::Remove);
    assert_eq!(removed.count(), 6, "{:?}", pruned.changes);
    assert!(
        fixture
            .apply(&empty, &none, true)
            .await
            .ok()
            .unwrap()
            .changes
            .is_empty()
    );
    assert!(
        fixture.admit(&applied.new_keys[0].1).await.is_err(),
        "it is revoked"
    );
}

async fn what_another_row_has_changes_nothing(fixture: Fixture) {
    fixture.organization("other").await;
    let (text, key) = fixture.key("other").await;
    let none = BTreeMap::new();
    let refused = fixture
        .apply(&whole(&key.id), &none, false)
        .await
        .err()
        .unwrap();
    assert!(
        refused[0].contains("another key of the store has the id"),
        "{refused:?}"
    );
    // The text of a key is its own, too.
    let reference = SecretRef::Env {
        env: "KEY".to_owned(),
    };
    let secrets = BTreeMap::from([(reference.clone(), Secret::new(text.reveal()))]);
    let mut file = whole("key_ci");
    file.organizations[0].keys[0].secret = Some(reference);
    let refused = fixture.apply(&file, &secrets, false).await.err().unwrap();
    assert!(
        refused[0].contains("another key of the store has"),
        "{refused:?}"
    );
    let organizations = fixture.store.organizations().await.unwrap();
    assert_eq!(organizations.len(), 1, "nothing was changed");
    let applied = fixture
        .apply(&whole("key_ci"), &none, false)
        .await
        .ok()
        .unwrap();
    assert_eq!(applied.changes.len(), 9);
}

async fn a_server_follows_what_is_applied(fixture: Fixture) {
    let none = BTreeMap::new();
    let load = accounts::AccountsHandle::load(&fixture.store, |_| {});
    let accounts = load.await.unwrap();
    let applied = fixture
        .apply(&whole("key_ci"), &none, false)
        .await
        .ok()
        .unwrap();
    assert!(accounts.refresh(&fixture.store).await.unwrap());
    let hash = |text: &KeyText| fixture.store.pepper().hash(text.to_api_key());
    let (_, text) = &applied.new_keys[0];
    let row = |accounts: &accounts::AccountsHandle| {
        let snapshot = accounts.current();
        snapshot
            .find(&hash(text))
            .map(|row| row.caller.organization.to_string())
    };
    assert_eq!(row(&accounts).as_deref(), Some("acme"));
    let mut renamed = whole("key_ci");
    renamed.organizations[0].name = "acme 2".to_owned();
    fixture.apply(&renamed, &none, false).await.ok().unwrap();
    accounts.refresh(&fixture.store).await.unwrap();
    assert_eq!(row(&accounts).as_deref(), Some("acme 2"));
}

async fn two_applications_at_once_are_one_after_the_other(fixture: Fixture) {
    let none = BTreeMap::new();
    let file = whole("key_ci");
    let (one, two) = tokio::join!(
        fixture.apply(&file, &none, false),
        fixture.apply(&file, &none, false)
    );
    let mut counts = [one, two].map(|it| it.ok().unwrap().changes.len());
    counts.sort_unstable();
    assert_eq!(counts, [0, 9]);
}
