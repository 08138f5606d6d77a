//! The gateway behind nginx, HAProxy and Caddy, as `examples/` configures them.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::models::fronts::chat_completions::{STREAM, chunk, reply, usage};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Client, End};
use crate::support::loopback::own_address;
use crate::support::script::{Gate, Reply};
use crate::support::upstream::{Received, Upstream};
use crate::support::web_server::{HOST, Kind, WebServer};

/// Longer than the minute after which each of the servers gives up, unless it is told otherwise.
const SILENCE: Duration = Duration::from_secs(90);
/// What a wait of that time may take more on a busy machine.
const SPARE: Duration = Duration::from_secs(30);
const BODY_BYTES: usize = 20_000_000;
const SLOW: &str = r#"{"model":"chat","messages":[{"role":"user","content":"slow"}]}"#;

/// The proxies that the examples name are loopback's first address. Nothing comes from the gateway itself in a silence.
const SETTINGS: &str = "[listen]\nclient_ip_header = \"x-forwarded-for\"\ntrusted_proxies = [\"127.0.0.1/32\"]\n[routing]\nidle_timeout_s = 120\nkeepalive_s = 600\n";

/// A web server, the gateway behind it, and its provider.
struct Chain {
    server: WebServer,
    gateway: Gateway,
    upstream: Upstream,
    /// The provider waits here between the first event of a stream and the second.
    gate: Gate,
}

impl Chain {
    fn start(kind: Kind) -> Chain {
        let gate = Gate::default();
        let stream = Reply::stream()
            .event(&chunk(json!({"role": "assistant", "content": "one"}), None))
            .wait(&gate)
            .event(&chunk(json!({"content": "two"}), None))
            .pause(SILENCE)
            .event(&chunk(json!({"content": "three"}), Some("stop")))
            .event(&usage())
            .event("[DONE]")
            .end();
        let upstream = Upstream::answering(move |received: &Received| {
            let is_slow = received.body.windows(4).any(|part| part == b"slow");
            match received.json()["stream"].as_bool() {
                Some(true) => stream.clone(),
                _ if is_slow => reply().before(SILENCE),
                _ => reply(),
            }
        });
        let gateway = Gateway::with(&upstream.url(), &upstream.url(), SETTINGS);
        let server = WebServer::start(kind, (gateway.address(), gateway.admin()));
        Chain {
            server,
            gateway,
            upstream,
            gate,
        }
    }

    fn request(ask: Ask) -> Ask {
        ask.without("Host").header("Host", HOST)
    }

    fn chat(&self, body: impl AsRef<[u8]>) -> Ask {
        Self::request(self.gateway.chat_ask(body))
    }

    fn connect(&self) -> Client {
        Client::connect(self.server.address).patient(SILENCE + SPARE)
    }

    fn tells_the_clients_address_on_a_connection_that_stays_open(&self) {
        let local = own_address();
        let mut client = Client::connect_from(local, self.server.address);
        let request = Ask::get("/").header("X-Forwarded-For", "203.0.113.7");
        for _ in 0..10 {
            client.send(&Self::request(request.clone()));
            let answer = client.answer();
            assert_eq!(answer.status(), 200, "{}", answer.text());
            assert_eq!(answer.json()["clientIp"], local.to_string());
        }
        let connections = self.gateway.running.app.proxy.metrics.connections.get();
        assert!((1..=2).contains(&connections), "{connections}");
    }

    fn passes_a_large_body(&self) {
        let text = "a".repeat(BODY_BYTES - 100) + "end";
        let body = json!({"model": "chat", "messages": [{"role": "user", "content": text}]});
        let mut client = self.connect();
        client.send(&self.chat(body.to_string()));
        let answer = client.answer();
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let received = self.upstream.wait_requests(1);
        let received = received.iter().map(|it| it.body.len()).max();
        assert!(received.is_some_and(|bytes| bytes > BODY_BYTES - 100));
    }

    fn passes_each_event_at_once_and_a_silence_between_two(&self) {
        let mut client = self.connect();
        client.send(&self.chat(STREAM));
        let head = client.head();
        assert_eq!(head.status, 200);
        let mut events = Events {
            client,
            gateway: &self.gateway,
            request_id: head.header("x-request-id").expect("an id").to_owned(),
            seen: Vec::new(),
            at: Instant::now(),
        };
        // The provider sends nothing more before the first event has come through.
        events.read_until("one");
        let opened = Instant::now();
        self.gate.open();
        let second = events.read_until("two");
        assert!(second - opened < Duration::from_secs(5), "held back");
        let third = events.read_until("three");
        let silence = third - second;
        assert!(
            silence > SILENCE - Duration::from_secs(5) && silence < SILENCE + SPARE,
            "{silence:?}"
        );
        events.read_until("[DONE]");
        let mut client = events.client;
        while client.chunk().is_some() {}
        assert_eq!(client.end(), End::Complete);
    }
}

fn pass_an_answer_that_comes_late(mut client: Client, request: &Ask) {
    let began = Instant::now();
    client.send(request);
    let answer = client.answer();
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert!(began.elapsed() >= SILENCE);
}

/// A stream, and what has come of it.
struct Events<'a> {
    client: Client,
    gateway: &'a Gateway,
    request_id: String,
    seen: Vec<u8>,
    /// When the last of it came.
    at: Instant,
}

impl Events<'_> {
    /// Reads until this text has come, and returns when it did.
    fn read_until(&mut self, text: &str) -> Instant {
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            let Some(chunk) = self.client.chunk() else {
                let seen = String::from_utf8_lossy(&self.seen);
                let told = self.gateway.log_line(&self.request_id);
                panic!(
                    "no {text}, but {:?} after {seen}: {told}",
                    self.client.end()
                );
            };
            self.seen.extend(chunk.bytes);
            self.at = chunk.at;
        }
        self.at
    }
}

/// All three at the same time, because each waits for as long.
#[test]
fn web_servers_of_the_examples_pass_silence_events_bodies_and_the_clients_address() {
    std::thread::scope(|scope| {
        for kind in [Kind::Nginx, Kind::Haproxy, Kind::Caddy] {
            // A failure is told with the name of its thread.
            let named = std::thread::Builder::new().name(format!("{kind:?}"));
            let chain_of_one = move || {
                let chain = Chain::start(kind);
                chain.tells_the_clients_address_on_a_connection_that_stays_open();
                chain.passes_a_large_body();
                std::thread::scope(|scope| {
                    let (client, request) = (chain.connect(), chain.chat(SLOW));
                    scope.spawn(move || pass_an_answer_that_comes_late(client, &request));
                    chain.passes_each_event_at_once_and_a_silence_between_two();
                });
            };
            named.spawn_scoped(scope, chain_of_one).unwrap();
        }
    });
}
