//! Bare Pingora: the same proxy without hooks of ours.

use async_trait::async_trait;
use bytes::Bytes;
use pingora::http::ResponseHeader;
use pingora::listeners::L4BufferSettings;
use pingora::server::Server;
use pingora::server::configuration::ServerConf;
use pingora::upstreams::peer::HttpPeer;
use pingora_proxy::{ProxyHttp, Session, http_proxy};
use weirgate::app::{BoundService, ReadyListener};
use weirgate::telemetry::logging::AccessLog;

use crate::options::variable;
use crate::print_line;

/// Forwards requests unchanged. It answers decisions and queries with a public key with a constant response, and writes a
/// log line for each of these.
struct Bare {
    upstream: std::net::SocketAddr,
    decision: Bytes,
    hit: Bytes,
    access_log: AccessLog,
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
pub fn run() {
    let upstream = variable("WEIRGATE_BENCH_UPSTREAM").unwrap();
    let conf = ServerConf {
        threads: 1,
        upstream_keepalive_pool_size: 1024,
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let dropped = prometheus::IntCounter::new("dropped", "Lines.").unwrap();
    let bare = Bare {
        upstream: upstream.parse().unwrap(),
        decision: variable("WEIRGATE_BENCH_DECISION").unwrap().into(),
        hit: variable("WEIRGATE_BENCH_HIT").unwrap().into(),
        access_log: AccessLog::start(std::io::sink(), dropped).unwrap(),
    };
    let proxy = http_proxy(&server.configuration, bare);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (service, doors) = BoundService::new("bare", proxy, L4BufferSettings::default());
    let _open = doors.open(ReadyListener::new(listener).unwrap());
    server.add_service(service);
    // Connections wait until Pingora takes them.
    print_line(&address.to_string());
    server.run_forever();
}
