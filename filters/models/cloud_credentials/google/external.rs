//! External accounts: tokens of other issuers, which Google trades for its own.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::{USUAL_SCOPE, token_url};
use crate::models::cloud_credentials::secret_text::SecretText;
use crate::models::cloud_credentials::sigv4::{AwsKeys, BodyHash, SignedParts, SigningScope, sign};
use crate::models::cloud_credentials::source_error::SourceError;
use crate::models::cloud_credentials::source_request::SourceRequest;
use crate::models::cloud_credentials::vendor_hosts::SourceHost;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const IDENTITY_QUERY: &str = "Action=GetCallerIdentity&Version=2011-06-15";
/// How long a token of a service account that is taken on lasts.
const LIFETIME: &str = "3600s";
const SUBJECT_CURE: &str = "let the issuer write the token as credential_source.format says";

/// An external account.
#[derive(Debug)]
pub struct ExternalAccount {
    audience: String,
    subject_token_type: String,
    token_url: Url,
    /// Where the token of a service account is asked for, if the account takes one on.
    impersonation_url: Option<Url>,
    pub subject: SubjectSource,
}

/// Where the token of the other issuer comes from.
#[derive(Debug)]
pub enum SubjectSource {
    File {
        path: String,
        format: SubjectFormat,
    },
    Url {
        url: Url,
        headers: Vec<(String, String)>,
        format: SubjectFormat,
    },
    /// A signed request that shows the role of an AWS machine.
    Aws,
}

/// How a token is written.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SubjectFormat {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    subject_token_field_name: Option<String>,
}

/// The members of its JSON.
#[derive(Deserialize)]
pub(super) struct WrittenExternalAccount {
    audience: String,
    subject_token_type: String,
    token_url: String,
    service_account_impersonation_url: Option<String>,
    credential_source: WrittenSubject,
}

#[derive(Deserialize)]
struct WrittenSubject {
    file: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    format: SubjectFormat,
    environment_id: Option<String>,
    executable: Option<Value>,
    certificate: Option<Value>,
}

impl ExternalAccount {
    pub(super) fn check(
        setting: &'static str,
        written: WrittenExternalAccount,
    ) -> Result<Self, SourceError> {
        let impersonation = written.service_account_impersonation_url.as_deref();
        let impersonation = impersonation
            .map(|url| token_url(setting, url))
            .transpose()?;
        Ok(Self {
            audience: written.audience,
            subject_token_type: written.subject_token_type,
            token_url: token_url(setting, &written.token_url)?,
            impersonation_url: impersonation,
            subject: SubjectSource::check(setting, written.credential_source)?,
        })
    }

    /// Returns the request that trades a token of the other issuer.
    pub fn exchange_request(
        &self,
        setting: &'static str,
        subject: &SecretText,
        scope: &str,
    ) -> SourceRequest {
        // The token that takes an account on needs the wide scope; that of the account gets the one that is asked for.
        let scope = self
            .impersonation_url
            .as_ref()
            .map_or(scope, |_| USUAL_SCOPE);
        let form = [
            ("grant_type", GRANT),
            ("audience", &self.audience),
            ("scope", scope),
            ("requested_token_type", ACCESS_TOKEN),
            ("subject_token_type", &self.subject_token_type),
            ("subject_token", subject.expose()),
        ];
        SourceRequest::with_form(setting, self.token_url.clone(), &form)
    }

    /// Returns the request for the token of the service account that is taken on, if there is one.
    pub fn impersonation_request(
        &self,
        setting: &'static str,
        token: &SecretText,
        scope: &str,
    ) -> Option<SourceRequest> {
        let request = SourceRequest {
            method: Method::POST,
            url: self.impersonation_url.clone()?,
            headers: vec![("content-type", "application/json".to_owned())],
            more_headers: Vec::new(),
            body: Some(json!({"scope": [scope], "lifetime": LIFETIME}).to_string()),
            setting,
            is_metadata: false,
        };
        Some(request.with_header("authorization", format!("Bearer {}", token.expose())))
    }

    /// Returns the token of an AWS machine: a signed request that Google sends to AWS, and so learns the role.
    ///
    /// Errors: the keys do not sign.
    pub fn aws_subject(
        &self,
        setting: &'static str,
        (keys, region): (&AwsKeys, &str),
        now_s: u64,
    ) -> Result<SecretText, SourceError> {
        let error = || {
            let came = "AWS's keys or the audience cannot stand in a request";
            SourceError::new(setting, came, "fetch the file anew from Google")
        };
        let host = format!("sts.{region}.amazonaws.com");
        let mut headers = HeaderMap::new();
        for (name, text) in [
            ("host", &host),
            ("x-goog-cloud-target-resource", &self.audience),
        ] {
            headers.insert(name, HeaderValue::from_str(text).map_err(|_| error())?);
        }
        let scope = SigningScope {
            region: region.into(),
            service: "sts".into(),
        };
        let parts = SignedParts {
            method: "POST",
            path: "/",
            query: Some(IDENTITY_QUERY),
            body_hash: &BodyHash::from_slices([]),
        };
        sign(&mut headers, parts, (keys, &scope), now_s).ok_or_else(error)?;
        let headers = headers.iter().filter_map(|(name, value)| {
            Some(json!({"key": name.as_str(), "value": value.to_str().ok()?}))
        });
        let headers: Vec<Value> = headers.collect();
        let url = format!("https://{host}/?{IDENTITY_QUERY}");
        let request = json!({"url": url, "method": "POST", "headers": headers}).to_string();
        let encoded: String = form_urlencoded::byte_serialize(request.as_bytes()).collect();
        Ok(SecretText::new(encoded))
    }
}

impl SubjectSource {
    fn check(setting: &'static str, written: WrittenSubject) -> Result<Self, SourceError> {
        let error = |came: &str, cure: &'static str| Err(SourceError::new(setting, came, cure));
        let cure = "use a source with a file, a url or AWS";
        if written.executable.is_some() {
            return error(
                "its credential_source runs a program, which is not done",
                cure,
            );
        }
        if written.certificate.is_some() {
            return error(
                "its credential_source is a certificate, which is not supported",
                cure,
            );
        }
        if let Some(id) = written.environment_id {
            return match &*id {
                "aws1" => Ok(Self::Aws),
                _ => error("its environment_id is not aws1", cure),
            };
        }
        let format = written.format;
        match (written.file, written.url) {
            (Some(path), None) => Ok(Self::File { path, format }),
            (None, Some(url)) => Ok(Self::Url {
                url: SourceHost::AnyMetadata.check(setting, &url)?,
                headers: written.headers.into_iter().collect(),
                format,
            }),
            _ => error(
                "its credential_source has neither a file nor a url, or both",
                cure,
            ),
        }
    }
}

impl SubjectFormat {
    /// Returns the token in what a file or a server holds.
    ///
    /// Errors: it has another form.
    pub fn find(&self, setting: &'static str, text: &str) -> Result<String, SourceError> {
        let error = |came: &str| SourceError::new(setting, came, SUBJECT_CURE);
        match self.kind.as_deref() {
            None | Some("text") => Ok(text.trim().to_owned()),
            Some("json") => {
                let name = self
                    .subject_token_field_name
                    .as_deref()
                    .unwrap_or("access_token");
                let parsed: Option<Value> = serde_json::from_str(text).ok();
                let token = parsed.as_ref().and_then(|it| it.get(name)?.as_str());
                let token = token.ok_or_else(|| error("the token's JSON lacks the member"))?;
                Ok(token.to_owned())
            }
            Some(_) => Err(error("its format is neither text nor json")),
        }
    }
}
