//! Managed prompts: their versions and labels, and how a running server follows them.

use std::sync::{Arc, Mutex};

use filters::models::prompts::reference::VersionReference;

use super::*;
use crate::accounts::{AccountsHandle, PromptRows, PublishedRows};

on_both!(
    versions_count_up_and_labels_move,
    changed_prompts_are_published_before_their_revision_comes_into_force,
    two_changes_at_once_get_two_numbers,
    pages_of_prompts_are_joined_without_a_gap_and_leave_out_what_was_removed,
    who_saw_another_prompt_moves_no_label,
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

async fn pages_of_prompts_are_joined_without_a_gap_and_leave_out_what_was_removed(
    fixture: Fixture,
) {
    let store = &fixture.store.by(&PROGRAM);
    let project = PromptOwner {
        project: Some(DEFAULT_PROJECT),
        ..ACME
    };
    let other = PromptOwner {
        organization: "other",
        ..ACME
    };
    for name in ["acme", "other"] {
        fixture.organization(name).await;
    }
    for owner in [ACME, project, other] {
        for name in ["b", "a/1", "a", "gone"] {
            let put = store.put_prompt(owner, name, "x", &[], NOW_MS);
            put.await.unwrap();
        }
        store.remove_prompt(owner, "gone", None).await.unwrap();
    }
    let next = ["next".to_owned()];
    let newest = store.put_prompt(ACME, "b", "y", &next, NOW_MS + 5);
    assert_eq!(newest.await.unwrap(), 2);
    for (organization, search, expected) in [
        (None, "", 9),
        (None, "a", 6),
        (Some("acme"), "", 6),
        (Some("other"), "b", 1),
        (Some("acme"), "%", 0),
    ] {
        let mut found: Vec<PromptSummary> = Vec::new();
        let mut after = None;
        loop {
            let asked = PageQuery {
                search,
                after: after.as_deref(),
                limit: 2,
            };
            let page = store.prompts_page(organization, asked).await.unwrap();
            assert!(page.rows.len() <= 2);
            found.extend(page.rows);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found.len(), expected, "{organization:?} {search}");
        assert!(found.is_sorted_by_key(|it| it.name.clone()), "{found:?}");
        let ids: std::collections::BTreeSet<_> = found.iter().map(|it| &it.id).collect();
        assert_eq!(ids.len(), expected);
        for it in found
            .iter()
            .filter(|it| (&*it.organization, &*it.name) == ("acme", "b"))
        {
            let is_own = it.project.is_none();
            let labels = [("next".to_owned(), 2), ("production".to_owned(), 1)];
            match is_own {
                true => {
                    assert_eq!((it.versions, it.newest), (2, (2, NOW_MS + 5)));
                    assert_eq!(it.labels, labels);
                }
                false => assert_eq!((it.versions, &it.labels[..]), (1, &labels[1..])),
            }
            let (organization, prompt) = store.prompt_by_id(&it.id).await.unwrap();
            assert_eq!(
                (&*organization, prompt.project),
                ("acme", it.project.clone())
            );
        }
    }
    let unknown = store.prompts_page(Some("none"), PageQuery::default()).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
    let unknown = store.prompt_by_id("prompt_none").await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

async fn who_saw_another_prompt_moves_no_label(fixture: Fixture) {
    let store = fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    for content in ["one", "two"] {
        put(&store, ACME, content, None).await;
    }
    let id = store.prompt(ACME, "hi").await.unwrap().id;
    let seen = store.see(SeenKind::Prompt, &id).await.unwrap();
    let carried = SeenThing::parse(SeenKind::Prompt, &id, &seen.to_text());
    assert_eq!(carried.as_ref(), Some(&seen));
    let mine = store.if_still(&seen);
    let newest = VersionReference::Number(2);
    mine.label_prompt(ACME, "hi", &newest, "production")
        .await
        .unwrap();
    let refused = mine.label_prompt(ACME, "hi", &newest, "next").await;
    let Err(StoreError::ChangedMeanwhile { changes, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(changes, "labels.production was 1 and is 2");
    let labels = store.prompt(ACME, "hi").await.unwrap().labels;
    assert_eq!(labels, [("production".to_owned(), 2)]);
}
