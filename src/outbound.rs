//! The client of everything that this process asks for by itself, but for model calls and graph requests, which Pingora sends: datafiles, events, segments, predictions, published
//! keys.
//!
//! A host that the operator wrote in the configuration is trusted: it may have a private address, and plain http where
//! it was written so. Any other host, such as one that a datafile names, is asked over https alone, and only at public
//! addresses: they are checked when the name is resolved, and the connection goes to the checked ones. No redirect is
//! followed, and no reply is read beyond its bound. Source: docs/security.md 40.

use std::collections::HashSet;
use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url};

pub use filters::public_address::is_public;

/// See the module.
#[derive(Clone)]
pub struct Outbound {
    client: Client,
    trusted: Arc<TrustedHosts>,
}

/// The hosts that the operator wrote.
#[derive(Debug, Default)]
struct TrustedHosts {
    /// All of them.
    any: HashSet<String>,
    /// Those that he wrote with plain http.
    http: HashSet<String>,
}

impl TrustedHosts {
    /// Reads the hosts of URLs. One that depends on a request, such as `https://%s.example.com`, was not written.
    fn from_urls<'u>(urls: impl IntoIterator<Item = &'u str>) -> Self {
        let mut hosts = Self::default();
        for url in urls {
            let authority = url.split_once("://").map_or("", |(_, rest)| rest);
            let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
            let url = Url::parse(&url.replace("%s", "x")).ok();
            let Some(url) = url.filter(|_| !authority.contains('%')) else {
                continue;
            };
            let Some(host) = url.host_str() else { continue };
            hosts.any.insert(host.to_owned());
            if url.scheme() == "http" {
                hosts.http.insert(host.to_owned());
            }
        }
        hosts
    }

    /// Errors: why the URL must not be asked, in words without its path.
    fn check(&self, url: &Url) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default();
        let is_allowed = match url.scheme() {
            "https" => true,
            "http" => self.http.contains(host),
            _ => false,
        };
        if !is_allowed {
            return Err(format!("{host} is asked over https alone"));
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse() {
            Ok(address) if !self.any.contains(host) => {
                check_address(host, address).map_err(|error| error.to_string())
            }
            _ => Ok(()),
        }
    }
}

impl Outbound {
    /// The client for a timeout of whole requests, and the URLs that the operator wrote for it.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new<'u>(
        timeout: Duration,
        written: impl IntoIterator<Item = &'u str>,
    ) -> reqwest::Result<Self> {
        Self::build(Client::builder(), timeout, written)
    }

    /// The same for URLs that callers choose: no proxy of the environment stands between, which would resolve their names
    /// itself. No connection is kept for later: a caller could have many hosts hold theirs open.
    ///
    /// Errors: no HTTP client can be made.
    pub fn direct<'u>(
        timeout: Duration,
        written: impl IntoIterator<Item = &'u str>,
    ) -> reqwest::Result<Self> {
        let client = Client::builder().no_proxy().pool_max_idle_per_host(0);
        Self::build(client, timeout, written)
    }

    fn build<'u>(
        client: ClientBuilder,
        timeout: Duration,
        written: impl IntoIterator<Item = &'u str>,
    ) -> reqwest::Result<Self> {
        let trusted = Arc::new(TrustedHosts::from_urls(written));
        let client = client
            .timeout(timeout)
            .redirect(Policy::none())
            .dns_resolver(Arc::new(CheckedNames(Arc::clone(&trusted))))
            .build()?;
        Ok(Self { client, trusted })
    }

    /// A GET request. Errors: the URL must not be asked.
    pub fn get(&self, url: &str) -> Result<RequestBuilder, String> {
        Ok(self.client.get(self.checked(url)?))
    }

    /// A POST request. Errors: the URL must not be asked.
    pub fn post(&self, url: &str) -> Result<RequestBuilder, String> {
        Ok(self.client.post(self.checked(url)?))
    }

    /// A DELETE request. Errors: the URL must not be asked.
    pub fn delete(&self, url: &str) -> Result<RequestBuilder, String> {
        Ok(self.client.delete(self.checked(url)?))
    }

    fn checked(&self, url: &str) -> Result<Url, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        self.trusted.check(&url)?;
        Ok(url)
    }
}

/// The operator's own origins, among addresses that callers choose: such a host is asked at the origins that he wrote alone.
#[derive(Debug, Default)]
pub struct OwnOrigins {
    origins: HashSet<String>,
    hosts: HashSet<String>,
}

/// Why an address that a caller chose must not be asked.
#[derive(Debug, Eq, PartialEq)]
pub enum OriginError {
    /// Its form, in words.
    Refused(&'static str),
    /// Its host is the operator's own, and it is none of his origins.
    Prohibited,
}

impl OwnOrigins {
    /// Reads the origins that the operator wrote.
    pub fn new(written: &[String]) -> Self {
        let urls = written.iter().filter_map(|url| Url::parse(url).ok());
        let mut own = Self::default();
        for url in urls {
            own.hosts.extend(url.host_str().map(str::to_owned));
            own.origins.insert(url.origin().ascii_serialization());
        }
        own
    }

    /// Checks what [`Outbound`] does not.
    pub fn check(&self, url: &Url) -> Result<(), OriginError> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OriginError::Refused("it holds a user name or a password"));
        }
        let is_own = self.origins.contains(&url.origin().ascii_serialization());
        if !is_own && url.scheme() != "https" {
            return Err(OriginError::Refused("it is no https address"));
        }
        let has_own_host = url.host_str().is_some_and(|host| self.hosts.contains(host));
        match has_own_host && !is_own {
            true => Err(OriginError::Prohibited),
            false => Ok(()),
        }
    }
}

/// Returns the body of a reply with a status of success.
///
/// Errors: another status, also a redirect; a body that breaks off, or has more bytes.
pub async fn read_success(reply: Response, max_bytes: usize) -> Result<Bytes, String> {
    let status = reply.status();
    if !status.is_success() {
        return Err(format!("it answered {status}"));
    }
    read_body(reply, max_bytes).await
}

/// Returns the body of a reply.
///
/// Errors: it breaks off, or has more bytes.
pub async fn read_body(mut reply: Response, max_bytes: usize) -> Result<Bytes, String> {
    let mut body = BytesMut::new();
    while let Some(piece) = reply.chunk().await.map_err(describe)? {
        if body.len() + piece.len() > max_bytes {
            return Err(format!("it has more than {max_bytes} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// Describes an error without its URL, which may have a key in it.
pub fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut last: &dyn Error = &error;
    while let Some(source) = last.source() {
        last = source;
    }
    let (text, cause) = (error.to_string(), last.to_string());
    match text == cause {
        true => text,
        false => format!("{text}: {cause}"),
    }
}

/// Resolves names by the system, and refuses private addresses of hosts that nobody trusts.
struct CheckedNames(Arc<TrustedHosts>);

impl Resolve for CheckedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        let is_trusted = self.0.any.contains(&host);
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await;
            let found = found.map(Vec::from_iter);
            if is_trusted {
                return Ok(Box::new(found?.into_iter()) as Addrs);
            }
            let found = found.map_err(|_| NotPublic(host.clone()))?;
            check_addresses(&host, found.iter().map(|address| address.ip()))?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// A host that nobody trusts has no address, or one that is not public.
#[derive(Debug)]
struct NotPublic(String);

impl std::fmt::Display for NotPublic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = &self.0;
        write!(
            f,
            "{host} has no address, or one that is not public, and it is not in the configuration"
        )
    }
}

impl Error for NotPublic {}

/// Returns whether a request failed because its host has no address, or one that is not public.
pub fn is_prohibited(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        if error.is::<NotPublic>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// One that is not public among others is enough to refuse the host: the client might connect to it.
fn check_addresses(
    host: &str,
    mut addresses: impl Iterator<Item = IpAddr>,
) -> Result<(), NotPublic> {
    addresses.try_for_each(|address| check_address(host, address))
}

fn check_address(host: &str, address: IpAddr) -> Result<(), NotPublic> {
    match is_public(address) {
        true => Ok(()),
        false => Err(NotPublic(host.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    /// A server on loopback that answers each connection with these bytes and counts them.
    fn serving(reply: String) -> (u16, Arc<std::sync::atomic::AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let mut stream = stream.unwrap();
                _ = stream.read(&mut [0; 4096]);
                _ = stream.write_all(reply.as_bytes());
            }
        });
        (port, seen)
    }

    fn client(written: &str) -> Outbound {
        _ = rustls::crypto::ring::default_provider().install_default();
        Outbound::new(TIMEOUT, [written]).unwrap()
    }

    fn count(seen: &std::sync::atomic::AtomicUsize) -> usize {
        seen.load(std::sync::atomic::Ordering::SeqCst)
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let (target, seen) = serving("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned());
        let location = format!("location: http://127.0.0.1:{target}/");
        let reply = format!("HTTP/1.1 302 Found\r\n{location}\r\ncontent-length: 2\r\n\r\n{{}}");
        let (port, _) = serving(reply);
        let url = format!("http://127.0.0.1:{port}/");
        let reply = client(&url).get(&url).unwrap().send().await.unwrap();
        let said = read_success(reply, 100).await;
        assert_eq!(said, Err("it answered 302 Found".to_owned()));
        assert_eq!(count(&seen), 0);
    }

    #[tokio::test]
    async fn a_private_address_by_dns_is_refused_unless_the_operator_wrote_the_host() {
        let (port, seen) = serving("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned());
        let foreign = client("https://example.com").get(&format!("https://localhost:{port}/"));
        let error = foreign.unwrap().send().await.unwrap_err();
        assert!(is_prohibited(&error));
        let error = describe(error);
        assert!(
            error.contains("localhost has no address, or one that is not public"),
            "{error}"
        );
        assert_eq!(count(&seen), 0);
        let url = format!("http://localhost:{port}/");
        let reply = client(&url).get(&url).unwrap().send().await.unwrap();
        assert_eq!(read_success(reply, 2).await.unwrap(), "{}");
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_bound() {
        for framing in ["content-length: 11\r\n", "connection: close\r\n"] {
            let (port, _) = serving(format!("HTTP/1.1 200 OK\r\n{framing}\r\n12345678901"));
            let url = format!("http://127.0.0.1:{port}/");
            let reply = client(&url).post(&url).unwrap().send().await.unwrap();
            let said = read_success(reply, 10).await;
            assert_eq!(
                said,
                Err("it has more than 10 bytes".to_owned()),
                "{framing}"
            );
        }
    }

    #[test]
    fn a_host_that_nobody_wrote_is_asked_over_https_and_at_public_addresses() {
        let hosts = [
            "http://127.0.0.2/x",
            "https://10.0.0.1:8443",
            "https://%s.example.com/d",
        ];
        let trusted = TrustedHosts::from_urls(hosts);
        for (url, is_allowed) in [
            ("http://127.0.0.2/y", true),
            ("https://10.0.0.1/", true),
            ("http://10.0.0.1/", false),
            ("http://a.example.com/", false),
            ("https://a.example.com/", true),
            ("https://127.0.0.1/", false),
            ("https://2130706433/", false),
            ("https://0x7f.1/", false),
            ("https://[::1]/", false),
            ("https://[::ffff:169.254.169.254]/", false),
            ("https://a@10.0.0.2/", false),
            ("ftp://example.com/", false),
            ("file:///etc/passwd", false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(trusted.check(&url).is_ok(), is_allowed, "{url}");
        }
        let template = Url::parse("https://127.0.0.1.example.com/").unwrap();
        assert!(trusted.check(&template).is_ok());
    }

    #[test]
    fn a_name_with_one_address_that_is_not_public_is_refused() {
        let check = |texts: &[&str]| {
            let addresses = texts.iter().map(|text| text.parse().unwrap());
            check_addresses("a.example.com", addresses).is_ok()
        };
        assert!(check(&["1.1.1.1", "2606:4700::1"]));
        assert!(!check(&["1.1.1.1", "127.0.0.1"]));
        assert!(!check(&["2606:4700::1", "::ffff:10.0.0.1", "1.1.1.1"]));
    }
}
