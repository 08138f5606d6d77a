//! Responses that are kept: conversations that go on with them, and what a key gets of them. Source: docs/stored-responses.md.

use std::time::Duration;

use filters::audit::PROGRAM;
use serde_json::{Value, json};
use sqlx::{Connection, Executor, SqliteConnection};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::grammars::messages::events;
use crate::support::grammars::responses::fold;
use crate::support::scripted::{self, Asked, MODELS, Said, Turn, gateway_with, saying};
use crate::support::upstream::Upstream;
use crate::support::{POLL, every};

mod background;
mod bounds;
mod cancel_response;
mod crashes;
mod delete_stored_response;
mod response_input_items;
mod stored_response;

/// The settings of a gateway that keeps responses.
pub const KEEPS: &str = "[responses]\nstore = true\n";

pub fn gateway(provider: &Upstream) -> Gateway {
    gateway_with(provider, KEEPS, "", "1000")
}

pub fn send(gateway: &Gateway, body: &Value) -> Answer {
    let asked = Ask::post("/v1/responses", body.to_string()).key(&gateway.key);
    ask(gateway.address(), &asked)
}

/// The response of an answer, whole or streamed; the grammar of a stream is checked.
pub fn response(answer: &Answer) -> Value {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let kind = answer.header("content-type").unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return answer.json();
    }
    let events = events(answer.text()).unwrap();
    fold(events.into_iter()).unwrap_or_else(|why| panic!("{why}\n{}", answer.text()))
}

fn id(response: &Value) -> &str {
    let id = response["id"].as_str().unwrap();
    assert!(id.starts_with("resp_wg_"), "{response}");
    id
}

pub fn path(response: &Value) -> String {
    format!("/v1/responses/{}", id(response))
}

pub fn call(gateway: &Gateway, method: &str, path: &str) -> Answer {
    let asked = Ask::new(method, path).key(&gateway.key);
    ask(gateway.address(), &asked)
}

pub fn get(gateway: &Gateway, path: &str) -> Answer {
    call(gateway, "GET", path)
}

/// Checks the error of an answer: its status, its code and the parameter that it names.
pub fn refused(answer: &Answer, status: u16, code: &str, param: Option<&str>) {
    assert_eq!(answer.status(), status, "{}", answer.text());
    let error = &answer.json()["error"];
    assert_eq!(
        (error["code"].as_str(), error["param"].as_str()),
        (Some(code), param),
        "{error}"
    );
}

fn tools() -> Value {
    json!([{"type": "function", "name": "read", "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}, "strict": false}])
}

/// A model that reads a file, tells what it holds, and repeats what it is told then.
fn reads(asked: &Asked) -> Said {
    let last = asked.last_text();
    if asked.has_result {
        let seen = asked.results.last().cloned().unwrap_or_default();
        return Turn::text(format!("It says: {seen}")).into();
    }
    if last != "Read a" {
        return Turn::text(format!("You said: {last}")).into();
    }
    Turn {
        reasoning: Some("hm".to_owned()),
        text: Some("Let me look.".to_owned()),
        ..Turn::call("read", json!({"path": "a"}))
    }
    .into()
}

fn last_text(response: &Value) -> &Value {
    let items = response["output"].as_array().unwrap();
    &items.last().unwrap()["content"][0]["text"]
}

#[test]
fn a_conversation_goes_on_with_any_model_over_every_wire() {
    let provider = saying(reads);
    let gateway = gateway(&provider);
    for (at, one) in MODELS.into_iter().enumerate() {
        for (to, other) in MODELS.into_iter().enumerate() {
            let is_stream = (at + to) % 2 == 0;
            let asked = json!({"model": one, "tools": tools(), "instructions": "Be kind.", "input": "Read a", "store": true, "stream": is_stream,
                "reasoning": {"effort": "low", "summary": "auto"}});
            let first = response(&send(&gateway, &asked));
            assert_eq!(
                (
                    &first["store"],
                    &first["previous_response_id"],
                    &first["model"]
                ),
                (&json!(true), &Value::Null, &json!(one))
            );
            let call_id = first["output"].as_array().unwrap().last().unwrap()["call_id"].clone();
            let result =
                json!([{"type": "function_call_output", "call_id": call_id, "output": "A cat."}]);
            let asked = json!({"model": other, "tools": tools(), "input": result, "store": true, "stream": !is_stream,
                "previous_response_id": id(&first), "reasoning": {"effort": "low", "summary": "auto"}});
            let second = response(&send(&gateway, &asked));
            assert_eq!(last_text(&second), "It says: A cat.", "{one}, then {other}");
            assert_eq!(second["previous_response_id"], first["id"]);
            let sent = provider.requests().pop().unwrap().json().to_string();
            assert!(
                sent.contains("Read a") && sent.contains("Let me look."),
                "{sent}"
            );
            assert!(
                !sent.contains("_wg_") && !sent.contains("Be kind."),
                "{sent}"
            );
            // What only its maker reads has come back to it, and to nobody else.
            let state = match one {
                "items" => "gAAA",
                "blocks" => "\"signature\":\"sig\"",
                "parts" => "c2ln",
                _ => "",
            };
            if !state.is_empty() {
                assert_eq!(
                    sent.contains(state),
                    one == other,
                    "{one}, then {other}: {sent}"
                );
            }
            // A third turn that is not kept has all of it.
            let asked =
                json!({"model": one, "input": "And now?", "previous_response_id": id(&second)});
            let third = response(&send(&gateway, &asked));
            assert_eq!(
                (last_text(&third), &third["store"]),
                (&json!("You said: And now?"), &json!(false))
            );
            assert_eq!(third["previous_response_id"], second["id"]);
            let sent = provider.requests().pop().unwrap().json().to_string();
            assert!(
                sent.contains("It says: A cat.") && sent.contains("Read a"),
                "{sent}"
            );
            let gone = get(
                &gateway,
                &format!("/v1/responses/{}", third["id"].as_str().unwrap()),
            );
            refused(&gone, 404, "response_not_found", None);
        }
    }
}

#[test]
fn responses_of_other_keys_and_organizations_do_not_exist() {
    let provider = saying(reads);
    let mut gateway = gateway(&provider);
    let asked = json!({"model": "chat", "input": "one", "store": true});
    let first = response(&send(&gateway, &asked));
    let said = first["output"][0]["id"].clone();
    let own = gateway.key.clone();
    let new_key = |gateway: &Gateway, organization: &'static str| {
        gateway.change(async |store| {
            if organization != "acme" {
                let plan = filters::accounts::Plan::None;
                store
                    .by(&PROGRAM)
                    .create_organization(organization, plan, 0)
                    .await
                    .unwrap();
                let credit = filters::money::Usd::parse("10").unwrap();
                store
                    .by(&PROGRAM)
                    .add_credit(organization, credit, 0)
                    .await
                    .unwrap();
            }
            let new = weirgate::store::NewKey {
                organization,
                project: "default",
                ..weirgate::store::NewKey::default()
            };
            let (key, _) = store.by(&PROGRAM).create_key(&new, 0).await.unwrap();
            key.reveal().to_owned()
        })
    };
    for organization in ["acme", "other"] {
        gateway.key = new_key(&gateway, organization);
        for (method, path) in [
            ("GET", path(&first)),
            ("DELETE", path(&first)),
            ("GET", format!("{}/input_items", path(&first))),
            ("POST", format!("{}/cancel", path(&first))),
        ] {
            refused(
                &call(&gateway, method, &path),
                404,
                "response_not_found",
                None,
            );
        }
        let asked = json!({"model": "chat", "input": "two", "previous_response_id": id(&first)});
        refused(
            &send(&gateway, &asked),
            400,
            "previous_response_not_found",
            Some("previous_response_id"),
        );
        let asked = json!({"model": "chat", "input": [{"type": "item_reference", "id": said}]});
        refused(
            &send(&gateway, &asked),
            400,
            "item_not_found",
            Some("input[0].id"),
        );
    }
    gateway.key = own;
    assert_eq!(get(&gateway, &path(&first)).json(), first);
}

#[test]
fn an_expired_response_is_gone_and_its_row_is_deleted() {
    let provider = scripted::provider();
    let gateway = gateway(&provider);
    let asked = json!({"model": "chat", "input": "one", "store": true});
    let first = response(&send(&gateway, &asked));
    let database = gateway.folder.path().join("weirgate.db");
    let url = format!("sqlite:{}", database.display());
    let sql = async |sql: &'static str| -> i64 {
        let mut database = SqliteConnection::connect(&url).await.unwrap();
        database.execute(sql).await.unwrap();
        let count = sqlx::query_scalar("SELECT COUNT(*) FROM responses");
        count.fetch_one(&mut database).await.unwrap()
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let expire = "UPDATE responses SET expires_at = 1";
    assert_eq!(runtime.block_on(sql(expire)), 1);
    refused(
        &get(&gateway, &path(&first)),
        404,
        "response_not_found",
        None,
    );
    let asked = json!({"model": "chat", "input": "two", "previous_response_id": id(&first)});
    refused(
        &send(&gateway, &asked),
        400,
        "previous_response_not_found",
        Some("previous_response_id"),
    );
    let gateway = gateway.restart();
    found("the row is deleted", || {
        (runtime.block_on(sql("SELECT 1")) == 0).then_some(())
    });
    drop(gateway);
}

#[test]
fn a_gateway_that_keeps_no_responses_says_so() {
    let provider = scripted::provider();
    let gateway = scripted::gateway(&provider);
    for (more, param) in [
        (json!({"store": true}), "store"),
        (json!({"background": true}), "background"),
        (
            json!({"previous_response_id": "resp_wg_1"}),
            "previous_response_id",
        ),
    ] {
        let mut asked = json!({"model": "chat", "input": "one"});
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let answer = send(&gateway, &asked);
        assert_eq!(answer.status(), 400);
        assert_eq!(answer.json()["error"]["param"], param);
        assert!(
            answer.text().contains("[responses] store"),
            "{}",
            answer.text()
        );
    }
    let told = response(&send(&gateway, &json!({"model": "chat", "input": "one"})));
    assert_eq!(told["store"], false);
    let answer = get(
        &gateway,
        &format!("/v1/responses/{}", told["id"].as_str().unwrap()),
    );
    assert_eq!(answer.status(), 404);
    assert!(provider.requests().len() == 1);
}

#[test]
fn a_response_that_breaks_off_is_not_kept() {
    let provider = saying(|_| {
        Turn {
            breaks: true,
            ..Turn::text("one two three four five six seven eight")
        }
        .into()
    });
    let gateway = gateway(&provider);
    for model in MODELS {
        let asked = json!({"model": model, "input": "one", "store": true, "stream": true});
        let answer = send(&gateway, &asked);
        if answer.status() != 200 {
            continue;
        }
        let told = response(&answer);
        assert_eq!(told["status"], "failed", "{model}");
        refused(
            &get(&gateway, &path(&told)),
            404,
            "response_not_found",
            None,
        );
    }
}

/// Waits until `look` finds something.
pub fn found<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    let mut look = look;
    let mut looks = every(POLL, SOON).map(|_| look());
    looks
        .find_map(|found| found)
        .unwrap_or_else(|| panic!("{what} does not come"))
}

/// How long a test waits for what goes on in the background.
pub const SOON: Duration = Duration::from_secs(20);
