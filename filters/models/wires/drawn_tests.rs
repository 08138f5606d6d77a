#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};

use crate::fault::Fault;
use crate::models::dialects::state::Maker;
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::wires::tests::replay;
use crate::models::wires::{Quirks, Target, WireKind};

fn target<'a>(wire: WireKind, quirks: &'a Quirks, image_output: Option<bool>) -> Target<'a> {
    let told = replay::told(wire.wire(), None, &[]);
    Target {
        image_output,
        parameters: &told.parameters,
        thinking: &told.thinking,
        ..Target::plain("p", "up", quirks)
    }
}

/// What a provider of this wire gets of a request with these members beside a message.
fn sent(wire: WireKind, draws: Option<bool>, members: Value) -> Result<Value, Fault> {
    let mut request = json!({"model": "m", "messages": [{"role": "user", "content": "A cat"}]});
    let object = request.as_object_mut().unwrap();
    object.extend(members.as_object().unwrap().clone());
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let quirks = Quirks::default();
    let body = wire
        .wire()
        .encode(&request, &target(wire, &quirks, draws))?
        .concat();
    Ok(serde_json::from_slice(&body).unwrap())
}

fn url(media_type: &str, data: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")}})
}

const ALL: &str = r#"{"image_config": {"aspect_ratio": "16:9", "image_size": "0.5K", "image_quality": "high",
    "moderation": "low", "n": 1, "seed": 7}}"#;

#[test]
fn a_drawing_model_is_told_to_draw_and_how() {
    let config: Value = serde_json::from_str(ALL).unwrap();
    let gemini = sent(WireKind::Contents, Some(true), config.clone()).unwrap();
    assert_eq!(
        gemini["generationConfig"],
        json!({"responseModalities": ["TEXT", "IMAGE"], "imageConfig": {"aspectRatio": "16:9", "imageSize": "512"}, "seed": 7})
    );
    let convention = sent(WireKind::Compatible, Some(true), config).unwrap();
    assert_eq!(convention["modalities"], json!(["image", "text"]));
    assert_eq!(
        convention["image_config"],
        json!({"aspect_ratio": "16:9", "image_size": "0.5K"})
    );
    let config = json!({"image_config": {"aspect_ratio": "3:2", "image_size": "1K", "image_quality": "xhigh", "moderation": "low"}});
    let responses = sent(WireKind::Responses, Some(true), config).unwrap();
    assert_eq!(
        responses["tools"],
        json!([{"type": "image_generation", "size": "1536x1024", "quality": "xhigh", "moderation": "low"}])
    );
}

#[test]
fn what_stands_in_modalities_decides_before_the_model_does() {
    let gemini = |draws, members| {
        let body = sent(WireKind::Contents, draws, members).unwrap();
        body["generationConfig"]["responseModalities"].clone()
    };
    let words = |list: &[&str]| json!({"modalities": list});
    assert_eq!(gemini(None, json!({})), Value::Null);
    assert_eq!(gemini(Some(true), json!({})), json!(["TEXT", "IMAGE"]));
    assert_eq!(gemini(Some(true), words(&["image"])), json!(["IMAGE"]));
    assert_eq!(gemini(Some(true), words(&["text"])), json!(["TEXT"]));
    let both = json!({"modalities": ["text"], "image_config": {"seed": 1}});
    assert_eq!(gemini(Some(true), both), json!(["TEXT", "IMAGE"]));

    let convention = |members| sent(WireKind::Compatible, Some(true), members).unwrap();
    assert_eq!(convention(words(&["text"]))["modalities"], json!(["text"]));
    let asked = convention(words(&["text", "image"]));
    assert_eq!(asked["modalities"], json!(["text", "image"]));
    // The tool of the other family costs per image, so it is there only where images are asked for.
    let responses = |members| sent(WireKind::Responses, Some(true), members).unwrap();
    assert_eq!(responses(json!({})).get("tools"), None);
    let asked = responses(words(&["text", "image"]));
    assert_eq!(asked["tools"], json!([{"type": "image_generation"}]));
}

#[test]
fn sizes_that_a_wire_has_no_word_for_are_refused_by_name() {
    for (config, param) in [
        (json!({"aspect_ratio": "16:9"}), "image_config.aspect_ratio"),
        (json!({"image_size": "4K"}), "image_config.image_size"),
        (json!({"image_size": "1024x"}), "image_config.image_size"),
    ] {
        let members = json!({"image_config": config});
        let fault = sent(WireKind::Responses, Some(true), members).unwrap_err();
        assert_eq!(fault.param.as_deref(), Some(param));
    }
    let pixels = json!({"image_config": {"image_size": "2048x1024"}});
    let body = sent(WireKind::Responses, Some(true), pixels).unwrap();
    assert_eq!(body["tools"][0]["size"], "2048x1024");
}

#[test]
fn a_number_of_images_goes_out_within_its_bounds() {
    let wire = WireKind::Compatible;
    let told = replay::told(wire.wire(), None, &[]);
    let written = json!({"pass": ["image_config.n"], "bounds": {"image_config.n": {"min": 1, "max": 4, "outside": "clamp"}}});
    let parameters = told
        .parameters
        .with(&serde_json::from_value(written).unwrap());
    let quirks = Quirks::default();
    let target = Target {
        parameters: &parameters,
        ..target(wire, &quirks, Some(true))
    };
    for (asked, expected) in [(1, 1), (3, 3), (9, 4)] {
        let request = json!({"model": "m", "messages": [{"role": "user", "content": "A cat"}], "image_config": {"n": asked}});
        let request = ChatCompletions.parse(request.to_string().into()).unwrap();
        let body = wire.wire().encode(&request, &target).unwrap().concat();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["image_config"], json!({"n": expected}), "{asked}");
    }
}

#[test]
fn what_may_draw_is_told_by_the_wire_the_listing_and_the_request() {
    let draws = |wire: WireKind, listed, members: Value| {
        let mut request = json!({"model": "m", "messages": [{"role": "user", "content": "A cat"}]});
        let object = request.as_object_mut().unwrap();
        object.extend(members.as_object().unwrap().clone());
        let request = ChatCompletions.parse(request.to_string().into()).unwrap();
        let quirks = Quirks::default();
        wire.wire()
            .codec_of(&request)
            .draws(&request, &target(wire, &quirks, listed))
    };
    let (none, text) = (json!({}), json!({"modalities": ["text"]}));
    let image = json!({"modalities": ["image"]});
    for (wire, listed, members, expected) in [
        (WireKind::Compatible, None, &none, None),
        (WireKind::Compatible, None, &text, Some(false)),
        (WireKind::Compatible, Some(true), &none, Some(true)),
        (WireKind::Contents, Some(false), &none, Some(false)),
        (WireKind::Responses, None, &none, Some(false)),
        (WireKind::Responses, None, &image, Some(true)),
        (WireKind::Messages, None, &none, Some(false)),
    ] {
        let told = draws(wire, listed, members.clone());
        assert_eq!(told, expected, "{wire:?} {listed:?} {members}");
    }
}

#[test]
fn images_that_a_tool_draws_are_not_among_the_reported_tokens() {
    let wire = WireKind::Responses;
    let quirks = Quirks::default();
    let target = target(wire, &quirks, Some(true));
    let (mut whole, _) = replies(wire);
    whole["usage"] = json!({"input_tokens": 5, "output_tokens": 30, "total_tokens": 35});
    let event = json!({"type": "response.completed", "response": whole});
    let stream = format!("data: {event}\n\n");
    let folded = replay::fold(wire.wire(), &target, &stream, usize::MAX).unwrap();
    for answer in [replay::whole(wire.wire(), &target, &whole).unwrap(), folded] {
        let usage = &answer["usage"];
        assert_eq!(usage["completion_tokens"], 30 + 2 * 1120, "{usage}");
        assert_eq!(
            usage["completion_tokens_details"]["image_tokens"],
            2 * 1120,
            "{usage}"
        );
    }
}

/// A reply with two images, whole and as events.
fn replies(wire: WireKind) -> (Value, String) {
    let event = |body: Value| format!("data: {body}\n\n");
    match wire {
        WireKind::Contents => {
            let parts = json!([{"thought": true, "inlineData": {"mimeType": "image/png", "data": "c2tldGNo"}},
                {"text": "Here", "thoughtSignature": "s0"},
                {"inlineData": {"mimeType": "image/png", "data": "AAEB"}, "thoughtSignature": "s1"},
                {"inlineData": {"mimeType": "image/jpeg", "data": "AAIB"}, "thoughtSignature": "s2"}]);
            let reply = |parts: Value, finish: Option<&str>| {
                let mut candidate = json!({"content": {"parts": parts}});
                if let Some(finish) = finish {
                    candidate["finishReason"] = finish.into();
                }
                json!({"candidates": [candidate], "responseId": "r", "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2600,
                    "totalTokenCount": 2605, "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 2580}]}})
            };
            let pieces = parts.as_array().unwrap().iter();
            let mut stream: String = pieces
                .map(|part| event(reply(json!([part]), None)))
                .collect();
            stream.push_str(&event(reply(json!([]), Some("STOP"))));
            (reply(parts, Some("STOP")), stream)
        }
        WireKind::Compatible => {
            let images = json!([url("image/png", "AAEB"), url("image/jpeg", "AAIB")]);
            let whole = json!({"id": "c", "created": 5, "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Here", "images": images}}]});
            let chunk = |delta: Value, finish: Option<&str>| {
                event(
                    json!({"id": "c", "created": 5, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
                )
            };
            let stream = [
                chunk(json!({"content": "Here"}), None),
                chunk(json!({"images": [images[0]]}), None),
                chunk(json!({"images": [images[1]]}), None),
                chunk(json!({}), Some("stop")),
                "data: [DONE]\n\n".to_owned(),
            ];
            (whole, stream.concat())
        }
        _ => {
            let message =
                json!({"type": "message", "content": [{"type": "output_text", "text": "Here"}]});
            let image = |format: Option<&str>, data: &str| json!({"type": "image_generation_call", "id": "ig", "status": "completed", "output_format": format, "result": data});
            let output = json!([message, image(None, "AAEB"), image(Some("jpeg"), "AAIB")]);
            let whole = json!({"status": "completed", "created_at": 5, "output": output});
            let items = output.as_array().unwrap().iter().enumerate();
            let done = items.map(|(at, item)| {
                let shown = json!({"type": "response.image_generation_call.partial_image", "output_index": at, "partial_image_b64": "AAAA"});
                let done = json!({"type": "response.output_item.done", "output_index": at, "item": item});
                event(shown) + &event(done)
            });
            let mut stream: String = done.collect();
            stream.push_str(&event(
                json!({"type": "response.completed", "response": whole}),
            ));
            (whole, stream)
        }
    }
}

#[test]
fn images_come_out_whole_and_streamed_without_sketches() {
    for wire in [
        WireKind::Contents,
        WireKind::Compatible,
        WireKind::Responses,
    ] {
        let quirks = Quirks::default();
        let target = target(wire, &quirks, Some(true));
        let (body, stream) = replies(wire);
        let whole = replay::whole(wire.wire(), &target, &body).unwrap();
        let message = &whole["choices"][0]["message"];
        assert_eq!(message["content"], "Here", "{wire:?}");
        let expected = json!([url("image/png", "AAEB"), url("image/jpeg", "AAIB")]);
        assert_eq!(message["images"], expected, "{wire:?}");
        for piece in [1, 7, usize::MAX] {
            let folded = replay::fold(wire.wire(), &target, &stream, piece).unwrap();
            let message = &folded["choices"][0]["message"];
            assert_eq!(message["images"], expected, "{wire:?} {piece}");
        }
    }
}

/// What a provider of this wire gets of its own message in the next turn.
fn next_turn(wire: WireKind, draws: bool, model: &str) -> Value {
    let quirks = Quirks::default();
    let target = target(wire, &quirks, Some(draws));
    let answer = replay::whole(wire.wire(), &target, &replies(wire).0).unwrap();
    let user = |text: &str| json!({"role": "user", "content": text});
    let request = json!({"model": "m", "messages": [user("A cat"), answer["choices"][0]["message"], user("Redder")]});
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let maker = Maker {
        model,
        ..target.maker
    };
    let target = Target {
        model,
        maker,
        ..target
    };
    let body = wire.wire().encode(&request, &target).unwrap().concat();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn drawn_images_go_back_with_their_signatures_to_the_model_that_made_them() {
    let turn = |model| next_turn(WireKind::Contents, true, model)["contents"][1]["parts"].clone();
    let data = |media_type: &str, data: &str| json!({"mimeType": media_type, "data": data});
    assert_eq!(
        turn("up"),
        json!([{"text": "Here", "thoughtSignature": "s0"},
            {"inlineData": data("image/png", "AAEB"), "thoughtSignature": "s1"},
            {"inlineData": data("image/jpeg", "AAIB"), "thoughtSignature": "s2"}])
    );
    assert_eq!(
        turn("another"),
        json!([{"text": "Here"}, {"inlineData": data("image/png", "AAEB")}, {"inlineData": data("image/jpeg", "AAIB")}])
    );
}

#[test]
fn models_that_draw_get_their_images_back_and_others_the_words() {
    let convention = |draws| next_turn(WireKind::Compatible, draws, "up")["messages"][1].clone();
    assert_eq!(convention(true)["images"][1], url("image/jpeg", "AAIB"));
    assert_eq!(
        convention(false),
        json!({"role": "assistant", "content": "Here"})
    );
    let items = |draws| next_turn(WireKind::Responses, draws, "up")["input"].clone();
    let images = json!([{"type": "input_image", "image_url": "data:image/png;base64,AAEB", "detail": "auto"},
        {"type": "input_image", "image_url": "data:image/jpeg;base64,AAIB", "detail": "auto"}]);
    assert_eq!(items(true)[2]["content"], images);
    assert_eq!(items(true)[2]["role"], "user");
    assert_eq!(items(false).as_array().unwrap().len(), 3);
}
