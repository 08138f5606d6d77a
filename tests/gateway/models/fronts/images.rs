//! `POST /v1/images/generations`: what goes up on each wire, what comes down, who is tried, what it costs. Source:
//! docs/model-gateway.md 2.7.

use serde_json::{Value, json};

use crate::ledger::used;
use crate::models::fronts::chat_completions::PLAIN;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, ask};
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

/// The head of an image of 2 by 3 pixels.
pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAA=";

mod refusals;

/// `pair` draws at two providers over an API for images, `ratio` over one that draws by ratios, `gemini`, `tool` and
/// `convention` over chats. `printer` costs by image, `writer` draws nothing.
const MODELS: &str = r#"
[[models]]
id = "pair"
type = "image"
[[models.providers]]
provider = "first"
name = "image-at-first"
wire = "images"
input_price = "5"
input_image_price = "8"
output_price = "30"
max_output = 1000
image_tokens = 100
[[models.providers]]
provider = "second"
name = "image-at-second"
wire = "images"
input_price = "6"
output_price = "40"
max_output = 1000
[[models]]
id = "ratio"
type = "image"
[[models.providers]]
provider = "first"
name = "ratio-at-first"
wire = "images_by_ratio"
image_price = "0.02"
max_images = 1
max_output = 0
[[models]]
id = "gemini"
[[models.providers]]
provider = "gemini"
name = "g"
input_price = "0.3"
output_price = "2.5"
output_image_price = "30"
max_output = 2000
capabilities = ["streaming", "vision", "image_output", "cancellation"]
[[models]]
id = "tool"
[[models.providers]]
provider = "first"
name = "t"
wire = "responses"
input_price = "1"
output_price = "2"
output_image_price = "40"
max_output = 2000
capabilities = ["streaming", "vision", "image_output", "cancellation"]
[[models]]
id = "convention"
[[models.providers]]
provider = "second"
name = "c"
image_price = "0.04"
max_images = 1
max_output = 100
capabilities = ["streaming", "vision", "image_output", "cancellation"]
[[models]]
id = "twice"
[[models.providers]]
provider = "first"
name = "one"
input_price = "1"
output_price = "1"
image_price = "0.04"
max_images = 1
max_output = 100
capabilities = ["streaming", "image_output", "cancellation"]
[[models.providers]]
provider = "second"
name = "other"
input_price = "2"
output_price = "2"
image_price = "0.05"
max_images = 1
max_output = 100
capabilities = ["streaming", "image_output", "cancellation"]
[[models]]
id = "writer"
[[models.providers]]
provider = "first"
name = "w"
capabilities = ["streaming"]
"#;

pub fn gateway_with(first: &Upstream, second: &Upstream, more: &str, credit: &str) -> Gateway {
    let (first, second) = (first.url(), second.url());
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{first}/v1\"\nkeys = []\n\
         [providers.second]\nkind = \"openai-compatible\"\nbase_url = \"{second}/v1\"\nkeys = []\n\
         [providers.gemini]\nkind = \"google\"\nbase_url = \"{first}\"\nkeys = [{{ env = \"GEMINI_KEY\" }}]\n{more}\n"
    );
    Gateway::start_with_credit(&toml, MODELS, &[("GEMINI_KEY", "AIza-platform")], credit)
}

pub fn gateway(first: &Upstream, second: &Upstream) -> Gateway {
    gateway_with(first, second, "", "1")
}

/// A reply of an API for images.
pub fn drawn(count: usize) -> Reply {
    let images = vec![json!({"b64_json": PNG, "revised_prompt": "A cat, drawn"}); count];
    let body = json!({"created": 5, "data": images, "output_format": "png", "size": "1024x1024", "quality": "high",
        "usage": {"input_tokens": 10, "output_tokens": 300, "total_tokens": 310,
            "input_tokens_details": {"text_tokens": 10, "image_tokens": 0}}});
    Reply::json(200, body.to_string())
}

fn gemini_reply(_: &Received) -> Reply {
    let parts = json!([{"text": "Here"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]);
    let body = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "responseId": "r",
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1300, "totalTokenCount": 1310,
            "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1290}]}});
    Reply::json(200, body.to_string())
}

impl Gateway {
    fn draw(&self, body: impl AsRef<[u8]>) -> Answer {
        ask(self.address(), &self.draw_ask(body))
    }

    fn draw_ask(&self, body: impl AsRef<[u8]>) -> Ask {
        Ask::post("/v1/images/generations", body).key(&self.key)
    }
}

fn plain(model: &str) -> String {
    json!({"model": model, "prompt": "A cat"}).to_string()
}

/// Contract: model-gateway 4 POST /v1/images/generations
/// Contract: model-gateway 2.7 quality
/// Contract: model-gateway 2.7 response_format
#[test]
fn a_list_has_the_contracts_members_and_no_others() {
    let first = Upstream::always(drawn(2));
    let gateway = gateway(&first, &first);
    let body = json!({"model": "pair", "prompt": "A cat", "n": 2, "size": "1024x1024", "quality": "high",
        "response_format": "b64_json"});
    let answer = gateway.draw(body.to_string());
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let mut list = answer.json();
    let details = list["usage"]
        .as_object_mut()
        .unwrap()
        .remove("cost_details")
        .unwrap();
    assert_eq!(details["total_cost"].to_string(), "0.00905");
    let image = json!({"b64_json": PNG, "revised_prompt": "A cat, drawn"});
    // 10 at 5 and 300 at 30 USD per million.
    let usage = json!({"input_tokens": 10, "output_tokens": 300, "total_tokens": 310, "cost": 0.00905,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 10},
        "output_tokens_details": {"image_tokens": 300, "text_tokens": 0}});
    assert_eq!(
        list,
        json!({"created": 5, "data": [image, image], "usage": usage})
    );
    let sent = first.request(0);
    assert_eq!(sent.path, "/v1/images/generations");
    assert_eq!(sent.header("content-type"), Some("application/json"));
    let expected = json!({"model": "image-at-first", "prompt": "A cat", "n": 2, "size": "1024x1024", "quality": "high"});
    assert_eq!(sent.json(), expected);
    used(&gateway, "0.00905");
    let line = gateway.log_line(answer.header("x-request-id").unwrap());
    assert_eq!(
        (&line["route"], &line["provider"]),
        (&json!("images"), &json!("first"))
    );
    assert!(gateway.metrics().contains("route=\"images\""));
}

/// Contract: model-gateway 2.7 size
/// Contract: model-gateway 2.7 size+
/// Contract: model-gateway 2.7 quality+
/// Contract: model-gateway 2.7 background
#[test]
fn models_that_draw_in_chats_serve_images_too() {
    let first = Upstream::answering(|request| {
        if request.path.contains("generateContent") {
            return gemini_reply(request);
        }
        let item = json!({"type": "image_generation_call", "id": "ig", "status": "completed", "result": PNG, "output_format": "png"});
        let body = json!({"id": "r", "created_at": 5, "status": "completed", "output": [item],
            "usage": {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30}});
        Reply::json(200, body.to_string())
    });
    let second = Upstream::answering(|_| {
        let image = json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}});
        let message = json!({"role": "assistant", "content": "Here", "images": [image]});
        let body = json!({"id": "c", "created": 5, "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}});
        Reply::json(200, body.to_string())
    });
    let gateway = gateway(&first, &second);
    let asked = |model: &str, more: Value| {
        let mut body = json!({"model": model, "prompt": "A cat"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let answer = gateway.draw(body.to_string());
        assert_eq!(answer.status(), 200, "{model}: {}", answer.text());
        let list = answer.json();
        assert_eq!(list["data"], json!([{ "b64_json": PNG }]), "{model}");
        list["usage"]["cost"].to_string()
    };
    assert_eq!(asked("gemini", json!({"size": "1792x1024"})), "0.038728");
    let sent = first.request(0).json();
    let config = json!({"responseModalities": ["TEXT", "IMAGE"], "imageConfig": {"aspectRatio": "16:9", "imageSize": "1K"}});
    assert_eq!(sent["generationConfig"], config);
    assert_eq!(
        sent["contents"],
        json!([{"role": "user", "parts": [{"text": "A cat"}]}])
    );

    let more = json!({"quality": "hd", "background": "transparent", "output_format": "webp", "output_compression": 7});
    asked("tool", more);
    let tool = json!([{"type": "image_generation", "quality": "high", "background": "transparent", "output_format": "webp",
        "output_compression": 7, "action": "generate"}]);
    assert_eq!(first.request(1).json()["tools"], tool);

    assert_eq!(asked("convention", json!({})), "0.04");
    assert_eq!(
        second.request(0).json()["modalities"],
        json!(["image", "text"])
    );
}

/// A chat with an image.
fn chat_reply() -> Reply {
    let url = format!("data:image/png;base64,{PNG}");
    let image = json!({"type": "image_url", "image_url": {"url": url}});
    let message = json!({"role": "assistant", "content": "Here", "images": [image]});
    let body = json!({"id": "c", "created": 5, "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}});
    Reply::json(200, body.to_string())
}

/// Contract: model-gateway 2.7 n+
#[test]
fn who_draws_one_at_a_time_is_asked_for_each() {
    let first = Upstream::always(chat_reply());
    let gateway = gateway(&first, &first);
    let body = json!({"model": "first/twice", "prompt": "A cat", "n": 3});
    let answer = gateway.draw(body.to_string());
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let list = answer.json();
    assert_eq!(list["data"], json!(vec![json!({ "b64_json": PNG }); 3]));
    assert_eq!(list["usage"]["input_tokens"], 30);
    // Thrice an image, and 10 tokens at 1 USD per million.
    assert_eq!(list["usage"]["cost"].to_string(), "0.12003");
    assert_eq!(first.requests().len(), 3);
    used(&gateway, "0.12003");
    let stream = json!({"model": "first/twice", "prompt": "A cat", "n": 2, "stream": true});
    let events = gateway.draw(stream.to_string()).events().json();
    let types: Vec<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(types, ["image_generation.completed"; 2]);
    assert_eq!(events[1]["usage"]["cost"].to_string(), "0.08002");
}

/// Contract: model-gateway 2.7 n+
#[test]
fn images_of_two_providers_do_not_mix_and_what_was_billed_is_paid() {
    let first = Upstream::sequence([chat_reply(), Reply::json(500, "{}")]);
    let second = Upstream::always(chat_reply());
    let gateway = gateway(&first, &second);
    let body = json!({"model": "twice", "prompt": "A cat", "n": 2});
    let answer = gateway.draw(body.to_string());
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(answer.json()["data"].as_array().unwrap().len(), 2);
    assert_eq!((first.requests().len(), second.requests().len()), (2, 2));
    // One image of the first at 0.04001, two of the second at 0.05002.
    used(&gateway, "0.14005");
}

/// Contract: model-gateway 2.7 aspect_ratio
#[test]
fn images_by_ratio_cost_by_image() {
    let first = Upstream::always(Reply::json(
        200,
        json!({"data": [{"b64_json": PNG}, {"b64_json": PNG}]}).to_string(),
    ));
    let gateway = gateway(&first, &first);
    let body = json!({"model": "ratio", "prompt": "A cat", "n": 2, "aspect_ratio": "16:9", "size": "1024x1024"});
    let answer = gateway.draw(body.to_string());
    assert_eq!(
        answer.json()["usage"]["cost"].to_string(),
        "0.04",
        "{}",
        answer.text()
    );
    let expected = json!({"model": "ratio-at-first", "prompt": "A cat", "n": 2, "aspect_ratio": "16:9", "resolution": "1k",
        "response_format": "b64_json"});
    assert_eq!(first.request(0).json(), expected);
}

#[test]
fn a_failed_provider_is_followed_by_the_next_until_there_is_an_image() {
    let half = drawn(1).cut(250, crate::support::script::Cut::Close);
    for failed in [
        Reply::json(500, "{}"),
        Reply::json(429, "{}"),
        Reply::json(200, "<html>"),
        Reply::json(200, r#"{"data":[]}"#),
        Reply::json(200, r#"{"data":[{"url":"https://a.test/x.png"}]}"#),
        half,
    ] {
        let (first, second) = (Upstream::always(failed), Upstream::always(drawn(1)));
        let gateway = gateway(&first, &second);
        let answer = gateway.draw(plain("pair"));
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
        // 10 at 6 and 300 at 40 USD per million: the failed attempt costs nothing.
        used(&gateway, "0.01206");
    }
    let first = Upstream::always(Reply::json(500, "{}"));
    let gateway = gateway(&first, &first);
    let answer = gateway.draw(plain("pair"));
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["error"]["code"], "all_providers_failed");
    used(&gateway, "0");
}

/// Contract: model-gateway 7 504
#[test]
fn a_provider_that_hangs_is_left_and_one_without_another_is_a_504() {
    let (first, second) = (Upstream::always(Reply::hang()), Upstream::always(drawn(1)));
    let more = "[routing]\ntotal_timeout_s = 1";
    let gateway = gateway_with(&first, &second, more, "1");
    assert_eq!(gateway.draw(plain("pair")).status(), 200);
    let alone = gateway.draw(plain("first/pair"));
    assert_eq!(alone.status(), 504, "{}", alone.text());
    used(&gateway, "0.01206");
}

#[test]
fn a_filter_hit_is_an_empty_list_and_costs_nothing() {
    let refusal = json!({"error": {"message": "no", "code": "moderation_blocked", "type": "image_generation_user_error"}});
    let first = Upstream::always(Reply::json(400, refusal.to_string()));
    let gateway = gateway(&first, &first);
    let answer = gateway.draw(plain("pair"));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(answer.json()["data"], json!([]));
    assert_eq!(answer.json()["usage"]["cost"].to_string(), "0");
    let stream = json!({"model": "first/pair", "prompt": "A cat", "stream": true});
    let events = gateway.draw(stream.to_string()).events().json();
    assert_eq!(events[0]["error"]["code"], "content_policy_violation");
    used(&gateway, "0");
}

/// Contract: model-gateway 2.7 stream
#[test]
fn a_stream_shows_unfinished_images() {
    let partial = json!({"type": "image_generation.partial_image", "b64_json": "YQ==", "partial_image_index": 0, "size": "1024x1024"});
    let completed = json!({"type": "image_generation.completed", "b64_json": PNG, "output_format": "png",
        "usage": {"input_tokens": 10, "output_tokens": 300, "total_tokens": 310}});
    let events = [partial.to_string(), completed.to_string()];
    let first = Upstream::always(Reply::sse(events.iter().map(String::as_str)));
    let gateway = gateway(&first, &first);
    let body = json!({"model": "pair", "prompt": "A cat", "stream": true, "partial_images": 1});
    let answer = gateway.draw(body.to_string());
    assert_eq!(
        answer.header("content-type"),
        Some("text/event-stream; charset=utf-8"),
        "{}",
        answer.text()
    );
    let events = answer.events().json();
    assert_eq!(events.len(), 2, "{}", answer.text());
    assert_eq!(events[0]["b64_json"], "YQ==");
    assert_eq!(
        (&events[1]["b64_json"], &events[1]["size"]),
        (&json!(PNG), &json!("1024x1024"))
    );
    assert_eq!(events[1]["usage"]["cost"].to_string(), "0.00905");
    let sent = first.request(0).json();
    assert_eq!(
        (&sent["stream"], &sent["partial_images"]),
        (&json!(true), &json!(1))
    );
    used(&gateway, "0.00905");
}

/// Contract: model-gateway 2.7 stream
#[test]
fn a_chat_that_draws_streams_the_finished_image() {
    let first = Upstream::answering(|_| {
        let parts = json!([{"inlineData": {"mimeType": "image/png", "data": PNG}}]);
        let event = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1290}});
        Reply::sse([event.to_string().as_str()])
    });
    let gateway = gateway(&first, &first);
    let body = json!({"model": "gemini", "prompt": "A cat", "stream": true, "partial_images": 3});
    let events = gateway.draw(body.to_string()).events().json();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["type"], "image_generation.completed");
    assert_eq!(
        (&events[0]["b64_json"], &events[0]["output_format"]),
        (&json!(PNG), &json!("png"))
    );
}

#[test]
fn a_client_that_leaves_ends_the_call() {
    let first = Upstream::always(Reply::hang());
    let gateway = gateway(&first, &first);
    let mut client = Client::connect(gateway.address());
    let body = json!({"model": "gemini", "prompt": "A cat"});
    client.send(&gateway.draw_ask(body.to_string()));
    first.wait_requests(1);
    client.reset();
    first.wait_closed(0);
    // The prompt is charged as estimated: two tokens at 0.3 USD per million.
    used(&gateway, "0.0000006");
}

/// Source: docs/model-gateway.md 2.7: `style` is `vivid` or `natural`.
/// Contract: model-gateway 2.7 style
/// Contract: model-gateway 2.7 style+
#[test]
fn a_style_is_dropped_where_it_does_not_act() {
    let first = Upstream::answering(gemini_reply);
    let second = Upstream::always(drawn(1));
    let gateway = gateway(&first, &second);
    for model in ["gemini", "pair"] {
        let body = json!({"model": model, "prompt": "A cat", "style": "vivid"});
        let answer = gateway.draw(body.to_string());
        assert_eq!(answer.status(), 200, "{model}: {}", answer.text());
    }
    for sent in [first.requests(), second.requests()].concat() {
        let sent = sent.json();
        assert!(sent.get("style").is_none(), "{sent}");
    }
}

/// Contract: model-gateway 2.1 service_tier 2
/// Contract: model-gateway 2.7 size
/// Contract: model-gateway 2.7 moderation
/// Contract: model-gateway 2.7 service_tier
/// Contract: model-gateway 2.7 aspect_ratio+
#[test]
fn who_cannot_draw_as_asked_is_left_out() {
    let first = Upstream::always(drawn(1));
    let gateway = gateway(&first, &first);
    for (body, param, said) in [
        (
            json!({"model": "gemini", "quality": "high"}),
            "quality",
            "takes no `quality`",
        ),
        (
            json!({"model": "gemini", "background": "opaque"}),
            "background",
            "gemini takes no `background`",
        ),
        (
            json!({"model": "gemini", "output_format": "png"}),
            "output_format",
            "output_format",
        ),
        (
            json!({"model": "gemini", "size": "1000x10"}),
            "size",
            "`size` has a ratio",
        ),
        (
            json!({"model": "pair", "aspect_ratio": "16:9"}),
            "aspect_ratio",
            "`1:1`, `3:2` or `2:3`",
        ),
        (
            json!({"model": "ratio", "output_format": "png"}),
            "output_format",
            "takes no",
        ),
        (json!({"model": "writer"}), "model", "/v1/chat/completions"),
    ] {
        let mut body = body;
        body["prompt"] = json!("A cat");
        let answer = gateway.draw(body.to_string());
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status(), error["param"].as_str()),
            (400, Some(param)),
            "{error}"
        );
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
    }
    // A filter may be as strict as it is.
    let gemini = json!({"model": "ratio", "prompt": "A cat", "moderation": "low"});
    assert_eq!(gateway.draw(gemini.to_string()).status(), 200);
    let tier = json!({"model": "pair", "prompt": "A cat", "service_tier": "flex"});
    let answer = gateway.draw(tier.to_string());
    assert_eq!(
        (answer.status(), &answer.json()["error"]["code"]),
        (400, &json!("unsupported_service_tier"))
    );
    // The other way round a model for images is no model for chat.
    let answer = gateway.chat(PLAIN.replace("\"chat\"", "\"pair\""));
    assert_eq!(answer.status(), 400);
    assert!(
        answer.text().contains("/v1/images/generations"),
        "{}",
        answer.text()
    );
}

/// Contract: model-gateway 2.7 model
#[test]
fn auto_chooses_among_models_that_draw() {
    let first = Upstream::answering(gemini_reply);
    let second = Upstream::always(drawn(1));
    let more = "[routing]\nauto_images = [\"gemini\"]\nexploration = 0.0";
    let chosen = gateway_with(&first, &second, more, "1");
    assert_eq!(chosen.draw(r#"{"prompt":"A cat"}"#).status(), 200);
    assert!(first.request(0).path.contains("/models/g:generateContent"));
    // Without a list it is any model that draws as asked.
    let any = gateway_with(&first, &second, "", "1");
    let body = json!({"prompt": "A cat", "output_format": "png", "quality": "high"});
    let answer = any.draw(body.to_string());
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let none = gateway_with(
        &first,
        &second,
        "[routing]\nauto_images = [\"writer\"]",
        "1",
    );
    assert_eq!(none.draw(r#"{"prompt":"A cat"}"#).status(), 404);
}
