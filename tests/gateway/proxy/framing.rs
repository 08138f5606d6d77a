//! Raw heads and bodies that another parser could read in another way: each is refused, its connection ends, and no
//! provider and no service sees a request of it.

use crate::models::fronts::chat_completions::{PLAIN, reply};
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
        // It is an answer of ours, whatever parser found the fault.
        assert!(answer.header("x-request-id").is_some(), "{answer:?}");
        assert!(answer.header("server").is_none(), "{answer:?}");
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
        "X: a\u{7f}b",
        "Connection: host",
        "Connection: close, X-Forwarded-For",
        "Connection: \"host\"",
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
        "GET PATH?a=\u{1}b HTTP/1.1\r\nHost: a",
        "GET PATH?a=b\u{7f} HTTP/1.1\r\nHost: a",
        "GET PATH?a=b\tc HTTP/1.1\r\nHost: a",
        "GET PATH?a=b c HTTP/1.1\r\nHost: a",
        "GET PATH c HTTP/1.1\r\nHost: a",
        "GET PATH?a=b\rc HTTP/1.1\r\nHost: a",
        "GET PATH?a=\0 HTTP/1.1\r\nHost: a",
        "GET PATH?a=\"b\" HTTP/1.1\r\nHost: a",
        "GET PATH<b> HTTP/1.1\r\nHost: a",
        "GET  PATH HTTP/1.1\r\nHost: a",
        "GET PATH HTTP/3.0\r\nHost: a",
        "GET http://aPATH HTTP/1.1\r\nHost: A",
        "PRIX PATH HTTP/1.1\r\nHost: a b",
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
    for lines in [
        "CONNECT a:443 HTTP/1.1\r\nHost: a:443",
        "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22",
        "CONNECT a:443 HTTP/1.0\r\nHost: a:443",
        "CONNECT PATH HTTP/1.1\r\nHost: a",
        "CONNECT http://aPATH HTTP/1.1\r\nHost: a",
        "CONNECT b:443 HTTP/1.1\r\nHost: a",
        "connect a:443 HTTP/1.1\r\nHost: a:443",
    ] {
        front.refuses(&format!("{lines}\r\nKEY\r\n\r\n"), 400);
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
    for long in [&long, &long.repeat(8), &long.repeat(32)] {
        front.refuses(
            &format!("GET PATH?{long} HTTP/1.1\r\nHost: a\r\nKEY\r\n\r\n"),
            414,
        );
    }
    for count in [300, 3000] {
        let many = "X: y\r\n".repeat(count);
        front.refuses(
            &format!("GET PATH HTTP/1.1\r\nHost: a\r\nKEY\r\n{many}\r\n"),
            431,
        );
    }
    front.nobody_was_asked();
}

#[test]
fn a_head_over_http2_that_is_none_is_judged_as_one_of_http1() {
    let front = Front::new("http2 = false");
    let (status, _, is_over) = front.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!((status, is_over), (400, true));
}

#[test]
fn a_refused_head_is_logged_under_its_path_and_its_id() {
    let front = Front::new("");
    let mut client = Client::connect(front.gateway.address());
    client.send_bytes(
        "POST /v1/chat/completions?\u{1} HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine-1\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!(answer.header("x-request-id"), Some("mine-1"));
    assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    let line = front.gateway.log_line("mine-1");
    assert_eq!(line["path"], "/v1/chat/completions");
    assert_eq!(
        (&line["status"], &line["outcome"]),
        (&400.into(), &"refused".into())
    );
}

#[test]
fn of_two_equal_lengths_one_goes_on() {
    let front = Front::new("");
    let (status, ..) = front.send(format!(
        "POST /content/v2?auth=k1 HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\
         X: y\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{QUERY}",
        length = QUERY.len()
    ));
    assert_eq!(status, 200);
    let request = front.service.request(0);
    let lengths = request
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    assert_eq!(lengths.count(), 1);
    assert_eq!(request.body, QUERY.as_bytes());
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
        "\r\n\r\n",
        "\r\nhello\r\n",
        ";a\r\n\r\n",
        " \r\n\r\n",
        "3\r\nabc\r\n\r\n\r\n",
        "3\r\nabc\r\n;a\r\n\r\n",
        "3\r\nabc\r\n \r\n\r\n",
        "3\r\nabc\r\n0 \r\n\r\n",
        "0\r\nGET /content/v2 HTTP/1.1\r\n\r\n",
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
            let answer = client.answer();
            assert_eq!(answer.status(), 400, "{path} {chunks:?}");
            assert!(answer.header("x-request-id").is_some());
            // Nor is what comes later a request of its own.
            client.send_bytes("\r\n0\r\n\r\nGET /content/v2 HTTP/1.1\r\nHost: a\r\n\r\n");
            assert!(client.rest().0.is_empty(), "{path} {chunks:?}");
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

/// Source: docs/model-gateway.md 7: `Compatible style: {error: {message (string), type (string), param (string or null), code
/// (string or null)}}, all required`, also where a graph service has all other paths.
/// Contract: model-gateway 9 1
#[test]
fn a_base_url_without_its_version_is_told_and_no_key_leaves() {
    let front = Front::new("");
    let key = &front.gateway.key;
    let answer = ask(
        front.gateway.address(),
        &Ask::post("/chat/completions", PLAIN).key(key),
    );
    assert_eq!(answer.status(), 404);
    let error = &answer.json()["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("add `/v1`"), "{error}");
    assert!(error["type"].is_string(), "{error}");
    for member in ["param", "code"] {
        assert!(error.get(member).is_some(), "{member}: {error}");
    }
    assert_eq!(answer.header("x-ratelimit-window"), None);
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
