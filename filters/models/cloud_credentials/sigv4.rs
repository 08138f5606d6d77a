//! Signatures of requests to AWS, in the header `authorization`.
//!
//! Our choice: own code on `hmac` and `sha2`, because the vendor's crate brings eleven packages for it. AWS's test suite and
//! an independent signer prove it.
//! Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::secret_text::SecretText;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The header of the time of a signature.
pub const DATE: HeaderName = HeaderName::from_static("x-amz-date");
/// The header of the token of temporary keys.
pub const SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
/// The header of the hash of a body, which S3 wants.
pub const CONTENT_HASH: HeaderName = HeaderName::from_static("x-amz-content-sha256");
/// The name of S3 in signatures.
pub const S3: &str = "s3";
/// The length of a block of SHA-256, to which HMAC pads its keys.
const BLOCK_BYTES: usize = 64;

/// The keys of an account or a role.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AwsKeys {
    pub access_key_id: Box<str>,
    pub secret_access_key: SecretText,
    /// The token that belongs to temporary keys.
    pub session_token: Option<SecretText>,
}

/// What a signature is valid for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SigningScope {
    pub region: Box<str>,
    /// The service's name in signatures, such as `bedrock`.
    pub service: Box<str>,
}

/// The parts of a request that are signed, as they are sent.
#[derive(Clone, Copy, Debug)]
pub struct SignedParts<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub query: Option<&'a str>,
    /// The hash of the body.
    pub body_hash: &'a BodyHash,
}

/// The SHA-256 of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyHash([u8; 32]);

/// The hash of a body whose slices arrive one after the other.
#[derive(Default)]
pub struct RunningBodyHash(Sha256);

impl BodyHash {
    /// Returns the hash of a body in slices.
    pub fn from_slices<'a>(slices: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = RunningBodyHash::default();
        for slice in slices {
            hash.update(slice);
        }
        hash.end()
    }

    /// Returns it as hexadecimal digits, as S3 wants it in the header [`CONTENT_HASH`].
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }
}

impl RunningBodyHash {
    /// Adds a slice.
    pub fn update(&mut self, slice: &[u8]) {
        self.0.update(slice);
    }

    /// Returns the hash of all slices.
    pub fn end(self) -> BodyHash {
        BodyHash(self.0.finalize().into())
    }
}

/// Signs a request: adds the date, the token of temporary keys, and `authorization` to its headers. All headers that are
/// there already are signed.
///
/// Errors: the time is none of the calendar, or a key cannot stand in a header.
pub fn sign(
    headers: &mut HeaderMap,
    parts: SignedParts<'_>,
    (keys, scope): (&AwsKeys, &SigningScope),
    now_s: u64,
) -> Option<()> {
    headers.remove(header::AUTHORIZATION);
    let time = Timestamp::from_second(i64::try_from(now_s).ok()?).ok()?;
    let time = time.strftime("%Y%m%dT%H%M%SZ").to_string();
    headers.insert(DATE, HeaderValue::from_str(&time).ok()?);
    if let Some(token) = &keys.session_token {
        headers.insert(SECURITY_TOKEN, sensitive(token.expose())?);
    }
    let (canonical_headers, names) = canonical_headers(headers);
    let day = time.get(..8)?;
    let (region, service) = (&scope.region, &scope.service);
    let path = match &**service {
        S3 => parts.path.to_owned(),
        _ => canonical_path(parts.path),
    };
    let query = canonical_query(parts.query.unwrap_or_default());
    let body = hex(&parts.body_hash.0);
    let method = parts.method;
    let request = format!("{method}\n{path}\n{query}\n{canonical_headers}\n{names}\n{body}");
    let valid_for = format!("{day}/{region}/{service}/aws4_request");
    let hash = hex(&Sha256::digest(request.as_bytes()));
    let text = format!("{ALGORITHM}\n{time}\n{valid_for}\n{hash}");
    let first = format!("AWS4{}", keys.secret_access_key.expose());
    let chain = [day, region, service, "aws4_request", &text];
    let signature = chain.iter().fold(first.into_bytes(), |key, text| {
        mac(&key, text.as_bytes()).to_vec()
    });
    let (id, signature) = (&keys.access_key_id, hex(&signature));
    let value = format!(
        "{ALGORITHM} Credential={id}/{valid_for}, SignedHeaders={names}, Signature={signature}"
    );
    headers.insert(header::AUTHORIZATION, sensitive(&value)?);
    Some(())
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the lines of the headers, and the list of their names.
fn canonical_headers(headers: &HeaderMap) -> (String, String) {
    let mut names: Vec<&HeaderName> = headers.keys().collect();
    names.sort_unstable_by_key(|name| name.as_str());
    let mut lines = String::new();
    for name in &names {
        let values = headers.get_all(*name).iter().map(|value| {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
        });
        let values: Vec<String> = values.collect();
        _ = writeln!(lines, "{name}:{}", values.join(","));
    }
    let names: Vec<&str> = names.into_iter().map(HeaderName::as_str).collect();
    (lines, names.join(";"))
}

/// Returns a path as signatures have it: without empty and dotted segments, and encoded once more than it is sent, as all
/// services but S3 want it, which takes paths as they are sent.
fn canonical_path(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let is_folder = path.ends_with('/') && !segments.is_empty();
    let mut text = String::from("/");
    text.push_str(&segments.join("/"));
    if is_folder {
        text.push('/');
    }
    encode(&text, b'/')
}

/// Returns a query as signatures have it: sorted, each pair with an equals sign.
fn canonical_query(query: &str) -> String {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<(&str, &str)> = pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    let pairs = pairs.iter().map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

/// Encodes all bytes but those that need none, and but one more.
pub fn encode(text: &str, kept: u8) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || byte == kept;
        if is_plain {
            out.push(char::from(byte));
        } else {
            _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        _ = write!(out, "{byte:02x}");
    }
    out
}

/// Returns the HMAC-SHA256 of a text.
fn mac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        copy(&mut block, &Sha256::digest(key));
    } else {
        copy(&mut block, key);
    }
    let mac = Hmac::<Sha256>::new(&block.into());
    mac.chain_update(text).finalize().into_bytes().into()
}

fn copy(block: &mut [u8; BLOCK_BYTES], key: &[u8]) {
    for (to, from) in block.iter_mut().zip(key) {
        *to = *from;
    }
}

#[cfg(test)]
#[path = "sigv4_tests.rs"]
mod tests;
