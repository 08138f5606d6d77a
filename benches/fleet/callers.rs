//! The load: calls at a fixed rate, each with the key of one caller. Few callers make most of the calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::accounts::{self, Accounts};
use crate::kind::Kind;
use crate::message::Response;

/// The connections of the load, to all processes in turn.
const CONNECTIONS: usize = 48;
/// A call that takes longer is given up: its process may be frozen.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// What callers have seen.
#[derive(Default)]
pub struct Seen {
    pub answered: u64,
    /// Calls whose connection broke after they were sent, or that were given up.
    pub cut: u64,
    /// When calls were answered 503, because the store did not answer.
    refused: Vec<Instant>,
    took: Vec<Duration>,
}

impl Seen {
    /// How many calls were answered 503, and the time from the first to the last of them.
    pub fn refused(&self) -> (usize, Duration) {
        let (first, last) = (self.refused.iter().min(), self.refused.iter().max());
        let time = first.zip(last).map(|(first, last)| *last - *first);
        (self.refused.len(), time.unwrap_or_default())
    }

    pub fn percentile_ms(&self, percent: usize) -> f64 {
        let place = (self.took.len() * percent / 100).min(self.took.len() - 1);
        self.took[place].as_secs_f64() * 1e3
    }
}

pub struct Load {
    keys: usize,
    addresses: Arc<Mutex<Vec<String>>>,
    answered: AtomicU64,
    cut: AtomicU64,
}

impl Load {
    pub fn new(accounts: &Accounts, addresses: &Arc<Mutex<Vec<String>>>) -> Self {
        Self {
            keys: accounts.keys(),
            addresses: Arc::clone(addresses),
            answered: AtomicU64::new(0),
            cut: AtomicU64::new(0),
        }
    }

    /// Returns how many calls of all runs were answered and cut off.
    pub fn totals(&self) -> (u64, u64) {
        let [answered, cut] =
            [&self.answered, &self.cut].map(|count| count.load(Ordering::Relaxed));
        (answered, cut)
    }

    /// Calls at this rate for this time.
    pub async fn run(&self, rate: f64, time: Duration) -> Seen {
        let next = AtomicU64::new(0);
        let total = (rate * time.as_secs_f64()) as u64;
        let started = Instant::now();
        let caller = async |number: usize| {
            let mut seen = Seen::default();
            let mut connection = None;
            loop {
                let call = next.fetch_add(1, Ordering::Relaxed);
                if call >= total {
                    return seen;
                }
                let due = started + Duration::from_secs_f64(call as f64 / rate);
                let is_early = Instant::now() < due;
                tokio::time::sleep_until(due.into()).await;
                // The timer rounds to a millisecond, which is not the gateway's.
                let due = if is_early { Instant::now() } else { due };
                self.call(number, call, &mut connection, &mut seen, due)
                    .await;
            }
        };
        let callers = (0..CONNECTIONS).map(caller);
        let mut all = Seen::default();
        for seen in futures::future::join_all(callers).await {
            all.answered += seen.answered;
            all.cut += seen.cut;
            all.refused.extend(seen.refused);
            all.took.extend(seen.took);
        }
        all.took.sort_unstable();
        self.answered.fetch_add(all.answered, Ordering::Relaxed);
        self.cut.fetch_add(all.cut, Ordering::Relaxed);
        all
    }

    /// Calls once. A connection that breaks is opened anew, perhaps to the process that follows a killed one.
    async fn call(
        &self,
        number: usize,
        call: u64,
        connection: &mut Option<TcpStream>,
        seen: &mut Seen,
        due: Instant,
    ) {
        let key = accounts::text(self.choose(call));
        let request = Kind::Json.request(key.reveal());
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => self.connect(number).await,
        };
        match tokio::time::timeout(CALL_TIMEOUT, exchange(&mut stream, &request)).await {
            Ok(Some(is_answered)) => {
                if is_answered {
                    seen.answered += 1;
                    seen.took.push(due.elapsed());
                } else {
                    seen.refused.push(Instant::now());
                }
                *connection = Some(stream);
            }
            _ => seen.cut += 1,
        }
    }

    async fn connect(&self, number: usize) -> TcpStream {
        loop {
            let address = {
                let addresses = self.addresses.lock().unwrap();
                addresses[number % addresses.len()].clone()
            };
            if let Ok(stream) = TcpStream::connect(address).await {
                stream.set_nodelay(true).unwrap();
                return stream;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns the number of a key. The n-th key is chosen in proportion to 1 ÷ n, so that with 100,000 keys the first
    /// thousand make 60 % of the calls.
    fn choose(&self, call: u64) -> usize {
        // A fixed multiplicative sequence, so that runs are alike.
        let random = call.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
        let part = random as f64 / (1_u64 << 53) as f64;
        let rank = ((self.keys as f64 + 1.0).ln() * part).exp() as usize - 1;
        // The keys of one organization are neighbours; the frequent ones are of different organizations.
        (rank * 7919) % self.keys
    }
}

/// Sends a request and reads its response. Returns whether it is an answer and not a 503; `None` if the connection breaks.
async fn exchange(stream: &mut TcpStream, request: &[u8]) -> Option<bool> {
    stream.write_all(request).await.ok()?;
    let (mut response, mut buffer) = (Response::default(), [0; 8 << 10]);
    let mut status = Kind::Json.status();
    loop {
        let bytes = stream.read(&mut buffer).await.ok()?;
        if bytes == 0 {
            return None;
        }
        if buffer.starts_with(b"HTTP/1.1 503") {
            status = b"503";
        }
        if response.feed(&buffer[..bytes], status) {
            return Some(status != b"503");
        }
    }
}
