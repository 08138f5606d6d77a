#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::proxy::body_budget::BodyBudget;

const GIF: &str = "GIF89a\u{1}\u{0}";

/// A server on loopback that answers each connection with these bytes and counts them.
fn serving(reply: String) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            let mut stream = stream.unwrap();
            _ = stream.read(&mut [0; 4096]);
            _ = stream.write_all(reply.as_bytes());
        }
    });
    (port, seen)
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\ncontent-type: text/html\r\n\r\n{body}",
        body.len()
    )
}

fn moved(to: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nconnection: close\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"
    )
}

fn fetcher(own: &[String]) -> Fetcher {
    _ = rustls::crypto::ring::default_provider().install_default();
    let config = MediaConfig {
        fetch: true,
        max_bytes: 1024,
        timeout: Duration::from_secs(2),
        max_fetches: 4,
        cache_bytes: 0,
        origins: own.to_vec(),
    };
    Fetcher::new(&config).unwrap()
}

fn memory() -> BodyReservation {
    Arc::new(BodyBudget::new(1 << 21)).reservation(Some("org_1".into()))
}

fn at(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

#[tokio::test]
async fn an_image_is_known_by_its_bytes_and_not_by_what_its_server_calls_it() {
    let (port, _) = serving(ok(GIF));
    let fetched = fetcher(&[at(port)])
        .fetch(&at(port), &mut memory())
        .await
        .unwrap();
    assert_eq!(fetched.media_type, "image/gif");
    let (port, _) = serving(ok("<html>GIF89a</html>"));
    let fetched = fetcher(&[at(port)]).fetch(&at(port), &mut memory()).await;
    assert_eq!(fetched, Err(FetchError::NoImage));
}

#[tokio::test]
async fn too_much_is_not_read() {
    let body = format!("{GIF}{}", "x".repeat(2000));
    for reply in [
        ok(&body),
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}"),
    ] {
        let (port, _) = serving(reply);
        let fetched = fetcher(&[at(port)]).fetch(&at(port), &mut memory()).await;
        assert_eq!(fetched, Err(FetchError::TooLarge(1024)));
    }
}

#[tokio::test]
async fn addresses_that_are_not_public_are_never_asked() {
    let (port, seen) = serving(ok(GIF));
    let fetcher = fetcher(&[]);
    for host in [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.0.1",
        "[fd00::1]",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::1:101:101]",
        "[64:ff9b:1::101:101]",
        "[2001:2::1]",
        "[2001:10::1]",
        "[2001:20::1]",
        "[3fff::1]",
        "192.88.99.1",
        "[2002:7f00:1::]",
        "224.0.0.1",
        "255.255.255.255",
    ] {
        let fetched = fetcher
            .fetch(&format!("https://{host}:{port}/a.gif"), &mut memory())
            .await;
        assert_eq!(fetched, Err(FetchError::Prohibited), "{host}");
    }
    // Not every system resolves this name.
    let fetched = fetcher
        .fetch(&format!("https://localhost.:{port}/"), &mut memory())
        .await;
    assert!(fetched.is_err());
    for url in [
        format!("http://127.0.0.1:{port}/"),
        "http://example.com/a.gif".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://example.com/".to_owned(),
        format!("https://user:word@127.0.0.1:{port}/"),
        "https://".to_owned(),
    ] {
        let fetched = fetcher.fetch(&url, &mut memory()).await;
        assert!(matches!(fetched, Err(FetchError::Refused(_))), "{url}");
    }
    assert_eq!(seen.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn redirects_are_few_and_checked_like_the_first_address() {
    let (secret, seen) = serving(ok(GIF));
    for to in [
        at(secret),
        format!("https://127.0.0.1:{secret}/"),
        "https://169.254.169.254/".to_owned(),
    ] {
        let (port, _) = serving(moved(&to));
        let fetched = fetcher(&[at(port)]).fetch(&at(port), &mut memory()).await;
        let is_refused = matches!(
            fetched,
            Err(FetchError::Prohibited | FetchError::Refused(_))
        );
        assert!(is_refused, "{to}: {fetched:?}");
    }
    assert_eq!(seen.load(Ordering::SeqCst), 0);
    let (port, _) = serving(moved(&at(secret)));
    let fetched = fetcher(&[at(port), at(secret)])
        .fetch(&at(port), &mut memory())
        .await;
    assert_eq!(fetched.unwrap().media_type, "image/gif");
    let (port, seen) = serving(moved("/again"));
    let fetched = fetcher(&[at(port)]).fetch(&at(port), &mut memory()).await;
    assert_eq!(fetched, Err(FetchError::Redirects));
    assert_eq!(seen.load(Ordering::SeqCst), 4);
}

/// A server that keeps its connections open, and counts them.
fn keeping() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let reply = ok(GIF).replace("connection: close\r\n", "");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            let (mut stream, reply) = (stream.unwrap(), reply.clone());
            std::thread::spawn(move || {
                while stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {
                    _ = stream.write_all(reply.as_bytes());
                }
            });
        }
    });
    (port, seen)
}

#[tokio::test]
async fn no_connection_to_a_stranger_is_kept() {
    let (port, seen) = keeping();
    let fetcher = fetcher(&[at(port)]);
    for count in 1..=3 {
        assert!(fetcher.fetch(&at(port), &mut memory()).await.is_ok());
        assert_eq!(seen.load(Ordering::SeqCst), count);
    }
}

#[tokio::test]
async fn an_own_host_is_asked_at_the_origins_that_were_written_alone() {
    let (own, _) = serving(ok(GIF));
    let (other, seen) = serving(ok(GIF));
    let fetcher = fetcher(&[at(own)]);
    assert!(fetcher.fetch(&at(own), &mut memory()).await.is_ok());
    assert!(fetcher.fetch(&at(other), &mut memory()).await.is_err());
    let tls = fetcher
        .fetch(&format!("https://127.0.0.1:{other}/"), &mut memory())
        .await;
    assert_eq!(tls, Err(FetchError::Prohibited));
    assert_eq!(seen.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn other_answers_and_broken_ones_are_told_apart() {
    let (port, _) = serving("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned());
    let fetched = fetcher(&[at(port)]).fetch(&at(port), &mut memory()).await;
    assert_eq!(fetched, Err(FetchError::Status(404)));
    let (port, _) = serving("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nGIF89a".to_owned());
    let fetched = fetcher(&[at(port)]).fetch(&at(port), &mut memory()).await;
    assert_eq!(fetched, Err(FetchError::Broken));
}
