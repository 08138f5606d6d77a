//! TLS on the public listener.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::models::fronts::chat_completions::{PLAIN, reply};
use crate::support::boot::{Gateway, MODELS};
use crate::support::client::Client;
use crate::support::process::misconfigured_start;
use crate::support::tls::Authority;
use crate::support::upstream::Upstream;
use crate::support::{WAIT_TIMEOUT, stays, until};

/// The files of a listener's certificate and of those who trust it.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        let files = Files(tempfile::tempdir().unwrap());
        files.renew("ca.pem");
        files
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Replaces the certificate by one of a new authority, whose own certificate goes into `authority`.
    fn renew(&self, authority: &str) {
        let ca = Authority::new();
        let (cert, key) = ca.issue("localhost");
        std::fs::write(self.path(authority), ca.pem()).unwrap();
        std::fs::write(self.path("cert.pem"), cert).unwrap();
        std::fs::write(self.path("key.pem"), key).unwrap();
    }

    /// `[listen]` with this certificate.
    fn listen(&self) -> String {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        format!("[listen]\ntls = {{ cert = \"{cert}\", key = \"{key}\" }}\n")
    }

    /// Asks with curl, which trusts one authority. Returns the body, the version of HTTP and the status; `None` if the
    /// connection fails.
    fn ask(&self, gateway: &Gateway, authority: &str, more: &[&str]) -> Option<(String, String)> {
        let (ip, port) = (gateway.address().ip(), gateway.address().port());
        let output = Command::new("curl")
            .args(["-sS", "-m", "20", "--cacert", &self.path(authority)])
            .args(["--resolve", &format!("localhost:{port}:{ip}")])
            .args(["-w", "\n%{http_version} %{http_code}"])
            .args(more)
            .arg(format!("https://localhost:{port}/v1/chat/completions"))
            .args(["-H", &format!("Authorization: Bearer {}", gateway.key)])
            .args(["-H", "Content-Type: application/json", "-d", PLAIN])
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (body, rest) = said.rsplit_once('\n')?;
        let is_connected = output.status.success();
        is_connected.then(|| (body.to_owned(), rest.to_owned()))
    }
}

fn gateway(files: &Files, more: &str) -> (Upstream, Gateway) {
    let first = Upstream::always(reply());
    let toml = format!("{}{more}", files.listen());
    let gateway = Gateway::with(&first.url(), &first.url(), &toml);
    (first, gateway)
}

#[test]
fn calls_are_answered_over_tls_in_the_version_that_the_client_prefers() {
    let files = Files::new();
    for (more, wanted, spoken) in [
        ("", "--http1.1", "1.1 200"),
        ("", "--http2", "2 200"),
        ("http2 = false\n", "--http2", "1.1 200"),
    ] {
        let (_first, gateway) = gateway(&files, more);
        let (body, said) = files.ask(&gateway, "ca.pem", &[wanted]).unwrap();
        assert_eq!(said, spoken, "{more}{wanted}: {body}");
        assert!(body.contains("\"used_provider\":\"first\""), "{body}");
    }
}

#[test]
fn nothing_is_answered_without_tls() {
    let files = Files::new();
    let (first, gateway) = gateway(&files, "");
    for start in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    ] {
        let mut stream = TcpStream::connect(gateway.address()).unwrap();
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
        stream.write_all(start).unwrap();
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer);
        // An alert of TLS is shorter than any frame or head.
        assert!(answer.len() < 9, "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(first.requests().len(), 0);
    let line = "\nweirgate_tls_failures_total 2\n";
    until(line, || gateway.metrics().contains(line));
}

#[test]
fn a_handshake_that_does_not_end_is_closed_in_time_and_counts_as_a_connection() {
    let files = Files::new();
    let (_first, gateway) = gateway(&files, "header_timeout_s = 1\nmax_connections = 1\n");
    let mut silent = TcpStream::connect(gateway.address()).unwrap();
    silent.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    let started = Instant::now();
    let until = started + Duration::from_secs(5);
    while !gateway
        .metrics()
        .contains("\nweirgate_connections_open 1\n")
    {
        assert!(Instant::now() < until, "{}", gateway.metrics());
    }
    assert_eq!(files.ask(&gateway, "ca.pem", &[]), None);
    _ = silent.read_to_end(&mut Vec::new());
    assert!(started.elapsed() < Duration::from_secs(5));
    let answered = std::iter::repeat_with(|| files.ask(&gateway, "ca.pem", &[]))
        .take_while(|_| started.elapsed() < WAIT_TIMEOUT)
        .flatten()
        .next();
    assert_eq!(answered.unwrap().1, "2 200");
}

#[test]
fn a_new_certificate_is_used_without_a_restart_and_a_bad_one_is_not() {
    let files = Files::new();
    let (_first, gateway) = gateway(&files, "");
    files.renew("next.pem");
    until("the new certificate is used", || {
        files.ask(&gateway, "next.pem", &[]).is_some()
    });
    assert_eq!(files.ask(&gateway, "ca.pem", &[]), None);
    // The key is not that of the certificate.
    std::fs::write(files.path("key.pem"), Authority::new().issue("localhost").1).unwrap();
    // The files are read each second.
    let is_next = || files.ask(&gateway, "next.pem", &[]).is_some();
    stays("the good one is used", Duration::from_millis(1500), is_next);
}

#[test]
fn the_start_fails_where_the_certificate_is_unusable() {
    let files = Files::new();
    std::fs::write(files.path("key.pem"), Authority::new().issue("localhost").1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("models.toml"), MODELS).unwrap();
    let toml = format!("{}[models]\nfile = \"models.toml\"\n", files.listen());
    std::fs::write(folder.path().join("weirgate.toml"), toml).unwrap();
    let said = misconfigured_start(folder.path());
    assert!(said.contains("listen.tls.key: "), "{said}");
    assert!(!said.contains("PRIVATE KEY"), "{said}");
}

#[test]
fn a_reload_switches_tls_on_and_off_for_new_connections() {
    let files = Files::new();
    let first = Upstream::always(reply());
    let gateway = Gateway::between(&first.url(), &first.url());
    let plain = gateway.toml().to_owned();
    let mut open = Client::connect(gateway.address());
    assert_eq!(open.ask(&gateway.chat_ask(PLAIN)).status(), 200);
    gateway
        .reload(&format!("{plain}{}", files.listen()))
        .unwrap();
    let (body, said) = files.ask(&gateway, "ca.pem", &["--http2"]).unwrap();
    assert_eq!(said, "2 200", "{body}");
    assert_eq!(open.ask(&gateway.chat_ask(PLAIN)).status(), 200);
    // The new certificate is refreshed, too.
    files.renew("next.pem");
    until("the next certificate", || {
        files.ask(&gateway, "next.pem", &[]).is_some()
    });
    // A pair that cannot be used changes nothing.
    std::fs::write(files.path("key.pem"), "no key").unwrap();
    let other = format!("{plain}{}http2 = false\n", files.listen());
    let refused = gateway.reload(&other).unwrap_err();
    assert!(
        refused.problems.join("\n").contains("listen.tls"),
        "{refused:?}"
    );
    assert!(files.ask(&gateway, "next.pem", &[]).is_some());
    gateway.reload(&plain).unwrap();
    assert_eq!(gateway.chat(PLAIN).status(), 200);
}
