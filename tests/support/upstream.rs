//! A server on its own loopback address that plays scripts and records requests.
//!
//! It speaks HTTP/1.1 over plain TCP without a library, so that it can break the protocol. It runs on its own thread and
//! stops when it is dropped; a test reads the record through blocking calls.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::net::TcpSocket;
use tokio::sync::watch;

use super::WAIT_TIMEOUT;
use super::loopback::own_address;
use super::script::Reply;

#[path = "connection.rs"]
mod connection;

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// The method as sent.
    pub method: String,
    /// The request target as sent: path and query.
    pub path: String,
    /// Every header in order, names as sent.
    pub headers: Vec<(String, String)>,
    /// The body, chunked framing removed; empty when the upstream replies early.
    pub body: Vec<u8>,
    /// Whether the whole body came (always true when it is not waited for).
    pub is_complete: bool,
    /// When its head was complete.
    pub at: Instant,
    /// The number of its connection, counted from 0 in order of arrival.
    pub connection: usize,
}

impl Received {
    /// The first header of that name, case ignored.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; fails the test when it is not.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the recorded request's body is JSON")
    }
}

/// The reply to the n-th request.
type Script = Box<dyn Fn(usize, &Received) -> Reply + Send + Sync>;

/// How the server treats a connection.
enum Plan {
    /// Read each request whole, then play the script's reply to it.
    Answer(Script),
    /// Read each head, play this at once, never read a body, close afterwards.
    Early(Reply),
    /// Play this without reading anything, close afterwards.
    Greet(Reply),
}

#[derive(Default)]
struct Record {
    requests: Vec<Received>,
    /// When the peer closed each connection.
    closed: Vec<Option<Instant>>,
}

#[derive(Default)]
struct Shared {
    record: Mutex<Record>,
    changed: Condvar,
}

impl Shared {
    /// The record, which a test that gave up waiting leaves as it was.
    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connected(&self) -> usize {
        let mut record = self.lock();
        record.closed.push(None);
        self.changed.notify_all();
        record.closed.len() - 1
    }

    fn received(&self, request: Received) -> usize {
        let mut record = self.lock();
        record.requests.push(request);
        self.changed.notify_all();
        record.requests.len() - 1
    }

    fn peer_closed(&self, connection: usize) {
        self.lock().closed[connection].get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    fn wait<T>(&self, what: &str, mut ready: impl FnMut(&Record) -> Option<T>) -> T {
        let give_up = Instant::now() + WAIT_TIMEOUT;
        let mut record = self.lock();
        loop {
            if let Some(value) = ready(&record) {
                return value;
            }
            let left = give_up.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain for {what}");
            record = self.changed.wait_timeout(record, left).unwrap().0;
        }
    }
}

/// How the server is stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    No,
    Close,
    Reset,
}

/// A scripted server; dropping it closes its port and every connection.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Upstream {
    /// The same reply to every request.
    pub fn always(reply: Reply) -> Upstream {
        Upstream::answering(move |_| reply.clone())
    }

    /// The n-th reply to the n-th request (over all connections); the last one repeats.
    pub fn sequence(replies: impl IntoIterator<Item = Reply>) -> Upstream {
        let replies: Vec<Reply> = replies.into_iter().collect();
        assert!(!replies.is_empty(), "a sequence has at least one reply");
        let last = replies.len() - 1;
        start(Plan::Answer(Box::new(move |number, _| {
            replies[number.min(last)].clone()
        })))
    }

    /// A reply computed from each request.
    pub fn answering(script: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Upstream {
        start(Plan::Answer(Box::new(move |_, request| script(request))))
    }

    /// The reply is sent as soon as the head is read; the body is never read and the connection is
    /// closed after it (with a reset if bytes are unread, as by a real server that refuses early). Add
    /// [`Reply::and_hang`] to leave it open. It does not notice when the peer closes.
    pub fn early(reply: Reply) -> Upstream {
        start(Plan::Early(reply))
    }

    /// The reply is sent as soon as a client connects, before any byte is read. With
    /// `Reply::empty().and_reset()` every connection is reset, with `Reply::hang()` none is served.
    pub fn greeting(reply: Reply) -> Upstream {
        start(Plan::Greet(reply))
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://ADDRESS`, the base of a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.lock().requests.clone()
    }

    /// Waits for the request of this index and returns it.
    pub fn request(&self, index: usize) -> Received {
        self.shared
            .wait("a request", |record| record.requests.get(index).cloned())
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.lock().closed.len()
    }

    /// Blocks until this many requests have arrived.
    pub fn wait_requests(&self, count: usize) -> Vec<Received> {
        let enough =
            |record: &Record| (record.requests.len() >= count).then(|| record.requests.clone());
        self.shared.wait("requests", enough)
    }

    /// Blocks until this many connections were made.
    pub fn wait_connections(&self, count: usize) {
        self.shared.wait("connections", |record| {
            (record.closed.len() >= count).then_some(())
        });
    }

    /// Blocks until the peer closes that connection (see [`Received::connection`]); returns the time.
    pub fn wait_closed(&self, connection: usize) -> Instant {
        let closed = |record: &Record| record.closed.get(connection).copied().flatten();
        self.shared.wait("the peer to close", closed)
    }

    /// Whether the peer has closed that connection.
    pub fn is_closed(&self, connection: usize) -> bool {
        self.shared
            .lock()
            .closed
            .get(connection)
            .is_some_and(Option::is_some)
    }

    /// Kills the server: the port closes, every connection is reset.
    pub fn kill(mut self) {
        self.stop(Stop::Reset);
    }

    fn stop(&mut self, how: Stop) {
        self.stop.send_replace(how);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop(Stop::Close);
        }
    }
}

/// A loopback port that refuses connections. No other test gets its address, so it refuses them for good.
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    /// Takes a free port: bound, never listened on.
    pub fn take() -> ClosedPort {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket
            .bind(SocketAddr::from((own_address(), 0)))
            .expect("a free loopback port");
        ClosedPort(socket)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("a bound address")
    }

    /// `http://ADDRESS`, the base of a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }
}

fn start(plan: Plan) -> Upstream {
    super::watchdog::watch_this_test();
    let listener = TcpListener::bind((own_address(), 0)).expect("a free loopback port");
    listener
        .set_nonblocking(true)
        .expect("a nonblocking listener");
    let address = listener.local_addr().expect("a bound address");
    let shared = Arc::new(Shared::default());
    let (stop, stopped) = watch::channel(Stop::No);
    let (for_thread, plan) = (shared.clone(), Arc::new(plan));
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime for the scripted upstream");
        runtime.block_on(connection::accept(listener, plan, for_thread, stopped));
    });
    Upstream {
        address,
        shared,
        stop,
        thread: Some(thread),
    }
}
