//! Which requests may be answered from the response cache, and under which key.
//!
//! The head is looked at once, before the body is read: most requests go past the cache for what it says.

use std::borrow::Cow;

use http::header::{ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE, COOKIE, ORIGIN, PRAGMA};
use http::header::{CONTENT_ENCODING, HeaderName, HeaderValue, RANGE};
use http::{HeaderMap, Method};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::document::is_read_only;
use crate::form::{Pair, media_type, pairs};

/// Request headers that may change an answer, beside those that begin with [`SERVICE`].
const KEYED: [HeaderName; 4] = [ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, ORIGIN];
/// What the service's own request headers begin with: user, roles, deleted, expired, stored query and more.
const SERVICE: &str = "cg-";
/// Room for the parts of a usual head.
const HEAD_BYTES: usize = 256;

/// A request's head, as far as the cache looks at it.
#[derive(Clone, Copy, Debug)]
pub struct CacheRequest<'r> {
    /// The tenant it counts for; nothing is kept for callers without one.
    pub tenant: Option<&'r str>,
    /// The class of its credential. Answers to one public key of a tenant are answers to all of them.
    pub class: &'r str,
    /// Whether the credential is a public key, and the operation takes such.
    pub is_public: bool,
    /// As it came.
    pub method: &'r Method,
    /// As it came, without the query.
    pub path: &'r str,
    /// Without its `?`.
    pub query: &'r str,
    /// As they came.
    pub headers: &'r HeaderMap,
}

/// Why a request goes past the cache.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bypass {
    /// Not asked by a public key, or not a query.
    Private,
    /// Neither `GET` nor `POST`.
    Method,
    /// The client wants a fresh answer: `cache=false`, `no-store` or `no-cache`.
    Wish,
    /// It asks for a part or on a condition, with a cookie, an encoded body or two content types: its answer would fit
    /// nobody else.
    Special,
    /// It has no document that can be read, or one that does more than read.
    Document,
}

/// Stands for everything that may change an answer: equal keys may share one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct CacheKey([u8; 32]);

/// The key of a request whose body is still to come.
///
/// Parts: tenant, class, method, path, the query without `auth` in the order of its names, the headers above.
#[derive(Debug)]
pub struct HeadKey {
    parts: Vec<u8>,
    document: Document,
}

/// Where a request has its document.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Document {
    /// In the query, where it has been read: a body would be something else.
    Query,
    /// The body is one.
    Body,
    /// In the body, which is JSON.
    Json,
}

impl HeadKey {
    /// What a request's head adds to its key, or why it has none.
    ///
    /// Cost: one look at each header and each pair of the query.
    /// Source: docs/graph-limits.md 8.1.3; docs/decisions.md 28; docs/facts/graph-service.md 1.4.
    pub fn of(asked: &CacheRequest<'_>) -> Result<Self, Bypass> {
        let tenant = asked.tenant.filter(|_| asked.is_public);
        let tenant = tenant.ok_or(Bypass::Private)?;
        if !matches!(*asked.method, Method::GET | Method::POST) {
            return Err(Bypass::Method);
        }
        let headers = keyed(asked.headers)?;
        let query = Query::read(asked.query)?;
        let document = match *asked.method {
            Method::GET => query.document()?,
            _ if query.runs_something() => return Err(Bypass::Document),
            _ => in_body(asked.headers)?,
        };
        let mut parts = CacheKeyParts(Vec::with_capacity(HEAD_BYTES));
        for part in [tenant, asked.class, asked.method.as_str(), asked.path] {
            parts.add(part.as_bytes());
        }
        query.add_to(&mut parts);
        add_headers(headers, &mut parts);
        Ok(Self {
            parts: parts.0,
            document,
        })
    }

    /// The key of the whole request. Cost: one hash over all of it.
    pub fn with(&self, body: &[u8]) -> CacheKey {
        // Behind all parts, each of which says how long it is.
        let hash = Sha256::new().chain_update(&self.parts).chain_update(body);
        CacheKey(hash.finalize().into())
    }

    /// Whether the request only reads, so that its answer may be kept. Equal keys have equal answers to this: under
    /// the key of a request that does more nothing is ever found. Cost: a look at the document.
    pub fn is_read_only(&self, body: &[u8]) -> bool {
        match self.document {
            Document::Query => body.is_empty(),
            Document::Body => std::str::from_utf8(body).is_ok_and(is_read_only),
            Document::Json => serde_json::from_slice::<GraphqlCall<'_>>(body)
                .is_ok_and(|call| is_read_only(&call.query)),
        }
    }
}

/// Whether an answer that varies by this request header is told apart by the key.
pub(super) fn is_keyed(name: &str) -> bool {
    let is_service = name
        .get(..SERVICE.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SERVICE));
    is_service
        || KEYED
            .iter()
            .any(|keyed| name.eq_ignore_ascii_case(keyed.as_str()))
}

/// The headers that are part of the key, in their order; none of a request that goes past the cache.
fn keyed(headers: &HeaderMap) -> Result<Vec<(&HeaderName, &HeaderValue)>, Bypass> {
    let mut keyed = Vec::new();
    let mut has_kind = false;
    for (name, value) in headers {
        if [RANGE, COOKIE, CONTENT_ENCODING].contains(name) || name.as_str().starts_with("if-") {
            return Err(Bypass::Special);
        }
        let is_wish = (*name == CACHE_CONTROL
            && has_word(value.as_bytes(), &["no-store", "no-cache"]))
            || (*name == PRAGMA && has_word(value.as_bytes(), &["no-cache"]));
        if is_wish {
            return Err(Bypass::Wish);
        }
        if *name == CONTENT_TYPE && std::mem::replace(&mut has_kind, true) {
            return Err(Bypass::Special);
        }
        if is_keyed(name.as_str()) {
            keyed.push((name, value));
        }
    }
    Ok(keyed)
}

/// Whether a list of directives has one of these, with or without a value.
pub(super) fn has_word(line: &[u8], words: &[&str]) -> bool {
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
    fn read(query: &'q str) -> Result<Self, Bypass> {
        let mut kept = Vec::new();
        for pair in pairs(query) {
            let name = pair.plain_name();
            if name.eq_ignore_ascii_case("cache")
                && pair.plain_value().eq_ignore_ascii_case("false")
            {
                return Err(Bypass::Wish);
            }
            if !name.eq_ignore_ascii_case("auth") {
                kept.push((name, pair));
            }
        }
        Ok(Self { pairs: kept })
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Pair<'q>> {
        let pairs = self.pairs.iter();
        pairs.filter_map(move |(own, pair)| own.eq_ignore_ascii_case(name).then_some(pair))
    }

    /// Whether there is something to run in it.
    fn runs_something(&self) -> bool {
        self.named("query")
            .chain(self.named("mutation"))
            .next()
            .is_some()
    }

    /// `GET`: one `query`, and no `mutation`.
    fn document(&self) -> Result<Document, Bypass> {
        let mut documents = self.named("query");
        let reads = match (documents.next(), documents.next()) {
            (Some(pair), None) => is_read_only(&pair.plain_value()),
            _ => false,
        };
        let has_mutation = self.named("mutation").next().is_some();
        let reads = reads && !has_mutation;
        reads.then_some(Document::Query).ok_or(Bypass::Document)
    }

    fn add_to(mut self, parts: &mut CacheKeyParts) {
        // Stable: values of one name, however it is spelt, keep their order, which may mean something.
        if self.pairs.len() > 1 {
            self.pairs
                .sort_by_cached_key(|(name, _)| name.to_ascii_lowercase());
        }
        parts.count(self.pairs.len());
        for (_, pair) in &self.pairs {
            parts.add(pair.name.as_bytes());
            parts.add(pair.value.as_bytes());
        }
    }
}

/// `POST`: a document as such, or in JSON.
fn in_body(headers: &HeaderMap) -> Result<Document, Bypass> {
    let kind = match headers.contains_key(CONTENT_TYPE) {
        true => media_type(headers),
        false => b"application/json",
    };
    if kind.eq_ignore_ascii_case(b"application/json") {
        Ok(Document::Json)
    } else if kind.eq_ignore_ascii_case(b"application/graphql") {
        Ok(Document::Body)
    } else {
        Err(Bypass::Document)
    }
}

/// What a body has to have; a second `query` is an error.
#[derive(Deserialize)]
struct GraphqlCall<'b> {
    #[serde(borrow)]
    query: Cow<'b, str>,
}

/// In the order of their names; lines of one name stay in theirs.
fn add_headers(mut headers: Vec<(&HeaderName, &HeaderValue)>, parts: &mut CacheKeyParts) {
    headers.sort_by_key(|(name, _)| name.as_str());
    parts.count(headers.len());
    for (name, value) in headers {
        parts.add(name.as_str().as_bytes());
        parts.add(value.as_bytes());
    }
}

/// Parts, each with its length before it, so that no two lists of parts are one text.
struct CacheKeyParts(Vec<u8>);

impl CacheKeyParts {
    fn count(&mut self, count: usize) {
        self.0.extend((count as u64).to_be_bytes());
    }

    fn add(&mut self, part: &[u8]) {
        self.count(part.len());
        self.0.extend_from_slice(part);
    }
}

#[cfg(test)]
#[path = "cache_key_tests.rs"]
mod tests;
