//! Answers in JSON that are repaired: on each wire, whole and streamed, broken off, and left alone.

use serde_json::{Value, json};

use crate::models::exchange::streams::drain;
use crate::models::fronts::chat_completions::{chunk, usage};
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::script::{Gate, Reply};
use crate::support::upstream::{Received, Upstream};

/// What the providers say, in pieces: an object in a fenced block, with a comma and a quotation mark too many.
pub const SAID: [&str; 3] = ["Here:\n```js", "on\n{a: \"x\",", "}\n```"];
pub const HEALED: &str = r#"{"a":"x"}"#;

pub fn asked(members: &Value) -> String {
    let mut body = json!({"model": "chat", "messages": [{"role": "user", "content": "Hi"}],
        "response_format": {"type": "json_object"}, "plugins": [{"id": "response-healing"}]});
    let members = members.as_object().cloned().unwrap();
    body.as_object_mut().unwrap().extend(members);
    body.to_string()
}

/// A whole answer of the convention that says this.
pub fn whole(said: &str) -> Reply {
    let choice = json!({"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"});
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    Reply::json(
        200,
        json!({"id": "c", "created": 5, "choices": [choice], "usage": usage}).to_string(),
    )
}

/// A stream of the convention that reasons, and then says this in pieces.
pub fn begun(said: &[&str]) -> Reply {
    let role = chunk(json!({"role": "assistant", "content": ""}), None);
    let thought = chunk(json!({"reasoning_content": "Hm."}), None);
    let pieces = said
        .iter()
        .map(|said| chunk(json!({ "content": said }), None));
    let reply = Reply::stream().event(&role).event(&thought);
    pieces.fold(reply, |reply, piece| reply.event(&piece))
}

pub fn streamed(said: &[&str], finish: &str) -> Reply {
    begun(said)
        .event(&chunk(json!({}), Some(finish)))
        .event(&usage())
        .event("[DONE]")
        .end()
}

/// The client's text, and how many pieces it came in.
pub fn text(answer: &Answer) -> (String, usize) {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let is_stream = answer
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    if !is_stream {
        let text = answer.json()["choices"][0]["message"]["content"].clone();
        return (text.as_str().unwrap().to_owned(), 1);
    }
    let events = answer.events();
    assert!(events.is_done(), "{}", answer.text());
    let chunks = events.json();
    let texts = chunks.iter().filter_map(|chunk| {
        let text = chunk["choices"][0]["delta"]["content"].as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    });
    let texts: Vec<String> = texts.collect();
    (texts.concat(), texts.len())
}

/// Asks a gateway in front of a provider of the convention; returns the answer and its log line.
fn told(reply: Reply, members: &Value) -> (Answer, Value) {
    let first = Upstream::always(reply);
    let gateway = Gateway::between(&first.url(), &first.url());
    let request = gateway.chat_ask(asked(members));
    let answer = ask(gateway.address(), &request.header("x-request-id", "healed"));
    let line = gateway.log_line("healed");
    assert_eq!(first.request(0).json().get("plugins"), None);
    (answer, line)
}

/// Contract: model-gateway 2.1 plugins
#[test]
fn an_answer_is_repaired_whole_and_streamed() {
    let said = SAID.concat();
    for (reply, is_stream) in [(whole(&said), false), (streamed(&SAID, "stop"), true)] {
        let (answer, line) = told(reply, &json!({ "stream": is_stream }));
        assert_eq!(text(&answer), (HEALED.to_owned(), 1));
        assert_eq!(line["healed"], "combined_strategies", "{line}");
        assert_eq!(line.get("fits_schema"), None);
        assert_eq!(line["completion_tokens"], 2);
    }
}

#[test]
fn in_a_stream_the_text_comes_behind_the_reasoning_and_before_the_finish() {
    let (answer, _) = told(streamed(&SAID, "length"), &json!({"stream": true}));
    let chunks = answer.events().json();
    let kind = |chunk: &Value| {
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        if chunk["usage"].is_object() {
            "usage".to_owned()
        } else if delta["reasoning"].is_string() {
            "reasoning".to_owned()
        } else if delta["content"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
        {
            "content".to_owned()
        } else {
            choice["finish_reason"]
                .as_str()
                .unwrap_or("role")
                .to_owned()
        }
    };
    let kinds: Vec<String> = chunks.iter().map(kind).collect();
    assert_eq!(kinds, ["role", "reasoning", "content", "length", "usage"]);
}

#[test]
fn an_answer_that_is_no_json_in_the_end_goes_out_as_it_came() {
    let spaced = "\n{ \"a\" : 1.50 }\n";
    let cases = [
        (spaced, "valid"),
        ("I cannot do that.", "unhealed"),
        ("{\"a\" 1}", "unhealed"),
    ];
    for (said, outcome) in cases {
        let pieces: Vec<&str> = said.split_inclusive(' ').collect();
        for (reply, is_stream) in [(whole(said), false), (streamed(&pieces, "stop"), true)] {
            let (answer, line) = told(reply, &json!({ "stream": is_stream }));
            assert_eq!(text(&answer), (said.to_owned(), 1));
            assert_eq!(line["healed"], outcome, "{line}");
        }
    }
}

#[test]
fn nothing_is_held_without_the_plugin_a_form_in_json_or_with_several_choices() {
    let left_alone = [
        json!({"plugins": []}),
        json!({"response_format": {"type": "text"}}),
        json!({"response_format": null}),
        json!({"n": 2}),
    ];
    for members in left_alone {
        let mut members = members;
        let said = SAID.concat();
        let (answer, line) = told(whole(&said), &members);
        assert_eq!(text(&answer), (said.clone(), 1), "{members}");
        assert_eq!(line.get("healed"), None);
        members["stream"] = true.into();
        let (answer, line) = told(streamed(&SAID, "stop"), &members);
        assert_eq!(text(&answer), (said, 3), "{members}");
        assert_eq!(line.get("healed"), None);
    }
}

#[test]
fn a_text_beside_calls_and_what_a_filter_cut_off_are_no_answers() {
    let call = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let tools = json!({"stream": true, "tools": [{"type": "function", "function": {"name": "f"}}]});
    let calling = begun(&["I call f({x: 1})", " now."])
        .event(&chunk(call, None))
        .event(&chunk(json!({}), Some("tool_calls")))
        .event("[DONE]")
        .end();
    let (answer, line) = told(calling, &tools);
    assert_eq!(text(&answer), ("I call f({x: 1}) now.".to_owned(), 1));
    assert!(answer.text().contains("\"call_1\""), "{}", answer.text());
    assert_eq!(line.get("healed"), None);
    let filtered = streamed(&["{\"a\": [1"], "content_filter");
    let (answer, line) = told(filtered, &json!({"stream": true}));
    assert_eq!(text(&answer).0, "{\"a\": [1");
    assert_eq!(line.get("healed"), None);
}

#[test]
fn the_log_line_tells_whether_the_answer_fits_its_schema() {
    let schema =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
    let unchecked =
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^x$"}}});
    let cases = [
        ("{\"a\": 1,}", &schema, "syntax_fix", json!(true)),
        ("{\"a\": 1}", &schema, "valid", json!(true)),
        ("{\"a\": \"1\"}", &schema, "valid", json!(false)),
        ("{\"a\": [1", &schema, "truncation_completion", json!(false)),
        ("No.", &schema, "unhealed", json!(false)),
        ("{\"a\": \"x\"}", &unchecked, "valid", Value::Null),
    ];
    for (said, schema, outcome, fits) in cases {
        let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
        let (_, line) = told(whole(said), &json!({ "response_format": format }));
        let found = (&line["healed"], line.get("fits_schema"));
        assert_eq!(found, (&outcome.into(), Some(&fits)), "{said}");
    }
}

#[test]
fn a_list_is_an_answer_where_the_schema_wants_one() {
    let format = |schema: Value| json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}});
    let said = "The items [1] are: [{\"a\": 1}]";
    let list = format(json!({"type": "array"}));
    let (answer, _) = told(whole("The items are: [{\"a\": 1}]"), &list);
    assert_eq!(text(&answer).0, "[{\"a\": 1}]");
    let object = format(json!({"type": "object"}));
    assert_eq!(text(&told(whole(said), &object).0).0, "{\"a\": 1}");
}

#[test]
fn a_stream_that_breaks_off_ends_with_what_was_held_unrepaired() {
    for breaking in [Reply::and_close, Reply::end] {
        let gate = Gate::default();
        let cut = chunk(json!({"content": "{\"a\": [1, "}), None);
        let first = Upstream::always(breaking(begun(&[]).wait(&gate).event(&cut)));
        let second = Upstream::always(whole("{}"));
        let gateway = Gateway::between(&first.url(), &second.url());
        let mut client = Client::connect(gateway.address());
        let request = gateway.chat_ask(asked(&json!({"stream": true})));
        client.send(&request.header("x-request-id", "broken"));
        assert_eq!(client.head().status, 200);
        client.chunk().unwrap();
        gate.open();
        let told = drain(&mut client);
        let events = crate::support::sse::parse(&told);
        assert!(!events.says_done(), "{told}");
        let [.., content, error] = &*events.json() else {
            panic!("{told}");
        };
        let delta = &content["choices"][0]["delta"];
        assert_eq!(delta["content"], "{\"a\": [1, ", "{told}");
        assert_eq!(error["error"]["code"], "stream_truncated", "{told}");
        // The reasoning, and the text: four bytes are a token.
        let usage = &error["error"]["usage"];
        assert_eq!(usage["completion_tokens"], 4, "{told}");
        assert!(second.requests().is_empty());
        let line = gateway.log_line("broken");
        assert_eq!(
            (line.get("healed"), &line["outcome"]),
            (None, &"broken".into())
        );
        assert_eq!(line["completion_tokens"], 4);
    }
}

#[test]
fn a_text_that_is_held_keeps_the_way_to_the_next_provider_open() {
    let cut = Reply::stream()
        .event(&chunk(
            json!({"role": "assistant", "content": "{\"a\": 1"}),
            None,
        ))
        .end();
    let first = Upstream::always(cut);
    let second = Upstream::always(streamed(&SAID, "stop"));
    let gateway = Gateway::between(&first.url(), &second.url());
    let answer = gateway.chat(asked(&json!({"stream": true})));
    assert_eq!(text(&answer), (HEALED.to_owned(), 1));
    let chunks = answer.events().json();
    let routing = &chunks.last().unwrap()["metadata"]["routing"];
    assert_eq!(routing[0]["succeeded"], false, "{routing}");
    assert_eq!(routing[1]["provider"], "second", "{routing}");
    assert!(!answer.text().contains("\\\"a\\\": 1\""));
}

#[test]
fn a_client_is_kept_alive_while_a_text_is_held() {
    let gate = Gate::default();
    let slow = Reply::stream()
        .event(&chunk(json!({"content": "{a: 1"}), None))
        .wait(&gate)
        .event(&chunk(json!({}), Some("stop")))
        .event("[DONE]")
        .end();
    let first = Upstream::always(slow);
    let gateway = Gateway::with(&first.url(), &first.url(), "[routing]\nkeepalive_s = 1");
    let mut client = Client::connect(gateway.address());
    client.send(&gateway.chat_ask(asked(&json!({"stream": true}))));
    assert_eq!(client.head().status, 200);
    let comment = client.chunk().unwrap();
    assert!(comment.bytes.starts_with(b":"), "{comment:?}");
    gate.open();
    let told = drain(&mut client);
    assert_eq!(crate::support::sse::parse(&told).content(), "{\"a\":1}");
}

fn event(reply: Reply, event: &Value) -> Reply {
    reply.named_event(event["type"].as_str().unwrap(), &event.to_string())
}

/// The answer on the Messages wire.
fn messages(request: &Received) -> Reply {
    let usage = json!({"input_tokens": 3, "output_tokens": 2});
    if request.json()["stream"] != true {
        let content = json!([{"type": "text", "text": SAID.concat()}]);
        let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "end_turn", "content": content, "usage": usage});
        return Reply::json(200, body.to_string());
    }
    let texts = SAID.map(|text| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}));
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ];
    events.extend(texts);
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]);
    events.iter().fold(Reply::stream(), event).end()
}

/// The same on the Responses wire.
fn items(request: &Received) -> Reply {
    let item =
        json!({"type": "message", "content": [{"type": "output_text", "text": SAID.concat()}]});
    let response = json!({"id": "resp_1", "status": "completed", "output": [item], "usage": {"input_tokens": 3, "output_tokens": 2}});
    if request.json()["stream"] != true {
        return Reply::json(200, response.to_string());
    }
    let mut events = vec![
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}}),
    ];
    events.extend(SAID.map(|text| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text})));
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.push(json!({"type": "response.completed", "response": response}));
    events.iter().fold(Reply::stream(), event).end()
}

/// The same on the wire of contents.
fn contents(request: &Received) -> Reply {
    let reply = |text: &str, finish: Option<&str>| {
        json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": finish}],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}})
        .to_string()
    };
    if !request.path.contains("stream") {
        return Reply::json(200, reply(&SAID.concat(), Some("STOP")));
    }
    let pieces = SAID.iter().map(|text| reply(text, None));
    let stream = pieces.fold(Reply::stream(), |stream, piece| stream.event(&piece));
    stream.event(&reply("", Some("STOP"))).end()
}

/// The same on the wire of the convention.
fn chunks(request: &Received) -> Reply {
    match request.json()["stream"] == true {
        true => streamed(&SAID, "stop"),
        false => whole(&SAID.concat()),
    }
}

#[test]
fn an_answer_is_repaired_on_every_wire() {
    type Case = (&'static str, &'static str, fn(&Received) -> Reply);
    let cases: [Case; 4] = [
        ("anthropic", "", messages),
        ("openai", "wire = \"responses\"", items),
        ("google", "", contents),
        ("openai-compatible", "", chunks),
    ];
    for (kind, more, answers) in cases {
        let upstream = Upstream::answering(answers);
        let models = format!(
            "[[models]]\nid = \"chat\"\n[[models.providers]]\nprovider = \"first\"\nname = \"up\"\ninput_price = \"1\"\n\
             output_price = \"10\"\ncapabilities = [\"streaming\", \"json_object\", \"json_schema\", \"cancellation\"]\n{more}\n"
        );
        let toml = format!(
            "[providers.first]\nkind = \"{kind}\"\nbase_url = \"{}\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n",
            upstream.url()
        );
        let gateway = Gateway::start_with_env(&toml, &models, &[("FIRST_KEY", "sk-first")]);
        for is_stream in [false, true] {
            let answer = gateway.chat(asked(&json!({ "stream": is_stream })));
            assert_eq!(text(&answer), (HEALED.to_owned(), 1), "{kind}");
        }
    }
}
