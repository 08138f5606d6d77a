//! The load: raw HTTP/1.1 over reused connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process::Part;

/// The kind of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// 1 KB up, 1 KB of JSON down.
    Json,
    /// The same from a model without a price: no money is reserved, and no response waits for the disk.
    Free,
    /// A stream of 200 events.
    Stream,
    /// A decision of a flag.
    Decide,
    /// A query that is counted and forwarded: 1 KB up, 1 KB down.
    Pass,
    /// The same, answered from the cache.
    Hit,
    /// The same, over its limit.
    Refused,
}

impl Kind {
    /// Returns the status of its responses.
    fn status(self) -> u16 {
        if self == Self::Refused { 429 } else { 200 }
    }
}

/// The result of one round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Requests a second.
    pub per_second: f64,
    /// CPU time of the proxy for one request.
    pub cpu_us: f64,
}

fn wire(part: &Part, body: &str) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        part.key,
        body.len(),
    )
    .into_bytes()
}

fn request(part: &Part, kind: Kind) -> Vec<u8> {
    if kind == Kind::Decide {
        let body = r#"{"userId":"user-1","userAttributes":{"version":"2.1","country":"FR"}}"#;
        return format!(
            "POST /v1/decide?keys=dark_mode HTTP/1.1\r\nHost: bench\r\nX-Platform-SDK-Key: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        )
        .into_bytes();
    }
    let text = "b".repeat(900);
    // A request with an application's key is counted and forwarded; the response to a public key may be cached.
    let credential = match kind {
        Kind::Pass => Some(("", "authorization: Basic cGFzczp4\r\n")),
        Kind::Refused => Some(("", "authorization: Basic cmVmdXNlZDp4\r\n")),
        Kind::Hit => Some(("?auth=public", "")),
        Kind::Json | Kind::Free | Kind::Stream | Kind::Decide => None,
    };
    if let Some((query, header)) = credential {
        let body = format!(
            r#"{{"query":"query A($b: String) {{ a(b: $b) {{ c d }} }}","variables":{{"b":"{text}"}}}}"#
        );
        return format!(
            "POST /content/v2{query} HTTP/1.1\r\nHost: bench\r\n{header}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        )
        .into_bytes();
    }
    let stream = if kind == Kind::Stream {
        "\"stream\":true,"
    } else {
        ""
    };
    let model = if kind == Kind::Free { "free" } else { "own" };
    wire(
        part,
        &format!(
            r#"{{"model":"{model}",{stream}"messages":[{{"role":"user","content":"{text}"}}]}}"#
        ),
    )
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

/// Sends as many requests as possible over this many connections.
pub fn closed(part: &Part, kind: Kind, connections: usize, time: Duration) -> Round {
    let wire = Arc::new(request(part, kind));
    let (done, stop) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..connections {
            let (wire, done, stop) = (Arc::clone(&wire), Arc::clone(&done), Arc::clone(&stop));
            let mut stream = TcpStream::connect(&part.address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            tasks.push(tokio::spawn(async move {
                let mut buffer = Vec::with_capacity(128 << 10);
                while !stop.load(Ordering::Relaxed) {
                    stream.write_all(&wire).await.unwrap();
                    read(&mut stream, &mut buffer, kind.status()).await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        tokio::time::sleep(time / 4).await;
        let (count, cpu, started) = (done.load(Ordering::Relaxed), part.cpu_us(), Instant::now());
        tokio::time::sleep(time).await;
        let count = (done.load(Ordering::Relaxed) - count) as f64;
        let (cpu, seconds) = (part.cpu_us() - cpu, started.elapsed().as_secs_f64());
        stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.unwrap();
        }
        Round {
            per_second: count / seconds,
            cpu_us: cpu / count,
        }
    })
}

/// Latencies and CPU time at a fixed rate.
#[derive(Debug)]
pub struct Paced {
    /// The median, in milliseconds from the time at which a request was due.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// CPU time of the proxy for one request.
    pub cpu_us: f64,
}

/// Sends requests at a fixed rate.
pub fn paced(part: &Part, connections: usize, rate: f64, time: Duration) -> Paced {
    let wire = Arc::new(request(part, Kind::Json));
    let pause = Duration::from_secs_f64(connections as f64 / rate);
    let cpu = part.cpu_us();
    let mut all = block_on(async {
        let started = tokio::time::Instant::now();
        let mut tasks = Vec::new();
        for number in 0..connections {
            let wire = Arc::clone(&wire);
            let mut stream = TcpStream::connect(&part.address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            tasks.push(tokio::spawn(async move {
                let mut due = started + pause.mul_f64(number as f64 / connections as f64);
                let (mut buffer, mut took) = (Vec::with_capacity(8192), Vec::new());
                while due < started + time {
                    tokio::time::sleep_until(due).await;
                    stream.write_all(&wire).await.unwrap();
                    read(&mut stream, &mut buffer, 200).await;
                    took.push(due.elapsed().as_secs_f64() * 1e3);
                    due += pause;
                }
                took
            }));
        }
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.unwrap());
        }
        all
    });
    all.sort_by(f64::total_cmp);
    Paced {
        p50_ms: all[all.len() / 2],
        p99_ms: all[all.len() * 99 / 100],
        cpu_us: (part.cpu_us() - cpu) / all.len() as f64,
    }
}

/// Opens this many streams and waits for the first content of each. They stay open until they are dropped.
pub fn hold(part: &Part, count: usize) -> (tokio::runtime::Runtime, Vec<TcpStream>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let body = r#"{"model":"own","stream":true,"user":"hold","messages":[{"role":"user","content":"Hi"}]}"#;
    let wire = wire(part, body);
    let streams = runtime.block_on(async {
        let mut streams = Vec::new();
        let mut buffer = vec![0; 4096];
        for _ in 0..count {
            let mut stream = TcpStream::connect(&part.address).await.unwrap();
            stream.write_all(&wire).await.unwrap();
            assert!(stream.read(&mut buffer).await.unwrap() > 0);
            streams.push(stream);
        }
        streams
    });
    (runtime, streams)
}

/// Returns the body of a response.
pub fn body(part: &Part, kind: Kind) -> String {
    let wire = request(part, kind);
    block_on(async {
        let mut stream = TcpStream::connect(&part.address).await.unwrap();
        stream.write_all(&wire).await.unwrap();
        let mut buffer = Vec::with_capacity(8192);
        read(&mut stream, &mut buffer, 200).await;
        let text = String::from_utf8(buffer).unwrap();
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    })
}

/// Sends a body of 20 MB and returns its size.
pub fn large(part: &Part, model: &str) -> usize {
    let text = "c".repeat(20_000_000);
    let body =
        format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let wire = wire(part, &body);
    block_on(async {
        let mut stream = TcpStream::connect(&part.address).await.unwrap();
        stream.write_all(&wire).await.unwrap();
        let mut buffer = Vec::with_capacity(8192);
        read(&mut stream, &mut buffer, 200).await;
        assert!(
            buffer.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&buffer)
        );
    });
    body.len()
}

/// Reads one response of this status.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>, status: u16) {
    buffer.clear();
    let mut whole = None;
    loop {
        assert!(
            stream.read_buf(buffer).await.unwrap() > 0,
            "the connection closed"
        );
        let expected = match whole {
            Some(expected) => expected,
            None => {
                let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else {
                    continue;
                };
                let head = String::from_utf8_lossy(&buffer[..at]).to_ascii_lowercase();
                let status_line = format!("http/1.1 {status}");
                assert!(head.starts_with(&status_line), "{head}");
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length:"));
                let expected =
                    length.map(|length| at + 4 + length.trim().parse::<usize>().unwrap());
                whole = Some(expected);
                expected
            }
        };
        let is_whole = match expected {
            Some(bytes) => buffer.len() >= bytes,
            None => buffer.ends_with(b"\r\n0\r\n\r\n"),
        };
        if is_whole {
            return;
        }
    }
}
