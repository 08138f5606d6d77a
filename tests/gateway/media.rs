//! Images by address, fetched for providers that take none.

use std::time::Duration;

use serde_json::{Value, json};

use super::chat_completions::reply;
use crate::support::boot::Gateway;
use crate::support::client::Answer;
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

/// `first` and `second` take no addresses, `open` does.
const MODELS: &str = r#"
[[models]]
id = "pair"
[[models.providers]]
provider = "first"
name = "f"
input_price = "1"
output_price = "1"
[[models.providers]]
provider = "second"
name = "s"
input_price = "2"
output_price = "2"
[[models]]
id = "one"
[[models.providers]]
provider = "second"
name = "s"
[[models]]
id = "mixed"
[[models.providers]]
provider = "second"
name = "s"
input_price = "1"
output_price = "1"
[[models.providers]]
provider = "open"
name = "o"
input_price = "2"
output_price = "2"
"#;

const GIF: &[u8] = b"GIF89a\x01\x00";
const AS_URL: &str = "data:image/gif;base64,R0lGODlhAQA=";

struct Stage {
    first: Upstream,
    second: Upstream,
    open: Upstream,
    images: Upstream,
    gateway: Gateway,
}

fn stage(first: Reply, images: Reply, more: &str) -> Stage {
    let (first, second) = (Upstream::always(first), Upstream::always(reply()));
    let (open, images) = (Upstream::always(reply()), Upstream::always(images));
    let gemini = |name: &str, at: &Upstream| {
        format!(
            "[providers.{name}]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = []\n",
            at.url()
        )
    };
    let toml = format!(
        "{}inline_images = true\n{}inline_images = true\n{}[media]\norigins = [\"{}\"]\n{more}",
        gemini("first", &first),
        gemini("second", &second),
        gemini("open", &open),
        images.url()
    );
    let gateway = Gateway::start(&toml, MODELS);
    Stage {
        first,
        second,
        open,
        images,
        gateway,
    }
}

fn image_reply() -> Reply {
    Reply::whole(200, &[("content-type", "text/plain")], GIF)
}

impl Stage {
    fn ask(&self, model: &str, url: &str) -> Answer {
        let content = json!([{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url, "detail": "low"}}]);
        let body = json!({"model": model, "messages": [{"role": "user", "content": content}]});
        self.gateway.chat(body.to_string())
    }

    fn address(&self) -> String {
        format!("{}/a.gif", self.images.url())
    }
}

fn image_of(upstream: &Upstream) -> Value {
    upstream.requests()[0].json()["messages"][0]["content"][1]["image_url"].clone()
}

#[test]
fn an_image_is_fetched_once_for_two_attempts_and_used_again() {
    let stage = stage(Reply::json(500, "{}"), image_reply(), "");
    let answer = stage.ask("pair", &stage.address());
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let expected = json!({"url": AS_URL, "detail": "low"});
    assert_eq!(image_of(&stage.first), expected);
    assert_eq!(image_of(&stage.second), expected);
    assert_eq!(stage.images.requests().len(), 1);
    assert_eq!(stage.ask("one", &stage.address()).status(), 200);
    assert_eq!(stage.images.requests().len(), 1);
    let metrics = stage.gateway.metrics();
    for line in ["fetched\"} 1", "cached\"} 1"] {
        let line = format!("weirgate_media_fetches_total{{outcome=\"{line}");
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
}

#[test]
fn what_cannot_be_had_is_a_400_that_names_the_part() {
    let big = [GIF, &[0; 2000]].concat();
    let cases = [
        (Reply::json(404, "{}"), "its server answered 404"),
        (Reply::whole(200, &[], "<html>"), "is no image"),
        (Reply::whole(200, &[], big), "has more than 1024 bytes"),
        (
            image_reply().before(Duration::from_secs(5)),
            "could not be fetched in time",
        ),
    ];
    for (images, said) in cases {
        let stage = stage(reply(), images, "max_bytes = 1024\ntimeout_s = 1\n");
        let answer = stage.ask("pair", &stage.address());
        assert_eq!(answer.status(), 400, "{}", answer.text());
        let error = answer.json()["error"].clone();
        assert_eq!(error["param"], "messages[0].content[1].image_url.url");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
        assert!(stage.first.requests().is_empty() && stage.second.requests().is_empty());
    }
}

#[test]
fn private_addresses_are_refused_and_others_pass_to_who_takes_them() {
    let stage = stage(reply(), image_reply(), "");
    for url in [
        "https://127.0.0.1/a.gif",
        "https://[::ffff:169.254.169.254]/a.gif",
        "https://localhost/a.gif",
    ] {
        let answer = stage.ask("pair", url);
        assert_eq!(answer.status(), 400, "{}", answer.text());
        let error = answer.json()["error"].clone();
        assert_eq!(error["code"], "destination_ip_prohibited", "{url}");
    }
    // A provider that takes addresses gets this one, where the cheaper one cannot.
    let answer = stage.ask("mixed", "https://127.0.0.1/a.gif");
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(image_of(&stage.open)["url"], "https://127.0.0.1/a.gif");
    assert!(stage.first.requests().is_empty() && stage.second.requests().is_empty());
}

#[test]
fn a_slow_image_does_not_hold_up_other_requests() {
    let slow = image_reply().before(Duration::from_secs(3));
    let stage = stage(reply(), slow, "");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| stage.ask("pair", &stage.address()));
        stage.images.wait_requests(1);
        let started = std::time::Instant::now();
        assert_eq!(stage.ask("mixed", AS_URL).status(), 200);
        assert!(started.elapsed() < Duration::from_secs(2));
        assert_eq!(waiting.join().unwrap().status(), 200);
    });
}

#[test]
fn without_fetching_who_takes_no_addresses_is_left_out() {
    let stage = stage(reply(), image_reply(), "fetch = false\n");
    let answer = stage.ask("one", &stage.address());
    assert_eq!(answer.status(), 400);
    let message = answer.json()["error"]["message"].to_string();
    assert!(message.contains("takes images as"), "{message}");
    assert!(stage.images.requests().is_empty());
}
