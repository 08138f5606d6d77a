//! Images that models draw: asked for, answered, priced, and given back.

use serde_json::{Value, json};

use crate::ledger::used;
use crate::support::boot::Gateway;
use crate::support::client::Answer;
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

/// `gemini` draws by tokens and `other` by images; `writer` does not draw.
const MODELS: &str = r#"
[[models]]
id = "painter"
[[models.providers]]
provider = "gemini"
name = "g"
input_price = "0.3"
output_price = "2.5"
output_image_price = "30"
max_output = 2000
capabilities = ["streaming", "vision", "image_output", "cancellation"]
[[models]]
id = "printer"
[[models.providers]]
provider = "other"
name = "o"
input_price = "1"
output_price = "1"
image_price = "0.04"
max_images = 2
max_output = 100
capabilities = ["streaming", "vision", "image_output", "cancellation"]
[[models]]
id = "writer"
[[models.providers]]
provider = "other"
name = "w"
input_price = "1"
output_price = "1"
capabilities = ["streaming", "vision", "cancellation"]
"#;

const PNG: &str = "data:image/png;base64,AAEB";

fn gateway(gemini: &Upstream, other: &Upstream) -> Gateway {
    gateway_with_credit(gemini, other, "1000")
}

fn gateway_with_credit(gemini: &Upstream, other: &Upstream, credit: &str) -> Gateway {
    let toml = format!(
        "[providers.gemini]\nkind = \"google\"\nbase_url = \"{}\"\nkeys = [{{ env = \"GEMINI_KEY\" }}]\n\
         [providers.other]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        gemini.url(),
        other.url()
    );
    let keys = [("GEMINI_KEY", "key")];
    Gateway::start_with_credit(&toml, MODELS, &keys, credit)
}

/// The same with this number of images.
fn several(model: &str, is_stream: bool, count: u32) -> String {
    let mut body = asked(model, is_stream);
    body["image_config"]["n"] = count.into();
    body.to_string()
}

fn asked(model: &str, is_stream: bool) -> Value {
    json!({"model": model, "stream": is_stream, "image_config": {"aspect_ratio": "16:9", "image_size": "2K"},
        "messages": [{"role": "user", "content": "A cat"}]})
}

fn gemini_reply(request: &Received) -> Reply {
    if request.path.contains("stream") {
        let events = [
            gemini_piece(json!([text()]), Value::Null).to_string(),
            gemini_piece(json!([image()]), Value::Null).to_string(),
            gemini_piece(json!([]), "STOP".into()).to_string(),
        ];
        return Reply::sse(events.iter().map(String::as_str));
    }
    gemini_whole()
}

fn gemini_whole() -> Reply {
    Reply::json(
        200,
        gemini_piece(json!([text(), image()]), "STOP".into()).to_string(),
    )
}

fn text() -> Value {
    json!({"text": "Here"})
}

fn image() -> Value {
    json!({"inlineData": {"mimeType": "image/png", "data": "AAEB"}, "thoughtSignature": "sig"})
}

fn gemini_piece(parts: Value, finish: Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts}, "finishReason": finish}], "responseId": "r",
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1300, "totalTokenCount": 1310,
            "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1290}]}})
}

fn other_reply(_: &Received) -> Reply {
    let image = json!({"type": "image_url", "image_url": {"url": PNG}});
    let message = json!({"role": "assistant", "content": "Here", "images": [image, image]});
    let body = json!({"id": "c", "created": 5, "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}});
    Reply::json(200, body.to_string())
}

fn message(answer: &Answer) -> Value {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.json()["choices"][0]["message"].clone()
}

/// Contract: model-gateway 2.1 image_config
/// Contract: model-gateway 2.5 choices[].message
/// Contract: model-gateway 2.5 usage.completion_tokens_details
#[test]
fn an_image_is_drawn_whole_and_streamed_and_costs_its_tokens() {
    let (gemini, other) = (
        Upstream::answering(gemini_reply),
        Upstream::answering(other_reply),
    );
    let gateway = gateway(&gemini, &other);
    let answer = gateway.chat(asked("painter", false).to_string());
    let message = message(&answer);
    assert_eq!(message["content"], "Here");
    assert_eq!(message["images"][0]["image_url"]["url"], PNG);
    let sent = gemini.requests()[0].json();
    assert_eq!(
        sent["generationConfig"],
        json!({"responseModalities": ["TEXT", "IMAGE"], "imageConfig": {"aspectRatio": "16:9", "imageSize": "2K"}})
    );
    let usage = answer.json()["usage"].clone();
    assert_eq!(usage["completion_tokens_details"]["image_tokens"], 1290);
    // 10 at 0.3, 10 at 2.5 and 1290 at 30 USD per million.
    assert_eq!(usage["cost"].to_string(), "0.038728");
    assert_eq!(
        usage["cost_details"]["image_output_cost"].to_string(),
        "0.0387"
    );

    let streamed = gateway.chat(asked("painter", true).to_string());
    let events = streamed.events().json();
    let images = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["images"].as_array());
    let images: Vec<&Value> = images.flatten().collect();
    assert_eq!(images.len(), 1, "{}", streamed.text());
    assert_eq!(images[0]["image_url"]["url"], PNG);
    let last = events.last().unwrap();
    assert_eq!(last["usage"]["cost"].to_string(), "0.038728");
}

#[test]
fn a_drawn_image_goes_back_to_its_model_with_its_signature() {
    let (gemini, other) = (
        Upstream::answering(gemini_reply),
        Upstream::answering(other_reply),
    );
    let gateway = gateway(&gemini, &other);
    let first = message(&gateway.chat(asked("painter", false).to_string()));
    let mut next = asked("painter", false);
    let messages = next["messages"].as_array_mut().unwrap();
    messages.push(first);
    messages.push(json!({"role": "user", "content": "Redder"}));
    message(&gateway.chat(next.to_string()));
    let sent = gemini.requests()[1].json();
    assert_eq!(
        sent["contents"][1]["parts"],
        json!([{"text": "Here"}, {"inlineData": {"mimeType": "image/png", "data": "AAEB"}, "thoughtSignature": "sig"}])
    );
}

#[test]
fn images_may_cost_by_the_image() {
    let (gemini, other) = (
        Upstream::answering(gemini_reply),
        Upstream::answering(other_reply),
    );
    let gateway = gateway(&gemini, &other);
    let answer = gateway.chat(asked("printer", false).to_string());
    assert_eq!(message(&answer)["images"].as_array().unwrap().len(), 2);
    let sent = other.requests()[0].json();
    assert_eq!(sent["modalities"], json!(["image", "text"]));
    assert_eq!(
        sent["image_config"],
        json!({"aspect_ratio": "16:9", "image_size": "2K"})
    );
    let usage = answer.json()["usage"].clone();
    // Two images at 0.04 USD, 10 tokens at 1 USD per million: the 20 of the completion are those of the images.
    assert_eq!(usage["cost"].to_string(), "0.08001");
    assert_eq!(usage["completion_tokens_details"]["image_tokens"], 20);
    assert_eq!(
        usage["cost_details"]["image_output_cost"].to_string(),
        "0.08"
    );
}

#[test]
fn who_does_not_draw_is_left_out_with_its_reason() {
    let (gemini, other) = (
        Upstream::answering(gemini_reply),
        Upstream::answering(other_reply),
    );
    let answer = gateway(&gemini, &other).chat(asked("writer", false).to_string());
    assert_eq!(answer.status(), 400);
    let error = answer.json()["error"].clone();
    assert_eq!(error["param"], "image_config");
    let said = error["message"].as_str().unwrap();
    assert!(said.contains("other draws no images"), "{said}");
    assert!(other.requests().is_empty());
}

/// Source: model-gateway 2.1
#[test]
fn several_images_are_asked_for_one_after_the_other_and_each_is_paid() {
    let (gemini, other) = (
        Upstream::answering(gemini_reply),
        Upstream::answering(other_reply),
    );
    let gateway = gateway(&gemini, &other);
    let answer = gateway.chat(several("painter", false, 3));
    let drawn = message(&answer);
    // The words of the first reply are those of the answer.
    assert_eq!(drawn["content"], "Here");
    let url = json!({"type": "image_url", "image_url": {"url": PNG}});
    assert_eq!(drawn["images"], json!([url, url, url]));
    assert_eq!(gemini.requests().len(), 3);
    let answer = answer.json();
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["choices"].as_array().unwrap().len(), 1);
    let usage = &answer["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&json!(30), &json!(3900))
    );
    assert_eq!(usage["cost"].to_string(), "0.116184");

    let streamed = gateway.chat(several("painter", true, 3));
    assert_eq!(streamed.status(), 200, "{}", streamed.text());
    assert_eq!(gemini.requests().len(), 6);
    let events = streamed.events().json();
    let deltas = || events.iter().map(|event| &event["choices"][0]);
    let images = deltas().filter_map(|choice| choice["delta"]["images"].as_array());
    assert_eq!(images.flatten().count(), 3, "{}", streamed.text());
    let words: String = deltas()
        .filter_map(|choice| choice["delta"]["content"].as_str())
        .collect();
    assert_eq!(words, "Here");
    let ends = deltas().filter(|choice| choice["finish_reason"].is_string());
    assert_eq!(ends.count(), 1, "{}", streamed.text());
    assert_eq!(
        events.last().unwrap()["usage"]["cost"].to_string(),
        "0.116184"
    );

    // A provider of the convention that does not know the number is asked as often.
    let answer = gateway.chat(several("printer", false, 2));
    assert_eq!(message(&answer)["images"].as_array().unwrap().len(), 4);
    assert_eq!(other.requests().len(), 2);
    for sent in other.requests() {
        assert_eq!(sent.json()["image_config"].get("n"), None);
    }
    assert_eq!(answer.json()["usage"]["cost"].to_string(), "0.16002");
}

/// Source: model-gateway 2.1
#[test]
fn what_several_images_may_cost_is_reserved_for_all_of_them() {
    let (gemini, other) = (
        Upstream::answering(gemini_reply),
        Upstream::answering(other_reply),
    );
    // Each may cost 2,000 tokens at 30 USD per million, which are 0.06 USD.
    let gateway = gateway_with_credit(&gemini, &other, "0.15");
    assert_eq!(gateway.chat(several("painter", false, 3)).status(), 402);
    assert!(gemini.requests().is_empty());
    assert_eq!(gateway.chat(several("painter", false, 2)).status(), 200);
    assert_eq!(gemini.requests().len(), 2);
}

/// Source: model-gateway 2.1
#[test]
fn a_further_drawing_that_fails_fails_the_answer_and_costs_nothing() {
    let (gemini, other) = (
        Upstream::sequence([
            gemini_whole(),
            Reply::json(400, r#"{"error": {"message": "no"}}"#),
        ]),
        Upstream::answering(other_reply),
    );
    let gateway = gateway(&gemini, &other);
    let answer = gateway.chat(several("painter", false, 2));
    assert_eq!(answer.status(), 400, "{}", answer.text());
    assert_eq!(gemini.requests().len(), 2);
    used(&gateway, "0");
}
