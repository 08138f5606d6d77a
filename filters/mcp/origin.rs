//! The check of `Origin` and `Host`, which stops foreign web pages from calling through a person's browser.
//!
//! A page of another site sends its own `Origin`, and so does a page whose name was pointed at this machine. Programs
//! send none.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::proxy::is_loopback;

/// The origins that may call.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Origins of pages, such as `https://app.example.com`, without a path and in lower case.
    pub allowed: Vec<String>,
    /// The public origin of the gateway, in the same form.
    pub public: Option<String>,
}

impl Origins {
    /// Checks the origin of a request and the host that it names.
    ///
    /// Errors: the reason, for a 403.
    pub fn check(&self, host: Option<&str>, headers: &HeaderMap) -> Result<(), &'static str> {
        let is_loopback = host.is_some_and(is_loopback);
        if let (Some(public), Some(host)) = (&self.public, host)
            && !is_loopback
            && !is_same_authority(public, host)
        {
            return Err("`Host` is not the one of `mcp.public_url`");
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else {
            return Ok(());
        };
        if origins.next().is_some() {
            return Err("`Origin` came more than once");
        }
        match origin.to_str() {
            Ok(origin) if self.allows(origin, is_loopback) => Ok(()),
            _ => Err("`Origin` is not one of `mcp.allowed_origins`"),
        }
    }

    fn allows(&self, origin: &str, is_loopback_host: bool) -> bool {
        let known = self.allowed.iter().chain(&self.public);
        let authority = origin.split_once("://").map(|(_, rest)| rest);
        known.into_iter().any(|it| it.eq_ignore_ascii_case(origin))
            || is_loopback_host && authority.is_some_and(is_loopback)
    }

    /// Returns the headers that let a page read a response. There are none without an `Origin`, or for a refused
    /// origin.
    pub fn headers(
        &self,
        host: Option<&str>,
        headers: &HeaderMap,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Vec::new();
        };
        let vary = (header::VARY, HeaderValue::from_static("origin"));
        if self.check(host, headers).is_err() {
            return vec![vary];
        }
        let exposed = HeaderValue::from_static(EXPOSED);
        vec![
            vary,
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone()),
            (header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed),
        ]
    }
}

/// The headers of responses that pages may read.
const EXPOSED: &str =
    "mcp-session-id, mcp-protocol-version, www-authenticate, x-request-id, retry-after";

/// Returns the headers of a response to a preflight request, beside those of [`Origins::headers`].
pub fn preflight_headers() -> [(HeaderName, HeaderValue); 3] {
    let headers = "authorization, x-api-key, content-type, accept, last-event-id, mcp-protocol-version, mcp-session-id, \
         mcp-method, mcp-name";
    [
        (
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, DELETE"),
        ),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static(headers),
        ),
        (
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static("7200"),
        ),
    ]
}

fn is_same_authority(origin: &str, host: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else {
        return false;
    };
    let port = if scheme == "https" { ":443" } else { ":80" };
    let plain = |authority: &str| {
        let authority = authority.to_ascii_lowercase();
        authority
            .strip_suffix(port)
            .map_or(authority.clone(), str::to_owned)
    };
    plain(authority) == plain(host)
}
