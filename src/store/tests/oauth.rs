//! Clients, codes and grants of OAuth, and how a running server follows what is revoked.

use super::*;

on_both!(
    a_client_is_what_was_registered,
    a_page_is_answered_once,
    a_code_becomes_one_grant_whoever_uses_it_at_once,
    a_code_that_is_used_in_vain_is_used,
    a_code_that_is_used_again_ends_its_grant,
    a_grant_is_rotated_by_one_of_two,
    a_revoked_client_loses_its_grants_and_gets_no_other,
    revocations_reach_the_snapshot_and_its_copy,
    what_has_expired_is_forgotten,
);

const METADATA: &str = "{\"redirect_uris\": [\"https://app.example/cb\"]}";

/// A store with a key and a client.
async fn client_and_key(fixture: &Fixture) -> (String, IssuedKey) {
    fixture.organization("acme").await;
    let (_, key) = fixture.key("acme").await;
    let registered = fixture
        .store
        .register_oauth_client(METADATA, &[7; 32], NOW_MS);
    (registered.await.unwrap(), key)
}

fn code<'a>(hash: &'a [u8], client_id: &'a str, key: &'a IssuedKey) -> NewCode<'a> {
    NewCode {
        hash,
        client_id,
        document: None,
        key_id: &key.id,
        request: "{}",
        expires_at_ms: NOW_MS + 60_000,
    }
}

async fn allow(store: &Store, page: &str, code: &NewCode<'_>) {
    let answered = store.answer_consent((page, code.hash), NOW_MS + 1, Some(code), NOW_MS);
    assert!(answered.await.unwrap());
}

fn grant(id: &str, code: &StoredCode) -> OAuthGrant {
    OAuthGrant {
        id: id.to_owned(),
        client_id: code.client_id.clone(),
        key_id: code.key_id.clone(),
        key_hash: code.key_hash.clone(),
        scopes: "models".to_owned(),
        resource: "https://gw.example/mcp".to_owned(),
        expires_at_ms: NOW_MS + 1_000_000,
        generation: 1,
        rotated_at_ms: NOW_MS,
    }
}

async fn redeem(store: &Store, hash: &[u8], id: &str) -> Redeemed<&'static str> {
    let judge = |code: &StoredCode| Ok(grant(id, code));
    store.redeem_code(hash, NOW_MS, judge).await.unwrap()
}

async fn a_client_is_what_was_registered(fixture: Fixture) {
    let (id, _) = client_and_key(&fixture).await;
    let store = &fixture.store;
    let client = store.oauth_client(&id).await.unwrap().unwrap();
    assert!(client.id.starts_with("client_"));
    assert_eq!(
        (&*client.metadata, &*client.secret_hash),
        (METADATA, &[7; 32][..])
    );
    assert_eq!((client.created_at_ms, client.used_at_ms), (NOW_MS, 0));
    assert_eq!((client.revoked_at_ms, client.grants), (None, 0));
    assert_eq!(store.oauth_clients().await.unwrap(), [client]);
    assert_eq!(store.oauth_client("client_0").await.unwrap(), None);
}

async fn a_page_is_answered_once(fixture: Fixture) {
    let (client, key) = client_and_key(&fixture).await;
    let (_, other) = fixture.key("acme").await;
    let store = &fixture.store;
    let answer = async |page, code: &NewCode<'_>, is_allowed: bool, now_ms| {
        let given = is_allowed.then_some(code);
        let answered = store.answer_consent((page, code.hash), NOW_MS + 1, given, now_ms);
        answered.await.unwrap()
    };
    let denied = code(&[1; 32], &client, &key);
    assert!(answer("denied", &denied, false, NOW_MS).await);
    assert!(answer("denied", &denied, false, NOW_MS).await);
    assert!(!answer("denied", &denied, true, NOW_MS).await);
    assert_eq!(redeem(store, &[1; 32], "g").await, Redeemed::Unknown);
    let allowed = code(&[2; 32], &client, &key);
    assert!(answer("allowed", &allowed, true, NOW_MS).await);
    assert!(answer("allowed", &allowed, true, NOW_MS).await);
    assert!(!answer("allowed", &allowed, false, NOW_MS).await);
    assert!(!answer("allowed", &code(&[2; 32], &client, &other), true, NOW_MS).await);
    assert!(!answer("allowed", &allowed, true, allowed.expires_at_ms).await);
    let granted = redeem(store, &[2; 32], "g").await;
    assert!(matches!(granted, Redeemed::Granted(_)), "{granted:?}");
    assert!(!answer("allowed", &allowed, true, NOW_MS).await);
}

async fn a_code_becomes_one_grant_whoever_uses_it_at_once(fixture: Fixture) {
    let (client, key) = client_and_key(&fixture).await;
    let store = &fixture.store;
    allow(store, "page", &code(&[1; 32], &client, &key)).await;
    let tries = (0..8).map(|n| async move { redeem(store, &[1; 32], &format!("g{n}")).await });
    let redeemed = futures::future::join_all(tries).await;
    let granted = redeemed
        .iter()
        .filter(|it| matches!(it, Redeemed::Granted(_)));
    assert_eq!(granted.count(), 1, "{redeemed:?}");
    let replayed = redeemed.iter().filter(|it| **it == Redeemed::Replayed);
    assert_eq!(replayed.count(), 7);
    let client = store.oauth_client(&client).await.unwrap().unwrap();
    assert_eq!(
        (client.used_at_ms, client.grants),
        (NOW_MS, 0),
        "replays ended it"
    );
}

async fn a_code_that_is_used_in_vain_is_used(fixture: Fixture) {
    let (client, key) = client_and_key(&fixture).await;
    let store = &fixture.store;
    allow(store, "page", &code(&[1; 32], &client, &key)).await;
    let refused = store.redeem_code(&[1; 32], NOW_MS, |_| Err("wrong")).await;
    assert_eq!(refused.unwrap(), Redeemed::Refused("wrong"));
    assert_eq!(redeem(store, &[1; 32], "g").await, Redeemed::Replayed);
    assert_eq!(redeem(store, &[2; 32], "g").await, Redeemed::Unknown);
}

async fn a_code_that_is_used_again_ends_its_grant(fixture: Fixture) {
    let (client, key) = client_and_key(&fixture).await;
    let store = &fixture.store;
    allow(store, "page", &code(&[1; 32], &client, &key)).await;
    let Redeemed::Granted(granted) = redeem(store, &[1; 32], "g").await else {
        panic!("no grant");
    };
    let found = store.oauth_grant("g", NOW_MS).await.unwrap();
    assert_eq!(found.as_ref(), Some(&granted));
    let expired = store.oauth_grant("g", NOW_MS + 1_000_000).await;
    assert_eq!(expired.unwrap(), None);
    assert_eq!(redeem(store, &[1; 32], "h").await, Redeemed::Replayed);
    assert_eq!(store.oauth_grant("g", NOW_MS).await.unwrap(), None);
    assert!(store.accounts().await.unwrap().is_revoked("g"));
}

async fn a_grant_is_rotated_by_one_of_two(fixture: Fixture) {
    let (client, key) = client_and_key(&fixture).await;
    let store = &fixture.store;
    allow(store, "page", &code(&[1; 32], &client, &key)).await;
    redeem(store, &[1; 32], "g").await;
    let rotate = |from| store.rotate_oauth_grant("g", from, NOW_MS + 2_000_000, NOW_MS + 5);
    let (one, other) = tokio::join!(rotate(1), rotate(1));
    assert!(one.unwrap() != other.unwrap());
    let found = store.oauth_grant("g", NOW_MS + 1_000_000).await;
    let found = found.unwrap().unwrap();
    assert_eq!((found.generation, found.rotated_at_ms), (2, NOW_MS + 5));
    store.end_oauth_grant("g", NOW_MS).await.unwrap();
    assert!(!rotate(2).await.unwrap());
    let before = store.revision().await.unwrap();
    store.end_oauth_grant("g", NOW_MS).await.unwrap();
    assert_eq!(store.revision().await.unwrap(), before, "it had ended");
}

async fn a_revoked_client_loses_its_grants_and_gets_no_other(fixture: Fixture) {
    let (client, key) = client_and_key(&fixture).await;
    let store = &fixture.store.by(&PROGRAM);
    allow(store, "page", &code(&[1; 32], &client, &key)).await;
    redeem(store, &[1; 32], "g").await;
    allow(store, "other page", &code(&[2; 32], &client, &key)).await;
    store
        .revoke_oauth_client(&client, NOW_MS + 7)
        .await
        .unwrap();
    assert_eq!(store.oauth_grant("g", NOW_MS).await.unwrap(), None);
    assert_eq!(redeem(store, &[2; 32], "h").await, Redeemed::Unknown);
    allow(store, "late page", &code(&[3; 32], &client, &key)).await;
    assert_eq!(redeem(store, &[3; 32], "h").await, Redeemed::Unknown);
    store
        .revoke_oauth_client(&client, NOW_MS + 9)
        .await
        .unwrap();
    let revoked = store.oauth_client(&client).await.unwrap().unwrap();
    assert_eq!(revoked.revoked_at_ms, Some(NOW_MS + 7));
    let absent = store.revoke_oauth_client("client_0", NOW_MS).await;
    assert!(matches!(absent, Err(StoreError::NotFound { .. })));
}

async fn revocations_reach_the_snapshot_and_its_copy(fixture: Fixture) {
    let (client, key) = client_and_key(&fixture).await;
    let store = &fixture.store.by(&PROGRAM);
    let handle = accounts::AccountsHandle::load(store, |_| {}).await.unwrap();
    allow(store, "page", &code(&[1; 32], &client, &key)).await;
    redeem(store, &[1; 32], "g").await;
    let is_revoked = |id: &str| handle.current().is_revoked(id);
    handle.refresh(store).await.unwrap();
    assert!(!is_revoked("g"));
    store.end_oauth_grant("g", NOW_MS).await.unwrap();
    handle.refresh(store).await.unwrap();
    assert!(is_revoked("g") && !is_revoked(&client));
    store.revoke_oauth_client(&client, NOW_MS).await.unwrap();
    handle.refresh(store).await.unwrap();
    assert!(is_revoked(&client));
    let mut copied = RecordedAccounts::default();
    let mut keep = |record: &AccountRecord| copied.add(record.clone());
    store.load_accounts(&mut keep).await.unwrap();
    let copied = copied.load().snapshot;
    assert!(copied.is_revoked("g") && copied.is_revoked(&client));
}

async fn what_has_expired_is_forgotten(fixture: Fixture) {
    const DAY_MS: i64 = 86_400_000;
    let (client, key) = client_and_key(&fixture).await;
    let store = &fixture.store;
    let unused = store.register_oauth_client(METADATA, &[], NOW_MS).await;
    let unused = unused.unwrap();
    allow(store, "page", &code(&[1; 32], &client, &key)).await;
    redeem(store, &[1; 32], "g").await;
    store.delete_old_oauth(NOW_MS).await.unwrap();
    assert!(store.oauth_client(&unused).await.unwrap().is_some());
    assert!(store.oauth_grant("g", NOW_MS).await.unwrap().is_some());
    store
        .delete_old_oauth(NOW_MS + DAY_MS + 60_001)
        .await
        .unwrap();
    assert_eq!(store.oauth_client(&unused).await.unwrap(), None);
    assert!(store.oauth_client(&client).await.unwrap().is_some());
    assert_eq!(store.oauth_grant("g", NOW_MS).await.unwrap(), None);
    assert_eq!(redeem(store, &[1; 32], "h").await, Redeemed::Unknown);
    allow(store, "page", &code(&[2; 32], &client, &key)).await;
    store.delete_old_oauth(NOW_MS + 181 * DAY_MS).await.unwrap();
    assert_eq!(store.oauth_client(&client).await.unwrap(), None);
}
