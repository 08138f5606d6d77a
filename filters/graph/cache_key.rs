//! Decides which requests the response cache may answer, and computes their keys.
//!
//! The head is checked once before the body is read, because the head alone excludes most requests.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, COOKIE};
use http::header::{CONTENT_ENCODING, HeaderName, HeaderValue, RANGE};
use http::header::{ORIGIN, PRAGMA};
use http::{HeaderMap, Method};
use serde::Deserialize;

use super::document::is_read_only;
use crate::form::{Pair, media_type, pairs};

/// Request headers that may change a response, beside those that begin with [`SERVICE_PREFIX`].
const KEYED: [HeaderName; 4] = [ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, ORIGIN];
/// Prefix of the service's own request headers: user, roles, deleted, expired, stored query and more.
const SERVICE_PREFIX: &str = "cg-";
/// Initial capacity for the key parts of a usual head.
const HEAD_BYTES: usize = 256;

/// The parts of a request's head that the cache uses.
#[derive(Clone, Copy, Debug)]
pub struct CacheRequest<'r> {
    /// The tenant that the request counts for. Responses to callers without a tenant are not cached.
    pub tenant: Option<&'r str>,
    /// The kind of its credential. All public keys of a tenant share their responses.
    pub credential_kind: &'r str,
    /// Whether the credential is a public key that the operation accepts.
    pub is_public: bool,
    pub method: &'r Method,
    /// Path as received, without the query.
    pub path: &'r str,
    /// Query without its `?`.
    pub query: &'r str,
    pub headers: &'r HeaderMap,
}

/// The reason for which a request bypasses the cache.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bypass {
    /// The caller has no public key of a tenant, or the operation accepts none.
    Private,
    /// The method is neither `GET` nor `POST`.
    Method,
    /// The client wants a fresh response: `cache=false`, `no-store` or `no-cache`.
    NoCache,
    /// The request has a range, a condition, a cookie, an encoded body, two content types, or a `Connection` that
    /// names a header. Its response fits no other request.
    Unshareable,
    /// The document is missing, unreadable, or does more than read.
    Document,
}

/// All parts of a request that may change the response. Requests with equal keys share a response. The key is no
/// hash, so two different requests never have equal keys. Cost of a clone: no copy.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CacheKey(Bytes);

impl CacheKey {
    /// Returns the key of these bytes, which another process of the same version has made.
    pub fn from_bytes(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the size in bytes, about that of the request's body.
    pub fn size(&self) -> usize {
        self.0.len()
    }
}

/// The part of a key that comes from a request's head.
///
/// Parts: tenant, credential kind, method, path, the query without `auth` sorted by name, and the keyed headers.
#[derive(Debug)]
pub struct HeadKey {
    parts: Vec<u8>,
    document: DocumentSource,
}

/// The place of the document in a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DocumentSource {
    /// In the query, which has been checked. The request must not have a body.
    Query,
    Body,
    /// In the JSON of the body.
    Json,
}

impl HeadKey {
    /// Computes the head's part of a key. Errors: [`Bypass`].
    ///
    /// Cost: one look at each header and each pair of the query. Source: docs/graph-limits.md 8.1.3; docs/decisions.md
    /// 28; docs/facts/graph-service.md 1.4.
    pub fn from_request(request: &CacheRequest<'_>) -> Result<Self, Bypass> {
        let tenant = request.tenant.filter(|_| request.is_public);
        let tenant = tenant.ok_or(Bypass::Private)?;
        if !matches!(*request.method, Method::GET | Method::POST) {
            return Err(Bypass::Method);
        }
        let headers = collect_keyed(request.headers)?;
        let query = Query::parse(request.query)?;
        let document = match *request.method {
            Method::GET => query.document_source()?,
            _ if query.has_document() => return Err(Bypass::Document),
            _ => body_document_source(request.headers)?,
        };
        let mut parts = CacheKeyParts(Vec::with_capacity(HEAD_BYTES));
        for part in [
            tenant,
            request.credential_kind,
            request.method.as_str(),
            request.path,
        ] {
            parts.add_part(part.as_bytes());
        }
        query.write_to(&mut parts);
        add_headers(headers, &mut parts);
        Ok(Self {
            parts: parts.0,
            document,
        })
    }

    /// Returns the key of the whole request. Cost: one copy of head parts and body.
    pub fn to_cache_key(&self, body: &[u8]) -> CacheKey {
        // The body needs no length: it follows the parts, and each part has its length before it.
        CacheKey([&self.parts, body].concat().into())
    }

    /// Returns whether the request only reads, so that its response may be cached. The result is the same for equal
    /// keys, so a request that does more never finds an entry. Cost: one pass over the document.
    pub fn is_read_only(&self, body: &[u8]) -> bool {
        match self.document {
            DocumentSource::Query => body.is_empty(),
            DocumentSource::Body => std::str::from_utf8(body).is_ok_and(is_read_only),
            DocumentSource::Json => serde_json::from_slice::<GraphqlRequest<'_>>(body)
                .is_ok_and(|graphql| is_read_only(&graphql.query)),
        }
    }
}

/// Returns whether the key covers this request header, so that a response may vary by it.
pub(super) fn is_keyed(name: &str) -> bool {
    let is_service = name
        .get(..SERVICE_PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SERVICE_PREFIX));
    is_service
        || KEYED
            .iter()
            .any(|keyed| name.eq_ignore_ascii_case(keyed.as_str()))
}

/// Returns the headers that are part of the key, in the order received. Errors: [`Bypass`].
fn collect_keyed(headers: &HeaderMap) -> Result<Vec<(&HeaderName, &HeaderValue)>, Bypass> {
    let mut keyed = Vec::new();
    let mut has_content_type = false;
    for (name, value) in headers {
        if [RANGE, COOKIE, CONTENT_ENCODING].contains(name) || name.as_str().starts_with("if-") {
            return Err(Bypass::Unshareable);
        }
        // A named header is not forwarded, so the service would respond to another request than this head shows.
        if *name == CONNECTION && !names_nothing(value.as_bytes()) {
            return Err(Bypass::Unshareable);
        }
        let wants_fresh = (*name == CACHE_CONTROL
            && has_directive(value.as_bytes(), &["no-store", "no-cache"]))
            || (*name == PRAGMA && has_directive(value.as_bytes(), &["no-cache"]));
        if wants_fresh {
            return Err(Bypass::NoCache);
        }
        if *name == CONTENT_TYPE && std::mem::replace(&mut has_content_type, true) {
            return Err(Bypass::Unshareable);
        }
        if is_keyed(name.as_str()) {
            keyed.push((name, value));
        }
    }
    Ok(keyed)
}

/// Returns whether `Connection` names no header.
fn names_nothing(line: &[u8]) -> bool {
    let mut options = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    options.all(|option| {
        option.is_empty()
            || option.eq_ignore_ascii_case(b"close")
            || option.eq_ignore_ascii_case(b"keep-alive")
    })
}

/// Returns whether a list of directives contains one of `words`, with or without a value.
pub(super) fn has_directive(line: &[u8], words: &[&str]) -> bool {
    line.split(|byte| *byte == b',').any(|directive| {
        let name = directive.split(|byte| *byte == b'=').next();
        let name = name.unwrap_or_default().trim_ascii();
        words
            .iter()
            .any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// The query without its credential.
struct Query<'q> {
    pairs: Vec<(Cow<'q, str>, Pair<'q>)>,
}

impl<'q> Query<'q> {
    fn parse(query: &'q str) -> Result<Self, Bypass> {
        let mut others = Vec::new();
        for pair in pairs(query) {
            let name = pair.decoded_name();
            if name.eq_ignore_ascii_case("cache")
                && pair.decoded_value().eq_ignore_ascii_case("false")
            {
                return Err(Bypass::NoCache);
            }
            if !name.eq_ignore_ascii_case("auth") {
                others.push((name, pair));
            }
        }
        Ok(Self { pairs: others })
    }

    fn find_all(&self, name: &str) -> impl Iterator<Item = &Pair<'q>> {
        let pairs = self.pairs.iter();
        pairs.filter_map(move |(pair_name, pair)| {
            pair_name.eq_ignore_ascii_case(name).then_some(pair)
        })
    }

    /// Returns whether the query contains a document.
    fn has_document(&self) -> bool {
        self.find_all("query")
            .chain(self.find_all("mutation"))
            .next()
            .is_some()
    }

    /// A `GET` must have exactly one `query` and no `mutation`.
    fn document_source(&self) -> Result<DocumentSource, Bypass> {
        let mut documents = self.find_all("query");
        let reads = match (documents.next(), documents.next()) {
            (Some(pair), None) => is_read_only(&pair.decoded_value()),
            _ => false,
        };
        let has_mutation = self.find_all("mutation").next().is_some();
        let reads = reads && !has_mutation;
        reads
            .then_some(DocumentSource::Query)
            .ok_or(Bypass::Document)
    }

    fn write_to(mut self, parts: &mut CacheKeyParts) {
        // A stable sort: values of one name keep their order, because it may matter. Names are compared without case.
        if self.pairs.len() > 1 {
            self.pairs
                .sort_by_cached_key(|(name, _)| name.to_ascii_lowercase());
        }
        parts.add_count(self.pairs.len());
        for (_, pair) in &self.pairs {
            parts.add_part(pair.name.as_bytes());
            parts.add_part(pair.value.as_bytes());
        }
    }
}

/// A `POST` body is the document, or JSON that contains it.
fn body_document_source(headers: &HeaderMap) -> Result<DocumentSource, Bypass> {
    let content_type = match headers.contains_key(CONTENT_TYPE) {
        true => media_type(headers),
        false => b"application/json",
    };
    if content_type.eq_ignore_ascii_case(b"application/json") {
        Ok(DocumentSource::Json)
    } else if content_type.eq_ignore_ascii_case(b"application/graphql") {
        Ok(DocumentSource::Body)
    } else {
        Err(Bypass::Document)
    }
}

/// The member that a JSON body must have exactly once.
#[derive(Deserialize)]
struct GraphqlRequest<'b> {
    #[serde(borrow)]
    query: Cow<'b, str>,
}

/// Adds the headers sorted by name; lines of one name keep their order.
fn add_headers(mut headers: Vec<(&HeaderName, &HeaderValue)>, parts: &mut CacheKeyParts) {
    headers.sort_by_key(|(name, _)| name.as_str());
    parts.add_count(headers.len());
    for (name, value) in headers {
        parts.add_part(name.as_str().as_bytes());
        parts.add_part(value.as_bytes());
    }
}

/// Key parts, each with its length before it, so that different lists of parts never form the same bytes.
struct CacheKeyParts(Vec<u8>);

impl CacheKeyParts {
    fn add_count(&mut self, count: usize) {
        self.0.extend((count as u64).to_be_bytes());
    }

    fn add_part(&mut self, part: &[u8]) {
        self.add_count(part.len());
        self.0.extend_from_slice(part);
    }
}

#[cfg(test)]
#[path = "cache_key_tests.rs"]
mod tests;
