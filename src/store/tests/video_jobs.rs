//! Jobs of videos: their amounts, their charges, their claims.

use filters::ledger::{CallOwner, EntryId, Funding};

use super::super::ledger::{DueJobs, JobKind, LeaseChange, StoredJob, VideoJobPage};
use super::ledger::{ORG, entry, usd};
use super::*;

on_both![
    what_a_job_may_cost_moves_from_the_process_and_back,
    a_job_ends_once_and_is_paid_once,
    what_open_jobs_may_cost_counts_as_spent,
    a_job_is_claimed_by_one_until_the_claim_ends,
    each_organization_gets_its_turn_and_no_more_than_its_room,
    jobs_are_found_by_their_key_alone,
    a_secret_is_in_no_column,
];

const VIDEO: JobKind = JobKind::Video;

fn job(n: u8) -> StoredJob {
    StoredJob {
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
        state: "{}".to_owned(),
        created_ms: NOW_MS,
        is_open: true,
        ..StoredJob::default()
    }
}

fn due(is_open: bool, most: usize) -> DueJobs {
    DueJobs {
        is_open,
        most,
        of_organization: 2,
        of_others: Vec::new(),
    }
}

impl Fixture {
    async fn begin_job(&self, job: &StoredJob) {
        let begun = self.store.begin_job("p1", job, NOW_MS, None).await;
        begun.unwrap();
    }

    /// An organization with 10 USD, of which a process has a lease.
    async fn funded(&self) {
        self.grant("10").await;
        self.store.register_process("p1").await.unwrap();
        self.change("p1", 1, LeaseChange::Take(usd("1"))).await;
    }
}

async fn what_a_job_may_cost_moves_from_the_process_and_back(fixture: Fixture) {
    fixture.funded().await;
    assert_eq!(fixture.account().await.leased, usd("10"));
    fixture.begin_job(&job(1)).await;
    assert_eq!(fixture.account().await.leased, usd("10"));
    // A process that dies takes its own lease with it, and not that of the job.
    fixture.store.unregister_process("p1").await.unwrap();
    assert_eq!(fixture.account().await.leased, usd("4"));
    let store = &fixture.store;
    let ended = store
        .end_job((VIDEO, &job(1).id), ("{}", 0), None, None)
        .await;
    assert!(ended.unwrap().is_some());
    let account = fixture.account().await;
    assert_eq!((account.leased, account.settled), (usd("0"), usd("0")));
}

async fn a_job_ends_once_and_is_paid_once(fixture: Fixture) {
    fixture.funded().await;
    fixture.begin_job(&job(1)).await;
    fixture.store.unregister_process("p1").await.unwrap();
    let store = &fixture.store;
    let paid = entry(1, "3.5");
    let charge = store
        .end_job((VIDEO, &paid.id), ("{\"a\":1}", 0), Some(&paid), None)
        .await;
    let charge = charge.unwrap().unwrap();
    assert_eq!((charge.charged, charge.shortfall), (usd("3.5"), usd("0")));
    let again = store
        .end_job((VIDEO, &paid.id), ("{}", 0), Some(&paid), None)
        .await;
    assert_eq!(again.unwrap(), None);
    let account = fixture.account().await;
    assert_eq!((account.leased, account.settled), (usd("0"), usd("3.5")));
    let mut calls = Vec::new();
    let visited = store.visit_calls((0, i64::MAX), |_| true, |call| calls.push(call.id));
    visited.await.unwrap();
    assert_eq!(calls, [paid.id]);
    let kept = store
        .video_job(&paid.id.to_string(), "key_1")
        .await
        .unwrap()
        .unwrap();
    assert_eq!((kept.is_open, &*kept.state), (false, "{\"a\":1}"));
}

async fn what_open_jobs_may_cost_counts_as_spent(fixture: Fixture) {
    fixture.funded().await;
    fixture.begin_job(&job(1)).await;
    let store = &fixture.store;
    let spent = async || fixture.spent_of("key/key_1").await.key.total;
    assert_eq!(spent().await, usd("4"));
    let paid = entry(1, "3.5");
    let ended = store
        .end_job((VIDEO, &paid.id), ("{}", 0), Some(&paid), None)
        .await;
    assert!(ended.unwrap().is_some());
    assert_eq!(spent().await, usd("3.5"));
}

async fn a_job_is_claimed_by_one_until_the_claim_ends(fixture: Fixture) {
    fixture.funded().await;
    fixture.begin_job(&job(1)).await;
    let store = &fixture.store;
    store.register_process("p2").await.unwrap();
    let claim = async |process: &str, now_ms: i64| {
        let claimed = store
            .claim_jobs(VIDEO, process, (now_ms, now_ms + 100), &due(true, 5))
            .await;
        claimed.unwrap().len()
    };
    assert!(!store.has_due_job(VIDEO, NOW_MS - 1, true).await.unwrap());
    assert!(!store.has_due_job(VIDEO, NOW_MS, false).await.unwrap());
    assert_eq!(claim("p1", NOW_MS - 1).await, 0);
    assert!(store.has_due_job(VIDEO, NOW_MS, true).await.unwrap());
    assert_eq!(claim("p1", NOW_MS).await, 1);
    assert_eq!(claim("p2", NOW_MS + 99).await, 0);
    assert_eq!(claim("p2", NOW_MS + 100).await, 1);
    // The claim of the first is over, and so is what it knows.
    let id = job(1).id;
    store
        .postpone_job("p1", (VIDEO, &id), ("{\"late\":1}", 5))
        .await
        .unwrap();
    let kept = store
        .video_job(&id.to_string(), "key_1")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kept.state, "{}");
    store
        .postpone_job("p2", (VIDEO, &id), ("{\"a\":1}", NOW_MS + 500))
        .await
        .unwrap();
    assert_eq!(claim("p1", NOW_MS + 499).await, 0);
    assert_eq!(claim("p2", NOW_MS + 500).await, 1);
    assert_eq!(claim("p1", NOW_MS + 501).await, 0);
    store.unregister_process("p2").await.unwrap();
    assert_eq!(claim("p1", NOW_MS + 501).await, 1, "its process is gone");
}

async fn each_organization_gets_its_turn_and_no_more_than_its_room(fixture: Fixture) {
    fixture.funded().await;
    let store = &fixture.store.by(&PROGRAM);
    let create = async |name: &str| {
        let plan = Plan::None;
        store.create_organization(name, plan, NOW_MS).await.unwrap();
        store.register_process(name).await.unwrap();
    };
    create("other").await;
    let of = |n: u8, organization: &str| StoredJob {
        reserved: usd("0"),
        owner: CallOwner {
            organization_id: organization.into(),
            ..job(n).owner
        },
        ..job(n)
    };
    for n in 1..=5 {
        fixture.begin_job(&of(n, ORG)).await;
    }
    let last = of(6, "other");
    let begun = store.begin_job("p1", &last, NOW_MS + 1, None);
    begun.await.unwrap();
    let claim = async |now_ms: i64, wanted: DueJobs| {
        let times = (now_ms, now_ms + 100);
        let claimed = store.claim_jobs(VIDEO, "p1", times, &wanted).await.unwrap();
        let mut organizations: Vec<String> = claimed
            .iter()
            .map(|job| job.owner.organization_id.to_string())
            .collect();
        organizations.sort();
        organizations
    };
    let now_ms = NOW_MS + 1;
    assert!(claim(now_ms, due(false, 64)).await.is_empty());
    assert_eq!(claim(now_ms, due(true, 64)).await, [ORG, ORG, "other"]);
    let now_ms = now_ms + 100;
    assert_eq!(claim(now_ms, due(true, 2)).await, [ORG, "other"]);
    let now_ms = now_ms + 100;
    let full = DueJobs {
        of_others: vec![(ORG.into(), 0), ("third".into(), 1)],
        ..due(true, 64)
    };
    assert_eq!(claim(now_ms, full).await, ["other"]);
    let one = DueJobs {
        of_others: vec![(ORG.into(), 1)],
        ..due(true, 64)
    };
    assert_eq!(claim(now_ms, one).await, [ORG]);
}

async fn jobs_are_found_by_their_key_alone(fixture: Fixture) {
    fixture.funded().await;
    fixture.begin_job(&job(1)).await;
    fixture.begin_job(&job(2)).await;
    let (store, id) = (&fixture.store, job(1).id.to_string());
    assert!(store.video_job(&id, "key_1").await.unwrap().is_some());
    assert!(store.video_job(&id, "key_2").await.unwrap().is_none());
    let page = |key_id| VideoJobPage {
        key_id,
        after: "",
        most: 5,
        is_ascending: false,
    };
    let listed = store.video_jobs(&page("key_1")).await.unwrap();
    let ids: Vec<EntryId> = listed.iter().map(|job| job.id).collect();
    assert_eq!(ids, [EntryId([2; 16]), EntryId([1; 16])]);
    assert!(store.video_jobs(&page("key_2")).await.unwrap().is_empty());
    assert!(
        !store.delete_video_job(&id, "key_1").await.unwrap(),
        "it goes on"
    );
    let ended = store
        .end_job((VIDEO, &job(1).id), ("{}", 0), None, None)
        .await;
    assert!(ended.unwrap().is_some());
    assert!(!store.delete_video_job(&id, "key_2").await.unwrap());
    assert!(store.delete_video_job(&id, "key_1").await.unwrap());
    let second = store
        .end_job((VIDEO, &job(2).id), ("{}", 0), None, None)
        .await;
    assert!(second.unwrap().is_some());
    store.delete_old_video_jobs(NOW_MS).await.unwrap();
    assert_eq!(store.video_jobs(&page("key_1")).await.unwrap().len(), 1);
    store.delete_old_video_jobs(NOW_MS + 1).await.unwrap();
    assert!(store.video_jobs(&page("key_1")).await.unwrap().is_empty());
}

async fn a_secret_is_in_no_column(fixture: Fixture) {
    fixture.funded().await;
    let with_secret = StoredJob {
        secret: Some("whsec_canary".to_owned()),
        ..job(1)
    };
    fixture.begin_job(&with_secret).await;
    let sql = "SELECT secret FROM video_jobs";
    let sealed: Vec<u8> = sqlx::query_scalar(sql)
        .fetch_one(fixture.store.pool.unlimited())
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&sealed);
    assert!(!sealed.is_empty() && !text.contains("canary"));
    let id = with_secret.id.to_string();
    let kept = fixture
        .store
        .video_job(&id, "key_1")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kept.secret.as_deref(), Some("whsec_canary"));
}
