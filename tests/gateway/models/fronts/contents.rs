//! `:generateContent` and `:streamGenerateContent` over every wire. Source: docs/facts/contents.md.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::grammars::contents::{StreamEnd, chunks, fold};
use crate::support::script::Reply;
use crate::support::scripted::{
    Asked, MODELS, Said, Turn, found_page, gateway, gateway_with, gateway_with_search, saying,
};
use crate::support::upstream::Upstream;

/// Asks a model at `/v1beta`, with its method and query.
pub fn send(gateway: &Gateway, model: &str, method: &str, body: &Value) -> Answer {
    let path = format!("/v1beta/models/{model}:{method}");
    let asked = Ask::post(&path, body.to_string()).header("x-goog-api-key", &gateway.key);
    ask(gateway.address(), &asked)
}

const WHOLE: &str = "generateContent";
const EVENTS: &str = "streamGenerateContent?alt=sse";
const ARRAY: &str = "streamGenerateContent";

/// How a stream has ended; its grammar is checked.
fn ended(answer: &Answer) -> StreamEnd {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let text = answer.text();
    let kind = answer.header("content-type").unwrap_or_default();
    let folded = match kind.starts_with("text/event-stream") {
        true => fold(chunks(text).unwrap()),
        false => {
            let list: Vec<Value> = serde_json::from_str(text).unwrap();
            let list: Vec<String> = list.iter().map(Value::to_string).collect();
            fold(list.iter().map(String::as_str))
        }
    };
    let folded = folded.unwrap_or_else(|why| panic!("{why}\n{text}"));
    folded.unwrap_or_else(|| panic!("nothing ended {text}"))
}

fn response(answer: &Answer, method: &str) -> Value {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    if method == WHOLE {
        return answer.json();
    }
    match ended(answer) {
        StreamEnd::Response(response) => response,
        StreamEnd::Error(error, _) => panic!("{error}"),
    }
}

/// Asks in each of the three forms, and returns the answer, which is the same in all.
fn answered(gateway: &Gateway, model: &str, body: &Value) -> Value {
    let bare = |response: &Value| {
        let mut content = response["candidates"][0]["content"].clone();
        for part in content["parts"].as_array_mut().unwrap() {
            let part = part.as_object_mut().unwrap();
            part.remove("thoughtSignature");
            if let Some(call) = part.get_mut("functionCall") {
                call.as_object_mut().unwrap().remove("id");
            }
        }
        content
    };
    let whole = response(&send(gateway, model, WHOLE, body), WHOLE);
    for method in [EVENTS, ARRAY] {
        let streamed = response(&send(gateway, model, method, body), method);
        assert_eq!(bare(&streamed), bare(&whole), "{model} {method}");
        for key in ["usageMetadata", "modelVersion"] {
            assert_eq!(streamed[key], whole[key], "{model} {method}");
        }
        assert!(streamed["weirgate"]["metadata"]["routing"].is_array());
    }
    whole
}

fn parts(response: &Value) -> &[Value] {
    let parts = response["candidates"][0]["content"]["parts"].as_array();
    parts.unwrap()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

fn first_turn() -> Value {
    json!({"contents": [user("Read a")], "systemInstruction": {"role": "user", "parts": [{"text": "Be kind."}]},
        "tools": [{"functionDeclarations": [{"name": "read", "description": "Reads a file.",
            "parameters": {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}}}]}],
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": true}}})
}

/// A model that reads a file, and then tells what it holds.
fn reads(asked: &Asked) -> Said {
    if asked.has_result {
        let seen = asked.results.last().cloned().unwrap_or_default();
        return Turn::text(format!("It says: {seen}")).into();
    }
    let turn = Turn::call("read", json!({"path": "a"}));
    Turn {
        reasoning: Some("hm".to_owned()),
        text: Some("Let me look.".to_owned()),
        ..turn
    }
    .into()
}

/// The history behind an answer, with the result of its call.
fn history(answer: &Value) -> Value {
    let calls = parts(answer)
        .iter()
        .filter_map(|part| part.get("functionCall"));
    let results = calls.map(|call| {
        json!({"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "A cat."}}})
    });
    // Gemini CLI keeps no thoughts.
    let said = parts(answer)
        .iter()
        .filter(|part| part.get("thought").is_none());
    json!([user("Read a"), {"role": "model", "parts": said.cloned().collect::<Value>()},
        {"role": "user", "parts": results.collect::<Value>()}])
}

#[test]
fn any_model_answers_in_each_form_and_goes_on() {
    let provider = saying(reads);
    let gateway = gateway(&provider);
    for model in MODELS {
        let mut asked = first_turn();
        let answer = answered(&gateway, model, &asked);
        let candidate = &answer["candidates"][0];
        assert_eq!(candidate["finishReason"], "STOP", "{model}");
        assert_eq!(answer["modelVersion"], json!(model));
        assert_eq!(answer["usageMetadata"]["promptTokenCount"], 9, "{model}");
        let kinds: Vec<_> = parts(&answer)
            .iter()
            .map(|part| (part.get("thought").is_some(), part["text"].as_str()))
            .collect();
        assert_eq!(
            kinds[..3],
            [
                (true, Some("hm")),
                (false, Some("Let me look.")),
                (false, None)
            ],
            "{model}: {answer}"
        );
        asked["contents"] = history(&answer);
        let next = answered(&gateway, model, &asked);
        assert_eq!(parts(&next)[0]["text"], "It says: A cat.", "{model}");
        // What only its maker reads has come back to it, as it was said.
        let sent = provider.requests().pop().unwrap().json().to_string();
        let state = match model {
            "chat" => continue,
            "items" => "\"encrypted_content\":\"gAAA\"",
            "blocks" => "\"signature\":\"sig\"",
            _ => "\"thoughtSignature\":\"c2ln\"",
        };
        assert!(sent.contains(state), "{model}: {sent}");
        assert!(!sent.contains("WGS1"), "{model}: {sent}");
    }
}

#[test]
fn state_of_another_maker_stays_behind_and_the_conversation_goes_on() {
    let provider = saying(reads);
    let gateway = gateway(&provider);
    for (one, other) in [
        ("blocks", "items"),
        ("items", "parts"),
        ("parts", "blocks"),
        ("chat", "parts"),
    ] {
        let mut asked = first_turn();
        let first = response(&send(&gateway, one, WHOLE, &asked), WHOLE);
        asked["contents"] = history(&first);
        let answer = response(&send(&gateway, other, WHOLE, &asked), WHOLE);
        assert_eq!(
            parts(&answer)[0]["text"],
            "It says: A cat.",
            "{one} {other}"
        );
        let sent = provider.requests().pop().unwrap().json().to_string();
        assert!(!sent.contains("WGS1"), "{one} {other}: {sent}");
    }
}

#[test]
fn a_request_of_the_same_dialect_is_spliced() {
    let provider = saying(|_| Turn::text("Hi").into());
    let gateway = gateway(&provider);
    let asked = json!({"contents": [{"role": "user", "parts": [{"text": "Hi", "new": 1}]}], "safetySettings": [{"category": "x"}],
        "generationConfig": {"topK": 3, "maxOutputTokens": 64000, "new": [null]}, "unknown": {"a": [1]}, "routing": "price"});
    let method = "streamGenerateContent?alt=sse&key=";
    let path = format!("//v1beta/models/parts:{method}{}", gateway.key);
    let answer = ask(gateway.address(), &Ask::post(&path, asked.to_string()));
    response(&answer, EVENTS);
    let sent = provider.requests().pop().unwrap();
    assert_eq!(
        &*sent.path,
        "/v1beta/models/up-parts:streamGenerateContent?alt=sse"
    );
    assert_eq!(sent.header("x-goog-api-key"), Some("sk-first"));
    let mut expected = asked.clone();
    expected.as_object_mut().unwrap().remove("routing");
    expected["generationConfig"]["maxOutputTokens"] = 32000.into();
    assert_eq!(sent.json(), expected);
}

#[test]
fn the_key_stands_in_a_header_or_in_the_query_and_is_not_logged() {
    let provider = saying(|_| Turn::text("Hi").into());
    let gateway = gateway(&provider);
    let body = json!({"contents": [user("Hi")]}).to_string();
    let key = &*gateway.key;
    let asked = |path: &str| Ask::post(&format!("{path}/models/chat:generateContent"), &body);
    let with_query = |query: &str| {
        let path = format!("/v1beta/models/chat:generateContent?{query}");
        Ask::post(&path, &body)
    };
    let encoded = key.replace('_', "%5F");
    for (asked, status) in [
        (asked("/v1beta").key(key), 200),
        (asked("/v1").header("x-goog-api-key", key), 200),
        (asked("/v1").header("x-goog-api-key", "").key(key), 200),
        (asked("/v1beta").header("x-goog-api-key", key).key(key), 200),
        (with_query(&format!("key={key}")), 200),
        (with_query(&format!("key={encoded}&alt=json")), 200),
        (
            with_query(&format!("key={key}")).header("x-goog-api-key", key),
            200,
        ),
        (with_query(&format!("key={key}")).key("wg_other"), 400),
        (with_query(&format!("key={key}&key={key}")), 400),
        (
            asked("/v1")
                .header("x-goog-api-key", key)
                .header("x-api-key", "other"),
            400,
        ),
        (with_query("key=wrong"), 401),
        (with_query("key="), 401),
        (asked("/v1beta"), 401),
    ] {
        let answer = ask(gateway.address(), &asked);
        assert_eq!(answer.status(), status, "{asked:?}: {}", answer.text());
        assert!(!answer.text().contains(key), "{}", answer.text());
        let id = answer.header("x-request-id").unwrap();
        let line = gateway.log_line(id).to_string();
        assert!(!line.contains(key) && !line.contains(&encoded), "{line}");
        if status == 401 {
            let error = &answer.json()["error"];
            assert_eq!(
                (&error["code"], &error["status"]),
                (&json!(401), &json!("UNAUTHENTICATED"))
            );
            assert_eq!(error["details"][0]["reason"], "API_KEY_INVALID");
        }
    }
    for sent in provider.requests() {
        assert!(
            !format!("{:?}", sent.path).contains("key="),
            "{}",
            sent.path
        );
    }
    // Other paths take none from the query.
    let path = format!("/v1/chat/completions?key={key}");
    let chat = json!({"model": "chat", "messages": [{"role": "user", "content": "Hi"}]});
    let answer = ask(gateway.address(), &Ask::post(&path, chat.to_string()));
    assert_eq!(answer.status(), 401);
}

#[test]
fn errors_are_in_the_words_of_the_vendor() {
    let provider = saying(|asked| match asked.holds("Later") {
        true => Said::Reply(Reply::whole(
            429,
            &[("Retry-After", "7")],
            r#"{"error":{"message":"slow down"}}"#,
        )),
        false => Turn::text("Hi").into(),
    });
    let gateway = gateway(&provider);
    for (model, body, status, word) in [
        ("chat", json!({}), 400, "INVALID_ARGUMENT"),
        (
            "chat",
            json!({"contents": [user("a")], "tools": [{"codeExecution": {}}]}),
            400,
            "INVALID_ARGUMENT",
        ),
        ("nobody", json!({"contents": [user("a")]}), 404, "NOT_FOUND"),
        (
            "@prompt/x",
            json!({"contents": [user("a")]}),
            400,
            "INVALID_ARGUMENT",
        ),
    ] {
        let answer = send(&gateway, model, WHOLE, &body);
        assert_eq!(answer.status(), status, "{}", answer.text());
        let error = &answer.json()["error"];
        assert_eq!(
            (&error["code"], &error["status"]),
            (&json!(status), &json!(word))
        );
    }
    for model in MODELS {
        for method in [WHOLE, EVENTS, ARRAY] {
            let answer = send(
                &gateway,
                model,
                method,
                &json!({"contents": [user("Later")]}),
            );
            let error = &answer.json()["error"];
            assert!([429, 503].contains(&answer.status()), "{}", answer.text());
            let details = error["details"].as_array().unwrap();
            let waits = details.iter().any(|it| it["retryDelay"].is_string());
            assert_eq!(waits, answer.header("retry-after").is_some(), "{error}");
        }
    }
    let bad = send(
        &gateway,
        "chat",
        "streamGenerateContent?alt=media",
        &json!({"contents": [user("a")]}),
    );
    assert_eq!(bad.status(), 400);
    let unknown = send(&gateway, "chat", "predict", &json!({}));
    assert_eq!(unknown.status(), 405);
}

#[test]
fn a_stream_that_breaks_ends_with_an_error_on_every_wire() {
    let provider = saying(|_| {
        Said::Turn(Turn {
            breaks: true,
            // The first half of the text is in the first half of the stream.
            ..Turn::text("Let me look at it, one by one. ".repeat(200))
                .and_call("read", json!({"path": "a".repeat(4000)}))
        })
    });
    let gateway = gateway(&provider);
    for model in MODELS {
        for method in [EVENTS, ARRAY] {
            let answer = send(&gateway, model, method, &json!({"contents": [user("Hi")]}));
            let StreamEnd::Error(error, said) = ended(&answer) else {
                panic!("{model} {method}: {}", answer.text());
            };
            assert!(error["code"].as_u64() >= Some(500), "{error}");
            assert!(said["candidates"][0]["finishReason"].is_null(), "{said}");
        }
    }
}

#[test]
fn a_silent_stream_has_comments_between_its_events_and_an_array_has_none() {
    let provider = saying(|asked| {
        let silence = asked.holds("Slowly").then_some(Duration::from_millis(1600));
        let turn = Turn::text("Let me look at it, one by one.");
        Turn { silence, ..turn }.into()
    });
    let gateway = gateway_with(&provider, "[routing]\nkeepalive_s = 1", "", "1");
    let check = |model: &str, method: &str| {
        let slow = send(
            &gateway,
            model,
            method,
            &json!({"contents": [user("Slowly")]}),
        );
        let quick = send(
            &gateway,
            model,
            method,
            &json!({"contents": [user("Quickly")]}),
        );
        let comments = slow.text().lines().filter(|line| line.starts_with(':'));
        let least = if method == EVENTS { 3 } else { 0 };
        assert!(comments.count() >= least, "{model}: {}", slow.text());
        let (slow, quick) = (response(&slow, method), response(&quick, method));
        assert_eq!(parts(&slow), parts(&quick), "{model} {method}");
    };
    std::thread::scope(|scope| {
        for model in MODELS {
            for method in [EVENTS, ARRAY] {
                scope.spawn(move || check(model, method));
            }
        }
    });
}

#[test]
fn the_gateway_searches_the_web_for_models_that_have_no_search() {
    let provider = saying(|asked| match asked.has_result {
        true => Turn::text("Cats are small.").into(),
        false => Turn::call("web_search", json!({"query": "cats"})).into(),
    });
    let finder = Upstream::always(found_page());
    let gateway = gateway_with_search(&provider, &finder, "1000");
    let asked = json!({"contents": [user("How big are cats?")], "tools": [{"googleSearch": {}}]});
    for model in ["chat", "items", "blocks"] {
        for method in [WHOLE, EVENTS, ARRAY] {
            let answer = response(&send(&gateway, model, method, &asked), method);
            let candidate = &answer["candidates"][0];
            let grounds = &candidate["groundingMetadata"];
            assert_eq!(
                grounds["webSearchQueries"],
                json!(["cats"]),
                "{model} {method}: {answer}"
            );
            let page = json!({"web": {"uri": "https://cats.test", "title": "Cats"}});
            assert_eq!(grounds["groundingChunks"], json!([page]));
            let said = parts(&answer)
                .iter()
                .filter_map(|part| part["text"].as_str());
            assert_eq!(
                said.collect::<String>(),
                "Cats are small.",
                "{model} {method}"
            );
            assert!(!answer.to_string().contains("functionCall"), "{answer}");
        }
    }
}

#[test]
fn one_choice_of_several_is_told_by_its_index() {
    let provider = saying(|_| Turn::text("Hi").into());
    let gateway = gateway(&provider);
    let asked = json!({"contents": [user("Hi")], "generationConfig": {"candidateCount": 2}});
    // The scripted models answer one choice.
    let answer = send(&gateway, "blocks", WHOLE, &asked);
    assert_eq!(answer.status(), 400, "{}", answer.text());
    let message = answer.json()["error"]["message"].to_string();
    assert!(
        message.contains("generationConfig.candidateCount"),
        "{message}"
    );
}
