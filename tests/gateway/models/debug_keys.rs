//! `x-weirgate-debug: route`: who may ask why a provider was chosen, and where the answer says it. Source:
//! docs/routing.md, docs/decisions.md 42.

use filters::accounts::TermsFile;
use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::store::{KeyChange, NewKey};

use crate::models::exchange::fallback::{BLANK, before_another_wire};
use crate::models::exchange::streams::drain;
use crate::models::fronts::chat_completions::{PLAIN, STREAM, chunk, reply, stream};
use crate::models::fronts::embeddings::vectors;
use crate::support::ask::Ask;
use crate::support::boot::{CENT, Gateway};
use crate::support::client::{Answer, Client, ask};
use crate::support::process::{Process, weirgate};
use crate::support::script::{Gate, Reply};
use crate::support::sse;
use crate::support::until;
use crate::support::upstream::Upstream;

const DEBUG: &str = "x-weirgate-debug";

impl Gateway {
    /// A debug key with these terms, which the running server knows.
    pub fn debug_key(&self, terms: &str) -> String {
        let terms: TermsFile = serde_json::from_str(terms).unwrap();
        self.change(async |store| {
            let new = NewKey {
                organization: "acme",
                terms: &terms,
                is_debug: true,
                ..NewKey::default()
            };
            let (text, _) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
            text.reveal().to_owned()
        })
    }

    /// Asks with this key why providers are chosen.
    fn why(&self, key: &str, body: &str) -> Answer {
        ask(self.address(), &asking(key, body))
    }
}

fn plain(key: &str, body: &str) -> Ask {
    Ask::post("/v1/chat/completions", body).key(key)
}

fn asking(key: &str, body: &str) -> Ask {
    plain(key, body).header(DEBUG, "route")
}

fn both() -> Upstream {
    Upstream::answering(|request| match request.json()["stream"] == true {
        true => stream(),
        false => reply(),
    })
}

/// The providers of the candidates, in order.
fn order(route: &Value) -> Vec<&str> {
    let candidates = route["candidates"].as_array();
    let candidates = candidates.unwrap_or_else(|| panic!("no candidates: {route}"));
    let providers = candidates.iter();
    providers
        .map(|it| it["provider"].as_str().unwrap())
        .collect()
}

/// Contract: model-gateway 2.5 metadata.route
#[test]
fn a_whole_answer_says_why_its_provider_was_chosen_if_a_debug_key_asks() {
    let first = both();
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.debug_key("{}");
    let without = ask(gateway.address(), &plain(&key, PLAIN));
    assert!(without.json()["metadata"].get("route").is_none());
    // What is learned of a call is learned before its line is written.
    gateway.log_line(without.header("x-request-id").unwrap());
    let answer = gateway.why(&key, PLAIN);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let route = answer.json()["metadata"]["route"].clone();
    assert_eq!(order(&route), ["first", "second"]);
    let head = json!([route["strategy"], route["max_attempts"], route["left_out"]]);
    assert_eq!(head, json!(["auto", 3, []]));
    assert_eq!(route["first_by"], "score");
    let best = &route["candidates"][0];
    assert_eq!(
        (&best["model"], &best["is_tried"]),
        (&"chat".into(), &true.into())
    );
    assert_eq!(
        (&best["price"], &best["uptime"]),
        (&6.25.into(), &100.into())
    );
    let part = route["candidates"][1]["score_parts"]["price"].as_f64();
    assert!(part > Some(0.1), "{route}");
    // The request goes up as it would without the header.
    let sent = first.requests();
    assert_eq!(sent[0].body, sent[1].body);
    assert!(sent[1].headers.iter().all(|(name, _)| name != DEBUG));
}

#[test]
fn a_stream_says_it_in_the_chunk_with_metadata() {
    let first = both();
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.debug_key("{}");
    let events = gateway.why(&key, STREAM).events();
    assert!(events.is_done());
    assert_eq!(events.content(), "hello");
    let chunks = events.json();
    let (last, others) = chunks.split_last().unwrap();
    assert_eq!(order(&last["metadata"]["route"]), ["first", "second"]);
    assert!(others.iter().all(|chunk| chunk.get("metadata").is_none()));
}

#[test]
fn a_replay_says_it_to_who_asks_and_to_nobody_else() {
    let first = both();
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.cache_for(3600);
    let key = gateway.debug_key("{}");
    for body in [PLAIN, STREAM] {
        let metadata = |answer: Answer| match body {
            STREAM => answer.events().json().last().unwrap()["metadata"].clone(),
            _ => answer.json()["metadata"].clone(),
        };
        let asked = metadata(gateway.why(&key, body));
        let other = metadata(gateway.chat(body));
        let again = metadata(gateway.why(&key, body));
        assert_eq!(
            (&other["cached"], &again["cached"]),
            (&true.into(), &true.into())
        );
        assert!(other.get("route").is_none(), "{other}");
        assert_eq!(order(&again["route"]), order(&asked["route"]));
    }
    assert_eq!(first.requests().len(), 1, "one stored answer serves both");
}

#[test]
fn a_call_whose_attempts_all_failed_says_it_beside_the_error() {
    let broken = Upstream::always(Reply::json(500, "{}"));
    let gateway = Gateway::between(&broken.url(), &broken.url());
    let key = gateway.debug_key("{}");
    for body in [PLAIN, STREAM] {
        let answer = gateway.why(&key, body);
        assert_eq!(answer.status(), 502, "{}", answer.text());
        let body = answer.json();
        assert_eq!(body["error"].as_object().unwrap().len(), 4, "{body}");
        let metadata = &body["metadata"];
        assert_eq!(metadata["routing"].as_array().unwrap().len(), 2);
        assert_eq!(metadata["route"]["candidates"].as_array().unwrap().len(), 2);
    }
    let other = gateway.chat(PLAIN).json();
    assert!(other["metadata"].get("route").is_none(), "{other}");
}

#[test]
fn a_stream_that_breaks_off_says_it_in_the_event_that_ends_it() {
    let told = |is_debug: bool| {
        let gate = Gate::default();
        let hello = chunk(json!({"role": "assistant", "content": "hel"}), None);
        let first = Upstream::always(Reply::stream().event(&hello).wait(&gate).end());
        let gateway = Gateway::between(&first.url(), &first.url());
        let key = match is_debug {
            true => gateway.debug_key("{}"),
            false => gateway.key.clone(),
        };
        let mut client = Client::connect(gateway.address());
        client.send(&asking(&key, STREAM));
        assert_eq!(client.head().status, 200);
        client.chunk().unwrap();
        gate.open();
        let events = sse::parse(drain(&mut client));
        let last = events.json().last().unwrap().clone();
        assert_eq!(last["error"]["code"], "stream_truncated", "{last}");
        last
    };
    assert_eq!(order(&told(true)["metadata"]["route"]), ["first", "second"]);
    assert!(told(false).get("metadata").is_none());
}

#[test]
fn a_call_that_cannot_be_planned_says_what_was_left_out() {
    let first = both();
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.debug_key("{}");
    let ruled = gateway.debug_key(r#"{"deny_models":["chat"]}"#);
    let terse = PLAIN.replace("\"chat\",", "\"first/chat\",\"verbosity\":\"low\",");
    let unknown = PLAIN.replace("\"chat\"", "\"none\"");
    for (key, body, status, left_out) in [
        (&key, &*terse, 400, json!(["first", "verbosity"])),
        (&ruled, PLAIN, 403, json!(["first", "model"])),
        (&key, &*unknown, 404, json!([null, null])),
    ] {
        let answer = gateway.why(key, body);
        assert_eq!(answer.status(), status, "{}", answer.text());
        let told = answer.json();
        assert_eq!(told["error"].as_object().unwrap().len(), 4, "{told}");
        let route = &told["metadata"]["route"];
        assert_eq!(order(route), [""; 0]);
        let first = &route["left_out"][0];
        assert_eq!(json!([first["provider"], first["param"]]), left_out);
        let without = ask(gateway.address(), &plain(key, body)).json();
        assert!(without.get("metadata").is_none(), "{without}");
        assert_eq!(without["error"], told["error"]);
    }
    assert!(first.requests().is_empty());
}

#[test]
fn a_call_without_credit_says_where_it_would_have_gone() {
    let first = both();
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        first.url()
    );
    let gateway = Gateway::start_with_credit(&toml, CENT, &[], "0");
    let answer = gateway.why(&gateway.debug_key("{}"), PLAIN);
    assert_eq!(answer.status(), 402, "{}", answer.text());
    assert_eq!(order(&answer.json()["metadata"]["route"]), ["first"]);
}

#[test]
fn who_cannot_be_told_the_request_is_left_out_of_the_explanation_too() {
    let (first, second) = (both(), both());
    let gateway = before_another_wire(&first, &second.url(), "");
    let key = gateway.debug_key("{}");
    let route = gateway.why(&key, BLANK).json()["metadata"]["route"].clone();
    assert_eq!(order(&route), ["first", "second"]);
    assert_eq!(route["left_out"][0]["param"], "messages[0].content");
    let nobody = gateway.why(&key, &BLANK.replace("\"chat\"", "\"first/chat\""));
    assert_eq!(nobody.status(), 400, "{}", nobody.text());
    let route = nobody.json()["metadata"]["route"].clone();
    assert_eq!(
        (order(&route), &route["max_attempts"]),
        (vec!["first"], &1.into())
    );
    assert_eq!(route["left_out"][0]["provider"], "first");
}

/// Contract: model-gateway 2.5 metadata.route
#[test]
fn the_header_of_another_key_is_like_any_unknown_one() {
    let first = both();
    let gateway = Gateway::between(&first.url(), &first.url());
    let unknown = PLAIN.replace("\"chat\"", "\"none\"");
    for value in ["route", "cost", ""] {
        for body in [PLAIN, &*unknown] {
            let request = || gateway.chat_ask(body).header("x-request-id", "same");
            let usual = ask(gateway.address(), &request());
            let answer = ask(gateway.address(), &request().header(DEBUG, value));
            assert_eq!(answer.status(), usual.status());
            let members = |answer: &Answer| {
                let mut body = answer.json();
                for own in ["created", "log_id"] {
                    body.as_object_mut().unwrap().remove(own);
                    let metadata = body.get_mut("metadata").and_then(Value::as_object_mut);
                    metadata.map(|metadata| metadata.remove(own));
                }
                body
            };
            assert_eq!(members(&answer), members(&usual), "{value}");
        }
    }
}

#[test]
fn another_value_is_refused_with_what_came_and_what_is_accepted() {
    let first = both();
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.debug_key("{}");
    for value in ["cost", "", "ROUTE", "route, cost", &key] {
        let answer = ask(gateway.address(), &plain(&key, PLAIN).header(DEBUG, value));
        assert_eq!(answer.status(), 400, "{value}: {}", answer.text());
        let error = answer.json()["error"].clone();
        assert_eq!(error["param"], DEBUG);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("`route` is accepted"), "{message}");
        assert!(!message.contains(&key), "{message}");
    }
    let twice = asking(&key, PLAIN).header(DEBUG, "other");
    let refused = ask(gateway.address(), &twice);
    assert_eq!(refused.status(), 400);
    assert!(refused.text().contains("`other`"), "{}", refused.text());
    assert!(first.requests().is_empty());
}

#[test]
fn a_session_of_the_own_organization_is_told_and_no_other() {
    let first = both();
    let gateway = Gateway::between(&first.url(), &first.url());
    let key = gateway.debug_key("{}");
    let in_session = |key: &str| {
        let request = asking(key, PLAIN).header("x-session-id", "s-1");
        ask(gateway.address(), &request).json()["metadata"]["route"].clone()
    };
    assert_eq!(in_session(&key)["session"], json!({"provider": null}));
    let route = in_session(&key);
    let bound = json!({"provider": "first", "model": "chat", "cached_tokens": 400});
    assert_eq!(route["session"], bound);
    assert_eq!(route["first_by"], "session");
    let other = gateway.change(async |store| {
        let plan = filters::accounts::Plan::None;
        store
            .by(&PROGRAM)
            .create_organization("other", plan, 0)
            .await
            .unwrap();
        let credit = filters::money::Usd::parse("1000").unwrap();
        store
            .by(&PROGRAM)
            .add_credit("other", credit, 0)
            .await
            .unwrap();
        let new = NewKey {
            organization: "other",
            is_debug: true,
            ..NewKey::default()
        };
        let (text, _) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
        text.reveal().to_owned()
    });
    let route = in_session(&other);
    assert_eq!(route["session"], json!({"provider": null}));
    assert_eq!(route["first_by"], "score");
}

/// Names of models and providers, numbers and our own words: nothing else is in it.
#[test]
fn an_explanation_has_no_secrets_addresses_or_ids() {
    let (first, second) = (both(), both());
    let gateway = before_another_wire(&first, &second.url(), "");
    let key = gateway.debug_key(r#"{"deny_providers":["first"]}"#);
    let answer = gateway.why(&key, PLAIN);
    let metadata = answer.json()["metadata"].clone();
    let route = metadata["route"].to_string();
    assert!(
        route.contains("is forbidden by the rules of this API key"),
        "{route}"
    );
    let ids = [&metadata["organization_id"], &metadata["project_id"]];
    let ids = ids.map(|id| id.as_str().unwrap());
    let urls = [first.url(), second.url()];
    let secrets = ["sk-platform-1", &key, "127.", "http", "key_", "acme"];
    let urls = urls.iter().map(String::as_str);
    for secret in secrets.into_iter().chain(ids).chain(urls) {
        assert!(!route.contains(secret), "{secret}: {route}");
    }
}

#[test]
fn embeddings_say_it_too() {
    let first = Upstream::always(vectors());
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        first.url()
    );
    let models = "[[models]]\nid = \"vectors\"\ntype = \"embedding\"\n\
                  [[models.providers]]\nprovider = \"first\"\nname = \"v\"\ninput_price = \"2\"\n";
    let gateway = Gateway::start(&toml, models);
    let key = gateway.debug_key("{}");
    let request = Ask::post("/v1/embeddings", r#"{"model":"vectors","input":["a","b"]}"#).key(&key);
    let usual = ask(gateway.address(), &request).json();
    let told = ask(gateway.address(), &request.header(DEBUG, "route")).json();
    assert!(usual.get("metadata").is_none());
    let metadata = told["metadata"].as_object().unwrap();
    assert_eq!(metadata.len(), 1, "{told}");
    assert_eq!(order(&metadata["route"]), ["first"]);
    assert_eq!(told["data"], usual["data"]);
}

#[test]
fn a_key_becomes_a_debug_key_and_ceases_to_be_one_within_a_second() {
    let first = both();
    let gateway = Gateway::between(&first.url(), &first.url());
    let is_told = || {
        let metadata = gateway.why(&gateway.key, PLAIN).json()["metadata"].clone();
        metadata.get("route").is_some()
    };
    assert!(!is_told());
    for is_debug in [true, false] {
        gateway.change(async |store| {
            let id = store.keys("acme").await.unwrap().remove(0).id;
            let change = KeyChange {
                is_debug: Some(is_debug),
                ..KeyChange::default()
            };
            store.by(&PROGRAM).update_key(&id, &change).await.unwrap();
        });
        assert_eq!(is_told(), is_debug);
    }
}

#[test]
fn a_running_process_knows_the_debug_key_that_the_command_line_makes() {
    let process = Process::start("");
    let words = ["key", "create", "--org", "default", "--debug"];
    let made = weirgate(process.folder.path(), &words);
    assert!(made.status.success(), "{made:?}");
    let text = String::from_utf8(made.stdout).unwrap();
    let key = text.lines().last().unwrap();
    let body = r#"{"model":"sandbox-chat","messages":[{"role":"user","content":"Hi"}]}"#;
    let mut answer = None;
    until("the key counts", || {
        let asked = ask(process.address, &asking(key, body));
        let is_known = asked.status() == 200;
        answer = Some(asked);
        is_known
    });
    let answer = answer.unwrap().json();
    assert_eq!(order(&answer["metadata"]["route"]), ["sandbox"]);
    assert!(answer["metadata"]["route"]["candidates"][0]["score"].is_number());
}
