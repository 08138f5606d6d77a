#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};

use http::HeaderValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A loopback server whose `reply` makes a response from each URL. It counts the requests.
struct Site {
    base: String,
    requests: Arc<AtomicUsize>,
}

impl Site {
    async fn new(reply: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::slow(Duration::ZERO, reply).await
    }

    /// The same, so much later.
    async fn slow(delay: Duration, reply: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (count, own, reply) = (Arc::clone(&requests), base.clone(), Arc::new(reply));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (count, own, reply) = (Arc::clone(&count), own.clone(), Arc::clone(&reply));
                tokio::spawn(async move {
                    let mut head = vec![0; 4096];
                    let length = stream.read(&mut head).await.unwrap();
                    count.fetch_add(1, Ordering::SeqCst);
                    let head = String::from_utf8_lossy(&head[..length]).into_owned();
                    let path = head.split(' ').nth(1).unwrap();
                    tokio::time::sleep(delay).await;
                    let reply = reply(&format!("{own}{path}"));
                    _ = stream.write_all(reply.as_bytes()).await;
                });
            }
        });
        Self { base, requests }
    }

    fn count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Documents that may ask this site.
    fn documents(&self) -> ClientDocuments {
        documents(&[&self.base])
    }
}

fn documents(written: &[&str]) -> ClientDocuments {
    _ = rustls::crypto::ring::default_provider().install_default();
    ClientDocuments::new(Handle::current(), written.iter().copied()).unwrap()
}

fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn document(url: &str) -> String {
    serde_json::json!({
        "client_id": url,
        "client_name": "Editor",
        "redirect_uris": ["http://127.0.0.1/callback"],
    })
    .to_string()
}

async fn refusal(documents: &ClientDocuments, url: &str) -> String {
    match documents.find(url).await.unwrap_err() {
        DocumentError::Unusable { detail, .. } => detail,
        DocumentError::Busy => "busy".to_owned(),
    }
}

#[tokio::test]
async fn a_document_is_fetched_once_and_kept() {
    let site = Site::slow(Duration::from_millis(100), |url| ok(&document(url))).await;
    let documents = Arc::new(site.documents());
    let url = format!("{}/client.json", site.base);
    let finds = (0..20).map(|_| {
        let (documents, url) = (Arc::clone(&documents), url.clone());
        tokio::spawn(async move { documents.find(&url).await })
    });
    for found in finds.collect::<Vec<_>>() {
        let metadata = found.await.unwrap().unwrap();
        assert_eq!(metadata.name.as_deref(), Some("Editor"));
        assert_eq!(metadata.redirect_uris, ["http://127.0.0.1/callback"]);
    }
    documents.find(&url).await.unwrap();
    assert_eq!(site.count(), 1);
    documents.find(&format!("{url}?2")).await.unwrap();
    assert_eq!(site.count(), 2);
}

#[tokio::test]
async fn what_is_of_no_use_is_refused_and_asked_for_again() {
    let too_long = format!("{{\"a\": \"{}\"}}", "a".repeat(MAX_DOCUMENT_BYTES));
    let many = serde_json::json!({
        "client_id": "",
        "redirect_uris": vec!["https://a.example.com/"; 10_000],
    });
    let eleven = |url: &str| serde_json::json!({"client_id": url, "redirect_uris": vec!["https://a.example.com/"; 11]});
    let secret = |url: &str| {
        serde_json::json!({
            "client_id": url,
            "redirect_uris": ["https://a.example.com/"],
            "token_endpoint_auth_method": "client_secret_basic",
        })
    };
    let site = Site::new(move |url| match url.rsplit_once('/').unwrap().1 {
        "foreign" => ok(&document("https://another.example.com/client.json")),
        "no-json" => ok("<html>"),
        "list" => ok("[]"),
        "long" => ok(&too_long),
        "endless" => format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{too_long}"),
        "many" => ok(&many.to_string()),
        "eleven" => ok(&eleven(url).to_string()),
        "secret" => ok(&secret(url).to_string()),
        "missing" => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
        "partial" => ok(&document(url)).replace("200 OK", "206 Partial Content"),
        _ => String::new(),
    })
    .await;
    let documents = site.documents();
    for (path, reason) in [
        ("foreign", "`client_id` is not the URL of the document"),
        ("no-json", "the document is not JSON"),
        ("list", "the document is no JSON object"),
        ("long", "it has more than 16384 bytes"),
        ("endless", "it has more than 16384 bytes"),
        ("many", "it has more than 16384 bytes"),
        ("eleven", "`redirect_uris` has 11 entries"),
        ("secret", "has to be `none`"),
        ("missing", "it answered 404 Not Found"),
        ("partial", "it answered 206 Partial Content"),
        ("broken", "error sending request"),
    ] {
        let url = format!("{}/{path}", site.base);
        let before = site.count();
        for _ in 0..2 {
            let said = refusal(&documents, &url).await;
            assert!(said.contains(reason), "{path}: {said}");
        }
        // An HTTP client may try a connection that breaks off once more.
        assert!(site.count() >= before + 2, "{path}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Site::new(|url| ok(&document(url))).await;
    let location = format!("{}/client.json", target.base);
    let site = Site::new(move |_| {
        format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
    })
    .await;
    let documents = documents(&[&site.base, &target.base]);
    let said = refusal(&documents, &format!("{}/client.json", site.base)).await;
    assert_eq!(said, "it answered 302 Found");
    assert_eq!((site.count(), target.count()), (1, 0));
}

#[tokio::test]
async fn a_private_address_is_not_asked() {
    let site = Site::new(|url| ok(&document(url))).await;
    let port = site.base.rsplit_once(':').unwrap().1;
    let documents = documents(&[]);
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "10.0.0.1",
        "169.254.169.254",
    ] {
        let said = refusal(&documents, &format!("https://{host}:{port}/client.json")).await;
        assert!(said.contains("not public"), "{host}: {said}");
    }
    let said = refusal(&documents, &format!("http://127.0.0.1:{port}/client.json")).await;
    assert!(said.contains("no https address"), "{said}");
    assert_eq!(site.count(), 0);
}

#[tokio::test]
async fn fetches_at_once_are_bounded() {
    let site = Site::slow(Duration::from_millis(500), |url| ok(&document(url))).await;
    let documents = Arc::new(site.documents());
    let find = |number: usize| {
        let (documents, url) = (Arc::clone(&documents), format!("{}/{number}", site.base));
        tokio::spawn(async move { documents.find(&url).await.map(|_| ()) })
    };
    let finds: Vec<_> = (0..MAX_FETCHES + 4).map(find).collect();
    let mut busy = 0;
    for found in finds {
        match found.await.unwrap() {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error, DocumentError::Busy);
                busy += 1;
            }
        }
    }
    assert_eq!((busy, site.count()), (4, MAX_FETCHES));
    find(MAX_FETCHES).await.unwrap().unwrap();
}

#[tokio::test]
async fn documents_in_memory_are_bounded() {
    let documents = documents(&[]);
    let metadata = ClientMetadata::read_document("u", document("u").as_bytes());
    let known = KnownDocument {
        metadata: Arc::new(metadata.unwrap()),
        kept_for: MAX_KEPT,
    };
    for number in 0..2 * MAX_DOCUMENTS {
        let url = format!("https://a.example.com/{number}");
        documents.known.insert(url, known.clone()).await;
    }
    documents.known.run_pending_tasks().await;
    assert!(documents.known.entry_count() <= MAX_DOCUMENTS);
    let ended = KnownDocument {
        kept_for: Duration::ZERO,
        ..known
    };
    documents.known.insert("ended".into(), ended).await;
    assert!(documents.known.get("ended").await.is_none());
}

#[test]
fn a_document_is_kept_as_its_server_says_within_bounds() {
    for (values, seconds) in [
        (&[][..], 300),
        (&["public"], 300),
        (&["max-age=600"], 600),
        (&["public, Max-Age=\"700\""], 700),
        (&["public", "max-age=800"], 800),
        (&["max-age=5"], 60),
        (&["max-age=0, must-revalidate"], 60),
        (&["max-age=900, no-store"], 60),
        (&["No-Cache"], 60),
        (&["max-age=99999999999"], 86_400),
        (&["max-age=x"], 300),
        (&["s-maxage=900"], 300),
    ] {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::CACHE_CONTROL, HeaderValue::from_static(value));
        }
        assert_eq!(
            kept_for(&headers),
            Duration::from_secs(seconds),
            "{values:?}"
        );
    }
}
