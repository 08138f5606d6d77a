//! What changes an account, and what is refused.

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

async fn an_organization_begins_with_a_default_project(house: House) {
    house.organization("acme").await;
    let (key, _) = house.key("acme").await;
    let caller = house.admit(&key).await.unwrap();
    assert_eq!((&*caller.project, caller.mode), ("default", Mode::Platform));
}

async fn organizations_are_listed_by_name_with_their_plan(house: House) {
    let store = &house.store;
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
        .map(|one| {
            (
                one.name.as_str(),
                one.plan,
                one.is_disabled,
                one.created_at_ms,
            )
        })
        .collect();
    let expected = [
        ("alpha", Plan::None, false, NOW_MS + 1),
        ("zeta", Plan::Max, true, NOW_MS),
    ];
    assert_eq!(seen, expected);
    assert!(list.iter().all(|one| one.id.starts_with("org_")));
}

async fn a_name_is_taken_once(house: House) {
    let store = &house.store;
    house.organization("acme").await;
    house.organization("other").await;
    let again = store.create_organization("acme", Plan::None, NOW_MS).await;
    assert!(matches!(
        again,
        Err(StoreError::Taken {
            what: "organization",
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
        Err(StoreError::Taken {
            what: "project",
            ..
        })
    ));
}

async fn what_is_not_there_is_absent(house: House) {
    let store = &house.store;
    house.organization("acme").await;
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
            matches!(outcome, Some(StoreError::Absent { .. })),
            "{outcome:?}"
        );
    }
}

async fn bad_names_are_refused(house: House) {
    for name in ["", " acme", "acme ", "a\nb", "a\0b", &"x".repeat(129)] {
        let made = house
            .store
            .create_organization(name, Plan::None, NOW_MS)
            .await;
        assert!(matches!(made, Err(StoreError::BadName { .. })), "{name:?}");
    }
    let longest = "é".repeat(128);
    house.organization(&longest).await;
    house.organization("'; DROP TABLE api_keys; --").await;
    assert_eq!(house.store.organizations().await.unwrap().len(), 2);
}

async fn every_change_raises_the_revision_and_a_refused_one_does_not(house: House) {
    let store = &house.store;
    house.organization("acme").await;
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
    let (_, key) = house.key("acme").await;
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

async fn changes_at_once_are_all_counted(house: House) {
    house.organization("acme").await;
    let before = house.store.revision().await.unwrap();
    let makers: Vec<_> = (0..20)
        .map(|_| {
            let store = house.store.clone();
            tokio::spawn(async move {
                let new = NewKey {
                    organization: "acme",
                    project: DEFAULT_PROJECT,
                    label: "",
                    expires_at_ms: None,
                    ..NewKey::default()
                };
                store.create_key(&new, NOW_MS).await.map(|_| ())
            })
        })
        .collect();
    for maker in makers {
        maker.await.unwrap().unwrap();
    }
    assert_eq!(house.store.revision().await.unwrap(), before + 20);
    assert_eq!(house.store.keys("acme").await.unwrap().len(), 20);
}

async fn a_key_is_listed_without_its_text(house: House) {
    house.organization("acme").await;
    let (text, issued) = house.key("acme").await;
    let list = house.store.keys("acme").await.unwrap();
    assert_eq!(list, std::slice::from_ref(&issued));
    assert!(issued.id.starts_with("key_"));
    assert!(text.reveal().ends_with(&issued.last_four));
    assert!(!format!("{issued:?}").contains(text.reveal()));
}

async fn revoking_again_keeps_the_first_time(house: House) {
    house.organization("acme").await;
    let (_, issued) = house.key("acme").await;
    house.store.revoke_key(&issued.id, NOW_MS).await.unwrap();
    house
        .store
        .revoke_key(&issued.id, NOW_MS + 5)
        .await
        .unwrap();
    let list = house.store.keys("acme").await.unwrap();
    assert_eq!(list[0].revoked_at_ms, Some(NOW_MS));
}

async fn nothing_new_under_what_is_closed(house: House) {
    house.organization("acme").await;
    let store = &house.store;
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
        Some(StoreError::Closed {
            what: "project",
            ..
        })
    ));
    store.disable_organization("acme").await.unwrap();
    let refused = store.create_key(&new, NOW_MS).await.err();
    assert!(matches!(
        refused,
        Some(StoreError::Closed {
            what: "organization",
            ..
        })
    ));
}

async fn a_store_opens_again_with_what_was_in_it(house: House) {
    house.organization("acme").await;
    let (key, _) = house.key("acme").await;
    house.store.close().await;
    let again = Store::open(&house.settings).await.unwrap();
    assert!(!again.is_new_file);
    let again = House {
        store: again.store,
        ..house
    };
    assert!(again.admit(&key).await.is_ok());
}

async fn another_pepper_is_refused_once_there_are_keys(house: House) {
    let other = StoreSettings {
        secret: Some(vec![9; 32]),
        ..house.settings.clone()
    };
    let store = Store::open(&other).await.unwrap().store;
    store
        .create_organization("acme", Plan::None, NOW_MS)
        .await
        .unwrap();
    let house = House { store, ..house };
    house.key("acme").await;
    let refused = Store::open(&house.settings).await.err().unwrap();
    assert!(matches!(refused, StoreError::OtherPepper));
    assert!(Store::open(&other).await.is_ok());
}

async fn the_key_is_in_no_column(house: House) {
    house.organization("acme").await;
    let (key, _) = house.key("acme").await;
    let sql = "SELECT COUNT(*) FROM api_keys WHERE hash = $1 OR label = $2 OR id = $2 \
               OR last_four = $2";
    let found: i64 = sqlx::query_scalar(sql)
        .bind(key.reveal().as_bytes().to_vec())
        .bind(key.reveal())
        .fetch_one(&house.store.pool)
        .await
        .unwrap();
    assert_eq!(found, 0);
}
