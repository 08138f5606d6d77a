//! Heads of upstream requests: what no request changes is written once.

use filters::accounts::OwnCredentialKind;
use filters::models::wires::WireHead;
use filters::trace_context::TRACEPARENT;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};

use super::providers::{Provider, Site};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const USER_AGENT: &str = concat!("weirgate/", env!("CARGO_PKG_VERSION"));

/// The head of all requests of one operation to one deployment.
pub struct UpstreamHead {
    /// `None`: the path of the provider is no URI.
    uri: Option<Uri>,
    headers: HeaderMap,
    /// The header of the provider's keys, which has a place in `headers`.
    credential: Option<HeaderName>,
    /// Headers of the configuration and the wire, which replace those of a request too.
    has_length: bool,
    has_request_id: bool,
}

/// What a request adds to its head.
pub(super) struct OwnHeaders<'a> {
    /// The value of `Host`, where it may be another than that of the site's first endpoint.
    pub authority: Option<&'a HeaderValue>,
    /// The length of the body.
    pub body_bytes: usize,
    pub request_id: &'a HeaderValue,
    pub credential: Option<&'a (HeaderName, HeaderValue)>,
    /// What the credential is, if the caller has brought it.
    pub passed: Option<OwnCredentialKind>,
    /// The place in a trace; `None`: the client's own, if it names one.
    pub traceparent: Option<HeaderValue>,
    /// Those that the wire has for this request alone.
    pub of_wire: &'a [(HeaderName, HeaderValue)],
}

impl UpstreamHead {
    /// Creates the head for a site of a provider from that of the wire.
    pub(super) fn new(provider: &Provider, site: &Site, wire: &WireHead, is_stream: bool) -> Self {
        let accept = if is_stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        let json = HeaderValue::from_static("application/json");
        let first = site.endpoints.origin(0);
        let authority = first.map_or(HeaderValue::from_static(""), |it| it.authority.clone());
        let mut headers = HeaderMap::with_capacity(16);
        headers.extend([
            (header::HOST, authority),
            (header::CONTENT_TYPE, json),
            (header::CONTENT_LENGTH, HeaderValue::from_static("0")),
            (header::ACCEPT, HeaderValue::from_static(accept)),
            (
                header::ACCEPT_ENCODING,
                HeaderValue::from_static("identity"),
            ),
            (header::USER_AGENT, HeaderValue::from_static(USER_AGENT)),
            (REQUEST_ID, HeaderValue::from_static("")),
        ]);
        let theirs = provider.headers.iter().chain(&wire.headers);
        for (name, value) in theirs.clone() {
            headers.insert(name, value.clone());
        }
        // A request replaces the value, for which its copy of the map has a place then.
        let placeholder = provider.credential_place();
        let placeholder = placeholder.filter(|_| provider.needs_key());
        let credential = placeholder.as_ref().map(|(name, _)| name.clone());
        if let Some((name, value)) = placeholder {
            headers.insert(name, value);
        }
        let has = |wanted: HeaderName| theirs.clone().any(|(name, _)| *name == wanted);
        Self {
            uri: site.upstream_path(&wire.path).parse().ok(),
            has_length: has(header::CONTENT_LENGTH),
            has_request_id: has(REQUEST_ID),
            headers,
            credential,
        }
    }

    /// Returns the head of a request in place of the client's: of the client's headers only `traceparent` passes, unless
    /// the attempt is traced itself. `None`: the path of the provider is no URI.
    pub(super) fn request(
        &self,
        own: &OwnHeaders<'_>,
        client: &http::request::Parts,
    ) -> Option<http::request::Parts> {
        let mut headers = self.headers.clone();
        if !self.has_length {
            headers.insert(header::CONTENT_LENGTH, own.body_bytes.into());
        }
        if let Some(authority) = own.authority {
            headers.insert(header::HOST, authority.clone());
        }
        if !self.has_request_id {
            headers.insert(REQUEST_ID, own.request_id.clone());
        }
        if let Some((name, value)) = own.credential {
            // A token of a login does not stand where the provider's keys do, and no key stands beside it.
            if let Some(other) = self.credential.as_ref().filter(|it| *it != name) {
                headers.remove(other);
            }
            headers.insert(name, value.clone());
        }
        for (name, value) in own.of_wire {
            if *name == header::CONTENT_TYPE {
                headers.insert(name, value.clone());
            } else {
                add_listed(&mut headers, name, value);
            }
        }
        if let Some(kind) = own.passed {
            kind.complete(&mut headers);
        }
        let of_client = || client.headers.get(TRACEPARENT);
        if let Some(parent) = own.traceparent.as_ref().or_else(of_client)
            && !headers.contains_key(TRACEPARENT)
        {
            headers.insert(TRACEPARENT, parent.clone());
        }
        let (mut fresh, ()) = http::Request::new(()).into_parts();
        fresh.method = Method::POST;
        fresh.version = client.version;
        fresh.uri = self.uri.clone()?;
        fresh.headers = headers;
        Some(fresh)
    }
}

/// Adds a value to the list that a header is, behind what the configuration has there.
fn add_listed(headers: &mut HeaderMap, name: &HeaderName, value: &HeaderValue) {
    let joined = headers.get(name).and_then(|listed| {
        let joined = [listed.as_bytes(), b",", value.as_bytes()].concat();
        HeaderValue::from_bytes(&joined).ok()
    });
    headers.insert(name, joined.unwrap_or_else(|| value.clone()));
}
