//! Images that a request names by address, fetched for providers that take none.
//!
//! Callers choose the addresses, so they are not trusted: https alone, no user name, and only public addresses, which
//! are checked when the name is resolved and at each of few redirects; the connection goes to the checked ones. The
//! operator's own origins (`media.origins`) are the exception. Size, time and the number of fetches at once are bounded.
//! What comes has to be an image by its bytes. Source: docs/security.md 40.

mod cache;
mod fetch;

use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::models::chat::inlined::{InlinedImage, InlinedImages, RemoteImage};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::cache::{ImageCache, image_key};
use self::fetch::{FetchError, Fetcher};
use crate::config::MediaConfig;
use crate::proxy::body_budget::{BodyBudget, BodyReservation};
use crate::telemetry::metrics::Metrics;

/// The most images of one request that are fetched. Our choice: more are sent in the body.
const MAX_IMAGES: usize = 32;

/// See the module.
pub struct Media {
    fetcher: Arc<Fetcher>,
    cache: ImageCache,
    permits: Arc<Semaphore>,
    timeout: Duration,
    handle: Handle,
    budget: Arc<BodyBudget>,
    metrics: Arc<Metrics>,
}

/// The images of one request, and the memory that they take.
pub struct FetchedImages {
    /// The images.
    pub images: InlinedImages,
    reservation: BodyReservation,
}

impl Media {
    /// Creates the fetcher of a configuration; it runs on `handle`.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(
        config: &MediaConfig,
        handle: Handle,
        budget: &Arc<BodyBudget>,
        metrics: &Arc<Metrics>,
    ) -> reqwest::Result<Self> {
        Ok(Self {
            fetcher: Arc::new(Fetcher::new(config)?),
            cache: ImageCache::new(config.cache_bytes),
            permits: Arc::new(Semaphore::new(config.max_fetches)),
            timeout: config.timeout,
            handle,
            budget: Arc::clone(budget),
            metrics: Arc::clone(metrics),
        })
    }

    /// Returns no images yet.
    pub fn none(&self) -> FetchedImages {
        FetchedImages {
            images: InlinedImages::default(),
            reservation: self.budget.reservation(),
        }
    }

    /// Fetches images, all at once, and adds them to `fetched`. Fetches that run when the future is dropped are aborted.
    ///
    /// Errors: 400 naming the part whose image cannot be had; 529 if there is no memory for it, or too many are fetched.
    pub async fn fetch(
        &self,
        organization: &str,
        wanted: &[RemoteImage],
        fetched: &mut FetchedImages,
    ) -> Result<(), Fault> {
        let mut tasks = JoinSet::new();
        for image in wanted {
            if fetched.images.find(&image.url).is_some() {
                continue;
            }
            let key = image_key(organization, &image.url);
            if let Some(known) = self.cache.find(&key, Instant::now()) {
                self.metrics.count_media_fetch("cached");
                self.add(image, known, fetched)?;
                continue;
            }
            if tasks.len() == MAX_IMAGES {
                let said = format!(
                    "is the image after {MAX_IMAGES} by address that have to be fetched for the provider; send it as a data URL"
                );
                return Err(refuse(image, &said));
            }
            let (fetcher, permits) = (Arc::clone(&self.fetcher), Arc::clone(&self.permits));
            let (image, timeout) = (image.clone(), self.timeout);
            let task = async move {
                let found = fetch_in_time(&fetcher, &permits, &image.url, timeout).await;
                (key, image, found)
            };
            tasks.spawn_on(task, &self.handle);
        }
        while let Some(ended) = tasks.join_next().await {
            let (key, image, found) = ended.map_err(|error| {
                Fault::new(FaultKind::Internal, "an image could not be fetched")
                    .with_detail(error.to_string())
            })?;
            let outcome = found
                .as_ref()
                .map_or_else(FetchError::as_str, |_| "fetched");
            self.metrics.count_media_fetch(outcome);
            let found = Arc::new(found.map_err(|error| to_fault(&image, &error))?);
            self.cache.store(key, &found, Instant::now());
            self.add(&image, found, fetched)?;
        }
        Ok(())
    }

    fn add(
        &self,
        image: &RemoteImage,
        found: Arc<InlinedImage>,
        fetched: &mut FetchedImages,
    ) -> Result<(), Fault> {
        let bytes = fetched.images.bytes() + found.url.len();
        fetched.reservation.grow_to(bytes)?;
        fetched.images.add(&image.url, found);
        Ok(())
    }
}

/// Fetches one image as soon as there is a permit, both within the timeout.
async fn fetch_in_time(
    fetcher: &Fetcher,
    permits: &Semaphore,
    url: &str,
    timeout: Duration,
) -> Result<InlinedImage, FetchError> {
    let deadline = Instant::now() + timeout;
    let permit = tokio::time::timeout_at(deadline, permits.acquire()).await;
    let Ok(Ok(_permit)) = permit else {
        return Err(FetchError::Busy);
    };
    let fetched = tokio::time::timeout_at(deadline, fetcher.fetch(url)).await;
    fetched.unwrap_or(Err(FetchError::TooSlow))
}

fn to_fault(image: &RemoteImage, error: &FetchError) -> Fault {
    match error {
        FetchError::Busy => Fault::new(
            FaultKind::Overloaded,
            "too many images are being fetched: try again in a second",
        )
        .with_retry_after_s(1),
        FetchError::Prohibited => {
            refuse(image, &error.to_string()).with_code("destination_ip_prohibited")
        }
        _ => refuse(image, &error.to_string()),
    }
}

fn refuse(image: &RemoteImage, said: &str) -> Fault {
    let param = &image.param;
    Fault::invalid(param.to_string(), format!("`{param}` {said}"))
}
