//! Fetches images to which requests refer by address, for providers that only accept images in the body.
//!
//! Callers choose the addresses, so they are not trusted. Only https is allowed, no user name, and only public
//! addresses. These are checked when the name is resolved and at each of few redirects, and the connection goes to
//! the checked ones. The operator's own origins (`media.origins`) are the exception. Size, time and the number of
//! concurrent fetches are bounded. The bytes have to be those of an image. Source: docs/hostile-input.md 40.

mod cache;
mod fetch;
mod permits;

use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::fault_code::FaultCode;
use filters::models::chat::inlined::{InlinedImage, InlinedImages, RemoteImage, WantedImage};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::cache::{ImageCache, ImageKey, image_key};
use self::fetch::{FetchError, Fetcher};
use self::permits::FetchPermits;
use crate::config::MediaConfig;
use crate::proxy::body_budget::{BodyBudget, BodyReservation};
use crate::telemetry::metrics::Metrics;

/// The maximum number of addresses per request, without repetitions, including images in the cache. Our choice:
/// clients send more images in the body.
const MAX_IMAGES: usize = 32;

/// The fetcher of images.
pub struct Media {
    fetcher: Arc<Fetcher>,
    cache: Arc<ImageCache>,
    permits: Arc<FetchPermits>,
    /// The maximum bytes of the images in the body of one request.
    max_inlined_bytes: usize,
    settings: MediaConfig,
    handle: Handle,
    budget: Arc<BodyBudget>,
    metrics: Arc<Metrics>,
}

/// The images of one request, and the memory for them.
pub struct FetchedImages {
    pub images: InlinedImages,
    /// The bytes of their data URLs in the body, each as often as the request names its address.
    inlined_bytes: usize,
    reservation: BodyReservation,
}

impl Media {
    /// Creates the fetcher of a configuration, which runs on `handle`. The images of a request may take
    /// `max_inlined_bytes` in the provider's body. The images and connections of a previous fetcher go on if its settings
    /// were the same, and what it fetches now counts if the maximum of that is the same.
    ///
    /// Errors: no HTTP client can be created.
    pub fn new(
        config: &MediaConfig,
        max_inlined_bytes: usize,
        handle: Handle,
        budget: &Arc<BodyBudget>,
        (metrics, previous): (&Arc<Metrics>, Option<&Self>),
    ) -> reqwest::Result<Self> {
        let same = previous.filter(|previous| previous.settings == *config);
        let counted = previous.filter(|it| it.settings.max_fetches == config.max_fetches);
        Ok(Self {
            fetcher: match same {
                Some(same) => Arc::clone(&same.fetcher),
                None => Arc::new(Fetcher::new(config)?),
            },
            cache: match same {
                Some(same) => Arc::clone(&same.cache),
                None => Arc::new(ImageCache::new(config.cache_bytes)),
            },
            permits: match counted {
                Some(counted) => Arc::clone(&counted.permits),
                None => Arc::new(FetchPermits::new(config.max_fetches)),
            },
            max_inlined_bytes,
            settings: config.clone(),
            handle,
            budget: Arc::clone(budget),
            metrics: Arc::clone(metrics),
        })
    }

    /// Returns an empty set of images for this organization.
    pub fn none(&self, organization: &str) -> FetchedImages {
        FetchedImages {
            images: InlinedImages::default(),
            inlined_bytes: 0,
            reservation: self.budget.reservation(Some(organization.into())),
        }
    }

    /// Fetches images, some concurrently, and adds them to `fetched`. Dropping the future aborts running fetches.
    ///
    /// Errors: 400 with the part whose image cannot be fetched or exceeds the maximum number; 413 with the part whose
    /// image makes the body too large; 529 if there is no memory for it, or too many fetches run.
    pub async fn fetch(
        &self,
        organization: &str,
        wanted: &[WantedImage],
        fetched: &mut FetchedImages,
    ) -> Result<(), Fault> {
        let room = MAX_IMAGES.saturating_sub(fetched.images.len());
        if let Some(beyond) = wanted.get(room) {
            let said = format!(
                "is the image after {MAX_IMAGES} by address that have to be fetched for the provider; send it as a data URL"
            );
            return Err(refuse(&beyond.image, &said));
        }
        let mut unknown = Vec::new();
        for wanted in wanted {
            let key = image_key(organization, &wanted.image.url);
            if let Some(known) = self.cache.find(&key, Instant::now()) {
                self.metrics.count_media_fetch("cached");
                self.add(wanted, known, fetched)?;
            } else {
                unknown.push((key, wanted));
            }
        }
        let mut unknown = unknown.into_iter();
        let mut tasks = JoinSet::new();
        for (key, wanted) in unknown.by_ref().take(self.permits.max_per_request()) {
            self.begin(&mut tasks, organization, key, wanted);
        }
        while let Some(ended) = tasks.join_next().await {
            let (key, wanted, found) = ended.map_err(|error| {
                Fault::new(FaultKind::Internal, "an image could not be fetched")
                    .with_detail(error.to_string())
            })?;
            let outcome = found
                .as_ref()
                .map_or_else(FetchError::as_str, |_| "fetched");
            self.metrics.count_media_fetch(outcome);
            let found = Arc::new(found.map_err(|error| to_fault(&wanted.image, &error))?);
            self.cache.store(key, &found, Instant::now());
            self.add(&wanted, found, fetched)?;
            if let Some((key, wanted)) = unknown.next() {
                self.begin(&mut tasks, organization, key, wanted);
            }
        }
        Ok(())
    }

    fn begin(
        &self,
        tasks: &mut JoinSet<FetchOutcome>,
        organization: &str,
        key: ImageKey,
        wanted: &WantedImage,
    ) {
        let fetch = Fetch {
            fetcher: Arc::clone(&self.fetcher),
            permits: Arc::clone(&self.permits),
            organization: organization.into(),
            timeout: self.settings.timeout,
            reservation: self.budget.reservation(Some(organization.into())),
        };
        let wanted = wanted.clone();
        let task = async move {
            let found = fetch.run(&wanted.image.url).await;
            (key, wanted, found)
        };
        tasks.spawn_on(task, &self.handle);
    }

    /// Adds an image and reserves its memory: once here, and in the body as often as the request names its address.
    fn add(
        &self,
        wanted: &WantedImage,
        found: Arc<InlinedImage>,
        fetched: &mut FetchedImages,
    ) -> Result<(), Fault> {
        let more = found.url.len().saturating_mul(wanted.count);
        let inlined_bytes = fetched.inlined_bytes.saturating_add(more);
        if inlined_bytes > self.max_inlined_bytes {
            return Err(too_much(
                &wanted.image,
                inlined_bytes,
                self.max_inlined_bytes,
            ));
        }
        let kept = fetched.images.bytes() + found.url.len();
        fetched.reservation.grow_to(kept + inlined_bytes)?;
        fetched.inlined_bytes = inlined_bytes;
        fetched.images.add(&wanted.image.url, found);
        Ok(())
    }
}

/// A fetch that has ended.
type FetchOutcome = (ImageKey, WantedImage, Result<InlinedImage, FetchError>);

/// One fetch.
struct Fetch {
    fetcher: Arc<Fetcher>,
    permits: Arc<FetchPermits>,
    organization: Box<str>,
    timeout: Duration,
    /// The memory of the received bytes.
    reservation: BodyReservation,
}

impl Fetch {
    /// Fetches the image as soon as there is a permit. The timeout bounds the wait for the permit, and separately the
    /// fetch, because the image's server is not to blame for a queue.
    async fn run(mut self, url: &str) -> Result<InlinedImage, FetchError> {
        let permit = self.permits.acquire(&self.organization);
        let Ok(Ok(_permit)) = tokio::time::timeout(self.timeout, permit).await else {
            return Err(FetchError::Busy);
        };
        let fetched = self.fetcher.fetch(url, &mut self.reservation);
        let fetched = tokio::time::timeout(self.timeout, fetched).await;
        fetched.unwrap_or(Err(FetchError::TooSlow))
    }
}

fn too_much(image: &RemoteImage, bytes: usize, max_bytes: usize) -> Fault {
    let param = &image.param;
    let message = format!(
        "with the image of `{param}`, as often as the request names it, the fetched images take {bytes} bytes as data URLs; at most {max_bytes} bytes are sent to the provider"
    );
    Fault::new(FaultKind::TooLarge, message).with_param(param.to_string())
}

fn to_fault(image: &RemoteImage, error: &FetchError) -> Fault {
    match error {
        FetchError::Busy => Fault::new(
            FaultKind::Overloaded,
            "too many images are being fetched: try again in a second",
        )
        .with_retry_after_s(1),
        FetchError::Prohibited => {
            refuse(image, &error.to_string()).with_code(FaultCode::DestinationIpProhibited)
        }
        _ => refuse(image, &error.to_string()),
    }
}

fn refuse(image: &RemoteImage, said: &str) -> Fault {
    let param = &image.param;
    Fault::invalid(param.to_string(), format!("`{param}` {said}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn images_and_running_fetches_go_on_if_their_settings_do() {
        _ = rustls::crypto::ring::default_provider().install_default();
        let metrics = Arc::new(Metrics::new().unwrap());
        let budget = Arc::new(BodyBudget::new(1 << 20));
        let media = |config: &MediaConfig, max_inlined_bytes, previous| {
            let handle = Handle::current();
            let shared = (&metrics, previous);
            Media::new(config, max_inlined_bytes, handle, &budget, shared).unwrap()
        };
        let config = MediaConfig::default();
        let old = media(&config, 10, None);
        let same = media(&config, 20, Some(&old));
        assert!(Arc::ptr_eq(&old.cache, &same.cache) && Arc::ptr_eq(&old.fetcher, &same.fetcher));
        assert_eq!(same.max_inlined_bytes, 20);
        let slower = MediaConfig {
            timeout: config.timeout * 2,
            ..config
        };
        let other = media(&slower, 20, Some(&old));
        assert!(!Arc::ptr_eq(&old.fetcher, &other.fetcher));
        assert!(Arc::ptr_eq(&old.permits, &other.permits));
    }
}
