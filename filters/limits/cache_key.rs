//! Which requests may be answered from the response cache, and under which key.

use http::header::{ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE, COOKIE, ORIGIN, PRAGMA};
use http::header::{CONTENT_ENCODING, HeaderName, RANGE};
use http::{HeaderMap, Method};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::document::only_reads;
use crate::form::{Pair, decode, pairs};

/// Request headers that may change an answer, beside those that begin with [`SERVICE`].
const KEYED: [HeaderName; 4] = [ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, ORIGIN];
/// What the service's own request headers begin with: user, roles, deleted, expired, stored query and more.
const SERVICE: &str = "cg-";

/// A request, as far as the cache looks at it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'r> {
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
    /// The whole body.
    pub body: &'r [u8],
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

/// The key of a request, or why it has none.
///
/// Parts: tenant, class, method, path, the query without `auth` in the order of its names, the headers above, the body.
/// Cost: one hash over all of it. Source: limits 8.1.3; decisions 28; graph facts 1.4.
pub fn cache_key(asked: &Asked<'_>) -> Result<CacheKey, Bypass> {
    let tenant = asked.tenant.filter(|_| asked.is_public);
    let tenant = tenant.ok_or(Bypass::Private)?;
    goes_past(asked.method, asked.query, asked.headers)?;
    let reads = match *asked.method {
        Method::GET => query_reads(asked.query) && asked.body.is_empty(),
        _ => body_reads(asked),
    };
    if !reads {
        return Err(Bypass::Document);
    }
    Ok(key(asked, tenant))
}

/// Why a request goes past the cache, as far as its head tells: for those the body need not be read.
pub fn goes_past(method: &Method, query: &str, headers: &HeaderMap) -> Result<(), Bypass> {
    if !matches!(*method, Method::GET | Method::POST) {
        return Err(Bypass::Method);
    }
    if is_special(headers) {
        return Err(Bypass::Special);
    }
    if wants_fresh(query, headers) {
        return Err(Bypass::Wish);
    }
    Ok(())
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

fn is_special(headers: &HeaderMap) -> bool {
    let is_conditional = headers.keys().any(|name| name.as_str().starts_with("if-"));
    let is_of_two_kinds = headers.get_all(CONTENT_TYPE).iter().count() > 1;
    let names = [RANGE, COOKIE, CONTENT_ENCODING];
    is_conditional || is_of_two_kinds || names.iter().any(|name| headers.contains_key(name))
}

fn wants_fresh(query: &str, headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(CACHE_CONTROL).iter();
    let by_header = lines.any(|line| has_word(line.as_bytes(), &["no-store", "no-cache"]));
    let mut pragma = headers.get_all(PRAGMA).iter();
    let by_pragma = pragma.any(|line| has_word(line.as_bytes(), &["no-cache"]));
    let by_query = pairs(query)
        .any(|pair| is_named(pair, "cache") && pair.plain_value().eq_ignore_ascii_case("false"));
    by_header || by_pragma || by_query
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

fn is_named(pair: Pair<'_>, name: &str) -> bool {
    pair.plain_name().eq_ignore_ascii_case(name)
}

/// `GET`: one `query`, and no `mutation`.
fn query_reads(query: &str) -> bool {
    let mut documents = pairs(query).filter(|pair| is_named(*pair, "query"));
    let has_mutation = pairs(query).any(|pair| is_named(pair, "mutation"));
    match (documents.next(), documents.next()) {
        (Some(pair), None) => !has_mutation && only_reads(&decode(pair.value)),
        _ => false,
    }
}

/// What a body has to have; a second `query` is an error.
#[derive(Deserialize)]
struct Call {
    query: String,
}

/// `POST`: a document as such, or in JSON, and nothing to run in the URL.
fn body_reads(asked: &Asked<'_>) -> bool {
    let has_more =
        pairs(asked.query).any(|pair| is_named(pair, "query") || is_named(pair, "mutation"));
    if has_more {
        return false;
    }
    let kind = asked.headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    let kind = kind
        .unwrap_or(b"application/json")
        .split(|byte| *byte == b';')
        .next();
    let kind = kind.unwrap_or_default().trim_ascii();
    if kind.eq_ignore_ascii_case(b"application/graphql") {
        return std::str::from_utf8(asked.body).is_ok_and(only_reads);
    }
    kind.eq_ignore_ascii_case(b"application/json")
        && serde_json::from_slice::<Call>(asked.body).is_ok_and(|call| only_reads(&call.query))
}

fn key(asked: &Asked<'_>, tenant: &str) -> CacheKey {
    let mut parts = Parts(Sha256::new());
    parts.add(tenant.as_bytes());
    parts.add(asked.class.as_bytes());
    parts.add(asked.method.as_str().as_bytes());
    parts.add(asked.path.as_bytes());
    let mut query: Vec<Pair<'_>> = pairs(asked.query)
        .filter(|pair| !is_named(*pair, "auth"))
        .collect();
    // Stable: values of one name, however it is spelt, keep their order, which may mean something.
    query.sort_by_cached_key(|pair| pair.plain_name().to_ascii_lowercase());
    parts.count(query.len());
    for pair in query {
        parts.add(pair.name.as_bytes());
        parts.add(pair.value.as_bytes());
    }
    let mut names: Vec<&HeaderName> = asked.headers.keys().collect();
    names.retain(|name| is_keyed(name.as_str()));
    names.sort_by_key(|name| name.as_str());
    for name in names {
        parts.add(name.as_str().as_bytes());
        let values = asked.headers.get_all(name);
        parts.count(values.iter().count());
        values.iter().for_each(|value| parts.add(value.as_bytes()));
    }
    // Empty names no header: here the headers end.
    parts.add(b"");
    parts.add(asked.body);
    CacheKey(parts.0.finalize().into())
}

/// A hash over parts, each with its length before it, so that no two lists of parts are one text.
struct Parts(Sha256);

impl Parts {
    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_be_bytes());
    }

    fn add(&mut self, part: &[u8]) {
        self.count(part.len());
        self.0.update(part);
    }
}

#[cfg(test)]
#[path = "cache_key_tests.rs"]
mod tests;
