//! `GET /v1/videos/{id}/content`: bytes as they come, whole or in part.

use crate::models::fronts::videos::{VIDEOS, get, order, studio, there, wait_for};
use crate::support::ask::Ask;
use crate::support::boot::Gateway;
use crate::support::client::{Answer, Client, End, ask};
use crate::support::script::{Cut, Reply};
use crate::support::upstream::{Received, Upstream};

const BYTES: &str = "0123456789";

/// A gateway with a video that is there, and the path of its content.
fn filmed(
    content: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    more: &str,
) -> (Upstream, Gateway, String) {
    let studio = studio(|_| there(), content);
    let gateway = VIDEOS.gateway([&studio, &studio], more, "1");
    let job = wait_for(&gateway, &order(&gateway), "completed");
    let path = format!("/v1/videos/{}/content", job["id"].as_str().unwrap());
    (studio, gateway, path)
}

fn whole(_: &Received) -> Reply {
    Reply::whole(
        200,
        &[("content-type", "video/mp4"), ("set-cookie", "a=b")],
        BYTES,
    )
}

fn range(gateway: &Gateway, path: &str, range: &str) -> Answer {
    let request = Ask::get(path).key(&gateway.key).header("range", range);
    ask(gateway.address(), &request)
}

/// Contract: model-gateway 4 GET /v1/videos/{id}/content
#[test]
fn bytes_pass_with_few_headers() {
    let (studio, gateway, path) = filmed(whole, "");
    let answer = get(&gateway, &path);
    assert_eq!((answer.status(), answer.text()), (200, BYTES));
    assert_eq!(answer.header("content-type"), Some("video/mp4"));
    assert_eq!(answer.header("content-length"), Some("10"));
    assert_eq!(answer.header("set-cookie"), None);
    assert!(answer.header("x-request-id").is_some());
    let asked = studio.requests().pop().unwrap();
    assert_eq!(asked.header("authorization"), Some("Bearer sk-platform"));
    let head = ask(
        gateway.address(),
        &Ask::new("HEAD", &path).key(&gateway.key),
    );
    assert_eq!((head.status(), head.text()), (200, ""));
    let bad = get(&gateway, &format!("{path}?variant=thumbnail"));
    assert_eq!(
        (bad.status(), &bad.json()["error"]["param"]),
        (400, &"variant".into())
    );
}

/// Contract: model-gateway 4 GET /v1/videos/{id}/content
#[test]
fn a_range_is_cut_here_where_the_provider_sends_all() {
    let (_studio, gateway, path) = filmed(whole, "");
    for (asked, bytes, place) in [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=5-500", "56789", "bytes 5-9/10"),
    ] {
        let answer = range(&gateway, &path, asked);
        assert_eq!((answer.status(), answer.text()), (206, bytes), "{asked}");
        assert_eq!(answer.header("content-range"), Some(place));
        let length = bytes.len().to_string();
        assert_eq!(answer.header("content-length"), Some(&*length));
    }
    let behind = range(&gateway, &path, "bytes=10-");
    assert_eq!(behind.status(), 416, "{}", behind.text());
    assert_eq!(behind.header("content-range"), Some("bytes */10"));
    assert_eq!(behind.json()["error"]["code"], "range_not_satisfiable");
    assert_eq!(range(&gateway, &path, "bytes=0-1,4-5").status(), 200);
}

#[test]
fn a_provider_that_knows_ranges_answers_them_itself() {
    let parts = |request: &Received| match request.header("range") {
        Some("bytes=2-3") => Reply::whole(
            206,
            &[
                ("content-range", "bytes 2-3/10"),
                ("etag", "\"e\""),
                ("content-type", "video/webm"),
            ],
            "23",
        ),
        _ => Reply::whole(416, &[("content-range", "bytes */10")], "<html>"),
    };
    let (studio, gateway, path) = filmed(parts, "");
    let request = Ask::get(&path).key(&gateway.key);
    let request = request
        .header("range", "bytes=2-3")
        .header("if-range", "\"e\"");
    let answer = ask(gateway.address(), &request);
    assert_eq!((answer.status(), answer.text()), (206, "23"));
    assert_eq!(answer.header("content-range"), Some("bytes 2-3/10"));
    assert_eq!(answer.header("content-type"), Some("video/webm"));
    assert_eq!(
        studio.requests().pop().unwrap().header("if-range"),
        Some("\"e\"")
    );
    let behind = range(&gateway, &path, "bytes=99-");
    assert_eq!(behind.status(), 416);
    assert_eq!(behind.header("content-range"), Some("bytes */10"));
    assert_eq!(behind.json()["error"]["code"], "range_not_satisfiable");
}

#[test]
fn what_breaks_off_or_is_too_long_does_not_look_whole() {
    let cut = |_: &Received| Reply::whole(200, &[], BYTES.repeat(100)).cut(500, Cut::Close);
    let (_studio, gateway, path) = filmed(cut, "");
    let mut client = Client::connect(gateway.address());
    client.send(&Ask::get(&path).key(&gateway.key));
    assert_eq!(client.head().status, 200);
    let (bytes, end) = client.rest();
    assert!(
        bytes.len() < 1000 && end != End::Complete,
        "{} {end:?}",
        bytes.len()
    );
    let long = "[limits]\nbody_bytes = { video = 1024 }";
    let (_studio, gateway, path) = filmed(|_| Reply::whole(200, &[], "x".repeat(1025)), long);
    let answer = get(&gateway, &path);
    assert_eq!(
        (answer.status(), &answer.json()["error"]["code"]),
        (502, &"video_too_large".into())
    );
    let chunked = |_: &Received| Reply::chunked(200, &[]).chunk("x".repeat(1025)).end();
    let (_studio, gateway, path) = filmed(chunked, long);
    let mut client = Client::connect(gateway.address());
    client.send(&Ask::get(&path).key(&gateway.key));
    let (_, end) = match client.try_head() {
        Ok(_) => client.rest(),
        Err(end) => (Vec::new(), end),
    };
    assert!(end != End::Complete, "{end:?}");
}

#[test]
fn a_provider_that_fails_is_not_the_clients_fault() {
    for (reply, status, code) in [
        (Reply::json(404, "{}"), 404, "video_content_expired"),
        (Reply::json(401, "sk-platform"), 502, "video_content_failed"),
        (Reply::json(503, "{}"), 503, "upstream_unavailable"),
        (
            Reply::whole(302, &[("location", "http://10.0.0.1/")], ""),
            502,
            "video_content_failed",
        ),
        (Reply::whole(302, &[], ""), 502, "video_content_failed"),
    ] {
        let (_studio, gateway, path) = filmed(move |_| reply.clone(), "");
        let answer = get(&gateway, &path);
        assert_eq!(
            (answer.status(), &answer.json()["error"]["code"]),
            (status, &code.into())
        );
        assert!(!answer.text().contains("sk-platform"));
    }
}

#[test]
fn a_video_that_is_not_there_yet_has_no_content() {
    let studio = studio(|_| Reply::json(500, "{}"), whole);
    let gateway = VIDEOS.gateway([&studio, &studio], "", "1");
    let job = order(&gateway);
    let answer = get(
        &gateway,
        &format!("/v1/videos/{}/content", job["id"].as_str().unwrap()),
    );
    assert_eq!(
        (answer.status(), &answer.json()["error"]["code"]),
        (400, &"video_not_completed".into())
    );
}

/// A provider may stand in the operator's network, and link to what else stands there.
#[test]
fn no_link_leads_to_another_port_of_a_trusted_host_or_to_another_provider() {
    let target = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let told = std::sync::Arc::clone(&target);
    let redirect = move |_: &Received| {
        let location = told.lock().unwrap().clone();
        Reply::whole(302, &[("location", &location)], "")
    };
    let studio = studio(|_| there(), redirect);
    let other = Upstream::always(Reply::whole(200, &[], "a secret"));
    let gateway = VIDEOS.gateway([&studio, &other], "", "1");
    let job = wait_for(&gateway, &order(&gateway), "completed");
    let path = format!("/v1/videos/{}/content", job["id"].as_str().unwrap());
    let own = studio.url();
    let seen = studio.requests().len();
    for url in [
        format!("{}/a", other.url()),
        format!("{}/a", other.url().replacen("http:", "https:", 1)),
        format!("http://{}/metrics", gateway.admin()),
        own.replacen("http://", "http://a:b@", 1),
        own.replacen("http:", "https:", 1),
        "https://[2606:4700::1111]@169.254.169.254/".to_owned(),
        "https://10.0.0.1/".to_owned(),
    ] {
        *target.lock().unwrap() = url.clone();
        let answer = get(&gateway, &path);
        let code = &answer.json()["error"]["code"];
        assert_eq!(
            (answer.status(), code),
            (502, &"video_content_failed".into()),
            "{url}"
        );
    }
    assert!(other.requests().is_empty());
    assert_eq!(studio.requests().len(), seen + 7);
    // Its own origin is asked again, and up to three times.
    *target.lock().unwrap() = format!("{own}/v1/videos/up_1/content");
    assert_eq!(get(&gateway, &path).status(), 502);
    assert_eq!(studio.requests().len(), seen + 7 + 4);
}
