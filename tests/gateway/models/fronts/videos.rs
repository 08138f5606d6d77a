//! `POST /v1/videos`: what goes up, who is tried, what a job costs and when, who is told of its end. Source:
//! docs/model-gateway.md 2.17, docs/promises-tests.md.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use filters::accounts::TermsFile;
use filters::audit::PROGRAM;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use weirgate::store::KeyChange;

use crate::ledger::used;
use crate::models::fronts::operations::Operation;
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, ask};
use crate::support::script::Reply;
use crate::support::upstream::{Received, Upstream};
use crate::support::{stays, until};

mod crashes;
mod lanes;
mod operations;
mod refused;

/// A model at two providers, 0.1 and 0.2 USD a second, and a chat.
pub const MODELS: &str = r#"
[[models]]
id = "film"
type = "video"
[[models.providers]]
provider = "first"
name = "film-at-first"
output_second_price = "0.1"
video_seconds = [4, 8]
video_sizes = ["1280x720", "720x1280"]
[[models.providers]]
provider = "second"
name = "film-at-second"
output_second_price = "0.2"
[[models]]
id = "chat"
[[models.providers]]
provider = "second"
name = "chat"
"#;

pub const VIDEOS: Operation = Operation {
    path: "/v1/videos",
    kinds: ["openai-compatible", "openai-compatible"],
    models: MODELS,
    body: r#"{"model":"film","prompt":"a cat","seconds":4}"#,
    replies: [there, there],
    costs: ["0.4", "0.8"],
    left: "0",
};

/// An order that only the cheaper provider gets.
const PINNED: &str = r#"{"model":"first/film","prompt":"a cat","seconds":4}"#;

/// A job that is there as soon as it is ordered.
pub fn there() -> Reply {
    job("completed", json!({"progress": 100}))
}

fn job(status: &str, more: Value) -> Reply {
    let mut job = json!({"id": "up_1", "object": "video", "model": "up", "status": status, "seconds": "4",
                         "size": "1280x720", "created_at": 5, "error": null, "remixed_from_video_id": null});
    job.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    Reply::json(200, job.to_string())
}

/// A provider whose jobs do what `polls` says of the n-th poll, and whose content is `content`.
pub fn studio(
    polls: impl Fn(usize) -> Reply + Send + Sync + 'static,
    content: impl Fn(&Received) -> Reply + Send + Sync + 'static,
) -> Upstream {
    let count = AtomicUsize::new(0);
    Upstream::answering(move |request| match (&*request.method, &*request.path) {
        ("POST", "/v1/videos") => job("queued", json!({})),
        ("GET", "/v1/videos/up_1") => polls(count.fetch_add(1, Ordering::SeqCst)),
        ("GET", "/v1/videos/up_1/content") => content(request),
        ("DELETE", "/v1/videos/up_1") => Reply::json(200, r#"{"deleted":true}"#),
        _ => Reply::json(404, "{}"),
    })
}

pub fn order(gateway: &Gateway) -> Value {
    let answer = VIDEOS.ask(gateway);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.json()
}

pub fn get(gateway: &Gateway, path: &str) -> Answer {
    ask(gateway.address(), &Ask::get(path).key(&gateway.key))
}

/// Waits until a job has this status, and returns it.
pub fn wait_for(gateway: &Gateway, job: &Value, status: &str) -> Value {
    let path = format!("/v1/videos/{}", job["id"].as_str().unwrap());
    let last = Mutex::new(Value::Null);
    until("the job ends", || {
        let now = get(gateway, &path).json();
        let is_there = now["status"] == status;
        *last.lock().unwrap() = now;
        is_there
    });
    last.into_inner().unwrap()
}

/// What is used and still reserved of the credit, once the gateway has stopped.
fn at_the_end(gateway: Gateway) -> (String, String) {
    let credit = gateway.stop_and_ask(async |store| store.credit("acme").await.unwrap());
    (credit.used.to_string(), credit.reserved.to_string())
}

fn amounts(used: &str, reserved: &str) -> (String, String) {
    (used.to_owned(), reserved.to_owned())
}

/// Contract: model-gateway 2.17 size
/// Contract: model-gateway 4 POST /v1/videos
#[test]
fn a_job_is_reserved_for_when_it_is_ordered_and_paid_once_when_it_is_there() {
    let studio = studio(
        |poll| match poll {
            0 => job("in_progress", json!({"progress": 40})),
            _ => there(),
        },
        |_| Reply::json(404, "{}"),
    );
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    let ordered = order(&gateway);
    let id = ordered["id"].as_str().unwrap();
    assert!(id.starts_with("v_") && id.len() == 34, "{id}");
    let expected = json!({"id": id, "object": "video", "model": "first/film", "status": "queued", "progress": 0,
                          "created_at": ordered["created_at"], "completed_at": null, "expires_at": null,
                          "seconds": "4", "size": "1280x720", "error": null});
    assert_eq!(ordered, expected);
    used(&gateway, "0");
    assert_eq!(wait_for(&gateway, &ordered, "in_progress")["progress"], 40);
    let done = wait_for(&gateway, &ordered, "completed");
    assert_eq!(done["usage"]["cost"], json!(0.4));
    assert_eq!(used(&gateway, "0.4").balance().to_string(), "0.6");
    let usage = gateway.beside(async |store| store.usage("acme", 0, None).await.unwrap());
    assert_eq!(
        (usage[0].requests, usage[0].cost.to_string()),
        (1, "0.4".to_owned())
    );
    let sent = studio.request(0);
    let expected =
        json!({"model": "film-at-first", "prompt": "a cat", "seconds": "4", "size": "1280x720"});
    assert_eq!(sent.json(), expected);
    assert_eq!(
        studio.request(1).header("authorization"),
        Some("Bearer sk-platform")
    );
    assert!(
        gateway
            .metrics()
            .contains("weirgate_videos_total{status=\"completed\"} 1")
    );
    assert_eq!(at_the_end(gateway), amounts("0.4", "0"));
}

#[test]
fn what_a_job_may_cost_stays_reserved_while_nobody_runs() {
    let studio = studio(|_| Reply::json(500, "{}"), |_| Reply::json(404, "{}"));
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    order(&gateway);
    assert_eq!(at_the_end(gateway), amounts("0", "0.4"));
}

#[test]
fn a_job_that_fails_costs_nothing_and_says_why_without_secrets() {
    let message = "blocked for sk-platform";
    let error = json!({"error": {"code": "moderation_blocked", "message": message}});
    let studio = studio(
        move |_| job("failed", error.clone()),
        |_| Reply::json(404, "{}"),
    );
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    let done = wait_for(&gateway, &order(&gateway), "failed");
    assert_eq!(done["error"]["code"], "moderation_blocked");
    let message = done["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("blocked") && !message.contains("sk-platform"),
        "{message}"
    );
    assert_eq!(done["usage"], Value::Null);
    assert_eq!(at_the_end(gateway), amounts("0", "0"));
}

#[test]
fn a_job_that_does_not_come_is_given_up_and_costs_nothing() {
    let studio = studio(
        |_| job("in_progress", json!({})),
        |_| Reply::json(404, "{}"),
    );
    let gateway = VIDEOS.gateway([&studio, &studio], "[videos]\ntimeout_s = 1", "1");
    let done = wait_for(&gateway, &order(&gateway), "expired");
    assert_eq!(done["error"]["code"], "video_expired");
    assert_eq!(at_the_end(gateway), amounts("0", "0"));
}

#[test]
fn a_job_survives_a_restart_and_is_paid_once() {
    let studio = studio(
        |poll| match poll {
            0..2 => Reply::json(500, "{}"),
            _ => there(),
        },
        |_| Reply::json(404, "{}"),
    );
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    let ordered = order(&gateway);
    studio.request(1);
    let gateway = gateway.restart();
    wait_for(&gateway, &ordered, "completed");
    used(&gateway, "0.4");
    // Open jobs are looked at twice a second.
    let asked = studio.requests().len();
    let is_over = || studio.requests().len() == asked;
    stays(
        "it is not asked for again",
        Duration::from_millis(600),
        is_over,
    );
    assert_eq!(at_the_end(gateway), amounts("0.4", "0"));
}

#[test]
fn what_open_jobs_may_cost_counts_against_credit_and_limits() {
    let studio = studio(
        |poll| match poll {
            0 => job("in_progress", json!({})),
            _ => job("failed", json!({})),
        },
        |_| Reply::json(404, "{}"),
    );
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    let pinned = VIDEOS.request(&gateway).body(PINNED);
    let answers = [0, 1, 2].map(|_| ask(gateway.address(), &pinned));
    assert_eq!(answers.each_ref().map(Answer::status), [200, 200, 402]);
    let [_, _, refused] = answers;
    assert_eq!(
        (refused.status(), &refused.json()["error"]["code"]),
        (402, &json!("insufficient_credits"))
    );
    let gateway = VIDEOS.gateway([&studio, &studio], "", "100");
    gateway.change(async |store| {
        let id = store.keys("acme").await.unwrap().remove(0).id;
        let terms = TermsFile {
            limit_per: [("month".to_owned(), "0.3".to_owned())].into(),
            ..TermsFile::default()
        };
        let wanted = KeyChange {
            terms: Some(terms),
            ..KeyChange::default()
        };
        store.by(&PROGRAM).update_key(&id, &wanted).await.unwrap();
    });
    let first = order(&gateway);
    let refused = VIDEOS.ask(&gateway);
    assert_eq!(
        (refused.status(), &refused.json()["error"]["code"]),
        (402, &json!("key_limit_reached"))
    );
    wait_for(&gateway, &first, "failed");
    // What failed is room again.
    order(&gateway);
}

/// What verifies a webhook, as its receiver would.
fn is_signed(request: &Received, secret: &[u8]) -> bool {
    let header = |name: &str| request.header(name).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    mac.update(&request.body);
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    header("webhook-signature") == expected
}

/// Contract: model-gateway 2.17 callback_url
/// Contract: model-gateway 6 3
#[test]
fn a_callback_is_told_the_end_until_it_takes_it() {
    let studio = studio(|_| there(), |_| Reply::json(404, "{}"));
    let elsewhere = Upstream::always(Reply::json(200, "{}"));
    let moved = Reply::whole(302, &[("location", &elsewhere.url())], "");
    let hook = Upstream::sequence([Reply::json(500, "{}"), moved, Reply::json(204, "")]);
    let more = format!("[videos]\ncallback_origins = [\"{}\"]", hook.url());
    let gateway = VIDEOS.gateway([&studio, &studio], &more, "1");
    let secret = STANDARD.encode(b"a secret of the caller's");
    let body = json!({"model": "film", "prompt": "a cat", "seconds": 4,
                      "callback_url": format!("{}/hook", hook.url()),
                      "callback_secret": format!("whsec_{secret}")});
    let answer = ask(
        gateway.address(),
        &VIDEOS.request(&gateway).body(body.to_string()),
    );
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let told = hook.wait_requests(3);
    for request in &told {
        assert_eq!((&*request.method, &*request.path), ("POST", "/hook"));
        assert!(is_signed(request, b"a secret of the caller's"));
        assert_eq!(request.header("webhook-id"), told[0].header("webhook-id"));
    }
    let body = told[2].json();
    assert_eq!(
        (&body["type"], &body["data"]["id"]),
        (&json!("video.completed"), &answer.json()["id"])
    );
    assert_eq!(body["data"]["usage"]["cost"], json!(0.4));
    assert!(elsewhere.requests().is_empty(), "a redirect was followed");
    // What is not taken is told again after a second, and later after two.
    let is_taken = || hook.requests().len() == 3;
    stays(
        "it is not told again",
        Duration::from_millis(1_500),
        is_taken,
    );
    let metrics = gateway.metrics();
    assert!(metrics.contains("weirgate_video_callbacks_total{outcome=\"refused\"} 2"));
    assert!(metrics.contains("weirgate_video_callbacks_total{outcome=\"taken\"} 1"));
}

#[test]
fn a_callback_to_a_private_address_is_refused_and_costs_nothing() {
    let studio = studio(|_| there(), |_| Reply::json(404, "{}"));
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    for url in [
        studio.url(),
        "https://127.0.0.1/hook".to_owned(),
        "https://169.254.169.254/latest".to_owned(),
        "http://example.com/hook".to_owned(),
    ] {
        let body = json!({"model": "film", "prompt": "a cat", "seconds": 4, "callback_url": url,
                          "callback_secret": "s"});
        let answer = ask(
            gateway.address(),
            &VIDEOS.request(&gateway).body(body.to_string()),
        );
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status(), &error["param"]),
            (400, &json!("callback_url")),
            "{url}"
        );
    }
    assert!(studio.requests().is_empty());
    used(&gateway, "0");
}

#[test]
fn geminis_operations_are_asked_for_with_the_key_and_their_bytes_without_it_elsewhere() {
    let storage = Upstream::always(Reply::whole(200, &[("content-type", "video/mp4")], "bytes"));
    let link = Mutex::new(String::new());
    let link = std::sync::Arc::new(link);
    let (told, target) = (std::sync::Arc::clone(&link), storage.url());
    let google = Upstream::answering(move |request| match &*request.path {
        "/v1beta/models/veo:predictLongRunning" => {
            Reply::json(200, r#"{"name":"models/veo/operations/a1"}"#)
        }
        "/v1beta/models/veo/operations/a1" => {
            let uri = told.lock().unwrap().clone();
            let samples = json!([{"video": {"uri": uri}}]);
            let response = json!({"generateVideoResponse": {"generatedSamples": samples}});
            Reply::json(200, json!({"done": true, "response": response}).to_string())
        }
        "/v1beta/files/f1:download?alt=media" => {
            Reply::whole(302, &[("location", &format!("{target}/b"))], "")
        }
        _ => Reply::json(404, "{}"),
    });
    *link.lock().unwrap() = format!("{}/v1beta/files/f1:download?alt=media", google.url());
    let toml = format!(
        "[providers.google]\nkind = \"google\"\nbase_url = \"{}\"\nreplicas = [\"{}\"]\n\
         keys = [{{ env = \"SECRET\" }}]\n",
        google.url(),
        storage.url()
    );
    let models = "[[models]]\nid = \"veo\"\ntype = \"video\"\n[[models.providers]]\nprovider = \"google\"\n\
                  name = \"veo\"\noutput_second_price = \"0.4\"\n";
    let gateway = Gateway::start_with_credit(&toml, models, &[("SECRET", "sk-platform")], "5");
    let body = r#"{"model":"veo","prompt":"a cat","seconds":8,"size":"1920x1080"}"#;
    let ordered = ask(
        gateway.address(),
        &Ask::post("/v1/videos", body).key(&gateway.key),
    );
    assert_eq!(ordered.status(), 200, "{}", ordered.text());
    let done = wait_for(&gateway, &ordered.json(), "completed");
    assert_eq!(done["usage"]["cost"], json!(3.2));
    assert!(done["expires_at"].as_u64() > done["completed_at"].as_u64());
    used(&gateway, "3.2");
    let path = format!("/v1/videos/{}/content", done["id"].as_str().unwrap());
    let content = get(&gateway, &path);
    assert_eq!((content.status(), content.text()), (200, "bytes"));
    assert!(
        google
            .requests()
            .iter()
            .all(|it| it.header("x-goog-api-key") == Some("sk-platform"))
    );
    assert_eq!(storage.request(0).header("x-goog-api-key"), None);
}

#[test]
fn jobs_on_googles_cloud_are_asked_for_by_their_model_and_hold_their_bytes() {
    const PLACE: &str = "/v1/projects/my-project/locations/global/publishers/google/models/veo";
    let job = "projects/my-project/locations/global/publishers/google/models/veo/operations/a1";
    let polls = AtomicUsize::new(0);
    let cloud = Upstream::answering(move |request| match request.path.strip_prefix(PLACE) {
        Some(":predictLongRunning") => Reply::json(200, json!({ "name": job }).to_string()),
        Some(":fetchPredictOperation") => {
            assert_eq!(request.json(), json!({ "operationName": job }));
            let video =
                json!({"bytesBase64Encoded": STANDARD.encode("bytes"), "mimeType": "video/mp4"});
            let done = json!({"name": job, "done": true, "response": {"videos": [video]}});
            let running = json!({ "name": job });
            let is_first = polls.fetch_add(1, Ordering::SeqCst) == 0;
            Reply::json(200, if is_first { running } else { done }.to_string())
        }
        _ => Reply::json(404, "{}"),
    });
    let toml = format!(
        "[providers.cloud]\nkind = \"vertex\"\nproject = \"my-project\"\nbase_url = \"{}\"\n\
         keys = [{{ env = \"SECRET\" }}]\n",
        cloud.url()
    );
    let models = "[[models]]\nid = \"veo\"\ntype = \"video\"\n[[models.providers]]\nprovider = \"cloud\"\n\
                  name = \"veo\"\noutput_second_price = \"0.4\"\n";
    let gateway = Gateway::start_with_credit(&toml, models, &[("SECRET", "sk-platform")], "5");
    let body = r#"{"model":"veo","prompt":"a cat","seconds":8}"#;
    let ordered = ask(
        gateway.address(),
        &Ask::post("/v1/videos", body).key(&gateway.key),
    );
    assert_eq!(ordered.status(), 200, "{}", ordered.text());
    let done = wait_for(&gateway, &ordered.json(), "completed");
    assert_eq!(done["usage"]["cost"], json!(3.2));
    let path = format!("/v1/videos/{}/content", done["id"].as_str().unwrap());
    let content = get(&gateway, &path);
    assert_eq!((content.status(), content.text()), (200, "bytes"));
    assert_eq!(content.header("content-type"), Some("video/mp4"));
    let part = Ask::get(&path)
        .key(&gateway.key)
        .header("range", "bytes=1-2");
    let part = ask(gateway.address(), &part);
    assert_eq!((part.status(), part.text()), (206, "yt"));
    assert_eq!(part.header("content-range"), Some("bytes 1-2/5"));
    let behind = Ask::get(&path)
        .key(&gateway.key)
        .header("range", "bytes=9-");
    assert_eq!(ask(gateway.address(), &behind).status(), 416);
    let bearer = Some("Bearer sk-platform");
    let mut requests = cloud.requests().into_iter();
    assert!(requests.all(|it| it.header("authorization") == bearer));
}
