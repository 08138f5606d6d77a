//! Processes that are killed, and disks that lose power or bits: real processes, real signals.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use filters::ledger::journal::{HEADER_BYTES, SegmentId, Watermark, read_segment};
use serde_json::json;

use crate::ledger::money::{Place, TOKENS, rows};
use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk};
use crate::support::ask::Ask;
use crate::support::client;
use crate::support::own_postgres::Postgres;
use crate::support::script::Reply;
use crate::support::server::Server;
use crate::support::upstream::Upstream;
use crate::support::{WAIT_TIMEOUT, until};

/// A stream of a fifth of a second that costs 0.0035.
fn slow() -> Reply {
    let mut reply =
        Reply::stream().event(&chunk(json!({"role": "assistant", "content": ""}), None));
    for _ in 0..10 {
        let piece = chunk(json!({"content": "hello "}), None);
        reply = reply.event(&piece).pause(Duration::from_millis(20));
    }
    reply
        .event(&chunk(json!({}), Some("stop")))
        .event(
            &json!({"id": "c", "object": "chat.completion.chunk", "created": 5, "model": "m",
                    "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100,
                    "total_tokens": 1100}})
            .to_string(),
        )
        .event("[DONE]")
        .end()
}

/// A whole reply that costs as much.
fn whole() -> Reply {
    let body = json!({
        "id": "c", "object": "chat.completion", "created": 5, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
    });
    Reply::json(200, body.to_string())
}

/// Requests streams and whole replies in turn until the server is unavailable; returns the ids of the complete ones and
/// the number of those that were cut off. `complete` counts the complete ones.
fn ask_until_gone(
    address: SocketAddr,
    key: &str,
    name: &str,
    complete: &AtomicUsize,
) -> (Vec<String>, usize) {
    ask_some(address, key, name, usize::MAX, complete)
}

/// The same with so many calls at most.
fn ask_some(
    address: SocketAddr,
    key: &str,
    name: &str,
    count: usize,
    complete: &AtomicUsize,
) -> (Vec<String>, usize) {
    let mut answered = Vec::new();
    for n in 0..count {
        let id = format!("{name}-{n}");
        let body = if n % 2 == 0 { STREAM } else { PLAIN };
        let ask = Ask::post("/v1/chat/completions", body)
            .key(key)
            .header("x-request-id", &id);
        let ask = ask.header("Connection", "close");
        let Ok(mut stream) = TcpStream::connect(address) else {
            return (answered, 0);
        };
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        let mut text = Vec::new();
        let sent = stream.write_all(&ask.wire());
        _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        let is_complete = match body {
            STREAM => text.contains("data: [DONE]"),
            _ => text.starts_with("HTTP/1.1 200") && text.ends_with('}'),
        };
        if is_complete {
            answered.push(id);
            complete.fetch_add(1, Ordering::Relaxed);
        } else {
            return (answered, usize::from(sent.is_ok()));
        }
    }
    (answered, 0)
}

/// The number of kills; the environment may set a higher one.
fn moments() -> u64 {
    let more = std::env::var("WEIRGATE_KILLS").ok();
    more.map_or(5, |count| count.parse().unwrap())
}

/// Overwrites what a power cut can take: all bytes of the journal that the disk had not confirmed.
fn cut_power(place: &Place) {
    for process in paths(&place.path().join("journal")) {
        let owner = process.file_name().unwrap().to_str().unwrap();
        let owner = u128::from_str_radix(owner, 16).unwrap().to_be_bytes();
        let mut forced: HashMap<u32, Watermark> = HashMap::new();
        let mut segments = Vec::new();
        for path in paths(&process) {
            let Some((lane, number)) = path.file_stem().unwrap().to_str().unwrap().split_once('-')
            else {
                continue;
            };
            let id = SegmentId {
                owner,
                lane: lane.parse().unwrap(),
                number: number.parse().unwrap(),
            };
            let bytes = std::fs::read(&path).unwrap();
            let watermark = forced.entry(id.lane).or_default();
            *watermark = read_segment(&bytes, &id).forced.max(*watermark);
            segments.push((path, id, bytes));
        }
        for (path, id, mut bytes) in segments {
            let forced = forced[&id.lane];
            let from = match id.number.cmp(&forced.segment) {
                std::cmp::Ordering::Less => continue,
                std::cmp::Ordering::Equal => forced.offset as usize,
                std::cmp::Ordering::Greater => 0,
            };
            bytes[from..].fill(0);
            std::fs::write(&path, &bytes).unwrap();
        }
    }
}

fn paths(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_process_killed_at_any_moment_loses_nothing_and_charges_nothing_twice() {
    kill_at_random_moments("process", "", |_| {});
}

#[test]
fn a_process_killed_at_any_moment_loses_nothing_with_postgresql_either() {
    let postgres = Postgres::start();
    kill_at_random_moments("process", &postgres.url(), |_| {});
}

#[test]
fn postgresql_killed_at_any_moment_loses_nothing_and_nothing_is_charged_twice() {
    const CLIENTS: usize = 40;
    let mut postgres = Postgres::start();
    let upstream = Upstream::answering(|request| {
        let is_stream = request.json()["stream"] == true;
        if is_stream { slow() } else { whole() }
    });
    let place = Place::new(&postgres.url(), &upstream, TOKENS);
    let key = place.fund("100000");
    let server = Server::start(place.path());
    let (is_over, whole) = (AtomicBool::new(false), AtomicUsize::new(0));
    let answered: Vec<String> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let (key, is_over, whole, address) = (&key, &is_over, &whole, server.address);
                let small = std::thread::Builder::new().stack_size(256 << 10);
                let ask = move || {
                    let mut answered = Vec::new();
                    for round in 0.. {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let name = format!("{n}-{round}");
                        answered.extend(ask_some(address, key, &name, 2, whole).0);
                    }
                    answered
                };
                small.spawn_scoped(scope, ask).unwrap()
            })
            .collect();
        for _ in 0..moments() {
            let before = whole.load(Ordering::Relaxed);
            until("calls are served", || {
                whole.load(Ordering::Relaxed) > before
            });
            std::thread::sleep(Duration::from_millis(fastrand::u64(50..1000)));
            postgres.kill();
            std::thread::sleep(Duration::from_millis(fastrand::u64(0..1000)));
            postgres.start_again();
        }
        is_over.store(true, Ordering::Relaxed);
        let answered = asking.into_iter().map(|thread| thread.join().unwrap());
        answered.flatten().collect()
    });
    server.stop();
    Server::start(place.path()).stop();
    let rows = rows(&place);
    let ids: std::collections::HashSet<&str> = rows.iter().map(|(id, _)| &**id).collect();
    assert_eq!(ids.len(), rows.len(), "nothing twice");
    let missing = answered.iter().find(|id| !ids.contains(&***id));
    assert_eq!(missing, None, "answered, but not in the ledger");
    assert_eq!(rows.len(), answered.len(), "no call was cut off");
    let ledger: i64 = rows.iter().map(|(_, cost)| cost).sum();
    assert_eq!(ledger, answered.len() as i64 * 3_500_000);
    let credit = place.credit();
    let spent = credit.granted.minus(credit.balance());
    assert_eq!(spent.units(), i128::from(ledger) * 1_000_000_000);
    assert!(!place.path().join("refused_calls.jsonl").exists());
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_if_charges_wait_for_the_disk() {
    kill_at_random_moments("power", "", cut_power);
}

/// Kills one process after another while clients ask for streams and whole replies. `lose` is what else happens to the
/// files.
fn kill_at_random_moments(durability: &str, store_url: &str, lose: impl Fn(&Place)) {
    const CALLS: usize = 200;
    let upstream = Upstream::answering(|request| {
        let is_stream = request.json()["stream"] == true;
        if is_stream { slow() } else { whole() }
    });
    let mut place = Place::new(store_url, &upstream, TOKENS);
    place.set(
        "[store]",
        &format!("[store]\ndurability = \"{durability}\""),
    );
    let key = place.fund("100000");
    let (mut answered, mut cut) = (Vec::new(), 0);
    for moment in 0..moments() {
        let server = Server::start(place.path());
        let (address, [begun, whole]) = (server.address, [0, 0].map(AtomicUsize::new));
        std::thread::scope(|scope| {
            let asking: Vec<_> = (0..CALLS)
                .map(|n| {
                    let (key, begun, whole) = (&key, &begun, &whole);
                    let name = format!("{moment}-{n}");
                    let small = std::thread::Builder::new().stack_size(256 << 10);
                    let ask = move || {
                        begun.fetch_add(1, Ordering::Relaxed);
                        ask_until_gone(address, key, &name, whole)
                    };
                    small.spawn_scoped(scope, ask).unwrap()
                })
                .collect();
            until("all ask", || begun.load(Ordering::Relaxed) == CALLS);
            // Every second process serves a stream before it is killed, even on a slow machine.
            let least = usize::from(moment % 2 == 0);
            until("one is answered", || whole.load(Ordering::Relaxed) >= least);
            std::thread::sleep(Duration::from_millis(fastrand::u64(50..1500)));
            server.kill();
            for thread in asking {
                let (more, ended) = thread.join().unwrap();
                answered.extend(more);
                cut += ended;
            }
        });
        lose(&place);
    }
    // The next start recovers what the last process left.
    Server::start(place.path()).stop();
    let rows = rows(&place);
    let credit = place.credit();
    let ids: std::collections::HashSet<&str> = rows.iter().map(|(id, _)| &**id).collect();
    assert_eq!(ids.len(), rows.len(), "nothing twice");
    let missing: Vec<_> = answered.iter().filter(|id| !ids.contains(&***id)).collect();
    assert!(
        missing.is_empty(),
        "answered, but not in the ledger: {:?} and {} more",
        missing.first(),
        missing.len()
    );
    let cost = |of: &String| rows.iter().find(|(id, _)| id == of).map(|(_, cost)| *cost);
    let wrong: Vec<_> = answered
        .iter()
        .map(|id| (id, cost(id)))
        .filter(|(_, cost)| *cost != Some(3_500_000))
        .collect();
    assert!(
        wrong.is_empty(),
        "charged otherwise than answered: {:?}, {} of {}",
        wrong.first(),
        wrong.len(),
        answered.len()
    );
    assert!(
        rows.len() <= answered.len() + cut,
        "{} {} {cut}",
        rows.len(),
        answered.len()
    );
    let ledger: i64 = rows.iter().map(|(_, cost)| cost).sum();
    let (least, most) = (answered.len() as i64, (answered.len() + cut) as i64);
    assert!(least * 3_500_000 <= ledger && ledger <= most * 3_500_000);
    let spent = credit.granted.minus(credit.balance());
    assert_eq!(
        spent.units(),
        i128::from(ledger) * 1_000_000_000,
        "balance + ledger = credit"
    );
    assert_eq!(credit.reserved.to_string(), "0");
    assert!(cut > 0 && !answered.is_empty(), "{} {cut}", answered.len());
}

#[test]
fn a_journal_with_a_flipped_bit_is_named_at_the_start() {
    let upstream = Upstream::always(slow());
    let place = Place::new("", &upstream, TOKENS);
    let key = place.fund("1");
    let server = Server::start(place.path());
    let ask = Ask::post("/v1/chat/completions", STREAM).key(&key);
    assert_eq!(client::ask(server.address, &ask).status(), 200);
    let process = paths(&place.path().join("journal")).remove(0);
    let is_used = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes.iter().skip(HEADER_BYTES).any(|byte| *byte != 0)
    };
    let file = paths(&process).into_iter().find(is_used).unwrap();
    // A frame without a record says how far the journal is forced.
    let empty = [0xa5, b'W', b'G', 2, 0, 0, 0, 0];
    until("the journal is forced", || {
        let bytes = std::fs::read(&file).unwrap();
        bytes.windows(empty.len()).any(|eight| eight == empty)
    });
    server.kill();
    let mut bytes = std::fs::read(&file).unwrap();
    let at = HEADER_BYTES + 30;
    bytes[at] ^= 4;
    std::fs::write(&file, &bytes).unwrap();
    let said = Server::launch(place.path())
        .err()
        .expect("it does not start");
    assert!(
        said.contains("-00000001.wal") && said.contains(&format!("offset {HEADER_BYTES}")),
        "{said}"
    );
    // After the repair it starts, and the call is charged.
    bytes[at] ^= 4;
    std::fs::write(&file, &bytes).unwrap();
    let _server = Server::start(place.path());
    place.used("0.0035");
}

#[test]
fn a_journal_of_another_version_stops_the_start_before_the_store_is_touched() {
    let upstream = Upstream::always(slow());
    let place = Place::new("", &upstream, TOKENS);
    let process = place.path().join("journal").join("07".repeat(16));
    std::fs::create_dir_all(&process).unwrap();
    let file = process.join("00000001.wal");
    std::fs::write(&file, b"WGLEDG01").unwrap();
    let said = Server::launch(place.path())
        .err()
        .expect("it does not start");
    assert!(
        said.contains("00000001.wal") && said.contains("start that version once"),
        "{said}"
    );
    // A store that this version had migrated would keep the other one from starting.
    assert!(!place.path().join("weirgate.db").exists());
    std::fs::remove_file(&file).unwrap();
    Server::start(place.path()).stop();
}
