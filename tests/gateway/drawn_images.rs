//! Images that models draw: asked for, answered, priced, and given back.

use serde_json::{Value, json};

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
    let toml = format!(
        "[providers.gemini]\nkind = \"google\"\nbase_url = \"{}\"\nkeys = [{{ env = \"GEMINI_KEY\" }}]\n\
         [providers.other]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
        gemini.url(),
        other.url()
    );
    Gateway::start_with_env(&toml, MODELS, &[("GEMINI_KEY", "key")])
}

fn asked(model: &str, is_stream: bool) -> Value {
    json!({"model": model, "stream": is_stream, "image_config": {"aspect_ratio": "16:9", "image_size": "2K"},
        "messages": [{"role": "user", "content": "A cat"}]})
}

fn gemini_reply(request: &Received) -> Reply {
    let piece = |parts: Value, finish: Value| {
        json!({"candidates": [{"content": {"parts": parts}, "finishReason": finish}], "responseId": "r",
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1300, "totalTokenCount": 1310,
                "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1290}]}})
    };
    let text = json!({"text": "Here"});
    let image =
        json!({"inlineData": {"mimeType": "image/png", "data": "AAEB"}, "thoughtSignature": "sig"});
    if request.path.contains("stream") {
        let events = [
            piece(json!([text]), Value::Null).to_string(),
            piece(json!([image]), Value::Null).to_string(),
            piece(json!([]), "STOP".into()).to_string(),
        ];
        return Reply::sse(events.iter().map(String::as_str));
    }
    Reply::json(200, piece(json!([text, image]), "STOP".into()).to_string())
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
