#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use filters::graph::{CacheRequest, HeadKey};
use http::Method;
use pingora::http::ResponseHeader;

use super::*;

fn cache() -> Arc<ResponseCache> {
    Arc::new(ResponseCache::new(Duration::from_secs(60), 1 << 20))
}

fn key() -> CacheKey {
    key_of(br#"{"query":"{ a }"}"#)
}

fn key_of(body: &[u8]) -> CacheKey {
    let request = CacheRequest {
        tenant: Some("t1"),
        credential_kind: "single",
        is_public: true,
        method: &Method::POST,
        path: "/content/v2",
        query: "",
        headers: &HeaderMap::new(),
    };
    let head = HeadKey::from_request(&request).unwrap();
    head.to_cache_key(body)
}

fn head(fields: &[(&'static str, &'static str)]) -> ResponseHeader {
    let mut head = ResponseHeader::build(200, None).unwrap();
    for (name, value) in fields {
        head.insert_header(*name, *value).unwrap();
    }
    head
}

async fn lead(cache: &Arc<ResponseCache>) -> CacheWriter {
    match cache.find(key(), || true).await {
        Lookup::Miss(guard) => CacheWriter::new(guard),
        _ => panic!("another request is the leader"),
    }
}

/// Starts an equal request.
fn follow(cache: &Arc<ResponseCache>) -> tokio::task::JoinHandle<Lookup> {
    let cache = Arc::clone(cache);
    tokio::spawn(async move { cache.find(key(), || true).await })
}

#[tokio::test(start_paused = true)]
async fn a_follower_gets_the_response_that_the_leader_fetched() {
    let cache = cache();
    let mut first = lead(&cache).await;
    let second = follow(&cache);
    tokio::task::yield_now().await;
    assert!(first.write_head(&head(&[("content-length", "4"), ("x-own", "1")])));
    first.write_body(b"ab", false);
    assert!(!second.is_finished());
    first.write_body(b"cd", true);
    drop(first);
    let Lookup::Hit(cached) = second.await.unwrap() else {
        panic!("no hit")
    };
    assert_eq!(&cached.body[..], b"abcd");
    let names: Vec<_> = cached
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["x-own"]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_leads_after_the_leader_ended_without_a_response() {
    let cache = cache();
    let first = lead(&cache).await;
    let second = follow(&cache);
    tokio::task::yield_now().await;
    drop(first);
    assert!(matches!(second.await.unwrap(), Lookup::Miss(_)));
}

#[tokio::test(start_paused = true)]
async fn no_follower_waits_for_a_response_that_is_not_cacheable() {
    for field in [("set-cookie", "a=b"), ("cache-control", "max-age=0")] {
        let cache = cache();
        let mut first = lead(&cache).await;
        let second = follow(&cache);
        tokio::task::yield_now().await;
        assert!(!first.write_head(&head(&[("content-length", "4"), field])));
        assert!(matches!(second.await.unwrap(), Lookup::Bypass), "{field:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_follower_waits_longer_than_five_seconds() {
    let cache = cache();
    let _first = lead(&cache).await;
    let started = Instant::now();
    assert!(matches!(cache.find(key(), || true).await, Lookup::Bypass));
    assert_eq!(started.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_not_whole_is_not_cached() {
    for (fields, pieces) in [
        (&[("content-length", "4")][..], &[&b"abc"[..]][..]),
        (&[][..], &[&b"abcd"[..]][..]),
    ] {
        let cache = cache();
        let mut first = lead(&cache).await;
        first.write_head(&head(fields));
        for piece in pieces {
            first.write_body(piece, true);
        }
        drop(first);
        assert!(
            matches!(cache.find(key(), || true).await, Lookup::Miss(_)),
            "{fields:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_is_fresh_for_as_long_as_it_says_and_no_longer_than_configured() {
    for (cache_control, fresh_s) in [("max-age=10", 10), ("max-age=600", 60), ("public", 60)] {
        let cache = cache();
        let mut first = lead(&cache).await;
        first.write_head(&head(&[
            ("content-length", "1"),
            ("cache-control", cache_control),
        ]));
        first.write_body(b"a", true);
        drop(first);
        tokio::time::sleep(Duration::from_secs(fresh_s - 1)).await;
        let Lookup::Hit(cached) = cache.find(key(), || true).await else {
            panic!("{cache_control}: no hit")
        };
        assert_eq!(cached.age_s(), fresh_s - 1);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(
            matches!(cache.find(key(), || true).await, Lookup::Miss(_)),
            "{cache_control}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_process_takes_over_what_is_fresh_with_its_age() {
    let (old, new) = (cache(), cache());
    let mut writer = lead(&old).await;
    let fields = [("content-length", "2"), ("age", "5"), ("x-own", "a: b")];
    writer.write_head(&head(&fields));
    writer.write_body(b"\n\0", true);
    drop(writer);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let passed = old.to_bytes();
    assert_eq!(new.take_in(&passed), 1);
    let Lookup::Hit(cached) = new.find(key(), || true).await else {
        panic!("no hit")
    };
    assert_eq!((&cached.body[..], cached.age_s()), (&b"\n\0"[..], 15));
    let [(name, value)] = &cached.headers[..] else {
        panic!("{:?}", cached.headers)
    };
    assert_eq!((name.as_str(), value.as_bytes()), ("x-own", &b"a: b"[..]));
    // It is fresh until the same time as before.
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert!(matches!(new.find(key(), || true).await, Lookup::Miss(_)));
    assert!(old.to_bytes().is_empty());
    for cut in 0..passed.len() {
        assert_eq!(cache().take_in(&passed[..cut]), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_over_its_share_is_not_cached() {
    let cache = cache();
    let mut first = lead(&cache).await;
    assert!(!first.write_head(&head(&[("content-length", "300000")])));
    drop(first);
    let mut second = lead(&cache).await;
    assert!(second.write_head(&head(&[("transfer-encoding", "chunked")])));
    second.write_body(&vec![b'a'; 300_000], true);
    drop(second);
    assert!(matches!(cache.find(key(), || true).await, Lookup::Miss(_)));
}

#[tokio::test(start_paused = true)]
async fn the_request_counts_as_part_of_its_response() {
    let cache = cache();
    let is_cached = async |body: &[u8]| {
        let Lookup::Miss(guard) = cache.find(key_of(body), || true).await else {
            panic!("another request is the leader");
        };
        let mut writer = CacheWriter::new(guard);
        assert!(writer.write_head(&head(&[("content-length", "1")])));
        writer.write_body(b"a", true);
        drop(writer);
        cache.responses.run_pending_tasks();
        cache.responses.contains_key(&key_of(body))
    };
    assert!(is_cached(&[b'a'; 1000]).await);
    assert!(!is_cached(&vec![b'b'; 2 << 20]).await);
}
