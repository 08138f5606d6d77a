//! Changes of accounts, and changes that are refused.

use filters::accounts::OrganizationStatus;

use super::*;

on_both![
    an_organization_begins_with_a_default_project,
    organizations_are_listed_by_name_with_their_plan,
    a_name_is_taken_once,
    what_is_not_there_is_absent,
    bad_names_are_refused,
    every_change_raises_the_revision_and_a_refused_one_does_not,
    changes_at_once_are_all_counted,
    a_key_is_listed_without_its_text,
    revoking_again_keeps_the_first_time,
    nothing_new_under_what_is_closed,
    a_store_opens_again_with_what_was_in_it,
    another_pepper_is_refused_once_there_are_keys,
    the_key_is_in_no_column,
];

async fn an_organization_begins_with_a_default_project(fixture: Fixture) {
    fixture.organization("acme").await;
    let (key, _) = fixture.key("acme").await;
    let caller = fixture.admit(&key).await.unwrap();
    assert_eq!((&*caller.project, caller.mode), ("default", Mode::Platform));
}

async fn organizations_are_listed_by_name_with_their_plan(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    store
        .create_organization("zeta", Plan::Max, NOW_MS)
        .await
        .unwrap();
    store
        .create_organization("alpha", Plan::None, NOW_MS + 1)
        .await
        .unwrap();
    store.disable_organization("zeta").await.unwrap();
    let list = store.organizations().await.unwrap();
    let seen: Vec<_> = list
        .iter()
        .map(|one| (one.name.as_str(), one.plan, one.status, one.created_at_ms))
        .collect();
    let expected = [
        ("alpha", Plan::None, OrganizationStatus::Active, NOW_MS + 1),
        ("zeta", Plan::Max, OrganizationStatus::Disabled, NOW_MS),
    ];
    assert_eq!(seen, expected);
    assert!(list.iter().all(|one| one.id.starts_with("org_")));
}

async fn a_name_is_taken_once(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    fixture.organization("other").await;
    let again = store.create_organization("acme", Plan::None, NOW_MS).await;
    assert!(matches!(
        again,
        Err(StoreError::AlreadyExists {
            kind: "organization",
            ..
        })
    ));
    let project = NewProject {
        name: "app",
        mode: Mode::Hybrid,
        cache_ttl_s: Some(u32::MAX),
    };
    store
        .create_project("acme", &project, NOW_MS)
        .await
        .unwrap();
    store
        .create_project("other", &project, NOW_MS)
        .await
        .unwrap();
    let again = store.create_project("acme", &project, NOW_MS).await;
    assert!(matches!(
        again,
        Err(StoreError::AlreadyExists {
            kind: "project",
            ..
        })
    ));
}

async fn what_is_not_there_is_absent(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    let project = NewProject {
        name: "app",
        mode: Mode::Platform,
        cache_ttl_s: None,
    };
    let new = NewKey {
        organization: "acme",
        project: "none",
        label: "",
        expires_at_ms: None,
        ..NewKey::default()
    };
    let outcomes = [
        store.disable_organization("none").await.err(),
        store.create_project("none", &project, NOW_MS).await.err(),
        store.archive_project("none", "default").await.err(),
        store.archive_project("acme", "none").await.err(),
        store.create_key(&new, NOW_MS).await.err(),
        store.keys("none").await.err(),
        store.revoke_key("key_none", NOW_MS).await.err(),
    ];
    for outcome in outcomes {
        assert!(
            matches!(outcome, Some(StoreError::NotFound { .. })),
            "{outcome:?}"
        );
    }
}

async fn bad_names_are_refused(fixture: Fixture) {
    for name in ["", " acme", "acme ", "a\nb", "a\0b", &"x".repeat(129)] {
        let made = fixture
            .store
            .by(&PROGRAM)
            .create_organization(name, Plan::None, NOW_MS)
            .await;
        assert!(
            matches!(made, Err(StoreError::InvalidName { .. })),
            "{name:?}"
        );
    }
    let longest = "é".repeat(128);
    fixture.organization(&longest).await;
    fixture.organization("'; DROP TABLE api_keys; --").await;
    assert_eq!(fixture.store.organizations().await.unwrap().len(), 2);
}

async fn every_change_raises_the_revision_and_a_refused_one_does_not(fixture: Fixture) {
    let store = &fixture.store.by(&PROGRAM);
    fixture.organization("acme").await;
    let mut seen = vec![store.revision().await.unwrap()];
    let project = NewProject {
        name: "app",
        mode: Mode::Byok,
        cache_ttl_s: None,
    };
    store
        .create_project("acme", &project, NOW_MS)
        .await
        .unwrap();
    seen.push(store.revision().await.unwrap());
    let (_, key) = fixture.key("acme").await;
    seen.push(store.revision().await.unwrap());
    store.revoke_key(&key.id, NOW_MS).await.unwrap();
    seen.push(store.revision().await.unwrap());
    store.archive_project("acme", "app").await.unwrap();
    seen.push(store.revision().await.unwrap());
    store.disable_organization("acme").await.unwrap();
    seen.push(store.revision().await.unwrap());
    assert!(
        seen.is_sorted_by(|before, after| before < after),
        "{seen:?}"
    );
    assert!(
        store
            .create_organization("acme", Plan::None, NOW_MS)
            .await
            .is_err()
    );
    assert_eq!(store.revision().await.unwrap(), seen[5]);
}

async fn changes_at_once_are_all_counted(fixture: Fixture) {
    fixture.organization("acme").await;
    let before = fixture.store.revision().await.unwrap();
    let makers: Vec<_> = (0..20)
        .map(|_| {
            let store = fixture.store.clone();
            tokio::spawn(async move {
                let new = NewKey {
                    organization: "acme",
                    project: DEFAULT_PROJECT,
                    label: "",
                    expires_at_ms: None,
                    ..NewKey::default()
                };
                store
                    .by(&PROGRAM)
                    .create_key(&new, NOW_MS)
                    .await
                    .map(|_| ())
            })
        })
        .collect();
    for maker in makers {
        maker.await.unwrap().unwrap();
    }
    assert_eq!(fixture.store.revision().await.unwrap(), before + 20);
    assert_eq!(fixture.store.keys("acme").await.unwrap().len(), 20);
}

async fn a_key_is_listed_without_its_text(fixture: Fixture) {
    fixture.organization("acme").await;
    let (text, issued) = fixture.key("acme").await;
    let list = fixture.store.keys("acme").await.unwrap();
    assert_eq!(list, std::slice::from_ref(&issued));
    assert!(issued.id.starts_with("key_"));
    assert!(text.reveal().ends_with(&issued.last_four));
    assert!(!format!("{issued:?}").contains(text.reveal()));
}

async fn revoking_again_keeps_the_first_time(fixture: Fixture) {
    fixture.organization("acme").await;
    let (_, issued) = fixture.key("acme").await;
    fixture
        .store
        .by(&PROGRAM)
        .revoke_key(&issued.id, NOW_MS)
        .await
        .unwrap();
    fixture
        .store
        .by(&PROGRAM)
        .revoke_key(&issued.id, NOW_MS + 5)
        .await
        .unwrap();
    let list = fixture.store.keys("acme").await.unwrap();
    assert_eq!(list[0].revoked_at_ms, Some(NOW_MS));
}

async fn nothing_new_under_what_is_closed(fixture: Fixture) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    let new = NewKey {
        organization: "acme",
        project: DEFAULT_PROJECT,
        label: "",
        expires_at_ms: None,
        ..NewKey::default()
    };
    store.archive_project("acme", "default").await.unwrap();
    let refused = store.create_key(&new, NOW_MS).await.err();
    assert!(matches!(
        refused,
        Some(StoreError::Inactive {
            kind: "project",
            ..
        })
    ));
    store.disable_organization("acme").await.unwrap();
    let refused = store.create_key(&new, NOW_MS).await.err();
    assert!(matches!(
        refused,
        Some(StoreError::Inactive {
            kind: "organization",
            ..
        })
    ));
}

async fn a_store_opens_again_with_what_was_in_it(fixture: Fixture) {
    fixture.organization("acme").await;
    let (key, _) = fixture.key("acme").await;
    fixture.store.close().await;
    let again = Store::open(&fixture.settings).await.unwrap();
    assert!(!again.is_new_file);
    let again = Fixture {
        store: again.store,
        ..fixture
    };
    assert!(again.admit(&key).await.is_ok());
}

async fn another_pepper_is_refused_once_there_are_keys(fixture: Fixture) {
    let other = StoreSettings {
        secret: Some(vec![9; 32]),
        ..fixture.settings.clone()
    };
    let store = Store::open(&other).await.unwrap().store;
    store
        .by(&PROGRAM)
        .create_organization("acme", Plan::None, NOW_MS)
        .await
        .unwrap();
    let fixture = Fixture { store, ..fixture };
    fixture.key("acme").await;
    let refused = Store::open(&fixture.settings).await.err().unwrap();
    assert!(matches!(refused, StoreError::WrongPepper));
    assert!(Store::open(&other).await.is_ok());
}

async fn the_key_is_in_no_column(fixture: Fixture) {
    fixture.organization("acme").await;
    let (key, _) = fixture.key("acme").await;
    let sql = "SELECT COUNT(*) FROM api_keys WHERE hash = $1 OR label = $2 OR id = $2 \
               OR last_four = $2";
    let found: i64 = sqlx::query_scalar(sql)
        .bind(key.reveal().as_bytes().to_vec())
        .bind(key.reveal())
        .fetch_one(fixture.store.pool.unlimited())
        .await
        .unwrap();
    assert_eq!(found, 0);
}
