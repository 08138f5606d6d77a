//! `POST /v1/responses` over every wire. Source: docs/facts/responses.md.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::grammars::messages::events;
use crate::support::grammars::responses::fold;
use crate::support::script::Reply;
use crate::support::scripted::{
    self, Asked, MODELS, Said, Turn, found_page, gateway, gateway_with, gateway_with_search, saying,
};
use crate::support::upstream::Upstream;

pub fn send(gateway: &Gateway, body: &Value) -> Answer {
    let asked = Ask::post("/v1/responses", body.to_string()).key(&gateway.key);
    ask(gateway.address(), &asked)
}

/// The response of an answer, whole or streamed; the grammar of a stream is checked.
pub fn response(answer: &Answer) -> Value {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let is_stream = answer
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    if !is_stream {
        return answer.json();
    }
    let events = events(answer.text()).unwrap();
    let folded = fold(events.into_iter());
    folded.unwrap_or_else(|why| panic!("{why}\n{}", answer.text()))
}

/// Items without the ids that each call makes anew, and without state.
fn bare(response: &Value) -> Value {
    let items = response["output"].as_array().unwrap().iter();
    let bare = items.map(|item| {
        let mut item = item.clone();
        let members = item.as_object_mut().unwrap();
        for key in ["id", "encrypted_content", "call_id"] {
            members.remove(key);
        }
        item
    });
    bare.collect()
}

pub fn tools() -> Value {
    json!([{"type": "function", "name": "read", "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}, "strict": false}])
}

fn first_turn(model: &str) -> Value {
    json!({"model": model, "tools": tools(), "instructions": "Be kind.", "input": "Read a", "reasoning": {"effort": "low", "summary": "auto"}})
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

#[test]
fn any_model_answers_whole_and_as_events_and_goes_on() {
    let provider = saying(reads);
    let gateway = gateway(&provider);
    for model in MODELS {
        let mut asked = first_turn(model);
        let whole = response(&send(&gateway, &asked));
        assert_eq!(
            (&whole["model"], &whole["status"]),
            (&json!(model), &json!("completed"))
        );
        asked["stream"] = true.into();
        let streamed = response(&send(&gateway, &asked));
        assert_eq!(bare(&streamed), bare(&whole), "{model}");
        for answer in [&whole, &streamed] {
            assert_eq!(answer["usage"]["output_tokens"], 5, "{model}");
            let routing = &answer["weirgate"]["metadata"]["routing"];
            assert_eq!(routing[0]["model"], format!("up-{model}"));
        }
        let items = streamed["output"].as_array().unwrap();
        let kinds: Vec<&Value> = items.iter().map(|item| &item["type"]).collect();
        let expected = match model {
            // The signature of a call stands before it.
            "parts" => vec!["reasoning", "message", "reasoning", "function_call"],
            _ => vec!["reasoning", "message", "function_call"],
        };
        assert_eq!(kinds, expected, "{model}");
        // The next turn: the history as it was told, the result, and the answer to it.
        let mut history = vec![json!({"role": "user", "content": "Read a"})];
        history.extend(items.iter().cloned());
        let call = &items.last().unwrap()["call_id"];
        history.push(json!({"type": "function_call_output", "call_id": call, "output": "A cat."}));
        asked["input"] = history.into();
        let answer = response(&send(&gateway, &asked));
        let said = answer["output"].as_array().unwrap().last().unwrap();
        assert_eq!(said["content"][0]["text"], "It says: A cat.", "{model}");
        // What only its maker reads has come back to it, as it was said.
        let sent = provider.requests().pop().unwrap().json().to_string();
        let state = match model {
            "chat" => continue,
            "items" => "\"encrypted_content\":\"gAAA\"",
            "blocks" => "\"signature\":\"sig\"",
            _ => "\"thoughtSignature\":\"c2ln\"",
        };
        assert!(sent.contains(state), "{model}: {sent}");
        assert!(!sent.contains("_wg_"), "{model}: {sent}");
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
        ("chat", "items"),
    ] {
        let first = response(&send(&gateway, &first_turn(one)));
        let items = first["output"].as_array().unwrap();
        let mut history = vec![json!({"type": "message", "role": "user", "content": "Read a"})];
        history.extend(items.iter().cloned());
        let call = &items.last().unwrap()["call_id"];
        history.push(json!({"type": "function_call_output", "call_id": call, "output": [{"type": "input_text", "text": "A cat."}]}));
        let mut asked = first_turn(other);
        asked["input"] = history.into();
        let answer = response(&send(&gateway, &asked));
        let said = answer["output"].as_array().unwrap().last().unwrap();
        assert_eq!(
            said["content"][0]["text"], "It says: A cat.",
            "{one} {other}"
        );
        let sent = provider.requests().pop().unwrap().json().to_string();
        assert!(
            !sent.contains("WGS1") && !sent.contains("_wg_"),
            "{one} {other}: {sent}"
        );
    }
}

/// What a client with tools of all forms sends, and a model that calls the one that its prompt names.
fn offers_all(model: &str, prompt: &str) -> Value {
    json!({"model": model, "stream": true, "input": [
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "namespace", "name": "functions", "description": "d", "tools": [{"type": "custom", "name": "exec", "description": "Runs."}]}]},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}],
        "tools": [
            {"type": "custom", "name": "apply_patch", "description": "Edits.", "format": {"type": "grammar", "syntax": "lark", "definition": "start: patch"}},
            {"type": "namespace", "name": "mcp__files", "description": "d", "tools": [{"type": "function", "name": "list", "parameters": {"type": "object"}}]},
            {"type": "function", "name": "hidden", "defer_loading": true, "parameters": {"type": "object"}},
            {"type": "tool_search", "execution": "client", "description": "Finds.", "parameters": {"type": "object"}},
            {"type": "web_search", "external_web_access": false}]})
}

#[test]
fn tools_of_all_forms_are_called_and_answered_on_models_that_know_functions_alone() {
    let provider = saying(|asked| {
        if asked.has_result {
            return Turn::text(asked.results.last().cloned().unwrap_or_default()).into();
        }
        let calls = [
            ("patch", "apply_patch", json!({"input": "*** a\n\"b\""})),
            ("exec", "functions__exec", json!({"input": "ls"})),
            ("list", "mcp__files__list", json!({"path": "."})),
            ("find", "tool_search", json!({"query": "hidden"})),
        ];
        let called = calls
            .into_iter()
            .find(|(word, ..)| asked.holds(&format!("Do {word}")));
        let (_, name, input) = called.unwrap();
        assert!(asked.offers(name), "{:?}", asked.tools);
        assert!(
            !asked.offers("hidden") && !asked.offers("web_search"),
            "{:?}",
            asked.tools
        );
        Turn::call(name, input).into()
    });
    let gateway = gateway(&provider);
    let expected = |word: &str| match word {
        "patch" => (
            json!({"type": "custom_tool_call", "status": "completed", "name": "apply_patch", "input": "*** a\n\"b\""}),
            "custom_tool_call_output",
        ),
        "exec" => (
            json!({"type": "custom_tool_call", "status": "completed", "name": "exec", "namespace": "functions", "input": "ls"}),
            "custom_tool_call_output",
        ),
        "list" => (
            json!({"type": "function_call", "status": "completed", "name": "list", "namespace": "mcp__files", "arguments": "{\"path\":\".\"}"}),
            "function_call_output",
        ),
        _ => (
            json!({"type": "tool_search_call", "status": "completed", "execution": "client", "arguments": {"query": "hidden"}}),
            "tool_search_output",
        ),
    };
    for model in ["chat", "blocks", "parts"] {
        for word in ["patch", "exec", "list", "find"] {
            let mut asked = offers_all(model, &format!("Do {word}"));
            let answer = response(&send(&gateway, &asked));
            let (item, output) = expected(word);
            let items = bare(&answer);
            assert_eq!(
                items.as_array().unwrap().last().unwrap(),
                &item,
                "{model} {word}"
            );
            let said = answer["output"].as_array().unwrap();
            let input = asked["input"].as_array_mut().unwrap();
            input.extend(said.iter().cloned());
            let mut result = json!({"type": output, "call_id": said.last().unwrap()["call_id"], "output": "Done."});
            if word == "find" {
                let tool = json!({"type": "function", "name": "hidden", "defer_loading": true, "parameters": {"type": "object"}});
                result = json!({"type": output, "call_id": result["call_id"], "execution": "client", "status": "completed", "tools": [tool]});
            }
            input.push(result);
            let answer = response(&send(&gateway, &asked));
            let text = &answer["output"][0]["content"][0]["text"];
            match word {
                "find" => {
                    assert_eq!(text, "These tools can be called now: hidden.", "{model}");
                    let sent = provider.requests().pop().unwrap().json();
                    assert!(
                        sent["tools"].to_string().contains("hidden"),
                        "{model}: {sent}"
                    );
                }
                _ => assert_eq!(text, "Done.", "{model} {word}"),
            }
        }
    }
}

#[test]
fn what_only_hosts_of_the_dialect_know_reaches_them_and_is_refused_elsewhere_by_name() {
    let provider = saying(|_| Turn::text("Hi").into());
    let gateway = gateway(&provider);
    let more = [
        (
            "tools",
            json!([{"type": "code_interpreter", "container": {"type": "auto"}}]),
        ),
        ("top_logprobs", json!(2)),
        (
            "input",
            json!([{"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": []}, "status": "completed"}, {"role": "user", "content": "Hi"}]),
        ),
        (
            "input",
            json!([{"type": "never_seen", "x": [1]}, {"role": "user", "content": "Hi"}]),
        ),
        ("tool_choice", json!({"type": "computer"})),
    ];
    for (key, value) in more {
        for model in MODELS {
            let mut asked = json!({"model": model, "input": "Hi"});
            asked[key] = value.clone();
            let answer = send(&gateway, &asked);
            if model == "items" {
                response(&answer);
                let sent = provider.requests().pop().unwrap().json();
                assert_eq!(sent[key], value, "{sent}");
                continue;
            }
            assert_eq!(answer.status(), 400, "{model} {key}: {}", answer.text());
            let error = &answer.json()["error"];
            let param = error["param"].as_str().unwrap();
            assert!(param.starts_with(key), "{error}");
        }
    }
    // Unknown members pass where they may be known, and change nothing elsewhere.
    for model in MODELS {
        let mut asked = first_turn(model);
        asked["client_metadata"] = json!({"a": "b"});
        response(&send(&gateway, &asked));
        let sent = provider.requests().pop().unwrap().json();
        assert_eq!(
            sent.get("client_metadata").is_some(),
            model == "items",
            "{sent}"
        );
    }
}

#[test]
fn a_body_of_the_same_dialect_is_spliced() {
    let provider = saying(|_| Turn::text("Hi").into());
    let gateway = gateway(&provider);
    let asked = json!({"model": "items", "input": "Hi", "store": null, "include": ["file_search_call.results"], "text": {"verbosity": "low", "x": 1},
        "truncation": "auto", "max_output_tokens": 64000, "reasoning": {"effort": "high", "summary": "concise"}, "routing": "price", "metadata": {"a": "b"},
        "service_tier": "auto", "parallel_tool_calls": false, "prompt_cache_key": "k", "safety_identifier": "s"});
    response(&send(&gateway, &asked));
    let sent = provider.requests().pop().unwrap().json();
    let mut expected = asked.clone();
    let members = expected.as_object_mut().unwrap();
    members.remove("routing");
    expected["model"] = "up-items".into();
    expected["input"] = json!([{"type": "message", "role": "user", "content": "Hi"}]);
    expected["store"] = false.into();
    expected["max_output_tokens"] = 32000.into();
    expected["include"] = json!(["file_search_call.results", "reasoning.encrypted_content"]);
    assert_eq!(sent, expected);
}

#[test]
fn state_that_the_gateway_does_not_keep_is_refused_with_the_way_out() {
    let provider = saying(|_| Turn::text("Hi").into());
    let gateway = gateway(&provider);
    for (key, value, param) in [
        ("store", json!(true), "store"),
        ("background", json!(true), "background"),
        (
            "previous_response_id",
            json!("resp_1"),
            "previous_response_id",
        ),
        ("conversation", json!("conv_1"), "conversation"),
        (
            "input",
            json!([{"type": "item_reference", "id": "msg_1"}]),
            "input[0].type",
        ),
    ] {
        let mut asked = json!({"model": "chat", "input": "Hi"});
        asked[key] = value;
        let answer = send(&gateway, &asked);
        assert_eq!(answer.status(), 400, "{key}");
        let error = &answer.json()["error"];
        assert_eq!(error["param"], param);
        let message = error["message"].as_str().unwrap();
        let way = match key {
            // Which is kept nowhere.
            "conversation" => "previous_response_id",
            _ => "[responses] store",
        };
        assert!(message.contains(way), "{message}");
    }
    assert!(provider.requests().is_empty());
    let asked = json!({"model": "chat", "input": "Hi", "store": false, "background": false, "previous_response_id": null});
    assert_eq!(response(&send(&gateway, &asked))["store"], false);
}

#[test]
fn a_stream_that_breaks_has_failed_on_every_wire() {
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
        let answer = send(
            &gateway,
            &json!({"model": model, "input": "Hi", "stream": true}),
        );
        let text = answer.text();
        let events = events(text).unwrap();
        let (name, data) = events.last().unwrap();
        assert_eq!(*name, "response.failed", "{model}: {text}");
        let failed: Value = serde_json::from_str(data).unwrap();
        assert_eq!(failed["response"]["status"], "failed");
        assert!(failed["response"]["error"]["code"].is_string(), "{failed}");
        assert!(failed["response"]["id"].is_string());
        let numbers = events.iter().map(|(_, data)| {
            let event: Value = serde_json::from_str(data).unwrap();
            event["sequence_number"].as_u64().unwrap()
        });
        assert!(numbers.eq(0..events.len() as u64), "{model}: {text}");
        assert!(!text.contains("response.completed"));
    }
}

#[test]
fn signs_of_life_are_events_with_data_and_stand_between_events() {
    let provider = saying(|asked| {
        let silence = asked.holds("Slowly").then_some(Duration::from_millis(1600));
        let turn = Turn::text("Let me look at it, one by one.");
        Turn { silence, ..turn }.into()
    });
    let gateway = gateway_with(&provider, "[routing]\nkeepalive_s = 1", "", "1");
    let check = |model: &str| {
        let answer = send(
            &gateway,
            &json!({"model": model, "input": "Slowly", "stream": true}),
        );
        let slow = response(&answer);
        let signs = answer
            .text()
            .matches("data: {\"type\":\"keepalive\"}\n\n")
            .count();
        assert!(signs >= 3, "{model}: {}", answer.text());
        assert!(!answer.text().lines().any(|line| line.starts_with(':')));
        let quick = send(
            &gateway,
            &json!({"model": model, "input": "Quickly", "stream": true}),
        );
        assert_eq!(bare(&slow), bare(&response(&quick)), "{model}");
    };
    std::thread::scope(|scope| {
        for model in MODELS {
            scope.spawn(move || check(model));
        }
    });
}

#[test]
fn a_search_that_is_offered_is_run_where_it_can_be_and_left_out_where_not() {
    let searches = |asked: &Asked| -> Said {
        if asked.has_result {
            return Turn::text("Cats are small.").into();
        }
        match asked.offers("web_search") {
            true => Turn::call("web_search", json!({"query": "cats"})).into(),
            false => Turn::text("I do not know.").into(),
        }
    };
    let body = |model: &str, is_stream: bool| json!({"model": model, "stream": is_stream, "input": "What are cats?", "tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"]});
    let provider = saying(searches);
    let without = gateway(&provider);
    for model in MODELS {
        let answer = response(&send(&without, &body(model, true)));
        assert_eq!(
            answer["output"][0]["content"][0]["text"], "I do not know.",
            "{model}"
        );
        let mut demanded = body(model, false);
        demanded["tool_choice"] = json!({"type": "web_search"});
        assert_eq!(send(&without, &demanded).status(), 400, "{model}");
    }
    let finder = Upstream::answering(|_| found_page());
    let with = gateway_with_search(&provider, &finder, "10");
    for model in MODELS {
        for is_stream in [false, true] {
            let answer = response(&send(&with, &body(model, is_stream)));
            let output = &answer["output"];
            assert_eq!(output[0]["type"], "web_search_call", "{model}: {answer}");
            assert_eq!(output[0]["status"], "completed");
            let action = json!({"type": "search", "query": "cats", "sources": [{"type": "url", "url": "https://cats.test"}]});
            assert_eq!(output[0]["action"], action, "{model}");
            assert_eq!(output[1]["content"][0]["text"], "Cats are small.");
            let searched = &answer["tool_usage"]["web_search"]["num_requests"];
            assert_eq!(searched, 1, "{model}: {answer}");
        }
    }
}

#[test]
fn errors_have_the_words_that_clients_act_on() {
    let limited = Upstream::always(Reply::json(
        429,
        r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#,
    ));
    let gateway_of_limited = gateway(&limited);
    let too_long = Upstream::always(Reply::json(
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ));
    let gateway_of_long = gateway(&too_long);
    let asked = json!({"model": "chat", "input": "Hi"});
    let refused = send(&gateway_of_long, &asked);
    assert_eq!(refused.status(), 400);
    assert_eq!(refused.json()["error"]["code"], "context_length_exceeded");
    let refused = send(&gateway_of_limited, &asked);
    let error = &refused.json()["error"];
    // A limit of a provider is not one of the caller's.
    assert_eq!(refused.status(), 503, "{error}");
    assert_eq!(error["code"], "server_is_overloaded", "{error}");
}

#[test]
fn another_protocol_is_refused_at_once() {
    let provider = scripted::provider();
    let gateway = gateway(&provider);
    let asked = Ask::get("/v1/responses")
        .key(&gateway.key)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13");
    let refused = ask(gateway.address(), &asked);
    assert_eq!(refused.status(), 426, "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], "upgrade_not_supported");
}

/// What Cursor sends for some models, and reads.
#[test]
fn items_on_the_path_of_chat_completions_are_answered_as_chat_completions() {
    let provider = saying(reads);
    let gateway = gateway(&provider);
    for model in MODELS {
        for is_stream in [false, true] {
            let mut asked = first_turn(model);
            asked["stream"] = is_stream.into();
            asked["tools"]
                .as_array_mut()
                .unwrap()
                .push(json!({"type": "web_search"}));
            let asked = Ask::post("/v1/chat/completions", asked.to_string()).key(&gateway.key);
            let answer = ask(gateway.address(), &asked);
            assert_eq!(answer.status(), 200, "{model}: {}", answer.text());
            if is_stream {
                let text = answer.text();
                assert!(text.contains("chat.completion.chunk"), "{model}: {text}");
                assert!(text.ends_with("data: [DONE]\n\n"), "{model}: {text}");
                assert!(text.contains("\"tool_calls\""), "{model}: {text}");
                continue;
            }
            let message = &answer.json()["choices"][0]["message"];
            assert_eq!(message["content"], "Let me look.", "{model}");
            assert_eq!(
                message["tool_calls"][0]["function"]["name"], "read",
                "{model}"
            );
        }
    }
}
