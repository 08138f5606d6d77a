//! The provider of a job: its address, its key, and its replies.

use std::sync::Arc;

use bytes::Bytes;
use filters::models::videos::order::{JobError, VideoOrder};
use filters::models::videos::progress::{PollFailure, VideoReport};
use filters::models::wires::{Failure, VideoWire};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::{RequestBuilder, Url};

use super::Videos;
use crate::cloud_credentials::SourceState;
use crate::models::Models;
use crate::models::deployment::Deployment;
use crate::outbound::{Outbound, read_body};
use crate::proxy::body;

/// The maximum bytes of a provider's status reply.
const MAX_STATUS_BYTES: usize = 4 << 20;
/// The longest error code that is passed on.
const MAX_CODE_BYTES: usize = 64;
const USER_AGENT: &str = concat!("weirgate/", env!("CARGO_PKG_VERSION"));

/// The provider of a job.
pub(super) struct JobProvider {
    pub(super) deployment: Arc<Deployment>,
    wire: &'static dyn VideoWire,
    job: Box<str>,
    endpoint: usize,
    credential: Option<(HeaderName, HeaderValue)>,
    /// The texts that the provider's messages must not reveal.
    revealing: Vec<String>,
}

impl JobProvider {
    /// Finds the provider of a job, or returns `None` if the configuration no longer has it or its key.
    pub(super) fn find(models: &Models, organization: &str, order: &VideoOrder) -> Option<Self> {
        let deployment = Arc::clone(models.planner.find_ordered(order)?);
        let wire = deployment.wire.videos?;
        let byok_keys = models.byok_keys.current();
        let key = match &order.byok_id {
            Some(id) => byok_keys
                .find(organization, &order.provider)?
                .find_byok(id)?,
            None => deployment.site.keys.find(order.key_hash.as_deref())?,
        };
        let mut revealing = deployment.provider.revealing();
        revealing.extend(key.secret.as_ref().map(|secret| secret.expose().to_owned()));
        let credential = match deployment.provider.source(key).map(|it| it.state()) {
            Some(SourceState::Ready(held)) => {
                revealing.extend(held.revealing());
                Some((header::AUTHORIZATION, held.bearer.clone()?))
            }
            Some(_) => return None,
            None => deployment.provider.credential(key).ok()?.cloned(),
        };
        Some(Self {
            wire,
            job: order.job.clone(),
            endpoint: order.endpoint,
            credential,
            revealing,
            deployment,
        })
    }

    /// Returns the address of an end of a path.
    fn url(&self, end: &str) -> Option<String> {
        let provider = &self.deployment.provider;
        let deployment = &self.deployment;
        let names = provider.path_names(&deployment.mapping.name, deployment.region.as_deref());
        let path = deployment.served.path(end, &names, &provider.quirks);
        deployment.site.url(self.endpoint, &path)
    }

    /// Returns the URL of the bytes. `link` is the one that the provider has given.
    pub(super) fn content_url(&self, link: Option<&str>) -> Option<Url> {
        let url = match link {
            Some(link) => link.to_owned(),
            None => self.url(&self.wire.content_endpoint(&self.job)?)?,
        };
        Url::parse(&url).ok()
    }

    /// Returns whether a URL has one of the origins of this provider at which the job may be.
    pub(super) fn is_own_origin(&self, url: &Url) -> bool {
        let origins = self.deployment.site.endpoints.origins();
        let mut own = origins.filter_map(|origin| Url::parse(&origin.url()).ok());
        own.any(|own| own.origin() == url.origin())
    }

    /// Adds the provider's headers to a request. Its credential is only sent to its own origin.
    pub(super) fn sign(&self, request: RequestBuilder, url: &Url) -> RequestBuilder {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        let own = self.url("/").and_then(|own| Url::parse(&own).ok());
        if own.is_some_and(|own| own.origin() == url.origin()) {
            let configured = self.deployment.provider.headers.iter();
            for (name, value) in configured.chain(&self.credential) {
                headers.insert(name, value.clone());
            }
        }
        request.headers(headers)
    }

    /// Asks for the status of the job.
    pub(super) async fn poll(&self, videos: &Videos) -> Result<VideoReport, PollFailure> {
        let body = self.ask_status(videos, &videos.polls).await?;
        let report = body::off_worker(body.len(), || self.wire.read_status(&body));
        match report.map_err(|_| PollFailure::Failed)? {
            VideoReport::Failed(error) => Ok(VideoReport::Failed(self.scrub(&error))),
            report => Ok(report),
        }
    }

    /// Returns whether the bytes are in the reply about the job.
    pub(super) fn holds_videos(&self) -> bool {
        self.wire.holds_videos()
    }

    /// Returns the bytes that the reply about the job holds.
    pub(super) async fn held_video(&self, videos: &Videos) -> Result<Bytes, PollFailure> {
        let body = self.ask_status(videos, &videos.contents).await?;
        let video = body::off_worker(body.len(), || self.wire.held_video(&body));
        video.map(Bytes::from).ok_or(PollFailure::Failed)
    }

    /// Returns what the provider says of the job.
    async fn ask_status(&self, videos: &Videos, client: &Outbound) -> Result<Bytes, PollFailure> {
        let end = self.wire.status_endpoint(&self.job);
        let url = end.and_then(|end| Url::parse(&self.url(&end)?).ok());
        let url = url.ok_or(PollFailure::Failed)?;
        let request = match self.wire.status_body(&self.job) {
            Some(body) => client.post(url.as_str()).map(|request| {
                let json = HeaderValue::from_static("application/json");
                request.header(header::CONTENT_TYPE, json).body(body)
            }),
            None => client.get(url.as_str()),
        };
        let request = request.map_err(|_| PollFailure::Failed)?;
        let reply = self.sign(request, &url).send().await;
        let reply = reply.map_err(|_| PollFailure::Failed)?;
        match reply.status().as_u16() {
            200 => {}
            404 | 410 => return Err(PollFailure::Unknown),
            _ => return Err(PollFailure::Failed),
        }
        // Base64 has four characters for three bytes.
        let of_video = usize::try_from(videos.max_bytes).unwrap_or(usize::MAX);
        let of_video = of_video.saturating_div(3).saturating_mul(4);
        let max_bytes = match self.holds_videos() {
            true => MAX_STATUS_BYTES.saturating_add(of_video),
            false => MAX_STATUS_BYTES,
        };
        let body = read_body(reply, max_bytes).await;
        body.map_err(|_| PollFailure::Failed)
    }

    /// Returns an error without the texts that it must not reveal.
    fn scrub(&self, error: &JobError) -> JobError {
        let failure = Failure::refused(400, &error.message).scrubbed(&self.revealing);
        let is_word = error.code.len() <= MAX_CODE_BYTES
            && error
                .code
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        JobError {
            code: match is_word {
                true => error.code.clone(),
                false => "video_failed".into(),
            },
            message: failure.message.into(),
        }
    }

    /// Asks the provider to delete the job, once. Providers also delete jobs by themselves.
    pub(super) async fn forget(&self, videos: &Videos) {
        let end = self.wire.delete_endpoint(&self.job);
        let url = end.and_then(|end| Url::parse(&self.url(&end)?).ok());
        let request = url.and_then(|url| {
            let request = videos.polls.delete(url.as_str()).ok()?;
            Some(self.sign(request, &url))
        });
        if let Some(request) = request {
            _ = request.send().await;
        }
    }
}
