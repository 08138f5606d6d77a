//! Images by address, fetched for providers that take none.

use std::time::Duration;

use serde_json::{Value, json};

use crate::models::fronts::chat_completions::reply;
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
    stage_at(first, Upstream::always(images), more)
}

fn stage_at(first: Reply, images: Upstream, more: &str) -> Stage {
    let (first, second) = (Upstream::always(first), Upstream::always(reply()));
    let open = Upstream::always(reply());
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
    fn ask_all(&self, model: &str, urls: &[String]) -> Answer {
        let part = |url: &String| json!({"type": "image_url", "image_url": {"url": url}});
        let content: Vec<Value> = urls.iter().map(part).collect();
        let body = json!({"model": model, "messages": [{"role": "user", "content": content}]});
        self.gateway.chat(body.to_string())
    }

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
fn an_address_is_fetched_once_however_often_it_stands_and_few_addresses_are() {
    let stage = stage(reply(), image_reply(), "");
    let answer = stage.ask_all("pair", &vec![stage.address(); 33]);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(stage.images.requests().len(), 1);
    let content = &stage.first.requests()[0].json()["messages"][0]["content"];
    assert_eq!(content.as_array().unwrap().len(), 33);
    assert_eq!(content[32]["image_url"]["url"], AS_URL);
    let address = |number| format!("{}/{number}.gif", stage.images.url());
    let mut urls: Vec<String> = (0..32).map(address).collect();
    assert_eq!(stage.ask_all("pair", &urls).status(), 200);
    // All of them but one are in the cache, and count.
    urls.push(address(32));
    let answer = stage.ask_all("pair", &urls);
    assert_eq!(answer.status(), 400, "{}", answer.text());
    let error = answer.json()["error"].clone();
    assert_eq!(error["param"], "messages[0].content[32].image_url.url");
    assert!(error["message"].as_str().unwrap().contains("after 32"));
}

#[test]
fn fetched_images_make_no_body_that_a_caller_could_not_have_sent() {
    let image = [GIF, &[0; 6000]].concat();
    let images = Reply::whole(200, &[], image);
    let stage = stage(reply(), images, "[limits.body_bytes]\nchat = 20000\n");
    let address = stage.address();
    // A data URL of 8 kB stands twice in 20 kB, and not thrice, whether it is fetched or in the cache.
    for (count, status) in [(3, 413), (2, 200), (3, 413)] {
        let answer = stage.ask_all("pair", &vec![address.clone(); count]);
        assert_eq!(answer.status(), status, "{}", answer.text());
        if status == 413 {
            let error = answer.json()["error"].clone();
            assert_eq!(error["param"], "messages[0].content[0].image_url.url");
            let said = error["message"].as_str().unwrap();
            assert!(said.contains("at most 20000 bytes"), "{said}");
        }
    }
    assert_eq!(stage.first.requests().len(), 1);
}

#[test]
fn what_stands_in_the_body_counts_in_the_memory_of_all_bodies() {
    let image = [GIF, &[0; 30_000]].concat();
    let images = Reply::whole(200, &[], image);
    let stage = stage(reply(), images, "[limits]\nbuffered_bytes = 1048576\n");
    let address = stage.address();
    for (count, status) in [(10, 200), (33, 529)] {
        let answer = stage.ask_all("pair", &vec![address.clone(); count]);
        assert_eq!(answer.status(), status, "{}", answer.text());
    }
}

#[test]
fn no_request_takes_all_permits_and_no_queue_makes_a_fetch_late() {
    let images = Upstream::answering(|request| {
        let is_slow = request.path.contains("slow");
        let pause = if is_slow { 900 } else { 0 };
        image_reply().before(Duration::from_millis(pause))
    });
    let stage = stage_at(reply(), images, "max_fetches = 4\ntimeout_s = 1\n");
    let slow = |number| format!("{}/slow{number}.gif", stage.images.url());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| stage.ask_all("pair", &[slow(1), slow(2)]));
        stage.images.wait_requests(1);
        let started = std::time::Instant::now();
        assert_eq!(stage.ask("pair", &stage.address()).status(), 200);
        assert!(started.elapsed() < Duration::from_millis(700));
        let answer = waiting.join().unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text());
    });
}

#[test]
fn private_addresses_are_refused_and_others_pass_to_who_takes_them() {
    let stage = stage(reply(), image_reply(), "");
    for url in [
        "https://127.0.0.1/a.gif",
        "https://[::ffff:169.254.169.254]/a.gif",
        "https://localhost/a.gif",
        // A name that nobody has is told from one of a private address by nothing.
        "https://nowhere.invalid/a.gif",
    ] {
        let answer = stage.ask("pair", url);
        assert_eq!(answer.status(), 400, "{}", answer.text());
        let error = answer.json()["error"].clone();
        assert_eq!(error["code"], "destination_ip_prohibited", "{url}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.ends_with("its host has not public addresses alone"),
            "{message}"
        );
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
