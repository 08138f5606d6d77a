//! `POST /v1/completions`: base models over their own API, and chat models over every other. Source: docs/completions.md.

use serde_json::{Value, json};

use crate::ledger::used;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::{Cut, Reply};
use crate::support::scripted;
use crate::support::upstream::{Received, Upstream};

/// A model that two providers serve: base models over their own API.
const MODELS: &str = r#"
[[models]]
id = "base"
[[models.providers]]
provider = "first"
name = "base-at-first"
wire = "completions"
input_price = "2.5"
output_price = "10"
capabilities = ["streaming", "n", "cancellation"]
[[models.providers]]
provider = "second"
name = "base-at-second"
wire = "completions"
input_price = "5"
output_price = "20"
capabilities = ["streaming", "n", "cancellation"]
[[models]]
id = "mixed"
[[models.providers]]
provider = "first"
name = "mixed-chat"
input_price = "1"
output_price = "1"
capabilities = ["streaming", "n", "cancellation"]
[[models.providers]]
provider = "second"
name = "mixed-base"
wire = "completions"
input_price = "5"
output_price = "20"
capabilities = ["streaming", "n", "cancellation"]
"#;

/// What a base model says to a request, as an answer or as events.
pub fn said(request: &Received) -> Reply {
    let head = json!({"id": "cmpl-up", "object": "text_completion", "created": 5, "model": "up"});
    let with = |members: Value| {
        let mut body = head.clone();
        let members = members.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(members);
        body
    };
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100});
    let body = request.json();
    let logprobs = body["logprobs"]
        .is_number()
        .then(|| json!({"tokens": [" on"], "token_logprobs": [-0.25], "top_logprobs": [{" on": -0.25}], "text_offset": [4]}));
    let choice = |text: &str, finish: Value| json!([{"index": 0, "text": text, "logprobs": logprobs, "finish_reason": finish}]);
    if body["stream"] != true {
        let choices = choice(" on a time", "length".into());
        return Reply::json(
            200,
            with(json!({"choices": choices, "usage": usage})).to_string(),
        );
    }
    let events = [
        with(json!({"choices": choice(" on", Value::Null)})).to_string(),
        with(json!({"choices": choice(" a time", Value::Null)})).to_string(),
        with(json!({"choices": choice("", "length".into())})).to_string(),
        with(json!({"choices": [], "usage": usage})).to_string(),
        "[DONE]".to_owned(),
    ];
    Reply::sse(events.iter().map(String::as_str))
}

fn between(first: &Upstream, second: &Upstream) -> Gateway {
    let provider = |name: &str, upstream: &Upstream| {
        let url = upstream.url();
        format!(
            "[providers.{name}]\nkind = \"openai-compatible\"\nbase_url = \"{url}/v1\"\nkeys = []\n"
        )
    };
    let toml = [provider("first", first), provider("second", second)].concat();
    Gateway::start(&toml, MODELS)
}

fn send(gateway: &Gateway, path: &str, body: &Value) -> Answer {
    let asked = Ask::post(path, body.to_string()).key(&gateway.key);
    ask(gateway.address(), &asked)
}

fn complete(gateway: &Gateway, body: &Value) -> Answer {
    send(gateway, "/v1/completions", body)
}

/// The data of all events but the last.
fn events(answer: &Answer) -> Vec<Value> {
    let lines = answer.text().lines();
    let data = lines.filter_map(|line| line.strip_prefix("data: "));
    let data = data.filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn a_base_model_gets_the_body_as_it_came_and_the_next_is_tried() {
    let (first, second) = (
        Upstream::always(Reply::json(500, "{}")),
        Upstream::answering(said),
    );
    let gateway = between(&first, &second);
    let body = json!({"model": "base", "prompt": ["Once", "Twice"], "suffix": "end", "echo": true, "logprobs": 1,
        "best_of": 2, "max_tokens": 3, "stop": ["x"], "top_k": 5, "routing": "price"});
    let answer = complete(&gateway, &body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let answer = answer.json();
    let sent = second.request(0);
    assert_eq!(sent.path, "/v1/completions");
    assert_eq!(
        sent.json(),
        json!({"model": "base-at-second", "prompt": ["Once", "Twice"], "suffix": "end", "echo": true, "logprobs": 1,
            "best_of": 2, "max_tokens": 3, "stop": ["x"], "top_k": 5})
    );
    let choice = &answer["choices"][0];
    assert_eq!(
        (&choice["text"], &choice["finish_reason"]),
        (&json!(" on a time"), &json!("length"))
    );
    assert_eq!(choice["logprobs"]["text_offset"], json!([4]));
    assert_eq!(
        (&answer["id"], &answer["object"]),
        (&json!("cmpl-up"), &json!("text_completion"))
    );
    assert_eq!(answer["model"], "second/base");
    let routing = answer["metadata"]["routing"].as_array().unwrap();
    let statuses: Vec<&Value> = routing.iter().map(|it| &it["status_code"]).collect();
    assert_eq!(statuses, [500, 200]);
    // 1000 tokens at 5, and 100 at 20 USD per million.
    assert_eq!(answer["usage"]["cost"].to_string(), "0.007");
    used(&gateway, "0.007");
}

#[test]
fn events_of_a_base_model_pass_with_usage_and_an_end() {
    let upstream = Upstream::answering(said);
    let gateway = between(&upstream, &upstream);
    for includes_usage in [false, true] {
        let body = json!({"model": "first/base", "prompt": [1, 2], "logprobs": 0, "stream": true,
            "stream_options": {"include_usage": includes_usage}});
        let answer = complete(&gateway, &body);
        assert!(
            answer.text().ends_with("data: [DONE]\n\n"),
            "{}",
            answer.text()
        );
        let events = events(&answer);
        let (last, said) = events.split_last().unwrap();
        let texts = said
            .iter()
            .map(|event| event["choices"][0]["text"].as_str().unwrap());
        assert_eq!(texts.collect::<String>(), " on a time");
        assert_eq!(said[0]["choices"][0]["logprobs"]["tokens"], json!([" on"]));
        assert_eq!(
            said.last().unwrap()["choices"][0]["finish_reason"],
            "length"
        );
        assert_eq!(last["usage"]["total_tokens"], 1100);
        assert_eq!(last["metadata"]["used_provider"], "first");
        let count = last["choices"].as_array().unwrap().len();
        assert_eq!(count, usize::from(!includes_usage));
    }
    // No limit is that of the vendor.
    assert_eq!(upstream.request(0).json()["max_tokens"], 16);
    assert_eq!(
        upstream.request(0).json()["stream_options"],
        json!({"include_usage": true})
    );
}

#[test]
fn what_a_chat_model_cannot_do_goes_to_base_models_or_is_refused_by_name() {
    let (chat, base) = (
        Upstream::always(Reply::json(500, "{}")),
        Upstream::answering(said),
    );
    let gateway = between(&chat, &base);
    for (more, member) in [
        (json!({"suffix": "end"}), "suffix"),
        (json!({"echo": true}), "echo"),
        (json!({"logprobs": 1}), "logprobs"),
        (json!({"best_of": 2}), "best_of"),
        (json!({"prompt": ["a", "b"]}), "prompt"),
        (json!({"prompt": [1, 2]}), "prompt"),
    ] {
        let body = |model: &str| {
            let mut body = json!({"model": model, "prompt": "Once"});
            let more = more.as_object().unwrap().clone();
            body.as_object_mut().unwrap().extend(more);
            body
        };
        let answer = complete(&gateway, &body("mixed"));
        assert_eq!(answer.status(), 200, "{more}: {}", answer.text());
        assert_eq!(answer.json()["metadata"]["used_provider"], "second");
        let refused = complete(&gateway, &body("first/mixed"));
        let error = refused.json();
        assert_eq!(
            (refused.status(), &error["error"]["param"]),
            (400, &json!(member)),
            "{error}"
        );
        let message = error["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("no provider of this model can serve") && message.contains("knows no"),
            "{message}"
        );
    }
    assert!(chat.requests().is_empty());
    // And a base model answers no chats.
    let body = json!({"model": "base", "messages": [{"role": "user", "content": "Hi"}]});
    let refused = send(&gateway, "/v1/chat/completions", &body);
    let error = refused.json();
    assert_eq!(
        (refused.status(), &error["error"]["param"]),
        (400, &json!("model")),
        "{error}"
    );
}

#[test]
fn a_base_model_that_breaks_off_ends_in_an_error() {
    let choice = json!([{"index": 0, "text": "hello wo", "logprobs": null, "finish_reason": null}]);
    let begun = Reply::stream().event(&json!({"id": "c", "choices": choice}).to_string());
    let upstream = Upstream::always(begun.cut(usize::MAX, Cut::Close));
    let gateway = between(&upstream, &upstream);
    let answer = complete(
        &gateway,
        &json!({"model": "base", "prompt": "Hi", "stream": true}),
    );
    let (said, error) = answer.text().split_once("event: error").unwrap();
    assert!(
        said.contains("hello wo") && !answer.text().contains("[DONE]"),
        "{said}"
    );
    assert!(error.contains("\"usage\""), "{error}");
    assert_eq!(upstream.requests().len(), 1, "content has gone out");
}

#[test]
fn a_chat_model_of_every_wire_answers_the_prompt() {
    let provider = scripted::provider();
    let gateway = scripted::gateway(&provider);
    for model in scripted::MODELS {
        let body = |more: Value| {
            let mut body =
                json!({"model": model, "prompt": "one two", "temperature": 0.5, "stop": ["\n"]});
            let more = more.as_object().unwrap().clone();
            body.as_object_mut().unwrap().extend(more);
            body
        };
        let whole = complete(&gateway, &body(json!({})));
        assert_eq!(whole.status(), 200, "{model}: {}", whole.text());
        let whole = whole.json();
        let choice = json!({"text": "You said: one two", "index": 0, "logprobs": null, "finish_reason": "stop"});
        assert_eq!(whole["choices"], json!([choice]), "{model}");
        assert_eq!(whole["usage"]["total_tokens"], 14, "{model}");
        let streamed = complete(&gateway, &body(json!({"stream": true})));
        let events = events(&streamed);
        let texts = events
            .iter()
            .map(|event| event["choices"][0]["text"].as_str().unwrap());
        assert_eq!(texts.collect::<String>(), "You said: one two", "{model}");
        // The text ends before what is asked for, whatever the provider does.
        let cut = complete(&gateway, &body(json!({"stop": "said"}))).json();
        let choice = &cut["choices"][0];
        assert_eq!(
            (&choice["text"], &choice["finish_reason"]),
            (&json!("You "), &json!("stop")),
            "{model}"
        );
    }
}

#[test]
fn a_chat_model_gets_the_options_of_a_text() {
    let upstream = Upstream::always(crate::models::fronts::chat_completions::reply());
    let gateway = between(&upstream, &upstream);
    let body = json!({"model": "first/mixed", "prompt": "Hi", "n": 2, "max_tokens": 7, "seed": 3, "logit_bias": {"5": 1}, "user": "u",
        "presence_penalty": 0.5, "frequency_penalty": -0.5, "top_p": 0.5, "stop": "x", "suffix": null, "top_k": 4});
    assert_eq!(complete(&gateway, &body).status(), 200);
    let sent = upstream.request(0);
    assert_eq!(sent.path, "/v1/chat/completions");
    assert_eq!(
        sent.json(),
        json!({"model": "mixed-chat", "messages": [{"role": "user", "content": "Hi"}], "n": 2, "max_tokens": 7, "seed": 3,
            "logit_bias": {"5": 1}, "user": "u", "presence_penalty": 0.5, "frequency_penalty": -0.5, "top_p": 0.5, "stop": ["x"]})
    );
}
