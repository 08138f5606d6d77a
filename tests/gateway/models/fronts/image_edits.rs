//! `POST /v1/images/edits`: images in, by address and in the body, and what a hostile one becomes. Source:
//! docs/model-gateway.md 2.7.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::ledger::used;
use crate::models::fronts::images::{PNG, drawn, gateway, gateway_with};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};

fn data_url(bytes: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(bytes))
}

fn png() -> String {
    data_url(&STANDARD.decode(PNG).unwrap())
}

impl Gateway {
    fn edit(&self, model: &str, images: &[&str], more: Value) -> Answer {
        let images: Vec<Value> = images
            .iter()
            .map(|url| json!({ "image_url": url }))
            .collect();
        let mut body = json!({"model": model, "prompt": "A hat", "images": images});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let edit = Ask::post("/v1/images/edits", body.to_string()).key(&self.key);
        ask(self.address(), &edit)
    }
}

/// The head and the content of each part of a form.
fn parts(request: &Received) -> Vec<(String, Vec<u8>)> {
    let media_type = request.header("content-type").unwrap();
    let boundary = media_type
        .strip_prefix("multipart/form-data; boundary=")
        .unwrap();
    let text: String = request.body.iter().map(|b| char::from(*b)).collect();
    let mut pieces: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    assert_eq!((pieces.remove(0), pieces.pop()), ("", Some("--\r\n")));
    let part = |piece: &str| {
        let (head, content) = piece
            .trim_start_matches("\r\n")
            .split_once("\r\n\r\n")
            .unwrap();
        let content = content.strip_suffix("\r\n").unwrap();
        let content = content.chars().map(|c| u8::try_from(c).unwrap()).collect();
        (head.to_owned(), content)
    };
    pieces.into_iter().map(part).collect()
}

/// Contract: model-gateway 4 POST /v1/images/edits
#[test]
fn an_edit_is_a_form_with_a_file_for_each_image() {
    let first = Upstream::always(drawn(1));
    let gateway = gateway(&first, &first);
    let more = json!({"input_fidelity": "high", "background": "opaque"});
    let answer = gateway.edit("pair", &[&png(), &png()], more);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let list = answer.json();
    assert_eq!(list["data"][0]["b64_json"], PNG);
    assert_eq!(
        json!([list["output_format"], list["size"], list["quality"]]),
        json!(["png", "1024x1024", "high"])
    );
    let sent = first.request(0);
    assert_eq!(sent.path, "/v1/images/edits");
    let parts = parts(&sent);
    let field = |name: &str| {
        let head = format!("content-disposition: form-data; name=\"{name}\"");
        let found = parts.iter().find(|(known, _)| *known == head);
        found.map(|(_, content)| String::from_utf8(content.clone()).unwrap())
    };
    assert_eq!(field("model").as_deref(), Some("image-at-first"));
    assert_eq!(field("prompt").as_deref(), Some("A hat"));
    assert_eq!(field("input_fidelity").as_deref(), Some("high"));
    let files: Vec<_> = parts
        .iter()
        .filter(|(head, _)| head.contains("name=\"image[]\""))
        .collect();
    assert_eq!(files.len(), 2);
    assert!(files[0].0.ends_with("content-type: image/png"));
    assert_eq!(files[0].1, STANDARD.decode(PNG).unwrap());
}

#[test]
fn an_image_by_address_is_fetched_for_who_takes_files() {
    let images = Upstream::always(Reply::whole(200, &[], STANDARD.decode(PNG).unwrap()));
    let first = Upstream::always(drawn(1));
    let more = format!("[media]\norigins = [\"{}\"]", images.url());
    let gateway = gateway_with(&first, &first, &more, "1");
    let address = format!("{}/x.png", images.url());
    // Plain http is for the operator's own origins in chats; the contract of edits has https alone.
    let refused = gateway.edit("pair", &[&address], json!({}));
    assert_eq!(refused.status(), 400, "{}", refused.text());
    assert_eq!(refused.json()["error"]["param"], "images[0].image_url");
}

#[test]
fn a_chat_that_draws_gets_the_images_as_parts() {
    let first = Upstream::answering(|_| {
        let parts = json!([{"inlineData": {"mimeType": "image/png", "data": PNG}}]);
        let body = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1290}});
        Reply::json(200, body.to_string())
    });
    let gateway = gateway(&first, &first);
    let answer = gateway.edit(
        "gemini",
        &[&png()],
        json!({"aspect_ratio": "16:9", "size": "2K"}),
    );
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(answer.json()["output_format"], "png");
    let sent = first.request(0).json();
    let parts = json!([{"text": "A hat"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]);
    assert_eq!(sent["contents"][0]["parts"], parts);
    let config = json!({"aspectRatio": "16:9", "imageSize": "2K"});
    assert_eq!(sent["generationConfig"]["imageConfig"], config);
}

/// Contract: model-gateway 2.7 mask
/// Contract: model-gateway 8 6
#[test]
fn hostile_images_are_named_reach_no_provider_and_cost_nothing() {
    let first = Upstream::always(drawn(1));
    let gateway = gateway(&first, &first);
    let mut huge = STANDARD.decode(PNG).unwrap();
    huge[16..20].copy_from_slice(&50_000_u32.to_be_bytes());
    huge[20..24].copy_from_slice(&50_000_u32.to_be_bytes());
    let huge = data_url(&huge);
    let html = data_url(b"<html>hello, world</html>");
    for (url, said) in [
        (&*huge, "50000 x 50000"),
        (&html, "no image"),
        ("data:image/png;base64,****", "neither"),
        ("http://a.test/x.png", "plain http"),
        ("https://127.0.0.1/x.png", "address"),
        ("https://[::ffff:169.254.169.254]/x.png", "address"),
        ("https://localhost/x.png", "address"),
        ("file:///etc/passwd", "neither"),
    ] {
        let answer = gateway.edit("pair", &[&png(), url], json!({}));
        let error = &answer.json()["error"];
        let param = Some("images[1].image_url");
        assert_eq!(
            (answer.status(), error["param"].as_str()),
            (400, param),
            "{url}: {error}"
        );
        assert!(
            error["message"].as_str().unwrap().contains(said),
            "{url}: {error}"
        );
    }
    let png = png();
    let none = gateway.edit("pair", &[], json!({}));
    assert_eq!(
        (none.status(), &none.json()["error"]["param"]),
        (400, &json!("images"))
    );
    let many = gateway.edit("pair", &[&*png; 17], json!({}));
    assert_eq!(
        (many.status(), &many.json()["error"]["param"]),
        (400, &json!("images[16]"))
    );
    let mask = gateway.edit("pair", &[&*png], json!({"mask": {"image_url": png}}));
    assert_eq!(
        (mask.status(), &mask.json()["error"]["param"]),
        (400, &json!("mask"))
    );
    assert!(first.requests().is_empty());
    used(&gateway, "0");
}

/// A form: its fields, and its files by the name of their field.
fn form(fields: &[(&str, &str)], files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, value) in fields {
        let part =
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        form.extend_from_slice(part.as_bytes());
    }
    for (name, bytes) in files {
        let head = format!(
            "--x\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"../../a.png\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(bytes);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(b"--x--\r\n");
    form
}

fn post_form(gateway: &Gateway, path: &str, body: Vec<u8>, boundary: &str) -> Answer {
    let form = Ask::post(path, body)
        .key(&gateway.key)
        .without("content-type");
    let media_type = format!("multipart/form-data{boundary}");
    ask(gateway.address(), &form.header("content-type", &media_type))
}

#[test]
fn a_form_says_the_same_as_json() {
    let first = Upstream::always(drawn(1));
    let gateway = gateway(&first, &first);
    let png = STANDARD.decode(PNG).unwrap();
    let fields = [
        ("model", "pair"),
        ("prompt", "A hat"),
        ("n", "2"),
        ("stream", "false"),
    ];
    let files = [("image[]", &*png), ("image[]", &*png)];
    let (edits, boundary) = ("/v1/images/edits", "; boundary=x");
    let answer = post_form(&gateway, edits, form(&fields, &files), boundary);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let by_form = parts(&first.request(0));
    let url = self::png();
    let answer = gateway.edit("pair", &[&*url, &*url], json!({"n": 2, "stream": false}));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(by_form, parts(&first.request(1)));
    let generation = form(&[("model", "pair"), ("prompt", "A cat")], &[]);
    let answer = post_form(&gateway, "/v1/images/generations", generation, boundary);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(first.request(2).json()["prompt"], "A cat");
    let chat = post_form(
        &gateway,
        "/v1/chat/completions",
        form(&fields, &[]),
        boundary,
    );
    assert_eq!(chat.status(), 415);
}

/// Source: docs/hostile-input.md 96a.
#[test]
fn a_form_counts_as_the_json_that_it_becomes() {
    let first = Upstream::always(drawn(1));
    let gateway = gateway_with(&first, &first, "[limits]\nbuffered_bytes = 1048576\n", "1");
    let fields = [("model", "pair"), ("prompt", "A hat")];
    let edit = |bytes: usize| {
        let png = [STANDARD.decode(PNG).unwrap(), vec![0; bytes]].concat();
        let form = form(&fields, &[("image", &png)]);
        post_form(&gateway, "/v1/images/edits", form, "; boundary=x").status()
    };
    assert_eq!((edit(500_000), edit(850_000)), (200, 529));
}

#[test]
fn a_form_that_is_none_or_lacks_a_part_is_refused_by_name() {
    let first = Upstream::always(drawn(1));
    let gateway = gateway(&first, &first);
    let png = STANDARD.decode(PNG).unwrap();
    let whole: &[(&str, &str)] = &[("model", "pair"), ("prompt", "A hat")];
    let twice: &[(&str, &str)] = &[("prompt", "A hat"), ("prompt", "A cat")];
    let file = [("image", &*png)];
    let html = [("image", &b"<html>hello, world</html>"[..])];
    let mask = [("image", &*png), ("mask", &*png)];
    let zero: &[(&str, &str)] = &[("prompt", "A hat"), ("n", "00")];
    for (body, boundary, param) in [
        (form(whole, &file), "", None),
        (form(whole, &file), "; boundary=y", None),
        (form(whole, &file)[..100].to_vec(), "; boundary=x", None),
        (form(whole, &[]), "; boundary=x", Some("images")),
        (form(&[], &file), "; boundary=x", Some("prompt")),
        (form(twice, &file), "; boundary=x", Some("prompt")),
        (form(zero, &file), "; boundary=x", Some("n")),
        (
            form(whole, &html),
            "; boundary=x",
            Some("images[0].image_url"),
        ),
        (form(whole, &mask), "; boundary=x", Some("mask")),
    ] {
        let answer = post_form(&gateway, "/v1/images/edits", body, boundary);
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status(), error["param"].as_str()),
            (400, param),
            "{error}"
        );
    }
    assert!(first.requests().is_empty());
    used(&gateway, "0");
}

#[test]
fn a_key_is_served_until_its_limit_is_reached() {
    let first = Upstream::always(drawn(1));
    let gateway = gateway(&first, &first);
    let key = gateway.key_with(r#"{"limit":"0.018"}"#);
    let body = json!({"model": "pair", "prompt": "A hat", "images": [{"image_url": png()}]});
    let edit = Ask::post("/v1/images/edits", body.to_string()).key(&key);
    // An edit costs 0.00905.
    let statuses = [0; 3].map(|_| ask(gateway.address(), &edit).status());
    assert_eq!(statuses, [200, 200, 402]);
    assert_eq!(first.requests().len(), 2);
}

#[test]
fn a_failed_provider_is_followed_by_the_next() {
    let (first, second) = (
        Upstream::always(Reply::json(503, "{}")),
        Upstream::always(drawn(1)),
    );
    let gateway = gateway(&first, &second);
    let answer = gateway.edit("pair", &[&png()], json!({}));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(parts(&second.request(0)).len(), 3);
    used(&gateway, "0.01206");
}
