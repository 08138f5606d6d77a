#![allow(clippy::unwrap_used, reason = "tests")]
use bytes::Bytes;
use filters::decisions::Project;
use filters::decisions::protocol::{Document, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::config::{Source, load};

fn config(settings: &str) -> DecisionsConfig {
    let name = "weirgate.toml".into();
    let text = format!("[decisions]\n{settings}");
    let loaded = load(&Source::Text { name, text }, []).unwrap();
    loaded.config.decisions.unwrap()
}

fn head() -> EventHead {
    let text = Bytes::from_static(include_bytes!("../../../conf/flags.json"));
    let project = Project::parse(&text, Document.rules()).unwrap();
    EventHead::new(&project, Document.event_client())
}

/// A backend that answers one request, and tells its body.
async fn take(backend: &TcpListener) -> String {
    let (mut stream, _) = backend.accept().await.unwrap();
    let mut received = Vec::new();
    while !is_complete(&received) {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.unwrap();
        assert!(length > 0, "the request is complete");
        received.extend_from_slice(piece.get(..length).unwrap());
    }
    answer(&mut stream).await;
    String::from_utf8(received).unwrap()
}

async fn answer(stream: &mut TcpStream) {
    let reply = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    stream.write_all(reply).await.unwrap();
}

fn is_complete(received: &[u8]) -> bool {
    let text = String::from_utf8_lossy(received);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        (name.eq_ignore_ascii_case("content-length")).then(|| value.parse::<usize>().unwrap())
    });
    length.is_some_and(|length| body.len() >= length)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_events_go_on_to_the_backend_of_the_next_configuration() {
    _ = rustls::crypto::ring::default_provider().install_default();
    let metrics = Arc::new(Metrics::new().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let backend = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // The first backend takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let queue = |listener: &TcpListener, previous: Option<&EventQueue>| {
        let address = listener.local_addr().unwrap();
        let url = format!("event_url = \"http://{address}/e\"\nevent_batch = 1\n");
        EventQueue::new(&config(&url), folder.path(), &metrics, previous).unwrap()
    };
    let (old, dispatcher) = queue(&silent, None);
    let (_stop, asked) = watch::channel(false);
    tokio::spawn(dispatcher.unwrap().run(asked));
    old.send(head(), br#"{"visitor_id":"first"}"#.to_vec());
    let (_held, _) = silent.accept().await.unwrap();
    let (new, dispatcher) = queue(&backend, Some(&old));
    assert!(dispatcher.is_none());
    // A request of the old generation still queues its event.
    old.send(head(), br#"{"visitor_id":"second"}"#.to_vec());
    new.take_over();
    for visitor in ["first", "second"] {
        let sent = take(&backend).await;
        assert!(sent.contains(visitor), "{sent}");
    }
    assert!(new.is_on());
}

#[tokio::test]
async fn a_smaller_queue_counts_what_the_larger_one_has_queued() {
    _ = rustls::crypto::ring::default_provider().install_default();
    let metrics = Arc::new(Metrics::new().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let queue = |settings: &str, previous: Option<&EventQueue>| {
        EventQueue::new(&config(settings), folder.path(), &metrics, previous).unwrap()
    };
    let url = "event_url = \"http://127.0.0.1:1/e\"\n";
    let full = || metrics.events.with_label_values(&["full"]).get();
    let (old, mut dispatcher) = queue(&format!("{url}event_queue = 3\n"), None);
    (0..2).for_each(|_| old.send(head(), b"{}".to_vec()));
    let (smaller, _) = queue(&format!("{url}event_queue = 2\n"), Some(&old));
    smaller.send(head(), b"{}".to_vec());
    assert_eq!(full(), 1);
    old.send(head(), b"{}".to_vec());
    assert_eq!(full(), 1, "it has room for one more");
    let (off, none) = queue("event_url = \"\"\n", Some(&smaller));
    assert!(!off.is_on() && none.is_none());
    off.send(head(), b"{}".to_vec());
    let (on, none) = queue(url, Some(&off));
    assert!(on.is_on() && none.is_none(), "the dispatcher goes on");
    let items = &mut dispatcher.as_mut().unwrap().items;
    let queued = std::iter::from_fn(|| items.try_recv().ok()).count();
    assert_eq!(queued, 3);
    on.send(head(), b"{}".to_vec());
    assert!(items.try_recv().is_ok());
}
