//! Redirect URIs: checks them, and finds the one that a request names among those of the client.
//!
//! Source: OAuth 2.1 draft 2.3.1 and 7.5.1; RFC 8252 7 and 8.4.

use core::net::Ipv6Addr;

use crate::proxy::is_loopback;

/// The most bytes of a redirect URI.
const MAX_BYTES: usize = 2_048;
/// Schemes without a dot that native applications have registered for themselves.
const NATIVE_SCHEMES: [&str; 13] = [
    "cursor",
    "goose",
    "jetbrains",
    "kiro",
    "lmstudio",
    "raycast",
    "trae",
    "vscode",
    "vscode-insiders",
    "vscodium",
    "warp",
    "windsurf",
    "zed",
];

/// A URI to which a person's browser may be sent with a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RedirectUri<'t> {
    text: &'t str,
    scheme: &'t str,
    /// Host and port; empty for the scheme of an application.
    authority: &'t str,
    /// The text after the authority.
    rest: &'t str,
}

impl<'t> RedirectUri<'t> {
    /// Reads a redirect URI.
    ///
    /// Errors: says what is wrong with the URI.
    pub fn parse(text: &'t str) -> Result<Self, &'static str> {
        if text.len() > MAX_BYTES {
            return Err("has more than 2048 bytes");
        }
        if !text.bytes().all(is_uri_byte) {
            return Err("has a character that no URI has");
        }
        if text.contains('#') {
            return Err("has a fragment");
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err("has no scheme");
        };
        let lower = scheme.to_ascii_lowercase();
        if scheme != lower {
            return Err("has a scheme in capital letters");
        }
        let is_web = matches!(scheme, "https" | "http");
        if !is_web {
            return parse_native(text, scheme, rest);
        }
        let Some(rest) = rest.strip_prefix("//") else {
            return Err("has no host");
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let uri = Self {
            text,
            scheme,
            authority,
            rest,
        };
        uri.check_authority()?;
        Ok(uri)
    }

    fn check_authority(&self) -> Result<(), &'static str> {
        if self.authority.contains('@') {
            return Err("has a user");
        }
        let (host, port) = self.host_and_port();
        let is_port = port.is_none_or(|port| {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
        });
        if !is_host(host) || !is_port {
            return Err("has no valid host");
        }
        if self.scheme == "http" && !is_loopback(self.authority) {
            return Err("is `http`, which only loopback may be");
        }
        Ok(())
    }

    fn host_and_port(&self) -> (&'t str, Option<&'t str>) {
        let after_address = self.authority.rfind(']').map_or(0, |at| at + 1);
        let tail = self.authority.get(after_address..).unwrap_or_default();
        match tail.rfind(':') {
            Some(at) => {
                let at = after_address + at;
                let host = self.authority.get(..at).unwrap_or_default();
                (host, self.authority.get(at + 1..))
            }
            None => (self.authority, None),
        }
    }

    /// Returns whether a client that registered this URI may name `named`. The two must be the same text; on loopback
    /// the port may differ, because an application only knows its port when it runs.
    pub fn matches(&self, named: &RedirectUri<'_>) -> bool {
        let is_local = self.scheme == "http" && is_loopback(self.authority);
        self.text == named.text
            || is_local
                && (self.scheme, self.rest) == (named.scheme, named.rest)
                && self.host_and_port().0 == named.host_and_port().0
    }

    /// Returns the destination for people: the host, or the scheme of an application.
    pub fn place(&self) -> &'t str {
        match self.authority {
            "" => self.scheme,
            authority => authority,
        }
    }

    /// Returns the URI with more parameters in its query.
    pub fn with(&self, parameters: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        let query = query.finish();
        let separator = match self.text.split_once('?') {
            None => "?",
            Some((_, "")) => "",
            Some((_, before)) if before.ends_with('&') => "",
            Some(_) => "&",
        };
        format!("{}{separator}{query}", self.text)
    }
}

/// Reads the URI of an application's own scheme.
fn parse_native<'t>(
    text: &'t str,
    scheme: &'t str,
    rest: &'t str,
) -> Result<RedirectUri<'t>, &'static str> {
    let mut bytes = scheme.bytes();
    let is_scheme = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let is_known = scheme.contains('.') || NATIVE_SCHEMES.contains(&scheme);
    if !is_scheme || !is_known {
        return Err(
            "has a scheme that is neither `https`, nor `http` on loopback, nor one of an application such as `com.example.app`",
        );
    }
    if !rest.starts_with('/') || rest.trim_matches('/').is_empty() {
        return Err("has nothing behind its scheme");
    }
    let end = rest.find('?').unwrap_or(rest.len());
    if rest.get(..end).unwrap_or_default().contains('@') {
        return Err("has a user");
    }
    Ok(RedirectUri {
        text,
        scheme,
        authority: "",
        rest,
    })
}

/// Returns whether a text is a name or an address.
fn is_host(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => {
            let is_known =
                |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            !host.is_empty() && host.bytes().all(is_known)
        }
    }
}

/// Source: RFC 3986 2.
fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte)
}

/// Returns the redirect URI that a request names, if the client has registered it.
pub fn find<'n>(registered: &[String], named: &'n str) -> Option<RedirectUri<'n>> {
    let named = RedirectUri::parse(named).ok()?;
    let mut registered = registered.iter();
    let is_registered = registered
        .any(|uri| RedirectUri::parse(uri).is_ok_and(|registered| registered.matches(&named)));
    is_registered.then_some(named)
}
