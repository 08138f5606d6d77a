//! Managed prompts: their versions and labels, and how a running server follows them.

use std::sync::{Arc, Mutex};

use filters::models::prompts::reference::VersionReference;

use super::*;
use crate::accounts::{AccountsHandle, PromptRows, PublishedRows};

on_both!(
    versions_count_up_and_labels_move,
    changed_prompts_are_published_before_their_revision_comes_into_force,
    two_changes_at_once_get_two_numbers,
);

const ACME: PromptOwner<'static> = PromptOwner {
    organization: "acme",
    project: None,
};

async fn put(store: &Store, owner: PromptOwner<'_>, content: &str, label: Option<&str>) -> u64 {
    let labels: Vec<_> = label.into_iter().map(str::to_owned).collect();
    let put = store
        .by(&PROGRAM)
        .put_prompt(owner, "hi", content, &labels, NOW_MS);
    put.await.unwrap()
}

async fn versions_count_up_and_labels_move(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    assert_eq!(put(store, ACME, "one", None).await, 1);
    assert_eq!(put(store, ACME, "two", Some("next")).await, 2);
    assert_eq!(put(store, ACME, "three", None).await, 3);
    let project = PromptOwner {
        project: Some(DEFAULT_PROJECT),
        ..ACME
    };
    assert_eq!(put(store, project, "own", None).await, 1);
    let labels = async || store.prompt(ACME, "hi").await.unwrap().labels;
    let expected = |production, next| {
        vec![
            ("next".to_owned(), next),
            ("production".to_owned(), production),
        ]
    };
    assert_eq!(labels().await, expected(1, 2));
    let version = VersionReference::Label("next".into());
    assert_eq!(
        store
            .label_prompt(ACME, "hi", &version, "production")
            .await
            .unwrap(),
        2
    );
    assert_eq!(labels().await, expected(2, 2));
    let prompt = store.prompt(ACME, "hi").await.unwrap();
    let latest = VersionReference::Label("latest".into());
    let latest = store.prompt_version(&prompt, &latest).await.unwrap();
    assert_eq!((latest.number, &*latest.content), (3, "three"));
    store.remove_prompt(ACME, "hi", None).await.unwrap();
    assert!(matches!(
        store.prompt(ACME, "hi").await,
        Err(StoreError::NotFound { .. })
    ));
    assert_eq!(store.prompts(ACME).await.unwrap().len(), 1);
    assert_eq!(put(store, ACME, "four", None).await, 4);
    let unknown = PromptOwner {
        project: Some("none"),
        ..ACME
    };
    let refused = store.put_prompt(unknown, "hi", "x", &[], NOW_MS).await;
    assert!(matches!(
        refused,
        Err(StoreError::NotFound {
            kind: "project",
            ..
        })
    ));
}

async fn two_changes_at_once_get_two_numbers(fixture: Fixture) {
    fixture.organization("acme").await;
    let puts = (0..8).map(|at| {
        let store = fixture.store.clone();
        tokio::spawn(async move { put(&store, ACME, &at.to_string(), None).await })
    });
    let mut numbers = Vec::new();
    for put in puts.collect::<Vec<_>>() {
        numbers.push(put.await.unwrap());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
}

async fn changed_prompts_are_published_before_their_revision_comes_into_force(fixture: Fixture) {
    /// Whether all were published, and each with its versions.
    type Published = Vec<(bool, Vec<(String, Vec<u64>)>)>;
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    put(store, ACME, "one", None).await;
    let published: Arc<Mutex<Published>> = Arc::default();
    let seen = Arc::clone(&published);
    let accounts = AccountsHandle::load(store, move |rows| {
        let PublishedRows::Prompts(rows) = rows else {
            return;
        };
        let (is_all, records) = match rows {
            PromptRows::All(records) => (true, records),
            PromptRows::Changed(records) => (false, records),
        };
        let versions = |record: PromptRecord| {
            let versions = record.versions.iter().map(|(number, _)| *number);
            (record.name, versions.collect())
        };
        seen.lock()
            .unwrap()
            .push((is_all, records.into_iter().map(versions).collect()));
    });
    let accounts = accounts.await.unwrap();
    put(store, ACME, "two", None).await;
    assert!(accounts.refresh(store).await.unwrap());
    fixture.organization("other").await;
    assert!(accounts.refresh(store).await.unwrap());
    store.remove_prompt(ACME, "hi", None).await.unwrap();
    assert!(accounts.refresh(store).await.unwrap());
    let hi = |versions: &[u64]| vec![("hi".to_owned(), versions.to_vec())];
    let expected = vec![(true, hi(&[1])), (false, hi(&[1, 2])), (false, hi(&[]))];
    assert_eq!(*published.lock().unwrap(), expected);
}
