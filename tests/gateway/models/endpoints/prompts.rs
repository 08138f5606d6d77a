//! Managed prompts: what goes up, what the answer and the log say, what is refused. Source: docs/model-gateway.md 2.1.

use std::time::{Duration, Instant};

use filters::audit::PROGRAM;
use serde_json::{Value, json};
use weirgate::config::read_prompt;
use weirgate::store::{NewKey, NewProject, PromptOwner};

use crate::ledger::money::Place;
use crate::models::fronts::chat_completions::{PLAIN, reply, stream};
use crate::models::wires::web_search;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::own_postgres::Postgres;
use crate::support::server::Server;
use crate::support::upstream::Upstream;

const ACME: PromptOwner<'static> = PromptOwner {
    organization: "acme",
    project: None,
};

fn checked(file: &Value) -> String {
    let read = read_prompt("prompt.json", &file.to_string());
    read.unwrap_or_else(|bad| panic!("{bad:?}")).json
}

impl Gateway {
    /// Stores a version of a prompt, which the running server knows.
    pub fn put(&self, name: &str, labels: &[&str], file: &Value) -> u64 {
        self.put_in(ACME, name, labels, file)
    }

    fn put_in(&self, owner: PromptOwner<'_>, name: &str, labels: &[&str], file: &Value) -> u64 {
        let labels: Vec<_> = labels.iter().map(|label| (*label).to_owned()).collect();
        let content = checked(file);
        self.change(async |store| {
            store
                .by(&PROGRAM)
                .put_prompt(owner, name, &content, &labels, 1)
                .await
                .unwrap()
        })
    }
}

fn hello(text: &str) -> Value {
    json!({"model": "chat", "messages": [{"role": "system", "content": text}]})
}

fn system(upstream: &Upstream, index: usize) -> Value {
    upstream.request(index).json()["messages"][0]["content"].clone()
}

/// Contract: model-gateway 2.1 prompt
#[test]
fn a_prompt_completes_the_request_and_answer_and_log_say_which() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let file = json!({"model": "chat", "parameters": {"temperature": 0.5, "max_tokens": 9},
        "messages": [{"role": "system", "content": "Greet {{name}} {{ times }} times: {{loud}}"}],
        "variables": {"times": {"type": "number", "default": 2}, "loud": {"default": false}}});
    gateway.put("hi", &[], &file);
    let variables = json!({"name": "\"Ada\" {{times}}", "loud": true});
    let body = json!({"prompt": {"id": "hi", "variables": variables}, "temperature": null, "max_completion_tokens": 5,
        "messages": [{"role": "user", "content": "Go"}]});
    let answer = gateway.chat(body.to_string());
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let sent = first.request(0).json();
    let messages = json!([{"role": "system", "content": "Greet \"Ada\" {{times}} 2 times: true"}, {"role": "user", "content": "Go"}]);
    assert_eq!(sent["messages"], messages);
    assert_eq!(
        (&sent["temperature"], &sent["max_tokens"]),
        (&json!(0.5), &json!(5))
    );
    assert_eq!(
        (sent.get("max_completion_tokens"), sent.get("prompt")),
        (None, None)
    );
    let metadata = &answer.json()["metadata"];
    assert_eq!(
        metadata["prompt"],
        json!({"id": "hi", "version": 1, "label": "production"})
    );
    assert_eq!(
        (&metadata["requested_model"], &metadata["used_model"]),
        (&json!("chat"), &json!("first/chat"))
    );
    let line = gateway.log_line(answer.header("x-request-id").unwrap());
    assert_eq!(
        (&line["prompt"], &line["model"]),
        (&metadata["prompt"], &json!("chat"))
    );
    // Without a prompt nothing is said of one.
    let answer = gateway.chat(PLAIN);
    assert_eq!(answer.json()["metadata"].get("prompt"), None);
    assert_eq!(
        gateway
            .log_line(answer.header("x-request-id").unwrap())
            .get("prompt"),
        None
    );
}

/// Contract: model-gateway 2.1 model
/// Contract: model-gateway 2.1 prompt
#[test]
fn a_model_string_names_a_prompt_its_label_or_its_version_and_streams() {
    let first = Upstream::answering(|request| match request.json()["stream"] == true {
        true => stream(),
        false => reply(),
    });
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.put("support/hi", &[], &hello("one"));
    gateway.put("support/hi", &["next"], &hello("two"));
    gateway.put("support/hi", &["test"], &hello("three"));
    for (index, (model, text, prompt)) in [
        (
            "@prompt/support/hi",
            "one",
            json!({"id": "support/hi", "version": 1, "label": "production"}),
        ),
        (
            "@prompt/support/hi@next",
            "two",
            json!({"id": "support/hi", "version": 2, "label": "next"}),
        ),
        (
            "@prompt/support/hi@latest",
            "three",
            json!({"id": "support/hi", "version": 3, "label": "latest"}),
        ),
        (
            "@prompt/support/hi@2",
            "two",
            json!({"id": "support/hi", "version": 2}),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = gateway.chat(json!({ "model": model }).to_string());
        assert_eq!(answer.status(), 200, "{model} {}", answer.text());
        assert_eq!(system(&first, 2 * index), text, "{model}");
        let metadata = &answer.json()["metadata"];
        assert_eq!(
            (&metadata["requested_model"], &metadata["prompt"]),
            (&json!(model), &prompt)
        );
        let line = gateway.log_line(answer.header("x-request-id").unwrap());
        assert_eq!(
            (&line["model"], &line["used_model"]),
            (&json!(model), &json!("first/chat"))
        );
        let streamed = gateway.chat(json!({"model": model, "stream": true}).to_string());
        let events = streamed.events();
        let chunks = events.data();
        assert_eq!(system(&first, 2 * index + 1), text, "{model}");
        assert_eq!(*chunks.last().unwrap(), "[DONE]");
        let last: Value = serde_json::from_str(chunks[chunks.len() - 2]).unwrap();
        assert_eq!(last["metadata"]["prompt"], prompt, "{model}");
        assert_eq!(last["metadata"]["requested_model"], model);
    }
}

#[test]
fn every_wire_gets_the_messages_of_a_prompt() {
    for (kind, more, answers, ..) in web_search::cases() {
        let upstream = Upstream::answering(answers);
        let gateway = web_search::gateway(&upstream, kind, more, "1");
        gateway.put("hi", &[], &hello("Be {{tone}} at once"));
        for is_stream in [false, true] {
            let prompt = json!({"id": "hi", "variables": {"tone": "kind"}});
            let body = json!({"prompt": prompt, "stream": is_stream, "messages": [{"role": "user", "content": "Say it"}]});
            let answer = gateway.chat(body.to_string());
            assert_eq!(answer.status(), 200, "{kind} {}", answer.text());
        }
        for request in upstream.requests() {
            let sent = request.json().to_string();
            for text in ["Be kind at once", "Say it"] {
                assert_eq!(sent.matches(text).count(), 1, "{kind} {sent}");
            }
            assert!(!sent.contains("\"prompt\""), "{kind} {sent}");
        }
    }
}

fn refused(answer: &Answer, status: u16, param: &str, said: &str) {
    assert_eq!(answer.status(), status, "{}", answer.text());
    let error = answer.json()["error"].clone();
    assert_eq!(error["param"], param, "{error}");
    assert!(
        error["message"].as_str().unwrap().contains(said),
        "{said}: {error}"
    );
    if status == 404 {
        assert_eq!(error["code"], "prompt_not_found");
    }
}

#[test]
fn what_does_not_exist_or_does_not_fit_is_refused_by_name_and_no_provider_hears_of_it() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let file = json!({"messages": [{"role": "user", "content": "{{name}}"}], "variables": {"name": {"type": "string"}}});
    gateway.put("bare", &[], &file);
    gateway.put("hi", &[], &hello("x"));
    let tiered = json!({"model": "first/chat", "messages": [{"role": "user", "content": "x"}], "parameters": {"routing": "price"}});
    gateway.put("pinned", &[], &tiered);
    let bare = |variables: Value| json!({"model": "chat", "prompt": {"id": "bare", "variables": variables}});
    for (body, status, param, said) in [
        (
            json!({"model": "@prompt/none"}),
            404,
            "model",
            "there is no prompt \"none\"",
        ),
        (
            json!({"model": "@prompt/hi@none"}),
            404,
            "model",
            "the prompt `hi` has no label \"none\"; it has production, latest",
        ),
        (
            json!({"model": "@prompt/hi@7"}),
            404,
            "model",
            "the prompt `hi` has no version 7; its newest is 1",
        ),
        (
            json!({"prompt": {"id": "none"}}),
            404,
            "prompt.id",
            "there is no prompt \"none\"",
        ),
        (
            json!({"prompt": {"id": "hi", "label": "none"}}),
            404,
            "prompt.label",
            "has no label \"none\"",
        ),
        (
            json!({"prompt": {"id": "hi", "version": 2}}),
            404,
            "prompt.version",
            "has no version 2",
        ),
        (
            json!({"prompt": {"id": "hi", "version": 2, "label": "production"}}),
            404, // The version counts, whatever the label. Source: docs/model-gateway.md 2.1.
            "prompt.version",
            "has no version 2",
        ),
        (
            json!({"model": "@prompt/hi", "prompt": {"id": "bare"}}),
            400,
            "prompt",
            "`model` names hi@production",
        ),
        (json!({"model": "@prompt/"}), 400, "model", "`@prompt/NAME`"),
        (
            json!({"model": "@prompt/bare"}),
            400,
            "prompt.variables.name",
            "is missing",
        ),
        (
            bare(json!({})),
            400,
            "prompt.variables.name",
            "accepted is a string",
        ),
        (
            bare(json!({"name": 5})),
            400,
            "prompt.variables.name",
            "is a number; accepted is a string",
        ),
        (
            bare(json!({"name": "x", "nаme": "x"})),
            400,
            "prompt.variables.nаme",
            "is no variable of this prompt; accepted are name",
        ),
        (
            json!({"model": "@prompt/hi", "messages": [{"role": "king"}]}),
            400,
            "messages[0].role",
            "one of",
        ),
        (
            json!({"model": "@prompt/pinned"}),
            400,
            "routing",
            "(written by the prompt `pinned`, version 1)",
        ),
        (
            json!({"model": "chat", "messages": [], "temperature": 1}),
            400,
            "messages",
            "is empty",
        ),
    ] {
        refused(&gateway.chat(body.to_string()), status, param, said);
    }
    let vectors =
        Ask::post("/v1/embeddings", r#"{"model":"@prompt/hi","input":"a"}"#).key(&gateway.key);
    refused(
        &ask(gateway.address(), &vectors),
        400,
        "model",
        "only chats",
    );
    assert!(first.requests().is_empty());
}

#[test]
fn a_project_has_its_own_prompts_and_other_organizations_have_none_of_them() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.put("hi", &[], &hello("of all"));
    let (key, other) = gateway.change(async |store| {
        let project = NewProject {
            name: "app",
            mode: filters::accounts::Mode::Platform,
            cache_ttl_s: None,
        };
        store
            .by(&PROGRAM)
            .create_project("acme", &project, 1)
            .await
            .unwrap();
        let new = NewKey {
            organization: "acme",
            project: "app",
            ..NewKey::default()
        };
        let (key, _) = store.by(&PROGRAM).create_key(&new, 1).await.unwrap();
        let other = crate::support::boot::create_organization("other", store).await;
        (key.reveal().to_owned(), other)
    });
    let asked = |key: &str| {
        let body = r#"{"model":"@prompt/hi"}"#;
        ask(
            gateway.address(),
            &Ask::post("/v1/chat/completions", body).key(key),
        )
    };
    assert_eq!(asked(&key).status(), 200);
    let app = PromptOwner {
        project: Some("app"),
        ..ACME
    };
    gateway.put_in(app, "hi", &[], &hello("of the project"));
    assert_eq!(asked(&key).status(), 200);
    assert_eq!(asked(&gateway.key).status(), 200);
    let texts: Vec<_> = (0..3).map(|index| system(&first, index)).collect();
    assert_eq!(texts, ["of all", "of the project", "of all"]);
    refused(&asked(&other), 404, "model", "there is no prompt");
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .remove_prompt(app, "hi", None)
            .await
            .unwrap()
    });
    asked(&key);
    assert_eq!(system(&first, 3), "of all");
    gateway.change(async |store| {
        store
            .by(&PROGRAM)
            .remove_prompt(ACME, "hi", None)
            .await
            .unwrap()
    });
    refused(&asked(&key), 404, "model", "there is no prompt");
}

#[test]
fn the_rules_of_a_key_apply_to_the_model_that_results() {
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    gateway.put("hi", &[], &hello("x"));
    for (terms, status) in [
        (r#"{"deny_models":["chat"]}"#, 403),
        (r#"{"allow_models":["only-first"]}"#, 403),
        (r#"{"allow_models":["chat"]}"#, 200),
    ] {
        let key = gateway.key_with(terms);
        let body = json!({"model": "@prompt/hi"}).to_string();
        let answer = ask(
            gateway.address(),
            &Ask::post("/v1/chat/completions", body).key(&key),
        );
        assert_eq!(answer.status(), status, "{terms} {}", answer.text());
    }
    let key = gateway.key_with(r#"{"deny_models":["chat"]}"#);
    let own = json!({"model": "only-first", "prompt": {"id": "hi"}}).to_string();
    let answer = ask(
        gateway.address(),
        &Ask::post("/v1/chat/completions", own).key(&key),
    );
    assert_eq!(answer.json()["metadata"]["used_model"], "first/only-first");
}

#[test]
fn a_megabyte_of_a_variable_passes_and_what_grows_beyond_a_body_does_not() {
    let first = Upstream::always(reply());
    let more = "[limits.body_bytes]\nchat = 4194304";
    let gateway = Gateway::with(&first.url(), &first.url(), more);
    gateway.put("once", &[], &hello("{{a}}"));
    gateway.put("often", &[], &hello(&"{{a}}".repeat(5)));
    let value = "\"\\{{a}}ü\n".repeat(1 << 17);
    let body = |id: &str| json!({"prompt": {"id": id, "variables": {"a": value}}}).to_string();
    assert_eq!(gateway.chat(body("once")).status(), 200);
    assert_eq!(system(&first, 0), value);
    refused(&gateway.chat(body("often")), 413, "prompt", "`often`");
    assert_eq!(first.requests().len(), 1);
}

#[test]
fn prompts_can_be_switched_off() {
    let first = Upstream::always(reply());
    let gateway = Gateway::with(&first.url(), &first.url(), "[prompts]\nenabled = false");
    gateway.put("hi", &[], &hello("x"));
    refused(
        &gateway.chat(r#"{"model":"@prompt/hi"}"#),
        400,
        "prompt",
        "`prompts.enabled` is false",
    );
    assert_eq!(gateway.chat(PLAIN).status(), 200);
}

#[test]
fn a_prompt_put_through_one_process_counts_in_another_within_a_second() {
    let upstream = Upstream::always(reply());
    let postgres = Postgres::start();
    let places = [0; 2].map(|_| Place::new(&postgres.url(), &upstream, crate::support::boot::CENT));
    let key = places[0].fund("100");
    let servers: Vec<_> = places
        .iter()
        .map(|place| Server::start(place.path()))
        .collect();
    let body = r#"{"model":"@prompt/hi"}"#;
    let request = Ask::post("/v1/chat/completions", body).key(&key);
    for server in &servers {
        assert_eq!(ask(server.address, &request).status(), 404);
    }
    for (version, text) in [(1, "one"), (2, "two")] {
        let content = checked(&hello(text));
        let labels = ["production".to_owned()];
        places[0].store(async |store| {
            let put = store
                .by(&PROGRAM)
                .put_prompt(ACME, "hi", &content, &labels, 1)
                .await;
            assert_eq!(put.unwrap(), version);
        });
        let stored = Instant::now();
        for server in &servers {
            loop {
                let answer = ask(server.address, &request);
                if answer.status() == 200
                    && answer.json()["metadata"]["prompt"]["version"] == version
                {
                    break;
                }
                assert!(
                    stored.elapsed() < Duration::from_secs(1),
                    "{}",
                    answer.text()
                );
            }
        }
    }
}

/// Contract: model-gateway 4 GET /v1/prompts
#[test]
fn a_key_lists_the_prompts_of_its_project_and_its_organization() {
    let gateway = Gateway::start("", crate::support::boot::MODELS);
    assert_eq!(gateway.of_prompts("").json()["data"], json!([]));
    gateway.put("b", &["next"], &hello("{{x}}"));
    gateway.put("a", &[], &hello("one"));
    gateway.put("a", &["next"], &hello("two"));
    let own = PromptOwner {
        project: Some("default"),
        ..ACME
    };
    gateway.put_in(own, "c", &[], &hello("own"));
    let listed = gateway.of_prompts("").json();
    let expected = json!([
        {"name": "a", "version": 1, "labels": {"next": 2, "production": 1}, "versions": [1, 2], "model": "chat", "variables": []},
        {"name": "b", "version": null, "labels": {"next": 1}, "versions": [1], "model": null, "variables": []},
        {"name": "c", "version": 1, "labels": {"production": 1}, "versions": [1], "model": "chat", "variables": []},
    ]);
    assert_eq!(listed, json!({"object": "list", "data": expected}));
    // The project's own counts before the organization's.
    let mut other = hello("own");
    other["model"] = json!("other");
    gateway.put_in(own, "a", &[], &other);
    let listed = gateway.of_prompts("").json();
    assert_eq!(listed["data"][0]["model"], "other");
}
