//! Jobs of processes that are killed: real processes, real signals.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::MODELS;
use crate::ledger::money::{Place, rows};
use crate::support::ask::Ask;
use crate::support::client;
use crate::support::every;
use crate::support::own_postgres::Postgres;
use crate::support::script::Reply;
use crate::support::server::Server;
use crate::support::upstream::Upstream;

/// A provider that remembers nothing: a job is there when its number of polls is reached, and every fifth fails.
fn studio() -> Upstream {
    let (orders, polls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    Upstream::answering(move |request| {
        let job = |id: &str, status: &str| {
            Reply::json(200, json!({"id": id, "status": status}).to_string())
        };
        match (&*request.method, request.path.strip_prefix("/v1/videos/")) {
            ("POST", _) => {
                let number = orders.fetch_add(1, Ordering::SeqCst);
                job(&format!("up_{number}"), "queued")
            }
            (_, Some(id)) => {
                let number: usize = id.trim_start_matches("up_").parse().unwrap();
                let poll = polls.fetch_add(1, Ordering::SeqCst);
                let status = match (poll % 3, number % 5) {
                    (0, _) => "in_progress",
                    (_, 4) => "failed",
                    _ => "completed",
                };
                job(id, status)
            }
            _ => Reply::json(404, "{}"),
        }
    })
}

/// Orders videos until the server is gone; returns the ids of the jobs that were answered.
fn order_until_gone(address: SocketAddr, key: &str, name: &str) -> Vec<String> {
    use std::io::{Read, Write};
    let mut jobs = Vec::new();
    for number in 0..40 {
        let body = r#"{"model":"first/film","prompt":"a cat","seconds":4}"#;
        let ask = Ask::post("/v1/videos", body).key(key);
        let ask = ask.header("x-request-id", &format!("{name}-{number}"));
        let ask = ask.header("connection", "close");
        let Ok(mut stream) = std::net::TcpStream::connect(address) else {
            break;
        };
        let mut text = String::new();
        _ = stream.write_all(&ask.wire());
        _ = stream.read_to_string(&mut text);
        let json = text.split_once("\r\n\r\n").and_then(|(head, body)| {
            let is_whole = head.starts_with("HTTP/1.1 200") && body.ends_with('}');
            is_whole.then(|| serde_json::from_str::<Value>(body).ok())?
        });
        let Some(job) = json else { break };
        jobs.push(job["id"].as_str().unwrap().to_owned());
    }
    jobs
}

/// All jobs of the key, over the pages of the list.
fn list(address: SocketAddr, key: &str) -> Vec<Value> {
    let mut jobs: Vec<Value> = Vec::new();
    loop {
        let after = jobs.last().map_or(String::new(), |last| {
            format!("&after={}", last["id"].as_str().unwrap())
        });
        let path = format!("/v1/videos?limit=100{after}");
        let page = client::ask(address, &Ask::get(&path).key(key)).json();
        jobs.extend(page["data"].as_array().unwrap().iter().cloned());
        if page["has_more"] == false {
            return jobs;
        }
    }
}

fn kill_at_random_moments(store_url: &str, processes: usize) {
    let upstream = studio();
    let place = Place::new(store_url, &upstream, MODELS);
    let key = place.fund("100000");
    let mut answered = Vec::new();
    for moment in 0..4 {
        let servers: Vec<Server> = (0..processes)
            .map(|_| Server::start(place.path()))
            .collect();
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (address, key) = (servers[n % processes].address, key.clone());
                let name = format!("{moment}-{n}");
                std::thread::spawn(move || order_until_gone(address, &key, &name))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(fastrand::u64(500..2500)));
        servers.into_iter().for_each(Server::kill);
        for thread in threads {
            answered.extend(thread.join().unwrap());
        }
    }
    let server = Server::start(place.path());
    let is_over = |job: &Value| matches!(job["status"].as_str(), Some("completed" | "failed"));
    let looks = every(Duration::from_millis(200), Duration::from_secs(90));
    let mut lists = looks.map(|_| list(server.address, &key));
    let ended = lists.find(|jobs| jobs.iter().all(is_over));
    let jobs = ended.expect("jobs are not ended");
    server.stop();
    let known: HashSet<&str> = jobs.iter().map(|job| job["id"].as_str().unwrap()).collect();
    assert_eq!(known.len(), jobs.len(), "a job is listed twice");
    let lost = answered.iter().find(|id| !known.contains(&***id));
    assert_eq!(lost, None, "answered, but not in the store");
    assert!(!answered.is_empty());
    let rows = rows(&place);
    let completed = jobs
        .iter()
        .filter(|job| job["status"] == "completed")
        .count();
    assert!(completed > 0 && completed < jobs.len());
    assert_eq!(
        rows.len(),
        completed,
        "each video is paid once, and no other"
    );
    let calls: HashSet<&str> = rows.iter().map(|(id, _)| &**id).collect();
    assert_eq!(calls.len(), rows.len());
    let credit = place.credit();
    assert_eq!(
        credit.used.units(),
        completed as i128 * 400_000_000_000_000_000
    );
    assert_eq!(credit.reserved.to_string(), "0");
}

#[test]
fn a_job_of_a_killed_process_is_paid_once_or_not_at_all() {
    kill_at_random_moments("", 1);
}

#[test]
fn a_job_of_several_processes_is_paid_once_or_not_at_all() {
    let postgres = Postgres::start();
    kill_at_random_moments(&postgres.url(), 3);
}
