//! Fetches one image from its address.

use filters::models::chat::inlined::InlinedImage;
use filters::public_address::AddressError;
use reqwest::header::{ACCEPT, LOCATION, USER_AGENT};
use reqwest::{Response, Url};

use crate::config::MediaConfig;
use crate::outbound::{self, Outbound};
use crate::proxy::body_budget::BodyReservation;

/// The maximum number of redirects. Each one is checked like the first address.
const MAX_REDIRECTS: usize = 3;
const PRODUCT: &str = concat!("weirgate/", env!("CARGO_PKG_VERSION"));

/// The reason for which an image cannot be fetched.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum FetchError {
    /// No permit came in time, or there is no memory for the image.
    Busy,
    /// The address must not be asked, for this reason.
    Refused(&'static str),
    /// The host has no public address, or also another one. The message does not tell which: callers must not learn
    /// the names of the network around the gateway.
    Prohibited,
    /// The image did not arrive in time.
    TooSlow,
    /// The image has more than this many bytes.
    TooLarge(usize),
    /// The server responded with this status.
    Status(u16),
    /// The server redirects too often, or to an invalid address.
    Redirects,
    /// The connection failed.
    Broken,
    NoImage,
}

impl FetchError {
    /// Returns the label of the metric.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Refused(_) | Self::Prohibited => "prohibited",
            Self::TooSlow => "too_slow",
            Self::TooLarge(_) => "too_large",
            Self::NoImage => "no_image",
            Self::Status(_) | Self::Redirects | Self::Broken => "failed",
        }
    }
}

impl std::fmt::Display for FetchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Busy => f.write_str("could not be fetched at the moment"),
            Self::Refused(why) => write!(f, "is not fetched: {why}"),
            Self::Prohibited => {
                f.write_str("is not fetched: its host has not public addresses alone")
            }
            Self::TooSlow => f.write_str("could not be fetched in time"),
            Self::TooLarge(bytes) => write!(f, "has more than {bytes} bytes"),
            Self::Status(status) => write!(f, "could not be fetched: its server answered {status}"),
            Self::Redirects => f.write_str(
                "could not be fetched: its server redirects too often, or to no address",
            ),
            Self::Broken => {
                f.write_str("could not be fetched: its server cannot be reached, or broke off")
            }
            Self::NoImage => {
                f.write_str("is no image; accepted are PNG, JPEG, GIF, WebP, HEIC, HEIF and AVIF")
            }
        }
    }
}

/// Fetches images.
pub(super) struct Fetcher {
    client: Outbound,
    max_bytes: usize,
}

impl Fetcher {
    pub(super) fn new(config: &MediaConfig) -> reqwest::Result<Self> {
        let written = config.origins.iter().map(String::as_str);
        Ok(Self {
            client: Outbound::direct(config.timeout, written)?,
            max_bytes: config.max_bytes,
        })
    }

    /// Returns the image at an address. Memory is reserved as the bytes arrive.
    pub(super) async fn fetch(
        &self,
        url: &str,
        memory: &mut BodyReservation,
    ) -> Result<InlinedImage, FetchError> {
        let mut url =
            Url::parse(url).map_err(|_| FetchError::Refused(AddressError::Unreadable.as_str()))?;
        for _ in 0..=MAX_REDIRECTS {
            let reply = self.ask(&url).await?;
            let status = reply.status();
            if status.is_success() {
                return self.read(reply, memory).await;
            }
            if !status.is_redirection() {
                return Err(FetchError::Status(status.as_u16()));
            }
            url = redirected(&url, &reply).ok_or(FetchError::Redirects)?;
        }
        Err(FetchError::Redirects)
    }

    async fn ask(&self, url: &Url) -> Result<Response, FetchError> {
        let request = self.client.get(url.as_str());
        let request = request.map_err(|error| match error {
            AddressError::NotPublic => FetchError::Prohibited,
            _ => FetchError::Refused(error.as_str()),
        })?;
        let request = request
            .header(ACCEPT, "image/*")
            .header(USER_AGENT, PRODUCT);
        request.send().await.map_err(|error| from_error(&error))
    }

    async fn read(
        &self,
        mut reply: Response,
        memory: &mut BodyReservation,
    ) -> Result<InlinedImage, FetchError> {
        let too_large = || FetchError::TooLarge(self.max_bytes);
        let length = reply.content_length().unwrap_or_default();
        if length > self.max_bytes as u64 {
            return Err(too_large());
        }
        // A server may state any length and send nothing, so memory is only taken for received bytes.
        let mut body = Vec::new();
        loop {
            let piece = reply.chunk().await.map_err(|error| from_error(&error))?;
            let Some(piece) = piece else { break };
            if body.len() + piece.len() > self.max_bytes {
                return Err(too_large());
            }
            let bytes = body.len() + piece.len();
            memory.grow_to(bytes).map_err(|_| FetchError::Busy)?;
            body.extend_from_slice(&piece);
        }
        InlinedImage::read(&body).ok_or(FetchError::NoImage)
    }
}

fn redirected(url: &Url, reply: &Response) -> Option<Url> {
    let location = reply.headers().get(LOCATION)?.to_str().ok()?;
    url.join(location).ok()
}

fn from_error(error: &reqwest::Error) -> FetchError {
    if outbound::is_prohibited(error) {
        FetchError::Prohibited
    } else if error.is_timeout() {
        FetchError::TooSlow
    } else {
        FetchError::Broken
    }
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
