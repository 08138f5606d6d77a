#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use bytes::Bytes;
use filters::models::metadata::AnswerMembers;
use filters::models::usage::Usage;

use super::*;

const TTL: Duration = Duration::from_secs(10);

fn cache(max_bytes: u64) -> Arc<ReplyCache> {
    let metrics = Arc::new(Metrics::new().unwrap());
    ReplyCache::new(max_bytes, &[[1; 32]; 2], None, &metrics, None).unwrap()
}

fn search(key: u8, now_ms: u64) -> Search {
    Search {
        key: ReplyKey([key; 32]),
        ttl: TTL,
        now_ms,
    }
}

fn reply(bytes: usize, stored_ms: u64) -> CachedReply {
    let members = AnswerMembers::Replayed("\"a\":1");
    let events = Bytes::from(vec![0; bytes]);
    CachedReply::new(
        events,
        Usage::default(),
        ("m", "maker", "l"),
        &members,
        stored_ms,
    )
}

async fn lead(cache: &Arc<ReplyCache>, search: &Search) -> CallGuard {
    match cache.find(search, "r").await {
        ReplyLookup::Miss(guard) => guard,
        ReplyLookup::Hit(_) | ReplyLookup::Bypass => panic!("somebody leads, or a reply was found"),
    }
}

async fn is_hit(cache: &Arc<ReplyCache>, search: &Search) -> bool {
    matches!(cache.find(search, "r").await, ReplyLookup::Hit(_))
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_found_until_it_is_older_than_the_project_wants() {
    let cache = cache(1 << 20);
    lead(&cache, &search(1, 5_000))
        .await
        .store(reply(10, 5_000));
    assert!(is_hit(&cache, &search(1, 5_000)).await);
    assert!(is_hit(&cache, &search(1, 14_999)).await);
    assert!(!is_hit(&cache, &search(1, 15_000)).await);
    assert!(!is_hit(&cache, &search(2, 5_000)).await);
    let shorter = Search {
        ttl: Duration::from_secs(1),
        ..search(1, 6_000)
    };
    assert!(!is_hit(&cache, &shorter).await);
}

#[tokio::test(start_paused = true)]
async fn a_large_reply_goes_to_the_followers_and_is_not_kept() {
    let cache = cache(16 * 4096);
    let guard = lead(&cache, &search(1, 0)).await;
    assert_eq!(guard.max_bytes(), 4096);
    let waiting = cache.clone();
    let follower = tokio::spawn(async move { is_hit(&waiting, &search(1, 0)).await });
    tokio::task::yield_now().await;
    guard.store(reply(5000, 0));
    assert!(follower.await.unwrap());
    assert!(!is_hit(&cache, &search(1, 0)).await);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_leaves_makes_room_for_one_and_a_failed_one_for_all() {
    let cache = cache(1 << 20);
    let guard = lead(&cache, &search(1, 0)).await;
    let waiting = [cache.clone(), cache.clone()];
    let followers = waiting.map(|cache| {
        tokio::spawn(async move {
            match cache.find(&search(1, 0), "r").await {
                ReplyLookup::Miss(guard) => {
                    tokio::task::yield_now().await;
                    guard.release_followers();
                    "leader"
                }
                ReplyLookup::Hit(_) => "hit",
                ReplyLookup::Bypass => "alone",
            }
        })
    });
    tokio::task::yield_now().await;
    drop(guard);
    let mut roles = Vec::new();
    for follower in followers {
        roles.push(follower.await.unwrap());
    }
    roles.sort_unstable();
    assert_eq!(roles, ["alone", "leader"]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_waits_for_five_seconds() {
    let cache = cache(1 << 20);
    let _guard = lead(&cache, &search(1, 0)).await;
    let started = Time::now();
    let lookup = cache.find(&search(1, 0), "r").await;
    assert!(matches!(lookup, ReplyLookup::Bypass));
    assert_eq!(started.elapsed(), FOLLOWER_TIMEOUT);
}

#[test]
fn no_bytes_mean_no_cache() {
    let metrics = Arc::new(Metrics::new().unwrap());
    assert!(ReplyCache::new(0, &[[1; 32]; 2], None, &metrics, None).is_none());
}

#[tokio::test(start_paused = true)]
async fn replies_and_running_calls_go_on_in_a_cache_of_another_size() {
    let old = cache(1 << 20);
    lead(&old, &search(1, 0)).await.store(reply(10, 0));
    let resized = |max_bytes, previous: &Arc<ReplyCache>| {
        let metrics = Arc::clone(&previous.metrics);
        ReplyCache::new(max_bytes, &[[1; 32]; 2], None, &metrics, Some(previous))
    };
    assert!(Arc::ptr_eq(&old, &resized(1 << 20, &old).unwrap()));
    assert!(resized(0, &old).is_none());
    let running = lead(&old, &search(2, 0)).await;
    let new = resized(1 << 21, &old).unwrap();
    assert!(is_hit(&new, &search(1, 0)).await);
    assert_eq!(new.max_reply_bytes, 2 * old.max_reply_bytes);
    let follower = tokio::spawn(async move { is_hit(&new, &search(2, 0)).await });
    tokio::task::yield_now().await;
    running.store(reply(10, 0));
    assert!(follower.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn replies_pass_to_another_process_for_the_rest_of_their_time() {
    let (old, new) = (cache(1 << 20), cache(1 << 20));
    for key in 1..=3 {
        let guard = lead(&old, &search(key, 5_000)).await;
        guard.store(reply(0, 5_000));
    }
    tokio::time::advance(Duration::from_secs(4)).await;
    let bytes = old.to_bytes();
    assert_eq!(new.take_in(bytes.clone()), 3);
    assert!(is_hit(&new, &search(2, 9_000)).await);
    assert!(!is_hit(&new, &search(2, 15_000)).await);
    // Bytes that end within a reply leave that one out.
    for cut in [1, 10, 40] {
        let cut = bytes.get(..bytes.len() - cut).unwrap().to_vec();
        assert_eq!(cache(1 << 20).take_in(cut), 2);
    }
    assert_eq!(cache(1 << 20).take_in(vec![255; 100]), 0);
}
