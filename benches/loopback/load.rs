//! The load: prepared requests over reused connections, from one thread that waits for all of them.
//!
//! The load shares a core with the upstream, so it has to cost less than a proxy: a request is one `write`, a response
//! mostly one `read` into a buffer for all connections. Rates need pauses shorter than the millisecond to which the
//! timers of runtimes round, so the thread waits in `epoll_pwait2`.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};

use crate::kind::{HOLD, Kind, PACE, SLOW, STREAM, chat};
use crate::message::{Response, head_len};
use crate::process::{Cpu, Part};

/// The time in which something has to happen.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// A gap between two pieces of a stream that counts as a stall.
const STALL_GAP: Duration = Duration::from_millis(10 * PACE.as_millis() as u64);
/// More bytes than one `read` finds, but for bodies.
const BUFFER_BYTES: usize = 64 << 10;

/// The result of one round.
#[derive(Clone, Debug)]
pub struct Round {
    /// Requests a second.
    pub per_second: f64,
    /// The CPU time of a call by thread, in microseconds.
    pub cpu_us: Cpu,
    /// The median, in milliseconds from the time at which a request was due.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
}

/// Sends as many requests as possible over this many connections.
pub fn closed(part: &Part, kind: Kind, connections: usize, time: Duration) -> Round {
    let mut load = Load::open(part, kind, connections);
    load.start_all();
    let warm = Instant::now() + time / 4;
    while Instant::now() < warm {
        load.turn();
    }
    let mut window = Window::open(part);
    let until = Instant::now() + time;
    while Instant::now() < until {
        window.took.extend(load.turn());
    }
    let round = window.close();
    load.drain();
    round
}

/// Sends this many requests over this many connections.
pub fn calls(part: &Part, kind: Kind, connections: usize, calls: usize) {
    let mut load = Load::open(part, kind, connections);
    load.start_all();
    let mut started = connections;
    while started < calls {
        started += load.turn().len();
    }
    load.drain();
}

/// Sends requests at a fixed rate over at most this many connections.
pub fn paced(part: &Part, kind: Kind, connections: usize, rate: f64, time: Duration) -> Round {
    let mut load = Load::open(part, kind, connections);
    let mut idle: VecDeque<usize> = (0..connections).collect();
    let pause = Duration::from_secs_f64(1.0 / rate);
    let warm = warm_up_calls(rate, time);
    let total = paced_calls(rate, time) as u32;
    let mut window = None;
    let started = Instant::now();
    for number in 0..total {
        let due = started + pause * number;
        while Instant::now() < due || idle.is_empty() {
            let until = (!idle.is_empty()).then_some(due);
            for ended in load.poll(until) {
                idle.push_back(ended.client);
                if let Some(Window { took, .. }) = &mut window {
                    took.push(ended.took);
                }
            }
        }
        if number == warm {
            window = Some(Window::open(part));
        }
        load.start(idle.pop_front().unwrap(), due);
    }
    let round = window.unwrap().close();
    load.drain();
    round
}

/// Sends calls of 1,000 sessions at a fixed rate over at most this many connections, until it is over, and counts them.
pub fn sessions(
    part: &Part,
    connections: usize,
    rate: f64,
    (is_over, sent): (&AtomicBool, &AtomicUsize),
) {
    const HEADER: &[u8] = b"x-session-id: s-000000\r\n";
    const DIGITS: usize = 6;
    let mut request = part.request(Kind::Json);
    let at = memmem::find(&request, b"\r\n").unwrap() + 2;
    request.splice(at..at, HEADER.iter().copied());
    let end = at + HEADER.len() - 2;
    let mut load = Load::with_request(part, request, Kind::Json.status(), connections);
    let mut idle: VecDeque<usize> = (0..connections).collect();
    let pause = Duration::from_secs_f64(1.0 / rate);
    let mut due = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        while Instant::now() < due || idle.is_empty() {
            let until = (!idle.is_empty()).then_some(due);
            idle.extend(load.poll(until).iter().map(|ended| ended.client));
        }
        let number = sent.fetch_add(1, Ordering::Relaxed) % 1_000;
        let number = format!("{number:0DIGITS$}");
        load.request[end - DIGITS..end].copy_from_slice(number.as_bytes());
        load.start(idle.pop_front().unwrap(), due);
        due += pause;
    }
    load.drain();
}

/// Returns how many requests [`paced`] sends, with its warm-up.
pub fn paced_calls(rate: f64, time: Duration) -> u64 {
    u64::from(warm_up_calls(rate, time) + (time.as_secs_f64() * rate) as u32)
}

fn warm_up_calls(rate: f64, time: Duration) -> u32 {
    (time.as_secs_f64() / 4.0 * rate) as u32
}

/// What is measured between the warm-up and the end.
struct Window<'a> {
    part: &'a Part,
    cpu: Cpu,
    started: Instant,
    took: Vec<Duration>,
}

impl<'a> Window<'a> {
    fn open(part: &'a Part) -> Self {
        Self {
            part,
            cpu: part.cpu_us(),
            started: Instant::now(),
            took: Vec::with_capacity(1 << 20),
        }
    }

    fn close(mut self) -> Round {
        let (seconds, cpu) = (self.started.elapsed().as_secs_f64(), self.part.cpu_us());
        self.took.sort_unstable();
        let (took, count) = (&self.took, self.took.len());
        let ms = |percent: usize| took[count * percent / 100].as_secs_f64() * 1e3;
        Round {
            per_second: count as f64 / seconds,
            cpu_us: cpu.per_call_since(&self.cpu, count),
            p50_ms: ms(50),
            p99_ms: ms(99),
        }
    }
}

struct Load {
    epoll: OwnedFd,
    clients: Vec<Client>,
    request: Vec<u8>,
    status: &'static [u8],
    buffer: Vec<u8>,
    running: usize,
}

struct Client {
    stream: TcpStream,
    /// The bytes of the request that are sent.
    sent: usize,
    /// Whether the socket was full.
    is_cut: bool,
    due: Instant,
    response: Response,
}

/// A response that has ended.
struct Ended {
    client: usize,
    took: Duration,
}

impl Load {
    fn open(part: &Part, kind: Kind, connections: usize) -> Self {
        Self::with_request(part, part.request(kind), kind.status(), connections)
    }

    fn with_request(
        part: &Part,
        request: Vec<u8>,
        status: &'static [u8],
        connections: usize,
    ) -> Self {
        // Without it the kernel joins wake-ups of this thread within 50 microseconds.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).unwrap();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let connect = |number| {
            let stream = TcpStream::connect(&part.address).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_nonblocking(true).unwrap();
            epoll::add(&epoll, &stream, EventData::new_u64(number), EventFlags::IN).unwrap();
            Client {
                stream,
                sent: 0,
                is_cut: false,
                due: Instant::now(),
                response: Response::default(),
            }
        };
        let clients = (0..connections as u64).map(connect).collect();
        Self {
            epoll,
            clients,
            request,
            status,
            buffer: vec![0; BUFFER_BYTES],
            running: 0,
        }
    }

    fn start_all(&mut self) {
        for client in 0..self.clients.len() {
            self.start(client, Instant::now());
        }
    }

    /// Starts a request of an idle client.
    fn start(&mut self, client: usize, due: Instant) {
        self.running += 1;
        let it = &mut self.clients[client];
        (it.sent, it.due) = (0, due);
        self.send(client);
    }

    /// Sends the rest of a request, as far as the socket takes it.
    fn send(&mut self, client: usize) {
        let it = &mut self.clients[client];
        while it.sent < self.request.len() {
            match it.stream.write(&self.request[it.sent..]) {
                Ok(bytes) => it.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("sending: {error}"),
            }
        }
        let is_cut = it.sent < self.request.len();
        if is_cut != it.is_cut {
            it.is_cut = is_cut;
            let out = if is_cut {
                EventFlags::OUT
            } else {
                EventFlags::empty()
            };
            let data = EventData::new_u64(client as u64);
            epoll::modify(&self.epoll, &it.stream, data, EventFlags::IN | out).unwrap();
        }
    }

    /// Waits until something happens or the time has come. Returns the responses that have ended.
    fn poll(&mut self, until: Option<Instant>) -> Vec<Ended> {
        let pieces = self.poll_pieces(until).into_iter();
        let ended = pieces.filter(|(_, is_end)| *is_end);
        let ended = ended.map(|(client, _)| Ended {
            client,
            took: self.clients[client].due.elapsed(),
        });
        ended.collect()
    }

    /// Waits likewise. Returns the clients that got a piece, and whether it was the last.
    fn poll_pieces(&mut self, until: Option<Instant>) -> Vec<(usize, bool)> {
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = timeout.unwrap_or(STALL_TIMEOUT).try_into().unwrap();
        let mut events: Vec<Event> = Vec::with_capacity(64);
        epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)).unwrap();
        assert!(until.is_some() || !events.is_empty(), "nothing happens");
        let mut pieces = Vec::new();
        for event in events {
            let (flags, client) = (event.flags, event.data.u64() as usize);
            if flags.contains(EventFlags::OUT) {
                self.send(client);
            }
            if flags.contains(EventFlags::IN) {
                let is_end = self.receive(client);
                self.running -= usize::from(is_end);
                pieces.push((client, is_end));
            }
        }
        pieces
    }

    fn receive(&mut self, client: usize) -> bool {
        let it = &mut self.clients[client];
        let bytes = it.stream.read(&mut self.buffer).expect("receiving");
        assert!(bytes > 0, "the connection closed");
        it.response.feed(&self.buffer[..bytes], self.status)
    }

    /// Waits for responses, starts the next requests, and returns how long the ended ones took.
    fn turn(&mut self) -> Vec<Duration> {
        let ended = self.poll(None);
        for ended in &ended {
            self.start(ended.client, Instant::now());
        }
        ended.into_iter().map(|ended| ended.took).collect()
    }

    /// Waits for all responses.
    fn drain(&mut self) {
        while self.running > 0 {
            self.poll(None);
        }
    }
}

/// Opens this many streams and waits for the first content of each. They stay open until they are dropped.
pub fn hold(part: &Part, count: usize) -> Vec<TcpStream> {
    let body = format!(
        r#"{{"model":"own",{STREAM},{HOLD},"messages":[{{"role":"user","content":"Hi"}}]}}"#
    );
    let request = chat(&part.key, &body);
    let mut buffer = vec![0; 4096];
    let open = |_| {
        let mut stream = TcpStream::connect(&part.address).unwrap();
        stream.write_all(&request).unwrap();
        let count = stream.read(&mut buffer).unwrap();
        assert!(buffer[..count].starts_with(b"HTTP/1.1 200"));
        stream
    };
    (0..count).map(open).collect()
}

/// What streams saw of their pieces.
pub struct SlowStreams {
    /// The 99th percentile of the time to the first piece.
    pub first_p99_ms: f64,
    /// The longest time between two pieces.
    pub largest_gap_ms: f64,
    /// The number of streams with a gap of more than [`STALL_GAP`].
    pub stalled: usize,
}

/// Reads this many streams at once, whose upstream sends a piece each [`PACE`].
pub fn slow_streams(part: &Part, count: usize) -> SlowStreams {
    let body = format!(
        r#"{{"model":"own",{STREAM},{SLOW},"messages":[{{"role":"user","content":"Hi"}}]}}"#
    );
    let mut load = Load::with_request(part, chat(&part.key, &body), b"200", count);
    load.start_all();
    let mut last: Vec<Option<Instant>> = vec![None; count];
    let mut gaps = vec![Duration::ZERO; count];
    let mut first = Vec::with_capacity(count);
    while load.running > 0 {
        for (client, _) in load.poll_pieces(None) {
            let now = Instant::now();
            match last[client].replace(now) {
                Some(before) => gaps[client] = gaps[client].max(now - before),
                None => first.push(now - load.clients[client].due),
            }
        }
    }
    first.sort_unstable();
    SlowStreams {
        first_p99_ms: first[count * 99 / 100].as_secs_f64() * 1e3,
        largest_gap_ms: gaps.iter().max().unwrap().as_secs_f64() * 1e3,
        stalled: gaps.iter().filter(|gap| **gap > STALL_GAP).count(),
    }
}

/// Sends requests with one mistyped key after the other, over this many connections, until it is over. Returns how many were
/// refused.
pub fn key_flood(part: &Part, connections: usize, is_over: &AtomicBool) -> usize {
    // Without a body, because a refused one is not read, and its connection closes.
    let named = chat(&part.key, "");
    let key = memmem::find(&named, part.key.as_bytes()).unwrap();
    let end = key + part.key.len();
    let mut load = Load::with_request(part, named, b"401", connections);
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) || load.running > 0 {
        let idle: Vec<usize> = match count {
            0 => (0..connections).collect(),
            _ => load.poll(None).iter().map(|ended| ended.client).collect(),
        };
        for client in idle {
            if !is_over.load(Ordering::Relaxed) {
                count += 1;
                let number = format!("{count:010}");
                load.request[end - number.len()..end].copy_from_slice(number.as_bytes());
                load.start(client, Instant::now());
            }
        }
    }
    count
}

/// How long a turn of a session took.
#[derive(Clone, Copy)]
pub struct Turn {
    /// The time to the first piece of the answer.
    pub first: Duration,
    /// The time to its end.
    pub whole: Duration,
}

/// Sends a chat on a connection of its own and reads its stream.
pub fn turn(part: &Part, body: &str) -> Turn {
    let mut load = Load::with_request(part, chat(&part.key, body), b"200", 1);
    load.start_all();
    let mut first = None;
    loop {
        for (client, is_end) in load.poll_pieces(None) {
            let took = load.clients[client].due.elapsed();
            let first = *first.get_or_insert(took);
            if is_end {
                return Turn { first, whole: took };
            }
        }
    }
}

/// Returns the body of a response.
pub fn body(part: &Part, kind: Kind) -> String {
    let mut stream = TcpStream::connect(&part.address).unwrap();
    stream.write_all(&part.request(kind)).unwrap();
    let (mut text, mut buffer) = (Vec::new(), vec![0; BUFFER_BYTES]);
    let mut response = Response::default();
    loop {
        let bytes = stream.read(&mut buffer).unwrap();
        text.extend_from_slice(&buffer[..bytes]);
        if response.feed(&buffer[..bytes], kind.status()) {
            let head = head_len(&text).unwrap();
            return String::from_utf8(text.split_off(head)).unwrap();
        }
    }
}

/// Sends a body of 20 MB and returns its size.
pub fn large(part: &Part, model: &str) -> usize {
    let text = "c".repeat(20_000_000);
    let body =
        format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let request = chat(&part.key, &body);
    let mut load = Load::with_request(part, request, Kind::Json.status(), 1);
    load.start_all();
    load.drain();
    body.len()
}
