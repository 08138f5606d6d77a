//! Orders that the store is slow to take, or does not take: what the client is told is what there is.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};
use tokio::sync::oneshot::{self, Sender};

use super::{MODELS, PINNED, studio, there};
use crate::ledger::money::Place;
use crate::support::ask::Ask;
use crate::support::client::{Answer, ask};
use crate::support::own_postgres::Postgres;
use crate::support::script::Reply;
use crate::support::server::Server;
use crate::support::upstream::Upstream;
use crate::support::{stays, until};

/// A gateway whose store is PostgreSQL, and the studio of its provider.
struct Orders {
    studio: Upstream,
    server: Server,
    key: String,
    place: Place,
    postgres: Postgres,
}

impl Orders {
    fn new() -> Orders {
        let studio = studio(|_| there(), |_| Reply::json(404, "{}"));
        let postgres = Postgres::start();
        let place = Place::new(&postgres.url(), &studio, MODELS);
        let key = place.fund("1");
        Orders {
            server: Server::start(place.path()),
            studio,
            key,
            place,
            postgres,
        }
    }

    fn order(&self) -> Answer {
        ask(
            self.server.address,
            &Ask::post("/v1/videos", PINNED).key(&self.key),
        )
    }

    fn jobs(&self) -> Vec<Value> {
        let listed = ask(self.server.address, &Ask::get("/v1/videos").key(&self.key));
        listed.json()["data"].as_array().unwrap().clone()
    }

    /// Runs SQL in a transaction of its own that stays open for so long, or until it is told.
    fn run(&self, sql: &'static str, open: Duration) -> (Sender<()>, JoinHandle<()>) {
        let (url, (begun, has_begun)) = (self.postgres.url(), std::sync::mpsc::channel());
        let (over, is_over) = oneshot::channel();
        let running = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let mut connection = PgConnection::connect(&url).await.unwrap();
                let mut change = connection.begin().await.unwrap();
                change.execute(sql).await.unwrap();
                begun.send(()).unwrap();
                _ = tokio::time::timeout(open, is_over).await;
                change.commit().await.unwrap();
            });
        });
        has_begun.recv().unwrap();
        (over, running)
    }

    /// How many jobs the provider was told to forget.
    fn forgotten(&self) -> usize {
        let requests = self.studio.requests();
        requests.iter().filter(|it| it.method == "DELETE").count()
    }
}

fn assert_refused(answer: &Answer) {
    assert_eq!(answer.status(), 503, "{}", answer.text());
}

const LOCK: &str = "LOCK TABLE video_jobs IN ACCESS EXCLUSIVE MODE";

#[test]
fn an_order_that_the_store_refuses_is_a_503_and_costs_nothing() {
    let orders = Orders::new();
    let none = "ALTER TABLE video_jobs ADD CONSTRAINT none CHECK (id = '') NOT VALID";
    orders.run(none, Duration::ZERO).1.join().unwrap();
    assert_refused(&orders.order());
    until("the provider forgets the job", || orders.forgotten() == 1);
    assert!(orders.jobs().is_empty());
    orders.server.stop();
    let credit = orders.place.used("0");
    assert_eq!(credit.reserved.to_string(), "0");
}

#[test]
fn an_order_waits_for_a_slow_store_and_is_refused_only_if_there_is_no_job() {
    let orders = Orders::new();
    // A lock is waited for two seconds.
    let (_over, locked) = orders.run(LOCK, Duration::from_millis(1_400));
    let started = Instant::now();
    let answer = orders.order();
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert!(started.elapsed() > Duration::from_secs(1));
    locked.join().unwrap();
    until("the job ends", || orders.jobs()[0]["status"] == "completed");
    let (over, locked) = orders.run(LOCK, Duration::from_secs(10));
    assert_refused(&orders.order());
    over.send(()).unwrap();
    locked.join().unwrap();
    until("the provider forgets the job", || orders.forgotten() == 1);
    // It is not asked for, either: open jobs are looked at twice a second.
    let asked = orders.studio.requests().len();
    let is_over = || orders.studio.requests().len() == asked;
    stays("it is not asked for", Duration::from_millis(1_200), is_over);
    let jobs = orders.jobs();
    let open = |job: &Value| job["status"] == "queued" || job["status"] == "completed";
    let open: Vec<&Value> = jobs.iter().filter(|job| open(job)).collect();
    assert_eq!(open.len(), 1, "{jobs:?}");
    assert_eq!(open[0]["id"], json!(answer.json()["id"]));
    orders.server.stop();
    let credit = orders.place.used("0.4");
    assert_eq!(credit.reserved.to_string(), "0");
}
