#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use filters::graph::{CacheRequest, HeadKey};
use http::Method;

use super::*;

fn cache() -> Arc<ResponseCache> {
    Arc::new(ResponseCache::new(Duration::from_secs(60), 1 << 20))
}

fn key() -> CacheKey {
    let asked = CacheRequest {
        tenant: Some("t1"),
        credential_kind: "single",
        is_public: true,
        method: &Method::POST,
        path: "/content/v2",
        query: "",
        headers: &HeaderMap::new(),
    };
    let head = HeadKey::from_request(&asked).unwrap();
    head.to_cache_key(br#"{"query":"{ a }"}"#)
}

fn head(lines: &[(&'static str, &'static str)]) -> ResponseHeader {
    let mut head = ResponseHeader::build(200, None).unwrap();
    for (name, value) in lines {
        head.insert_header(*name, *value).unwrap();
    }
    head
}

async fn flight(cache: &Arc<ResponseCache>) -> CacheWriter {
    match cache.find(key(), || true).await {
        Lookup::Nothing(flight) => CacheWriter::new(flight),
        _ => panic!("somebody else flies"),
    }
}

/// Whoever asks now waits from here on.
fn behind(cache: &Arc<ResponseCache>) -> tokio::task::JoinHandle<Lookup> {
    let cache = Arc::clone(cache);
    tokio::spawn(async move { cache.find(key(), || true).await })
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_the_answer_that_another_fetched() {
    let cache = cache();
    let mut first = flight(&cache).await;
    let second = behind(&cache);
    tokio::task::yield_now().await;
    assert!(first.head(&head(&[("content-length", "4"), ("x-own", "1")])));
    first.body(b"ab", false);
    assert!(!second.is_finished());
    first.body(b"cd", true);
    drop(first);
    let Lookup::Hit(kept) = second.await.unwrap() else {
        panic!("no hit")
    };
    assert_eq!(&kept.body[..], b"abcd");
    let names: Vec<_> = kept.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x-own"]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_flies_where_the_first_is_gone() {
    let cache = cache();
    let first = flight(&cache).await;
    let second = behind(&cache);
    tokio::task::yield_now().await;
    drop(first);
    assert!(matches!(second.await.unwrap(), Lookup::Nothing(_)));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_an_answer_that_is_not_kept() {
    for line in [("set-cookie", "a=b"), ("cache-control", "max-age=0")] {
        let cache = cache();
        let mut first = flight(&cache).await;
        let second = behind(&cache);
        tokio::task::yield_now().await;
        assert!(!first.head(&head(&[("content-length", "4"), line])));
        assert!(matches!(second.await.unwrap(), Lookup::Alone), "{line:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_five_seconds() {
    let cache = cache();
    let _first = flight(&cache).await;
    let begun = Instant::now();
    assert!(matches!(cache.find(key(), || true).await, Lookup::Alone));
    assert_eq!(begun.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_whole_is_not_kept() {
    for (lines, pieces) in [
        (&[("content-length", "4")][..], &[&b"abc"[..]][..]),
        (&[][..], &[&b"abcd"[..]][..]),
    ] {
        let cache = cache();
        let mut first = flight(&cache).await;
        first.head(&head(lines));
        for piece in pieces {
            first.body(piece, true);
        }
        drop(first);
        assert!(
            matches!(cache.find(key(), || true).await, Lookup::Nothing(_)),
            "{lines:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_fresh_for_as_long_as_it_says_and_no_longer_than_configured() {
    for (line, fresh_s) in [("max-age=10", 10), ("max-age=600", 60), ("public", 60)] {
        let cache = cache();
        let mut first = flight(&cache).await;
        first.head(&head(&[("content-length", "1"), ("cache-control", line)]));
        first.body(b"a", true);
        drop(first);
        tokio::time::sleep(Duration::from_secs(fresh_s - 1)).await;
        let Lookup::Hit(kept) = cache.find(key(), || true).await else {
            panic!("{line}: no hit")
        };
        assert_eq!(kept.age_s(), fresh_s - 1);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(
            matches!(cache.find(key(), || true).await, Lookup::Nothing(_)),
            "{line}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_larger_than_its_part_is_not_kept() {
    let cache = cache();
    let mut first = flight(&cache).await;
    assert!(!first.head(&head(&[("content-length", "300000")])));
    drop(first);
    let mut second = flight(&cache).await;
    assert!(second.head(&head(&[("transfer-encoding", "chunked")])));
    second.body(&vec![b'a'; 300_000], true);
    drop(second);
    assert!(matches!(
        cache.find(key(), || true).await,
        Lookup::Nothing(_)
    ));
}
