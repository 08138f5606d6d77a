//! The parts: an upstream that replies at once, a bare Pingora proxy, and the gateway.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use pingora::http::ResponseHeader;
use pingora::listeners::L4BufferSettings;
use pingora::server::Server;
use pingora::server::configuration::ServerConf;
use pingora::upstreams::peer::HttpPeer;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use weirgate::app::BoundService;
use weirgate::config;
use weirgate::store::{NewKey, Store, StoreSettings};

fn print_line(line: &str) {
    println!("{line}");
    std::io::stdout().flush().unwrap();
}

/// Replies with 1 KB of JSON, a stream of 200 events, or a stream that stays open, as the body says.
pub fn upstream() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        print_line(&listener.local_addr().unwrap().to_string());
        let replies = Arc::new(Replies::new());
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::spawn(reply(stream, Arc::clone(&replies)));
        }
    });
}

struct Replies {
    json: Vec<u8>,
    messages: Vec<u8>,
    batches: Vec<Vec<u8>>,
}

impl Replies {
    fn new() -> Self {
        let whole = |body: String| {
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
        };
        let text = "a".repeat(700);
        let json = whole(format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":9,"completion_tokens":100,"total_tokens":109}}}}"#
        ));
        let messages = whole(r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#.to_owned());
        let mut batches = Vec::new();
        for batch in 0..20 {
            let mut events = String::new();
            for event in 0..10 {
                let finish = if batch == 19 && event == 8 {
                    r#""stop""#
                } else {
                    "null"
                };
                let text = format!("token number {} of this stream ", batch * 10 + event);
                if batch == 19 && event == 9 {
                    events.push_str("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":199,\"total_tokens\":208}}\n\ndata: [DONE]\n\n");
                } else {
                    write!(events, "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_1234567890\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n").unwrap();
                }
            }
            batches.push(format!("{:x}\r\n{events}\r\n", events.len()).into_bytes());
        }
        Self {
            json,
            messages,
            batches,
        }
    }
}

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The start of a body that decides about the reply.
const START_BYTES: usize = 1024;

async fn reply(mut stream: TcpStream, replies: Arc<Replies>) -> Option<()> {
    let mut buffer = Vec::with_capacity(64 << 10);
    loop {
        buffer.clear();
        let (length, head) = loop {
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
            if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&buffer[..at]).to_ascii_lowercase();
                let line = text.lines().find_map(|line| {
                    line.strip_prefix("content-length:")
                        .map(str::trim)
                        .and_then(|n| n.parse::<usize>().ok())
                });
                break (line.unwrap_or(0), at + 4);
            }
        };
        let mut seen = buffer.len() - head;
        let has = |part: &[u8], word: &[u8]| part.windows(word.len()).any(|window| window == word);
        let mut start = buffer[head..].to_vec();
        while seen < length {
            buffer.clear();
            seen += stream.read_buf(&mut buffer).await.ok()?;
            if start.len() < START_BYTES {
                start.extend_from_slice(&buffer);
            }
        }
        let start = start.as_slice();
        if has(start, b"max_tokens") && has(start, b"translated-up") {
            stream.write_all(&replies.messages).await.ok()?;
        } else if has(start, b"\"hold\"") {
            stream.write_all(HEAD).await.ok()?;
            stream.write_all(&replies.batches[0]).await.ok()?;
            _ = stream.read_buf(&mut buffer).await;
            return None;
        } else if has(start, b"\"stream\":true") {
            stream.write_all(HEAD).await.ok()?;
            for batch in &replies.batches {
                stream.write_all(batch).await.ok()?;
            }
            stream.write_all(b"0\r\n\r\n").await.ok()?;
        } else {
            stream.write_all(&replies.json).await.ok()?;
        }
    }
}

/// Forwards requests unchanged. It answers decisions and queries with a public key with a constant response, and writes a
/// log line for each of these.
struct Bare {
    upstream: std::net::SocketAddr,
    decision: Bytes,
    hit: Bytes,
    access_log: weirgate::telemetry::logging::AccessLog,
}

impl Bare {
    /// Returns the constant response to a request, if it has one.
    fn constant(&self, session: &Session) -> Option<&Bytes> {
        let uri = &session.req_header().uri;
        match uri.path() {
            "/v1/decide" => Some(&self.decision),
            "/content/v2" if uri.query().is_some() => Some(&self.hit),
            _ => None,
        }
    }
}

#[async_trait]
impl ProxyHttp for Bare {
    type CTX = ();
    fn new_ctx(&self) {}

    async fn request_filter(&self, session: &mut Session, _: &mut ()) -> pingora::Result<bool> {
        let Some(constant) = self.constant(session).cloned() else {
            return Ok(false);
        };
        while session.read_request_body().await?.is_some() {}
        let mut head = ResponseHeader::build(200, Some(3))?;
        head.insert_header("content-type", "application/json")?;
        head.insert_header("content-length", constant.len())?;
        session.write_response_header(Box::new(head), false).await?;
        session.write_response_body(Some(constant), true).await?;
        Ok(true)
    }

    async fn logging(&self, session: &mut Session, _: Option<&pingora::Error>, _: &mut ()) {
        let head = session.req_header();
        if self.constant(session).is_some() {
            let sent = session.body_bytes_sent();
            let line = format!(
                r#"{{"method":"{}","path":"{}","status":200,"response_bytes":{sent}}}"#,
                head.method,
                head.uri.path()
            );
            self.access_log.send(line.into_bytes());
        }
    }

    async fn upstream_peer(&self, _: &mut Session, _: &mut ()) -> pingora::Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.upstream, false, String::new())))
    }
}

/// Runs the bare proxy with one thread.
pub fn bare() {
    let upstream = std::env::var("WEIRGATE_BENCH_UPSTREAM")
        .unwrap()
        .parse()
        .unwrap();
    let conf = ServerConf {
        threads: 1,
        upstream_keepalive_pool_size: 1024,
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let dropped = prometheus::IntCounter::new("dropped", "Lines.").unwrap();
    let bare = Bare {
        upstream,
        decision: std::env::var("WEIRGATE_BENCH_DECISION").unwrap().into(),
        hit: std::env::var("WEIRGATE_BENCH_HIT").unwrap().into(),
        access_log: weirgate::telemetry::logging::AccessLog::start(std::io::sink(), dropped)
            .unwrap(),
    };
    let service = http_proxy_service(&server.configuration, bare);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    server.add_service(BoundService::new(service, listener, L4BufferSettings::default()).unwrap());
    // Connections wait until Pingora takes them.
    print_line(&address.to_string());
    server.run_forever();
}

const MODELS: &str = r#"
[[models]]
id = "own"
[[models.providers]]
provider = "own"
name = "own-up"
input_price = "1"
output_price = "2"
[[models]]
id = "free"
[[models.providers]]
provider = "own"
name = "own-up"
[[models]]
id = "translated"
[[models.providers]]
provider = "translated"
name = "translated-up"
"#;

/// Runs the gateway with one organization, one key and one thread.
pub fn gateway() {
    let upstream = std::env::var("WEIRGATE_BENCH_UPSTREAM").unwrap();
    // The process writes its journal to the folder until it ends, so the next process removes the folder.
    let folder = std::env::temp_dir().join("weirgate-bench");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.display();
    std::fs::write(folder.join("models.toml"), MODELS).unwrap();
    std::fs::write(folder.join("key"), "secret").unwrap();
    let toml = format!(
        "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[server]\nthreads = 1\n\
         [store]\nurl = \"sqlite:{path}/bench.db\"\nstate_dir = \"{path}\"\n[limits]\nbody_bytes = {{ chat = 33554432 }}\n\
         [decisions]\n[[decisions.projects]]\nsdk_key = \"bench\"\ndatafile = \"sandbox\"\n\
         [graph]\nupstream = \"http://{upstream}\"\ncache = {{ ttl_s = 3600 }}\n\
         [[graph.tenants]]\nid = \"pass\"\nsingle_keys = [\"public\"]\napp_keys = [{{ key = \"pass\" }}]\n\
         limits = {{ \"POST /content/v2\" = 1000000000 }}\n\
         [[graph.tenants]]\nid = \"refused\"\napp_keys = [{{ key = \"refused\" }}]\n\
         limits = {{ \"POST /content/v2\" = 0 }}\n\
         [models]\nfile = \"{path}/models.toml\"\n\
         [providers.own]\nkind = \"openai-compatible\"\nbase_url = \"http://{upstream}/v1\"\nkeys = []\n\
         [providers.translated]\nkind = \"anthropic\"\nbase_url = \"http://{upstream}\"\nkeys = [{{ file = \"{path}/key\" }}]\n"
    );
    let loaded = config::from_str(&toml, []).unwrap_or_else(|problems| panic!("{}", problems[0]));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let key = runtime.block_on(async {
        let opened = Store::open(&StoreSettings::from_config(&loaded.config.store).unwrap())
            .await
            .unwrap();
        opened
            .store
            .create_organization("bench", filters::accounts::Plan::None, 0)
            .await
            .unwrap();
        let credit = filters::money::Usd::parse("1000000").unwrap();
        opened.store.add_credit("bench", credit, 0).await.unwrap();
        let new = NewKey {
            organization: "bench",
            project: "default",
            label: "bench",
            expires_at_ms: None,
            ..NewKey::default()
        };
        let (key, _) = opened.store.create_key(&new, 0).await.unwrap();
        opened.store.close().await;
        key.reveal().to_owned()
    });
    let running = weirgate::app::boot(loaded.config, |metrics| {
        weirgate::telemetry::logging::AccessLog::start(std::io::sink(), metrics.log_dropped.clone())
    })
    .unwrap();
    print_line(&format!("{} {key}", running.public));
    loop {
        std::thread::park();
    }
}
