//! Kills and restarts: what is on disk arrives, once.

use super::*;
use crate::support::process::Process;
use crate::support::server::Server;

const SANDBOX: &str = r#"{"model":"sandbox-chat","messages":[{"role":"user","content":"Hi"}]}"#;

/// The section for a table at this address, whose inserts have the names of their batches.
fn section(url: &str) -> String {
    format!(
        "[log_export]\nkind = \"clickhouse\"\nurl = \"{url}\"\nbatch_interval_s = 1\ntimeout_s = 600\n"
    )
}

/// Calls that were made before a kill, whose first batch hangs at the destination.
fn killed(storage: &Upstream, calls: usize) -> (Process, Vec<String>) {
    let mut process = Process::start(&section(&storage.url()));
    let (address, key) = (process.address, process.key().to_owned());
    let mut asked = call(address, &key, SANDBOX, calls);
    storage.wait_requests(1);
    asked.extend(call(address, &key, SANDBOX, calls));
    let state = process.folder.path().join("var");
    until("all lines on disk", || spooled(&state) == 2 * calls);
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    asked.sort_unstable();
    (process, asked)
}

/// The destination has taken the first batch, and could not say so: the insert comes again, by the same bytes and with the
/// token by which ClickHouse knows it.
#[test]
fn a_kill_between_the_write_and_the_send_loses_nothing_and_doubles_nothing() {
    let storage = Upstream::sequence([Reply::hang(), is_ok()]);
    let (process, asked) = killed(&storage, 5);
    let state = process.folder.path().join("var");
    let newest = segments(&state).into_iter().max().unwrap();
    let mut torn = std::fs::OpenOptions::new()
        .append(true)
        .open(newest)
        .unwrap();
    std::io::Write::write_all(&mut torn, b"{\"time\":\"20").unwrap();
    let server = Server::start(process.folder.path());
    until("nothing waits", || segments(&state).is_empty());
    let puts = storage.requests();
    assert_eq!(ids(&objects(&puts)), asked);
    assert!(puts[0].path.contains("insert_deduplication_token="));
    let again = puts[1..].iter().find(|put| put.path == puts[0].path);
    assert_eq!(again.unwrap().body, puts[0].body);
    drop(server);
}

/// A stop writes what waits to disk, and sends it while the destination answers.
#[test]
fn a_stop_sends_what_waits() {
    let storage = Upstream::always(is_ok());
    let more = section(&storage.url()).replace("batch_interval_s = 1", "batch_interval_s = 3600");
    let mut process = Process::start(&more);
    let asked = call(process.address, process.key(), SANDBOX, 5);
    process.terminate();
    process.wait(crate::support::WAIT_TIMEOUT).expect("an end");
    assert_eq!(ids(&objects(&storage.requests())), asked);
    assert!(segments(&process.folder.path().join("var")).is_empty());
}
