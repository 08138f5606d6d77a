//! Responses that are kept: whose they are, their bounds, their end; and those that are made in the background.

use bytes::Bytes;
use filters::ledger::{CallOwner, EntryId, Funding};

use super::super::ledger::{DueJobs, JobKind, LeaseChange, StoredJob};
use super::super::{CANCELLED_JOB, EndedResponse, JobHold, NewResponse, ResponseBounds};
use super::ledger::{ORG, entry, usd};
use super::*;

on_both![
    a_response_is_found_by_its_key_until_it_expires,
    what_is_said_is_in_no_column,
    an_organization_keeps_no_more_than_its_bounds,
    expired_responses_go_in_portions_and_give_their_room_back,
    a_background_response_ends_once_with_its_charge,
    a_cancelled_response_stays_cancelled,
    a_claim_is_held_by_one_process,
    a_response_that_nobody_was_told_of_goes,
];

const BOUNDS: ResponseBounds = ResponseBounds {
    responses: 3,
    bytes: 10_000,
};
const RESPONSE: JobKind = JobKind::Response;

fn response(n: u8) -> NewResponse {
    NewResponse {
        id: EntryId([n; 16]).to_string().into(),
        organization_id: ORG.into(),
        key_id: "key_1".into(),
        status: "completed",
        is_background: false,
        created_ms: NOW_MS,
        expires_ms: NOW_MS + 1000,
        input: Bytes::from_static(b"[\"asked\"]"),
        response: Bytes::from_static(b"{\"said\":1}"),
        bounds: BOUNDS,
    }
}

fn job(n: u8) -> (StoredJob, NewResponse) {
    let job = StoredJob {
        kind: RESPONSE,
        id: EntryId([n; 16]),
        owner: CallOwner {
            organization_id: ORG.into(),
            key_id: "key_1".into(),
            request_id: "r".into(),
            ..CallOwner::default()
        },
        funding: Funding::Credit,
        reserved: usd("4"),
        ordered: "{}".to_owned(),
        state: "0".to_owned(),
        secret: Some("canary".to_owned()),
        created_ms: NOW_MS,
        is_open: true,
        ..StoredJob::default()
    };
    let response = NewResponse {
        status: "queued",
        is_background: true,
        ..response(n)
    };
    (job, response)
}

fn ended(n: u8, status: &'static str) -> EndedResponse {
    EndedResponse {
        id: EntryId([n; 16]).to_string().into(),
        status,
        response: Bytes::from_static(b"{\"said\":\"more\"}"),
    }
}

impl Fixture {
    async fn status(&self, n: u8) -> Option<String> {
        let id = EntryId([n; 16]).to_string();
        let found = self.store.response((&id, "key_1"), NOW_MS, false);
        found.await.unwrap().map(|found| found.status)
    }

    async fn begin_response(&self, n: u8) {
        let (job, response) = job(n);
        let begun = self.store.begin_job("p1", &job, NOW_MS, Some(&response));
        begun.await.unwrap();
    }

    async fn bytes(&self) -> (i64, i64) {
        let totals = self.store.response_totals(ORG).await.unwrap();
        (totals.responses, totals.bytes)
    }

    async fn funded_for_responses(&self) {
        self.grant("10").await;
        self.store.register_process("p1").await.unwrap();
        self.change("p1", 1, LeaseChange::Take(usd("1"))).await;
    }

    async fn claim_responses(&self, process: &str, now_ms: i64) -> usize {
        let wanted = DueJobs {
            is_open: true,
            most: 5,
            of_organization: 5,
            of_others: Vec::new(),
        };
        let times = (now_ms, now_ms + 100);
        let claimed = self.store.claim_jobs(RESPONSE, process, times, &wanted);
        let claimed = claimed.await.unwrap();
        let is_whole = |job: &StoredJob| job.secret.as_deref() == Some("canary");
        assert!(claimed.iter().all(is_whole));
        claimed.len()
    }
}

async fn a_response_is_found_by_its_key_until_it_expires(fixture: Fixture) {
    let store = &fixture.store;
    store.add_response(&response(1)).await.unwrap();
    let id = response(1).id;
    let find =
        async |key: &str, now_ms: i64| store.response((&id, key), now_ms, true).await.unwrap();
    let found = find("key_1", NOW_MS).await.unwrap();
    assert_eq!(
        (
            &*found.status,
            &*found.input,
            &*found.response,
            found.is_background
        ),
        ("completed", "[\"asked\"]", "{\"said\":1}", false)
    );
    let without = store.response((&id, "key_1"), NOW_MS, false).await;
    assert_eq!(without.unwrap().unwrap().input, "");
    assert!(find("key_2", NOW_MS).await.is_none());
    assert!(find("key_1", NOW_MS + 1000).await.is_none());
    assert!(store.response_bytes((&id, "key_1")).await.unwrap().unwrap() > 15);
    assert_eq!(store.response_bytes((&id, "key_2")).await.unwrap(), None);
    assert!(!store.delete_response(&id, "key_2").await.unwrap());
    assert!(store.delete_response(&id, "key_1").await.unwrap());
    assert!(!store.delete_response(&id, "key_1").await.unwrap());
    assert_eq!(fixture.bytes().await, (0, 0));
}

async fn what_is_said_is_in_no_column(fixture: Fixture) {
    let new = NewResponse {
        input: Bytes::from_static(b"[\"canary\"]"),
        response: Bytes::from_static(b"{\"said\":\"canary\"}"),
        ..response(1)
    };
    fixture.store.add_response(&new).await.unwrap();
    for column in ["input", "response"] {
        let sql = sqlx::AssertSqlSafe(format!("SELECT {column} FROM responses"));
        let sealed: Vec<u8> = sqlx::query_scalar(sql)
            .fetch_one(fixture.store.pool.unlimited())
            .await
            .unwrap();
        assert!(sealed.len() > 10 && !String::from_utf8_lossy(&sealed).contains("canary"));
    }
    // One part does not stand for the other, nor one response for another.
    let sql = "UPDATE responses SET response = input";
    let swapped = sqlx::query(sql).execute(fixture.store.pool.unlimited());
    swapped.await.unwrap();
    let found = fixture.store.response((&new.id, "key_1"), NOW_MS, false);
    assert!(matches!(found.await, Err(StoreError::Damaged(_))));
}

async fn an_organization_keeps_no_more_than_its_bounds(fixture: Fixture) {
    let store = &fixture.store;
    for n in 1..=3 {
        store.add_response(&response(n)).await.unwrap();
    }
    let full = store.add_response(&response(4)).await;
    assert!(matches!(full, Err(StoreError::Full)));
    assert_eq!(fixture.bytes().await.0, 3);
    let other = NewResponse {
        organization_id: "org_2".into(),
        ..response(5)
    };
    store.add_response(&other).await.unwrap();
    assert!(
        store
            .delete_response(&response(1).id, "key_1")
            .await
            .unwrap()
    );
    let bytes = fixture.bytes().await.1;
    let small = |bytes: i64| NewResponse {
        bounds: ResponseBounds { bytes, ..BOUNDS },
        ..response(4)
    };
    let full = store.add_response(&small(bytes * 3 / 2 - 1)).await;
    assert!(matches!(full, Err(StoreError::Full)));
    store.add_response(&small(bytes * 3 / 2)).await.unwrap();
    assert_eq!(fixture.bytes().await, (3, bytes * 3 / 2));
}

async fn expired_responses_go_in_portions_and_give_their_room_back(fixture: Fixture) {
    let store = &fixture.store;
    for n in 1..=3 {
        store.add_response(&response(n)).await.unwrap();
    }
    let kept = NewResponse {
        organization_id: "org_2".into(),
        expires_ms: NOW_MS + 5000,
        ..response(4)
    };
    store.add_response(&kept).await.unwrap();
    let delete = async |now_ms: i64| store.delete_expired_responses(now_ms, 2).await.unwrap();
    assert_eq!(delete(NOW_MS + 999).await, 0);
    assert_eq!(delete(NOW_MS + 1000).await, 2);
    assert_eq!(fixture.bytes().await.0, 1);
    assert_eq!(delete(NOW_MS + 1000).await, 1);
    assert_eq!(fixture.bytes().await, (0, 0));
    assert_eq!(delete(NOW_MS + 1000).await, 0);
    assert_eq!(store.response_totals("org_2").await.unwrap().responses, 1);
}

async fn a_background_response_ends_once_with_its_charge(fixture: Fixture) {
    fixture.funded_for_responses().await;
    fixture.begin_response(1).await;
    let store = &fixture.store;
    assert_eq!(fixture.status(1).await.as_deref(), Some("queued"));
    assert_eq!(fixture.account().await.leased, usd("10"));
    assert!(
        !store
            .delete_response(&response(1).id, "key_1")
            .await
            .unwrap(),
        "it is being made"
    );
    assert_eq!(fixture.spent_of("key/key_1").await.key.total, usd("4"));
    let before = fixture.bytes().await.1;
    store.unregister_process("p1").await.unwrap();
    let paid = entry(1, "3.5");
    let end = async || {
        let ended = ended(1, "completed");
        let ended = store.end_job((RESPONSE, &paid.id), ("", 0), Some(&paid), Some(&ended));
        ended.await.unwrap()
    };
    assert_eq!(end().await.unwrap().charged, usd("3.5"));
    assert_eq!(end().await, None);
    let account = fixture.account().await;
    assert_eq!((account.leased, account.settled), (usd("0"), usd("3.5")));
    assert_eq!(fixture.spent_of("key/key_1").await.key.total, usd("3.5"));
    let id = paid.id.to_string();
    let found = store
        .response((&id, "key_1"), NOW_MS, true)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (&*found.status, &*found.input, &*found.response),
        ("completed", "[\"asked\"]", "{\"said\":\"more\"}")
    );
    // The longer response counts with its own bytes.
    assert_eq!(fixture.bytes().await, (1, before + 5));
    assert!(store.delete_response(&id, "key_1").await.unwrap());
    assert_eq!(fixture.bytes().await, (0, 0));
}

async fn a_cancelled_response_stays_cancelled(fixture: Fixture) {
    fixture.funded_for_responses().await;
    fixture.begin_response(1).await;
    let (store, id) = (&fixture.store, response(1).id);
    assert_eq!(fixture.claim_responses("p1", NOW_MS).await, 1);
    let begun = store
        .begin_response_work("p1", &EntryId([1; 16]), "1")
        .await;
    assert!(begun.unwrap());
    assert_eq!(fixture.status(1).await.as_deref(), Some("in_progress"));
    assert!(!store.cancel_response((&id, "key_2"), NOW_MS).await.unwrap());
    assert!(store.cancel_response((&id, "key_1"), NOW_MS).await.unwrap());
    assert_eq!(fixture.status(1).await.as_deref(), Some("cancelled"));
    let hold = store.renew_response_job("p1", &EntryId([1; 16]), NOW_MS + 500);
    assert_eq!(hold.await.unwrap(), JobHold::Cancelled);
    let begun = store
        .begin_response_work("p1", &EntryId([1; 16]), "2")
        .await;
    assert!(!begun.unwrap());
    // What had come by then is charged, and told to nobody.
    let (paid, said) = (entry(1, "0.5"), ended(1, "completed"));
    let end = store.end_job((RESPONSE, &paid.id), ("", 0), Some(&paid), Some(&said));
    assert!(end.await.unwrap().is_some());
    assert_eq!(fixture.status(1).await.as_deref(), Some("cancelled"));
    assert!(!store.cancel_response((&id, "key_1"), NOW_MS).await.unwrap());
    let account = fixture.account().await;
    assert_eq!(account.settled, usd("0.5"));
}

async fn a_claim_is_held_by_one_process(fixture: Fixture) {
    fixture.funded_for_responses().await;
    fixture.store.register_process("p2").await.unwrap();
    fixture.begin_response(1).await;
    let (store, id) = (&fixture.store, EntryId([1; 16]));
    assert_eq!(fixture.claim_responses("p1", NOW_MS).await, 1);
    let hold = async |process: &str, until_ms: i64| {
        let hold = store.renew_response_job(process, &id, until_ms);
        hold.await.unwrap()
    };
    assert_eq!(hold("p2", NOW_MS + 300).await, JobHold::Lost);
    assert_eq!(hold("p1", NOW_MS + 300).await, JobHold::Renewed);
    assert_eq!(fixture.claim_responses("p2", NOW_MS + 299).await, 0);
    assert_eq!(fixture.claim_responses("p2", NOW_MS + 300).await, 1);
    assert_eq!(hold("p1", NOW_MS + 900).await, JobHold::Lost);
    assert!(!store.begin_response_work("p1", &id, "1").await.unwrap());
    let ended = ended(1, "failed");
    let end = store.end_job((RESPONSE, &id), ("", 0), None, Some(&ended));
    assert!(end.await.unwrap().is_some());
    assert_eq!(hold("p2", NOW_MS + 900).await, JobHold::Lost);
    assert_eq!(fixture.claim_responses("p2", NOW_MS + 900).await, 0);
    assert_ne!(CANCELLED_JOB, "0", "a state counts runs");
}

async fn a_response_that_nobody_was_told_of_goes(fixture: Fixture) {
    fixture.funded_for_responses().await;
    fixture.begin_response(1).await;
    let id = EntryId([1; 16]);
    let end = fixture.store.end_job((RESPONSE, &id), ("", 0), None, None);
    assert!(end.await.unwrap().is_some());
    assert_eq!(fixture.status(1).await, None);
    assert_eq!(fixture.bytes().await, (0, 0));
    assert_eq!(fixture.account().await.leased, usd("6"));
    // A job whose response has no room does not begin.
    let (job, response) = job(2);
    let full = NewResponse {
        bounds: ResponseBounds {
            responses: 0,
            ..BOUNDS
        },
        ..response
    };
    let begun = fixture
        .store
        .begin_job("p1", &job, NOW_MS, Some(&full))
        .await;
    assert!(matches!(begun, Err(StoreError::Full)));
    assert_eq!(fixture.account().await.leased, usd("6"));
    assert_eq!(fixture.claim_responses("p1", NOW_MS).await, 0);
}
