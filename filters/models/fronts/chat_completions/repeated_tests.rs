//! What of further replies joins an answer.

use serde_json::{Value, json};

use super::ChatCompletions;
use crate::json::Str;
use crate::models::chat::piece::{Finish, Image, Piece};
use crate::models::front::Front;
use crate::models::fronts::tests::{complete, end};
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::usage::Usage;

fn writer(is_stream: bool) -> Box<dyn Writer> {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "A cat"}], "stream": is_stream,
        "image_config": {"n": 2}});
    let request = ChatCompletions.parse(request.to_string().into()).unwrap();
    let identity = ReplyIdentity {
        id: "1".into(),
        created: 1,
        model: "p/m".into(),
        maker: "p/m".into(),
    };
    ChatCompletions.writer(&request, identity)
}

/// A reply that says a text and draws an image.
fn reply(writer: &mut dyn Writer, text: &str, image: &str) {
    writer.pieces(0, &[Piece::Text(Str::Plain(text))]);
    draw(writer, image);
    writer.pieces(0, &[Piece::Finish(Finish::Stop)]);
}

fn draw(writer: &mut dyn Writer, image: &str) {
    let image = json!({"type": "image_url", "image_url": {"url": image}}).to_string();
    let image = Image::Said {
        items: &image,
        count: 1,
    };
    writer.pieces(0, &[Piece::Image(image)]);
}

fn urls(message: &Value) -> Vec<&str> {
    let images = message["images"].as_array().unwrap().iter();
    images
        .filter_map(|image| image["image_url"]["url"].as_str())
        .collect()
}

#[test]
fn the_first_reply_is_the_answer_and_the_others_add_their_images() {
    for has_parts in [true, false] {
        let mut writer = writer(false);
        reply(&mut *writer, "One", "a");
        if has_parts {
            writer.end_part();
            writer.begin_part();
        }
        reply(&mut *writer, "Two", "b");
        let answer = complete(&mut *writer, Usage::default());
        let choice = &answer["choices"][0];
        // A replay from the cache has no parts.
        assert_eq!(urls(&choice["message"]), ["a", "b"], "{has_parts}");
        assert_eq!(choice["message"]["content"], "One");
        assert_eq!(choice["finish_reason"], "stop");
    }
}

#[test]
fn a_stream_shows_the_images_of_each_reply_and_ends_once() {
    let mut writer = writer(true);
    for image in ["a", "b", "c"] {
        reply(&mut *writer, "Here", image);
        writer.end_part();
        writer.begin_part();
    }
    reply(&mut *writer, "Here", "d");
    end(&mut *writer, Usage::default());
    let stream = String::from_utf8(writer.take().into()).unwrap();
    for image in ["a", "b", "c", "d"] {
        let url = format!(r#""url":"{image}""#);
        assert_eq!(stream.matches(&url).count(), 1, "{stream}");
    }
    for once in [r#""finish_reason":"stop""#, r#""content":"Here""#] {
        assert_eq!(stream.matches(once).count(), 1, "{stream}");
    }
}

#[test]
fn a_reply_that_is_asked_for_again_leaves_nothing_behind() {
    let mut writer = writer(false);
    reply(&mut *writer, "One", "a");
    writer.end_part();
    writer.begin_part();
    draw(&mut *writer, "broken");
    writer.begin_part();
    reply(&mut *writer, "Two", "b");
    let answer = complete(&mut *writer, Usage::default());
    assert_eq!(urls(&answer["choices"][0]["message"]), ["a", "b"]);
}

#[test]
fn each_reply_reports_what_it_took_itself() {
    let mut writer = writer(true);
    let usage = Usage {
        prompt: 7,
        ..Usage::default()
    };
    writer.usage(usage);
    reply(&mut *writer, "One", "a");
    let first = writer.reported();
    assert_eq!(first.usage.map(|usage| usage.prompt), Some(7));
    assert_eq!((first.images, first.output_bytes), (1, 3));
    assert!(first.has_finished);
    writer.end_part();
    let between = writer.reported();
    assert!(between.usage.is_none() && !between.has_finished);
    assert_eq!((between.images, between.output_bytes), (0, 0));
    reply(&mut *writer, "Second", "b");
    let second = writer.reported();
    assert!(second.usage.is_none() && second.has_finished);
    assert_eq!((second.images, second.output_bytes), (1, 6));
}
