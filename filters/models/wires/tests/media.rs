#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use serde_json::{Value, json};

use crate::fault::Fault;
use crate::models::chat::inlined::{InlinedImage, InlinedImages};
use crate::models::front::Front;
use crate::models::fronts::chat_completions::ChatCompletions;
use crate::models::operation::Operation;
use crate::models::request::ModelRequest;
use crate::models::routing::capable;
use crate::models::routing::catalog::Mapping;
use crate::models::wires::tests::replay;
use crate::models::wires::{Quirks, Target, WireKind};

const WIRES: [WireKind; 4] = [
    WireKind::Compatible,
    WireKind::Responses,
    WireKind::Messages,
    WireKind::Contents,
];

fn request(part: &Value) -> ModelRequest {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}, part]}]});
    ChatCompletions.parse(request.to_string().into()).unwrap()
}

/// The part as a provider of this wire gets it; `None`: planning leaves the provider out.
fn sent(wire: WireKind, part: &Value, inlined: &InlinedImages) -> Option<Result<Value, Fault>> {
    let request = request(part);
    let limits = wire.wire().limits(Operation::Chat);
    capable::check(&request, &Mapping::default(), limits.as_ref()).ok()?;
    let (told, quirks) = (replay::told(wire.wire(), None, &[]), Quirks::default());
    let target = Target {
        parameters: &told.parameters,
        thinking: &told.thinking,
        inlined,
        ..Target::plain("p", "up", &quirks)
    };
    let body = wire.wire().encode(&request, &target).map(|body| {
        let body: Value = serde_json::from_slice(&body.concat()).unwrap();
        let place = match wire {
            WireKind::Responses => "/input/0/content/1",
            WireKind::Contents => "/contents/0/parts/1",
            WireKind::Compatible | WireKind::Messages => "/messages/0/content/1",
            other => unreachable!("{other:?} has no chats"),
        };
        body.pointer(place).unwrap().clone()
    });
    Some(body)
}

fn plainly(wire: WireKind, part: &Value) -> Option<Value> {
    sent(wire, part, InlinedImages::NONE).map(Result::unwrap)
}

/// Contract: model-gateway 2.3 input_audio
#[test]
fn formats_of_audio_have_the_names_of_each_wire_or_leave_it_out() {
    // The format, its name in the convention, and Gemini's media type.
    for (format, name, media_type) in [
        ("wav", "wav", Some("audio/wav")),
        ("mp3", "mp3", Some("audio/mp3")),
        ("aiff", "aiff", Some("audio/aiff")),
        ("aac", "aac", Some("audio/aac")),
        ("ogg", "ogg", Some("audio/ogg")),
        ("flac", "flac", Some("audio/flac")),
        ("m4a", "m4a", Some("audio/m4a")),
        ("mpeg", "mp3", Some("audio/mp3")),
        ("mpga", "mp3", Some("audio/mp3")),
        ("mp4", "mp4", Some("audio/mp4")),
        ("pcm", "pcm", Some("audio/pcm")),
        ("webm", "webm", Some("audio/webm")),
    ] {
        let part =
            json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": format}});
        for wire in WIRES {
            let expected = match wire {
                WireKind::Compatible | WireKind::Responses => Some(
                    json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": name}}),
                ),
                WireKind::Messages => None,
                WireKind::Contents => {
                    media_type.map(|kind| json!({"inlineData": {"mimeType": kind, "data": "AAAA"}}))
                }
                other => unreachable!("{other:?} has no chats"),
            };
            assert_eq!(plainly(wire, &part), expected, "{format} {wire:?}");
        }
    }
}

/// Source: model-gateway 2.3
#[test]
fn a_picture_goes_out_under_the_type_that_its_bytes_tell() {
    let data = "/9j/4AAQSkZJRgABAQAAAQABAAD/2w==";
    for said in [
        "image/png",
        "image/jpeg",
        "IMAGE/PNG;charset=x",
        "text/plain",
    ] {
        let url = format!("data:{said};base64,{data}");
        let part = json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}});
        let told = format!("data:image/jpeg;base64,{data}");
        for wire in WIRES {
            let expected = match wire {
                WireKind::Compatible => {
                    json!({"type": "image_url", "image_url": {"url": told, "detail": "low"}})
                }
                WireKind::Responses => {
                    json!({"type": "input_image", "image_url": told, "detail": "low"})
                }
                WireKind::Messages => {
                    json!({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": data}})
                }
                WireKind::Contents => {
                    json!({"inlineData": {"mimeType": "image/jpeg", "data": data}})
                }
                other => unreachable!("{other:?} has no chats"),
            };
            assert_eq!(plainly(wire, &part), Some(expected), "{said} {wire:?}");
        }
    }
}

/// Source: model-gateway 2.3
#[test]
fn an_empty_picture_and_text_that_is_called_one_are_refused_before_any_wire() {
    let user = |image: Value| json!({"role": "user", "content": [{"type": "image_url", "image_url": image}]});
    let drawn = |image: Value| json!({"role": "assistant", "content": null, "images": [{"type": "image_url", "image_url": image}]});
    let checked = |message: Value| {
        let asked = json!({"role": "user", "content": "Hi"});
        let request = json!({"model": "m", "messages": [asked, message]});
        ChatCompletions.parse(request.to_string().into())
    };
    for (url, said) in [
        ("", "missing"),
        ("data:image/png;base64,", "empty"),
        ("data:image/png;base64,==", "empty"),
        ("data:image/png;base64, \n", "empty"),
        ("data:;base64,", "empty"),
        ("data:image/png;base64,aGVsbG8=", "holds no image"),
        (
            "data:image/jpeg;base64,PGh0bWw+aGVsbG8sIHdvcmxkISBHcsO8w59lPC9odG1sPgo=",
            "holds no image",
        ),
        (
            "data:image/bmp;base64,aGVsbG8gd29ybGQsIGhlbGxvIHdvcmxk",
            "holds no image",
        ),
        ("data:text/plain;base64,aGVsbG8=", "holds no image"),
        ("data:;base64,aGVsbG8=", "holds no image"),
        ("data:application/pdf;base64,AAEC", "holds no image"),
        ("data:image/png;base64,%%%%", "is no base64"),
        ("data:image/png,hello", "is no base64"),
        ("DATA:,hello", "is no base64"),
    ] {
        let image = json!({ "url": url });
        for (message, place) in [
            (user(image.clone()), "content[0]"),
            (drawn(image), "images[0]"),
        ] {
            let fault = checked(message).unwrap_err();
            let param = format!("messages[1].{place}.image_url.url");
            assert_eq!((fault.status(), fault.param), (400, Some(param)), "{url}");
            assert!(fault.message.contains(said), "{url}: {}", fault.message);
        }
    }
    // Providers know more kinds than the gateway does, and a drawing may be a text.
    for url in [
        "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iIi8+",
        "data:image/bmp;base64,Qk0eAAAAAAAAABoAAAAMAAAA",
        "data:image/tiff;base64,SUkqAAgAAAA=",
        "https://a.test/a.png",
        "gs://bucket/a.png",
    ] {
        assert!(checked(user(json!({ "url": url }))).is_ok(), "{url}");
    }
}

/// Source: model-gateway 2.2
#[test]
fn a_result_without_the_id_of_a_call_answers_the_first_that_has_none() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    for no_id in [json!(null), json!("")] {
        let result = |text: &str| json!({"role": "tool", "tool_call_id": no_id, "content": text});
        let request = json!({"model": "m", "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": null, "tool_calls": [call("one"), call("two")]},
            result("first"), result("second")]});
        let request = ChatCompletions.parse(request.to_string().into()).unwrap();
        let encoded = |wire: WireKind| -> Value {
            let quirks = Quirks::default();
            let body = wire
                .wire()
                .encode(&request, &Target::plain("p", "up", &quirks));
            serde_json::from_slice(&body.unwrap().concat()).unwrap()
        };
        let body = encoded(WireKind::Messages);
        let results = &body["messages"][2]["content"];
        assert_eq!(results[0]["tool_use_id"], "one");
        assert_eq!(results[1]["tool_use_id"], "two");
        assert_eq!(results[1]["content"][0]["text"], "second");
        let body = encoded(WireKind::Responses);
        assert_eq!(body["input"][3]["call_id"], "one");
        assert_eq!(body["input"][4]["output"], "second");
        let body = encoded(WireKind::Contents);
        let results = &body["contents"][2]["parts"];
        assert_eq!(
            results[1]["functionResponse"]["response"]["result"],
            "second"
        );
        // A provider of the convention judges by itself.
        let body = encoded(WireKind::Compatible);
        assert_eq!(body["messages"][3]["content"], "second");
    }
}

/// Contract: model-gateway 2.3 file
#[test]
fn documents_keep_their_type_and_name_on_each_wire() {
    let part = |name: Option<&str>, kind: &str, data: &str| {
        let mut file = json!({"file_data": format!("data:{kind};base64,{data}")});
        if let Some(name) = name {
            file["filename"] = name.into();
        }
        json!({"type": "file", "file": file})
    };
    let url = |kind: &str, data: &str| format!("data:{kind};base64,{data}");
    let (pdf, csv) = ("application/pdf", "text/csv");
    // Named or not, a PDF and a text.
    for (name, kind, data, shown) in [
        (Some("a.pdf"), pdf, "aGk=", "a.pdf"),
        (None, pdf, "aGk=", "document.pdf"),
        (Some("a.csv"), csv, "YSxi", "a.csv"),
        (None, csv, "YSxi", "document.csv"),
    ] {
        let part = part(name, kind, data);
        assert_eq!(
            plainly(WireKind::Compatible, &part).unwrap()["file"],
            json!({"filename": shown, "file_data": url(kind, data)})
        );
        assert_eq!(
            plainly(WireKind::Responses, &part).unwrap(),
            json!({"type": "input_file", "filename": shown, "file_data": url(kind, data)})
        );
        assert_eq!(
            plainly(WireKind::Contents, &part).unwrap(),
            json!({"inlineData": {"mimeType": kind, "data": data}})
        );
        let document = plainly(WireKind::Messages, &part).unwrap();
        let source = match kind {
            "text/csv" => json!({"type": "text", "media_type": "text/plain", "data": "a,b"}),
            _ => json!({"type": "base64", "media_type": kind, "data": data}),
        };
        assert_eq!(document["source"], source);
        assert_eq!(document["title"].as_str(), name);
    }
    let zip = part(Some("a.zip"), "application/zip", "AAAA");
    assert_eq!(plainly(WireKind::Messages, &zip), None);
    let latin = part(Some("a.txt"), "text/plain", "/w==");
    let refused = sent(WireKind::Messages, &latin, InlinedImages::NONE).unwrap();
    let fault = refused.unwrap_err();
    assert_eq!(fault.code(), Some("unsupported_document_format"));
}

/// Contract: model-gateway 2.3 file
#[test]
fn files_by_id_go_to_the_wires_that_have_a_word_for_them() {
    let part = json!({"type": "file", "file": {"file_id": "files/a"}});
    assert_eq!(plainly(WireKind::Compatible, &part).unwrap(), part);
    assert_eq!(
        plainly(WireKind::Responses, &part).unwrap(),
        json!({"type": "input_file", "file_id": "files/a"})
    );
    assert_eq!(
        plainly(WireKind::Contents, &part).unwrap(),
        json!({"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a"}})
    );
    assert_eq!(plainly(WireKind::Messages, &part), None);
    let foreign = json!({"type": "file", "file": {"file_id": "file-abc"}});
    let refused = sent(WireKind::Contents, &foreign, InlinedImages::NONE).unwrap();
    let param = refused.unwrap_err().param;
    assert_eq!(
        param.as_deref(),
        Some("messages[0].content[1].file.file_id")
    );
}

/// Contract: model-gateway 2.3 file
#[test]
fn a_file_that_is_no_data_url_and_no_id_is_refused_by_name() {
    for (file, said) in [
        (
            json!({"file_data": "https://a.test/a.pdf"}),
            "not an address",
        ),
        (json!({"file_data": "aGk="}), "is no base64 data URL"),
        (json!({"filename": "a.pdf"}), "is missing"),
    ] {
        let part = json!({"type": "file", "file": file});
        let request =
            json!({"model": "m", "messages": [{"role": "user", "content": [part]}]}).to_string();
        let fault = ChatCompletions.parse(request.into()).unwrap_err();
        let param = fault.param.as_deref();
        assert_eq!(param, Some("messages[0].content[0].file.file_data"));
        assert!(fault.message.contains(said), "{fault}");
    }
}

#[test]
fn what_was_fetched_stands_in_place_of_its_address_on_every_wire() {
    let address = "https://a.test/a";
    let mut inlined = InlinedImages::default();
    let image = InlinedImage::read(b"\xff\xd8\xff").unwrap();
    inlined.add(address, Arc::new(image));
    let part = json!({"type": "image_url", "image_url": {"url": address, "detail": "high"}});
    let url = "data:image/jpeg;base64,/9j/";
    for wire in WIRES {
        let expected = match wire {
            WireKind::Compatible => {
                json!({"type": "image_url", "image_url": {"url": url, "detail": "high"}})
            }
            WireKind::Responses => {
                json!({"type": "input_image", "image_url": url, "detail": "high"})
            }
            WireKind::Messages => {
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/"}})
            }
            WireKind::Contents => {
                json!({"inlineData": {"mimeType": "image/jpeg", "data": "/9j/"}})
            }
            other => unreachable!("{other:?} has no chats"),
        };
        let part = sent(wire, &part, &inlined).unwrap().unwrap();
        assert_eq!(part, expected, "{wire:?}");
    }
}
