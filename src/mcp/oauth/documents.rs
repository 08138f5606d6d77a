//! Client-id metadata documents: a client may describe itself at an https URL, and that URL is its id.
//!
//! Anyone can make a link with any URL. So documents are only fetched from public addresses, redirects are not
//! followed, and size, time and the number of concurrent fetches are bounded. Concurrent requests for one document
//! share a fetch. Errors and unusable documents are not cached. Source: draft-ietf-oauth-client-id-metadata-document
//! 5 and 8; docs/decisions.md 61.

use std::sync::Arc;
use std::time::{Duration, Instant};

use filters::mcp::oauth::client::ClientMetadata;
use http::{HeaderMap, StatusCode, header};
use moka::Expiry;
use moka::future::Cache;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinError;

use crate::outbound::{self, Outbound};

/// The time limit of one fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum bytes of a document. The draft recommends 5 KB, which documents of known clients exceed.
const MAX_DOCUMENT_BYTES: usize = 16 << 10;
/// The maximum number of concurrent fetches.
const MAX_FETCHES: usize = 16;
/// The maximum number of cached documents.
const MAX_DOCUMENTS: u64 = 1_000;
/// How long a document is cached: at least, at most, and if its server says nothing.
const MIN_KEPT: Duration = Duration::from_secs(60);
const MAX_KEPT: Duration = Duration::from_secs(86_400);
const DEFAULT_KEPT: Duration = Duration::from_secs(300);

/// The reason if there is no reply.
const NOT_FETCHED: &str = "it cannot be fetched over https from a public address";

/// The documents of clients. Clones share them.
#[derive(Clone)]
pub struct ClientDocuments {
    client: Outbound,
    handle: Handle,
    known: Cache<String, KnownDocument>,
    fetches: Arc<Semaphore>,
}

/// The reason for which a document is unusable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum DocumentError {
    /// Very many fetches are running.
    Busy,
    Unusable {
        /// The reason in our own words. A page shows it, and texts of strangers must not appear there.
        reason: &'static str,
        detail: String,
    },
}

impl DocumentError {
    fn unusable(reason: &'static str, detail: String) -> Self {
        Self::Unusable { reason, detail }
    }
}

#[derive(Clone)]
struct KnownDocument {
    metadata: Arc<ClientMetadata>,
    kept_for: Duration,
}

/// Each document has its own expiry.
struct KeptFor;

impl Expiry<String, KnownDocument> for KeptFor {
    fn expire_after_create(
        &self,
        _: &String,
        document: &KnownDocument,
        _: Instant,
    ) -> Option<Duration> {
        Some(document.kept_for)
    }
}

impl ClientDocuments {
    /// Creates the cache. Fetches run on `handle`. The origins of `written` URLs are trusted; only tests have any.
    ///
    /// Errors: no HTTP client can be created.
    pub fn new<'u>(
        handle: Handle,
        written: impl IntoIterator<Item = &'u str>,
    ) -> reqwest::Result<Self> {
        let known = Cache::builder()
            .max_capacity(MAX_DOCUMENTS)
            .expire_after(KeptFor);
        Ok(Self {
            client: Outbound::direct(FETCH_TIMEOUT, written)?,
            handle,
            known: known.build(),
            fetches: Arc::new(Semaphore::new(MAX_FETCHES)),
        })
    }

    /// Returns the cached metadata of the client with this id.
    pub(super) async fn known(&self, url: &str) -> Option<Arc<ClientMetadata>> {
        let known = self.known.get(url).await;
        known.map(|document| document.metadata)
    }

    /// Returns the metadata of the client with this id, and fetches them if they are not cached.
    ///
    /// Errors: [`DocumentError`].
    pub(super) async fn find(&self, url: &str) -> Result<Arc<ClientMetadata>, DocumentError> {
        let found = self.known.try_get_with_by_ref(url, self.fetch(url)).await;
        found
            .map(|document| document.metadata)
            .map_err(|error| DocumentError::clone(&error))
    }

    async fn fetch(&self, url: &str) -> Result<KnownDocument, DocumentError> {
        let fetches = Arc::clone(&self.fetches);
        let permit = fetches
            .try_acquire_owned()
            .map_err(|_| DocumentError::Busy)?;
        let (client, url) = (self.client.clone(), url.to_owned());
        let fetched = self.handle.spawn(async move {
            let _permit = permit;
            fetch(&client, &url).await
        });
        let failed = |error: JoinError| DocumentError::unusable(NOT_FETCHED, error.to_string());
        fetched.await.map_err(failed)?
    }
}

async fn fetch(client: &Outbound, url: &str) -> Result<KnownDocument, DocumentError> {
    let not_fetched = |detail| DocumentError::unusable(NOT_FETCHED, detail);
    let request = client
        .get(url)
        .map_err(|error| not_fetched(error.to_string()))?;
    let request = request.header(header::ACCEPT, "application/json");
    let reply = request.send().await;
    let reply = reply.map_err(|error| not_fetched(outbound::describe(error)))?;
    if reply.status() != StatusCode::OK {
        let detail = format!("it answered {}", reply.status());
        return Err(DocumentError::unusable(
            "its server does not give it",
            detail,
        ));
    }
    let kept_for = kept_for(reply.headers());
    let body = outbound::read_body(reply, MAX_DOCUMENT_BYTES).await;
    let body =
        body.map_err(|detail| DocumentError::unusable("it is too long, or breaks off", detail))?;
    let metadata = ClientMetadata::read_document(url, &body).map_err(|error| {
        let detail = error.description.into_owned();
        DocumentError::unusable("it is not the metadata of a client at this address", detail)
    })?;
    Ok(KnownDocument {
        metadata: Arc::new(metadata),
        kept_for,
    })
}

/// Returns how long a reply may be cached. Source: RFC 9111 5.2.2.
fn kept_for(headers: &HeaderMap) -> Duration {
    let lines = headers.get_all(header::CACHE_CONTROL).iter();
    let text: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
    let text = text.join(",").to_ascii_lowercase();
    let mut directives = text.split(',').map(str::trim);
    if directives
        .clone()
        .any(|it| matches!(it, "no-store" | "no-cache"))
    {
        return MIN_KEPT;
    }
    let max_age = directives.find_map(|it| it.strip_prefix("max-age="));
    let seconds = max_age.and_then(|seconds| seconds.trim_matches('"').parse().ok());
    let kept = seconds.map_or(DEFAULT_KEPT, Duration::from_secs);
    kept.clamp(MIN_KEPT, MAX_KEPT)
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
