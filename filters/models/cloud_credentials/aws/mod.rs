//! AWS's sources of keys, in the order of AWS's own SDKs: variables, a web identity, the profile, the container, the machine.
//!
//! [`profile`] reads the shared files, [`replies`] what servers answer.

pub mod profile;
pub mod replies;

use std::collections::BTreeMap;

use http::Method;
use url::Url;

use self::profile::{AwsProfile, ProfileFiles};
use super::granted::{Granted, GrantedSecret};
use super::secret_text::SecretText;
use super::sigv4::AwsKeys;
use super::source_error::SourceError;
use super::source_request::SourceRequest;
use super::vendor_hosts::SourceHost;

/// The address of the machine's metadata.
const MACHINE_URL: &str = "http://169.254.169.254";
/// The address behind which relative paths of containers stand.
const CONTAINER_URL: &str = "http://169.254.170.2";
const MACHINE: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
const CONTAINER: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const RELATIVE_CONTAINER: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const CONTAINER_TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
const TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
const STS: &str = "AWS_ENDPOINT_URL_STS";
/// How long a session with the machine's metadata lasts. A source needs it for two requests.
const SESSION_S: &str = "60";
/// The version of STS's interface.
const STS_VERSION: &str = "2011-06-15";

/// The variables of the environment.
pub type Environment = BTreeMap<String, String>;

/// A source of keys.
#[derive(Debug)]
pub enum AwsSource {
    Keys(AwsKeys),
    WebIdentity(WebIdentity),
    Container(AwsContainer),
    Machine(Url),
}

/// A token of another issuer, and the role that it is traded for.
#[derive(Debug)]
pub struct WebIdentity {
    pub role_arn: String,
    pub session_name: String,
    pub token_file: String,
    /// The setting that names the file.
    pub setting: &'static str,
    pub sts: Url,
}

/// The endpoint of a container or a pod.
#[derive(Debug)]
pub struct AwsContainer {
    pub url: Url,
    pub token: Option<ContainerToken>,
}

/// What the endpoint of a container wants to see.
#[derive(Debug)]
pub enum ContainerToken {
    Text(SecretText),
    /// The file that holds it.
    File(String),
}

/// Returns a variable that is set.
pub(super) fn set<'e>(environment: &'e Environment, name: &str) -> Option<&'e str> {
    let value = environment.get(name).map(|value| value.trim());
    value.filter(|value| !value.is_empty())
}

/// Returns the region that requests go to and are signed for: the one of the configuration, of the environment, of the
/// profile.
///
/// Errors: there is none.
pub fn find_region(
    configured: Option<&str>,
    environment: &Environment,
    files: &ProfileFiles<'_>,
) -> Result<String, SourceError> {
    let variables = ["AWS_REGION", "AWS_DEFAULT_REGION"];
    let named = variables.iter().find_map(|name| set(environment, name));
    if let Some(region) = configured.or(named) {
        return Ok(region.to_owned());
    }
    let name = profile::name(environment);
    let profile = AwsProfile::find(files, name)?;
    profile.and_then(|profile| profile.region).ok_or_else(|| {
        let came = format!("is missing, and so are AWS_REGION and a region of the profile {name}");
        SourceError::new("region", came, "set region, or AWS_REGION")
    })
}

/// Chooses the source.
///
/// Errors: the first source that the environment names cannot be used.
pub fn choose(
    environment: &Environment,
    files: &ProfileFiles<'_>,
    region: &str,
) -> Result<AwsSource, SourceError> {
    if let Some(keys) = from_variables(environment)? {
        return Ok(AwsSource::Keys(keys));
    }
    if let Some(file) = set(environment, TOKEN_FILE) {
        let role = set(environment, "AWS_ROLE_ARN").ok_or_else(|| {
            let came = "is missing beside AWS_WEB_IDENTITY_TOKEN_FILE";
            SourceError::new("AWS_ROLE_ARN", came, "set the role that the token is for")
        })?;
        let session = set(environment, "AWS_ROLE_SESSION_NAME");
        let identity = WebIdentity::new(environment, region, (role, session, file), TOKEN_FILE);
        return Ok(AwsSource::WebIdentity(identity?));
    }
    let name = profile::name(environment);
    let profile = AwsProfile::find(files, name)?;
    if let Some(profile) = profile
        && let Some(source) = profile.source(environment, region)?
    {
        return Ok(source);
    }
    if let Some(container) = find_container(environment)? {
        return Ok(AwsSource::Container(container));
    }
    let is_off = set(environment, "AWS_EC2_METADATA_DISABLED");
    if is_off.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        let came = "no variable, profile or container has keys, and the machine's are disabled";
        let cure = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another of AWS's sources";
        return Err(SourceError::new("AWS_EC2_METADATA_DISABLED", came, cure));
    }
    let machine = set(environment, MACHINE).unwrap_or(MACHINE_URL);
    SourceHost::AwsMetadata
        .check(MACHINE, machine)
        .map(AwsSource::Machine)
}

fn from_variables(environment: &Environment) -> Result<Option<AwsKeys>, SourceError> {
    let [id, secret] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
    let missing = |name| {
        let cure = "set both of them, or none";
        Err(SourceError::new(
            name,
            "is missing, and its other half is set",
            cure,
        ))
    };
    match (set(environment, id), set(environment, secret)) {
        (Some(id), Some(secret)) => Ok(Some(AwsKeys {
            access_key_id: id.into(),
            secret_access_key: SecretText::new(secret),
            session_token: set(environment, "AWS_SESSION_TOKEN").map(SecretText::new),
        })),
        (Some(_), None) => missing(secret),
        (None, Some(_)) => missing(id),
        (None, None) => Ok(None),
    }
}

fn find_container(environment: &Environment) -> Result<Option<AwsContainer>, SourceError> {
    let relative = set(environment, RELATIVE_CONTAINER);
    let url = match (relative, set(environment, CONTAINER)) {
        (Some(path), _) if path.starts_with('/') => {
            let url = format!("{CONTAINER_URL}{path}");
            SourceHost::AwsMetadata.check(RELATIVE_CONTAINER, &url)?
        }
        (Some(_), _) => {
            let cure = "let it begin with a slash";
            return Err(SourceError::new(RELATIVE_CONTAINER, "it is no path", cure));
        }
        (None, Some(url)) => SourceHost::AwsMetadata.check(CONTAINER, url)?,
        (None, None) => return Ok(None),
    };
    let file = set(environment, CONTAINER_TOKEN_FILE);
    let text = set(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    let file = file.map(|file| ContainerToken::File(file.to_owned()));
    let text = || text.map(|text| ContainerToken::Text(SecretText::new(text)));
    Ok(Some(AwsContainer {
        url,
        token: file.or_else(text),
    }))
}

impl AwsSource {
    /// Returns keys that need no request, as what a source gives.
    pub fn granted(keys: AwsKeys) -> Granted {
        Granted {
            secret: GrantedSecret::Keys(keys),
            expires_s: None,
        }
    }
}

impl WebIdentity {
    pub(super) fn new(
        environment: &Environment,
        region: &str,
        (role, session, file): (&str, Option<&str>, &str),
        setting: &'static str,
    ) -> Result<Self, SourceError> {
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        let usual = format!("https://sts.{region}.amazonaws.com{suffix}");
        let sts = set(environment, STS).unwrap_or(&usual);
        Ok(Self {
            role_arn: role.to_owned(),
            session_name: session.unwrap_or("weirgate").to_owned(),
            token_file: file.to_owned(),
            setting,
            sts: SourceHost::AwsSts.check(STS, sts)?,
        })
    }

    /// Returns the request that trades the token. It needs no signature.
    pub fn request(&self, token: &SecretText) -> SourceRequest {
        let form = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", STS_VERSION),
            ("RoleArn", &self.role_arn),
            ("RoleSessionName", &self.session_name),
            ("WebIdentityToken", token.expose()),
        ];
        SourceRequest::with_form(STS, self.sts.clone(), &form)
    }
}

impl AwsContainer {
    /// Returns the name of the setting with the file of the token, for errors.
    pub const TOKEN_FILE: &'static str = CONTAINER_TOKEN_FILE;

    /// Returns the request for keys.
    pub fn request(&self, token: Option<&SecretText>) -> SourceRequest {
        let request = SourceRequest::to_metadata(CONTAINER, self.url.clone());
        match token {
            Some(token) => request.with_header("authorization", token.expose()),
            None => request,
        }
    }
}

/// Returns the request for a session with the machine's metadata. The older form without sessions is never used.
pub fn session_request(machine: &Url) -> Option<SourceRequest> {
    let url = machine.join("/latest/api/token").ok()?;
    let request = SourceRequest {
        method: Method::PUT,
        ..SourceRequest::to_metadata(MACHINE, url)
    };
    Some(request.with_header("x-aws-ec2-metadata-token-ttl-seconds", SESSION_S))
}

/// Returns the request for the name of the machine's role, or with the name for its keys.
pub fn role_request(machine: &Url, session: &SecretText, role: &str) -> Option<SourceRequest> {
    let path = format!("/latest/meta-data/iam/security-credentials/{role}");
    let request = SourceRequest::to_metadata(MACHINE, machine.join(&path).ok()?);
    Some(request.with_header("x-aws-ec2-metadata-token", session.expose()))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
