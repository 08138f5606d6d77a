//! Snapshots that the request path reads.

use super::*;

on_both![
    a_key_admits_its_caller,
    a_revoked_key_is_seen_by_the_snapshot,
    a_disabled_organization_and_an_archived_project_are_seen_by_the_snapshot,
    an_expiry_reaches_the_caller,
    the_snapshot_follows_another_process,
    byok_rows_are_published_before_their_accounts_come_into_force,
    a_store_that_fails_leaves_the_last_snapshot,
];

async fn a_key_admits_its_caller(fixture: Fixture) {
    fixture.organization("acme").await;
    let project = NewProject {
        name: "app",
        mode: Mode::Hybrid,
        cache_ttl_s: Some(60),
    };
    fixture
        .store
        .create_project("acme", &project, NOW_MS)
        .await
        .unwrap();
    let new = NewKey {
        organization: "acme",
        project: "app",
        label: "laptop",
        expires_at_ms: None,
        ..NewKey::default()
    };
    let (text, issued) = fixture.store.create_key(&new, NOW_MS).await.unwrap();
    let caller = fixture.admit(&text).await.unwrap();
    assert_eq!(*caller.key_id, *issued.id);
    assert_eq!((&*caller.organization, &*caller.project), ("acme", "app"));
    assert_eq!((&*caller.key_label, caller.plan), ("laptop", Plan::Pro));
    assert_eq!((caller.mode, caller.cache_ttl_s), (Mode::Hybrid, Some(60)));
}

async fn a_revoked_key_is_seen_by_the_snapshot(fixture: Fixture) {
    fixture.organization("acme").await;
    let (key, issued) = fixture.key("acme").await;
    let (other, _) = fixture.key("acme").await;
    fixture.store.revoke_key(&issued.id, NOW_MS).await.unwrap();
    assert_eq!(fixture.admit(&key).await.err(), Some(AuthError::Revoked));
    assert!(fixture.admit(&other).await.is_ok());
}

async fn a_disabled_organization_and_an_archived_project_are_seen_by_the_snapshot(
    fixture: Fixture,
) {
    fixture.organization("acme").await;
    fixture.organization("other").await;
    let (key, _) = fixture.key("acme").await;
    let (other, _) = fixture.key("other").await;
    fixture
        .store
        .archive_project("acme", "default")
        .await
        .unwrap();
    assert_eq!(
        fixture.admit(&key).await.err(),
        Some(AuthError::ProjectArchived)
    );
    fixture.store.disable_organization("acme").await.unwrap();
    assert_eq!(
        fixture.admit(&key).await.err(),
        Some(AuthError::OrganizationDisabled)
    );
    assert!(fixture.admit(&other).await.is_ok());
}

async fn an_expiry_reaches_the_caller(fixture: Fixture) {
    fixture.organization("acme").await;
    let new = NewKey {
        organization: "acme",
        project: DEFAULT_PROJECT,
        label: "",
        expires_at_ms: Some(NOW_MS),
        ..NewKey::default()
    };
    let (key, _) = fixture.store.create_key(&new, NOW_MS - 1).await.unwrap();
    assert_eq!(fixture.admit(&key).await.err(), Some(AuthError::Expired));
}

async fn the_snapshot_follows_another_process(fixture: Fixture) {
    fixture.organization("acme").await;
    let accounts = accounts::AccountsHandle::load(&fixture.store, |_| {})
        .await
        .unwrap();
    assert!(accounts.current().is_empty());
    // Another process with its own store at the same location.
    let store = Store::open(&fixture.settings).await.unwrap().store;
    let settings = fixture.settings.clone();
    let other = Fixture {
        store,
        settings,
        _folder: TempDir::new().unwrap(),
    };
    let (_, issued) = other.key("acme").await;
    assert!(accounts.refresh(&fixture.store).await.unwrap());
    assert_eq!(accounts.current().len(), 1);
    assert!(!accounts.refresh(&fixture.store).await.unwrap());
    other.store.revoke_key(&issued.id, NOW_MS).await.unwrap();
    assert!(accounts.refresh(&fixture.store).await.unwrap());
}

async fn byok_rows_are_published_before_their_accounts_come_into_force(fixture: Fixture) {
    use std::sync::{Arc, Mutex, OnceLock};
    /// The rows of each publication, and the revision then in force.
    type Published = Vec<(usize, Option<i64>)>;
    fixture.organization("acme").await;
    let published: Arc<Mutex<Published>> = Arc::default();
    let handle: Arc<OnceLock<accounts::AccountsHandle>> = Arc::default();
    let (seen, in_force) = (Arc::clone(&published), Arc::clone(&handle));
    let accounts = accounts::AccountsHandle::load(&fixture.store, move |rows| {
        let revision = in_force.get().map(|accounts| accounts.current().revision());
        seen.lock().unwrap().push((rows.len(), revision));
    });
    let accounts = accounts.await.unwrap();
    let before = accounts.current().revision();
    assert!(handle.set(accounts.clone()).is_ok());
    let text = "sk-1234567890";
    let added = fixture
        .store
        .add_provider_key("acme", "first", "mine", text, NOW_MS);
    added.await.unwrap();
    assert!(accounts.refresh(&fixture.store).await.unwrap());
    assert_eq!(
        *published.lock().unwrap(),
        vec![(0, None), (1, Some(before))]
    );
    assert!(accounts.current().revision() > before);
}

async fn a_store_that_fails_leaves_the_last_snapshot(fixture: Fixture) {
    fixture.organization("acme").await;
    fixture.key("acme").await;
    let accounts = accounts::AccountsHandle::load(&fixture.store, |_| {})
        .await
        .unwrap();
    fixture.store.close().await;
    assert!(accounts.refresh(&fixture.store).await.is_err());
    assert_eq!(accounts.current().len(), 1);
}
