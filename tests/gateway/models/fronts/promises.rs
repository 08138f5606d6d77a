//! What holds for a chat, whichever API its client speaks: a row per API, and each promise for every row.
//! Source: docs/promises-tests.md.

use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::store::KeyChange;

use crate::ledger::used;
use crate::models::fronts::chat_completions::{chunk, reply, stream};
use crate::support::ask::Ask;
use crate::support::boot::{CENT, Gateway, MODELS};
use crate::support::client::{Answer, Client, End, ask};
use crate::support::script::{Cut, Gate, Reply};
use crate::support::upstream::Upstream;

/// An API whose requests are chats.
pub struct Api {
    pub path: &'static str,
    /// The member that holds the history, or the text in its place: then its requests name no managed prompts.
    history: &'static str,
    /// What a request has beside its model, its history and whether it streams.
    more: fn() -> Value,
    /// Where a whole answer has the members of the gateway, and where the last part of a stream has them.
    own: [&'static str; 2],
    /// Where the error of a broken stream has its type.
    pub broken: &'static str,
    /// The data of the last event of a whole stream.
    pub last: fn(&str) -> bool,
    /// The type of an error, in its body and in its event.
    error_type: fn(&Value) -> &Value,
    /// The status for an account without credit, and what stands in the error.
    unpaid: (u16, &'static str, &'static str),
}

pub const APIS: [Api; 4] = [
    Api {
        path: "/v1/chat/completions",
        history: "messages",
        more: || json!({}),
        own: ["", ""],
        broken: "/error/type",
        last: |data| data == "[DONE]",
        error_type: |error| &error["error"]["type"],
        unpaid: (402, "code", "insufficient_credits"),
    },
    Api {
        path: "/v1/messages",
        history: "messages",
        more: || json!({"max_tokens": 1000}),
        own: ["/weirgate", "/weirgate"],
        broken: "/error/type",
        last: |data| data == r#"{"type":"message_stop"}"#,
        error_type: |error| &error["error"]["type"],
        unpaid: (429, "type", "billing_error"),
    },
    Api {
        path: "/v1/responses",
        history: "input",
        more: || json!({}),
        own: ["/weirgate", "/response/weirgate"],
        broken: "/response/error/code",
        last: |data| data.starts_with(r#"{"type":"response.completed""#),
        error_type: |error| &error["error"]["type"],
        unpaid: (429, "code", "insufficient_quota"),
    },
    Api {
        path: "/v1/completions",
        history: "prompt",
        more: || json!({}),
        own: ["", ""],
        broken: "/error/type",
        last: |data| data == "[DONE]",
        error_type: |error| &error["error"]["type"],
        unpaid: (402, "code", "insufficient_credits"),
    },
];

impl Api {
    pub fn body(&self, is_stream: bool) -> Value {
        let mut body = json!({"model": "chat", "stream": is_stream});
        body[self.history] = match self.history {
            "prompt" => json!("Hi"),
            _ => json!([{"role": "user", "content": "Hi"}]),
        };
        let more = (self.more)();
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    }

    pub fn request(&self, gateway: &Gateway, body: &Value) -> Ask {
        Ask::post(self.path, body.to_string()).key(&gateway.key)
    }

    fn send(&self, gateway: &Gateway, is_stream: bool) -> Answer {
        ask(
            gateway.address(),
            &self.request(gateway, &self.body(is_stream)),
        )
    }

    /// The members of the gateway in a whole answer.
    pub fn own<'a>(&self, answer: &'a Value, member: &str) -> &'a Value {
        let places = self.own.map(|own| format!("{own}/{member}"));
        let mut found = places.iter().filter_map(|place| answer.pointer(place));
        found
            .next()
            .unwrap_or_else(|| panic!("no {places:?} in {answer}"))
    }
}

/// The data of all events of a stream.
pub fn events(answer: &Answer) -> Vec<String> {
    let lines = answer.text().lines();
    let data = lines.filter_map(|line| line.strip_prefix("data: "));
    data.map(str::to_owned).collect()
}

/// A provider that answers as it is asked.
fn good() -> Upstream {
    Upstream::answering(|request| match request.json()["stream"] == true {
        true => stream(),
        false => reply(),
    })
}

#[test]
fn a_provider_that_fails_is_followed_by_the_next() {
    for api in &APIS {
        for is_stream in [false, true] {
            let (first, second) = (Upstream::always(Reply::json(500, "{}")), good());
            let gateway = Gateway::between(&first.url(), &second.url());
            let answer = api.send(&gateway, is_stream);
            assert_eq!(answer.status(), 200, "{}: {}", api.path, answer.text());
            let last = match is_stream {
                false => answer.json(),
                true => {
                    let events = events(&answer);
                    assert!((api.last)(events.last().unwrap()), "{events:?}");
                    let with_cost = events
                        .iter()
                        .rev()
                        .find(|data| data.contains("\"routing\""));
                    serde_json::from_str(with_cost.unwrap()).unwrap()
                }
            };
            let routing = api.own(&last, "metadata")["routing"]
                .as_array()
                .unwrap()
                .clone();
            let providers: Vec<&Value> = routing.iter().map(|it| &it["provider"]).collect();
            assert_eq!(providers, ["first", "second"], "{}", api.path);
            assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
        }
    }
}

#[test]
fn a_stream_that_breaks_ends_in_an_error_and_costs_what_was_delivered() {
    for api in &APIS {
        let begun = Reply::stream()
            .event(&chunk(json!({"role": "assistant", "content": ""}), None))
            .event(&chunk(json!({"content": "hello wo"}), None));
        let upstream = Upstream::always(begun.cut(usize::MAX, Cut::Close));
        let gateway = Gateway::between(&upstream.url(), &upstream.url());
        let answer = api.send(&gateway, true);
        let events = events(&answer);
        assert!(answer.text().contains("hello wo"), "{}", answer.text());
        assert!(!events.iter().any(|data| (api.last)(data)), "{events:?}");
        let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
        let told = last.pointer(api.broken);
        assert!(told.is_some_and(Value::is_string), "{}: {last}", api.path);
        // One token of prompt, two of eight delivered characters.
        used(&gateway, "0.0000225");
    }
}

#[test]
fn a_whole_answer_costs_the_same() {
    for api in &APIS {
        let upstream = good();
        let gateway = Gateway::between(&upstream.url(), &upstream.url());
        let answer = api.send(&gateway, false).json();
        let usage = api.own(&answer, "usage");
        // 600 tokens at 2.5, 400 at 1.25 and 100 at 10 USD per million.
        assert_eq!(usage["cost"].to_string(), "0.003", "{}", api.path);
        used(&gateway, "0.003");
    }
}

#[test]
fn without_credit_no_provider_is_asked() {
    for api in &APIS {
        let upstream = good();
        let toml = format!(
            "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
            upstream.url()
        );
        let gateway = Gateway::start_with_credit(&toml, CENT, &[], "0");
        let refused = api.send(&gateway, false);
        let error = refused.json();
        let (status, member, said) = api.unpaid;
        assert_eq!(refused.status(), status, "{error}");
        assert_eq!(error["error"][member], said, "{error}");
        assert!(upstream.requests().is_empty());
    }
}

#[test]
fn the_rules_of_a_key_hold() {
    for api in &APIS {
        let upstream = good();
        let gateway = Gateway::between(&upstream.url(), &upstream.url());
        gateway.change(async |store| {
            let key_id = store.keys("acme").await.unwrap().remove(0).id;
            let terms = json!({"deny_models": ["chat"]});
            let change = KeyChange {
                terms: Some(serde_json::from_value(terms).unwrap()),
                ..KeyChange::default()
            };
            store
                .by(&PROGRAM)
                .update_key(&key_id, &change)
                .await
                .unwrap();
        });
        assert_eq!(api.send(&gateway, false).status(), 403, "{}", api.path);
        assert!(upstream.requests().is_empty());
    }
}

#[test]
fn requests_have_one_quota() {
    for api in &APIS {
        let upstream = good();
        let more = "[limits]\nrequests_per_minute = { chat = 2 }";
        let gateway = Gateway::with(&upstream.url(), &upstream.url(), more);
        let statuses = [0; 3].map(|_| api.send(&gateway, false).status());
        assert_eq!(statuses, [200, 200, 429], "{}", api.path);
    }
}

#[test]
fn replies_are_cached() {
    for api in &APIS {
        let upstream = good();
        let gateway = Gateway::between(&upstream.url(), &upstream.url());
        gateway.cache_for(3600);
        let first = api.send(&gateway, false).json();
        let again = api.send(&gateway, false);
        assert_eq!(
            again.header("x-weirgate-cache"),
            Some("HIT"),
            "{}",
            api.path
        );
        let again = again.json();
        assert_eq!(api.own(&again, "metadata")["cached"], true);
        assert_eq!(api.own(&again, "usage")["cost"], 0);
        for key in ["content", "choices", "stop_reason", "status"] {
            assert_eq!(again.get(key), first.get(key), "{}", api.path);
        }
        // Each response has ids of its own.
        let said = "/output/0/content";
        assert_eq!(again.pointer(said), first.pointer(said), "{}", api.path);
        assert_eq!(upstream.requests().len(), 1);
    }
}

#[test]
fn a_session_stays_with_its_provider() {
    for api in &APIS {
        let (first, second) = (good(), good());
        let models = MODELS.replace(
            "input_price = \"5\"\noutput_price = \"20\"",
            "input_price = \"2.5\"\noutput_price = \"10\"",
        );
        let toml = format!(
            "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n[providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
            first.url(),
            second.url()
        );
        let gateway = Gateway::start(&toml, &models);
        let bound = |provider: &str| {
            let mut body = api.body(false);
            body["model"] = provider.into();
            let asked = api.request(&gateway, &body).header("x-session-id", "s1");
            let answer = ask(gateway.address(), &asked).json();
            api.own(&answer, "metadata")["used_provider"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let provider = bound("chat");
        for _ in 0..6 {
            assert_eq!(bound("chat"), provider, "{}", api.path);
        }
    }
}

#[test]
fn a_silent_stream_is_answered_by_the_next_provider() {
    for api in &APIS {
        let gate = Gate::default();
        let (first, second) = (Upstream::always(Reply::empty().wait(&gate)), good());
        let more = "[routing]\nhedge_after_ms = 100";
        let gateway = Gateway::with(&first.url(), &second.url(), more);
        let answer = api.send(&gateway, true);
        assert!(
            answer.text().contains("lo"),
            "{}: {}",
            api.path,
            answer.text()
        );
        assert!((api.last)(events(&answer).last().unwrap()));
        gate.open();
    }
}

#[test]
fn a_debug_key_learns_why() {
    for api in &APIS {
        let upstream = good();
        let gateway = Gateway::between(&upstream.url(), &upstream.url());
        let key = gateway.debug_key("{}");
        let asked = Ask::post(api.path, api.body(false).to_string()).key(&key);
        let answer = ask(
            gateway.address(),
            &asked.header("x-weirgate-debug", "route"),
        )
        .json();
        let route = &api.own(&answer, "metadata")["route"];
        assert!(route["candidates"].is_array(), "{}: {answer}", api.path);
    }
}

#[test]
fn the_log_line_and_the_metrics_have_the_call() {
    for api in &APIS {
        let upstream = good();
        let gateway = Gateway::between(&upstream.url(), &upstream.url());
        let answer = api.send(&gateway, false);
        let line = gateway.log_line(answer.header("x-request-id").unwrap());
        assert_eq!(
            (&line["model"], &line["provider"]),
            (&json!("chat"), &json!("first"))
        );
        assert_eq!(
            (&line["prompt_tokens"], &line["completion_tokens"]),
            (&json!(1000), &json!(100))
        );
        assert_eq!(line["cost"], "0.003", "{}", api.path);
        let metrics = gateway.metrics();
        let counted =
            "weirgate_upstream_attempts_total{model=\"chat\",outcome=\"ok\",provider=\"first\"} 1";
        assert!(metrics.contains(counted), "{}: {metrics}", api.path);
    }
}

#[test]
fn a_client_that_leaves_closes_the_connection_of_the_provider() {
    for api in &APIS {
        let begun =
            Reply::stream().event(&chunk(json!({"role": "assistant", "content": "hel"}), None));
        let upstream = Upstream::always(begun.and_hang());
        let gateway = Gateway::between(&upstream.url(), &upstream.url());
        let mut client = Client::connect(gateway.address());
        client.send(&api.request(&gateway, &api.body(true)));
        client.head();
        let mut text = String::new();
        while !text.contains("hel") {
            let chunk = client.chunk().expect("content");
            text.push_str(std::str::from_utf8(&chunk.bytes).unwrap());
        }
        drop(client);
        upstream.wait_closed(0);
    }
}

#[test]
fn an_unknown_model_is_a_404() {
    for api in &APIS {
        let upstream = good();
        let gateway = Gateway::between(&upstream.url(), &upstream.url());
        let mut body = api.body(false);
        body["model"] = "nobody".into();
        let refused = ask(gateway.address(), &api.request(&gateway, &body));
        assert_eq!(refused.status(), 404, "{}", api.path);
        assert_eq!(refused.end, End::Complete);
        assert!((api.error_type)(&refused.json()).is_string());
    }
}

#[test]
fn a_managed_prompt_completes_a_request() {
    for api in APIS.iter().filter(|api| api.history != "prompt") {
        let upstream = good();
        let gateway = Gateway::between(&upstream.url(), &upstream.url());
        let prompt = json!({"model": "chat", "parameters": {"temperature": 0.25},
            "messages": [{"role": "system", "content": "Answer {{name}}."}], "variables": {"name": "Ada"}});
        gateway.put("hello", &[], &prompt);
        let mut body = api.body(false);
        body["model"] = "@prompt/hello".into();
        let answer = ask(gateway.address(), &api.request(&gateway, &body));
        assert_eq!(answer.status(), 200, "{}: {}", api.path, answer.text());
        let answer = answer.json();
        let metadata = api.own(&answer, "metadata");
        assert_eq!(
            metadata["prompt"],
            json!({"id": "hello", "version": 1, "label": "production"})
        );
        let sent = upstream.requests().pop().unwrap().json();
        assert_eq!(sent["temperature"], 0.25, "{}", api.path);
        let said = sent["messages"].to_string();
        assert!(
            said.contains("Answer Ada.") && said.contains("Hi"),
            "{}: {said}",
            api.path
        );
        body["model"] = "@prompt/nobody".into();
        let refused = ask(gateway.address(), &api.request(&gateway, &body));
        assert_eq!(refused.status(), 404, "{}", api.path);
    }
}
