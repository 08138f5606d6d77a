//! Three providers: the first answers always, the other two fail for a while, again and again, in every way.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::message::{content_length, head_len};

/// How long a provider answers, and how long it then fails.
const UP: Duration = Duration::from_secs(11);
const DOWN: Duration = Duration::from_secs(7);
/// How far the second provider's times are behind the first's.
const SHIFT: Duration = Duration::from_secs(5);

/// The ways to fail, one after the other.
const FAULTS: [Fault; 5] = [
    Fault::Unavailable,
    Fault::Reset,
    Fault::Throttled,
    Fault::Cut,
    Fault::Nonsense,
];

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// 503.
    Unavailable,
    /// The connection closes without a reply.
    Reset,
    /// 429.
    Throttled,
    /// The body ends before its length.
    Cut,
    /// 200 with a body that is no JSON.
    Nonsense,
}

/// The providers, which run on a thread of this process.
pub struct Providers {
    pub addresses: Vec<String>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    attempts: AtomicU64,
    faults: [AtomicU64; FAULTS.len()],
}

impl Providers {
    /// Starts them.
    pub fn start() -> Self {
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        let (bound, addresses) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async {
                let started = Instant::now();
                for number in 0..3 {
                    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                    bound
                        .send(listener.local_addr().unwrap().to_string())
                        .unwrap();
                    let provider = Provider {
                        number,
                        started,
                        counts: Arc::clone(&shared),
                        reply: reply(),
                    };
                    tokio::task::spawn_local(accept(listener, Rc::new(provider)));
                }
                std::future::pending::<()>().await;
            });
        });
        Self {
            addresses: addresses.iter().take(3).collect(),
            counts,
        }
    }

    /// Returns how many requests have come.
    pub fn attempts(&self) -> u64 {
        self.counts.attempts.load(Ordering::Relaxed)
    }

    /// Returns how many requests met each fault.
    pub fn faults(&self) -> String {
        let mut text = String::new();
        for (fault, count) in FAULTS.iter().zip(&self.counts.faults) {
            write!(text, "{fault:?} {} ", count.load(Ordering::Relaxed)).unwrap();
        }
        text
    }
}

struct Provider {
    number: u32,
    started: Instant,
    counts: Arc<Counts>,
    reply: Vec<u8>,
}

impl Provider {
    /// Returns the index of the fault that this provider has now.
    fn fault(&self) -> Option<usize> {
        let shift = SHIFT * self.number.checked_sub(1)?;
        let since = self.started.elapsed() + shift;
        let cycle = UP + DOWN;
        let turn = (since.as_millis() / cycle.as_millis()) as usize;
        let is_down = since.as_millis() % cycle.as_millis() >= UP.as_millis();
        is_down.then_some(turn % FAULTS.len())
    }
}

async fn accept(listener: TcpListener, provider: Rc<Provider>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::task::spawn_local(serve(stream, Rc::clone(&provider)));
    }
}

/// Serves one connection until it ends.
async fn serve(mut stream: TcpStream, provider: Rc<Provider>) -> Option<()> {
    let mut buffer = Vec::with_capacity(8 << 10);
    loop {
        buffer.clear();
        let head = loop {
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
            if let Some(head) = head_len(&buffer) {
                break head;
            }
        };
        let length = head + content_length(&buffer[..head]).unwrap_or(0);
        while buffer.len() < length {
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
        }
        let counts = &provider.counts;
        counts.attempts.fetch_add(1, Ordering::Relaxed);
        let fault = provider.fault();
        if let Some(fault) = fault {
            counts.faults[fault].fetch_add(1, Ordering::Relaxed);
        }
        match fault.map(|fault| FAULTS[fault]) {
            None => stream.write_all(&provider.reply).await.ok()?,
            Some(Fault::Reset) => return None,
            Some(Fault::Unavailable) => stream
                .write_all(&refusal("503 Service Unavailable"))
                .await
                .ok()?,
            Some(Fault::Throttled) => stream
                .write_all(&refusal("429 Too Many Requests"))
                .await
                .ok()?,
            Some(Fault::Cut) => {
                stream
                    .write_all(&provider.reply[..provider.reply.len() - 100])
                    .await
                    .ok()?;
                return None;
            }
            Some(Fault::Nonsense) => stream
                .write_all(&whole("200 OK", "<html></html>"))
                .await
                .ok()?,
        }
    }
}

fn reply() -> Vec<u8> {
    let text = "a".repeat(700);
    let body = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":9,"completion_tokens":100,"total_tokens":109}}}}"#
    );
    whole("200 OK", &body)
}

fn refusal(status: &str) -> Vec<u8> {
    whole(
        status,
        r#"{"error":{"message":"not now","type":"server_error"}}"#,
    )
}

fn whole(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}
