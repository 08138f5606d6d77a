//! The client of everything that this process asks for by itself, but for model calls and graph requests, which Pingora sends: datafiles, events, segments, predictions, published
//! keys.
//!
//! An origin (scheme, host and port) that the operator wrote in the configuration is trusted: it may have a private address,
//! and plain http. Any other one, such as one that a datafile names, is asked over https alone, without a user name, and
//! only at public addresses, also on a host of which the operator wrote another port: they are checked when the name is
//! resolved, and the connection goes to the checked ones. No redirect is followed, and no reply is read beyond its bound.
//! Source: docs/hostile-input.md 40.

use std::collections::HashSet;
use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use filters::public_address::{self, AddressError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Response, Url};

pub use filters::public_address::is_public;

/// See the module.
#[derive(Clone)]
pub struct Outbound {
    /// Asks the origins that the operator wrote.
    trusting: Client,
    /// Asks all others.
    checking: Client,
    written: Arc<WrittenOrigins>,
}

/// The origins that the operator wrote, each with its user name if he wrote one.
#[derive(Debug, Default)]
struct WrittenOrigins(HashSet<Box<str>>);

impl WrittenOrigins {
    /// Reads the origins of URLs. One that depends on a request, such as `https://%s.example.com`, was not written.
    fn from_urls<'u>(urls: impl IntoIterator<Item = &'u str>) -> Self {
        let origin = |url: &str| {
            let authority = url.split_once("://").map_or("", |(_, rest)| rest);
            let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
            let url = Url::parse(&url.replace("%s", "x")).ok();
            let url = url.filter(|_| !authority.contains('%'))?;
            Some(public_address::read_origin(&url).into())
        };
        Self(urls.into_iter().filter_map(origin).collect())
    }

    fn contains(&self, url: &Url) -> bool {
        self.0.contains(public_address::read_origin(url))
    }
}

/// Checks a URL at an origin that the operator did not write.
///
/// Errors: why it must not be asked.
fn check_foreign(url: &Url) -> Result<(), AddressError> {
    let checked = public_address::check(url);
    match (checked, url.scheme()) {
        (Err(AddressError::User), _) => Err(AddressError::User),
        (_, "https") => checked,
        _ => Err(AddressError::Scheme),
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
        Self::build(Client::builder, timeout, written)
    }

    /// The same for URLs that callers choose: no proxy of the environment stands between, which would resolve their names
    /// itself. No connection is kept for later: a caller could have many hosts hold theirs open.
    ///
    /// Errors: no HTTP client can be made.
    pub fn direct<'u>(
        timeout: Duration,
        written: impl IntoIterator<Item = &'u str>,
    ) -> reqwest::Result<Self> {
        let client = || Client::builder().no_proxy().pool_max_idle_per_host(0);
        Self::build(client, timeout, written)
    }

    fn build<'u>(
        client: impl Fn() -> ClientBuilder,
        timeout: Duration,
        written: impl IntoIterator<Item = &'u str>,
    ) -> reqwest::Result<Self> {
        let client = || client().timeout(timeout).redirect(Policy::none());
        Ok(Self {
            trusting: client().build()?,
            checking: client().dns_resolver(Arc::new(CheckedNames)).build()?,
            written: Arc::new(WrittenOrigins::from_urls(written)),
        })
    }

    /// A GET request. Errors: the URL must not be asked.
    pub fn get(&self, url: &str) -> Result<RequestBuilder, AddressError> {
        self.request(Method::GET, url)
    }

    /// A GET request of a URL that counts as one that the operator did not write, whatever he wrote.
    ///
    /// Errors: the URL must not be asked.
    pub fn get_foreign(&self, url: &Url) -> Result<RequestBuilder, AddressError> {
        check_foreign(url)?;
        Ok(self.checking.get(url.clone()))
    }

    /// A POST request. Errors: the URL must not be asked.
    pub fn post(&self, url: &str) -> Result<RequestBuilder, AddressError> {
        self.request(Method::POST, url)
    }

    /// A DELETE request. Errors: the URL must not be asked.
    pub fn delete(&self, url: &str) -> Result<RequestBuilder, AddressError> {
        self.request(Method::DELETE, url)
    }

    /// A request of a method. Errors: the URL must not be asked.
    pub fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, AddressError> {
        let url = Url::parse(url).map_err(|_| AddressError::Unreadable)?;
        if self.written.contains(&url) {
            return Ok(self.trusting.request(method, url));
        }
        check_foreign(&url)?;
        Ok(self.checking.request(method, url))
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

/// Resolves names by the system, and refuses those with private addresses.
struct CheckedNames;

impl Resolve for CheckedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await;
            let found = found.map_err(|_| NotPublic(host.clone()))?;
            let found = Vec::from_iter(found);
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
            "{host} has no address, or one that is not public, and its origin is not in the configuration"
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
    match addresses.all(is_public) {
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
        _ = rustls::crypto::ring::default_provider().install_default();
        let urls = [
            "http://127.0.0.2/x",
            "https://10.0.0.1:8443",
            "https://ann:b@10.0.0.3/%s.json",
            "https://%s.example.com/d",
        ];
        let outbound = Outbound::new(TIMEOUT, urls).unwrap();
        use AddressError::{NotPublic, Scheme, Unreadable, User};
        for (url, expected) in [
            ("http://127.0.0.2/y", None),
            ("http://127.0.0.2:80/y", None),
            ("https://10.0.0.1:8443/y", None),
            ("https://ann:b@10.0.0.3/y.json", None),
            ("https://10.0.0.1/", Some(NotPublic)),
            ("https://127.0.0.2/", Some(NotPublic)),
            ("http://127.0.0.2:9901/metrics", Some(Scheme)),
            ("http://127.0.0.1:8443/", Some(Scheme)),
            ("http://10.0.0.1:8443/", Some(Scheme)),
            ("https://ann@10.0.0.1:8443/", Some(User)),
            ("https://10.0.0.3/y.json", Some(NotPublic)),
            ("http://a.example.com/", Some(Scheme)),
            ("https://a.example.com/", None),
            ("https://127.0.0.1/", Some(NotPublic)),
            ("https://2130706433/", Some(NotPublic)),
            ("https://0x7f.1/", Some(NotPublic)),
            ("https://[::1]/", Some(NotPublic)),
            ("https://[::ffff:169.254.169.254]/", Some(NotPublic)),
            ("https://\u{ff11}\u{ff10}.0.0.9/", Some(NotPublic)),
            ("https://[2606:4700::1111]@169.254.169.254/", Some(User)),
            ("https://", Some(Unreadable)),
            ("https://a@example.com/", Some(User)),
            ("https://127.0.0.1.example.com/", None),
            ("ftp://example.com/", Some(Scheme)),
            ("file:///etc/passwd", Some(Scheme)),
        ] {
            assert_eq!(outbound.get(url).err(), expected, "{url}");
        }
        let own = Url::parse("https://10.0.0.1:8443/y").unwrap();
        assert_eq!(outbound.get_foreign(&own).err(), Some(NotPublic));
    }

    #[tokio::test]
    async fn another_port_of_a_host_that_the_operator_wrote_is_a_strangers() {
        let (port, seen) = serving("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned());
        let outbound = client("https://localhost:1/");
        let request = outbound.get(&format!("https://localhost:{port}/")).unwrap();
        assert!(is_prohibited(&request.send().await.unwrap_err()));
        assert_eq!(count(&seen), 0);
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
