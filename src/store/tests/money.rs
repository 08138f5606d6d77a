//! Members, credit, BYOK keys, and the column of a key's terms.

use filters::accounts::{KeyTerms, TermsFile};
use filters::money::Usd;

use super::*;
use crate::store::ProjectChange;

on_both![
    terms_and_owner_reach_the_caller,
    a_key_is_changed_in_what_is_named_alone,
    terms_that_cannot_be_are_refused_by_name,
    a_member_is_taken_once_and_has_a_budget,
    a_plan_begins_when_it_is_chosen,
    a_project_is_changed_and_listed,
    credit_is_summed_exactly,
    a_byok_key_is_in_no_column_and_opens_again,
    a_byok_key_cannot_be_moved_to_another_row,
    an_invalid_byok_key_is_refused_without_being_named,
    byok_keys_keep_another_pepper_out,
];

fn usd(text: &str) -> Usd {
    Usd::parse(text).unwrap()
}

fn terms(json: &str) -> TermsFile {
    serde_json::from_str(json).unwrap()
}

impl Fixture {
    async fn key_with(&self, terms: &TermsFile, member: Option<&str>) -> (KeyText, IssuedKey) {
        let new = NewKey {
            organization: "acme",
            terms,
            member,
            ..NewKey::default()
        };
        self.store
            .by(&PROGRAM)
            .create_key(&new, NOW_MS)
            .await
            .unwrap()
    }

    async fn add_own(&self, label: &str, text: &str) -> Result<ProviderKey, StoreError> {
        let added = self
            .store
            .by(&PROGRAM)
            .add_provider_key("acme", "first", label, text, NOW_MS);
        added.await
    }
}

async fn terms_and_owner_reach_the_caller(fixture: Fixture) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    let member = store.add_member("acme", "ada", NOW_MS).await.unwrap();
    store
        .set_budget("acme", "ada", Some(usd("2.5")))
        .await
        .unwrap();
    let written = terms(r#"{"limit":"5","deny_models":["a"]}"#);
    let (text, _) = fixture.key_with(&written, Some("ada")).await;
    let caller = fixture.admit(&text).await.unwrap();
    let expected: KeyTerms = written.check().unwrap();
    assert_eq!(caller.terms.as_deref(), Some(&expected));
    let owner = caller.member.as_deref().unwrap();
    assert_eq!((&*owner.id, owner.budget), (&*member.id, Some(usd("2.5"))));
    assert_eq!(caller.plan_since_ms, NOW_MS);
}

async fn a_key_is_changed_in_what_is_named_alone(fixture: Fixture) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    store.add_member("acme", "ada", NOW_MS).await.unwrap();
    let (_, issued) = fixture
        .key_with(&terms(r#"{"limit":"5"}"#), Some("ada"))
        .await;
    let change = KeyChange {
        label: Some("new".to_owned()),
        expires_at_ms: Some(Some(NOW_MS + 9)),
        ..KeyChange::default()
    };
    store.update_key(&issued.id, &change).await.unwrap();
    let change = KeyChange {
        member: Some(None),
        terms: Some(terms(r#"{"limit_per":{"day":"1"}}"#)),
        is_debug: Some(true),
        ..KeyChange::default()
    };
    store.update_key(&issued.id, &change).await.unwrap();
    let listed = store.keys("acme").await.unwrap().remove(0);
    let expected = IssuedKey {
        label: "new".to_owned(),
        expires_at_ms: Some(NOW_MS + 9),
        member: None,
        terms: terms(r#"{"limit_per":{"day":"1"}}"#),
        is_debug: true,
        ..issued
    };
    assert_eq!(listed, expected);
    let absent = store.update_key("key_none", &KeyChange::default()).await;
    assert!(matches!(
        absent,
        Err(StoreError::NotFound { kind: "key", .. })
    ));
}

async fn terms_that_cannot_be_are_refused_by_name(fixture: Fixture) {
    fixture.organization("acme").await;
    let bad = terms(r#"{"limit":"-1"}"#);
    let new = NewKey {
        organization: "acme",
        terms: &bad,
        ..NewKey::default()
    };
    let refused = fixture.store.by(&PROGRAM).create_key(&new, NOW_MS).await;
    assert!(matches!(refused, Err(StoreError::InvalidTerm(term)) if term.field == "limit"));
}

async fn a_member_is_taken_once_and_has_a_budget(fixture: Fixture) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    store.add_member("acme", "ada", NOW_MS).await.unwrap();
    let again = store.add_member("acme", "ada", NOW_MS).await;
    assert!(matches!(
        again,
        Err(StoreError::AlreadyExists { kind: "member", .. })
    ));
    store
        .set_budget("acme", "ada", Some(Usd::ZERO))
        .await
        .unwrap();
    assert_eq!(
        store.members("acme").await.unwrap()[0].budget,
        Some(Usd::ZERO)
    );
    store.set_budget("acme", "ada", None).await.unwrap();
    assert_eq!(store.members("acme").await.unwrap()[0].budget, None);
    let absent = store.set_budget("acme", "bob", None).await;
    assert!(matches!(
        absent,
        Err(StoreError::NotFound { kind: "member", .. })
    ));
}

async fn a_plan_begins_when_it_is_chosen(fixture: Fixture) {
    fixture.organization("acme").await;
    let (key, _) = fixture.key("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    store.set_plan("acme", Plan::Pro, NOW_MS + 5).await.unwrap();
    assert_eq!(fixture.admit(&key).await.unwrap().plan_since_ms, NOW_MS);
    store.set_plan("acme", Plan::Max, NOW_MS + 7).await.unwrap();
    let caller = fixture.admit(&key).await.unwrap();
    assert_eq!((caller.plan, caller.plan_since_ms), (Plan::Max, NOW_MS + 7));
}

async fn a_project_is_changed_and_listed(fixture: Fixture) {
    fixture.organization("acme").await;
    let (key, _) = fixture.key("acme").await;
    let change = ProjectChange {
        mode: Some(Mode::Byok),
        cache_ttl_s: Some(Some(9)),
        ..ProjectChange::default()
    };
    let store = &fixture.store.by(&PROGRAM);
    store
        .update_project("acme", "default", &change)
        .await
        .unwrap();
    let caller = fixture.admit(&key).await.unwrap();
    assert_eq!((caller.mode, caller.cache_ttl_s), (Mode::Byok, Some(9)));
    store.archive_project("acme", "default").await.unwrap();
    let listed = store.projects("acme").await.unwrap();
    assert!(listed[0].is_archived && listed[0].mode == Mode::Byok);
    let closed = store.update_project("acme", "default", &change).await;
    assert!(matches!(
        closed,
        Err(StoreError::Inactive {
            kind: "project",
            ..
        })
    ));
}

async fn credit_is_summed_exactly(fixture: Fixture) {
    fixture.organization("acme").await;
    let store = &fixture.store.by(&PROGRAM);
    for amount in ["0.1", "0.2", "0.000000000000000001", "999999999999"] {
        store.add_credit("acme", usd(amount), NOW_MS).await.unwrap();
    }
    let credit = store.credit("acme").await.unwrap();
    assert_eq!(
        credit.granted.to_string(),
        "999999999999.300000000000000001"
    );
    assert_eq!(credit.balance(), credit.granted);
    store.disable_organization("acme").await.unwrap();
    let closed = store.add_credit("acme", usd("1"), NOW_MS).await;
    assert!(matches!(closed, Err(StoreError::Inactive { .. })));
}

async fn a_byok_key_is_in_no_column_and_opens_again(fixture: Fixture) {
    const TEXT: &str = "sk-own-0123456789abcdef";
    fixture.organization("acme").await;
    let made = fixture.add_own("team", TEXT).await.unwrap();
    assert_eq!(made.last_four, "cdef");
    let sql = "SELECT id, organization_id, provider, label, sealed, last_four FROM provider_keys";
    let row = sqlx::query(sql)
        .fetch_one(fixture.store.pool.unlimited())
        .await
        .unwrap();
    let sealed: Vec<u8> = sqlx::Row::get(&row, "sealed");
    assert!(
        !sealed
            .windows(6)
            .any(|part| TEXT.as_bytes().starts_with(part))
    );
    let opened = fixture.store.byok_keys().await.unwrap();
    assert_eq!(opened[0].secret.as_ref().unwrap().expose(), TEXT);
    assert_eq!((&*opened[0].label, &*opened[0].id), ("team", &*made.id));
    let again = fixture.add_own("team", "sk-other").await;
    assert!(matches!(
        again,
        Err(StoreError::AlreadyExists {
            kind: "provider key",
            ..
        })
    ));
    fixture
        .store
        .by(&PROGRAM)
        .remove_provider_key(&made.id)
        .await
        .unwrap();
    assert!(fixture.store.byok_keys().await.unwrap().is_empty());
    let gone = fixture
        .store
        .by(&PROGRAM)
        .remove_provider_key(&made.id)
        .await;
    assert!(matches!(gone, Err(StoreError::NotFound { .. })));
}

async fn a_byok_key_cannot_be_moved_to_another_row(fixture: Fixture) {
    fixture.organization("acme").await;
    fixture.add_own("one", "sk-one").await.unwrap();
    let two = fixture.add_own("two", "sk-two").await.unwrap();
    let sql = "UPDATE provider_keys SET sealed = \
               (SELECT sealed FROM provider_keys WHERE label = 'one') WHERE id = $1";
    let moved = sqlx::query(sql).bind(&two.id);
    moved.execute(fixture.store.pool.unlimited()).await.unwrap();
    let opened = fixture.store.byok_keys().await.unwrap();
    let usable: Vec<bool> = opened.iter().map(|key| key.secret.is_some()).collect();
    assert_eq!(usable, [true, false]);
}

async fn an_invalid_byok_key_is_refused_without_being_named(fixture: Fixture) {
    fixture.organization("acme").await;
    for text in [
        "",
        "two words",
        "line\nend",
        "ключ",
        &"x".repeat((16 << 10) + 1),
    ] {
        let error = fixture.add_own("team", text).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidSecret(_)));
        assert!(text.is_empty() || !error.to_string().contains(text));
    }
}

async fn byok_keys_keep_another_pepper_out(fixture: Fixture) {
    fixture.organization("acme").await;
    fixture.add_own("team", "sk-own").await.unwrap();
    let other = StoreSettings {
        secret: Some(vec![9; 32]),
        ..fixture.settings.clone()
    };
    let refused = Store::open(&other).await;
    assert!(matches!(refused.err(), Some(StoreError::WrongPepper)));
}
