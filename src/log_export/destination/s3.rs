//! Batches as objects of a bucket. A second put of a batch replaces the object by the same bytes.

use std::sync::Arc;

use filters::models::cloud_credentials::granted::GrantedSecret;
use filters::models::cloud_credentials::sigv4::{
    AwsKeys, BodyHash, CONTENT_HASH, S3 as SERVICE, SignedParts, SigningScope, encode, sign,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use prometheus::IntCounterVec;
use reqwest::{Response, Url};

use super::{Batch, MAX_REPLY_BYTES, media_type};
use crate::cloud_credentials::{CredentialSource, HeldCredential, SourceState};
use crate::config::{S3Config, S3Keys};
use crate::log_export::clock::now_s;
use crate::outbound::{self, Outbound};

/// The name of the export among those that fetch credentials.
const NAME: &str = "log_export";

/// A bucket.
pub(super) struct S3 {
    url: String,
    /// The host, as requests name it.
    host: HeaderValue,
    prefix: String,
    scope: SigningScope,
    keys: Keys,
    client: Outbound,
}

/// The keys that sign.
enum Keys {
    Written(AwsKeys),
    Source(Arc<CredentialSource>),
}

impl S3 {
    /// Errors: the URL has no host.
    pub(super) fn new(
        config: &S3Config,
        client: Outbound,
        fetches: &IntCounterVec,
    ) -> Result<Self, String> {
        let host = Url::parse(&config.url).ok().and_then(|url| {
            let host = match url.port() {
                Some(port) => format!("{}:{port}", url.host_str()?),
                None => url.host_str()?.to_owned(),
            };
            HeaderValue::from_str(&host).ok()
        });
        Ok(Self {
            url: config.url.clone(),
            host: host.ok_or("the address of the bucket has no host")?,
            prefix: config.prefix.clone(),
            scope: SigningScope {
                region: config.region.as_str().into(),
                service: SERVICE.into(),
            },
            keys: match &config.keys {
                S3Keys::Written(keys) => Keys::Written(keys.clone()),
                S3Keys::Source(settings) => Keys::Source(Arc::new(CredentialSource::new(
                    &NAME.into(),
                    settings,
                    fetches,
                ))),
            },
            client,
        })
    }

    /// Writes a batch to its object.
    ///
    /// Errors: why the storage does not confirm it.
    pub(super) async fn write(&self, batch: Batch) -> Result<(), String> {
        let object = format!("/{}{}", self.prefix, batch.name.to_object());
        let hash = BodyHash::from_slices([&batch.body[..]]);
        let mut headers = HeaderMap::new();
        let media_type = media_type(batch.name.compression);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        let request = (Method::PUT, encode(&object, b'/'), headers, hash);
        let reply = self.ask(request, batch.body.into()).await?;
        if reply.status().is_success() {
            return Ok(());
        }
        Err(describe_refusal(reply).await)
    }

    /// Errors: the bucket is not there, or cannot be asked. Keys that may only write count as good.
    pub(super) async fn find_bucket(&self) -> Result<(), String> {
        let nothing = BodyHash::from_slices([]);
        let request = (Method::HEAD, "/".to_owned(), HeaderMap::new(), nothing);
        let reply = self.ask(request, reqwest::Body::default()).await?;
        match reply.status() {
            StatusCode::NOT_FOUND => Err("the storage has no such bucket".to_owned()),
            StatusCode::FORBIDDEN => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(format!("the storage answered {status}")),
        }
    }

    async fn ask(
        &self,
        (method, path, mut headers, hash): (Method, String, HeaderMap, BodyHash),
        body: reqwest::Body,
    ) -> Result<Response, String> {
        let url = format!("{}{path}", self.url);
        let parsed =
            Url::parse(&url).map_err(|_| "the address of the bucket is no URL".to_owned())?;
        headers.insert(header::HOST, self.host.clone());
        let hash_text = HeaderValue::from_str(&hash.to_hex());
        headers.insert(CONTENT_HASH, hash_text.map_err(|error| error.to_string())?);
        let parts = SignedParts {
            method: method.as_str(),
            path: parsed.path(),
            query: None,
            body_hash: &hash,
        };
        let held = self.held().await?;
        let keys = match (&self.keys, &held) {
            (Keys::Written(keys), _) => keys,
            (Keys::Source(_), Some(held)) => match &held.granted.secret {
                GrantedSecret::Keys(keys) => keys,
                GrantedSecret::Token(_) => return Err("the sign-in gives no keys".to_owned()),
            },
            (Keys::Source(_), None) => return Err("the sign-in gives nothing".to_owned()),
        };
        let signed = sign(&mut headers, parts, (keys, &self.scope), now_s());
        signed.ok_or("a request cannot be signed: a key has characters that no header takes")?;
        headers.remove(header::HOST);
        let request = self.client.request(method, &url);
        let request = request.map_err(|error| format!("the storage: {error}"))?;
        let sent = request.headers(headers).body(body).send().await;
        let reply = sent.map_err(|error| format!("the storage: {}", outbound::describe(error)))?;
        let is_refused = matches!(reply.status().as_u16(), 400 | 401 | 403);
        if let (Keys::Source(source), Some(held), true) = (&self.keys, &held, is_refused) {
            source.refuse(held, None);
        }
        Ok(reply)
    }

    /// Returns what AWS's own sources give; `None`: the keys are those of the configuration.
    ///
    /// Errors: why they give nothing.
    async fn held(&self) -> Result<Option<Arc<HeldCredential>>, String> {
        let Keys::Source(source) = &self.keys else {
            return Ok(None);
        };
        if matches!(source.state(), SourceState::Missing) {
            source.wait().await;
        }
        match source.state() {
            SourceState::Ready(held) => Ok(Some(held)),
            SourceState::Missing => Err("the sign-in to AWS takes too long".to_owned()),
            SourceState::Failed(error) => Err(format!("the sign-in to AWS: {error}")),
        }
    }
}

/// Describes a refusal by its status and the word of S3's code.
async fn describe_refusal(reply: Response) -> String {
    let status = reply.status();
    let body = outbound::read_body(reply, MAX_REPLY_BYTES).await;
    let code = body.ok().and_then(|body| read_code(&body));
    match code {
        Some(code) => format!("the storage answered {status} with the code {code}"),
        None => format!("the storage answered {status}"),
    }
}

/// Returns the code of an error of S3.
fn read_code(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let is_word = !code.is_empty() && code.len() <= 64;
    (is_word && code.bytes().all(|b| b.is_ascii_alphanumeric())).then(|| code.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_error_is_told_if_it_is_a_word() {
        let body = |code: &str| format!("<?xml?><Error><Code>{code}</Code><Key>x</Key></Error>");
        assert_eq!(
            read_code(body("NoSuchBucket").as_bytes()).as_deref(),
            Some("NoSuchBucket")
        );
        for other in ["", "a b", "<x>", &"a".repeat(65)] {
            assert_eq!(read_code(body(other).as_bytes()), None, "{other}");
        }
        assert_eq!(read_code(b"{}"), None);
        assert_eq!(read_code(&[0xff]), None);
    }
}
