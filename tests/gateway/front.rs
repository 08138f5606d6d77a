//! Raw heads and bodies that another parser could read in another way: each is refused, its connection ends, and no
//! provider and no service sees a request of it.

use super::chat_completions::{PLAIN, reply};
use crate::support::ask::Ask;
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::{Client, ask};
use crate::support::script::Reply;
use crate::support::upstream::Upstream;

const QUERY: &str = r#"{"query":"{ a }"}"#;

/// A gateway in front of a provider and of a graph service.
struct Front {
    provider: Upstream,
    service: Upstream,
    gateway: Gateway,
}

impl Front {
    fn new(listen: &str) -> Front {
        let provider = Upstream::always(reply());
        let service = Upstream::always(Reply::json(200, r#"{"data":{"a":1}}"#));
        let more = format!(
            "[listen]\n{listen}\n[graph]\nupstream = \"{}\"\n\
             [[graph.tenants]]\nid = \"t1\"\nsingle_keys = [\"k1\"]\n",
            service.url()
        );
        let gateway = Gateway::with(&provider.url(), &provider.url(), &more);
        Front {
            provider,
            service,
            gateway,
        }
    }

    /// Sends raw bytes; returns the status, the limit in the response, and whether the connection ended behind it.
    fn send(&self, bytes: impl AsRef<[u8]>) -> (u16, Option<String>, bool) {
        let mut client = Client::connect(self.gateway.address());
        client.send_bytes(bytes);
        let answer = client.answer();
        let limit = answer.header("x-ratelimit-limit").map(str::to_owned);
        (answer.status(), limit, client.rest().0.is_empty())
    }

    /// Sends a request to a path of the gateway and to one of the service, each with a second request behind it.
    fn refuses(&self, head: &str, status: u16) {
        for path in ["/v1/chat/completions", "/content/v2"] {
            let head = head.replace("PATH", path);
            let key = format!("Authorization: Bearer {}\r\n", self.gateway.key);
            let head = head.replace("KEY\r\n", if path.starts_with("/v1") { &key } else { "" });
            let bytes = format!("{head}GET /content/v2 HTTP/1.1\r\nHost: a\r\n\r\n");
            let (got, _, is_over) = self.send(&bytes);
            assert_eq!(got, status, "{head:?}");
            assert!(is_over, "the connection stays open: {head:?}");
        }
    }

    fn nobody_was_asked(&self) {
        assert!(self.provider.requests().is_empty());
        assert!(self.service.requests().is_empty());
    }
}

#[test]
fn a_head_that_can_be_framed_in_two_ways_is_refused_and_ends_its_connection() {
    let front = Front::new("");
    for lines in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 0",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 6",
        "Content-Length: +5",
        "Content-Length: -1",
        "Content-Length: 0x5",
        "Content-Length: 18446744073709551616",
        "Content-Length:",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked;a=b",
        "Transfer-Encoding: \u{b}chunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:\tchunked\r\n chunked",
        "X: a\nContent-Length: 5",
        "X: a\rb",
        "X: a\0b",
        "X\u{e9}: b",
        "X: a\r\n folded",
        "Host: b",
    ] {
        front.refuses(
            &format!("POST PATH HTTP/1.1\r\nHost: a\r\nKEY\r\n{lines}\r\n\r\n"),
            400,
        );
    }
    front.refuses(
        "POST PATH HTTP/1.0\r\nKEY\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
    );
    front.nobody_was_asked();
}

#[test]
fn a_request_line_that_can_be_read_in_two_ways_is_refused() {
    let front = Front::new("");
    for line in [
        "post PATH HTTP/1.1\r\nHost: a",
        "PoST PATH HTTP/1.1\r\nHost: a",
        "GET\u{1} PATH HTTP/1.1\r\nHost: a",
        "GET PATH HTTP/1.1\nHost: a",
        "\nGET PATH HTTP/1.1\r\nHost: a",
        "GET PATH HTTP/1.1",
        "GET PATH HTTP/1.1\r\nHost:",
        "GET PATH HTTP/1.1\r\nHost: a b",
        "GET PATH HTTP/1.1\r\nHost: a/b",
        "GET PATH HTTP/1.1\r\nHost: a\r\nHost: a",
        "GET http://bPATH HTTP/1.1\r\nHost: a",
        "GET http://u@aPATH HTTP/1.1\r\nHost: a",
        "GET PATH\u{e9} HTTP/1.1\r\nHost: a",
        "GET PATH?\u{e9} HTTP/1.1\r\nHost: a",
        "GET PATH\u{7f} HTTP/1.1\r\nHost: a",
        "GET PATH\u{1} HTTP/1.1\r\nHost: a",
        "GET x HTTP/1.1\r\nHost: a",
        "OPTIONS * HTTP/1.1\r\nHost: a",
    ] {
        front.refuses(&format!("{line}\r\nKEY\r\n\r\n"), 400);
    }
    front.nobody_was_asked();
}

/// A tunnel would lead past every limit. What follows the head would be its bytes, so the connection ends.
#[test]
fn no_tunnel_is_opened() {
    let front = Front::new("");
    for (lines, status) in [
        ("CONNECT a:443 HTTP/1.1\r\nHost: a:443", 405),
        ("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22", 405),
        ("CONNECT a:443 HTTP/1.0\r\nHost: a:443", 405),
        ("CONNECT PATH HTTP/1.1\r\nHost: a", 405),
        ("CONNECT http://aPATH HTTP/1.1\r\nHost: a", 405),
        ("CONNECT b:443 HTTP/1.1\r\nHost: a", 400),
        ("connect a:443 HTTP/1.1\r\nHost: a:443", 400),
    ] {
        front.refuses(&format!("{lines}\r\nKEY\r\n\r\n"), status);
    }
    front.nobody_was_asked();
}

#[test]
fn a_refused_head_of_the_service_keeps_the_headers_of_its_limit() {
    let front = Front::new("");
    let head = "POST /content/v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (status, limit, is_over) = front.send(head);
    assert_eq!(
        (status, limit.as_deref(), is_over),
        (400, Some("1500"), true)
    );
}

#[test]
fn a_head_that_is_too_large_says_in_which_way() {
    let front = Front::new("");
    let many = "X: y\r\n".repeat(100);
    front.refuses(
        &format!("GET PATH HTTP/1.1\r\nHost: a\r\nKEY\r\n{many}\r\n"),
        431,
    );
    let large = "y".repeat(33 << 10);
    front.refuses(
        &format!("GET PATH HTTP/1.1\r\nHost: a\r\nKEY\r\nX: {large}\r\n\r\n"),
        431,
    );
    let long = "y".repeat(8 << 10);
    front.refuses(
        &format!("GET PATH?{long} HTTP/1.1\r\nHost: a\r\nKEY\r\n\r\n"),
        414,
    );
    front.nobody_was_asked();
}

/// Pingora percent-encodes a space and control bytes before any hook runs, so they arrive as text.
#[test]
fn what_must_be_encoded_in_a_query_arrives_encoded() {
    let front = Front::new("");
    let (status, ..) = front
        .send("GET /content/v2?a=\u{1}b\u{7f} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status, 200);
    assert_eq!(front.service.request(0).path, "/content/v2?a=%01b%7F");
    let (status, ..) =
        front.send("GET /content/v2?a=b c\r<d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(status, 200);
    let path = front.service.request(1).path;
    assert_eq!(path, "/content/v2?a=b%20c%0D%3Cd");
}

#[test]
fn a_broken_chunk_ends_the_connection_and_completes_no_request() {
    let front = Front::new("");
    for chunks in [
        "0x5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "-1\r\nhello\r\n0\r\n\r\n",
        "5;a\nhello\r\n0\r\n\r\n",
        "g\r\n\r\n",
    ] {
        for (path, more) in [
            (
                "/v1/chat/completions",
                format!("Authorization: Bearer {}\r\n", front.gateway.key),
            ),
            ("/content/v2?auth=k1", String::new()),
        ] {
            let mut client = Client::connect(front.gateway.address());
            client.send_bytes(format!(
                "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{more}\
                 Transfer-Encoding: chunked\r\n\r\n{chunks}GET /content/v2 HTTP/1.1\r\nHost: a\r\n\r\n"
            ));
            client.half_close();
            if let Ok(head) = client.try_head() {
                assert_eq!(head.status, 400, "{path} {chunks:?}");
            }
            let (rest, _) = client.rest();
            let rest = String::from_utf8_lossy(&rest);
            assert!(!rest.contains("HTTP/1.1 "), "{path} {chunks:?}: {rest}");
        }
    }
    assert!(front.provider.requests().is_empty());
    let completed = front
        .service
        .requests()
        .into_iter()
        .filter(|request| request.is_complete);
    assert_eq!(completed.count(), 0);
}

#[test]
fn a_base_url_without_its_version_is_told_and_no_key_leaves() {
    let front = Front::new("");
    let key = &front.gateway.key;
    let answer = ask(
        front.gateway.address(),
        &Ask::post("/chat/completions", PLAIN).key(key),
    );
    assert_eq!(answer.status(), 404);
    assert!(answer.text().contains("add `/v1`"), "{}", answer.text());
    let basic = format!("curl -u: {key}");
    for request in [
        Ask::post("/content/v2", QUERY).key(key),
        Ask::post("/content/v2", QUERY).header("X-Api-Key", key),
        Ask::post("/content/v2", QUERY).header("X-Other", &basic),
        Ask::get(&format!("/content/v2?auth=k1&key={key}")),
    ] {
        let answer = ask(front.gateway.address(), &request);
        assert_eq!(answer.status(), 404, "{}", answer.text());
        assert!(!answer.text().contains(key.as_str()));
        assert_eq!(answer.header("x-ratelimit-limit"), Some("1500"));
    }
    front.nobody_was_asked();
    let answer = ask(
        front.gateway.address(),
        &Ask::post("/content/v2?auth=k1", QUERY),
    );
    assert_eq!(answer.status(), 200);
}

#[test]
fn tunnels_and_traces_are_refused() {
    let front = Front::new("");
    for line in [
        "CONNECT a:80 HTTP/1.1\r\nHost: a:80",
        "CONNECT PATH HTTP/1.1\r\nHost: a",
        "TRACE PATH HTTP/1.1\r\nHost: a",
    ] {
        for path in ["/v1/chat/completions", "/content/v2"] {
            let head = line.replace("PATH", path);
            let (status, _, _) = front.send(format!("{head}\r\n\r\n"));
            assert!((400..500).contains(&status), "{status}: {head}");
        }
    }
    front.nobody_was_asked();
}

#[test]
fn no_text_of_a_body_becomes_a_header_and_no_header_takes_ours_away() {
    let provider = Upstream::always(reply());
    let toml = format!(
        "[providers.first]\nkind = \"openai-compatible\"\nbase_url = \"{}/v1\"\nkeys = [{{ env = \"FIRST_KEY\" }}]\n",
        provider.url()
    );
    let env = [("FIRST_KEY", "the-providers-key")];
    let gateway = Gateway::start_with_env(&toml, MODELS, &env);
    let evil = "a\r\nX-Evil: 1";
    let message = serde_json::json!({"role": "user", "content": evil});
    let body = serde_json::json!({"model": "chat", "user": evil, "messages": [message]});
    let named = "authorization, content-length, x-api-key, cookie";
    let request = gateway
        .chat_ask(body.to_string())
        .header("Connection", named);
    let answer = ask(gateway.address(), &request);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let seen = provider.request(0);
    assert_eq!(seen.header("x-evil"), None);
    let credential = seen.header("authorization");
    assert_eq!(credential, Some("Bearer the-providers-key"));
    assert_eq!(seen.json()["user"], evil);
    for value in [
        "a/b/c",
        "@prompt/../x",
        "%00",
        "a\r\nX-Evil: 1",
        &"m".repeat(10_000),
    ] {
        let body =
            serde_json::json!({"model": value, "messages": [{"role": "user", "content": "Hi"}]});
        let answer = gateway.chat(body.to_string());
        assert!(matches!(answer.status(), 400 | 404), "{value:.20}");
        assert!(answer.header("x-evil").is_none());
    }
}
