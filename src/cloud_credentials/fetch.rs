//! Requests to sources of credentials, and the files that they need.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use filters::models::cloud_credentials::clock_skew;
use filters::models::cloud_credentials::secret_text::SecretText;
use filters::models::cloud_credentials::source_error::{
    SourceError, describe_refusal, describe_unreadable,
};
use filters::models::cloud_credentials::source_request::SourceRequest;
use http::header;

use crate::outbound::{self, Outbound};

/// The time limit of a metadata server, which answers at once or not at all.
const METADATA_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit of a token endpoint.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a reply.
const MAX_REPLY_BYTES: usize = 256 << 10;
/// The maximum size of a file.
const MAX_FILE_BYTES: u64 = 1 << 20;
const METADATA_CURE: &str =
    "see that the vendor's metadata server and an identity are there, or name another source";
const TOKEN_CURE: &str =
    "see that the endpoint can be reached, and that it takes these credentials";
const CLOCK_CURE: &str = "set the clock of this machine";

/// The success of a source.
pub(super) struct SourceReply {
    pub(super) body: Bytes,
    setting: &'static str,
}

impl SourceReply {
    /// Returns the error of a reply that lacks what was asked for.
    pub(super) fn unreadable(&self, wanted: &str) -> SourceError {
        let came = describe_unreadable(&self.body, wanted);
        SourceError::new(self.setting, came, TOKEN_CURE)
    }
}

/// Returns the time in Unix seconds.
pub(super) fn unix_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Sends a request. No redirect is followed.
///
/// Errors: no reply in time, another status than success, a reply that is too long.
pub(super) async fn send(request: SourceRequest) -> Result<SourceReply, SourceError> {
    let (setting, is_metadata) = (request.setting, request.is_metadata);
    let (limit, cure) = match is_metadata {
        true => (METADATA_TIMEOUT, METADATA_CURE),
        false => (TOKEN_TIMEOUT, TOKEN_CURE),
    };
    let failed = |came: String| SourceError::new(setting, came, cure);
    // A proxy does not stand before metadata. The address has been checked, so it counts as written.
    let urls = [request.url.as_str()];
    let client = match is_metadata {
        true => Outbound::direct(limit, urls),
        false => Outbound::new(limit, urls),
    };
    let client = client.map_err(|error| failed(outbound::describe(error)))?;
    let sent = client.request(request.method, request.url.as_str());
    let mut sent = sent.map_err(|error| failed(error.to_string()))?;
    for (name, value) in request.headers {
        sent = sent.header(name, value);
    }
    for (name, value) in request.more_headers {
        sent = sent.header(name, value);
    }
    if let Some(body) = request.body {
        sent = sent.body(body);
    }
    let reply = sent
        .send()
        .await
        .map_err(|error| match error.is_timeout() {
            true => failed(format!("it did not answer within {} s", limit.as_secs())),
            false => failed(outbound::describe(error)),
        })?;
    let status = reply.status();
    let date = reply.headers().get(header::DATE);
    let skew = date.and_then(|date| clock_skew::describe(date.to_str().ok()?, unix_s()));
    let body = outbound::read_body(reply, MAX_REPLY_BYTES).await;
    let body = body.map_err(failed)?;
    if status.is_success() {
        return Ok(SourceReply { body, setting });
    }
    let came = describe_refusal(status.as_u16(), &body);
    Err(match skew {
        Some(skew) => SourceError::new(setting, format!("{came}, and {skew}"), CLOCK_CURE),
        None => failed(came),
    })
}

/// Reads a file of text, off the worker. `None`: it does not exist.
///
/// Errors: it cannot be read, or is too large.
pub(super) async fn read_file(
    setting: &'static str,
    path: String,
) -> Result<Option<String>, SourceError> {
    let shown = path.clone();
    let failed = |why: String| {
        let cure = "let the service's user read the file";
        SourceError::new(setting, format!("{shown} cannot be read: {why}"), cure)
    };
    let reading = tokio::task::spawn_blocking(move || {
        let length = std::fs::metadata(&path)?.len();
        match length > MAX_FILE_BYTES {
            true => Err(std::io::Error::other("it is too large")),
            false => std::fs::read_to_string(&path),
        }
    });
    match reading.await {
        Ok(Ok(text)) => Ok(Some(text)),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed("the reader has ended".to_owned())),
    }
}

/// Reads a file of text that has to exist.
///
/// Errors: it does not exist, cannot be read, or is too large.
pub(super) async fn need_file(setting: &'static str, path: String) -> Result<String, SourceError> {
    let shown = path.clone();
    let text = read_file(setting, path).await?;
    text.ok_or_else(|| {
        let cure = "correct the path, or let the issuer write the file";
        SourceError::new(setting, format!("{shown} does not exist"), cure)
    })
}

/// Reads the federated token in a file.
///
/// Errors: there is none, or it has expired.
pub(super) async fn read_federated(
    setting: &'static str,
    path: String,
) -> Result<SecretText, SourceError> {
    let text = need_file(setting, path).await?;
    filters::models::cloud_credentials::federated_token::read(setting, &text, unix_s())
}
