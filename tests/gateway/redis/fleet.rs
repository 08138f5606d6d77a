//! Processes with one store and one Redis: what begins in one counts in the others, and whatever Redis does, no call fails
//! or waits for long.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::ledger::money::Place;
use crate::models::fronts::chat_completions::reply;
use crate::support::ask::Ask;
use crate::support::client::{Answer, ask};
use crate::support::own_postgres::Postgres;
use crate::support::process::weirgate;
use crate::support::redis::Redis;
use crate::support::redis_proxy::RedisProxy;
use crate::support::script::Reply;
use crate::support::server::Server;
use crate::support::until;
use crate::support::upstream::Upstream;

const MODELS: &str = r#"
[[models]]
id = "chat"
[[models.providers]]
provider = "first"
name = "chat-at-first"
input_price = "1"
output_price = "1"
[[models.providers]]
provider = "second"
name = "chat-at-second"
input_price = "2"
output_price = "2"
"#;
/// How much longer a request may take because of Redis.
const MOST: Duration = Duration::from_millis(50);
/// For how long a scenario is repeated that the machine, busy with other things, has disturbed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Processes of one store, whose project caches answers and whose requests per minute are limited. The first provider,
/// the cheaper one, fails when it is told to.
pub struct Fleet {
    servers: Vec<Server>,
    places: Vec<Place>,
    pub key: String,
    pub first: Upstream,
    second: Upstream,
    /// Whether the first provider fails.
    pub fails: Arc<AtomicBool>,
    logs: TempDir,
    postgres: Postgres,
}

impl Fleet {
    /// Starts a process for each Redis. Without a URL it has none.
    pub fn start(redis: &[&str]) -> Fleet {
        let fails = Arc::new(AtomicBool::new(false));
        let is_out = Arc::clone(&fails);
        let first = Upstream::answering(move |request| {
            let body = String::from_utf8_lossy(&request.body);
            match is_out.load(Ordering::SeqCst) || body.contains("without-first") {
                true => Reply::json(500, "{}"),
                false => reply(),
            }
        });
        let mut fleet = Fleet {
            servers: Vec::new(),
            places: Vec::new(),
            key: String::new(),
            second: Upstream::always(reply()),
            first,
            fails,
            logs: tempfile::tempdir().unwrap(),
            postgres: Postgres::start(),
        };
        redis.iter().for_each(|url| fleet.place(url));
        fleet.key = fleet.places[0].fund("1000");
        fleet.run(&[
            "project",
            "update",
            "--org",
            "acme",
            "default",
            "--cache-ttl",
            "3600",
        ]);
        (0..redis.len()).for_each(|at| fleet.serve(at));
        fleet
    }

    /// Starts one more process; returns its number.
    pub fn add(&mut self, redis: &str) -> usize {
        self.place(redis);
        let number = self.servers.len();
        self.serve(number);
        number
    }

    fn place(&mut self, redis: &str) {
        let mut place = Place::new(&self.postgres.url(), &self.first, MODELS);
        let provider = |upstream: &Upstream| {
            let url = upstream.url();
            format!("[providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"")
        };
        place.set(&provider(&self.first), &provider(&self.second));
        let shared = match redis {
            "" => String::new(),
            url => format!("[shared]\nredis = \"{url}\"\n"),
        };
        let more =
            "[routing]\nexploration = 0.0\n[limits]\nrequests_per_minute = { chat = 100000 }\n";
        place.set("[listen]", &format!("{more}{shared}[listen]"));
        self.places.push(place);
    }

    fn serve(&mut self, number: usize) {
        let path = self.places[number].path();
        let server = Server::start_logging(path, &[], &self.log(number));
        self.servers.push(server);
    }

    fn log(&self, number: usize) -> PathBuf {
        self.logs.path().join(number.to_string())
    }

    /// Runs a command.
    fn run(&self, words: &[&str]) {
        let done = weirgate(self.places[0].path(), words);
        assert!(done.status.success(), "{words:?}: {done:?}");
    }

    /// Sends a request to a process.
    fn ask(&self, process: usize, model: &str, session: Option<&str>, content: &str) -> Answer {
        let body = json!({"model": model, "messages": [{"role": "user", "content": content}]});
        let request = Ask::post("/v1/chat/completions", body.to_string()).key(&self.key);
        let request = match session {
            Some(session) => request.header("x-session-id", session),
            None => request,
        };
        ask(self.servers[process].address, &request)
    }

    /// The provider that answers a request, and asserts that it is answered.
    pub fn provider(&self, process: usize, content: &str) -> String {
        provider(&self.ask(process, "chat", None, content))
    }

    /// Lets the first provider answer so often that one failure does not make it a bad one.
    pub fn warm(&self, process: usize) {
        for at in 0..30 {
            let content = format!("warm {process} {at}");
            assert_eq!(self.provider(process, &content), "first");
        }
    }

    /// A number of a process's metrics; 0: there is no such line.
    pub fn metric(&self, process: usize, name: &str) -> u64 {
        let text = ask(self.servers[process].admin, &Ask::get("/metrics"));
        let mut lines = text.text().lines();
        let found = lines.find_map(|line| line.strip_prefix(&format!("weirgate_{name} ")));
        found.map_or(0, |count| count.parse().unwrap())
    }

    /// How long each request of a process waited for Redis, once so many are logged.
    fn waits_ms(&self, process: usize, count: usize) -> Vec<f64> {
        let mut waits = Vec::new();
        until("the lines of all requests", || {
            let log = std::fs::read_to_string(self.log(process)).unwrap();
            let lines = log
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            let calls = lines.filter(|line: &Value| line["route"] == "chat_completions");
            let waited = |line: Value| line["shared_wait_ms"].as_f64().unwrap_or_default();
            waits = calls.map(waited).collect();
            waits.len() >= count
        });
        waits
    }
}

fn provider(answer: &Answer) -> String {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let provider = answer.json()["metadata"]["used_provider"].clone();
    provider.as_str().unwrap().to_owned()
}

fn keys(redis: &Redis, pattern: &str) -> usize {
    let mut keys = redis::cmd("KEYS");
    let keys: Vec<String> = keys.arg(pattern).query(&mut redis.connect()).unwrap();
    keys.len()
}

#[test]
fn a_prompt_put_an_answer_cached_and_a_session_begun_in_one_process_count_in_the_other() {
    const PROMPT: &str = "@prompt/hi";
    let redis = Redis::start();
    let fleet = Fleet::start(&[&redis.url(), &redis.url()]);
    (0..2).for_each(|process| fleet.warm(process));
    let file = fleet.places[0].path().join("hi.json");
    let prompt = json!({"model": "chat", "messages": [{"role": "system", "content": "Be kind."}]});
    std::fs::write(&file, prompt.to_string()).unwrap();
    let file = file.to_str().unwrap();
    fleet.run(&[
        "prompt",
        "put",
        "--org",
        "acme",
        "hi",
        file,
        "--label",
        "production",
    ]);
    for process in [0, 1] {
        until("the prompt", || {
            fleet.ask(process, PROMPT, None, "Hi").status() == 200
        });
    }
    // On a busy machine Redis may take longer than a request waits.
    let is_shared = (0..20).any(|at| {
        let (session, content) = (format!("shared {at}"), format!("without-first {at}"));
        let stored = ["weirgate:session:*", "weirgate:reply:*"].map(|it| (it, keys(&redis, it)));
        let begun = fleet.ask(0, PROMPT, Some(&session), &content);
        assert_eq!(provider(&begun), "second");
        assert_eq!(begun.json()["metadata"]["prompt"]["version"], 1);
        for (pattern, before) in stored {
            until(pattern, || keys(&redis, pattern) > before);
        }
        let next = fleet.ask(1, PROMPT, Some(&session), &format!("go on {at}"));
        let calls = fleet.second.requests().len();
        let replayed = fleet.ask(1, PROMPT, Some(&session), &content);
        assert_eq!(replayed.json()["choices"], begun.json()["choices"]);
        let is_hit = replayed.header("x-weirgate-cache") == Some("HIT");
        assert_eq!(is_hit, fleet.second.requests().len() == calls);
        // The provider's failures are not to be what another process avoids it for.
        for process in [0, 1] {
            fleet.provider(process, &format!("between {process} {at}"));
        }
        provider(&next) == "second" && is_hit
    });
    assert!(is_shared);
}

/// Requests to a process with Redis, each beside one to a process without it.
struct Race<'f> {
    fleet: &'f Fleet,
    sent: usize,
    times: [Vec<Duration>; 2],
}

impl Race<'_> {
    fn run(&mut self, count: usize) {
        for _ in 0..count {
            self.sent += 1;
            let content = format!("race {}", self.sent);
            for process in [0, 1] {
                let started = Instant::now();
                let answer = self.fleet.ask(process, "chat", Some(&content), &content);
                self.times[process].push(started.elapsed());
                assert_eq!(answer.status(), 200, "{}", answer.text());
            }
        }
    }

    /// Runs a scenario until neither any of its requests takes longer than it may, nor waits longer, as the process itself
    /// has measured. Returns the longest wait.
    fn hold(&mut self, what: &str, mut scenario: impl FnMut(&mut Self)) -> f64 {
        let mut said = Vec::new();
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            let before = self.fleet.waits_ms(0, 0).len();
            self.times = [Vec::new(), Vec::new()];
            scenario(self);
            let count = self.times[0].len();
            let waits = self.fleet.waits_ms(0, before + count).split_off(before);
            let longest_ms = waits.into_iter().fold(0.0, f64::max);
            let [with, without] = self.times.each_ref().map(|it| *it.iter().max().unwrap());
            if with <= without + MOST && longest_ms <= 1000.0 * MOST.as_secs_f64() {
                return longest_ms;
            }
            said.push((with, without, longest_ms));
        }
        panic!("{what}: {said:?}");
    }

    fn is_shared(&self) {
        until("Redis is there", || {
            self.fleet.metric(0, "limiter_degraded") == 0
        });
    }
}

#[test]
fn whatever_redis_does_no_call_fails_and_none_is_slower_than_fifty_milliseconds() {
    let mut redis = Redis::start();
    let proxy = RedisProxy::before(&redis);
    let fleet = Fleet::start(&[&proxy.url(), ""]);
    (0..2).for_each(|process| fleet.warm(process));
    let mut race = Race {
        fleet: &fleet,
        sent: 0,
        times: [Vec::new(), Vec::new()],
    };
    for delay_ms in [12, 35] {
        let longest_ms = race.hold("slow", |race| {
            race.is_shared();
            proxy.delay(delay_ms);
            race.run(10);
            proxy.pass();
        });
        // A quota, and a session beside a reply, were waited for.
        let least_ms = if delay_ms == 12 { 23.0 } else { 34.0 };
        assert!(longest_ms >= least_ms, "{longest_ms}");
    }
    race.hold("silent", |race| {
        for _ in 0..4 {
            race.is_shared();
            redis.pause();
            race.run(10);
            redis.resume();
        }
    });
    race.hold("garbage", |race| {
        for _ in 0..4 {
            race.is_shared();
            proxy.garble();
            race.run(10);
            proxy.pass();
        }
    });
    race.hold("killed", |race| {
        for _ in 0..4 {
            race.is_shared();
            redis.kill();
            race.run(10);
            redis.start_again();
        }
    });
    race.is_shared();
}
